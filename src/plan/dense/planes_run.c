/* The jobs of planes: a strip of output pixels x some sets of output channels. Everything a job needs lies on its
 * stack; jobs share nothing. */
#include <string.h>

#include "plan/dense/planes.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_planes_own *o;
  const float *packed; /* NULL: pack on the stack */
} job;

typedef struct work {
  const job *j;
  int64_t group, vectors, width, b_step;
  bool stores; /* the kernel stores to y */
  hk_grid grid;
  hk_block block;
  const float *x;
  hk_pgemm_args args;
  int64_t segments;
  hk_pgemm_segment seg[HK_PLANES_SEGMENTS];
  hk_gather_piece piece[HK_PIECES_MAX];
  _Alignas(HK_ALIGN) float scale[HK_PLANES_SET];
  _Alignas(HK_ALIGN) float bias[HK_PLANES_SET];
  _Alignas(HK_ALIGN) float tile[HK_PLANES_TILE];
  _Alignas(HK_ALIGN) float partial[HK_PLANES_PARTIAL];
  _Alignas(HK_ALIGN) float panel[HK_PLANES_PANEL];
} work;

/* The block of `columns` pixels from `first` on: one strip, or several of which the last may be short. */
static void set_block(work *w, int64_t first, int64_t columns) {
  const hk_planes_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  const hk_epi *epi = &w->j->plan->task.epi;
  const int64_t each = o->lanes * o->most;
  w->width = w->b_step = columns > each ? hk_round_up(columns, each) : hk_round_up(columns, o->lanes);
  w->vectors = hk_min64(o->most, w->width / o->lanes);
  hk_block_make(&w->block, &w->grid, first, columns);
  w->stores =
      o->fuse.all && hk_block_adjacent(&w->block, &g->y) && (!epi->e.residual || hk_block_adjacent(&w->block, &epi->c));
}

static hk_strip find_strip(work *w, int64_t index) {
  const hk_planes_own *o = w->j->o;
  const int64_t lanes = o->wide > 1 ? o->lanes * o->most : o->lanes, most = o->wide > 1 ? o->wide : o->most;
  w->grid = hk_grid_find(&w->j->plan->task.geom, lanes * most, &index);
  return hk_strip_get(w->grid.pixels, lanes, most, index);
}

/* Gathers reduction rows from *row on until the panel or the segments are full; *row ends where the next piece begins.
 */
static void gather(work *w, int64_t *row) {
  const hk_geom *g = &w->j->plan->task.geom;
  const int64_t room = HK_PLANES_PANEL / w->width;
  int64_t filled = 0;
  w->segments = 0;
  while (*row < g->gk && filled < room && w->segments < HK_PLANES_SEGMENTS) {
    const int64_t tap = *row / g->c, c = *row % g->c;
    const int64_t count = hk_min64(g->c - c, room - filled);
    int64_t step;
    const int64_t pieces = hk_pieces_make(g, &w->block, tap, w->width, w->piece, &step);
    if (pieces) {
      float *to = w->panel + filled * w->width;
      w->j->o->gather->fn(&(hk_gather_args){.x = w->x + c * g->x.channel,
                                            .channels = count,
                                            .c_step = g->x.channel,
                                            .step = step,
                                            .width = w->width,
                                            .pieces = pieces,
                                            .piece = w->piece,
                                            .to = to});
      hk_pgemm_segment *last = w->segments ? &w->seg[w->segments - 1] : NULL;
      if (last && last->at + last->count == *row) last->count += count; /* the kernel goes on without a stop */
      else w->seg[w->segments++] = (hk_pgemm_segment){to, *row, count};
      filled += count;
    }
    *row += pieces ? count : g->c - c;
  }
}

/* Weights straight from f: one tile of channels at a time is packed as deep as room allows. */
static void run_packing(work *w, int64_t m0, uint32_t flags) {
  const job *j = w->j;
  const hk_geom *g = &j->plan->task.geom;
  const hk_kernel *kernel = j->plan->decision.kernel;
  const hk_pgemm_args whole = w->args;
  for (int64_t m = 0; m < whole.count;) {
    hk_pgemm_args a = whole;
    a.count = hk_tile_rows(whole.count - m, kernel->mr);
    a.scale += m, a.bias += m;
    if (a.y) a.y += m * a.y_step;
    if (a.c) a.c += m * a.c_step;
    a.partial += m * w->width;
    a.a = w->tile;
    const int64_t room = HK_PLANES_TILE / a.count;
    a.depth = room;
    a.flags = flags & HK_IGEMM_RESUME;
    for (int64_t t = 0; t < w->segments; t++) {
      for (int64_t i = 0; i < w->seg[t].count; i += room) {
        const int64_t n = hk_min64(room, w->seg[t].count - i);
        const int64_t row = w->seg[t].at + i;
        const hk_pgemm_segment piece = {w->seg[t].b + i * w->b_step, 0, n};
        const hk_planes_piece now = {m0 + m, a.count, kernel->mr, row, row + n};
        hk_planes_pack(g, (const float *)j->call->f + w->group * g->f.group, &now, w->tile);
        a.seg = &piece;
        a.segments = 1;
        a.flags |= HK_IGEMM_SUSPEND;
        kernel->fn(&a);
        a.flags = HK_IGEMM_RESUME;
      }
    }
    a.segments = 0;
    a.flags |= flags & ~(uint32_t)HK_IGEMM_RESUME;
    kernel->fn(&a);
    m += a.count;
  }
}

/* All strips that the panel holds. */
static void run_panel(work *w) {
  const hk_planes_own *o = w->j->o;
  const hk_kernel *kernel = w->j->plan->decision.kernel;
  const int64_t each = o->lanes * o->most, whole = w->width > each ? w->block.count / each : 0, at = whole * each;
  hk_pgemm_args a = w->args;
  if (whole) {
    a.strips = whole;
    a.columns = each;
    kernel->fn(&a);
    if (at == w->block.count) return;
    a.strips = 1;
    a.columns = w->block.count - at;
    a.vectors = hk_ceil_div(a.columns, o->lanes);
    a.y += at;
    if (a.c) a.c += at;
    for (int64_t t = 0; t < w->segments; t++) w->seg[t].b += at;
  }
  kernel->fn(&a);
  for (int64_t t = 0; whole && t < w->segments; t++) w->seg[t].b -= at;
}

static void run_set(work *w, int64_t m0, bool single) {
  const job *j = w->j;
  const hk_geom *g = &j->plan->task.geom;
  const hk_fuse *fuse = &j->o->fuse;
  const hk_epi *epi = &j->plan->task.epi;
  const int64_t count = hk_min64(j->o->bm, g->k - m0), k = w->group * g->k + m0;
  const hk_run *first = &w->block.run[0];
  w->args = (hk_pgemm_args){.depth = g->gk,
                            .count = count,
                            .b_step = w->b_step,
                            .seg = w->seg,
                            .vectors = w->vectors,
                            .columns = w->block.count,
                            .strips = 1,
                            .beta = fuse->beta,
                            .lo = fuse->lo,
                            .hi = fuse->hi,
                            .scale = w->scale,
                            .bias = w->bias,
                            .c_step = epi->c.channel,
                            .y_step = g->y.channel,
                            .partial = w->partial};
  if (j->packed) w->args.a = j->packed + k * g->gk;
  if (w->stores) {
    w->args.y =
        (float *)j->call->y + w->group * g->y.group + m0 * g->y.channel + hk_run_offset(&w->block, first, &g->y, 0);
    if (epi->e.residual)
      w->args.c = (const float *)j->call->c + w->group * epi->c.group + m0 * epi->c.channel +
                  hk_run_offset(&w->block, first, &epi->c, 0);
    if (fuse->flags & HK_IGEMM_AFFINE) hk_fuse_affine(j->plan, j->call, k, count, count, w->scale, w->bias);
  }
  uint32_t resume = 0;
  for (int64_t row = single ? g->gk : 0;;) {
    if (!single) gather(w, &row);
    const uint32_t last = row < g->gk || !w->stores ? HK_IGEMM_SUSPEND : fuse->flags;
    w->args.segments = w->segments;
    w->args.flags = resume | last;
    if (j->packed) run_panel(w);
    else run_packing(w, m0, w->args.flags);
    resume = HK_IGEMM_RESUME;
    if (row >= g->gk) break;
  }
  if (!w->stores) hk_block_store_planes(j->plan, j->call, &w->block, k, count, w->partial, w->width);
}

static void run_strip(work *w, int64_t split) {
  const hk_planes_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  /* the whole reduction in one panel: gathered once for all sets */
  const bool single = g->gk <= HK_PLANES_PANEL / w->width && g->taps <= HK_PLANES_SEGMENTS;
  int64_t row = 0;
  if (single) gather(w, &row);
  for (int64_t s = split * o->bs; s < hk_min64(o->groups_m, (split + 1) * o->bs); s++) run_set(w, s * o->bm, single);
}

static void body(void *context, int64_t i) {
  work w;
  const job *j = w.j = context;
  const hk_planes_own *o = j->o;
  const int64_t split = i % o->splits, each = o->lanes * o->most;
  w.group = i / o->splits / o->strips;
  w.x = (const float *)j->call->x + w.group * j->plan->task.geom.x.group;
  const hk_strip s = find_strip(&w, i / o->splits % o->strips);
  set_block(&w, s.first, s.columns);
  if (w.stores || s.columns <= each) {
    run_strip(&w, split);
    return;
  }
  for (int64_t at = 0; at < s.columns; at += each) { /* images end within: one strip after the other */
    set_block(&w, s.first + at, hk_min64(each, s.columns - at));
    run_strip(&w, split);
  }
}

hk_status hk_planes_run(const hk_plan *plan, const hk_call *call) {
  const hk_planes_own *o = plan->own;
  const int64_t pack = plan->decision.knob[HK_PLANES_PACK];
  job j = {plan, call, o, NULL};
  if (plan->task.f_now) {
    j.packed = plan->packed->f;
  } else if (pack == HK_PACK_WHOLE) {
    j.packed = (const float *)call->workspace;
    hk_planes_pack_all(plan, (const float *)call->f, (float *)call->workspace);
  }
  if (plan->decision.knob[HK_PLANES_FLAT]) hk_planes_run_flat(plan, call, j.packed);
  else hk_plan_parallel(plan, plan->task.geom.groups * o->strips * o->splits, body, &j);
  return HK_OK;
}
