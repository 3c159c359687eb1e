/* The jobs of igemm: a block of pixels x some panels. Everything a job needs lies on its stack; nothing is allocated,
 * and jobs share nothing, so any number of threads gives the same bits. */
#include <string.h>

#include "plan/dense/igemm.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_igemm_own *o;
  const float *packed; /* NULL: pack on the stack */
} job;

typedef struct work {
  const job *j;
  int64_t group, pass, kept, width; /* width: of the panel at hand */
  hk_kernel_fn kernel;              /* of that panel */
  hk_grid grid;
  hk_rows rows;
  const float *x;
  hk_igemm_args args;
  hk_block block;
  int32_t groups, end[HK_BLOCK_MAX]; /* pixels whose tiles must not be mixed */
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
  w->grid = hk_grid_find(g, bm, &index);
  hk_block_make(&w->block, &w->grid, index * bm, hk_min64(bm, w->grid.pixels - index * bm));
  if (w->j->o->cuts.columns) w->groups = hk_block_group(&w->j->o->cuts, &w->block, w->end);
}

/* The kernel over each group of the block's pixels. */
static void run_groups(work *w) {
  const hk_igemm_args whole = w->args;
  const int64_t width = w->width;
  for (int64_t i = 0, from = 0; i < w->groups; from = w->end[i++]) {
    w->args.rows = whole.rows + from;
    w->args.count = w->end[i] - from;
    w->args.y = whole.y + from;
    w->args.c = whole.c + from;
    w->args.partial = whole.partial + from * width;
    w->kernel(&w->args);
  }
  const uint32_t flags = w->args.flags;
  w->args = whole;
  w->args.flags = flags;
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
    for (int32_t m = 0; c && m < r->count; m++) w->c_rows[r->m + m] = c + hk_run_offset(&w->block, r, &epi->c, m);
  }
}

/* The activation that kernels do not know, over rows of y that panels p0..p1-1 have stored; y is channel 0 of the
 * group. */
static void finish_rows(const work *w, float *y, int64_t step, int64_t rows, int64_t p0, int64_t p1) {
  const hk_igemm_own *o = w->j->o;
  if (o->fuse.late == HK_ACT_NONE) return;
  const int64_t first = hk_panels_get(&o->panels, p0).first;
  const hk_panel last = hk_panels_get(&o->panels, p1 - 1);
  hk_fuse_late(w->j->plan, &o->fuse, w->group * w->j->plan->task.geom.k + first, last.first + last.columns - first,
               y + first, step, rows);
}

/* A finished panel of the block, [pixel][channel] in `partial`, to the planes of y. */
static void transpose_panel(const work *w, const hk_panel *p, int64_t width) {
  const hk_geom *g = &w->j->plan->task.geom;
  float *y = (float *)w->j->call->y + w->group * g->y.group + p->first * g->y.channel;
  hk_transpose_args a = {.from_step = width, .to_step = g->y.channel, .columns = p->columns};
  const bool whole = hk_block_adjacent(&w->block, &g->y);
  for (int32_t i = 0; i < (whole ? 1 : w->block.runs); i++) {
    const hk_run *r = &w->block.run[i];
    a.from = w->partial + r->m * width;
    a.to = y + hk_run_offset(&w->block, r, &g->y, 0);
    a.rows = whole ? w->block.count : r->count;
    w->j->o->transpose->fn(&a);
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
  hk_igemm_args *a = &w->args;
  const int64_t piece = HK_IGEMM_SCRATCH / w->width;
  static const int64_t from_start = 0;
  a->f = w->scratch;
  a->seg = &from_start;
  a->segments = 1;
  for (int64_t t = 0; t < w->kept; t++) {
    for (int64_t c = 0; c < cl; c += piece) {
      a->channels = hk_min64(piece, cl - c);
      a->x_at = c0 + c;
      a->rows = w->table + t * w->rows.step;
      const hk_geom *g = &w->j->plan->task.geom;
      const hk_panel_piece now = {w->tap[t], w->tap[t] + 1, a->x_at, a->channels};
      hk_panel_pack(g, p, (const float *)w->j->call->f + w->group * g->f.group, &now, w->scratch);
      a->flags |= HK_IGEMM_SUSPEND;
      run_groups(w);
      a->flags |= HK_IGEMM_RESUME;
    }
  }
  a->segments = 0; /* the epilogue of what was summed */
  a->flags = (a->flags & HK_IGEMM_RESUME) | last;
  if (!(last & HK_IGEMM_SUSPEND) || !(a->flags & HK_IGEMM_RESUME)) run_groups(w);
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
  run_groups(w);
}

/* One panel: the reduction in blocks of channels, then of taps; sums are carried from piece to piece exactly. */
static void run_panel(work *w, const hk_panel *p) {
  const hk_igemm_own *o = w->j->o;
  const hk_fuse *fuse = &o->fuse;
  const hk_plan *plan = w->j->plan;
  const int64_t k = w->group * plan->task.geom.k + p->first, width = p->vectors * p->lanes;
  w->width = width;
  w->kernel = (p->dot && !o->panels.dot ? o->dot : plan->decision.kernel)->fn;
  w->args = (hk_igemm_args){.zeros = o->zeros,
                            .row_step = w->rows.step,
                            .count = w->block.count,
                            .y_at = p->first,
                            .prefetch = o->ahead,
                            .vectors = p->vectors,
                            .columns = p->columns,
                            .beta = fuse->beta,
                            .lo = fuse->lo,
                            .hi = fuse->hi,
                            .scale = w->scale,
                            .bias = w->bias,
                            .c = w->c_rows,
                            .y = w->y_rows,
                            .partial = w->partial};
  if (fuse->flags & HK_IGEMM_AFFINE) hk_fuse_affine(plan, w->j->call, k, p->columns, width, w->scale, w->bias);
  if (o->transpose) { /* a tile's results take the place of its own partial sums */
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
  if (o->transpose) transpose_panel(w, p, width);
  else if (!fuse->all) hk_block_store(plan, w->j->call, &w->block, k, p->columns, w->partial, width);
}

/* One panel of rows at a constant stride, the whole reduction at once. */
static void run_even(work *w, const hk_panel *p, const hk_igemm_line *line, int64_t count, int64_t segments,
                     const int64_t *seg) {
  const hk_igemm_own *o = w->j->o;
  const hk_fuse *fuse = &o->fuse;
  w->args = (hk_igemm_args){.line = line,
                            .count = count,
                            .segments = segments,
                            .channels = o->channels,
                            .y_at = p->first,
                            .seg = seg,
                            .f = w->j->packed + hk_panels_at(&o->panels, w->group, p),
                            .prefetch = o->ahead,
                            .vectors = p->vectors,
                            .columns = p->columns,
                            .flags = fuse->flags,
                            .beta = fuse->beta,
                            .lo = fuse->lo,
                            .hi = fuse->hi,
                            .scale = w->scale,
                            .bias = w->bias};
  (p->dot ? o->dot : w->j->plan->decision.kernel)->fn(&w->args);
}

static void even_affine(work *w, const hk_panel *p) {
  const int64_t k = w->group * w->j->plan->task.geom.k + p->first;
  if (w->j->o->fuse.flags & HK_IGEMM_AFFINE)
    hk_fuse_affine(w->j->plan, w->j->call, k, p->columns, p->vectors * p->lanes, w->scale, w->bias);
}

static void run_flat(work *w, int64_t index, int64_t p0, int64_t p1) {
  const hk_igemm_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  const hk_epi *epi = &w->j->plan->task.epi;
  const int64_t m0 = index * o->bm, start = 0;
  hk_igemm_line line = {.x = w->x + m0 * g->x.at[2],
                        .x_step = g->x.at[2],
                        .y = (float *)w->j->call->y + w->group * g->y.group + m0 * g->y.at[2],
                        .y_step = g->y.at[2],
                        .x_seg = &start,
                        .c_step = epi->c.at[2]};
  if (epi->e.residual) line.c = (const float *)w->j->call->c + w->group * epi->c.group + m0 * epi->c.at[2];
  for (int64_t p = p0; p < p1; p++) {
    const hk_panel panel = hk_panels_get(&o->panels, p);
    even_affine(w, &panel);
    run_even(w, &panel, &line, hk_min64(o->bm, g->gm - m0), 1, &start);
  }
  finish_rows(w, line.y, g->y.at[2], hk_min64(o->bm, g->gm - m0), p0, p1);
}

/* What one output line reads and writes between its ends. */
typedef struct even_line {
  hk_igemm_line at;
  int64_t kept, x_seg[HK_EVEN_ROWS], seg[HK_EVEN_ROWS];
} even_line;

static void make_line(const work *w, const hk_run *r, even_line *l) {
  const hk_igemm_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  const hk_epi *epi = &w->j->plan->task.epi;
  const int64_t y = r->n * g->y.outer + r->p[0] * g->y.at[0] + r->p[1] * g->y.at[1] + o->q0 * g->y.at[2];
  const int64_t c = r->n * epi->c.outer + r->p[0] * epi->c.at[0] + r->p[1] * epi->c.at[1] + o->q0 * epi->c.at[2];
  l->at = (hk_igemm_line){.x = w->x + hk_geom_source(g, 2, o->q0, 0) * g->c,
                          .x_seg = l->x_seg,
                          .x_step = g->stride[2] * g->c,
                          .y = (float *)w->j->call->y + w->group * g->y.group + y,
                          .y_step = g->y.at[2],
                          .c_step = epi->c.at[2]};
  if (epi->e.residual) l->at.c = (const float *)w->j->call->c + w->group * epi->c.group + c;
  l->kept = 0;
  for (int64_t a = 0; a < g->win[0]; a++)
    for (int64_t b = 0; b < g->win[1]; b++) {
      if (!hk_line_offset(g, r, a, b, &l->x_seg[l->kept])) continue;
      l->seg[l->kept++] = (a * g->win[1] + b) * o->channels;
    }
}

/* A block of output lines: between their ends without tables, then all ends as one block with tables. */
static void run_lines(work *w, int64_t index, int64_t p0, int64_t p1) {
  const hk_igemm_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  even_line line[HK_EVEN_MOST];
  const int64_t first = index * o->lines, count = hk_min64(o->lines, g->gm / g->out[2] - first);
  w->grid = hk_grid_get(g, 0);
  hk_block *b = &w->block;
  *b = (hk_block){.grid = &w->grid};
  for (int64_t i = 0; i < count; i++) {
    hk_block one;
    hk_block_make(&one, &w->grid, (first + i) * g->out[2], 1);
    hk_run r = one.run[0];
    make_line(w, &r, &line[i]);
    const int64_t end[2][2] = {{0, o->q0}, {o->q1, g->out[2]}};
    for (int e = 0; e < 2; e++) {
      if (end[e][0] == end[e][1]) continue;
      r.p[2] = end[e][0], r.m = b->count, r.count = (int32_t)(end[e][1] - end[e][0]);
      b->count += r.count;
      b->run[b->runs++] = r;
    }
  }
  w->rows.step = b->count;
  w->end[0] = b->count;
  if (b->count) output_rows(w), make_rows(w, 0);
  for (int64_t p = p0; p < p1; p++) {
    const hk_panel panel = hk_panels_get(&o->panels, p);
    even_affine(w, &panel);
    for (int64_t i = 0; i < count; i++) run_even(w, &panel, &line[i].at, o->q1 - o->q0, line[i].kept, line[i].seg);
    if (b->count) run_panel(w, &panel);
  }
  for (int64_t i = 0; i < count; i++) finish_rows(w, line[i].at.y, g->y.at[2], o->q1 - o->q0, p0, p1);
  for (int32_t m = 0; m < b->count; m++) finish_rows(w, w->y_rows[m], 0, 1, p0, p1);
}

static void body(void *context, int64_t i) {
  work w;
  const job *j = w.j = context;
  const hk_igemm_own *o = j->o;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t split = i % o->splits, block = i / o->splits % o->blocks;
  w.group = i / o->splits / o->blocks;
  w.x = (const float *)j->call->x + w.group * g->x.group;
  const int64_t p0 = split * o->bn, p1 = hk_min64(o->panels.count, (split + 1) * o->bn);
  w.rows = (hk_rows){.table = w.table, .tap = w.tap, .zeros = o->zeros};
  w.pass = o->segments;
  w.groups = 1;
  if (o->flat) {
    run_flat(&w, block, p0, p1);
    return;
  }
  if (o->lines) {
    run_lines(&w, block, p0, p1);
    return;
  }
  find_block(&w, block);
  if (!o->cuts.columns) w.end[0] = w.block.count;
  w.rows.step = w.block.count;
  w.pass = hk_min64(HK_IGEMM_TAPS, HK_IGEMM_TABLE / w.block.count);
  if (o->fuse.all && !o->transpose) output_rows(&w);
  if (w.pass >= o->segments) make_rows(&w, 0);
  for (int64_t p = p0; p < p1; p++) {
    const hk_panel panel = hk_panels_get(&o->panels, p);
    run_panel(&w, &panel);
  }
  for (int32_t m = 0; m < w.block.count; m++) finish_rows(&w, w.y_rows[m], 0, 1, p0, p1);
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
