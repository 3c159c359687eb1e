/* Reads layer arrays of a WaveNet: sizes, groups, FiLM, gating, head, slimming. Defaults and rules are the format's; a
 * field of the wrong type, a count that does not match or channels that do not meet are refused by name. */
#include <math.h>
#include <string.h>

#include "layers.h"

static bool read_film(const nam_value *config, const char *key, film *f) {
  *f = (film){false, false, 1};
  const nam_value *v = nam_object(config, key);
  if (!v || nam_is(v, NAM_FALSE)) return true;
  if (!nam_is(v, NAM_OBJECT)) return nam_fail("%s must be an object or false", key);
  return nam_bool_or(v, "active", true, &f->active) && nam_bool_or(v, "shift", true, &f->shift) &&
         nam_int_or(v, "groups", 1, 1, 2 * MAX_CHANNELS, &f->groups);
}

static bool read_films(layer_array *a) {
  static const char *const keys[FILMS] = {"conv_pre_film",         "conv_post_film",      "input_mixin_pre_film",
                                          "input_mixin_post_film", "activation_pre_film", "activation_post_film",
                                          "layer1x1_post_film",    "head1x1_post_film"};
  for (int i = 0; i < FILMS; i++) {
    if (!read_film(a->config, keys[i], &a->films[i])) return false;
  }
  if (a->films[LAYER1X1_POST].active && !a->layer1x1) return nam_fail("layer1x1_post_film needs layer1x1");
  if (a->films[HEAD1X1_POST].active && !a->head1x1) return nam_fail("head1x1_post_film needs head1x1");
  return true;
}

static bool read_head(layer_array *a) {
  const nam_value *head = nam_object(a->config, "head");
  a->head_kernel = a->head_dilation = 1;
  if (!head) {
    return nam_int(a->config, "head_size", 1, MAX_CHANNELS, &a->head_out) &&
           nam_bool_or(a->config, "head_bias", false, &a->head_bias);
  }
  if (!nam_is(head, NAM_OBJECT)) return nam_fail("head of a layer array must be an object");
  return nam_int(head, "out_channels", 1, MAX_CHANNELS, &a->head_out) &&
         nam_int(head, "kernel_size", 1, MAX_KERNEL, &a->head_kernel) &&
         nam_bool_or(head, "bias", false, &a->head_bias) &&
         nam_int_or(head, "head_dilation", 1, 1, MAX_DILATION, &a->head_dilation);
}

static bool read_1x1(layer_array *a) {
  const nam_value *l = nam_object(a->config, "layer1x1"), *h = nam_object(a->config, "head1x1");
  a->layer1x1 = true;
  a->layer1x1_groups = a->head1x1_groups = 1;
  a->head1x1_out = a->channels;
  if ((l && !nam_is(l, NAM_OBJECT)) || (h && !nam_is(h, NAM_OBJECT)))
    return nam_fail("layer1x1 and head1x1 must be objects");
  if (l && (!nam_bool_or(l, "active", true, &a->layer1x1) ||
            !nam_int_or(l, "groups", 1, 1, MAX_CHANNELS, &a->layer1x1_groups)))
    return false;
  if (h && (!nam_bool_or(h, "active", false, &a->head1x1) ||
            !nam_int_or(h, "groups", 1, 1, MAX_CHANNELS, &a->head1x1_groups) ||
            !nam_int_or(h, "out_channels", a->channels, 1, MAX_CHANNELS, &a->head1x1_out))) {
    return false;
  }
  if (!a->layer1x1 && a->bottleneck != a->channels) {
    return nam_fail("without layer1x1 the bottleneck (%lld) must equal channels (%lld)", (long long)a->bottleneck,
                    (long long)a->channels);
  }
  return true;
}

static bool read_slimmable(layer_array *a) {
  const nam_value *s = nam_object(a->config, "slimmable");
  if (!s || nam_is(s, NAM_FALSE)) return true;
  const char *method = nam_text(nam_get(s, "method"));
  if (!method || strcmp(method, "slice_channels_uniform"))
    return nam_fail("slimmable: only method \"slice_channels_uniform\" is known");
  const nam_value *list = nam_object(nam_object(s, "kwargs"), "allowed_channels");
  if (!list) return true;
  if (!nam_is(list, NAM_ARRAY) || nam_count(list) < 1 || nam_count(list) > MAX_SIZES) {
    return nam_fail("allowed_channels must be an array of 1 to %d numbers", MAX_SIZES);
  }
  for (size_t i = 0; i < nam_count(list); i++) {
    if (!nam_as_int(nam_at(list, i), "allowed_channels", 1, a->channels, &a->allowed[i])) return false;
    if (i && a->allowed[i] <= a->allowed[i - 1]) return nam_fail("allowed_channels must ascend");
  }
  a->allowed_count = (int32_t)nam_count(list);
  if (a->allowed[a->allowed_count - 1] != a->channels)
    return nam_fail("the last of allowed_channels must be channels (%lld)", (long long)a->channels);
  if (a->head_kernel != 1) return nam_fail("a slimmable layer array needs a head kernel of 1");
  return true;
}

static bool read_array(layer_array *a) {
  const nam_value *c = a->config;
  if (!nam_is(c, NAM_OBJECT)) return nam_fail("layers must hold objects");
  const nam_value *dilations = nam_get(c, "dilations");
  if (!nam_is(dilations, NAM_ARRAY) || nam_count(dilations) < 1 || nam_count(dilations) > MAX_LAYERS) {
    return nam_fail("dilations must be an array of 1 to %d numbers", MAX_LAYERS);
  }
  a->layers = (int64_t)nam_count(dilations);
  return nam_int(c, "input_size", 1, MAX_CHANNELS, &a->input) &&
         nam_int(c, "condition_size", 1, MAX_CHANNELS, &a->condition) &&
         nam_int(c, "channels", 1, MAX_CHANNELS, &a->channels) &&
         nam_int_or(c, "bottleneck", a->channels, 1, MAX_CHANNELS, &a->bottleneck) &&
         nam_int_or(c, "groups_input", 1, 1, MAX_CHANNELS, &a->groups_input) &&
         nam_int_or(c, "groups_input_mixin", 1, 1, MAX_CHANNELS, &a->groups_mixin) && read_1x1(a) && read_head(a) &&
         read_films(a) && read_slimmable(a);
}

bool layers_read(const nam_value *config, layer_array *arrays, int32_t *count, int32_t room) {
  const nam_value *list = nam_get(config, "layers");
  if (!nam_is(list, NAM_ARRAY) || nam_count(list) < 1 || nam_count(list) > (size_t)room) {
    return nam_fail("layers must be an array of 1 to %d layer arrays", room);
  }
  *count = (int32_t)nam_count(list);
  for (int32_t i = 0; i < *count; i++) {
    arrays[i] = (layer_array){.config = nam_at(list, (size_t)i)};
    if (!read_array(&arrays[i])) return false;
    if (!i) continue;
    const layer_array *before = &arrays[i - 1];
    const int64_t width = arrays[i].head1x1 ? arrays[i].head1x1_out : arrays[i].bottleneck;
    if (arrays[i].input != before->channels)
      return nam_fail("layer array %d takes %lld inputs, the one before it has %lld channels", i,
                      (long long)arrays[i].input, (long long)before->channels);
    if (width != before->head_out)
      return nam_fail("layer array %d has %lld head channels, the one before it gives %lld", i, (long long)width,
                      (long long)before->head_out);
    if (arrays[i].channels != before->head_out)
      return nam_fail("layer array %d has %lld channels, the head before it gives %lld", i,
                      (long long)arrays[i].channels, (long long)before->head_out);
  }
  return true;
}

/* Keeps the first channels of everything, as many as the ratio allows; heads between arrays follow the next array. */
void layers_keep(layer_array *arrays, int32_t count, double ratio) {
  for (int32_t i = 0; i < count; i++) {
    layer_array *a = &arrays[i];
    a->keep_channels = a->channels;
    if (a->allowed_count) {
      const double index = floor((ratio < 0 ? 0 : ratio) * a->allowed_count);
      a->keep_channels = a->allowed[index < a->allowed_count ? (int32_t)index : a->allowed_count - 1];
    }
    const int64_t cut = a->bottleneck * a->keep_channels / a->channels;
    a->keep_bottleneck = !a->layer1x1 ? a->keep_channels : cut < 1 ? 1 : cut;
    a->keep_input = i ? arrays[i - 1].keep_channels : a->input;
    a->keep_head_out = a->head_out;
  }
  for (int32_t i = 0; i + 1 < count; i++) {
    if (arrays[i + 1].keep_channels != arrays[i + 1].channels) arrays[i].keep_head_out = arrays[i + 1].keep_channels;
  }
}

/* Returns the index-th entry of a list, or the one value. */
static const nam_value *one_of(const nam_value *v, int64_t index) {
  return nam_is(v, NAM_ARRAY) ? nam_at(v, (size_t)index) : v;
}

static bool check_list(const nam_value *v, const char *key, int64_t layers) {
  if (nam_is(v, NAM_ARRAY) && nam_count(v) != (size_t)layers) {
    return nam_fail("%s has %zu entries for %lld layers", key, nam_count(v), (long long)layers);
  }
  return true;
}

static bool read_gate(const layer_array *a, int64_t index, nam_net *net, layer *l) {
  const nam_value *mode = nam_object(a->config, "gating_mode"), *second = nam_object(a->config, "secondary_activation");
  l->gate = HK_GATE_NONE;
  if (mode) {
    if (!check_list(mode, "gating_mode", a->layers)) return false;
    const char *text = nam_text(one_of(mode, index));
    if (!text) return nam_fail("gating_mode must be a text or a list of texts");
    if (!strcmp(text, "gated")) l->gate = HK_GATE_GATED;
    else if (!strcmp(text, "blended")) l->gate = HK_GATE_BLENDED;
    else if (strcmp(text, "none")) return nam_fail("gating_mode \"%.40s\" is not known", text);
  } else {
    bool gated;
    if (!nam_bool_or(a->config, "gated", false, &gated)) return false;
    if (gated) l->gate = HK_GATE_GATED;
    second = NULL;
  }
  if (l->gate == HK_GATE_NONE) return true;
  l->act2 = (hk_step_act){.act = HK_ACT_SIGMOID};
  if (!second) return true;
  return check_list(second, "secondary_activation", a->layers) &&
         nam_activation(one_of(second, index), a->keep_bottleneck, a->bottleneck, net->rational, net, &l->act2);
}

bool layer_read(const layer_array *a, int64_t index, nam_net *net, layer *l) {
  const nam_value *c = a->config, *one = nam_object(c, "kernel_size"), *each = nam_object(c, "kernel_sizes"),
                  *act = nam_object(c, "activation");
  *l = (layer){.act_name = ""};
  if (!one == !each) return nam_fail("a layer array needs kernel_size or kernel_sizes, not both");
  if (each && !nam_is(each, NAM_ARRAY)) return nam_fail("kernel_sizes must be an array");
  if (!act) return nam_fail("activation is missing");
  if (!check_list(each, "kernel_sizes", a->layers) || !check_list(act, "activation", a->layers)) return false;
  if (!nam_as_int(each ? one_of(each, index) : one, "kernel_size", 1, MAX_KERNEL, &l->kernel)) return false;
  if (!nam_as_int(nam_at(nam_get(c, "dilations"), (size_t)index), "dilations", 1, MAX_DILATION, &l->dilation))
    return false;
  const nam_value *mine = one_of(act, index);
  if (!nam_activation(mine, a->keep_bottleneck, a->bottleneck, net->rational, net, &l->act)) return false;
  l->act_name = nam_text(nam_is(mine, NAM_OBJECT) ? nam_get(mine, "type") : mine);
  return read_gate(a, index, net, l);
}
