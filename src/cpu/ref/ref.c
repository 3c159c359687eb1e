/* The scalar reference: computes any problem and epilogue directly from the definition. Floats are accumulated in f64,
 * int8 in s32 (two's complement); taps outside the input or between dilated inputs are skipped. Independent of the
 * templates. */
#include "cpu/ref/ref.h"

#include <string.h>

typedef struct position { int64_t n, p[3]; } position;

/* Returns the index into x along d of tap s at output position p, or -1 outside; with a state, positions before x count
 * down from -2. */
static int64_t source(const hk_ref_args *a, int d, int64_t p, int64_t s) {
  const hk_geom *g = a->g;
  const int64_t i = hk_geom_source(g, d, p, s);
  if (i < 0) return a->stateful && d == 2 ? i - 1 : -1;
  if (i >= g->in_span[d] || i % g->in_dil[d]) return -1;
  return i / g->in_dil[d];
}

static double load_x(const hk_ref_args *a, int64_t group, int64_t n, int64_t c, int64_t i0, int64_t i1, int64_t i2) {
  const hk_geom *g = a->g;
  if (i2 >= 0)
    return hk_load_element(g->x_type, a->x, group * g->x.group + n * g->x.outer + c * g->x.channel + i0 * g->x.at[0] +
                                                i1 * g->x.at[1] + i2 * g->x.at[2]);
  if (!a->state_in) return g->x_zero;
  const int64_t lo = g->lo[2];
  return hk_load_element(g->x_type, a->state_in, ((n * g->groups + group) * g->c + c) * lo + lo + i2 + 1);
}

typedef struct sum { double real; uint32_t integer; } sum;

/* The same sum in the same order as the general loop, for the pair of types that most checks use. */
static double dot_f32(const float *x, int64_t x_step, const float *f, int64_t f_step, int64_t count, double acc) {
  for (int64_t c = 0; c < count; c++) acc += (double)x[c * x_step] * f[c * f_step];
  return acc;
}

static void add_tap(const hk_ref_args *a, int64_t group, int64_t k, const position *at, const int64_t i[3],
                    const int64_t s[3], sum *acc) {
  const hk_geom *g = a->g;
  const bool integer = g->acc_type == HK_S32;
  const int32_t f_zero = a->f_zero ? a->f_zero[group * g->k + k] : g->f_zero;
  const int64_t f0 = group * g->f.group + k * g->f.outer + s[0] * g->f.at[0] + s[1] * g->f.at[1] + s[2] * g->f.at[2];
  if (g->x_type == HK_F32 && g->f_type == HK_F32 && i[2] >= 0) {
    const int64_t x0 =
        group * g->x.group + at->n * g->x.outer + i[0] * g->x.at[0] + i[1] * g->x.at[1] + i[2] * g->x.at[2];
    acc->real =
        dot_f32((const float *)a->x + x0, g->x.channel, (const float *)a->f + f0, g->f.channel, g->c, acc->real);
    return;
  }
  for (int64_t c = 0; c < g->c; c++) {
    const double x = load_x(a, group, at->n, c, i[0], i[1], i[2]);
    const double f = hk_load_element(g->f_type, a->f, f0 + c * g->f.channel);
    if (integer) acc->integer += (uint32_t)(((int32_t)x - g->x_zero) * ((int32_t)f - f_zero));
    else acc->real += x * f;
  }
}

/* Finds the taps [*from, *to) of dimension d that may read position p inside x (with a state, before x too), so that a
 * window much larger than x costs nothing. */
static void taps_of(const hk_ref_args *a, int d, int64_t p, int64_t *from, int64_t *to) {
  const hk_geom *g = a->g;
  const int64_t first = hk_geom_source(g, d, p, 0);
  *from = first < 0 && !(a->stateful && d == 2) ? (-first - 1) / g->dil[d] + 1 : 0;
  *to = first < g->in_span[d] ? hk_min64(g->win[d], (g->in_span[d] - 1 - first) / g->dil[d] + 1) : 0;
}

static double accumulate(const hk_ref_args *a, int64_t group, int64_t k, const position *at) {
  const hk_geom *g = a->g;
  sum acc = {0, 0};
  int64_t s[3], i[3], from[3], to[3];
  for (int d = 0; d < 3; d++) taps_of(a, d, at->p[d], &from[d], &to[d]);
  for (s[0] = from[0]; s[0] < to[0] && g->c; s[0]++) {
    if ((i[0] = source(a, 0, at->p[0], s[0])) < 0) continue;
    for (s[1] = from[1]; s[1] < to[1]; s[1]++) {
      if ((i[1] = source(a, 1, at->p[1], s[1])) < 0) continue;
      for (s[2] = from[2]; s[2] < to[2]; s[2]++)
        if ((i[2] = source(a, 2, at->p[2], s[2])) != -1) add_tap(a, group, k, at, i, s, &acc);
    }
  }
  if (g->acc_type != HK_S32) return acc.real;
  if (a->bias && a->epi->e.bias) acc.integer += (uint32_t)((const int32_t *)a->bias)[group * g->k + k];
  return (int32_t)acc.integer;
}

static double parameter(const hk_geom *g, const void *p, int64_t i) {
  return g->acc_type == HK_F64 ? ((const double *)p)[i] : ((const float *)p)[i];
}

static void call_user(hk_user_fn fn, const hk_ref_args *a, const hk_at *at, double *v) {
  if (a->g->acc_type == HK_F64) {
    fn(a->user, at, 1, v);
  } else {
    float f = (float)*v;
    fn(a->user, at, 1, &f);
    *v = f;
  }
}

static double activate(const hk_ref_args *a, hk_act act, double p0, double p1, int64_t k, const hk_at *at, double v) {
  if (act == HK_ACT_USER) {
    call_user(a->epi->e.user, a, at, &v);
    return v;
  }
  return hk_act_eval(act, p0, p1, act == HK_ACT_PRELU ? parameter(a->g, a->slopes, k) : 0, v);
}

/* acc*scale + bias of channel k, counted over all groups. */
static double linear(const hk_ref_args *a, int64_t k, const position *at) {
  const hk_geom *g = a->g;
  const hk_epilogue *e = &a->epi->e;
  double v = accumulate(a, k / g->k, k % g->k, at);
  if (e->scale) v *= parameter(g, a->scale, e->scale == 2 ? k : 0);
  if (e->bias && g->acc_type != HK_S32) v += parameter(g, a->bias, k);
  return v;
}

static int64_t place(const hk_geom *g, const hk_strides *s, int64_t k, const position *at) {
  return hk_geom_y_channel(g, s, k) + at->n * s->outer + at->p[0] * s->at[0] + at->p[1] * s->at[1] +
         at->p[2] * s->at[2];
}

static void store(const hk_ref_args *a, int64_t k, const position *at, const hk_at *where, double v) {
  const hk_geom *g = a->g;
  if (a->epi->e.store) {
    const float f = (float)v;
    a->epi->e.store(a->user, where, 1, g->acc_type == HK_F64 ? (const void *)&v : &f);
    return;
  }
  hk_store_element(g->y_type, a->y, place(g, &g->y, k, at), v + g->y_zero);
}

static void output(const hk_ref_args *a, int64_t k, const position *at) {
  const hk_geom *g = a->g;
  const hk_epilogue *e = &a->epi->e;
  const int lead = 3 - g->rank;
  hk_at where = {.n = at->n, .k = k, .along_k = 1};
  for (int d = 0; d < g->rank; d++) where.p[d] = at->p[d + lead];
  double v = linear(a, k, at);
  const double c = e->residual ? e->beta * hk_load_element(g->y_type, a->c, place(g, &a->epi->c, k, at)) : 0;
  if (e->residual == HK_RESIDUAL_BEFORE) v += c;
  if (e->gate) {
    const int64_t k2 = k + g->y_channels;
    hk_at where2 = where;
    where2.k = k2;
    const double b = activate(a, e->act2, e->a2, e->b2, k2, &where2, linear(a, k2, at));
    const double t = activate(a, e->act, e->a, e->b, k, &where, v);
    v = e->gate == HK_GATE_GATED ? t * b : b * t + (1 - b) * v;
  } else {
    v = activate(a, e->act, e->a, e->b, k, &where, v);
  }
  if (e->residual == HK_RESIDUAL_AFTER) v += c;
  if (e->user2) call_user(e->user2, a, &where, &v);
  store(a, k, at, &where, v);
}

void hk_ref_position(const hk_ref_args *a, int64_t m) {
  const hk_geom *g = a->g;
  const int64_t row = m / g->out[2], plane = row / g->out[1];
  const position at = {plane / g->out[0], {plane % g->out[0], row % g->out[1], m % g->out[2]}};
  for (int64_t k = 0; k < g->y_channels; k++) output(a, k, &at);
}

void hk_ref_state(const hk_ref_args *a, char *state_out) {
  const hk_geom *g = a->g;
  const size_t bytes = hk_type_bytes(g->x_type);
  const int64_t lo = g->lo[2], w = g->in[2];
  for (int64_t row = 0; row < g->n * g->groups * g->c; row++) {
    const int64_t n = row / (g->groups * g->c), group = row / g->c % g->groups, c = row % g->c;
    const char *x = a->x + (size_t)(group * g->x.group + n * g->x.outer + c * g->x.channel) * bytes;
    for (int64_t j = 0; j < lo; j++) {
      char *to = state_out + (size_t)(row * lo + j) * bytes;
      const int64_t i = j + w - lo; /* position in x */
      if (i >= 0) memmove(to, x + (size_t)(i * g->x.at[2]) * bytes, bytes);
      else if (a->state_in) memmove(to, a->state_in + (size_t)(row * lo + j + w) * bytes, bytes);
      else hk_store_element(g->x_type, to, 0, g->x_zero);
    }
  }
}
