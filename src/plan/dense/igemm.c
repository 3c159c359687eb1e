/* igemm: dense convolution over channels that lie next to each other in x (channels-last). Kernels of the family dot,
 * for 1 to 8 output channels, have their vectors along the input channels. The rows of pixels are addressed by pointers
 * (dense/rows.c), the weights are packed in panels of output channels (dense/pack.c), and the kernel cuts a block of bm
 * pixels x one panel into register tiles. Any rank, stride, padding, dilation, input dilation, groups and y; refuses
 * other types than f32, channels of x that are not adjacent, gates and streaming state.
 *
 * Loops: (group, block of bm pixels, bn panels) are the jobs; in a job panels, then bk channels, then tiles. A panel's
 * piece of packed f stays in L2 for the whole block. Sums resume in order of channel blocks, so bits depend on bk only.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/igemm.h"

#define MOST_DOTS 8

/* Windows so small that the tap loop would rule are joined along the row. */
static bool merge_pays(const hk_geom *g, const hk_kernel *k) {
  return k->family == HK_FAMILY_IGEMM && hk_rows_mergeable(g) && g->c <= 16 && g->gk <= 256;
}

static int64_t most_pixels(const hk_geom *g, const hk_kernel *k, bool merged) {
  const int64_t segments = merged ? g->taps / g->win[2] : g->taps;
  int64_t bm = hk_min64(HK_BLOCK_MAX, HK_IGEMM_PARTIAL / k->nr);
  bm = hk_min64(bm, hk_max64(8, HK_IGEMM_TABLE / segments));
  if (merged) bm = hk_min64(bm, HK_IGEMM_SCRATCH / g->gk);
  return bm;
}

static int64_t choose_tail(const hk_geom *g, const hk_kernel *k) {
  return hk_panels_tail_pays(g, k) ? hk_panels_tail(g, k) : 0;
}

static hk_panels panels_of(const hk_geom *g, const hk_kernel *k, int64_t bk, int64_t tail) {
  hk_panels s = hk_panels_make(g, k, bk);
  hk_panels_cut_tail(&s, k, tail);
  return s;
}

static size_t packed_bytes(const hk_geom *g, const hk_panels *s) {
  return (size_t)(s->group_size * g->groups) * sizeof(float);
}

static int64_t choose_bk(const hk_geom *g, const hk_kernel *k) {
  /* A panel's piece takes up to 5/8 of L2. Zen 4, 1 MiB, 3 x 3 windows: 256 channels of 64 outputs at once are 1 to 4 %
   * ahead of 128 or 176 (256-256_56, 512-512_28, _14 and _7). */
  const int64_t most = hk_max64(32, hk_cost_l2() / 8 * 5 / (int64_t)sizeof(float) / k->nr / g->taps);
  const int64_t blocks = hk_ceil_div(g->c, most);
  return blocks <= 1 ? g->c : hk_round_up(hk_ceil_div(g->c, blocks), 8);
}

/* True when y's planes are written by transposing finished blocks while they are hot. */
static bool transposes(const hk_task *t) {
  const hk_geom *g = &t->geom;
  return g->y.channel != 1 && g->k > 1 && !t->epi.e.residual && hk_grid_count(g) == 1 &&
         (g->y.at[2] == 1 || g->out[2] == 1) && hk_fuse_make_transposed(t).all;
}

/* A row of zeros stands for every pixel in the padding. */
static bool needs_zeros(const hk_geom *g) {
  return hk_geom_leaves(g, 0) || hk_geom_leaves(g, 1) || hk_geom_leaves(g, 2);
}

static bool applies(const hk_task *t, const hk_kernel *k, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) no = "x and f must be f32";
  else if (k->isa > t->isa) no = "the ISA of the kernel is above the cap";
  else if (g->x.channel != 1 && g->c > 1) no = "the channels of x must be adjacent";
  else if (t->epi.e.gate) no = "a gate needs both halves of a channel pair in one tile";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (k->family == HK_FAMILY_DOT && g->k > MOST_DOTS)
    no = "kernels of dot take at most 8 output channels per group";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "x, f or y is empty";
  else if (needs_zeros(g) && g->c > HK_TABLE_BYTES / (int64_t)sizeof(float))
    no = "a row of zeros for the padding would take more than 16 MiB";
  else if (t->padded_nonfinite && !hk_cuts_make(g, true).exact)
    no = "weights hold Inf or NaN, and the taps inside x change too often";
  return !no || hk_refuse(why, no);
}

/* Pixels of a block that share a tile: those that find the same taps inside x. */
static double alike_pixels(const hk_geom *g, const hk_kernel *k, double bm) {
  if (g->taps == 1 || merge_pays(g, k)) return bm;
  const hk_cuts c = hk_cuts_make(g, false);
  if (!c.columns) return bm;
  const double classes = (double)c.columns * c.lines * c.planes;
  if (bm > (double)g->pixels) return fmax(1, bm / classes);
  /* a block of part of an image: all columns of a few lines, of two kinds at most */
  const double here = (double)c.columns * (double)hk_min64(c.lines, 2);
  return fmax(1, fmin((double)g->pixels / classes, bm / here));
}

/* Seconds of the products when tiles are so small that they wait for their own sums. */
static double latency_seconds(const hk_geom *g, const hk_decision *d, const hk_panels *s, double share) {
  const double vectors = (double)s->vectors / (double)s->count,
               held = (double)(d->kernel->mr * d->kernel->nr / s->lanes);
  const double rows = fmin(held / vectors, alike_pixels(g, d->kernel, (double)d->knob[HK_IGEMM_BM]));
  const double tiles = (double)(g->groups * g->gm) / rows * (double)s->count;
  return tiles * share * (double)g->gk * hk_cost_here()->latency / hk_cost_clock();
}

/* Outputs of a row whose window leaves x along it: where windows are merged, their rows are copied. */
static int64_t edge_pixels(const hk_geom *g) {
  int64_t lo[2], hi[2];
  hk_geom_valid(g, 2, 0, &lo[0], &hi[0]);
  hk_geom_valid(g, 2, g->win[2] - 1, &lo[1], &hi[1]);
  return g->out[2] - hk_max64(0, hk_min64(hi[0], hi[1]) - hk_max64(lo[0], lo[1]));
}

static double predict(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  const hk_panels s = panels_of(g, d->kernel, d->knob[HK_IGEMM_BK], d->knob[HK_IGEMM_TAIL]);
  const double peak = hk_cost_peak(d->kernel->isa);
  /* taps in the padding are left out block by block; input dilation leaves only its phase's taps */
  double flops = 2.0 * (double)(g->groups * g->gm) * (double)(s.vectors * s.lanes) * (double)g->gk;
  for (int i = 0; i < 3; i++) flops /= (double)g->in_dil[i];
  if (g->taps > 1 && g->groups == 1 && g->in_dil[0] * g->in_dil[1] * g->in_dil[2] == 1 && !merge_pays(g, d->kernel))
    flops *= hk_geom_inside(g);
  /* one vector of channels per tile: every product waits for its own broadcast (Zen 4: 76 % of the peak with AVX2, 96 %
   * with AVX-512, 64 channels of 56 x 56) */
  if (s.vectors == 1 && !s.dot) flops *= d->kernel->isa == HK_ISA_AVX2 ? 1.3 : 1.02;
  const double across =
      s.dot ? (double)hk_ceil_div(s.vectors, d->kernel->nr) : (double)s.vectors / (double)(d->kernel->nr / s.lanes);
  const double alike = s.dot ? alike_pixels(g, d->kernel, (double)d->knob[HK_IGEMM_BM]) : (double)d->kernel->mr;
  const double tiles = (double)(g->groups * g->gm) / fmin((double)d->kernel->mr, alike) * across;
  /* a tile sets up each segment, a block its table of rows (Zen 4: 16 groups of 4 channels, 28 x 28, which are all
   * set-up) */
  const double segments = (double)(merge_pays(g, d->kernel) ? g->taps / g->win[2] : g->taps),
               bm = (double)d->knob[HK_IGEMM_BM];
  const double blocks = g->taps == 1 ? 0 : (double)(g->groups * hk_ceil_div(g->gm, d->knob[HK_IGEMM_BM]));
  const double outside = g->in_dil[0] * g->in_dil[1] * g->in_dil[2] == 1 ? 1 - hk_geom_inside(g) : 0;
  double cycles =
      tiles * (20 + 12 * segments) + blocks * (300 + (1.2 + hk_cost_here()->outside * outside) * segments * bm);
  /* windows of many taps with few channels each, as gradients of filters have: the loop over channels ends before it is
   * predicted, and the table of rows leaves L1 (Zen 4: 256 and 512 channels of 14 x 14 and 7 x 7, 1 to 4 images) */
  if (g->c < 8 && g->taps >= 32) cycles += 40 * tiles * segments;
  if (!t->f_now && g->c < 8 && g->taps >= 32 && merge_pays(g, d->kernel)) flops *= 1.25; /* as measured there */
  if (merge_pays(g, d->kernel)) {
    const double share = (double)edge_pixels(g) / (double)g->out[2];
    cycles += 30 * (double)(g->groups * g->gm) * share * segments;
  }
  if (s.dot) { /* whole vectors of input channels, then each sum across its lanes */
    flops *= (double)hk_round_up(g->c, hk_isa_lanes(d->kernel->isa)) / (double)g->c;
    cycles += (double)(g->groups * g->gm * s.vectors) * 12;
    /* groups of few inputs: what a tap of a pixel takes beside its products (Zen 4: 16 groups of 12 channels to one, 32
     * of 32 to two) */
    if (g->c < 48 && g->taps > 1) cycles += (double)(g->groups * g->gm) * (double)g->taps * 6;
  }
  if (s.tail) { /* the same for the channels left over */
    const double vectors = 1.3 * (double)(g->taps * hk_ceil_div(g->c, s.lanes)) * (double)s.lanes * 2.0;
    flops += (double)(g->groups * g->gm * s.tail) * vectors;
    cycles += (double)(g->groups * g->gm * s.tail) * (g->taps == 1 ? 6 : 10);
  }
  if (!s.dot) {
    const double share = flops / (2.0 * (double)(g->groups * g->gm) * (double)(s.vectors * s.lanes) * (double)g->gk);
    flops = fmax(flops, latency_seconds(g, d, &s, share) * peak);
  }
  hk_work w = {.products = flops / peak, .cycles = cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  if (!t->f_now && d->knob[HK_IGEMM_PACK] == HK_PACK_WHOLE)
    w.seconds = hk_cost_move(2.0 * (double)packed_bytes(g, &s), 1e8) * 4;
  if (d->knob[HK_IGEMM_PACK] == HK_PACK_BLOCK) w.products *= 1.0 + 4.0 / (double)d->knob[HK_IGEMM_BM];
  const hk_fuse fuse = hk_fuse_make_late(t);
  if (!fuse.all && !transposes(t)) hk_work_store(&w, t, true, (double)(g->groups * g->gm) * (double)s.count);
  else if (fuse.late != HK_ACT_NONE) hk_work_store(&w, t, true, 0);
  const int64_t jobs =
      g->groups * hk_ceil_div(g->gm, d->knob[HK_IGEMM_BM]) * hk_ceil_div(s.count, d->knob[HK_IGEMM_BN]);
  return hk_cost_seconds(s.dot ? &hk_cost_here()->dot : &hk_cost_here()->igemm, &w, jobs, t->threads);
}

/* ---- derived knobs: see igemm.h */

/* True when all pixels of the batch follow each other at one distance. */
static bool in_line(const hk_geom *g, const hk_strides *s, const int64_t size[3]) {
  int64_t step = s->at[2];
  for (int d = 2; d >= 0; step *= size[d], d--)
    if (size[d] > 1 && s->at[d] != step) return false;
  return g->n == 1 || s->outer == step;
}

/* The kernel finishes the whole reduction of a tile at once, in y. */
static bool one_piece(const hk_task *t, const hk_decision *d) {
  return d->knob[HK_IGEMM_BK] == t->geom.c && d->knob[HK_IGEMM_PACK] != HK_PACK_BLOCK && !transposes(t) &&
         hk_fuse_make_late(t).all && hk_grid_count(&t->geom) == 1 && d->kernel->family != HK_FAMILY_DOT;
}

static bool can_merge(const hk_task *t, const hk_decision *d) {
  return !t->padded_nonfinite && d->knob[HK_IGEMM_PACK] != HK_PACK_BLOCK && d->knob[HK_IGEMM_BK] == t->geom.c &&
         d->kernel->family == HK_FAMILY_IGEMM && hk_rows_mergeable(&t->geom) && t->geom.gk <= HK_IGEMM_SCRATCH;
}

static bool can_flat(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  for (int i = 0; i < 3; i++)
    if (g->lo[i] || g->in[i] != g->out[i] || (g->stride[i] != 1 && g->in[i] > 1)) return false;
  return g->taps == 1 && one_piece(t, d) && in_line(g, &g->x, g->in) && in_line(g, &g->y, g->out) &&
         (!t->epi.e.residual || in_line(g, &t->epi.c, g->out));
}

/* Outputs q0..q1-1 of a line, whose windows lie in x along the row. */
static void inner_outputs(const hk_geom *g, int64_t *q0, int64_t *q1) {
  const int64_t room = g->in[2] + g->lo[2] - g->win[2];
  *q0 = hk_min64(g->out[2], hk_max64(0, hk_ceil_div(hk_max64(g->lo[2], 0), g->stride[2])));
  *q1 = room < 0 ? 0 : hk_min64(g->out[2], room / g->stride[2] + 1);
}

/* Most lines of a block, whose ends go through tables together; 0: lines have no constant stride. */
static int64_t most_lines(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  int64_t q0, q1;
  inner_outputs(g, &q0, &q1);
  const int64_t ends = g->out[2] - (q1 - q0);
  if (!d->knob[HK_IGEMM_MERGE] || !one_piece(t, d) || g->taps / g->win[2] > HK_EVEN_ROWS || q1 <= q0) return 0;
  return hk_min64(HK_EVEN_MOST, d->knob[HK_IGEMM_BM] / hk_max64(ends, 1));
}

/* A line costs each panel a call, a table costs all of them once: 3 channels of 28 x 28 to 129 6 % faster by tables,
 * 32 x 32 to 64 15 % by lines (Zen 4). */
static int64_t choose_lines(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  int64_t q0, q1;
  inner_outputs(g, &q0, &q1);
  const int64_t most = most_lines(t, d);
  if (!most || q1 - q0 < (g->k > 64 ? 80 : 16)) return 0;
  return hk_max64(1, hk_min64(most, g->gm / g->out[2] / (4 * t->threads)));
}

static void derive(const hk_task *t, hk_decision *d) {
  const hk_geom *g = &t->geom;
  int64_t *k = d->knob;
  if (k[HK_IGEMM_MERGE] < 0) k[HK_IGEMM_MERGE] = can_merge(t, d) && merge_pays(g, d->kernel);
  if (k[HK_IGEMM_FLAT] < 0) k[HK_IGEMM_FLAT] = can_flat(t, d);
  if (k[HK_IGEMM_LINES] < 0) k[HK_IGEMM_LINES] = choose_lines(t, d);
  if (k[HK_IGEMM_CUTS] < 0)
    k[HK_IGEMM_CUTS] = (t->padded_nonfinite || (!k[HK_IGEMM_MERGE] && g->taps > 1)) &&
                       hk_cuts_make(g, t->padded_nonfinite).columns > 0;
  if (k[HK_IGEMM_AHEAD] < 0)
    k[HK_IGEMM_AHEAD] =
        hk_cost_ahead() && g->taps * k[HK_IGEMM_BK] * d->kernel->nr * (int64_t)sizeof(float) > hk_cost_l1();
  if (k[HK_IGEMM_TAIL] < 0) k[HK_IGEMM_TAIL] = k[HK_IGEMM_MERGE] ? 0 : choose_tail(g, d->kernel);
}

static bool derived_fit(const hk_task *t, const hk_decision *d, char *why) {
  const int64_t *k = d->knob, tail = hk_panels_tail(&t->geom, d->kernel), lines = most_lines(t, d);
  if (k[HK_IGEMM_MERGE] && !can_merge(t, d))
    return hk_refuse(why, "merge = 1 needs bk = c, pack = 0, finite weights and window rows adjacent in x");
  if (k[HK_IGEMM_FLAT] && !can_flat(t, d))
    return hk_refuse(why, "flat = 1 needs one tap, stride 1, no padding, pixels in one line, bk = c and pack = 0");
  if (k[HK_IGEMM_LINES] > lines) {
    snprintf(why, HK_REASON, "lines = %lld must be 0..%lld: merged windows, bk = c and bm pixels at the ends of lines",
             (long long)k[HK_IGEMM_LINES], (long long)lines);
    return false;
  }
  if ((k[HK_IGEMM_CUTS] || k[HK_IGEMM_TAIL]) && k[HK_IGEMM_MERGE])
    return hk_refuse(why, "cuts and tail must be 0 where merge is 1");
  if (!k[HK_IGEMM_CUTS] && t->padded_nonfinite && hk_cuts_make(&t->geom, true).columns)
    return hk_refuse(why, "weights hold Inf or NaN: cuts must be 1");
  if (k[HK_IGEMM_TAIL] && k[HK_IGEMM_TAIL] != tail) {
    snprintf(why, HK_REASON, "tail = %lld must be 0 or %lld", (long long)k[HK_IGEMM_TAIL], (long long)tail);
    return false;
  }
  return true;
}

/* Whether windows will be merged, as far as bm depends on it. */
static bool merges(const hk_geom *g, const hk_decision *d) {
  return d->knob[HK_IGEMM_PACK] != HK_PACK_BLOCK && merge_pays(g, d->kernel);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  const int64_t *k = d->knob;
  derive(t, d);
  if (!derived_fit(t, d, why)) return false;
  const int64_t merged = most_pixels(g, d->kernel, k[HK_IGEMM_MERGE] || merges(g, d));
  const int64_t most = k[HK_IGEMM_MERGE] ? merged : hk_max64(merged, most_pixels(g, d->kernel, false));
  if (k[HK_IGEMM_BM] > most || k[HK_IGEMM_BK] > g->c || (k[HK_IGEMM_PACK] == HK_PACK_BLOCK && t->f_now)) {
    snprintf(why, HK_REASON, "needs bm <= %lld, bk <= %lld, pack %s", (long long)most, (long long)g->c,
             t->f_now ? "0" : "0 or 1");
    return false;
  }
  const hk_panels s = panels_of(g, d->kernel, k[HK_IGEMM_BK], k[HK_IGEMM_TAIL]);
  d->workspace_bytes = !t->f_now && k[HK_IGEMM_PACK] == HK_PACK_WHOLE ? packed_bytes(g, &s) : 0;
  d->predicted_s = predict(t, d);
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!applies(t, d->kernel, why)) return false;
  d->knob[HK_IGEMM_PACK] = HK_PACK_WHOLE;
  d->knob[HK_IGEMM_BK] = choose_bk(g, d->kernel);
  const hk_panels s = panels_of(g, d->kernel, d->knob[HK_IGEMM_BK], choose_tail(g, d->kernel));
  if (!t->f_now && t->options.limit_workspace && packed_bytes(g, &s) > t->options.workspace_limit_bytes)
    d->knob[HK_IGEMM_PACK] = HK_PACK_BLOCK;
  const int64_t most = most_pixels(g, d->kernel, merges(g, d));
  const int64_t grid = hk_max64(1, g->gm / hk_grid_count(g));
  /* A block's pixels share L2 with a panel; the larger the block, the less often weights come from L3. Narrow panels go
   * over the block's pixels more often: AVX2 runs 256-256_56 half a percent faster with 96 than with 112. */
  const int64_t wide = hk_cost_l2() >= 2 << 20 ? 128 : g->taps > 1 && d->kernel->nr >= 64 ? 112 : 96;
  const int64_t blocks = hk_ceil_div(grid, hk_min64(most, wide));
  const int64_t each = hk_ceil_div(grid, blocks);
  /* windows cut a block into groups whose tiles are nearly equal anyway: whole lines serve them better than whole tiles
   */
  d->knob[HK_IGEMM_BM] = hk_min64(most, g->taps > 1 ? each : hk_round_up(each, d->kernel->mr));
  /* few blocks of pixels: the panels are spread over the threads too */
  d->knob[HK_IGEMM_BN] = s.count;
  const int64_t jobs = blocks * hk_grid_count(g) * g->groups;
  if (t->threads > 1 && jobs < 8 * t->threads)
    d->knob[HK_IGEMM_BN] = hk_max64(1, s.count / hk_ceil_div(8 * t->threads, jobs));
  return finish(t, d, why);
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  static const struct {
    int knob;
    int64_t mul, div;
  } step[] = {{HK_IGEMM_BM, 1, 2}, {HK_IGEMM_BM, 1, 4}, {HK_IGEMM_BM, 2, 1}, {HK_IGEMM_BK, 1, 2}, {HK_IGEMM_BK, 2, 1}};
  char why[HK_REASON];
  *d = *base;
  if (index < HK_COUNT(step)) {
    const int k = step[index].knob;
    d->knob[k] = base->knob[k] * step[index].mul / step[index].div;
    if (k == HK_IGEMM_BK) d->knob[k] = hk_min64(t->geom.c, d->knob[k]);
    if (k == HK_IGEMM_BM) d->knob[k] = hk_min64(most_pixels(&t->geom, d->kernel, merges(&t->geom, d)), d->knob[k]);
    d->knob[k] = hk_max64(1, d->knob[k]);
    return finish(t, d, why);
  }
  index -= HK_COUNT(step);
  if (!t->f_now && index-- == 0) {
    d->knob[HK_IGEMM_PACK] = HK_PACK_BLOCK;
    d->knob[HK_IGEMM_BM] = hk_min64(d->knob[HK_IGEMM_BM], most_pixels(&t->geom, d->kernel, false));
    return finish(t, d, why);
  }
  derive(t, d);
  if (d->knob[HK_IGEMM_LINES] && index-- == 0) {
    d->knob[HK_IGEMM_LINES] = 0;
    return finish(t, d, why);
  }
  if (t->geom.taps * d->knob[HK_IGEMM_BK] * d->kernel->nr * (int64_t)sizeof(float) > hk_cost_l1() && index == 0) {
    d->knob[HK_IGEMM_AHEAD] = !d->knob[HK_IGEMM_AHEAD];
    return finish(t, d, why);
  }
  return false;
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  return applies(t, d->kernel, why) && finish(t, d, why);
}

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  const int64_t *k = plan->decision.knob;
  hk_igemm_own *o = hk_alloc_zero(sizeof *o);
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  plan->own = o;
  o->panels = panels_of(g, plan->decision.kernel, k[HK_IGEMM_BK], k[HK_IGEMM_TAIL]);
  o->dot = hk_kernel_best(HK_FAMILY_DOT, plan->decision.kernel->isa);
  o->fuse = hk_fuse_make_late(&plan->task);
  if (transposes(&plan->task)) {
    o->transpose = hk_kernel_best(HK_FAMILY_TRANSPOSE, plan->decision.isa);
    o->fuse = hk_fuse_make_transposed(&plan->task);
  }
  o->merged = k[HK_IGEMM_MERGE], o->flat = k[HK_IGEMM_FLAT], o->lines = k[HK_IGEMM_LINES], o->ahead = k[HK_IGEMM_AHEAD];
  o->segments = o->merged ? g->taps / g->win[2] : g->taps;
  o->channels = o->merged ? g->c * g->win[2] : g->c;
  o->bm = k[HK_IGEMM_BM], o->bn = k[HK_IGEMM_BN], o->bk = k[HK_IGEMM_BK];
  o->splits = hk_ceil_div(o->panels.count, o->bn);
  o->grids = hk_grid_count(g);
  o->blocks = o->lines ? hk_ceil_div(g->gm / g->out[2], o->lines) : hk_grid_pieces(g, o->bm);
  inner_outputs(g, &o->q0, &o->q1);
  if (k[HK_IGEMM_CUTS]) o->cuts = hk_cuts_make(g, plan->task.padded_nonfinite);
  o->zeros = needs_zeros(g) ? hk_alloc_zero((size_t)o->channels * sizeof(float)) : NULL;
  if (!o->zeros && needs_zeros(g)) return hk_fail(HK_NO_MEMORY, "no memory for a row of zeros");
  float *to;
  const int64_t layout[] = {o->panels.count, o->panels.tail, o->bk};
  const hk_status s =
      hk_plan_pack_room(plan, o->panels.group_size * g->groups, sizeof *to, layout, HK_COUNT(layout), &to);
  if (to) hk_panels_pack(plan, &o->panels, plan->raw_f, to);
  return s;
}

static void destroy(hk_plan *plan) {
  hk_igemm_own *o = plan->own;
  if (o) hk_free(o->zeros);
  hk_free(o);
}

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_igemm_own *o = plan->own;
  hk_text_add(t, " panels=%lld vectors=%lld tail=%lld merged=%d flat=%d lines=%lld", (long long)o->panels.count,
              (long long)o->panels.vectors, (long long)o->panels.tail, o->merged, o->flat, (long long)o->lines);
  hk_text_add(t, " cuts=%dx%dx%d ahead=%d blocks=%lld splits=%lld segments=%lld fused=%d late=%d", o->cuts.planes,
              o->cuts.lines, o->cuts.columns, o->ahead, (long long)o->blocks, (long long)o->splits,
              (long long)o->segments, o->fuse.all, (int)o->fuse.late);
  hk_text_add(t, " dot=%s transpose=%s", o->panels.tail ? o->dot->name : "none",
              o->transpose ? o->transpose->name : "none");
}

const hk_algo hk_algo_igemm = {
    .name = "igemm",
    .summary = "implicit GEMM over adjacent channels: rows of x by pointer, panels of packed weights; for at most 8 "
               "outputs per group also dot products along the inputs",
    .knobs = {HK_KNOB_OF("bm", POSITIONS), HK_KNOB_OF("bn", K), HK_KNOB_OF("bk", C), HK_KNOB("pack", 0, HK_PACK_BLOCK),
              HK_KNOB_DERIVED("merge", 0, 1), HK_KNOB_DERIVED("flat", 0, 1), HK_KNOB_DERIVED("lines", 0, HK_EVEN_MOST),
              HK_KNOB_DERIVED("cuts", 0, 1), HK_KNOB_DERIVED("ahead", 0, 1), HK_KNOB_ORDER("tail", 0, 3)},
    .family = HK_FAMILY_IGEMM,
    .also = HK_FAMILY_DOT,
    .device = HK_CPU,
    .skips_padding = true,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = hk_igemm_run,
    .destroy = destroy,
    .trace = trace};
