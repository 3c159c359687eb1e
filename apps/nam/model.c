/* One model of a file: its version, architecture, sample rate and sizes, and the way to its steps. Models nest (a
 * condition, a container); MAX_DEPTH ends that. */
#include <stdio.h>
#include <string.h>

#include "nam.h"

bool nam_version(const nam_value *root, const char **text) {
  int major, minor, patch;
  char rest;
  *text = nam_text(nam_get(root, "version"));
  if (!*text) return nam_fail("version must be a text");
  if (strspn(*text, "0123456789.") != strlen(*text) || strlen(*text) > 20 ||
      sscanf(*text, "%4d.%4d.%4d%c", &major, &minor, &patch, &rest) != 3) {
    return nam_fail("version \"%.40s\" is not of the form 0.7.0", *text);
  }
  if (major != 0 || minor < 5 || minor > 7) return nam_fail("version %s is not one of 0.5.0 to 0.7.x", *text);
  return true;
}

bool nam_rate(const nam_value *model, double *rate) {
  if (!nam_real_or(model, "sample_rate", 0, rate)) return false;
  if (*rate == -1) *rate = 0; /* exporters write -1 for unknown */
  if (*rate != 0 && !(*rate >= HK_NAM_MIN_RATE && *rate <= HK_NAM_MAX_RATE)) {
    return nam_fail("sample_rate is %g; %d to %d Hz is supported (or null, 0 or -1 for unknown)", *rate,
                    HK_NAM_MIN_RATE, HK_NAM_MAX_RATE);
  }
  return true;
}

static bool is(const nam_value *model, const char *architecture) {
  const char *text = nam_text(nam_get(model, "architecture"));
  return text && !strcmp(text, architecture);
}

static bool check_root(const nam_value *model) {
  const char *version;
  if (!nam_is(model, NAM_OBJECT)) return nam_fail("a model must be a JSON object");
  if (!nam_version(model, &version)) return false;
  if (!nam_text(nam_get(model, "architecture"))) return nam_fail("architecture must be a text");
  if (!nam_is(nam_get(model, "config"), NAM_OBJECT)) return nam_fail("config must be an object");
  return nam_get(model, "weights") ? true : nam_fail("weights is missing");
}

/* A SlimmableWavenet may hold its WaveNet one level down. */
static const nam_value *wavenet_config(const nam_value *model) {
  const nam_value *config = nam_get(model, "config"), *inner = nam_object(config, "model");
  return is(model, "SlimmableWavenet") && nam_is(inner, NAM_OBJECT) ? inner : config;
}

static bool is_wavenet(const nam_value *model) { return is(model, "WaveNet") || is(model, "SlimmableWavenet"); }

static bool container_sizes(const nam_value *root, nam_size *sizes, int32_t *count) {
  const nam_value *list = nam_get(nam_get(root, "config"), "submodels");
  if (!nam_is(list, NAM_ARRAY) || nam_count(list) < 1 || nam_count(list) > MAX_SIZES) {
    return nam_fail("submodels must be an array of 1 to %d models", MAX_SIZES);
  }
  double before = -1e300, rate, own;
  if (!nam_rate(root, &rate)) return false;
  *count = (int32_t)nam_count(list);
  for (int32_t i = 0; i < *count; i++) {
    const nam_value *entry = nam_at(list, (size_t)i), *model = nam_get(entry, "model");
    if (!nam_object(entry, "max_value")) return nam_fail("submodels[%d] has no max_value", i);
    if (!nam_real_or(entry, "max_value", 0, &sizes[i].below)) return false;
    if (!check_root(model) || !nam_rate(model, &own)) return false;
    if (rate > 0 && own > 0 && rate != own)
      return nam_fail("submodels[%d] has a sample rate of %g, not %g", i, own, rate);
    if (sizes[i].below <= before) return nam_fail("submodels: max_value must ascend");
    before = sizes[i].below;
    sizes[i].model = model;
    sizes[i].ratio = 1.0;
  }
  return before >= 1.0 ? true : nam_fail("the last max_value is %g, below 1", before);
}

bool nam_sizes(const nam_value *root, nam_size *sizes, int32_t *count) {
  if (!check_root(root)) return false;
  if (is(root, "SlimmableContainer")) return container_sizes(root, sizes, count);
  if (is_wavenet(root)) return nam_wavenet_sizes(wavenet_config(root), root, sizes, count);
  sizes[0] = (nam_size){root, 2.0, 1.0};
  *count = 1;
  return true;
}

int64_t nam_inputs(const nam_value *model) {
  int64_t channels;
  const nam_value *config = is_wavenet(model) ? wavenet_config(model) : nam_get(model, "config");
  return nam_int_or(config, "in_channels", 1, 1, MAX_CHANNELS, &channels) ? channels : 0;
}

int32_t nam_build(nam_net *net, const nam_value *model, int32_t input, double ratio, int depth) {
  if (depth > MAX_DEPTH) return nam_fail("models are nested more than %d deep", MAX_DEPTH);
  if (!check_root(model)) return 0;
  const nam_value *config = nam_get(model, "config");
  if (is(model, "SlimmableContainer")) { /* inside another model: at its largest */
    nam_size sizes[MAX_SIZES];
    int32_t count;
    return container_sizes(model, sizes, &count) ? nam_build(net, sizes[count - 1].model, input, 1.0, depth + 1) : 0;
  }
  nam_weights w;
  double rate;
  int32_t out;
  if (nam_inputs(model) != net->signal[input].channels) {
    return nam_fail("a model with %lld inputs gets %lld", (long long)nam_inputs(model),
                    (long long)net->signal[input].channels);
  }
  if (!nam_rate(model, &rate) || !nam_read_weights(net, nam_get(model, "weights"), &w)) return 0;
  if (is_wavenet(model)) out = nam_wavenet(net, wavenet_config(model), &w, input, ratio, depth, rate);
  else if (is(model, "LSTM")) out = nam_lstm(net, config, &w, input);
  else if (is(model, "ConvNet")) out = nam_convnet(net, config, &w, input);
  else if (is(model, "Linear")) out = nam_linear(net, config, &w, input);
  else return nam_fail("architecture \"%.40s\" is not known", nam_text(nam_get(model, "architecture")));
  return out && nam_end(&w) ? out : 0;
}
