/* Runs a grouped plan; see grouped.h. */
#include <string.h>

#include "plan/grouped/grouped.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_geom *g;
  const hk_grouped *p;
  const float *bias; /* of all channels */
} job;

/* Rows of x and y that a call reads and writes. */
typedef struct rows {
  int64_t x_channel, x_group, y_channel; /* from channel to channel, from group to group */
  int64_t group, count, n;               /* the first group, how many, flat outputs */
} rows;

/* The call of one size of tiles, but for where x, y and the bias lie. */
static void fill_call(const hk_plan *plan, const hk_grouped *p, const rows *r, const hk_grouped_tiles *t,
                      hk_small_args *a, hk_small_seg *seg) {
  const hk_geom *g = &p->geom;
  const int64_t weights = t->tiles * g->c * t->kernel->mr; /* of a group and tap */
  const float *f = (const float *)plan->packed->f + t->f + r->group * weights;
  a->seg = seg;
  a->segs = (int32_t)g->taps;
  a->add = NULL;
  a->sum = NULL;
  a->n = r->n;
  a->groups = r->count;
  a->tiles = t->tiles;
  a->y_group = g->k;
  a->y_stride = r->y_channel;
  a->add_stride = a->sum_stride = 0;
  a->act = p->fused ? p->act : HK_SMALL_NONE;
  a->lo = p->lo;
  a->hi = p->hi;
  for (int64_t s = 0; s < g->taps; s++)
    seg[s] = (hk_small_seg){NULL, f + s * g->groups * weights, g->c, r->x_channel, r->x_group};
}

static void point_call(const hk_grouped *p, const hk_grouped_tiles *t, hk_small_args *a, hk_small_seg *seg,
                       const float *x, const float *bias, float *y) {
  for (int32_t s = 0; s < a->segs; s++) seg[s].x = x + p->offset[s];
  a->bias = bias + t->first;
  a->y = y + t->first * a->y_stride;
  t->kernel->fn(a);
}

/* x: of the first group, at the first tap; y: of that group. */
static void call_small(const job *j, const rows *r, const float *x, float *y) {
  const hk_grouped *p = j->p;
  hk_small_seg seg[HK_GROUPED_TAPS];
  hk_small_args a;
  for (int64_t i = 0; i < p->tile_sizes; i++) {
    fill_call(j->plan, p, r, &p->tile[i], &a, seg);
    point_call(p, &p->tile[i], &a, seg, x, (p->fused ? j->bias : p->zeros) + r->group * j->g->k, y);
  }
}

static void run_direct(const job *j, int64_t band, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  const hk_grouped *p = j->p;
  const int64_t q = band * p->band_q, cols = hk_min64(p->band_q, g->out[2] - q);
  int64_t n = from < g->groups ? 0 : from / g->groups, group = from - n * g->groups;
  while (from < to) {
    const int64_t count = p->uniform ? hk_min64(to - from, g->groups - group) : 1;
    const float *x = (const float *)(const void *)j->call->x + n * g->x.outer + group * g->x.group + q;
    float *y = (float *)(void *)j->call->y + n * g->y.outer + group * g->y.group + q;
    const rows r = {g->x.channel, g->x.group, g->k == 1 ? g->y.group : g->y.channel, group, count, cols};
    call_small(j, &r, x, y);
    from += count;
    group += count;
    if (group < g->groups) continue;
    group = 0;
    n++;
  }
}

/* ---- staged */

typedef struct band {
  int64_t z, p, rows, q, cols, flat;
} band;

/* The rows of one phase: x row top + r, top + r + stride, ...; columns all, dealt by the copy. */
static void stage_phase(const job *j, const band *b, const float *x, int64_t r, float *buffer) {
  const hk_geom *g = j->g;
  const hk_grouped *p = j->p;
  const int64_t stride = g->stride[1], top = b->p * stride - g->lo[1] + r, left = hk_geom_source(g, 2, b->q, 0);
  const int64_t span = (g->win[1] - 1) * g->dil[1], rows = b->rows + (span >= r ? (span - r) / stride : -1);
  const int64_t skip = top < 0 ? hk_ceil_div(-top, stride) : 0;
  const int64_t stop = g->in[1] > top ? hk_ceil_div(g->in[1] - top, stride) : 0;
  const int64_t col = hk_max64(0, left), width = (b->cols - 1) * g->stride[2] + (g->win[2] - 1) * g->dil[2] + 1;
  const hk_stage_args a = {.x = x + (top + skip * stride) * g->x.at[1] + col * g->x.at[2],
                           .buffer = buffer + skip * p->pitch,
                           .rows = hk_min64(rows, stop) - skip,
                           .cols = hk_min64(g->in[2], left + width) - col,
                           .x_row = stride * g->x.at[1],
                           .x_step = g->x.at[2],
                           .lead = col - left,
                           .spread = 1,
                           .phases = g->stride[2],
                           .pitch = p->plane,
                           .row = p->pitch};
  if (a.rows > 0 && a.cols > 0) p->stage(&a);
}

/* The same for all channels, which are adjacent. */
static void stage_transposed(const job *j, const band *b, const float *x, int64_t r, float *buffer) {
  const hk_geom *g = j->g;
  const hk_grouped *p = j->p;
  const int64_t stride = g->stride[1], phases = g->stride[2], top = b->p * stride - g->lo[1] + r,
                left = b->q * phases - g->lo[2];
  const int64_t span = (g->win[1] - 1) * g->dil[1], rows = b->rows + (span >= r ? (span - r) / stride : -1);
  const int64_t width = (b->cols - 1) * phases + (g->win[2] - 1) * g->dil[2] + 1,
                end = hk_min64(g->in[2], left + width);
  for (int64_t i = 0; i < rows; i++) {
    const int64_t line = top + i * stride;
    if (line < 0 || line >= g->in[1]) continue;
    for (int64_t phase = 0; phase < phases; phase++) {
      const int64_t skip = left + phase < 0 ? hk_ceil_div(-left - phase, phases) : 0,
                    col = left + phase + skip * phases;
      const hk_transpose_args a = {.from = x + line * g->x.at[1] + col * g->x.at[2],
                                   .from_step = phases * g->x.at[2],
                                   .to = buffer + phase * p->plane + i * p->pitch + skip,
                                   .to_step = p->channel,
                                   .rows = hk_ceil_div(end - col, phases),
                                   .columns = g->c};
      if (col < end) p->transpose(&a);
    }
  }
}

static void stage(const job *j, const band *b, const float *x, float *buffer) {
  const hk_geom *g = j->g;
  const bool transposed = hk_woven(&g->x, g->c);
  for (int64_t t = 0; transposed && t < g->win[0]; t++) {
    const int64_t depth = hk_dw_inside(g, 0, hk_geom_source(g, 0, b->z, t));
    for (int64_t r = 0; depth >= 0 && r < g->stride[1]; r++)
      stage_transposed(j, b, x + depth * g->x.at[0], r, buffer + (t * g->stride[1] + r) * g->stride[2] * j->p->plane);
  }
  if (transposed) return;
  for (int64_t c = 0; c < g->c; c++) {
    for (int64_t t = 0; t < g->win[0]; t++) {
      const int64_t depth = hk_dw_inside(g, 0, hk_geom_source(g, 0, b->z, t));
      if (depth < 0) continue;
      for (int64_t r = 0; r < g->stride[1]; r++) {
        float *to = buffer + c * j->p->channel + (t * g->stride[1] + r) * g->stride[2] * j->p->plane;
        stage_phase(j, b, x + c * g->x.channel + depth * g->x.at[0], r, to);
      }
    }
  }
}

static void store(const job *j, const band *b, int64_t n, int64_t group, float *sums) {
  const hk_geom *g = j->g;
  float *y = (float *)(void *)j->call->y + n * g->y.outer + group * g->y.group + b->z * g->y.at[0] + b->p * g->y.at[1] +
             b->q * g->y.at[2];
  if (j->p->fused && hk_woven(&g->y, g->k)) {
    for (int64_t r = 0; r < b->rows; r++)
      j->p->transpose(&(hk_transpose_args){.from = sums + r * j->p->pitch,
                                           .from_step = b->flat,
                                           .to = y + r * g->y.at[1],
                                           .to_step = g->y.at[2],
                                           .rows = g->k,
                                           .columns = b->cols});
    return;
  }
  hk_at at = {.n = n, .k = group * g->k};
  for (int64_t k = 0; k < g->k; k++, at.k++) {
    float *row = sums + k * b->flat;
    for (int64_t r = 0; r < b->rows; r++, row += j->p->pitch) {
      if (j->p->fused) {
        memcpy(y + k * g->y.channel + r * g->y.at[1], row, (size_t)b->cols * sizeof *row);
        continue;
      }
      const int64_t p[3] = {b->z, b->p + r, b->q};
      for (int d = 0; d < g->rank; d++) at.p[d] = p[d + 3 - g->rank];
      hk_plan_store_row(j->plan, j->call, &at, b->cols, row);
    }
  }
}

static void run_staged(const job *j, int64_t index, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  const hk_grouped *p = j->p;
  _Alignas(HK_ALIGN) float buffer[HK_DW_BUFFER], sums[HK_GROUPED_SUMS];
  band b = {.z = index / p->bands_q / p->bands_p,
            .p = index / p->bands_q % p->bands_p * p->band_p,
            .q = index % p->bands_q * p->band_q};
  b.rows = hk_min64(p->band_p, g->out[1] - b.p);
  b.cols = hk_min64(p->band_q, g->out[2] - b.q);
  b.flat = (b.rows - 1) * p->pitch + b.cols;
  memset(buffer, 0, (size_t)p->used * sizeof *buffer);
  for (; from < to; from++) {
    const int64_t n = from / g->groups, group = from % g->groups;
    stage(j, &b, (const float *)(const void *)j->call->x + n * g->x.outer + group * g->x.group, buffer);
    const rows r = {p->channel, 0, b.flat, group, 1, b.flat};
    call_small(j, &r, buffer, sums);
    store(j, &b, n, group, sums);
  }
}

static void body(void *context, int64_t i) {
  const hk_shared *h = context;
  const hk_grouped *p = h->plan->own;
  const hk_geom *g = &p->geom;
  int64_t from, to, index, last;
  hk_piece(g->n * g->groups, p->parts == 1 ? i : i / p->parts, p->shards, &from, &to);
  hk_piece(p->bands, p->parts == 1 ? 0 : i % p->parts, p->parts, &index, &last);
  if (from == to) return;
  const job j = {h->plan, h->call, g, p, h->plan->task.epi.e.bias ? h->call->bias : p->zeros};
  for (; index < last; index++) {
    if (p->source == HK_GROUPED_DIRECT) run_direct(&j, index, from, to);
    else run_staged(&j, index, from, to);
  }
}

/* ---- at once: what small problems would spend on finding their way, found at creation */

void hk_grouped_prepare(const hk_plan *plan, hk_grouped *p) {
  const hk_geom *g = &p->geom;
  const rows r = {g->x.channel, g->x.group, g->k == 1 ? g->y.group : g->y.channel, 0, g->groups, g->out[2]};
  p->at_once = p->source == HK_GROUPED_DIRECT && p->uniform && g->n == 1 && p->bands == 1 &&
               p->shards * p->parts == 1 && g->taps <= HK_GROUPED_AT_ONCE;
  for (int64_t i = 0; p->at_once && i < p->tile_sizes; i++) fill_call(plan, p, &r, &p->tile[i], &p->args[i], p->seg[i]);
}

static void run_at_once(const hk_plan *plan, const hk_call *call) {
  const hk_grouped *p = plan->own;
  const int64_t taps = plan->task.geom.taps;
  for (int64_t i = 0; i < p->tile_sizes; i++) {
    hk_small_seg seg[HK_GROUPED_AT_ONCE];
    hk_small_args a = p->args[i];
    for (int64_t s = 0; s < taps; s++) seg[s] = p->seg[i][s];
    a.seg = seg;
    point_call(p, &p->tile[i], &a, seg, (const float *)(const void *)call->x,
               plan->task.epi.e.bias ? call->bias : p->zeros, (float *)(void *)call->y);
  }
}

hk_status hk_grouped_run(const hk_plan *plan, const hk_call *call) {
  const hk_grouped *p = plan->own;
  if (p->at_once) {
    run_at_once(plan, call);
    return HK_OK;
  }
  hk_shared h = {plan, call};
  hk_plan_parallel(plan, p->shards * p->parts, body, &h);
  return HK_OK;
}
