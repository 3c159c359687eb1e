/* What each output should be, how far from it one may land, and the comparison. Integers are exact where the plan says
 * so; floats stay within gk*eps*sum|x||f| each, those of a transform within the plan's factor times what the largest
 * |x| would allow, and the norm of all errors within what N(0,1) data allows. A sampled case is compared with the
 * formula on its sample, and all of its outputs with the first exact decision's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/execute.h"

/* ---- what each output should be */
static void expected_at(check_session *c, int64_t j) {
  const hk_problem *p = &c->t->p;
  bool user = c->t->with & (WITH_USER | WITH_USER2 | WITH_STORE), wide = cli_problem_is_double(p);
  double eps = check_eps(p), eps_v = wide ? 0x1p-52 : 0x1p-23;
  double eps_ref = wide ? 0x1p-50 : user || cli_problem_is_int8(p) ? 0x1p-22 : 0x1p-45;
  double sum[2] = {0, 0}, e1[2], e2[2], er[2], gk = c->s.gk > 0 ? (double)c->s.gk : 1;
  for (int g = 0; g <= (c->t->e.gate != 0); g++) {
    int64_t i = 2 * j + g;
    sum[g] = c->u.sum[i];
    e1[g] = gk * eps * c->u.absolute[i];
    e2[g] = 4 * eps * sqrt(gk) * fmax(fabs(c->u.sum[i]), sqrt(c->u.square[i]));
    er[g] = gk * 0x1p-52 * c->u.absolute[i];
  }
  check_output o;
  check_output_at(&c->s, c->u.sample ? c->u.sample[j] : j, &o.n, &o.channel, o.at);
  c->at[j] = check_y_offset(&c->s, &c->s.y, o.n, o.channel, o.at) + c->s.y.below;
  if (c->t->with & WITH_STORE) c->at[j] = c->u.sample ? c->u.sample[j] : j;
  check_value v = check_epilogue_eval(c->t, &c->s, &c->d, sum, e1, eps_v, &o);
  c->value[j] = v.v;
  c->bound[j] = v.error;
  c->norm_bound[j] = check_epilogue_eval(c->t, &c->s, &c->d, sum, e2, eps_v, &o).error;
  c->ref_bound[j] = check_epilogue_eval(c->t, &c->s, &c->d, sum, er, eps_ref, &o).error;
}

/* A transform computes the outputs of a stretch or a tile together and spreads its error over all of them: each is
 * bounded by its channel's sum |f| times the largest |x|, as hk_plan_error_factor says. */
static bool spread_bounds_make(check_session *c) {
  const check_vector *xv = &c->d.v[V_X], *state = &c->d.v[V_STATE];
  const int64_t channels = c->s.k * c->s.groups;
  double *spread = calloc((size_t)channels + 1, sizeof *spread), x = 0;
  for (int64_t i = 0; i < xv->elements; i++)
    x = isfinite(xv->value[i]) ? fmax(x, fabs(xv->value[i] - c->t->p.x_zero)) : x;
  for (int64_t i = 0; i < state->elements; i++) x = fmax(x, fabs(state->value[i]));
  for (int64_t k = 0; spread && k < channels; k++)
    for (int64_t i = 0; i < c->s.gk; i++) {
      const int64_t *w = c->s.window, at[3] = {i / w[2] / w[1] % w[0], i / w[2] % w[1], i % w[2]};
      const int64_t f = check_offset(&c->s.f, k / c->s.k, k % c->s.k, i / (w[0] * w[1] * w[2]), at) + c->s.f.below;
      spread[k] += fabs(c->d.v[V_F].value[f]) * x * check_eps(&c->t->p) * (double)c->s.gk;
    }
  for (int64_t j = 0; spread && j < c->u.count; j++) {
    check_output o;
    check_output_at(&c->s, c->u.sample ? c->u.sample[j] : j, &o.n, &o.channel, o.at);
    const double e[2] = {spread[o.channel], c->t->e.gate ? spread[o.channel + channels / 2] : 0};
    const double eps = cli_problem_is_double(&c->t->p) ? 0x1p-52 : 0x1p-23;
    c->spread_bound[j] = check_epilogue_eval(c->t, &c->s, &c->d, &c->u.sum[2 * j], e, eps, &o).error;
  }
  const bool made = spread != NULL;
  free(spread);
  return made;
}

bool check_expected_make(check_session *c) {
  size_t bytes = sizeof(double) * (size_t)(c->u.count + 1);
  c->value = malloc(bytes);
  c->bound = malloc(bytes);
  c->norm_bound = malloc(bytes);
  c->ref_bound = malloc(bytes);
  c->spread_bound = malloc(bytes);
  c->at = malloc(bytes);
  if (!c->at || !c->value || !c->bound || !c->norm_bound || !c->ref_bound || !c->spread_bound) return false;
  for (int64_t j = 0; j < c->u.count; j++) expected_at(c, j);
  return spread_bounds_make(c);
}

/* ---- comparison */
static double decoded(const check_session *c, const char *result, int64_t at) {
  return c->t->with & WITH_STORE ? ((const double *)result)[at] : check_decode(c->t->p.y_type, result, at);
}

double check_result_at(const check_session *c, const char *result, int64_t j) { return decoded(c, result, c->at[j]); }

static hk_type result_type(const check_session *c) {
  if (!(c->t->with & WITH_STORE)) return c->t->p.y_type;
  return cli_problem_is_double(&c->t->p) ? HK_F64 : HK_F32;
}

static double clamped(hk_type type, double v) {
  double low = type == HK_S8 ? -128 : 0, high = type == HK_S8 ? 127 : 255;
  return type != HK_S8 && type != HK_U8 ? v : v < low ? low : v > high ? high : v;
}

/* Beyond this a value rounds to infinity, or to NaN or the largest where a type has none. */
static double type_end(hk_type type) { return type == HK_F16 ? 65500 : type == HK_F8E4M3 ? 440 : INFINITY; }

/* A sum that Inf or NaN reached: without an activation the result is not finite either, and an exact algorithm keeps
 * Inf and NaN apart. */
static bool nonfinite_agrees(const check_session *c, const comparison *m, double have, double want) {
  const hk_epilogue *e = &c->t->e;
  const hk_type type = result_type(c);
  if (e->act || e->gate || c->t->with & (WITH_USER | WITH_USER2)) return true;
  if (type != HK_F32 && type != HK_F64 && type != HK_F16 && type != HK_BF16) return true;
  if (m->transforms) return !isfinite(have);
  return isnan(want) ? isnan(have) : have == want;
}

static bool is_nonfinite(const check_session *c, int64_t j) {
  return !isfinite(c->u.sum[2 * j]) || (c->t->e.gate && !isfinite(c->u.sum[2 * j + 1]));
}

static double bound_of(const check_session *c, const comparison *m, int64_t j) {
  if (m->with_formula || m->exact) return c->ref_bound[j];
  return m->factor * (m->transforms ? c->spread_bound[j] : c->bound[j]);
}

/* Is `have` a right answer where the formula says value[i] and the reference says want? */
static bool element_agrees(const check_session *c, const comparison *m, int64_t i, double have, double want) {
  if (have == want || (isnan(have) && isnan(want))) return true;
  if (c->t->with & WITH_NONFINITE && is_nonfinite(c, i)) return nonfinite_agrees(c, m, have, c->value[i]);
  /* Against the formula an exact result still has its one rounding. */
  if (m->exact && !m->with_formula && !c->u.sample && c->has_reference) return false;
  hk_type type = result_type(c);
  double v = c->value[i], bound = bound_of(c, m, i);
  if (fabs(v) + bound > type_end(type) && (fabs(have) > 0.9 * type_end(type) || isnan(have))) return true;
  if (type == HK_S8 || type == HK_U8 || type == HK_S32) return fabs(have - clamped(type, v)) <= 0.5 + bound;
  double step = check_rounding(type, fabs(v) + bound);
  return fabs(have - want) <= bound + (m->with_formula || m->exact ? 0.5000001 : 1) * step;
}

static bool difference_tell(const check_session *c, int64_t index, double have, double want, double bound,
                            const char *whose, char *why) {
  int64_t n, k, p[3];
  check_output_at(&c->s, index, &n, &k, p);
  snprintf(why, CHECK_WHY, "y[%lld,%lld,%lld,%lld,%lld] = %.9g, %s %.9g (bound %.3g)", (long long)n, (long long)k,
           (long long)p[0], (long long)p[1], (long long)p[2], have, whose, want, bound);
  return false;
}

/* All outputs of a sampled case, on integers: exact decisions agree with one another, whatever the sample met. */
static bool whole_agrees(check_session *c, const comparison *m, const char *result, char *why) {
  if (!c->u.sample || !m->exact) return true;
  if (!c->agreed) {
    c->agreed = malloc(c->result_bytes + 1);
    if (c->agreed) memcpy(c->agreed, result, c->result_bytes);
    return true;
  }
  bool store = c->t->with & WITH_STORE;
  for (int64_t i = 0; i < c->s.outputs; i++) {
    int64_t n, k, p[3], at = i;
    check_output_at(&c->s, i, &n, &k, p);
    if (!store) at = check_y_offset(&c->s, &c->s.y, n, k, p) + c->s.y.below;
    double have = decoded(c, result, at), want = decoded(c, c->agreed, at);
    if (have != want && !(isnan(have) && isnan(want)))
      return difference_tell(c, i, have, want, 0, "another exact decision", why);
  }
  return true;
}

comparison check_comparison(const check_session *c, const hk_plan *plan) {
  double factor = hk_plan_error_factor(plan);
  return (comparison){.exact = c->d.kind == KIND_INTEGERS && factor == 0 && check_epilogue_is_exact(c->t),
                      .transforms = factor != 0,
                      .factor = factor > 1 ? factor : 1};
}

bool check_result_agrees(check_session *c, const comparison *m, const char *result, char why[CHECK_WHY]) {
  double difference = 0, allowed = 0;
  const bool formula = m->with_formula || c->u.sample || !c->has_reference;
  if (m->transforms && c->d.x_has_nonfinite) return true;
  for (int64_t j = 0; j < c->u.count; j++) {
    double have = check_result_at(c, result, j), want = formula ? c->value[j] : c->reference[j];
    if (!element_agrees(c, m, j, have, want)) {
      double bound = m->exact ? 0 : bound_of(c, m, j);
      int64_t index = c->u.sample ? c->u.sample[j] : j;
      return difference_tell(c, index, have, want, bound, formula ? "the formula says" : "the reference", why);
    }
    hk_type type = result_type(c);
    if (formula && fabs(want) > 0.9 * type_end(type)) continue; /* stored as the largest, Inf or NaN */
    if (c->t->with & WITH_NONFINITE && is_nonfinite(c, j)) continue;
    if (type == HK_S8 || type == HK_U8 || type == HK_S32) want = clamped(type, want);
    double d = have - want, e = m->factor * c->norm_bound[j] + check_rounding(type, want);
    if (isfinite(d)) difference += d * d;
    if (isfinite(e)) allowed += e * e;
  }
  if (!whole_agrees(c, m, result, why)) return false;
  if (m->with_formula || m->exact || c->d.kind != KIND_FLOATS || difference <= allowed) return true;
  snprintf(why, CHECK_WHY, "the norm of the error is %.4g, allowed %.4g", sqrt(difference), sqrt(allowed));
  return false;
}
