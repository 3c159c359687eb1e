/* The epilogue in double, with a bound on how far another evaluation may land, propagated step by step: each
 * activation by its Lipschitz constant, each operation by one rounding. Also the user functions that the checker gives
 * to plans: linear in the value, and coded by position so that wrong coordinates show. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "check/check.h"

double check_eps(const hk_problem *p) {
  if (cli_problem_is_int8(p)) return 0;
  return cli_problem_is_double(p) ? DBL_EPSILON : FLT_EPSILON;
}

double check_rounding(hk_type type, double v) {
  v = fabs(v);
  switch (type) {
  case HK_F32: return FLT_EPSILON * v + 0x1p-149;
  case HK_F64: return DBL_EPSILON * v + 0x1p-1074;
  case HK_F16: return 0x1p-10 * v + 0x1p-24;
  case HK_BF16: return 0x1p-7 * v + 0x1p-133;
  case HK_F8E4M3: return 0x1p-3 * v + 0x1p-9;
  default: return 1;
  }
}

/* ---- activations: the specification's words as formulas */
static double act_value(hk_act act, double a, double b, double slope, double v) {
  switch (act) {
  case HK_ACT_RELU: return v > 0 ? v : 0;
  case HK_ACT_CLIP: return fmin(fmax(v, a), b);
  case HK_ACT_LEAKY: return v < 0 ? a * v : v;
  case HK_ACT_PRELU: return v < 0 ? slope * v : v;
  case HK_ACT_SIGMOID: return 1 / (1 + exp(-v));
  case HK_ACT_SILU: return v / (1 + exp(-v));
  case HK_ACT_TANH: return tanh(v);
  case HK_ACT_GELU: return 0.5 * v * (1 + erf(v * 0.70710678118654752440));
  case HK_ACT_GELU_TANH: return 0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
  case HK_ACT_HARDSWISH: return v * fmin(fmax(v + 3, 0), 6) / 6;
  case HK_ACT_HARDTANH: return a == 0 && b == 0 ? fmin(fmax(v, -1), 1) : fmin(fmax(v, a), b);
  case HK_ACT_SOFTSIGN: return v / (1 + fabs(v));
  default: return v;
  }
}

static double act_steepness(hk_act act, double a, double slope) {
  switch (act) {
  case HK_ACT_LEAKY: return fmax(1, fabs(a));
  case HK_ACT_PRELU: return fmax(1, fabs(slope));
  case HK_ACT_SIGMOID: return 0.25;
  case HK_ACT_SILU: return 1.1;
  case HK_ACT_GELU:
  case HK_ACT_GELU_TANH: return 1.13;
  case HK_ACT_HARDSWISH: return 1.5;
  default: return 1;
  }
}

static bool act_is_exact(hk_act act) {
  return act == HK_ACT_NONE || act == HK_ACT_RELU || act == HK_ACT_CLIP || act == HK_ACT_LEAKY || act == HK_ACT_PRELU ||
         act == HK_ACT_HARDTANH || act == HK_ACT_USER;
}

static bool is_binary(float v) {
  int e;
  return v == 0 || fabs(frexp(v, &e)) == 0.5;
}

bool check_epilogue_is_exact(const check_case *t) {
  const hk_epilogue *e = &t->e;
  if (e->gate || !act_is_exact(e->act)) return false;
  if (e->act == HK_ACT_LEAKY && !is_binary(e->a)) return false;
  return !e->residual || is_binary(e->beta);
}

/* ---- user functions */
static double code_at(int64_t n, int64_t k, const int64_t p[3]) {
  return (double)((n * 7 + k * 3 + p[0] * 5 + p[1] * 11 + p[2] * 13) % 8);
}

static double user_value(double v, int64_t n, int64_t k, const int64_t p[3]) { return 0.5 * v + code_at(n, k, p); }
static double user2_value(double v, int64_t n, int64_t k, const int64_t p[3]) { return code_at(k, n, p) - v; }

typedef double (*value_fn)(double v, int64_t n, int64_t k, const int64_t p[3]);

/* Coordinates of the i-th value of a run, with three spatial dimensions. */
static void run_at(const check_sink *sink, const hk_at *at, int64_t i, int64_t *k, int64_t p[3]) {
  *k = at->k + (at->along_k ? i : 0);
  p[0] = p[1] = p[2] = 0;
  int used = sink->rank;
  for (int d = 0; d < used; d++) p[3 - used + d] = at->p[d];
  if (!at->along_k) p[2] += i;
}

static void run_map(const check_sink *sink, const hk_at *at, int64_t count, void *values, value_fn fn) {
  for (int64_t i = 0; i < count; i++) {
    int64_t k, p[3];
    run_at(sink, at, i, &k, p);
    if (sink->is_double) ((double *)values)[i] = fn(((double *)values)[i], at->n, k, p);
    else ((float *)values)[i] = (float)fn(((float *)values)[i], at->n, k, p);
  }
}

void check_user(void *user, const hk_at *at, int64_t count, void *values) {
  run_map(user, at, count, values, user_value);
}
void check_user2(void *user, const hk_at *at, int64_t count, void *values) {
  run_map(user, at, count, values, user2_value);
}

void check_store(void *user, const hk_at *at, int64_t count, const void *values) {
  check_sink *sink = user;
  const check_shape *s = sink->shape;
  for (int64_t i = 0; i < count; i++) {
    int64_t k, p[3];
    run_at(sink, at, i, &k, p);
    int64_t index = (((at->n * s->channels + k) * s->out[0] + p[0]) * s->out[1] + p[1]) * s->out[2] + p[2];
    if (index < 0 || index >= s->outputs || k < 0 || k >= s->channels || p[2] >= s->out[2]) {
      __atomic_fetch_add(&sink->outside, 1, __ATOMIC_RELAXED);
      continue;
    }
    sink->value[index] = sink->is_double ? ((const double *)values)[i] : ((const float *)values)[i];
    if (sink->times[index] < 255) sink->times[index]++;
  }
}

/* ---- one element */
static check_value add(check_value a, double b, double eps) {
  a.v += b;
  a.error += eps * (fabs(b) + fabs(a.v));
  return a;
}

/* acc*scale + bias, or (acc + bias)*scale for int8. */
static check_value affine(const check_case *t, const check_data *d, double sum, double error, double eps, int64_t k) {
  check_value a = {sum, error};
  const double *bias = d->v[V_BIAS].value, *scale = d->v[V_SCALE].value;
  bool int8 = cli_problem_is_int8(&t->p);
  if (int8 && bias) a.v += bias[k];
  if (scale) {
    double m = scale[t->e.scale == 1 ? 0 : k];
    a.v *= m;
    a.error = a.error * fabs(m) + eps * fabs(a.v);
  } else if (int8) a.error += eps * fabs(a.v); /* s32 to f32 */
  if (!int8 && bias) a = add(a, bias[k], eps);
  return a;
}

/* Channel k of the convolution, which is o->channel of y or the one that a gate pairs with it. */
static check_value act_apply(const check_case *t, const check_data *d, bool second, check_value a, double eps,
                             int64_t k, const check_output *o) {
  const hk_epilogue *e = &t->e;
  hk_act act = second ? e->act2 : e->act;
  double slope = d->v[V_SLOPES].value ? d->v[V_SLOPES].value[k] : 0, pa = second ? e->a2 : e->a,
         pb = second ? e->b2 : e->b;
  check_value r;
  if (act == HK_ACT_USER) {
    r.v = user_value(a.v, o->n, o->channel, o->at);
    r.error = 0.5 * a.error + 2 * eps * (fabs(r.v) + fabs(a.v));
    return r;
  }
  r.v = act_value(act, pa, pb, slope, a.v);
  r.error = act_steepness(act, pa, slope) * a.error + eps * fabs(r.v);
  if (!act_is_exact(act)) r.error += 8 * eps * (1 + fabs(r.v));
  return r;
}

static check_value gate_apply(const hk_epilogue *e, check_value t, check_value act, check_value b, double eps) {
  check_value r;
  if (e->gate == HK_GATE_GATED) {
    r.v = act.v * b.v;
    r.error = act.error * (fabs(b.v) + b.error) + fabs(act.v) * b.error + eps * fabs(r.v);
    return r;
  }
  r.v = b.v * act.v + (1 - b.v) * t.v;
  r.error = b.error * (fabs(act.v) + fabs(t.v) + act.error + t.error) + fabs(b.v) * act.error + fabs(1 - b.v) * t.error;
  r.error += 3 * eps * (fabs(b.v * act.v) + fabs((1 - b.v) * t.v));
  return r;
}

check_value check_epilogue_eval(const check_case *t, const check_shape *s, const check_data *d, const double sum[2],
                                const double error_of_sum[2], double eps, const check_output *o) {
  const hk_epilogue *e = &t->e;
  const int64_t channel = o->channel;
  check_value a = affine(t, d, sum[0], error_of_sum[0], eps, channel), r;
  double c = 0;
  if (e->residual)
    c = e->beta * d->v[V_C].value[check_y_offset(s, &s->residual, o->n, channel, o->at) + s->residual.below];
  if (e->residual == HK_RESIDUAL_BEFORE) a = add(a, c, eps);
  r = act_apply(t, d, false, a, eps, channel, o);
  if (e->gate) {
    int64_t k = channel + s->channels;
    check_value b = affine(t, d, sum[1], error_of_sum[1], eps, k);
    b = act_apply(t, d, true, b, eps, k, o);
    r = gate_apply(e, a, r, b, eps);
  }
  if (e->residual == HK_RESIDUAL_AFTER) r = add(r, c, eps);
  if (t->with & WITH_USER2) {
    r.v = user2_value(r.v, o->n, channel, o->at);
    r.error += 2 * eps * (fabs(r.v) + 8);
  }
  /* y_zero belongs to the conversion, which a user store replaces. */
  return t->p.y_zero && !(t->with & WITH_STORE) ? add(r, t->p.y_zero, eps) : r;
}
