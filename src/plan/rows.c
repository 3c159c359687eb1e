/* The epilogue of one run of f32 sums while it is hot in L1: scale, bias, residual, activation, user functions, then
 * conversion and store at y's strides. Gates are not rows: they pair channels far apart. */
#include "plan/plan.h"

typedef struct row {
  const hk_plan *plan;
  const hk_call *call;
  const hk_at *at;
  int64_t count;
  int64_t base, step; /* of y, elements */
  int64_t c_base, c_step;
} row;

static int64_t place(const hk_geom *g, const hk_strides *s, const hk_at *at) {
  int64_t o = hk_geom_y_channel(g, s, at->k) + at->n * s->outer;
  for (int d = 0; d < g->rank; d++) o += at->p[d] * s->at[d + 3 - g->rank];
  return o;
}

enum { PART = 64 }; /* floats of a row that go through a kernel at once */

/* n values of a vector that has one for all of a row (step 0), or one each: in place, or in room. */
static const float *spread(const float *from, int64_t step, int64_t n, float *room) {
  if (step) return from;
  for (int64_t j = 0; j < n; j++) room[j] = *from;
  return room;
}

/* v = v*scale + bias as kernels compute it, in one rounding where their ISA has it: whether a row is finished here or
 * in the registers of its tile must not show in its bits. */
static void scaled(const row *r, float *v) {
  const hk_epilogue *e = &r->plan->task.epi.e;
  const int64_t k = r->at->k, step = r->at->along_k ? 1 : 0, scale_step = e->scale == 2 ? step : 0;
  const float *scale = r->call->scale, *bias = r->call->bias;
  if (e->scale == 2) scale += k;
  const float none = 0.0f; /* which kernels add too: it turns -0 into 0 */
  float factor[PART], addend[PART];
  for (int64_t i = 0; i < r->count; i += PART) {
    const int64_t n = hk_min64(PART, r->count - i);
    hk_map_args a = {.op = HK_MAP_SCALE, .rows = 1, .n = n, .x = v + i, .y = v + i};
    a.x2 = spread(scale + i * scale_step, scale_step, n, factor);
    a.x3 = e->bias ? spread(bias + k + i * step, step, n, addend) : spread(&none, 0, n, addend);
    r->plan->map->fn(&a);
  }
}

/* v += beta*c, rounded as kernels round it. */
static void residual(const row *r, float *v) {
  const hk_geom *g = &r->plan->task.geom;
  const float beta = r->plan->task.epi.e.beta;
  const int64_t bytes = (int64_t)hk_type_bytes(g->y_type);
  float part[PART];
  for (int64_t i = 0; i < r->count; i += PART) {
    const int64_t n = hk_min64(PART, r->count - i), at = r->c_base + i * r->c_step;
    const float *c = part;
    if (g->y_type == HK_F32 && r->c_step == 1) c = (const float *)r->call->c + at;
    else if (r->plan->wide && r->c_step == 1) r->plan->wide->fn(&(hk_convert_args){r->call->c + at * bytes, part, n});
    else
      for (int64_t j = 0; j < n; j++) part[j] = (float)hk_load_element(g->y_type, r->call->c, at + j * r->c_step);
    if (beta == 1)
      for (int64_t j = 0; j < n; j++) v[i + j] += c[j];
    else
      r->plan->map->fn(
          &(hk_map_args){.op = HK_MAP_ACT, .rows = 1, .n = n, .x = v + i, .y = v + i, .add = c, .beta = beta});
  }
}

/* y = act(v + bias): bias only where no scale took it along. USER is the caller's. */
static void activate(const row *r, const float *v, hk_act act, bool bias, float *y) {
  const hk_epilogue *e = &r->plan->task.epi.e;
  const int64_t step = r->at->along_k ? 1 : 0;
  const float *slopes = r->plan->packed->slopes, *biases = r->call->bias;
  hk_act_args a = {.v = v, .y = y, .count = r->count, .act = act, .a = e->a, .b = e->b};
  if (act == HK_ACT_PRELU) a.slope = slopes + r->at->k, a.slope_step = step;
  if (bias) a.add = biases + r->at->k, a.add_step = step;
  if (act != HK_ACT_NONE || bias || v != y) r->plan->act->fn(&a);
}

static void write(const row *r, const float *v) {
  const hk_geom *g = &r->plan->task.geom;
  if (g->y_type == HK_F32) {
    float *y = (float *)r->call->y + r->base;
    if (r->step == 1)
      for (int64_t i = 0; i < r->count; i++) y[i] = v[i];
    else
      for (int64_t i = 0; i < r->count; i++) y[i * r->step] = v[i];
  } else if (r->plan->narrow && r->step == 1) {
    r->plan->narrow->fn(&(hk_convert_args){v, r->call->y + r->base * (int64_t)hk_type_bytes(g->y_type), r->count});
  } else {
    for (int64_t i = 0; i < r->count; i++)
      hk_store_element(g->y_type, r->call->y, r->base + i * r->step, (double)v[i] + g->y_zero);
  }
}

static row row_make(const hk_plan *plan, const hk_call *call, const hk_at *at, int64_t count) {
  const hk_geom *g = &plan->task.geom;
  const hk_epi *epi = &plan->task.epi;
  return (row){plan,
               call,
               at,
               count,
               place(g, &g->y, at),
               at->along_k ? g->y.channel : g->y.at[2],
               place(g, &epi->c, at),
               at->along_k ? epi->c.channel : epi->c.at[2]};
}

static void finish(const row *r, float *v) {
  const hk_epilogue *e = &r->plan->task.epi.e;
  if (e->residual == HK_RESIDUAL_AFTER) residual(r, v);
  if (e->user2) e->user2(r->call->user, r->at, r->count, v);
  if (e->store) e->store(r->call->user, r->at, r->count, v);
  else write(r, v);
}

void hk_plan_store_finished(const hk_plan *plan, const hk_call *call, const hk_at *at, int64_t count, float *v) {
  const row r = row_make(plan, call, at, count);
  finish(&r, v);
}

/* Vectors; elements of f32; elements that are converted one by one. */
void hk_work_store(hk_work *work, const hk_task *t, bool along_k, double rows) {
  const hk_geom *g = &t->geom;
  const bool adjacent = (along_k ? g->y.channel : g->y.at[2]) == 1;
  const double each = adjacent ? 1.0 : g->y_type == HK_F32 ? 4.0 : 80.0;
  work->rows += rows;
  work->values += each * (double)g->gm * (double)(g->groups * g->k);
}

static void store_run(const hk_plan *plan, const hk_call *call, const hk_at *at, int64_t count, float *v) {
  const row r = row_make(plan, call, at, count);
  const hk_epilogue *e = &plan->task.epi.e;
  bool bias = e->bias && !e->scale;
  const bool user = e->act == HK_ACT_USER, last = e->residual != HK_RESIDUAL_AFTER && !e->user2 && !e->store && !user;
  if (e->scale) scaled(&r, v);
  if (e->residual == HK_RESIDUAL_BEFORE || user) {
    activate(&r, v, HK_ACT_NONE, bias, v);
    bias = false;
  }
  if (e->residual == HK_RESIDUAL_BEFORE) residual(&r, v);
  if (last && plan->task.geom.y_type == HK_F32 && r.step == 1) { /* straight into y */
    activate(&r, v, e->act, bias, (float *)call->y + r.base);
    return;
  }
  if (user) e->user(call->user, at, count, v);
  else activate(&r, v, e->act, bias, v);
  finish(&r, v);
}

void hk_plan_store_row(const hk_plan *plan, const hk_call *call, const hk_at *at, int64_t count, float *v) {
  const hk_geom *g = &plan->task.geom;
  const hk_epi *epi = &plan->task.epi;
  const int64_t per_group = g->k;
  const bool even = g->y.group == g->k * g->y.channel && (!epi->e.residual || epi->c.group == g->k * epi->c.channel);
  if (!at->along_k || even) {
    store_run(plan, call, at, count, v);
    return;
  }
  hk_at a = *at; /* a run may cross groups, whose channels lie elsewhere */
  for (int64_t done = 0; done < count;) {
    const int64_t n = hk_min64(count - done, per_group - a.k % per_group);
    store_run(plan, call, &a, n, v + done);
    done += n;
    a.k += n;
  }
}
