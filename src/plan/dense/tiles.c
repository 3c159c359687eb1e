/* Pixels, packing and double-precision epilogues of the plain tile loops; see tiles.h. */
#include "plan/dense/tiles.h"

#include <math.h>

hk_status hk_tiles_pack(hk_plan *plan, size_t bytes, void (*pack)(const hk_plan *plan, const void *f, void *to)) {
  char *to;
  const hk_status s = hk_plan_pack_room(plan, (int64_t)bytes, sizeof *to, NULL, 0, &to);
  if (to) pack(plan, plan->raw_f, to);
  return s;
}

hk_pixel hk_pixel_of(const hk_geom *g, int64_t m) {
  const int64_t row = m / g->out[2], plane = row / g->out[1];
  return (hk_pixel){plane / g->out[0], {plane % g->out[0], row % g->out[1], m % g->out[2]}};
}

bool hk_pixel_source(const hk_geom *g, const hk_pixel *at, int64_t tap, const hk_strides *x, int64_t *offset) {
  const int64_t s[3] = {tap / g->win[2] / g->win[1], tap / g->win[2] % g->win[1], tap % g->win[2]};
  *offset = at->n * x->outer;
  for (int d = 0; d < 3; d++) {
    const int64_t i = hk_geom_source(g, d, at->p[d], s[d]);
    if (i < 0 || i >= g->in_span[d] || i % g->in_dil[d]) return false;
    *offset += i / g->in_dil[d] * x->at[d];
  }
  return true;
}

hk_at hk_pixel_at(const hk_geom *g, const hk_pixel *p, int64_t k) {
  const int lead = 3 - g->rank;
  hk_at at = {.n = p->n, .k = k, .along_k = 1};
  for (int d = lead; d < 3; d++) at.p[d - lead] = p->p[d];
  return at;
}

int64_t hk_at_place(const hk_geom *g, const hk_strides *s, const hk_at *at) {
  int64_t o = hk_geom_y_channel(g, s, at->k) + at->n * s->outer;
  for (int d = 0; d < g->rank; d++) o += at->p[d] * s->at[d + 3 - g->rank];
  return o;
}

/* User functions see doubles when sums are f64, floats otherwise. */
static double call_user(const hk_plan *plan, hk_user_fn fn, void *user, const hk_at *at, double v) {
  float f = (float)v;
  if (plan->task.geom.acc_type == HK_F64) {
    fn(user, at, 1, &v);
    return v;
  }
  fn(user, at, 1, &f);
  return f;
}

static double slope_of(const hk_plan *plan, int64_t k) {
  const void *s = plan->packed->slopes;
  return plan->task.geom.acc_type == HK_F64 ? ((const double *)s)[k] : ((const float *)s)[k];
}

double hk_tiles_act(const hk_plan *plan, hk_act act, float a, float b, int64_t k, double v) {
  return act == HK_ACT_NONE ? v : hk_act_eval(act, a, b, act == HK_ACT_PRELU ? slope_of(plan, k) : 0, v);
}

void hk_tiles_bounds(const hk_epilogue *e, double *lo, double *hi) {
  const bool unset = e->act == HK_ACT_HARDTANH && e->a == 0 && e->b == 0;
  *lo = e->act == HK_ACT_NONE ? -INFINITY : e->act == HK_ACT_RELU ? 0 : unset ? -1 : e->a;
  *hi = e->act == HK_ACT_NONE || e->act == HK_ACT_RELU ? INFINITY : unset ? 1 : e->b;
}

static double residual(const hk_plan *plan, const hk_call *call, int64_t at) {
  return plan->task.epi.e.beta * hk_load_element(plan->task.geom.y_type, call->c, at);
}

void hk_tiles_store(const hk_plan *plan, const hk_call *call, const hk_at *first, int64_t count, const double *v) {
  const hk_geom *g = &plan->task.geom;
  const hk_epi *epi = &plan->task.epi;
  const hk_epilogue *e = &epi->e;
  hk_at at = *first;
  const int64_t y0 = hk_at_place(g, &g->y, &at), c0 = hk_at_place(g, &epi->c, &at);
  for (int64_t i = 0; i < count; i++, at.k++) {
    double w = v[i];
    if (e->residual == HK_RESIDUAL_AFTER) w += residual(plan, call, c0 + i * epi->c.channel);
    if (e->user2) w = call_user(plan, e->user2, call->user, &at, w);
    const float f = (float)w;
    if (e->store) e->store(call->user, &at, 1, g->acc_type == HK_F64 ? (const void *)&w : &f);
    else if (g->y_type == HK_F64) ((double *)call->y)[y0 + i * g->y.channel] = w;
    else hk_store_element(g->y_type, call->y, y0 + i * g->y.channel, w + g->y_zero);
  }
}

void hk_tiles_finish(const hk_plan *plan, const hk_call *call, const hk_at *first, int64_t count, double *v) {
  const hk_epi *epi = &plan->task.epi;
  const hk_epilogue *e = &epi->e;
  hk_at at = *first;
  const int64_t c0 = hk_at_place(&plan->task.geom, &epi->c, &at);
  for (int64_t i = 0; i < count; i++, at.k++) {
    if (e->residual == HK_RESIDUAL_BEFORE) v[i] += residual(plan, call, c0 + i * epi->c.channel);
    if (e->act == HK_ACT_USER) v[i] = call_user(plan, e->user, call->user, &at, v[i]);
    else v[i] = hk_tiles_act(plan, e->act, e->a, e->b, at.k, v[i]);
  }
  hk_tiles_store(plan, call, first, count, v);
}
