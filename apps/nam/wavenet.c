/* WaveNet as steps. Per layer: dilated convolution and condition mix-in in one step with activation and gate; the head
 * sum right behind it, so that the chain adds while the values are hot; then the 1x1 with the residual. FiLM takes the
 * steps apart where it stands between them. Weights are read in the order of the file before any step is made. */
#include <string.h>

#include "layers.h"

enum { MAX_ARRAYS = 64 };

typedef struct state { /* signals */
  int32_t x, head, condition;
} state;

typedef struct layer_steps { /* with their weights */
  hk_step conv, mixin, layer1x1, head1x1, film[FILMS];
} layer_steps;

static bool read_layer(nam_net *net, nam_weights *w, const layer_array *a, const layer *l, layer_steps *s) {
  const int64_t half = l->gate ? 2 : 1, z = half * a->bottleneck, keep_z = half * a->keep_bottleneck;
  const int64_t dims[FILMS] = {a->channels, z, a->condition, z, z, a->bottleneck, a->channels, a->head1x1_out};
  const int64_t keep[FILMS] = {a->keep_channels,   keep_z,           a->condition,  keep_z, keep_z,
                               a->keep_bottleneck, a->keep_channels, a->head1x1_out};
  memset(s, 0, sizeof *s);
  if (!nam_read_conv(
          net, w, &(nam_conv){a->channels, z, l->kernel, l->dilation, a->groups_input, a->keep_channels, keep_z, true},
          &s->conv))
    return false;
  if (!nam_read_conv(net, w, &(nam_conv){a->condition, z, 1, 1, a->groups_mixin, a->condition, keep_z, false},
                     &s->mixin))
    return false;
  if (a->layer1x1 && !nam_read_conv(net, w,
                                    &(nam_conv){a->bottleneck, a->channels, 1, 1, a->layer1x1_groups,
                                                a->keep_bottleneck, a->keep_channels, true},
                                    &s->layer1x1))
    return false;
  if (a->head1x1 && !nam_read_conv(net, w,
                                   &(nam_conv){a->bottleneck, a->head1x1_out, 1, 1, a->head1x1_groups,
                                               a->keep_bottleneck, a->head1x1_out, true},
                                   &s->head1x1))
    return false;
  for (int i = 0; i < FILMS; i++) {
    const film *f = &a->films[i];
    const int64_t rows = f->shift ? 2 : 1;
    if (f->active &&
        !nam_read_conv(net, w,
                       &(nam_conv){a->condition, rows * dims[i], 1, 1, f->groups, a->condition, rows * keep[i], true},
                       &s->film[i]))
      return false;
  }
  return true;
}

static int32_t conv_step(nam_net *net, hk_step step, int32_t x) {
  step.kind = HK_STEP_CONV;
  step.x = x;
  return x ? nam_step(net, &step, step.gate ? step.k / 2 : step.k) : 0;
}

/* x*scale(c) + shift(c), or x where there is no such FiLM */
static int32_t film_step(nam_net *net, const layer_array *a, const layer_steps *s, int which, int32_t x,
                         int32_t condition) {
  if (!x || !a->films[which].active) return x;
  const int32_t parameters = conv_step(net, s->film[which], condition);
  const hk_step scale = {.kind = HK_STEP_SCALE, .x = x, .x2 = parameters};
  return parameters ? nam_step(net, &scale, net->signal[x].channels) : 0;
}

/* conv, mix-in and activation of one layer: the signal p */
static int32_t activated(nam_net *net, const layer_array *a, const layer *l, const layer_steps *s, const state *st) {
  const int32_t x = film_step(net, a, s, CONV_PRE, st->x, st->condition);
  const int32_t c = film_step(net, a, s, MIXIN_PRE, st->condition, st->condition);
  hk_step tail = {.kind = HK_STEP_MAP, .act = l->act, .act2 = l->act2, .gate = l->gate};
  int32_t z;
  if (!x || !c) return 0;
  if (a->films[CONV_POST].active || a->films[MIXIN_POST].active) {
    const int32_t u = film_step(net, a, s, CONV_POST, conv_step(net, s->conv, x), st->condition);
    const int32_t m = u ? film_step(net, a, s, MIXIN_POST, conv_step(net, s->mixin, c), st->condition) : 0;
    z = m ? nam_add(net, u, m) : 0;
  } else {
    hk_step conv = s->conv;
    conv.mix = c;
    conv.mix_groups = s->mixin.groups;
    conv.mix_f = s->mixin.f;
    if (!a->films[ACT_PRE].active) { /* all in one */
      conv.act = l->act;
      conv.act2 = l->act2;
      conv.gate = l->gate;
      return film_step(net, a, s, ACT_POST, conv_step(net, conv, x), st->condition);
    }
    z = conv_step(net, conv, x);
  }
  z = film_step(net, a, s, ACT_PRE, z, st->condition);
  if (!z) return 0;
  tail.x = z;
  return film_step(net, a, s, ACT_POST, nam_step(net, &tail, net->signal[z].channels / (l->gate ? 2 : 1)),
                   st->condition);
}

static bool add_layer(nam_net *net, nam_weights *w, const layer_array *a, const layer *l, state *st) {
  layer_steps s;
  if (!read_layer(net, w, a, l, &s)) return false;
  const int32_t p = activated(net, a, l, &s, st);
  int32_t h = p;
  if (a->head1x1) h = film_step(net, a, &s, HEAD1X1_POST, conv_step(net, s.head1x1, p), st->condition);
  if (!h) return false;
  st->head = st->head ? nam_add(net, st->head, h) : h;
  if (!st->head) return false;
  if (!a->layer1x1) return true;
  /* The trainer applies it always, NAM Core 0.4.0 to 0.5.x where the gating is blended. */
  if (a->films[LAYER1X1_POST].active && (l->gate == HK_GATE_BLENDED || !net->film_blended_only)) {
    const int32_t r = film_step(net, a, &s, LAYER1X1_POST, conv_step(net, s.layer1x1, p), st->condition);
    st->x = r ? nam_add(net, st->x, r) : 0;
  } else {
    s.layer1x1.residual = HK_RESIDUAL_AFTER;
    s.layer1x1.add = st->x;
    s.layer1x1.beta = 1.0f;
    st->x = conv_step(net, s.layer1x1, p);
  }
  return st->x != 0;
}

static void describe(nam_net *net, int32_t index, const layer_array *a, const layer *last, int64_t history) {
  static const char *const gates[] = {"", ", gated", ", blended"};
  nam_describe(
      net,
      "array %d: %lld -> %lld channels, bottleneck %lld, %lld layers of %s%s, %lld frames back, head %lld -> %lld\n",
      index + 1, (long long)a->keep_input, (long long)a->keep_channels, (long long)a->keep_bottleneck,
      (long long)a->layers, last->act_name, gates[last->gate], (long long)history,
      (long long)(a->head1x1 ? a->head1x1_out : a->keep_bottleneck), (long long)a->keep_head_out);
}

static bool add_array(nam_net *net, nam_weights *w, int32_t index, const layer_array *a, state *st) {
  if (net->signal[st->x].channels != a->keep_input)
    return nam_fail("layer array %d takes %lld inputs, not %lld", index, (long long)a->keep_input,
                    (long long)net->signal[st->x].channels);
  if (net->signal[st->condition].channels != a->condition)
    return nam_fail("layer array %d wants %lld condition channels, not %lld", index, (long long)a->condition,
                    (long long)net->signal[st->condition].channels);
  hk_step s = {0};
  if (!nam_read_conv(net, w, &(nam_conv){a->input, a->channels, 1, 1, 1, a->keep_input, a->keep_channels, false}, &s))
    return false;
  if (!(st->x = conv_step(net, s, st->x))) return false;
  const int64_t width = a->head1x1 ? a->head1x1_out : a->keep_bottleneck,
                full = a->head1x1 ? a->head1x1_out : a->bottleneck;
  if (st->head && net->signal[st->head].channels != width)
    return nam_fail("layer array %d: the head before it has %lld channels, not %lld", index,
                    (long long)net->signal[st->head].channels, (long long)width);
  int64_t history = 0;
  layer l = {0};
  for (int64_t i = 0; i < a->layers; i++) {
    if (!layer_read(a, i, net, &l) || !add_layer(net, w, a, &l, st)) return false;
    history += l.dilation * (l.kernel - 1);
  }
  describe(net, index, a, &l, history);
  hk_step head = {0};
  if (!nam_read_conv(
          net, w,
          &(nam_conv){full, a->head_out, a->head_kernel, a->head_dilation, 1, width, a->keep_head_out, a->head_bias},
          &head))
    return false;
  return (st->head = conv_step(net, head, st->head)) != 0;
}

/* The head scale multiplies the last head convolution, which is the newest step: into its weights. */
static bool scale_head(nam_net *net, float scale) {
  hk_step *s = &net->step[net->count - 1];
  const int64_t in = net->signal[s->x].channels, count = s->k * in * s->window;
  float *f = nam_floats(net, (size_t)(count + s->k));
  if (!f) return false;
  for (int64_t i = 0; i < count; i++) f[i] = scale * s->f[i];
  for (int64_t i = 0; i < s->k && s->bias; i++) f[count + i] = scale * s->bias[i];
  s->f = f;
  if (s->bias) s->bias = f + count;
  return true;
}

static bool add_post_head(nam_net *net, nam_weights *w, const nam_value *head, state *st) {
  int64_t channels, out, in;
  if (!nam_is(head, NAM_OBJECT)) return nam_fail("head must be an object or null");
  const nam_value *kernels = nam_get(head, "kernel_sizes"), *act = nam_object(head, "activation");
  if (!nam_is(kernels, NAM_ARRAY) || nam_count(kernels) < 1 || nam_count(kernels) > MAX_LAYERS)
    return nam_fail("head.kernel_sizes must be an array of 1 to %d numbers", MAX_LAYERS);
  if (!act) return nam_fail("head.activation is missing");
  if (!nam_int(head, "channels", 1, MAX_CHANNELS, &channels) || !nam_int(head, "out_channels", 1, MAX_CHANNELS, &out) ||
      !nam_int_or(head, "in_channels", net->signal[st->head].channels, 1, MAX_CHANNELS, &in))
    return false;
  if (in != net->signal[st->head].channels)
    return nam_fail("head.in_channels is %lld; the layers give %lld", (long long)in,
                    (long long)net->signal[st->head].channels);
  const size_t last = nam_count(kernels) - 1;
  for (size_t i = 0; i <= last; i++) {
    const int64_t now = net->signal[st->head].channels;
    hk_step a = {.kind = HK_STEP_MAP, .x = st->head}, c = {0};
    int64_t kernel;
    if (!nam_as_int(nam_at(kernels, i), "head.kernel_sizes", 1, MAX_KERNEL, &kernel)) return false;
    if (!nam_activation(act, now, now, net->rational, net, &a.act)) return false;
    if (!nam_read_conv(net, w, &(nam_conv){now, i == last ? out : channels, kernel, 1, 1, 0, 0, true}, &c))
      return false;
    st->head = conv_step(net, c, nam_step(net, &a, now));
    if (!st->head) return false;
  }
  nam_describe(net, "post-stack head: %zu convolutions of %lld channels, %lld out\n", last + 1, (long long)channels,
               (long long)out);
  return true;
}

int32_t nam_wavenet(nam_net *net, const nam_value *config, nam_weights *w, int32_t input, double ratio, int depth,
                    double rate) {
  layer_array arrays[MAX_ARRAYS];
  int32_t count;
  double scale;
  if (!layers_read(config, arrays, &count, MAX_ARRAYS) || !nam_real_or(config, "head_scale", 1, &scale)) return 0;
  layers_keep(arrays, count, ratio);
  state st = {input, 0, input};
  const nam_value *condition = nam_object(config, "condition_dsp"), *head = nam_object(config, "head");
  if (condition) {
    double own;
    if (!nam_rate(condition, &own)) return 0;
    if (own != rate) {
      nam_fail("condition_dsp has a sample rate of %g, the model one of %g", own, rate);
      return 0;
    }
    nam_describe(net, "condition:\n");
    if (!(st.condition = nam_build(net, condition, input, 1.0, depth + 1))) return 0;
  }
  if (!w->total) {
    nam_fail("the model has no weights");
    return 0;
  }
  const float last = w->at[w->left - 1];
  for (int32_t i = 0; i < count; i++) {
    if (!add_array(net, w, i, &arrays[i], &st)) return 0;
  }
  const float *unused;
  if (!scale_head(net, last) || (head && !add_post_head(net, w, head, &st)) || !nam_take(w, 1, &unused)) return 0;
  return st.head;
}

/* One size for each interval of the value in which no array changes its channels. */
bool nam_wavenet_sizes(const nam_value *config, const nam_value *model, nam_size *sizes, int32_t *count) {
  layer_array arrays[MAX_ARRAYS];
  int32_t n;
  *count = 0;
  if (!layers_read(config, arrays, &n, MAX_ARRAYS)) return false;
  double at = 0;
  while (*count < MAX_SIZES) {
    double next = 2; /* beyond every value */
    bool slim = false;
    for (int32_t i = 0; i < n; i++) {
      for (int32_t j = 1; j < arrays[i].allowed_count; j++) {
        const double edge = (double)j / arrays[i].allowed_count;
        if (edge > at && edge < next) next = edge;
      }
      slim |= arrays[i].allowed_count > 0;
    }
    if (slim && nam_object(config, "head")) return nam_fail("a slimmable model with a post-stack head is not defined");
    sizes[(*count)++] = (nam_size){model, next, slim ? at : 1.0};
    if (next > 1) return true;
    at = next;
  }
  return nam_fail("the model has more than %d sizes", MAX_SIZES);
}
