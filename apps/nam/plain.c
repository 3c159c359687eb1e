/* The architectures besides WaveNet, as steps: LSTM, ConvNet (kernel 2, batch normalisation folded into the weights)
 * and Linear (one long filter; its taps are stored newest first). */
#include <math.h>
#include <string.h>

#include "nam.h"

static int32_t add_head(nam_net *net, nam_weights *w, int32_t x, int64_t out) {
  hk_step s = {.kind = HK_STEP_CONV, .x = x};
  if (!nam_read_conv(net, w, &(nam_conv){net->signal[x].channels, out, 1, 1, 1, 0, 0, true}, &s)) return 0;
  return nam_step(net, &s, out);
}

int32_t nam_lstm(nam_net *net, const nam_value *config, nam_weights *w, int32_t input) {
  int64_t layers, in, hidden, out;
  if (!nam_int(config, "num_layers", 1, MAX_LAYERS, &layers) || !nam_int(config, "input_size", 1, MAX_CHANNELS, &in) ||
      !nam_int(config, "hidden_size", 1, MAX_CHANNELS, &hidden) ||
      !nam_int_or(config, "out_channels", 1, 1, MAX_CHANNELS, &out)) {
    return 0;
  }
  if (in != net->signal[input].channels) {
    nam_fail("input_size is %lld, the input has %lld channels", (long long)in, (long long)net->signal[input].channels);
    return 0;
  }
  int32_t x = input;
  for (int64_t i = 0; i < layers; i++, in = hidden) {
    hk_step s = {.kind = HK_STEP_LSTM, .x = x, .k = hidden, .act = {.rational = net->rational}};
    if (!nam_take(w, 4.0 * (double)hidden * (double)(in + hidden), &s.f) ||
        !nam_take(w, 4.0 * (double)hidden, &s.bias) || !nam_take(w, (double)hidden, &s.h0) ||
        !nam_take(w, (double)hidden, &s.c0) || !(x = nam_step(net, &s, hidden))) {
      return 0;
    }
  }
  nam_describe(net, "LSTM: %lld layers of %lld\n", (long long)layers, (long long)hidden);
  return add_head(net, w, x, out);
}

/* mean, variance, weight, bias, epsilon: v*s + (bias - mean*s) with s = weight / sqrt(epsilon + variance) */
static bool fold_norm(nam_net *net, nam_weights *w, hk_step *s, int64_t per_channel) {
  const float *mean, *variance, *weight, *bias, *epsilon;
  const double k = (double)s->k;
  if (!nam_take(w, k, &mean) || !nam_take(w, k, &variance) || !nam_take(w, k, &weight) || !nam_take(w, k, &bias) ||
      !nam_take(w, 1, &epsilon))
    return false;
  float *f = nam_floats(net, (size_t)(s->k * (per_channel + 1)));
  if (!f) return false;
  for (int64_t o = 0; o < s->k; o++) {
    const double under = (double)*epsilon + variance[o];
    if (!(under > 0)) return nam_fail("batch normalisation: epsilon plus variance is %g", under);
    const double scale = weight[o] / sqrt(under);
    for (int64_t i = 0; i < per_channel; i++) f[o * per_channel + i] = (float)(scale * s->f[o * per_channel + i]);
    f[s->k * per_channel + o] = (float)(bias[o] - scale * mean[o]);
  }
  s->f = f;
  s->bias = f + s->k * per_channel;
  return true;
}

int32_t nam_convnet(nam_net *net, const nam_value *config, nam_weights *w, int32_t input) {
  int64_t channels, groups, out, history = 0;
  bool norm;
  const nam_value *dilations = nam_get(config, "dilations"), *act = nam_object(config, "activation");
  if (!nam_is(dilations, NAM_ARRAY) || nam_count(dilations) < 1 || nam_count(dilations) > MAX_LAYERS || !act) {
    nam_fail("a ConvNet needs 1 to %d dilations and an activation", MAX_LAYERS);
    return 0;
  }
  if (!nam_int(config, "channels", 1, MAX_CHANNELS, &channels) ||
      !nam_int_or(config, "groups", 1, 1, MAX_CHANNELS, &groups) ||
      !nam_int_or(config, "out_channels", 1, 1, MAX_CHANNELS, &out) || !nam_bool_or(config, "batchnorm", false, &norm))
    return 0;
  int32_t x = input;
  for (size_t i = 0; i < nam_count(dilations); i++) {
    int64_t dilation;
    hk_step s = {.kind = HK_STEP_CONV, .x = x};
    if (!nam_as_int(nam_at(dilations, i), "dilations", 1, MAX_DILATION, &dilation)) return 0;
    if (!nam_activation(act, channels, channels, net->rational, net, &s.act)) return 0;
    if (!nam_read_conv(net, w, &(nam_conv){net->signal[x].channels, channels, 2, dilation, groups, 0, 0, !norm}, &s))
      return 0;
    if (norm && !fold_norm(net, w, &s, net->signal[x].channels / groups * 2)) return 0;
    if (!(x = nam_step(net, &s, channels))) return 0;
    history += dilation;
  }
  nam_describe(net, "ConvNet: %zu layers of %lld channels, %lld frames back\n", nam_count(dilations),
               (long long)channels, (long long)history);
  return add_head(net, w, x, out);
}

int32_t nam_linear(nam_net *net, const nam_value *config, nam_weights *w, int32_t input) {
  int64_t taps, out;
  bool bias;
  const int64_t channels = net->signal[input].channels;
  const float *newest, *level = NULL;
  if (!nam_int(config, "receptive_field", 1, MAX_KERNEL, &taps) || !nam_bool_or(config, "bias", false, &bias) ||
      !nam_int_or(config, "out_channels", channels, 1, MAX_CHANNELS, &out) || !nam_take(w, (double)taps, &newest) ||
      (bias && !nam_take(w, 1, &level)))
    return 0;
  if (out != channels) {
    nam_fail("a Linear model has as many outputs as inputs, not %lld for %lld", (long long)out, (long long)channels);
    return 0;
  }
  float *f = nam_floats(net, (size_t)(channels * (taps + 1)));
  if (!f) return 0;
  for (int64_t c = 0; c < channels; c++) {
    for (int64_t t = 0; t < taps; t++) f[c * taps + t] = newest[taps - 1 - t];
    f[channels * taps + c] = bias ? *level : 0.0f;
  }
  const hk_step s = {.kind = HK_STEP_CONV,
                     .x = input,
                     .k = channels,
                     .window = taps,
                     .groups = channels,
                     .f = f,
                     .bias = f + channels * taps};
  nam_describe(net, "Linear: %lld taps\n", (long long)taps);
  return nam_step(net, &s, channels);
}
