/* dots: dense convolution of bf16, and of 8-bit integers, by instructions that multiply and add a group of adjacent
 * channels at once (VDPBF16PS: 2, VPDPBUSD: 4). As igemm: rows of pixels by pointer, packed panels of output channels,
 * (group, block of bm pixels, bn panels) are the jobs; the kernel leaves the sums of a block and panel in L1, from
 * where they are stored while they are hot. x is read as it lies: no copy, no workspace. Sums are f32 or, exact, s32;
 * what is between groups of channels never meets: the last group of a pixel is read no further than the pixel goes. Any
 * rank, stride, padding, dilation, input dilation, groups and y; refuses channels of x that are not adjacent, gates and
 * streaming state. bf16 kernels count denormals as zero. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/dots.h"

static bool is_bf16(const hk_kernel *k) { return k->x_type == HK_BF16; }

static bool can_merge(const hk_task *t) {
  const hk_geom *g = &t->geom;
  return !t->padded_nonfinite && hk_rows_mergeable(g) &&
         g->gk * (int64_t)hk_type_bytes(g->x_type) * 8 <= HK_DOTS_SCRATCH;
}

/* Windows of few channels are joined along the row: a tap of its own costs a tile as much as several groups. */
static bool merge_pays(const hk_task *t) {
  return can_merge(t) && t->geom.c * (int64_t)hk_type_bytes(t->geom.x_type) <= 16;
}

static bool needs_zeros(const hk_geom *g) {
  return hk_geom_leaves(g, 0) || hk_geom_leaves(g, 1) || hk_geom_leaves(g, 2);
}

/* A zero point that all of u * w and its sums keep: see hk_dots_int. */
static hk_dots_int integers_of(const hk_task *t, const hk_kernel *kernel, const int32_t *f_zero) {
  const hk_geom *g = &t->geom;
  hk_dots_int q = {.on = g->acc_type == HK_S32};
  if (!q.on) return q;
  q.x_signed = g->x_type == HK_S8;
  q.u_zero = g->x_zero + (q.x_signed && kernel->isa != HK_ISA_AMX ? 128 : 0);
  q.f_shift = g->f_type == HK_U8 ? 128 : 0;
  q.window = !f_zero && g->f_zero != q.f_shift;
  for (int64_t k = 0; f_zero && k < g->k * g->groups; k++) q.window |= f_zero[k] != q.f_shift;
  return q;
}

/* The family that stores sums. */
static hk_family finishes(const hk_kernel *k) { return is_bf16(k) ? HK_FAMILY_FINISH : HK_FAMILY_REQUANT; }

static bool applies(const hk_task *t, const hk_kernel *k, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (is_bf16(k) && (g->x_type != HK_BF16 || g->f_type != HK_BF16 || g->acc_type != HK_F32))
    no = "x and f must be bf16";
  else if (!is_bf16(k) && g->acc_type != HK_S32) no = "x and f must be int8";
  else if (is_bf16(k) && t->options.denormals == HK_DENORMALS_EXACT)
    no = "bf16 dot products count denormals as zero, and options.denormals is exact";
  else if (!hk_kernel_best(finishes(k), k->isa)) no = "this build has no kernel that finishes its sums";
  else if (g->x.channel != 1 && g->c > 1) no = "the channels of x must be adjacent";
  else if (t->epi.e.gate) no = "a gate needs both halves of a channel pair in one tile";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0 || g->in[0] * g->in[1] * g->in[2] == 0) no = "x, f or y is empty";
  else if (needs_zeros(g) && g->c > HK_TABLE_BYTES) no = "a row of zeros for the padding would take more than 16 MiB";
  else if (t->padded_nonfinite && !hk_cuts_make(g, true).exact)
    no = "weights hold Inf or NaN, and the taps inside x change too often";
  return !no || hk_refuse(why, no);
}

static int64_t most_pixels(const hk_task *t, const hk_decision *d, const hk_dots_layout *l) {
  int64_t bm = hk_min64(HK_BLOCK_MAX, HK_DOTS_SUMS / d->kernel->nr);
  bm = hk_min64(bm, hk_max64(8, HK_DOTS_TABLE / l->segments));
  if (d->knob[HK_DOTS_MERGE])
    bm = hk_min64(bm, HK_DOTS_SCRATCH / (t->geom.gk * (int64_t)hk_type_bytes(t->geom.x_type)));
  return hk_max64(bm, 1);
}

/* Cycles of the store of all sums. */
static void count_store(const hk_task *t, hk_work *w, double panels) {
  const hk_geom *g = &t->geom;
  const double values = (double)(g->groups * g->gm) * (double)g->k, rows = (double)(g->groups * g->gm) * panels;
  switch (hk_dots_choose_store(t)) {
  case HK_DOTS_FINISH_PLANES: w->cycles += values * 0.7 + 5 * rows; return;
  case HK_DOTS_FINISH: w->cycles += values * 0.3 + 5 * rows; return;
  case HK_DOTS_REQUANT: w->cycles += values * 0.6 + 5 * rows; return;
  case HK_DOTS_REQUANT_PLANES: w->cycles += values * 0.9 + 5 * rows; return;
  case HK_DOTS_DOUBLES: w->values += 40 * values; return;
  case HK_DOTS_ROWS: hk_work_store(w, t, true, rows); return;
  case HK_DOTS_PLANES:
    w->cycles += values;
    hk_work_store(w, t, false, rows / 2);
    return;
  }
}

/* Groups of 32 bits are to these kernels what channels are to igemm's: a tile costs as one of igemm does. */
static hk_work vector_work(const hk_task *t, const hk_decision *d, const hk_dots_layout *l) {
  const hk_geom *g = &t->geom;
  const double pixels = (double)(g->groups * g->gm), lanes = (double)l->panels.lanes;
  double groups = 2.0 * pixels * (double)l->columns * (double)(l->segments * l->panels.c);
  if (d->knob[HK_DOTS_CUTS]) groups *= hk_geom_inside(g);
  const double held = (double)(d->kernel->mr * d->kernel->nr) / lanes;
  const double rows = fmin(floor(held * (double)l->panels.count / (double)l->panels.vectors), 12);
  const double tiles = pixels / rows * (double)l->panels.count, segments = (double)l->segments;
  hk_work w = {.products = groups / hk_cost_peak(d->kernel->isa), .cycles = tiles * (20 + 14 * segments)};
  if (l->channels % l->each) w.cycles += tiles * segments * rows * 2;
  return w;
}

/* A product of tiles takes a cycle per row of x, however few groups a step has. Tiles whose pixels are not at one
 * distance are copied, as are steps beyond the last channel: 45 cycles per row, 170 where a group is not full (Emerald
 * Rapids: int8 of 96 channels, a 7x7 stem). */
static hk_work tile_work(const hk_task *t, const hk_dots_layout *l) {
  const hk_geom *g = &t->geom;
  const double pixels = (double)(g->groups * g->gm), pairs = (double)hk_ceil_div(l->panels.vectors, 2);
  const double steps = (double)l->segments * (double)hk_ceil_div(l->panels.c, 16);
  const double copied = g->taps > 1 ? fmin(1, 32.0 / (double)g->out[2]) : 0;
  hk_work w = {.products = pixels * (double)l->panels.vectors * steps / hk_cost_clock()};
  const double rest = l->channels % l->each ? 170 : l->panels.c % 16 ? 45 : 0.5;
  w.cycles = pixels * pairs * ((double)l->segments * rest + steps * copied) + 400 * pixels / 128;
  return w;
}

static double predict(const hk_task *t, const hk_decision *d, const hk_dots_layout *l) {
  const hk_geom *g = &t->geom;
  const bool tiles = d->kernel->isa == HK_ISA_AMX, dilated = g->in_dil[0] * g->in_dil[1] * g->in_dil[2] != 1;
  const double blocks = (double)(g->groups * hk_ceil_div(g->gm, d->knob[HK_DOTS_BM]));
  const double segments = (double)l->segments, bm = (double)d->knob[HK_DOTS_BM];
  const double outside = dilated ? 0 : 1 - hk_geom_inside(g);
  hk_work w = tiles ? tile_work(t, l) : vector_work(t, d, l);
  w.moved = hk_cost_move(g->bytes, g->bytes);
  w.cycles += blocks * (400 + (1.2 + hk_cost_here()->outside * outside) * segments * bm);
  count_store(t, &w, (double)l->panels.count);
  if (!t->f_now) w.seconds = 2.0 * (double)(g->groups * g->k) * (double)g->gk / hk_cost_clock();
  const hk_cost_machine *m = hk_cost_here();
  const int64_t jobs =
      g->groups * hk_ceil_div(g->gm, d->knob[HK_DOTS_BM]) * hk_ceil_div(l->panels.count, d->knob[HK_DOTS_BN]);
  return hk_cost_seconds(tiles ? &m->tiles : is_bf16(d->kernel) ? &m->dots16 : &m->dots8, &w, jobs, t->threads);
}

/* Zen 5: 14 x 14 with padding 1 gains 4 %, 28 x 28 nothing, 56 x 56 loses 2 %. Tiles of AMX are large, and hold pixels
 * with other taps too; rows of x_zero cannot be left out; planes of y are written by pixels in their order. */
static bool cuts_pay(const hk_task *t, const hk_kernel *kernel) {
  return t->geom.taps > 1 && t->geom.acc_type != HK_S32 && kernel->isa != HK_ISA_AMX &&
         hk_dots_choose_store(t) != HK_DOTS_FINISH_PLANES && hk_geom_inside(&t->geom) < 0.94;
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  int64_t *k = d->knob;
  if (k[HK_DOTS_MERGE] < 0) k[HK_DOTS_MERGE] = merge_pays(t);
  if (k[HK_DOTS_MERGE] && !can_merge(t))
    return hk_refuse(why, "merge = 1 needs finite weights and window rows adjacent in x, of 4 KiB at most together");
  if (k[HK_DOTS_CUTS] < 0)
    k[HK_DOTS_CUTS] = (t->padded_nonfinite || (!k[HK_DOTS_MERGE] && cuts_pay(t, d->kernel))) &&
                      hk_cuts_make(g, t->padded_nonfinite).columns > 0;
  if (k[HK_DOTS_CUTS] && k[HK_DOTS_MERGE]) return hk_refuse(why, "cuts must be 0 where merge is 1");
  if (!k[HK_DOTS_CUTS] && t->padded_nonfinite && hk_cuts_make(g, true).columns)
    return hk_refuse(why, "weights hold Inf or NaN: cuts must be 1");
  const hk_dots_layout l = hk_dots_layout_of(g, d->kernel, k[HK_DOTS_MERGE]);
  const int64_t most = most_pixels(t, d, &l);
  if (k[HK_DOTS_BM] > most) {
    snprintf(why, HK_REASON, "bm = %lld must be 1..%lld here", (long long)k[HK_DOTS_BM], (long long)most);
    return false;
  }
  d->workspace_bytes = t->f_now ? 0 : (size_t)hk_round_up((int64_t)(l.f_bytes + l.sums_bytes + l.ones_bytes), HK_ALIGN);
  d->predicted_s = predict(t, d, &l);
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!applies(t, d->kernel, why)) return false;
  d->knob[HK_DOTS_MERGE] = merge_pays(t);
  d->knob[HK_DOTS_CUTS] = HK_KNOB_AUTO;
  const hk_dots_layout l = hk_dots_layout_of(g, d->kernel, d->knob[HK_DOTS_MERGE]);
  const int64_t grid = hk_max64(1, g->gm / hk_grid_count(g)), most = most_pixels(t, d, &l);
  const bool tiles = d->kernel->isa == HK_ISA_AMX;
  const int64_t row = tiles ? 16 : d->kernel->mr;
  int64_t wide = hk_min64(most, tiles ? 128 : 96), jobs = hk_ceil_div(grid, wide) * hk_grid_count(g) * g->groups;
  /* all panels of all blocks must keep the threads busy; blocks of fewer than 32 pixels would pack too little work */
  for (; t->threads > 1 && jobs * l.panels.count < 2 * t->threads && wide >= 64; wide /= 2)
    jobs = hk_ceil_div(grid, wide / 2) * hk_grid_count(g) * g->groups;
  const int64_t each = hk_ceil_div(grid, hk_ceil_div(grid, wide));
  d->knob[HK_DOTS_BM] = hk_min64(most, g->taps > 1 && !tiles ? each : hk_round_up(each, row));
  d->knob[HK_DOTS_BN] = l.panels.count;
  if (t->threads > 1 && jobs < 8 * t->threads)
    d->knob[HK_DOTS_BN] = hk_max64(1, l.panels.count / hk_ceil_div(8 * t->threads, jobs));
  return finish(t, d, why);
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  static const int64_t mul[] = {1, 1, 2}, div[] = {2, 4, 1};
  char why[HK_REASON];
  *d = *base;
  if (index >= HK_COUNT(mul)) return false;
  const hk_dots_layout l = hk_dots_layout_of(&t->geom, d->kernel, d->knob[HK_DOTS_MERGE]);
  const int64_t bm = base->knob[HK_DOTS_BM] * mul[index] / div[index];
  d->knob[HK_DOTS_BM] = hk_max64(1, hk_min64(bm, most_pixels(t, d, &l)));
  return finish(t, d, why);
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  return applies(t, d->kernel, why) && finish(t, d, why);
}

/* The family that brings rows of sums, or of y, into planes. */
static hk_family transposes(hk_dots_store store, hk_type y) {
  const size_t bytes = hk_type_bytes(y);
  const bool finished = store == HK_DOTS_FINISH_PLANES || store == HK_DOTS_REQUANT_PLANES;
  if (!finished || bytes == 4) return HK_FAMILY_TRANSPOSE;
  return bytes == 2 ? HK_FAMILY_TRANSPOSE16 : HK_FAMILY_TRANSPOSE8;
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  const hk_geom *g = &t->geom;
  const hk_kernel *kernel = plan->decision.kernel;
  const int64_t *k = plan->decision.knob;
  hk_dots_own *o = hk_alloc_zero(sizeof *o);
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  plan->own = o;
  o->merged = k[HK_DOTS_MERGE];
  o->layout = hk_dots_layout_of(g, kernel, o->merged);
  o->q = integers_of(t, kernel, plan->packed->f_zero);
  o->store = hk_dots_choose_store(t);
  o->fuse = hk_dots_fuse(t);
  o->finish = hk_kernel_best(finishes(kernel), kernel->isa);
  o->transpose = hk_kernel_best(transposes(o->store, g->y_type), plan->task.isa);
  o->bytes = (int64_t)hk_type_bytes(g->x_type);
  o->bm = k[HK_DOTS_BM], o->bn = k[HK_DOTS_BN];
  o->splits = hk_ceil_div(o->layout.panels.count, o->bn);
  o->blocks = hk_grid_pieces(g, o->bm);
  if (k[HK_DOTS_CUTS]) o->cuts = hk_cuts_make(g, t->padded_nonfinite);
  if (needs_zeros(g)) {
    const size_t bytes = (size_t)(o->layout.channels * o->bytes);
    o->zeros = hk_alloc(bytes);
    if (!o->zeros) return hk_fail(HK_NO_MEMORY, "no memory for a row of zeros");
    memset(o->zeros, g->x_zero, bytes);
  }
  char *to;
  const int64_t layout[] = {o->layout.panels.count, o->merged};
  const int64_t bytes = (int64_t)(o->layout.f_bytes + o->layout.sums_bytes + o->layout.ones_bytes);
  const hk_status s = hk_plan_pack_room(plan, bytes, sizeof *to, layout, HK_COUNT(layout), &to);
  if (to) hk_dots_pack(plan, &o->layout, o->q.f_shift, plan->raw_f, to);
  return s;
}

static void destroy(hk_plan *plan) {
  hk_dots_own *o = plan->own;
  if (o) hk_free(o->zeros);
  hk_free(o);
}

static void trace(const hk_plan *plan, hk_text *t) {
  static const char *const stores[] = {"finish_planes", "finish", "requant", "requant_planes",
                                       "rows",          "planes", "doubles"};
  const hk_dots_own *o = plan->own;
  hk_text_add(t, " panels=%lld vectors=%lld merged=%d segments=%lld cuts=%dx%dx%d blocks=%lld splits=%lld store=%s",
              (long long)o->layout.panels.count, (long long)o->layout.panels.vectors, o->merged,
              (long long)o->layout.segments, o->cuts.planes, o->cuts.lines, o->cuts.columns, (long long)o->blocks,
              (long long)o->splits, stores[o->store]);
  hk_text_add(t, " windows=%d finish=%s transpose=%s", o->q.window, o->finish->name, o->transpose->name);
}

const hk_algo hk_algo_dots = {
    .name = "dots",
    .summary =
        "bf16 and int8 by dot-product instructions: igemm's loops over groups of adjacent channels, x read as it "
        "lies, sums in f32 or exact in s32",
    .knobs = {HK_KNOB_OF("bm", POSITIONS), HK_KNOB_OF("bn", K), HK_KNOB_ORDER("merge", 0, 1),
              HK_KNOB_DERIVED("cuts", 0, 1)},
    .family = HK_FAMILY_DOTS,
    .device = HK_CPU,
    .skips_padding = true,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = hk_dots_run,
    .destroy = destroy,
    .trace = trace};
