/* Amp models made here, one for every feature of the format, against an engine in double written from the format alone:
 * the generator draws a configuration, writes it as JSON with its weights in the order of the file, and evaluates it
 * over the whole signal as it goes. Covers WaveNet (groups, bottleneck, gating, all activations, FiLM at all eight
 * places, head1x1, head kernels, post-stack head, condition models, several arrays, slimming), LSTM, ConvNet, Linear
 * and containers, in random block lengths on every ISA. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/base.h"
#include "hankel_nam.h"
#include "support/check.h"

enum { WARM = 1600, PLAY = 220, T = WARM + PLAY, ROOM = 1 << 20, MAX_WEIGHTS = 1 << 16 };

static uint64_t seed = 88172645463325252u;
static int below(int n) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (int)(seed % (uint64_t)n);
}
static int from_to(int low, int high) { return low + below(high - low + 1); }
static bool maybe(void) { return below(2); }
static int divisor_of(int a, int b) {
  int g;
  do g = 1 + below(a < b ? a : b);
  while (a % g || b % g);
  return g;
}

/* ---- text and weights under construction */
typedef struct text {
  char *at;
  size_t length;
} text;
typedef struct file {
  text config;
  float weight[MAX_WEIGHTS];
  int count;
} file;

static void say(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!t->at) t->at = malloc(ROOM);
  t->length += (size_t)vsnprintf(t->at + t->length, ROOM - t->length, format, args);
  va_end(args);
  if (t->length >= ROOM) abort();
}

/* ---- signals, in double */
typedef struct sig {
  int n;
  double *v; /* [n][T] */
} sig;
static double *pool[4096];
static int pooled;
static sig new_sig(int n) {
  sig s = {n, calloc((size_t)n * T, sizeof(double))};
  pool[pooled++] = s.v;
  if (pooled == 4096) abort();
  return s;
}
static void free_sigs(void) {
  while (pooled) free(pool[--pooled]);
}

/* ---- convolutions: drawn in file order, applied later, to all or the first channels */
typedef struct conv {
  int in, out, groups, kernel, dilation;
  const float *w, *b;
} conv;

static const float *draw(file *f, int count, double size) {
  const float *at = f->weight + f->count;
  if (f->count + count > MAX_WEIGHTS) abort();
  for (int i = 0; i < count; i++) f->weight[f->count++] = (float)(size * (below(20001) - 10000) * 1e-4);
  return at;
}

static conv draw_conv(file *f, int in, int out, int groups, int kernel, int dilation, bool bias) {
  conv c = {in, out, groups, kernel, dilation, NULL, NULL};
  c.w = draw(f, out * (in / groups) * kernel, 1.5 / sqrt(in / groups * kernel));
  if (bias) c.b = draw(f, out, 0.3);
  return c;
}

static sig apply(const conv *c, sig x, int keep_out) {
  sig y = new_sig(keep_out);
  const int in = c->in / c->groups, per = c->out / c->groups;
  for (int o = 0; o < keep_out; o++) {
    for (int t = 0; t < T; t++) {
      double v = c->b ? c->b[o] : 0;
      for (int i = 0; i < in && o / per * in + i < x.n; i++) {
        for (int k = 0; k < c->kernel; k++) {
          const int at = t - c->dilation * (c->kernel - 1 - k);
          if (at >= 0) v += (double)c->w[(o * in + i) * c->kernel + k] * x.v[(o / per * in + i) * T + at];
        }
      }
      y.v[o * T + t] = v;
    }
  }
  return y;
}

/* ---- activations */
typedef struct act {
  int kind;
  double slope[64], lo, hi, below, above;
} act;
static const char *const act_names[] = {"Tanh", "Hardtanh",  "ReLU",          "LeakyReLU", "PReLU", "Sigmoid",
                                        "SiLU", "Hardswish", "LeakyHardtanh", "Softsign",  "PReLU"};

static act draw_act(text *t, int channels) {
  act a = {.kind = below(11)};
  for (int i = 0; i < 64; i++) a.slope[i] = 0.01;
  if (a.kind == 3 || a.kind == 4) {
    const double s = from_to(0, 50) * 0.01;
    for (int i = 0; i < 64; i++) a.slope[i] = (float)s;
    say(t, "{\"type\":\"%s\",\"negative_slope\":%.9g}", act_names[a.kind], s);
  } else if (a.kind == 10) {
    say(t, "{\"type\":\"PReLU\",\"negative_slopes\":[");
    for (int i = 0; i < channels; i++) {
      a.slope[i] = (float)(below(100) * 0.005);
      say(t, "%s%.9g", i ? "," : "", a.slope[i]);
    }
    say(t, "]}");
  } else if (a.kind == 8) {
    a.lo = -0.25 * from_to(1, 4), a.hi = 0.25 * from_to(1, 4), a.below = 0.0625, a.above = 0.125;
    say(t, "{\"type\":\"LeakyHardtanh\",\"min_val\":%g,\"max_val\":%g,\"min_slope\":%g,\"max_slope\":%g}", a.lo, a.hi,
        a.below, a.above);
  } else {
    say(t, maybe() ? "\"%s\"" : "{\"type\":\"%s\"}", act_names[a.kind]);
  }
  return a;
}

static double eval(const act *a, int channel, double v) {
  switch (a->kind) {
  case 0: return tanh(v);
  case 1: return v < -1 ? -1 : v > 1 ? 1 : v;
  case 2: return v > 0 ? v : 0;
  case 3:
  case 4:
  case 10: return v < 0 ? a->slope[channel] * v : v;
  case 5: return 1 / (1 + exp(-v));
  case 6: return v / (1 + exp(-v));
  case 7: return v <= -3 ? 0 : v >= 3 ? v : v * (v + 3) / 6;
  case 8: return v < a->lo ? (v - a->lo) * a->below + a->lo : v > a->hi ? (v - a->hi) * a->above + a->hi : v;
  default: return v / (1 + fabs(v));
  }
}

/* ---- WaveNet */
typedef struct film {
  bool active, shift;
  conv c;
  int groups;
} film;
static const char *const film_names[8] = {"conv_pre_film",         "conv_post_film",      "input_mixin_pre_film",
                                          "input_mixin_post_film", "activation_pre_film", "activation_post_film",
                                          "layer1x1_post_film",    "head1x1_post_film"};

static sig apply_film(const film *f, sig x, sig c) {
  if (!f->active) return x;
  const sig p = apply(&f->c, c, f->shift ? 2 * x.n : x.n);
  sig y = new_sig(x.n);
  for (int i = 0; i < x.n * T; i++) y.v[i] = x.v[i] * p.v[i] + (f->shift ? p.v[x.n * T + i] : 0);
  return y;
}

static sig add(sig a, sig b) {
  sig y = new_sig(a.n);
  for (int i = 0; i < a.n * T; i++) y.v[i] = a.v[i] + b.v[i];
  return y;
}

enum { NONE, GATED, BLENDED };

typedef struct shape { /* of one array, and what slimming keeps */
  int in, condition, channels, bottleneck, layers, head_out, head_kernel, head_dilation, head_width;
  int groups, mix_groups, g1, gh, head1x1_out;
  bool layer1x1, head1x1, head_bias;
  int keep, keep_bottleneck, keep_in, keep_head;
} shape;

static sig gate(int mode, const act *a, const act *b, sig z) {
  const int n = mode ? z.n / 2 : z.n;
  sig p = new_sig(n);
  for (int c = 0; c < n; c++) {
    for (int t = 0; t < T; t++) {
      const double top = z.v[c * T + t], v = eval(a, c, top);
      const double g = mode ? eval(b, c, z.v[(c + n) * T + t]) : 0;
      p.v[c * T + t] = mode == GATED ? v * g : mode == BLENDED ? g * v + (1 - g) * top : v;
    }
  }
  return p;
}

typedef struct layer_spec {
  int kernel, dilation, mode;
  act a, b;
} layer_spec;

typedef struct flow { /* what layers hand on: x, the condition, and the sum for the head */
  sig x, c, head;
  bool has_head;
} flow;

static bool old_core; /* hk_nam_options.film_blended_only */

/* Draws the weights of one layer in the order of the file, then plays it. */
static void layer(file *f, const shape *s, const film films[8], const layer_spec *l, flow *w) {
  const int z = (l->mode ? 2 : 1) * s->bottleneck, keep_z = (l->mode ? 2 : 1) * s->keep_bottleneck;
  const int dims[8] = {s->channels, z, s->condition, z, z, s->bottleneck, s->channels, s->head1x1_out};
  const conv main_conv = draw_conv(f, s->channels, z, s->groups, l->kernel, l->dilation, true);
  const conv mixin = draw_conv(f, s->condition, z, s->mix_groups, 1, 1, false);
  conv one = {0}, to_head = {0};
  if (s->layer1x1) one = draw_conv(f, s->bottleneck, s->channels, s->g1, 1, 1, true);
  if (s->head1x1) to_head = draw_conv(f, s->bottleneck, s->head1x1_out, s->gh, 1, 1, true);
  film mine[8];
  for (int i = 0; i < 8; i++) {
    mine[i] = films[i];
    if (films[i].active)
      mine[i].c = draw_conv(f, s->condition, dims[i] * (films[i].shift ? 2 : 1), films[i].groups, 1, 1, true);
  }
  const sig c = w->c;
  sig u = apply(&main_conv, apply_film(&mine[0], w->x, c), keep_z);
  u = apply_film(&mine[1], u, c);
  sig m = apply(&mixin, apply_film(&mine[2], c, c), keep_z);
  m = apply_film(&mine[3], m, c);
  const sig p = apply_film(&mine[5], gate(l->mode, &l->a, &l->b, apply_film(&mine[4], add(u, m), c)), c);
  const sig h = s->head1x1 ? apply_film(&mine[7], apply(&to_head, p, s->head1x1_out), c) : p;
  w->head = w->has_head ? add(w->head, h) : h;
  w->has_head = true;
  if (old_core && l->mode != BLENDED) mine[6].active = false;
  if (s->layer1x1) w->x = add(w->x, apply_film(&mine[6], apply(&one, p, s->keep), c));
}

typedef struct choices { /* what a model of this test is about; the rest is drawn */
  bool films, gates, groups, heads, slim;
  int ratio_numerator; /* slim: the value is this over 3 */
} choices;

static void draw_shape(shape *s, const choices *k, int in, int condition, int width, int out, bool last) {
  *s = (shape){.in = in,
               .condition = condition,
               .channels = width,
               .layers = from_to(1, 3),
               .head_out = out,
               .layer1x1 = true,
               .head_kernel = 1,
               .head_dilation = 1,
               .groups = 1,
               .mix_groups = 1,
               .g1 = 1,
               .gh = 1,
               .head_bias = maybe()};
  s->bottleneck = k->slim ? width : from_to(1, 8);
  if (k->heads) {
    s->layer1x1 = below(4) > 0;
    s->head1x1 = maybe();
    if (last) s->head_kernel = from_to(1, 4), s->head_dilation = from_to(1, 3);
  }
  if (!s->layer1x1) s->bottleneck = width;
  s->head1x1_out = from_to(1, 6);
}

/* The sizes of an array and its layers' kernels, dilations, activations and gates, drawn and written as JSON. */
static void draw_layers(text *t, const shape *s, const choices *k, bool first, layer_spec *l) {
  const bool per_layer = maybe(), kernels = maybe();
  const int same_mode = k->gates ? below(3) : NONE;
  for (int i = 0; i < s->layers; i++) {
    l[i] = (layer_spec){.kernel = !i || kernels ? from_to(1, 5) : l[0].kernel,
                        .dilation = from_to(1, 40),
                        .mode = per_layer && k->gates ? below(3) : same_mode};
  }
  say(t, "%s{\"input_size\":%d,\"condition_size\":%d,\"channels\":%d,\"bottleneck\":%d,\"dilations\":[",
      first ? "" : ",", s->in, s->condition, s->channels, s->bottleneck);
  for (int i = 0; i < s->layers; i++) say(t, "%s%d", i ? "," : "", l[i].dilation);
  say(t, kernels ? "],\"kernel_sizes\":[" : "],\"kernel_size\":%d", l[0].kernel);
  for (int i = 0; kernels && i < s->layers; i++) say(t, "%s%d", i ? "," : "", l[i].kernel);
  say(t, "%s,\"activation\":%s", kernels ? "]" : "", per_layer ? "[" : "");
  for (int i = 0; i < s->layers; i++) {
    if (i && !per_layer) {
      l[i].a = l[0].a;
      continue;
    }
    if (i) say(t, ",");
    l[i].a = draw_act(t, s->bottleneck);
  }
  say(t, "%s", per_layer ? "]" : "");
  if (k->gates) {
    static const char *const modes[] = {"none", "gated", "blended"};
    say(t, ",\"gating_mode\":%s", per_layer ? "[" : "");
    for (int i = 0; i < (per_layer ? s->layers : 1); i++) say(t, "%s\"%s\"", i ? "," : "", modes[l[i].mode]);
    say(t, "%s,\"secondary_activation\":", per_layer ? "]" : "");
    const act b = draw_act(t, s->bottleneck);
    for (int i = 0; i < s->layers; i++) l[i].b = b;
  } else {
    say(t, ",\"gated\":false");
  }
}

static void draw_films(text *t, const shape *s, const choices *k, film films[8]) {
  for (int i = 0; k->films && i < 8; i++) {
    films[i] =
        (film){.active = maybe() && (i != 6 || s->layer1x1) && (i != 7 || s->head1x1), .shift = maybe(), .groups = 1};
    /* a gate doubles some of the dimensions: what divides the half divides the whole */
    const int dims[8] = {s->channels,   s->bottleneck, s->condition, s->bottleneck,
                         s->bottleneck, s->bottleneck, s->channels,  s->head1x1_out};
    if (k->groups) films[i].groups = divisor_of(s->condition, dims[i]);
    if (films[i].active || maybe()) {
      say(t, ",\"%s\":{\"active\":%s,\"shift\":%s,\"groups\":%d}", film_names[i], films[i].active ? "true" : "false",
          films[i].shift ? "true" : "false", films[i].groups);
    } else {
      say(t, ",\"%s\":false", film_names[i]);
    }
  }
}

/* One array as JSON and sound; its head sum goes in and comes out. */
static void array(file *f, shape *s, const choices *k, bool first, flow *w) {
  text *t = &f->config;
  layer_spec l[4];
  film films[8] = {0};
  if (k->groups) {
    s->groups = divisor_of(s->channels, s->bottleneck);
    s->mix_groups = divisor_of(s->condition, s->bottleneck);
    s->g1 = divisor_of(s->bottleneck, s->channels);
    s->gh = divisor_of(s->bottleneck, s->head1x1_out);
  }
  s->head_width = s->head1x1 ? s->head1x1_out : s->bottleneck;
  draw_layers(t, s, k, first, l);
  say(t,
      ",\"groups_input\":%d,\"groups_input_mixin\":%d,\"layer1x1\":{\"active\":%s,\"groups\":%d},\"head1x1\":{"
      "\"active\":%s,\"out_channels\":%d,\"groups\":%d}",
      s->groups, s->mix_groups, s->layer1x1 ? "true" : "false", s->g1, s->head1x1 ? "true" : "false", s->head1x1_out,
      s->gh);
  if (s->head_kernel > 1 || s->head_dilation > 1) {
    say(t, ",\"head\":{\"out_channels\":%d,\"kernel_size\":%d,\"bias\":%s,\"head_dilation\":%d}", s->head_out,
        s->head_kernel, s->head_bias ? "true" : "false", s->head_dilation);
  } else {
    say(t, ",\"head_size\":%d,\"head_bias\":%s", s->head_out, s->head_bias ? "true" : "false");
  }
  draw_films(t, s, k, films);
  if (k->slim && s->channels > 2) {
    say(t, ",\"slimmable\":{\"method\":\"slice_channels_uniform\",\"kwargs\":{\"allowed_channels\":[1,2,%d]}}",
        s->channels);
  }
  say(t, "}");
  const conv rechannel = draw_conv(f, s->in, s->channels, 1, 1, 1, false);
  w->x = apply(&rechannel, w->x, s->keep);
  for (int i = 0; i < s->layers; i++) layer(f, s, films, &l[i], w);
  const conv out = draw_conv(f, s->head_width, s->head_out, 1, s->head_kernel, s->head_dilation, s->head_bias);
  w->head = apply(&out, w->head, s->keep_head);
}

static void keep_all(shape *s) {
  s->keep = s->channels, s->keep_bottleneck = s->bottleneck, s->keep_in = s->in, s->keep_head = s->head_out;
}

static sig wavenet(file *f, sig x, int out, const choices *k, int depth);

static void finish(text *json, file *f, const char *architecture) {
  say(json, "{\"version\":\"0.7.0\",\"architecture\":\"%s\",\"sample_rate\":48000,\"config\":%s,\"weights\":[",
      architecture, f->config.at);
  for (int i = 0; i < f->count; i++) say(json, "%s%.9g", i ? "," : "", (double)f->weight[i]);
  say(json, "]}");
}

/* The condition model goes in as a whole file. */
static sig condition_of(file *f, sig x, int size, const choices *k, int depth) {
  file *inner = calloc(1, sizeof *inner);
  const sig c = wavenet(inner, x, size, k, depth + 1);
  text json = {0};
  finish(&json, inner, "WaveNet");
  say(&f->config, ",\"condition_dsp\":%s", json.at);
  free(json.at);
  free(inner->config.at);
  free(inner);
  return c;
}

static sig post_head(file *f, sig x, int out) {
  const int count = from_to(1, 3), channels = from_to(1, 5);
  int kernels[3];
  say(&f->config, ",\"head\":{\"channels\":%d,\"out_channels\":%d,\"kernel_sizes\":[", channels, out);
  for (int i = 0; i < count; i++) say(&f->config, "%s%d", i ? "," : "", kernels[i] = from_to(1, 4));
  say(&f->config, "],\"activation\":");
  const act a = draw_act(&f->config, 1); /* slopes for one channel serve all */
  say(&f->config, "}");
  for (int i = 0; i < count; i++) {
    act each = a;
    for (int c = 0; c < 64; c++) each.slope[c] = a.kind == 10 ? a.slope[0] : a.slope[c];
    const sig v = gate(NONE, &each, NULL, x);
    const conv c = draw_conv(f, v.n, i == count - 1 ? out : channels, 1, kernels[i], 1, true);
    x = apply(&c, v, c.out);
  }
  return x;
}

static sig wavenet(file *f, sig x, int out, const choices *k, int depth) {
  const int arrays = from_to(1, 2), condition_size = depth || maybe() || k->slim ? x.n : from_to(1, 4);
  const bool post = k->heads && !depth && maybe();
  const int stack_out = post ? from_to(1, 3) : out;
  say(&f->config, "{\"in_channels\":%d,\"head_scale\":0.5", x.n);
  sig c = x;
  if (condition_size != x.n) c = condition_of(f, x, condition_size, k, depth);
  shape s[2];
  draw_shape(&s[0], k, x.n, c.n, k->slim ? 4 : from_to(1, 8), stack_out, arrays == 1);
  keep_all(&s[0]);
  if (arrays == 2) {
    const int width = from_to(2, 6); /* head in = channels of the second array = what its layers give to the head */
    s[0].head_out = s[0].keep_head = width;
    s[0].head_kernel = s[0].head_dilation = 1;
    draw_shape(&s[1], k, s[0].channels, c.n, width, stack_out, true);
    s[1].head1x1_out = width;
    if (!s[1].head1x1) s[1].bottleneck = width;
    keep_all(&s[1]);
  }
  for (int i = 0; k->slim && i < arrays; i++) {
    const int allowed[3] = {1, 2, s[i].channels};
    if (s[i].channels > 2) s[i].keep = s[i].keep_bottleneck = allowed[k->ratio_numerator];
    if (s[i].keep_bottleneck < 1) s[i].keep_bottleneck = 1;
  }
  if (k->slim && arrays == 2) s[0].keep_head = s[1].keep;
  say(&f->config, ",\"layers\":[");
  flow w = {.x = x, .c = c};
  for (int i = 0; i < arrays; i++) array(f, &s[i], k, i == 0, &w);
  sig head = w.head;
  say(&f->config, "]");
  /* the scale is the last weight, but the head is scaled before the post-stack head: draw it later, scale now */
  const float scale = (float)(0.25 + 0.001 * below(500));
  for (int i = 0; i < head.n * T; i++) head.v[i] *= scale;
  if (post) head = post_head(f, head, out);
  say(&f->config, "}");
  f->weight[f->count++] = scale;
  return head;
}

/* ---- the other architectures */
static sig lstm(file *f, sig x, int out) {
  const int layers = from_to(1, 3), hidden = from_to(1, 9);
  say(&f->config, "{\"num_layers\":%d,\"input_size\":%d,\"hidden_size\":%d,\"in_channels\":%d,\"out_channels\":%d}",
      layers, x.n, hidden, x.n, out);
  for (int i = 0; i < layers; i++) {
    const int in = x.n;
    const float *w = draw(f, 4 * hidden * (in + hidden), 0.6), *b = draw(f, 4 * hidden, 0.3),
                *h0 = draw(f, hidden, 0.5), *c0 = draw(f, hidden, 0.5);
    sig y = new_sig(hidden);
    double h[16], c[16], z[64];
    for (int j = 0; j < hidden; j++) h[j] = h0[j], c[j] = c0[j];
    for (int t = 0; t < T; t++) {
      for (int o = 0; o < 4 * hidden; o++) {
        z[o] = b[o];
        for (int j = 0; j < in; j++) z[o] += (double)w[o * (in + hidden) + j] * x.v[j * T + t];
        for (int j = 0; j < hidden; j++) z[o] += (double)w[o * (in + hidden) + in + j] * h[j];
      }
      for (int j = 0; j < hidden; j++) {
        c[j] = c[j] / (1 + exp(-z[hidden + j])) + tanh(z[2 * hidden + j]) / (1 + exp(-z[j]));
        h[j] = tanh(c[j]) / (1 + exp(-z[3 * hidden + j]));
        y.v[j * T + t] = h[j];
      }
    }
    x = y;
  }
  const conv head = draw_conv(f, hidden, out, 1, 1, 1, true);
  return apply(&head, x, out);
}

static sig convnet(file *f, sig x, int out) {
  const int layers = from_to(1, 4), channels = from_to(1, 8), groups = x.n == 1 ? 1 : divisor_of(x.n, channels);
  const bool norm = maybe();
  int dilations[4];
  say(&f->config,
      "{\"channels\":%d,\"in_channels\":%d,\"out_channels\":%d,\"groups\":%d,\"batchnorm\":%s,\"dilations\":[",
      channels, x.n, out, groups, norm ? "true" : "false");
  for (int i = 0; i < layers; i++) say(&f->config, "%s%d", i ? "," : "", dilations[i] = from_to(1, 90));
  say(&f->config, "],\"activation\":");
  const act a = draw_act(&f->config, channels);
  say(&f->config, "}");
  for (int i = 0; i < layers; i++) {
    const conv c = draw_conv(f, x.n, channels, groups, 2, dilations[i], !norm);
    sig v = apply(&c, x, channels);
    if (norm) {
      const float *mean = draw(f, channels, 0.5), *variance = draw(f, channels, 0.5), *w = draw(f, channels, 1),
                  *b = draw(f, channels, 0.5);
      float *eps = f->weight + f->count++;
      *eps = 1.0f; /* keeps epsilon plus variance positive */
      for (int ch = 0; ch < channels; ch++) {
        for (int t = 0; t < T; t++)
          v.v[ch * T + t] = (v.v[ch * T + t] - mean[ch]) * w[ch] / sqrt((double)*eps + variance[ch]) + b[ch];
      }
    }
    x = gate(NONE, &a, NULL, v);
  }
  const conv head = draw_conv(f, channels, out, 1, 1, 1, true);
  return apply(&head, x, out);
}

static sig linear(file *f, sig x) {
  const int taps = from_to(1, 700);
  const bool bias = maybe();
  const float *w = draw(f, taps, 0.1), *b = bias ? draw(f, 1, 0.3) : NULL;
  say(&f->config, "{\"receptive_field\":%d,\"bias\":%s,\"implementation\":\"auto\"}", taps, bias ? "true" : "false");
  sig y = new_sig(1);
  for (int t = 0; t < T; t++) {
    y.v[t] = bias ? *b : 0;
    for (int i = 0; i < taps && i <= t; i++) y.v[t] += (double)w[i] * x.v[t - i];
  }
  return y;
}

/* ---- comparing */
static sig draw_input(int channels) {
  sig x = new_sig(channels);
  for (int c = 0; c < channels; c++) {
    for (int t = WARM; t < T; t++) x.v[c * T + t] = (float)((below(2001) - 1000) * 1e-3);
  }
  return x;
}

/* frames PLAY of x through the model, in blocks of random length, against y */
static void listen(const char *what, const char *json, sig x, sig y, double value, hk_isa isa) {
  static float in[8 * PLAY], out[8 * PLAY];
  const hk_nam_options o = {.size = sizeof o, .isa = isa, .film_blended_only = old_core};
  hk_nam *m = NULL;
  const hk_status e = hk_nam_load_memory(&m, json, strlen(json), &o);
  CHECK(!e, "%s: %s\n%.3000s", what, hk_nam_last_error(), json);
  if (e) return;
  hk_nam_set_size(m, 0);
  hk_nam_set_size(m, value);
  hk_nam_reset(m);
  for (int t = 0; t < PLAY; t++) {
    for (int c = 0; c < x.n; c++) in[t * x.n + c] = (float)x.v[c * T + WARM + t];
  }
  for (int t = 0; t < PLAY;) {
    const int n = from_to(1, PLAY - t);
    CHECK(!hk_nam_process(m, in + t * x.n, n, out + t * y.n), "%s", hk_nam_last_error());
    t += n;
  }
  double peak = 0.1, worst = 0;
  for (int c = 0; c < y.n; c++) {
    for (int t = WARM; t < T; t++) peak = fmax(peak, fabs(y.v[c * T + t]));
    for (int t = 0; t < PLAY; t++) {
      const double error = fabs(out[t * y.n + c] - y.v[c * T + WARM + t]);
      if (!(error <= worst)) worst = error;
    }
  }
  CHECK(worst <= 1e-5 * peak, "%s on %s: off by %.2e of a peak of %.3g\n%.3000s", what, hk_isa_name(isa), worst, peak,
        json);
  hk_nam_free(m);
}

typedef sig (*maker)(file *f, sig x, int out, int variant);
static const choices kinds[] = {{0},
                                {.gates = true},
                                {.groups = true},
                                {.heads = true},
                                {.films = true},
                                {.films = true, .gates = true, .groups = true, .heads = true}};
static sig make_wavenet(file *f, sig x, int out, int variant) {
  old_core = kinds[variant % 6].films && maybe();
  return wavenet(f, x, out, &kinds[variant % 6], 0);
}
static sig make_slim(file *f, sig x, int out, int variant) {
  const choices k = {.slim = true, .gates = variant / 3 % 2, .ratio_numerator = variant % 3};
  return wavenet(f, x, out, &k, 0);
}
static sig make_lstm(file *f, sig x, int out, int variant) {
  (void)variant;
  return lstm(f, x, out);
}
static sig make_convnet(file *f, sig x, int out, int variant) {
  (void)variant;
  return convnet(f, x, out);
}
static sig make_linear(file *f, sig x, int out, int variant) {
  (void)variant;
  (void)out;
  return linear(f, x);
}

static void trial(const char *name, const char *architecture, maker make, int count, int channels) {
  const hk_isa isas[] = {HK_ISA_SCALAR, HK_ISA_NEON, HK_ISA_AVX2, HK_ISA_AVX512};
  for (int i = 0; i < count; i++) {
    file *f = calloc(1, sizeof *f);
    const sig x = draw_input(from_to(1, channels));
    const sig y = make(f, x, from_to(1, channels), i);
    text json = {0};
    finish(&json, f, architecture);
    const double value = make == make_slim ? (i % 3 + 0.5) / 3 : 1.0;
    for (int j = 0; j < 4; j++) {
      if (hk_cpu_has(isas[j])) listen(name, json.at, x, y, value, isas[j]);
    }
    free(json.at);
    free(f->config.at);
    free(f);
    free_sigs();
  }
}

/* Each size of a container is another model; the value picks the first whose limit lies above it. */
static void test_container(void) {
  const sig x = draw_input(1);
  sig y[3];
  text all = {0};
  say(&all,
      "{\"version\":\"0.7.0\",\"architecture\":\"SlimmableContainer\",\"weights\":[],\"config\":{\"submodels\":[");
  for (int i = 0; i < 3; i++) {
    file *f = calloc(1, sizeof *f);
    y[i] = i == 1 ? lstm(f, x, 1) : wavenet(f, x, 1, &kinds[i], 0);
    text json = {0};
    finish(&json, f, i == 1 ? "LSTM" : "WaveNet");
    say(&all, "%s{\"max_value\":%g,\"model\":%s}", i ? "," : "", i == 2 ? 1.0 : 0.25 * (i + 1), json.at);
    free(json.at);
    free(f->config.at);
    free(f);
  }
  say(&all, "]}}");
  const double values[] = {0, 0.2, 0.25, 0.4, 0.5, 1.0};
  const int picks[] = {0, 0, 1, 1, 2, 2};
  for (int i = 0; i < 6; i++) {
    if (picks[i] != 1) listen("container", all.at, x, y[picks[i]], values[i], HK_ISA_BEST);
  }
  hk_nam *m = NULL;
  CHECK(!hk_nam_load_memory(&m, all.at, all.length, NULL), "%s", hk_nam_last_error());
  hk_nam_facts facts = {.size = sizeof facts};
  const double outside[] = {-0.001, 1.001, 3, -INFINITY, INFINITY, NAN};
  for (int i = 0; i < 6; i++) {
    CHECK(!hk_nam_set_size(m, 0.3) && hk_nam_set_size(m, outside[i]) == HK_INVALID, "size %g is taken", outside[i]);
    CHECK(strstr(hk_nam_last_error(), "from 0 (smallest) to 1"), "\"%s\"", hk_nam_last_error());
    CHECK(!hk_nam_info(m, &facts) && facts.at_size == 1, "a refused size changed it to %d", facts.at_size);
  }
  for (int i = 0; i < 6; i++) {
    hk_nam_set_size(m, values[i]);
    hk_nam_info(m, &facts);
    CHECK(facts.at_size == picks[i] && facts.sizes == 3, "value %g gives size %d of %d", values[i], facts.at_size,
          facts.sizes);
  }
  size_t bytes = 0;
  CHECK(!hk_nam_measure(all.at, all.length, NULL, &bytes) && bytes == facts.bytes, "%zu, %zu", bytes, facts.bytes);
  hk_nam_free(m);
  free(all.at);
  free_sigs();
}

int main(void) {
  trial("WaveNet", "WaveNet", make_wavenet, 120, 2);
  trial("slimmable WaveNet", "WaveNet", make_slim, 24, 1);
  trial("ConvNet", "ConvNet", make_convnet, 30, 2);
  trial("Linear", "Linear", make_linear, 10, 1);
  trial("LSTM", "LSTM", make_lstm, 20, 2);
  test_container();
  return hk_test_end();
}
