/* Runs an fft plan: item after item, an item being two stretches of one phase of one block of channels; see fft.h. */
#include <string.h>

#include "plan/transform/fft.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_fft *p;
  float *z, *rows;
} job;

typedef struct item {
  int64_t block, lanes, n, phase, pair;
} item;

static item item_at(const job *j, int64_t i) {
  const hk_fft *p = j->p;
  const hk_geom *g = &j->plan->task.geom;
  /* blocks innermost: neighbours read and write the same pages, while the weights of all of them stream by */
  const int64_t outer = i / p->blocks;
  item t = {.block = i % p->blocks,
            .pair = outer % p->pairs,
            .phase = outer / p->pairs % p->phases,
            .n = outer / p->pairs / p->phases};
  t.lanes = hk_min64(p->vw, g->groups - t.block * p->vw);
  return t;
}

/* Stretch `half` of an item: its first output, counted within the phase, and how many there are. */
static int64_t stretch_of(const job *j, const item *t, int half, int64_t *first) {
  const hk_geom *g = &j->plan->task.geom;
  const int64_t outputs = hk_ceil_div(g->out[2] - t->phase, j->p->phases);
  *first = (2 * t->pair + half) * j->p->stretch;
  return hk_max64(0, hk_min64(j->p->stretch, outputs - *first));
}

static void load(const job *j, const item *t, int half) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_fft *p = j->p;
  const int64_t step = g->dil[2], channel = t->block * p->vw;
  int64_t first;
  const int64_t count = stretch_of(j, t, half, &first);
  /* value i is x at column left + i*step; only those that an output sees */
  const int64_t left = t->phase + first * p->phases - g->lo[2], seen = count ? count + g->taps - 1 : 0;
  const int64_t from = left < 0 ? hk_min64(seen, hk_ceil_div(-left, step)) : 0;
  const int64_t to = g->in[2] > left ? hk_max64(from, hk_min64(seen, hk_ceil_div(g->in[2] - left, step))) : from;
  const float *x =
      (const float *)(const void *)j->call->x + t->n * g->x.outer + channel * g->x.group + left * g->x.at[2];
  float *z = j->z + half * p->vw;
  if (!p->planes) {
    const hk_fft_args a = {.op = HK_FFT_GATHER,
                           .z = z,
                           .points = p->points,
                           .x = x,
                           .x_step = step * g->x.at[2],
                           .first = from,
                           .last = to,
                           .lanes = (int32_t)t->lanes};
    j->plan->decision.kernel->fn(&a);
    return;
  }
  if (from > 0 || to < p->points || t->lanes < p->vw)
    for (int64_t i = 0; i < p->points; i++) memset(z + i * 2 * p->vw, 0, (size_t)p->vw * sizeof *z);
  const hk_transpose_args a = {.from = x + from,
                               .to = z + from * 2 * p->vw,
                               .from_step = g->x.group,
                               .to_step = 2 * p->vw,
                               .rows = t->lanes,
                               .columns = to - from};
  if (to > from) p->transpose(&a);
}

static void store_rows(const job *j, const item *t, int64_t q, int64_t count, const float *z) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_fft *p = j->p;
  const hk_transpose_args a = {
      .from = z, .to = j->rows, .from_step = 2 * p->vw, .to_step = p->stretch, .rows = count, .columns = t->lanes};
  p->transpose(&a);
  for (int64_t k = 0; k < t->lanes; k++) {
    hk_at at = {.n = t->n, .k = t->block * p->vw + k};
    at.p[g->rank - 1] = q;
    hk_plan_store_row(j->plan, j->call, &at, count, j->rows + k * p->stretch);
  }
}

static void store(const job *j, const item *t, int half) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_epilogue *e = &j->plan->task.epi.e;
  const hk_strides *cs = &j->plan->task.epi.c;
  const hk_fft *p = j->p;
  const int64_t channel = t->block * p->vw;
  int64_t first;
  const int64_t count = stretch_of(j, t, half, &first), q = t->phase + first * p->phases;
  const float *z = j->z + half * p->vw;
  if (!count) return;
  if (p->store == HK_FFT_TO_ROWS) {
    store_rows(j, t, q, count, z);
    return;
  }
  float *y = (float *)(void *)j->call->y + t->n * g->y.outer + channel * g->y.group + q * g->y.at[2];
  if (p->store == HK_FFT_TO_PLANES) {
    const hk_transpose_args a = {
        .from = z, .to = y, .from_step = 2 * p->vw, .to_step = g->y.group, .rows = count, .columns = t->lanes};
    p->transpose(&a);
    return;
  }
  hk_fft_args a = {.op = HK_FFT_SCATTER,
                   .z = j->z + half * p->vw,
                   .points = count,
                   .y = y,
                   .y_step = p->phases * g->y.at[2],
                   .c_step = p->phases * cs->at[2],
                   .lanes = (int32_t)t->lanes,
                   .scale_one = e->scale == 1,
                   .fuse = p->fuse};
  if (e->scale) a.scale = (const float *)j->call->scale + (e->scale == 2 ? channel : 0);
  if (e->bias) a.bias = (const float *)j->call->bias + channel;
  if (e->residual)
    a.c = (const float *)(const void *)j->call->c + t->n * cs->outer + channel * cs->group + q * cs->at[2];
  j->plan->decision.kernel->fn(&a);
}

static void body(void *context, int64_t slot) {
  const hk_shared *h = context;
  const hk_fft *p = h->plan->own;
  int64_t i, last;
  hk_piece(p->items, slot, p->slots, &i, &last);
  job j = {h->plan, h->call, p, (float *)(void *)h->call->workspace + slot * p->slot_floats, NULL};
  j.rows = j.z + p->points * 2 * p->vw;
  for (; i < last; i++) {
    const item t = item_at(&j, i);
    const hk_fft_args a = {.op = HK_FFT_CONVOLVE,
                           .z = j.z,
                           .h = (const float *)h->plan->packed->f + t.block * p->points * 2 * p->vw,
                           .twiddle = p->twiddle,
                           .points = p->points};
    load(&j, &t, 0);
    load(&j, &t, 1);
    h->plan->decision.kernel->fn(&a);
    store(&j, &t, 0);
    store(&j, &t, 1);
  }
}

hk_status hk_fft_run(const hk_plan *plan, const hk_call *call) {
  const hk_fft *p = plan->own;
  hk_shared h = {plan, call};
  hk_plan_parallel(plan, p->slots, body, &h);
  return HK_OK;
}
