/* The source ROWS of grouped: few channels per group over adjacent positions of the last dimension (channels-first),
 * any rank, window, dilation, padding and groups. Taps are rows of x read in place: nothing is gathered, copied or
 * padded; where padding cuts taps off, the row is run in ranges with the taps that remain. Refuses strides along the
 * last dimension, and more than 256 taps, 64 channels per group or 512 in all.
 *
 * Jobs are pieces of `cols` positions of output rows; a job runs all groups and channels of its piece. Packed weights,
 * for each part of hk_small_split: [tap][group/mg][tile][channel][mg][mr]. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/small.h"
#include "cost/cost.h"
#include "plan/grouped/grouped.h"

enum { PIECE = 256, MAX_TAPS = 256, STAGE = 8192 /* floats */, MAX_CHANNELS = 64, PAGE = 4096 };

typedef struct own {
  int parts;
  hk_small_part part[HK_SMALL_PARTS];
  int64_t f_at[HK_SMALL_PARTS], piece, pieces; /* positions of a piece; pieces of a row */
  bool direct;                                 /* kernels store to y */
  int32_t act;
  float lo, hi;
  int64_t first[MAX_TAPS], last[MAX_TAPS]; /* of the last dimension: positions whose tap reads inside x */
  float zeros[];                           /* a bias for all channels */
} own;

/* What the kernel does in registers. */
static bool fused_act(const hk_epilogue *e, own *o) {
  o->act = HK_SMALL_CLIP;
  o->lo = e->a;
  o->hi = e->b;
  switch (e->act) {
  case HK_ACT_NONE: o->act = HK_SMALL_NONE; return true;
  case HK_ACT_RELU:
    o->lo = 0.0f;
    o->hi = INFINITY;
    return true;
  case HK_ACT_CLIP: return true;
  case HK_ACT_HARDTANH:
    if (e->a == 0.0f && e->b == 0.0f) {
      o->lo = -1.0f;
      o->hi = 1.0f;
    }
    return true;
  case HK_ACT_LEAKY: o->act = HK_SMALL_LEAKY; return true;
  default: return false;
  }
}

/* One distance between all channels of y, over group borders too; 0: there is none. */
static int64_t y_distance(const hk_geom *g) {
  if (g->groups == 1) return g->y.channel;
  if (g->k == 1) return g->y.group;
  return g->y.group == g->k * g->y.channel ? g->y.channel : 0;
}

static bool fuses(const hk_task *t, own *o) {
  const hk_epilogue *e = &t->epi.e;
  const hk_geom *g = &t->geom;
  return fused_act(e, o) && !e->scale && !e->residual && !e->user2 && !e->store && g->y_type == HK_F32 &&
         g->y.at[2] == 1 && y_distance(g) != 0;
}

static bool applies(const hk_task *t, const hk_kernel *k, char *why) {
  const hk_geom *g = &t->geom;
  hk_small_part part[HK_SMALL_PARTS];
  const char *no = NULL;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) no = "x and f must be f32";
  else if (!hk_kernel_runs(k, t->isa)) no = "the ISA of the kernel is above the cap";
  else if (!t->f_now) no = "weights must be known at creation";
  else if (t->epi.e.gate) no = "a gate needs both halves of a channel pair in one tile";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (g->batch_grouped) no = "batch_groups must be 1";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "x, f or y is empty";
  else if (g->stride[2] != 1 || g->x.at[2] != 1) no = "positions of the last dimension must be adjacent in x, stride 1";
  else if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) no = "input dilation must be 1";
  else if (g->taps > MAX_TAPS || g->k > MAX_CHANNELS || g->k * g->groups > STAGE / 16)
    no = "more than 256 taps, 64 channels per group or 512 in all";
  else {
    const int parts = hk_small_split(k->isa, g->k, g->groups, part);
    if (part[parts - 1].mr != k->mr) no = "a tile of another height leaves fewer rows idle for this k";
  }
  return !no || hk_refuse(why, no);
}

/* Cycles of a register tile of so many vectors: for each input of a tap its products, or the loads that feed them, or
 * the latency of few sums; then what a tap and a tile take besides. */
static double tile_cycles(const hk_geom *g, const hk_small_part *p, double vectors, double taps) {
  const hk_cost_machine *m = hk_cost_here();
  const double lanes = (double)hk_isa_lanes(p->kernel->isa), product = 2 * lanes / hk_cost_flops(p->kernel->isa);
  const double sums = (double)(p->mg * p->mr) * vectors;
  const double feed = product * (m->load * (double)p->mg * vectors + (double)(p->mg * p->mr) / 2);
  const double step = fmax(fmax(sums * product, feed), m->latency);
  return taps * ((double)g->c * step + m->tap) + 2 * sums * product + m->tile;
}

/* Cycles of a range of positions: as many tiles of the kernel's width as fit, then of two vectors, one, and part of
 * one. */
static double range_cycles(const hk_geom *g, const hk_small_part *p, int64_t positions, double taps) {
  const int64_t lanes = hk_isa_lanes(p->kernel->isa), widths[4] = {p->kernel->nr / lanes, 2, 1, 0};
  double cycles = 0;
  for (int i = 0; i < 4 && positions > 0; i++) {
    const int64_t count = widths[i] ? positions / (widths[i] * lanes) : 1;
    if (count) cycles += (double)count * tile_cycles(g, p, (double)hk_max64(1, widths[i]), taps);
    positions -= count * widths[i] * lanes;
  }
  return cycles;
}

static double predict(const hk_task *t, const hk_kernel *k) {
  const hk_geom *g = &t->geom;
  hk_small_part part[HK_SMALL_PARTS];
  const int parts = hk_small_split(k->isa, g->k, g->groups, part);
  const double rows = (double)g->n * (double)g->out[0] * (double)g->out[1];
  int64_t ranges = 0, first = 0, last = g->out[2], inside = 0; /* each tap that padding cuts off: one more range */
  for (int64_t s = 0; s < g->win[2]; s++) {
    int64_t lo, hi;
    hk_geom_valid(g, 2, s, &lo, &hi);
    ranges += (lo > 0) + (hi < g->out[2]);
    inside += hk_max64(0, hi - lo);
    first = hk_max64(first, lo);
    last = hk_min64(last, hi);
  }
  const int64_t whole = hk_max64(0, last - first), edges = g->out[2] - whole;
  /* window rows inside x, on average; then the taps of a position with whole windows, and of one at an edge */
  const double lines = (double)g->taps * hk_geom_inside(g) * (double)g->out[2] / (double)hk_max64(1, inside);
  const double all = lines * (double)g->win[2];
  const double some = edges ? lines * (double)(inside - whole * g->win[2]) / (double)edges : 0;
  const int64_t edge = ranges ? hk_ceil_div(edges, ranges) : 0;
  double cycles =
      (double)(hk_ceil_div(g->out[2], PIECE) + ranges) * (hk_cost_here()->kernel + 2 * hk_cost_here()->tap * all);
  for (int i = 0; i < parts; i++)
    cycles += (double)(g->groups / part[i].mg * part[i].tiles) *
              (range_cycles(g, &part[i], whole, all) + (double)ranges * range_cycles(g, &part[i], edge, some));
  if (hk_grouped_crowded(t, g)) cycles *= 1.4;
  /* columns with gaps are stored one by one (a phase of 3 channels of 128 x 128, polyphase) */
  if (g->y.at[2] != 1 && g->out[2] > 1) cycles += 12 * (double)(g->groups * g->k * g->out[2]);
  hk_work w = {.cycles = rows * cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  /* what the windows of a group hold is read again for every tap and tile of channels: beyond L1, from planes that have
   * a page of their own, the products wait for it (Zen 4: 460 channels of 233 cost nothing more, 320 of 64 x 64 four
   * times the bytes) */
  const double held = 4.0 * (double)(g->gk / g->win[2]) * (double)hk_min64(g->in[2], PIECE);
  const double tiles = (double)hk_ceil_div(g->k, k->mr);
  if (held > 4.0 * (double)hk_cost_l1() && g->x.channel >= PAGE / 4)
    w.seconds = 4 * hk_cost_move(4.0 * rows * (double)g->out[2] * (double)(g->groups * g->gk) * tiles, held);
  own unused = {0};
  if (!fuses(t, &unused)) {
    const int64_t channels = g->k * g->groups, step = hk_max64(16, STAGE / channels / 16 * 16);
    hk_work_store(&w, t, false, rows * (double)channels * (double)(hk_ceil_div(g->out[2], step)));
  }
  const int64_t jobs = g->n * g->out[0] * g->out[1] * hk_ceil_div(g->out[2], PIECE);
  return hk_cost_seconds(&hk_cost_here()->small, &w, jobs, t->threads);
}

static int64_t tiles_of(const hk_geom *g, const hk_kernel *k) {
  hk_small_part part[HK_SMALL_PARTS];
  int64_t tiles = 0;
  for (int i = hk_small_split(k->isa, g->k, g->groups, part) - 1; i >= 0; i--) tiles += part[i].tiles;
  return tiles;
}

bool hk_grouped_rows_offer(const hk_task *t, hk_decision *d, char *why) {
  d->knob[HK_GROUPED_SOURCE] = HK_GROUPED_ROWS_OF_X;
  d->knob[HK_GROUPED_ROWS] = d->knob[HK_GROUPED_SHARDS] = d->knob[HK_GROUPED_PARTS] = 1;
  d->knob[HK_GROUPED_COLS] = hk_max64(1, hk_min64(PIECE, t->geom.out[2]));
  d->knob[HK_GROUPED_TILES] = HK_KNOB_AUTO;
  return hk_grouped_rows_check(t, d, why);
}

bool hk_grouped_rows_check(const hk_task *t, hk_decision *d, char *why) {
  int64_t *k = d->knob;
  if (!applies(t, d->kernel, why)) return false;
  const int64_t tiles = tiles_of(&t->geom, d->kernel);
  if (k[HK_GROUPED_TILES] < 0) k[HK_GROUPED_TILES] = tiles;
  if (k[HK_GROUPED_TILES] != tiles || k[HK_GROUPED_ROWS] != 1 || k[HK_GROUPED_SHARDS] != 1 ||
      k[HK_GROUPED_PARTS] != 1 || k[HK_GROUPED_COLS] > t->geom.out[2]) {
    snprintf(why, HK_REASON, "source = 2 needs rows, shards and parts of 1, cols <= %lld and tiles = %lld",
             (long long)t->geom.out[2], (long long)tiles);
    return false;
  }
  d->workspace_bytes = 0;
  d->predicted_s = predict(t, d->kernel);
  return true;
}

static void pack_part(const hk_geom *g, const hk_small_part *p, const float *f, float *to) {
  for (int64_t tap = 0; tap < g->taps; tap++) {
    const int64_t s2 = tap % g->win[2], s1 = tap / g->win[2] % g->win[1], s0 = tap / g->win[2] / g->win[1];
    const float *at = f + s0 * g->f.at[0] + s1 * g->f.at[1] + s2 * g->f.at[2];
    for (int64_t group = 0; group < g->groups; group += p->mg) {
      for (int64_t j = 0; j < p->tiles; j++) {
        for (int64_t c = 0; c < g->c; c++) {
          for (int64_t i = 0; i < p->mg * p->mr; i++) {
            const int64_t own_group = group + i / p->mr, k = p->first + j * p->mr + i % p->mr;
            *to++ = at[own_group * g->f.group + k * g->f.outer + c * g->f.channel];
          }
        }
      }
    }
  }
}

hk_status hk_grouped_rows_build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  own *o = hk_alloc_zero(sizeof *o + (size_t)(g->k * g->groups) * sizeof(float));
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  plan->own = o;
  o->direct = fuses(&plan->task, o);
  o->parts = hk_small_split(plan->decision.kernel->isa, g->k, g->groups, o->part);
  o->piece = plan->decision.knob[HK_GROUPED_COLS];
  o->pieces = hk_ceil_div(g->out[2], o->piece);
  for (int64_t s = 0; s < g->win[2]; s++) hk_geom_valid(g, 2, s, &o->first[s], &o->last[s]);
  int64_t floats = 0;
  for (int i = 0; i < o->parts; i++) {
    o->f_at[i] = floats;
    floats += g->groups * o->part[i].tiles * o->part[i].mr * g->gk;
  }
  float *to;
  const int64_t parts = o->parts;
  const hk_status s = hk_plan_pack_room(plan, floats, sizeof *to, &parts, 1, &to);
  for (int i = 0; to && i < o->parts; i++) pack_part(g, &o->part[i], plan->raw_f, to + o->f_at[i]);
  return s;
}

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
} job;

/* Segments of the taps that read inside x from position p on; *end: how far along the last dimension this set holds. */
static int32_t aim(const hk_geom *g, const own *o, const float *x, const int64_t p[3], int64_t *end, hk_small_seg *seg,
                   int64_t *tap) {
  const int64_t t = p[2];
  int32_t count = 0;
  for (int64_t s = 0; s < g->win[2]; s++) {
    if (o->first[s] > t) *end = hk_min64(*end, o->first[s]);
    else if (o->last[s] > t) *end = hk_min64(*end, o->last[s]);
  }
  for (int64_t s0 = 0; s0 < g->win[0]; s0++) {
    const int64_t i0 = hk_geom_source(g, 0, p[0], s0);
    if (i0 < 0 || i0 >= g->in[0]) continue;
    for (int64_t s1 = 0; s1 < g->win[1]; s1++) {
      const int64_t i1 = hk_geom_source(g, 1, p[1], s1);
      if (i1 < 0 || i1 >= g->in[1]) continue;
      for (int64_t s2 = 0; s2 < g->win[2]; s2++) {
        if (o->first[s2] > t || o->last[s2] <= t) continue;
        tap[count] = (s0 * g->win[1] + s1) * g->win[2] + s2;
        seg[count++] = (hk_small_seg){x + i0 * g->x.at[0] + i1 * g->x.at[1] + t + s2 * g->dil[2] - g->lo[2], NULL, g->c,
                                      g->x.channel, g->x.group};
      }
    }
  }
  return count;
}

/* One kernel over n positions, into y (rows y_stride apart): all groups, or one of them. */
static void run_part(const hk_plan *plan, int i, hk_small_args *a, hk_small_seg *seg, const int64_t *tap,
                     const float *bias, float *y) {
  const hk_geom *g = &plan->task.geom;
  const own *o = plan->own;
  const hk_small_part *p = &o->part[i];
  const float *f = (const float *)plan->packed->f + o->f_at[i];
  const int64_t step = g->groups * p->tiles * p->mr * g->c;
  for (int32_t s = 0; s < a->segs; s++) seg[s].f = f + tap[s] * step;
  a->seg = seg;
  a->tiles = p->tiles;
  a->bias = bias + p->first;
  a->y = y + p->first * a->y_stride;
  p->kernel->fn(a);
}

/* Sums of all channels of a range in a stage on the stack, then the epilogue row by row. */
static void run_staged(const job *j, hk_small_args *a, hk_small_seg *seg, const int64_t *tap, hk_at *at) {
  const hk_geom *g = &j->plan->task.geom;
  const own *o = j->plan->own;
  _Alignas(HK_ALIGN) float stage[STAGE];
  const int64_t k = g->k * g->groups, t = at->p[g->rank - 1], all = a->n;
  const int64_t step = hk_max64(16, STAGE / k / 16 * 16);
  a->y_stride = step;
  for (int64_t done = 0; done < all; done += step) {
    a->n = hk_min64(step, all - done);
    for (int i = 0; i < o->parts; i++) run_part(j->plan, i, a, seg, tap, o->zeros, stage);
    at->p[g->rank - 1] = t + done;
    for (int64_t c = 0; c < k; c++) {
      at->k = c;
      hk_plan_store_row(j->plan, j->call, at, a->n, stage + c * step);
    }
    for (int32_t s = 0; s < a->segs; s++) seg[s].x += a->n;
  }
}

static void body(void *context, int64_t index) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const own *o = j->plan->own;
  hk_small_seg seg[MAX_TAPS];
  int64_t tap[MAX_TAPS];
  const int64_t piece = index % o->pieces, row = index / o->pieces, n = row / (g->out[0] * g->out[1]);
  const int64_t p[2] = {row / g->out[1] % g->out[0], row % g->out[1]};
  const float *x = (const float *)j->call->x + n * g->x.outer;
  const int64_t stop = hk_min64(g->out[2], (piece + 1) * o->piece);
  for (int64_t t = piece * o->piece, end; t < stop; t = end) {
    end = stop;
    hk_small_args a = {.groups = g->groups, .y_group = g->k};
    const int64_t all[3] = {p[0], p[1], t};
    a.segs = aim(g, o, x, all, &end, seg, tap);
    a.n = end - t;
    if (!o->direct) {
      hk_at at = {.n = n};
      for (int d = 0; d < g->rank; d++) at.p[d] = all[d + 3 - g->rank];
      run_staged(j, &a, seg, tap, &at);
      continue;
    }
    a.act = o->act;
    a.lo = o->lo;
    a.hi = o->hi;
    a.y_stride = y_distance(g);
    float *y = (float *)j->call->y + n * g->y.outer + p[0] * g->y.at[0] + p[1] * g->y.at[1] + t;
    const float *bias = j->plan->task.epi.e.bias ? j->call->bias : o->zeros;
    for (int i = 0; i < o->parts; i++) run_part(j->plan, i, &a, seg, tap, bias, y);
  }
}

hk_status hk_grouped_rows_run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  const own *o = plan->own;
  job j = {plan, call};
  hk_plan_parallel(plan, g->n * g->out[0] * g->out[1] * o->pieces, body, &j);
  return HK_OK;
}

void hk_grouped_rows_trace(const hk_plan *plan, hk_text *t) {
  const own *o = plan->own;
  hk_text_add(t, " pieces=%lld direct=%d", (long long)o->pieces, o->direct);
  for (int i = 0; i < o->parts; i++)
    hk_text_add(t, " tiles=%lldx%s", (long long)o->part[i].tiles, o->part[i].kernel->name);
}
