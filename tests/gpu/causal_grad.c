/* The gradient of hk_causal on the device against its formula in double, for the problems of causal_case. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "causal_case.h"
#include "core/core.h"
#include "support/check.h"

static double dz_at(const causal_case *k, int64_t s, int64_t c, int64_t t) {
  const hk_causal_desc *d = &k->d;
  const double dy = causal_get(&k->dy, causal_case_at(k, d->y, s, c, t));
  double z = d->has_bias ? causal_get(&k->bias, c) : 0;
  if (d->act == HK_ACT_NONE) return dy;
  for (int64_t j = 0; j < d->window; ++j)
    z += causal_get(&k->f, c * d->f_channel + j * d->f_tap) * causal_case_u(k, s, c, t - (d->window - 1 - j));
  if (d->act == HK_ACT_RELU) return z > 0 ? dy : 0;
  const double g = 1 / (1 + exp(-z));
  return dy * g * (1 + z * (1 - g));
}

static double state_up(const causal_case *k, int64_t s, int64_t c, int64_t entry) {
  const hk_causal_strides at = k->d.state;
  return k->has_dstate && entry >= 0 ? causal_get(&k->dstate_out, s * at.outer + c * at.channel + entry * at.time) : 0;
}

/* Of token t, negative for entries of the initial state; dz: of the sequence's tokens. */
static double to_input(const causal_case *k, int64_t s, int64_t c, int64_t t, const double *dz) {
  const hk_causal_desc *d = &k->d;
  const int64_t length = causal_case_length(k, s);
  double v = d->state_length ? state_up(k, s, c, d->state_length - length + t) : 0;
  for (int64_t j = 0; j < d->window; ++j) {
    const int64_t to = t + d->window - 1 - j;
    if (to >= 0 && to < length) v += causal_get(&k->f, c * d->f_channel + j * d->f_tap) * dz[to];
  }
  return v;
}

static void one_channel(causal_case *k, int64_t s, int64_t c, double *df, double *dbias) {
  const hk_causal_desc *d = &k->d;
  const int64_t length = causal_case_length(k, s);
  double dz[CAUSAL_TOKENS];
  for (int64_t t = 0; t < length; ++t) {
    *dbias += dz[t] = dz_at(k, s, c, t);
    for (int64_t j = 0; j < d->window; ++j) df[j] += dz[t] * causal_case_u(k, s, c, t - (d->window - 1 - j));
  }
  for (int64_t t = 0; t < length; ++t)
    causal_put(&k->dx, k->dx.want, causal_case_at(k, k->dx_at, s, c, t), to_input(k, s, c, t, dz));
  const bool old = k->has_state_in && (!k->has_state || k->has_state[s]);
  for (int64_t i = 0; i < d->state_length; ++i)
    causal_put(&k->dstate_in, k->dstate_in.want, s * d->state.outer + c * d->state.channel + i * d->state.time,
               old ? to_input(k, s, c, i - d->state_length, dz) : 0);
}

static void reference(causal_case *k) {
  const hk_causal_desc *d = &k->d;
  causal_tensor *const out[] = {&k->dx, &k->df, &k->dbias, &k->dstate_in};
  for (int i = 0; i < 4; ++i)
    if (out[i]->host) memcpy(out[i]->want, out[i]->host, (size_t)out[i]->count * hk_type_bytes(out[i]->type));
  for (int64_t c = 0; c < d->c; ++c) {
    double df[256] = {0}, dbias = 0;
    for (int64_t s = 0; s < d->n; ++s) one_channel(k, s, c, df, &dbias);
    for (int64_t j = 0; j < d->window; ++j) causal_put(&k->df, k->df.want, c * d->window + j, df[j]);
    causal_put(&k->dbias, k->dbias.want, c, dbias);
  }
}

/* Error allowed where SiLU's slope is rounded: sums of df are long. */
static double precision(const causal_case *k, hk_type type) {
  if (k->d.act != HK_ACT_SILU) return 0;
  return type == HK_F32 ? 1e-4 : type == HK_F16 ? 0x1p-9 : 0x1p-6;
}

static hk_status run(causal_case *k, const hk_causal *causal, char *work, size_t bytes) {
  hk_causal_args args;
  causal_case_up(k, &args);
  args.y = args.state_out = NULL;
  args.workspace = work, args.workspace_bytes = bytes;
  hk_causal_grads g = {.size = sizeof g, .dx_at = k->dx_at};
  g.dy = causal_case_copy(&k->dy), g.dx = causal_case_copy(&k->dx);
  g.df = causal_case_copy(&k->df), g.dbias = causal_case_copy(&k->dbias);
  if (k->d.state_length && !k->plain) g.dstate_in = causal_case_copy(&k->dstate_in);
  if (k->has_dstate) g.dstate_out = causal_case_copy(&k->dstate_out);
  const hk_status s = hk_causal_gradient(causal, &args, &g);
  return s ? s : hk_gpu_sync(NULL);
}

void causal_grad_check(causal_case *k, uint64_t seed) {
  static char *work;
  static size_t room;
  hk_causal *causal = NULL;
  const hk_options o = {.size = sizeof o, .device = HK_CUDA};
  causal_case_make(k, seed, true);
  causal_case_make_grads(k);
  hk_status s = hk_causal_create(&causal, &k->d, &o);
  if (k->d.dilation > 1 && k->d.window > 1) {
    CHECK(s == HK_UNSUPPORTED, "%s: dilation is not refused", k->text);
    hk_causal_destroy(causal);
    return;
  }
  CHECK(s == HK_OK, "%s: %s", k->text, hk_last_error());
  if (s) return;
  const size_t bytes = hk_causal_workspace(causal);
  if (bytes > room) {
    hk_gpu_free(work), work = NULL;
    if (hk_gpu_alloc((void **)&work, room = 2 * bytes)) exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  }
  reference(k);
  s = run(k, causal, work, bytes);
  CHECK(s == HK_OK, "%s: %s", k->text, hk_last_error());
  if (s == HK_DEVICE) exit((fprintf(stderr, "the device is lost\n"), 1));
  if (!s) {
    causal_case_compare(k, &k->dx, "dx", precision(k, k->d.x_type));
    causal_case_compare(k, &k->df, "df", 10 * precision(k, HK_F32));
    causal_case_compare(k, &k->dbias, "dbias", 10 * precision(k, HK_F32));
    if (k->d.state_length && !k->plain)
      causal_case_compare(k, &k->dstate_in, "dstate_in", precision(k, k->d.state_type));
  }
  hk_causal_destroy(causal);
}
