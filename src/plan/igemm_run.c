/* The jobs of igemm: a block of pixels x some panels. Everything a job needs lies on its stack; nothing is allocated,
 * and jobs share nothing, so any number of threads gives the same bits. */
#include <string.h>

#include "plan/igemm.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_igemm_own *o;
  const float *packed; /* NULL: pack on the stack */
} job;

typedef struct work {
  const job *j;
  int64_t group, pass, kept;
  hk_grid grid;
  hk_rows rows;
  const float *x;
  hk_igemm_args args;
  hk_block block;
  const float *c_rows[HK_BLOCK_MAX];
  float *y_rows[HK_BLOCK_MAX];
  int64_t tap[HK_IGEMM_TAPS], seg[HK_IGEMM_TAPS];
  const float *table[HK_IGEMM_TABLE];
  _Alignas(HK_ALIGN) float scale[64];
  _Alignas(HK_ALIGN) float bias[64];
  _Alignas(HK_ALIGN) float partial[HK_IGEMM_PARTIAL];
  _Alignas(HK_ALIGN) float scratch[HK_IGEMM_SCRATCH];
} work;

static void find_block(work *w, int64_t index) {
  const hk_geom *g = &w->j->plan->task.geom;
  const int64_t bm = w->j->o->bm;
  for (int64_t i = 0;; i++) {
    w->grid = hk_grid_get(g, i);
    const int64_t blocks = hk_ceil_div(w->grid.pixels, bm);
    if (index < blocks) break;
    index -= blocks;
  }
  hk_block_make(&w->block, &w->grid, index * bm, hk_min64(bm, w->grid.pixels - index * bm));
}

static void output_rows(work *w) {
  const hk_geom *g = &w->j->plan->task.geom;
  const hk_epi *epi = &w->j->plan->task.epi;
  float *y = (float *)w->j->call->y + w->group * g->y.group;
  const float *c = epi->e.residual ? (const float *)w->j->call->c + w->group * epi->c.group : NULL;
  for (int32_t i = 0; i < w->block.runs; i++) {
    const hk_run *r = &w->block.run[i];
    const int64_t step = g->y.at[2] * w->grid.step[2];
    float *to = y + hk_run_offset(&w->block, r, &g->y, 0);
    for (int32_t m = 0; m < r->count; m++, to += step) w->y_rows[r->m + m] = to;
    for (int32_t m = 0; c && m < r->count; m++)
      w->c_rows[r->m + m] = c + hk_run_offset(&w->block, r, &epi->c, m);
  }
}

/* A finished panel of the block, [pixel][channel] in `partial`, to the planes of y. */
static void turn_panel(const work *w, const hk_panel *p, int64_t width) {
  const hk_geom *g = &w->j->plan->task.geom;
  float *y = (float *)w->j->call->y + w->group * g->y.group + p->first * g->y.channel;
  hk_turn_args a = {.from_step = width, .to_step = g->y.channel, .columns = p->columns};
  const bool whole = hk_block_adjacent(&w->block, &g->y);
  for (int32_t i = 0; i < (whole ? 1 : w->block.runs); i++) {
    const hk_run *r = &w->block.run[i];
    a.from = w->partial + r->m * width;
    a.to = y + hk_run_offset(&w->block, r, &g->y, 0);
    a.rows = whole ? w->block.count : r->count;
    w->j->o->turn->fn(&a);
  }
}

static void make_rows(work *w, int64_t t0) {
  const hk_igemm_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  const int64_t t1 = hk_min64(o->segments, t0 + w->pass);
  w->kept = o->merged ? hk_rows_make_merged(g, &w->block, w->x, t0, t1, w->scratch, &w->rows)
                      : hk_rows_make(g, &w->block, w->x, t0, t1, &w->rows);
}

/* All kept taps of one piece, weights packed piece by piece on the stack. */
static void run_packing(work *w, const hk_panel *p, int64_t c0, int64_t cl, uint32_t last) {
  const hk_igemm_own *o = w->j->o;
  hk_igemm_args *a = &w->args;
  const int64_t piece = HK_IGEMM_SCRATCH / (p->vectors * o->panels.lanes);
  const hk_kernel *kernel = w->j->plan->decision.kernel;
  static const int64_t from_start = 0;
  a->f = w->scratch;
  a->seg = &from_start;
  a->segments = 1;
  for (int64_t t = 0; t < w->kept; t++) {
    for (int64_t c = 0; c < cl; c += piece) {
      a->channels = hk_min64(piece, cl - c);
      a->x_at = c0 + c;
      a->rows = w->table + t * w->rows.step;
      hk_panel_pack(&w->j->plan->task.geom, &o->panels, p, w->group, (const float *)w->j->call->f, w->tap[t], w->tap[t] + 1,
                    a->x_at, a->channels, w->scratch);
      a->flags |= HK_IGEMM_SUSPEND;
      kernel->fn(a);
      a->flags |= HK_IGEMM_RESUME;
    }
  }
  a->segments = 0; /* the epilogue of what was summed */
  a->flags = (a->flags & HK_IGEMM_RESUME) | last;
  if (!(last & HK_IGEMM_SUSPEND) || !(a->flags & HK_IGEMM_RESUME)) kernel->fn(a);
}

static void run_packed(work *w, const hk_panel *p, int64_t c0, int64_t cl, uint32_t last) {
  const hk_igemm_own *o = w->j->o;
  hk_igemm_args *a = &w->args;
  a->f = w->j->packed + hk_panels_at(&o->panels, w->group, p);
  a->seg = w->seg;
  for (int64_t t = 0; t < w->kept; t++) w->seg[t] = c0 * o->segments + w->tap[t] * cl;
  a->rows = w->table;
  a->segments = w->kept;
  a->channels = cl;
  a->x_at = c0;
  a->flags |= last;
  w->j->plan->decision.kernel->fn(a);
}

/* One panel: the reduction in blocks of channels, then of taps; sums are carried from piece to piece exactly. */
static void run_panel(work *w, const hk_panel *p) {
  const hk_igemm_own *o = w->j->o;
  const hk_fuse *fuse = &o->fuse;
  const hk_plan *plan = w->j->plan;
  const int64_t k = w->group * plan->task.geom.k + p->first, width = p->vectors * o->panels.lanes;
  w->args = (hk_igemm_args){.zeros = o->zeros, .row_step = w->rows.step, .count = w->block.count, .y_at = p->first, .vectors = p->vectors,
                            .columns = p->columns, .beta = fuse->beta, .lo = fuse->lo, .hi = fuse->hi, .scale = w->scale,
                            .bias = w->bias, .c = w->c_rows, .y = w->y_rows, .partial = w->partial};
  if (fuse->flags & HK_IGEMM_AFFINE) hk_fuse_affine(plan, w->j->call, k, p->columns, width, w->scale, w->bias);
  if (o->turn) { /* a tile's results take the place of its own partial sums */
    w->args.y_at = 0;
    for (int32_t m = 0; m < w->block.count; m++) w->y_rows[m] = w->partial + m * width;
  }
  const int64_t bk = o->merged ? o->channels : o->bk;
  for (int64_t c0 = 0; c0 < o->channels; c0 += bk) {
    const int64_t cl = hk_min64(bk, o->channels - c0);
    for (int64_t t0 = 0; t0 < o->segments; t0 += w->pass) {
      const bool more = c0 + cl < o->channels || t0 + w->pass < o->segments;
      const uint32_t last = more || !fuse->all ? HK_IGEMM_SUSPEND : fuse->flags;
      if (w->pass < o->segments) make_rows(w, t0);
      w->args.flags = c0 || t0 ? HK_IGEMM_RESUME : 0;
      if (w->j->packed) run_packed(w, p, c0, cl, last);
      else run_packing(w, p, c0, cl, last);
    }
  }
  if (o->turn) turn_panel(w, p, width);
  else if (!fuse->all) hk_block_store(plan, w->j->call, &w->block, k, p->columns, w->partial, width);
}

static void body(void *context, int64_t i) {
  work w;
  const job *j = w.j = context;
  const hk_igemm_own *o = j->o;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t split = i % o->splits, block = i / o->splits % o->blocks;
  w.group = i / o->splits / o->blocks;
  w.x = (const float *)j->call->x + w.group * g->x.group;
  find_block(&w, block);
  w.rows = (hk_rows){.table = w.table, .step = w.block.count, .tap = w.tap, .zeros = o->zeros};
  w.pass = hk_min64(HK_IGEMM_TAPS, HK_IGEMM_TABLE / w.block.count);
  if (o->fuse.all && !o->turn) output_rows(&w);
  if (w.pass >= o->segments) make_rows(&w, 0);
  for (int64_t p = split * o->bn; p < hk_min64(o->panels.count, (split + 1) * o->bn); p++) {
    const hk_panel panel = hk_panels_get(&o->panels, p);
    run_panel(&w, &panel);
  }
}

hk_status hk_igemm_run(const hk_plan *plan, const hk_call *call) {
  const hk_igemm_own *o = plan->own;
  const int64_t pack = plan->decision.knob[HK_IGEMM_PACK];
  job j = {plan, call, o, NULL};
  if (plan->task.f_now) {
    j.packed = plan->packed->f;
  } else if (pack == HK_PACK_WHOLE) {
    j.packed = (const float *)call->workspace;
    hk_panels_pack(plan, &o->panels, (const float *)call->f, (float *)call->workspace);
  }
  hk_plan_parallel(plan, plan->task.geom.groups * o->blocks * o->splits, body, &j);
  return HK_OK;
}
