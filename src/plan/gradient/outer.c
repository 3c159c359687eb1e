/* outer: outer products of channels of x and output channels of f, summed over the images and positions of the window
 * (outer.h). Made for the gradient of a filter, whose window is dy: a long sum per output and few positions of y. Any
 * rank, stride, padding, dilation of both, groups and layout; f32, f16 and bf16. Channels that are adjacent (n of x, k
 * of f) are read in place, others are packed box by box, so the working set stays in L2. Refuses gates and state. */
#include "plan/gradient/outer.h"

#include <math.h>

#include "cost/cost.h"

#define SLICES 16    /* most slices */
#define MAX_POINTS 4 /* positions of y per position of the window, at most */

static bool float_type(hk_type t) { return t == HK_F32 || t == HK_F16 || t == HK_BF16; }

static bool supported(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (!float_type(g->x_type) || !float_type(g->f_type) || g->acc_type != HK_F32)
    no = "x and f must be f32, f16 or bf16";
  else if (t->epi.e.gate) no = "a gate needs both halves of a channel pair in one tile";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "x, f or y is empty";
  else if (g->taps * MAX_POINTS < g->pixels) no = "y has more than 4 positions per position of the window";
  return !no || hk_refuse(why, no);
}

static bool mergeable(const hk_task *t) {
  const hk_geom *g = &t->geom;
  return g->out[2] > 1 && g->stride[2] == 1 && g->in_dil[2] == 1 && !t->padded_nonfinite;
}

hk_outer hk_outer_make(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  hk_outer o = {.along_k = d->knob[HK_OUTER_LANES], .merged = d->knob[HK_OUTER_MERGE]};
  o.e = o.merged ? g->n * g->out[2] : g->n;
  o.taps = g->pixels / (o.merged ? g->out[2] : 1);
  o.rows = o.along_k ? o.e : g->k;
  o.columns = o.along_k ? g->k : o.e;
  o.boxes = hk_outer_boxes_make(g, d->knob[HK_OUTER_BLOCK]);
  o.slices = hk_min64(d->knob[HK_OUTER_SLICES], o.boxes.count);
  o.br = o.merged && o.along_k ? o.rows : hk_min64(d->knob[HK_OUTER_BR], o.rows);
  o.bc = o.merged && !o.along_k ? o.columns : hk_min64(d->knob[HK_OUTER_BC], o.columns);
  o.row_chunks = hk_ceil_div(o.rows, o.br);
  o.column_chunks = hk_ceil_div(o.columns, o.bc);
  o.jobs = o.slices * g->groups * o.row_chunks * o.column_chunks;
  o.slots = hk_min64(t->threads, o.jobs);
  o.pack_x = o.merged || g->x.outer != 1 || g->x_type != HK_F32 || d->knob[HK_OUTER_PACK] & 1;
  o.pack_f = g->f.outer != 1 || g->f_type != HK_F32 || d->knob[HK_OUTER_PACK] & 2;
  o.direct =
      o.slices == 1 && g->y_type == HK_F32 && !t->epi.any && !o.merged && (o.along_k ? g->y.channel : g->y.outer) == 1;
  if (o.pack_x) o.x_floats = hk_outer_floats_x(g, o.boxes.size, o.merged, o.merged ? g->n : o.along_k ? o.br : o.bc);
  if (o.pack_f) o.f_floats = hk_outer_floats_f(o.boxes.size, o.along_k ? o.bc : o.br);
  o.local = o.slices == 1 && !o.direct;
  if (o.slices > 1)
    o.sums_bytes =
        (size_t)hk_round_up(o.slices * g->groups * o.taps * o.rows * o.columns * (int64_t)sizeof(float), HK_ALIGN);
  const int64_t chunk = o.local ? o.taps * o.br * o.bc : 0;
  o.slot_bytes = (size_t)hk_round_up((o.x_floats + o.f_floats + chunk) * (int64_t)sizeof(float), HK_ALIGN);
  return o;
}

/* Register tiles of a chunk: `vectors` wide, as many rows as registers allow. */
static double tile_rows(const hk_kernel *k, int64_t vectors) {
  return fmin(12.0, (double)(k->mr * k->nr / hk_isa_lanes(k->isa)) / (double)vectors);
}

/* Cycles of waiting for the lines of an operand that is read in place: no prefetcher follows a few channels of every
 * pixel. Measured on Zen 4, 32 groups of 8 channels. */
static double scattered(bool packed, int64_t channels, const hk_strides *s) {
  return packed || channels * 4 > s->at[2] ? 0.0 : 2.0;
}

/* Cycles per output to store sums: copied, transposed, or one by one. */
static double store_cycles(const hk_task *t, const hk_outer *o) {
  const hk_geom *g = &t->geom;
  if (o->direct) return 0.0;
  if (!hk_outer_store_is_plain(t)) return 4.0;
  const bool adjacent = g->y.outer == 1 || g->y.channel == 1 || (!o->along_k && !o->merged && g->y.at[2] == 1);
  return (!adjacent ? 4.0 : t->epi.e.residual ? 1.6 : 1.0) + (o->local ? 0.0 : 0.5 * (double)o->slices);
}

static double predict(const hk_task *t, const hk_decision *d, const hk_outer *o) {
  const hk_geom *g = &t->geom;
  const hk_cost_machine *m = hk_cost_here();
  const int64_t lanes = hk_isa_lanes(d->kernel->isa);
  const double vectors = (double)(o->column_chunks * hk_ceil_div(o->bc, lanes)), rows = (double)o->rows;
  const int64_t wide = hk_tile_rows(hk_ceil_div(o->bc, lanes), d->kernel->nr / lanes);
  const double tile = fmin(rows, tile_rows(d->kernel, wide)), tiles = ceil(rows / tile) * ceil(vectors / (double)wide);
  /* a tile of few accumulators waits for its own sums; one of a single vector for its loads */
  const double pace = hk_cost_flops(d->kernel->isa) / (2.0 * (double)lanes), sums = tile * (double)wide;
  const double wait = fmax(fmax(1.0, m->latency * pace / sums), 0.55 * pace * (tile + (double)wide) / sums);
  const double taps = (double)(g->groups * o->taps), boxes = (double)o->boxes.count, gk = (double)g->gk;
  const double lines = (double)(g->c * g->win[0] * g->win[1] * o->boxes.parts[3]);
  const bool joined = o->taps == 1 && !o->pack_x && !hk_geom_leaves(g, 2) && g->dil[2] == 1; /* lines, into one */
  hk_work w = {.products = wait * 2.0 * taps * rows * vectors * (double)lanes * gk / hk_cost_peak(d->kernel->isa)};
  if (o->merged) w.products *= 1.04; /* its rows straddle cache lines */
  w.cycles = taps * tiles * (boxes * (2.0 * m->tile + 2.0 * sums) + (joined ? boxes : lines) * 16.0);
  w.cycles += taps * (boxes * m->kernel + lines * 10.0);
  w.cycles += taps * tiles * gk * (scattered(o->pack_x, g->n, &g->x) + scattered(o->pack_f, g->k, &g->f));
  /* neighbouring chunks share a box that is the only one */
  const double again = boxes > 1.0 ? (double)(o->row_chunks * o->column_chunks) : 1.0;
  /* channels that are adjacent are copied position by position, others transposed */
  const double each_x = g->x.outer == 1 ? 0.2 + 6.0 / (double)g->n : 0.4;
  const double each_f = g->f.outer == 1 ? 0.2 + 6.0 / (double)g->k : 0.4;
  w.cycles += (double)g->groups * boxes * again * (each_x * (double)o->x_floats + each_f * (double)o->f_floats);
  const double outputs = taps * rows * (double)o->columns;
  w.cycles += outputs * store_cycles(t, o);
  if (!hk_outer_store_is_plain(t)) hk_work_store(&w, t, true, (double)(g->gm * g->groups));
  w.moved = hk_cost_move(g->bytes, g->bytes);
  return hk_cost_seconds(&m->outer, &w, o->jobs, t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  if (d->knob[HK_OUTER_MERGE] && !mergeable(t))
    return hk_refuse(why, "merge = 1 needs stride and input dilation 1 and several outputs along the last dimension");
  const hk_outer o = hk_outer_make(t, d);
  d->workspace_bytes = o.sums_bytes + (size_t)o.slots * o.slot_bytes;
  d->predicted_s = predict(t, d, &o);
  return true;
}

/* Positions of a box: x and f of a box in half of L2, but enough of them that adding its sums to those in memory takes
 * little of the time. Tiles that are one cache line wide want theirs in L1 (Zen 4, AVX2, 256 channels of 14 x 14: 128
 * positions 8 % ahead of 512). Not by the kernel or by threads: the order of the sum depends on it. */
static int64_t choose_block(const hk_task *t) {
  const hk_geom *g = &t->geom;
  const int64_t floats = hk_cost_l2() / 2 / (int64_t)sizeof(float);
  if (hk_isa_lanes(t->isa) < 16 && g->n + g->k > 64) return hk_cost_l1() / 4 / HK_ALIGN;
  return hk_max64(512, hk_min64(2048, floats / (g->n + g->k)));
}

/* Enough jobs for many threads, by the shape alone: chunks of the result first, then slices of the sum, as long as
 * partial sums stay small beside x and f. */
static int64_t choose_slices(const hk_task *t, const hk_outer *o) {
  const hk_geom *g = &t->geom;
  const int64_t chunks = g->groups * hk_ceil_div(g->n * g->k, 768);
  const int64_t outputs = g->groups * o->taps * o->rows * o->columns, inputs = g->groups * (g->n + g->k) * g->gk;
  const int64_t room = hk_max64(1, hk_min64(inputs / 4, (int64_t)1 << 21) / outputs);
  return hk_max64(1, hk_min64(hk_min64(SLICES, o->boxes.count / 2), hk_min64(room, 64 / chunks)));
}

/* Splits rows and columns until every thread has a job. */
static void choose_chunks(const hk_task *t, hk_decision *d, const hk_outer *o) {
  const int64_t lanes = hk_isa_lanes(d->kernel->isa), base = o->slices * t->geom.groups;
  const int64_t across_most = o->merged && !o->along_k ? 1 : hk_ceil_div(o->columns, d->kernel->nr);
  const int64_t down_most = o->merged && o->along_k ? 1 : hk_ceil_div(o->rows, 2 * d->kernel->mr);
  const int64_t across = hk_outer_chunks(base, across_most, t->threads);
  const int64_t down = hk_outer_chunks(base * across, down_most, t->threads);
  d->knob[HK_OUTER_BC] = hk_round_up(hk_ceil_div(o->columns, across), lanes);
  d->knob[HK_OUTER_BR] = hk_ceil_div(o->rows, down);
  /* sums that are stored chunk by chunk stay in L2 until then */
  const int64_t most =
      hk_cost_l2() / 2 / (int64_t)sizeof(float) / (o->taps * hk_min64(o->columns, d->knob[HK_OUTER_BC]));
  if (!o->direct && o->slices == 1 && !(o->merged && o->along_k))
    d->knob[HK_OUTER_BR] = hk_max64(2 * d->kernel->mr, hk_min64(d->knob[HK_OUTER_BR], most));
}

/* Tiles that are one cache line wide read one of every position: apart by pages or by whole sets of L1, they are packed
 * (Zen 4, AVX2, 512 channels of 7 x 7: 8242 us in place of 11187; 1x1 of 1024 to 256: 4159 of 5066). */
static int64_t choose_pack(const hk_task *t, const hk_kernel *kernel) {
  const hk_geom *g = &t->geom;
  if (kernel->nr > 16) return 0;
  return (g->x.at[2] >= 256 ? 1 : 0) + (g->f.at[2] >= 256 ? 2 : 0);
}

static void choose(const hk_task *t, hk_decision *d) {
  const hk_geom *g = &t->geom;
  d->knob[HK_OUTER_PACK] = 0;
  d->knob[HK_OUTER_BLOCK] = choose_block(t);
  d->knob[HK_OUTER_SLICES] = 1;
  d->knob[HK_OUTER_BR] = d->knob[HK_OUTER_BC] = HK_KNOB_MOST;
  hk_outer o = hk_outer_make(t, d);
  d->knob[HK_OUTER_SLICES] = o.slices = choose_slices(t, &o);
  /* a limit on the workspace that sums in y alone meet */
  const size_t bytes = (size_t)(g->groups * o.taps * o.rows * o.columns * o.slices) * sizeof(float);
  const bool limited = t->options.limit_workspace && t->options.workspace_limit_bytes < bytes;
  if (limited) d->knob[HK_OUTER_SLICES] = o.slices = 1;
  choose_chunks(t, d, &o);
  if (!limited) d->knob[HK_OUTER_PACK] = choose_pack(t, d->kernel);
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  if (!supported(t, why)) return false;
  hk_decision best = *d;
  bool any = false, fits = false;
  for (int i = 0; i < 4; i++) {
    hk_decision one = *d;
    one.knob[HK_OUTER_LANES] = i & 1;
    one.knob[HK_OUTER_MERGE] = i >> 1;
    if (i >> 1 && !mergeable(t)) break;
    choose(t, &one);
    if (!finish(t, &one, why)) continue;
    const bool within = !t->options.limit_workspace || one.workspace_bytes <= t->options.workspace_limit_bytes;
    if (any && (fits > within || (fits == within && one.predicted_s >= best.predicted_s))) continue;
    best = one;
    any = true;
    fits = within;
  }
  *d = best;
  return true;
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  static const int64_t scale[] = {-4, -2, 2, 4};
  *d = *base;
  if (index < HK_COUNT(scale)) {
    const int64_t block = base->knob[HK_OUTER_BLOCK];
    d->knob[HK_OUTER_BLOCK] = hk_max64(16, scale[index] < 0 ? block / -scale[index] : block * scale[index]);
    return true;
  }
  const int other = index - HK_COUNT(scale) + 1; /* the other ways to lay out tiles */
  if (other > 3) return false;
  d->knob[HK_OUTER_LANES] ^= other & 1;
  if (other & 2 && mergeable(t)) d->knob[HK_OUTER_MERGE] ^= 1;
  d->knob[HK_OUTER_BR] = d->knob[HK_OUTER_BC] = HK_KNOB_MOST;
  const hk_outer o = hk_outer_make(t, d);
  choose_chunks(t, d, &o);
  return true;
}

static bool check(const hk_task *t, hk_decision *d, char *why) { return supported(t, why) && finish(t, d, why); }

static hk_status build(hk_plan *plan) {
  hk_outer *o = hk_alloc_zero(sizeof *o);
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  plan->own = o;
  *o = hk_outer_make(&plan->task, &plan->decision);
  return plan->task.f_now ? hk_plan_copy_weights(plan) : HK_OK;
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_outer *o = plan->own;
  hk_text_add(t, " rows=%lld columns=%lld taps=%lld boxes=%lld jobs=%lld packs=%d%d direct=%d", (long long)o->rows,
              (long long)o->columns, (long long)o->taps, (long long)o->boxes.count, (long long)o->jobs, o->pack_x,
              o->pack_f, o->direct);
}

const hk_algo hk_algo_outer = {.name = "outer",
                               .summary = "outer products over pixels: gradients of filters",
                               .knobs = {HK_KNOB("lanes", 0, 1), HK_KNOB("merge", 0, 1),
                                         HK_KNOB("block", 1, HK_KNOB_MOST), HK_KNOB("slices", 1, 4096),
                                         HK_KNOB("br", 1, HK_KNOB_MOST), HK_KNOB("bc", 1, HK_KNOB_MOST),
                                         HK_KNOB("pack", 0, 3)},
                               .family = HK_FAMILY_OUTER,
                               .device = HK_CPU,
                               .skips_padding = true,
                               .offer = offer,
                               .vary = vary,
                               .check = check,
                               .build = build,
                               .run = hk_outer_run,
                               .destroy = destroy,
                               .trace = trace};
