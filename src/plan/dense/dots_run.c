/* The jobs of dots: a block of pixels x some panels. Everything a job needs lies on its stack; nothing is allocated,
 * and jobs share nothing, so any number of threads gives the same bits. */
#include "plan/dense/dots.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_dots_own *o;
  const char *packed;
} job;

typedef struct work {
  const job *j;
  int64_t group, pass;
  const char *x;
  hk_grid grid;
  hk_block block;
  int32_t groups, end[HK_BLOCK_MAX]; /* pixels whose tiles must not be mixed */
  int64_t seg[HK_DOTS_TAPS];
  hk_dots_rows rows;
  _Alignas(HK_ALIGN) float sums[HK_DOTS_SUMS];
  _Alignas(HK_ALIGN) int32_t x_sums[16 * HK_BLOCK_MAX]; /* one vector per pixel */
} work;

static void make_rows(work *w, int64_t t0) {
  const hk_dots_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  const int64_t t1 = hk_min64(o->layout.segments, t0 + w->pass);
  hk_dots_rows_make(g, o, &w->block, w->x, t0, t1, &w->rows);
  for (int64_t t = 0; t < w->rows.kept; t++) w->seg[t] = w->rows.tap[t] * o->layout.panels.c;
}

/* The sums of a block with so many vectors of packed f. */
static void sum_block(work *w, const char *f, int64_t vectors, void *sums) {
  const hk_dots_own *o = w->j->o;
  const hk_kernel *kernel = w->j->plan->decision.kernel;
  const int64_t width = vectors * o->layout.panels.lanes;
  hk_dots_args a = {.zeros = w->rows.all ? NULL : o->zeros,
                    .row_step = w->rows.step,
                    .channels = o->layout.channels,
                    .seg = w->seg,
                    .f = f,
                    .vectors = vectors,
                    .x_signed = o->q.x_signed};
  for (int64_t t0 = 0; t0 < o->layout.segments; t0 += w->pass) {
    if (w->pass < o->layout.segments) make_rows(w, t0);
    a.segments = w->rows.kept;
    a.resume = t0 > 0;
    for (int64_t i = 0, from = 0; i < w->groups; from = w->end[i++]) {
      a.rows = w->rows.table + from;
      a.count = w->end[i] - from;
      a.sums = (float *)sums + from * width;
      kernel->fn(&a);
    }
  }
}

static void run_panel(work *w, const hk_panel *p) {
  const hk_dots_own *o = w->j->o;
  const hk_plan *plan = w->j->plan;
  const hk_dots_layout *l = &o->layout;
  sum_block(w, w->j->packed + hk_panels_at(&l->panels, w->group, p) * 4, p->vectors, w->sums);
  const hk_dots_panel to = {.plan = plan,
                            .call = w->j->call,
                            .block = &w->block,
                            .k = w->group * plan->task.geom.k + p->first,
                            .columns = p->columns,
                            .width = p->vectors * p->lanes,
                            .f_sums = (const int32_t *)(const void *)(w->j->packed + l->f_bytes) +
                                      w->group * l->columns + p->first,
                            .x_sums = o->q.window ? w->x_sums : NULL,
                            .x_sums_step = l->panels.lanes,
                            .sums = w->sums};
  hk_dots_store_panel(o, &to);
}

static void body(void *context, int64_t i) {
  work w;
  const job *j = w.j = context;
  const hk_dots_own *o = j->o;
  const hk_geom *g = &j->plan->task.geom;
  const hk_dots_layout *l = &o->layout;
  const int64_t split = i % o->splits, p1 = hk_min64(l->panels.count, (split + 1) * o->bn);
  int64_t block = i / o->splits % o->blocks;
  w.group = i / o->splits / o->blocks;
  w.x = j->call->x + w.group * g->x.group * o->bytes;
  w.grid = hk_grid_find(g, o->bm, &block);
  hk_block_make(&w.block, &w.grid, block * o->bm, hk_min64(o->bm, w.grid.pixels - block * o->bm));
  w.groups = 1;
  w.end[0] = w.block.count;
  if (o->cuts.columns) w.groups = hk_block_group(&o->cuts, &w.block, w.end);
  w.rows.step = w.block.count;
  w.rows.all = o->q.on && o->q.u_zero;
  w.pass = hk_min64(HK_DOTS_TAPS, HK_DOTS_TABLE / w.block.count);
  if (w.pass >= l->segments) make_rows(&w, 0);
  if (o->q.window) sum_block(&w, j->packed + l->f_bytes + l->sums_bytes, 1, w.x_sums);
  for (int64_t p = split * o->bn; p < p1; p++) {
    const hk_panel panel = hk_panels_get(&l->panels, p);
    run_panel(&w, &panel);
  }
}

hk_status hk_dots_run(const hk_plan *plan, const hk_call *call) {
  const hk_dots_own *o = plan->own;
  job j = {plan, call, o, plan->packed->f};
  if (!plan->task.f_now) {
    hk_dots_pack(plan, &o->layout, o->q.f_shift, call->f, call->workspace);
    j.packed = call->workspace;
  }
  hk_plan_parallel(plan, plan->task.geom.groups * o->blocks * o->splits, body, &j);
  return HK_OK;
}
