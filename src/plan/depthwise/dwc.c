/* Depthwise and grouped convolution with lanes over channels (channels-last): x's channels contiguous over all groups,
 * at most a vector of inputs and outputs per group, any window of at most 512 chains, stride, padding, filter dilation.
 * f32 data, y of any type and layout. No workspace. Refuses input dilation, gates and state. See dwc.h. */
#include <string.h>

#include "cost/cost.h"
#include "plan/depthwise/dwc.h"

#define STAGED_TAPS 12 /* shortest window worth a copy */
#define PASS 6         /* chains of a pass when x streams through the caches: its rows stay in L2 */
#define STRETCH 6144   /* floats of a staged stretch that stay in L1 */

/* Taps of a window row that chain lie this many taps apart; 0: none do. */
static int64_t chain_step(const hk_geom *g, const hk_dwc *p) {
  const int64_t step = g->stride[2] * p->unit;
  return step % g->dil[2] == 0 && step / g->dil[2] < g->win[2] ? step / g->dil[2] : 0;
}

static int64_t row_runs(const hk_geom *g, const hk_dwc *p) {
  const int64_t step = chain_step(g, p);
  return step ? hk_tap_run_count(g->win[2], step) : g->win[2];
}

static bool flat(const hk_strides *s, int64_t groups, int64_t channels) {
  return (s->channel == 1 || channels == 1) && (s->group == channels || groups == 1);
}

/* Kernels finish the outputs in registers: channels of y and of the residual lie next to each other. */
static bool fuses(const hk_task *t, hk_dw_fuse *fuse) {
  const hk_geom *g = &t->geom;
  return hk_dw_fuse_make(t, fuse) && flat(&g->y, g->groups, g->k) &&
         (!t->epi.e.residual || flat(&t->epi.c, g->groups, g->k));
}

static bool supported(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) return hk_refuse(why, "x and f must be f32");
  if (g->c < 1 || g->k < 1 || g->gm == 0) return hk_refuse(why, "y is empty");
  if (g->batch_grouped) return hk_refuse(why, "batch_groups must be 1");
  if (!flat(&g->x, g->groups, g->c)) return hk_refuse(why, "the channels of x must be adjacent");
  if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) return hk_refuse(why, "input dilation must be 1");
  if (t->epi.e.gate) return hk_refuse(why, "epilogue.gate must be 0");
  if (t->options.stateful) return hk_refuse(why, "options.stateful must be 0");
  if (g->taps > HK_TABLE_TAPS) return hk_refuse(why, "the window has more than 262144 taps");
  int64_t reach = 0;
  for (int i = 0; i < 3; i++) {
    int64_t span;
    if (!hk_mul_checked(g->win[i] * g->dil[i], g->x.at[i] < 0 ? -g->x.at[i] : g->x.at[i], &span) || span > INT32_MAX)
      return hk_refuse(why, "the window spans too much memory");
    reach += span;
  }
  return reach <= INT32_MAX || hk_refuse(why, "the window spans too much memory");
}

#define NO_BLOCKS "a group has more inputs than 64, or outputs that are not one, two or four vectors"
/* The channels of a group fit a block, or its outputs are blocks of their own that all read its inputs one by one. */
static bool blocks_fit(const hk_geom *g, int64_t vw) {
  return (g->c <= vw || g->c <= 64) && (g->k <= vw || g->k == 2 * vw || g->k == 4 * vw);
}

/* Pixels lie densely and no tap leaves x along the row, so lanes may go on into the next pixel. */
static bool dense_pixels(const hk_task *t) {
  const hk_geom *g = &t->geom;
  return g->stride[2] == 1 && g->lo[2] <= 0 && g->out[2] - 1 + (g->win[2] - 1) * g->dil[2] - g->lo[2] < g->in[2] &&
         g->x.at[2] == g->c * g->groups && g->y.at[2] == g->k * g->groups && flat(&g->y, g->groups, g->k) &&
         (!t->epi.e.residual || (t->epi.c.at[2] == g->y.at[2] && flat(&t->epi.c, g->groups, g->k)));
}

static int64_t most_unit(const hk_task *t, int64_t vw) {
  const hk_geom *g = &t->geom;
  const int64_t lanes = hk_max64(g->c, g->k) * g->groups;
  return dense_pixels(t) && lanes * 2 <= vw ? vw / lanes : 1;
}

/* Taps of a window that is one chain which the kernel knows whole; 0: it is not. */
static int32_t whole_chain(const hk_geom *g, const hk_dwc *p) {
  const bool one = p->source == HK_DWC_DIRECT && !p->inputs && g->taps == g->win[2] && g->taps <= HK_CHAIN_TAPS;
  return one && (g->taps == 1 || (p->unit == 1 && chain_step(g, p) == 1)) ? (int32_t)g->taps : 0;
}

/* y may hold sums between passes. */
static bool resumes(const hk_task *t, const hk_dwc *p) {
  const hk_geom *g = &t->geom;
  hk_dw_fuse fuse;
  return p->source == HK_DWC_DIRECT && !t->epi.e.residual && hk_dw_fuse_make(t, &fuse) && flat(&g->y, g->groups, g->k);
}

/* Where masks cost, the last block overlaps the one before, if a sum may be stored twice, by one thread: with AVX2 4
 * taps of 20 channels take 2.6 us for 3.2. AVX-512 gains nothing. */
static bool can_move_back(const hk_task *t, const hk_dwc *p, const hk_kernel *kernel) {
  return kernel->isa != HK_ISA_AVX512 && !p->inputs && p->unit == 1 && p->blocks > 1 && p->shards == 1 && !p->chains &&
         p->blocks * p->vw > t->geom.groups && resumes(t, p);
}

/* Neighbouring pixels lie a multiple of 4 KiB apart: they share one set of L1, which holds eight of them. */
static bool aliases(const hk_geom *g) { return g->x.at[2] * g->stride[2] * 4 % 4096 == 0; }

/* A result that no cache could keep goes past them; see goes_past. */
static bool too_large(const hk_geom *g) { return g->bytes > 0.45 * (double)hk_cost_l3(); }

static int64_t most_wide(const hk_dwc *p) {
  return p->source == HK_DWC_STAGED && !p->inputs && p->block_groups == p->vw ? hk_max64(1, p->blocks) : 1;
}

/* Blocks of a depthwise copy. What the caches hold is copied up to four lines of a pixel at once, as long as several
 * windows fit the buffer: Zen 4, 1024 pixels, 31 taps, 1024 channels take 752 us for 793, with AVX2 793 for 869 and 512
 * channels 377 for 502. Memory does not like it (4096 pixels, AVX-512: 5000 us for 3700): there a pixel with a page of
 * its own gives one line, closer ones a vector. */
static int64_t staged_wide(const hk_geom *g, const hk_dwc *p) {
  const int64_t vectors = HK_ALIGN / 4 / p->vw, pixels = p->cols_staged * g->win[0] * g->win[1];
  if (most_wide(p) == 1) return 1;
  int64_t lines = too_large(g) ? 1 : 4;
  while (lines > 1 && (5 * pixels * lines * (HK_ALIGN / 4) > 2 * HK_DWC_STAGE || p->blocks < lines * vectors))
    lines /= 2;
  if (lines > 1) return lines * vectors;
  return aliases(g) && p->blocks >= vectors && pixels * 2 * (HK_ALIGN / 4) <= STRETCH ? vectors : 1;
}

/* Rows that all read alike go together, tile by tile, where the pixels of a row lie a multiple of 4 KiB apart:
 * neighbouring rows are then what lies side by side (7 taps 64 apart of 64 channels x 4096, by phases: 50 us for 75).
 */
static bool can_go_together(const hk_task *t, const hk_dwc *p) {
  const hk_geom *g = &t->geom;
  hk_dw_fuse fuse;
  const bool alike = g->win[0] == 1 && g->win[1] == 1 && g->out[0] == 1 && g->lo[0] == 0 && g->lo[1] == 0 &&
                     g->in[0] > 0 && (g->out[1] - 1) * g->stride[1] < g->in[1];
  return alike && fuses(t, &fuse) && p->source == HK_DWC_DIRECT && !p->inputs && p->unit == 1;
}
static bool go_together(const hk_task *t, const hk_dwc *p) { return aliases(&t->geom) && can_go_together(t, p); }

/* A result that no cache could keep is not fetched before it is written; every vector of it must be a whole line.
 * Measured on Zen 4 with 32 MiB of L3, which other cores use too: 3 taps of 8 + 8 MiB take 294 us with non-temporal
 * stores, 270 to 340 through the caches, on a busy day 1170; 4 + 4 MiB take 147 against 108; with AVX2, by pairs of
 * vectors, 4 taps of 16 + 16 MiB take 1520 us for 2810. Staged calls are too short to wait for such stores. */
static bool can_go_past(const hk_geom *g, const hk_dwc *p, const hk_kernel *kernel) {
  const int64_t line = HK_ALIGN / 4;
  const bool pairs =
      kernel->isa == HK_ISA_AVX2 && p->chain && p->blocks % (2 * p->shards) == 0; /* two vectors per line */
  return p->fused && p->source == HK_DWC_DIRECT && !p->back && (p->vw == line || pairs) && p->y_lanes == p->vw &&
         g->y.at[2] % line == 0 && g->y.at[1] % line == 0 && g->y.at[0] % line == 0 && g->y.outer % line == 0;
}

/* Pixels of x and y lie a multiple of 2 KiB apart: see goes_down in dwc_run.c. */
static bool can_go_backwards(const hk_geom *g, const hk_dwc *p) {
  return p->source == HK_DWC_DIRECT && !p->inputs && g->x.at[2] * g->stride[2] * 4 % 2048 == 0 &&
         g->y.at[2] * 4 % 2048 == 0;
}

/* Chooses the derived knobs that layout does not need for its sizes, and takes them over. */
static bool take_derived(const hk_task *t, hk_decision *d, hk_dwc *p, char *why) {
  const hk_geom *g = &t->geom;
  int64_t *knob = d->knob;
  if (knob[HK_DWC_BACK] < 0) knob[HK_DWC_BACK] = can_move_back(t, p, d->kernel);
  if (knob[HK_DWC_BACK] && !can_move_back(t, p, d->kernel))
    return hk_refuse(why,
                     "back = 1 needs a last block that is not whole, shards = 1, chains = 0, no residual, not AVX-512");
  p->back = knob[HK_DWC_BACK] ? (int32_t)(p->blocks * p->vw - g->groups) : 0;
  const bool past = can_go_past(g, p, d->kernel);
  if (knob[HK_DWC_PAST] < 0) knob[HK_DWC_PAST] = past && too_large(g);
  if (knob[HK_DWC_PAST] && !past)
    return hk_refuse(why, "past = 1 needs source = 0, back = 0, a fused epilogue and vectors that are lines of y");
  if (knob[HK_DWC_BACKWARDS] < 0) knob[HK_DWC_BACKWARDS] = can_go_backwards(g, p);
  if (knob[HK_DWC_BACKWARDS] && !can_go_backwards(g, p))
    return hk_refuse(why, "backwards = 1 needs source = 0 and pixels of x and y a multiple of 2 KiB apart");
  p->past = knob[HK_DWC_PAST];
  p->backwards = knob[HK_DWC_BACKWARDS];
  return true;
}

bool hk_dwc_layout(const hk_task *t, hk_decision *d, hk_dwc *p, char *why) {
  const hk_geom *g = &t->geom;
  int64_t *knob = d->knob;
  p->fused = fuses(t, &p->fuse);
  p->vw = d->kernel->nr;
  p->mr = d->kernel->mr;
  if (!blocks_fit(g, p->vw)) return hk_refuse(why, NO_BLOCKS);
  if (knob[HK_DWC_UNIT] > most_unit(t, p->vw))
    return hk_refuse(why, "unit: the pixels of a vector do not follow each other in x and y");
  if (knob[HK_DWC_TILE] > p->mr) return hk_refuse(why, "tile is larger than the kernel's tile of pixels");
  p->source = knob[HK_DWC_SOURCE];
  p->unit = knob[HK_DWC_UNIT];
  p->tile = knob[HK_DWC_TILE];
  p->shards = knob[HK_DWC_SHARDS];
  p->parts = knob[HK_DWC_PARTS];
  p->chains = knob[HK_DWC_CHAINS];
  p->inputs = g->c == 1 && g->k == 1 ? 0 : g->c;
  p->block_groups = p->unit > 1 ? g->groups : hk_min64(g->groups, hk_max64(1, p->vw / hk_max64(g->c, g->k)));
  p->share = g->k > 2 * p->vw ? 2 : g->k > p->vw ? 1 : 0;
  p->blocks = hk_ceil_div(g->groups, p->block_groups) << p->share;
  p->y_block = p->block_groups * g->k >> p->share;
  p->x_lanes = p->unit * p->block_groups * g->c;
  p->y_lanes = p->unit * p->y_block;
  p->units = hk_ceil_div(g->out[2], p->unit);
  p->tiles = hk_ceil_div(p->units, p->tile);
  if (knob[HK_DWC_TOGETHER] < 0) knob[HK_DWC_TOGETHER] = go_together(t, p);
  if (knob[HK_DWC_TOGETHER] && !can_go_together(t, p))
    return hk_refuse(why, "together = 1 needs one window row, no padding of rows, source = 0 and a fused epilogue");
  p->rows = knob[HK_DWC_TOGETHER] ? g->out[1] : 1;
  p->items = g->n * g->out[0] * (g->out[1] / p->rows) * p->tiles;
  p->run_count = g->win[0] * g->win[1] * row_runs(g, p);
  p->f_block = g->taps * p->vw * hk_max64(1, p->inputs);
  p->chain = whole_chain(g, p);
  if (!take_derived(t, d, p, why)) return false;
  p->cols_staged = (p->tile - 1) * g->stride[2] + (g->win[2] - 1) * g->dil[2] + 1;
  const int64_t rows = g->win[0] * g->win[1];
  if (knob[HK_DWC_WIDE] < 0) knob[HK_DWC_WIDE] = staged_wide(g, p);
  p->wide = knob[HK_DWC_WIDE];
  if (p->wide > most_wide(p) || (p->wide & (p->wide - 1)))
    return hk_refuse(why, "wide is a power of two, at most the blocks; 1 unless source = 1 and groups of one channel");
  const int64_t room = HK_DWC_STAGE / (p->vw * p->wide) - 2;
  if (p->source == HK_DWC_STAGED &&
      (p->unit > 1 || p->share || p->x_lanes > p->vw || rows > room || p->cols_staged > room / rows))
    return hk_refuse(why, "source=1 needs a window that fits the buffer, unit=1");
  /* more tiles while the buffer stays in L1 */
  const int64_t stretch = p->vw * p->wide > HK_ALIGN / 4 ? HK_DWC_STAGE - 2 * p->vw * p->wide : STRETCH;
  const int64_t spare = stretch / (p->vw * p->wide) / rows - p->cols_staged;
  p->stretch = p->source == HK_DWC_STAGED ? 1 + (spare > 0 ? spare / (p->tile * g->stride[2]) : 0) : 1;
  p->stretch = hk_min64(p->stretch, p->tiles);
  p->cols_staged += (p->stretch - 1) * p->tile * g->stride[2];
  if (p->chains < 0 || (p->chains == 0 && p->run_count > HK_DWC_RUNS && p->source == HK_DWC_DIRECT) ||
      p->chains > HK_DWC_RUNS)
    return hk_refuse(why, "the window has too many chains for one pass");
  if (p->chains && !resumes(t, p))
    return hk_refuse(why, "several passes need source=0, an f32 y and an epilogue that fuses, without residual");
  if (!t->f_now && p->f_block > HK_DWC_WEIGHTS) return hk_refuse(why, "the window is too large for weights at execute");
  return true;
}

/* What a tile reads of one block lies in fewer sets of L1 than hold it: 64 of them, eight lines each. */
static bool crowded(const hk_geom *g, const hk_dwc *p) {
  const int64_t apart = hk_gcd(4096, hk_max64(64, g->x.at[2] * g->stride[2] * 4));
  return g->win[0] * g->win[1] * (p->tile + g->win[2] - 1) > 8 * (4096 / apart);
}

/* cycles: products, or the loads and permutes that feed them */
static double predict(const hk_task *t, const hk_decision *d, const hk_dwc *p) {
  const hk_geom *g = &t->geom;
  const double peak = hk_cost_flops(d->kernel->isa), width = p->vw == 8 && peak > 32 ? 32 : peak;
  const double product = 2.0 * (double)p->vw / width;
  const double rows = (double)g->n * (double)g->out[0] * (double)g->out[1];
  const double vectors = rows * (double)p->units * (double)p->blocks, inputs = (double)hk_max64(1, p->inputs);
  /* loads a product; measured on Zen 4: a permuted one costs more than it saves, chains pay for both */
  const double per_tile = (double)p->tile;
  const double loads = ((double)row_runs(g, p) * (per_tile - 1) + (double)g->win[2]) / (per_tile * (double)g->win[2]);
  /* pixels that alias in a few sets of L1: a vector of half a line visits them twice */
  const bool alias = p->vw < 16 && p->inputs && crowded(g, p);
  const double feed = !p->inputs                             ? product * (0.2 + loads)
                      : p->unit == 1 && p->block_groups == 1 ? (alias ? 0.9 : 0.12 + (g->c < 8 ? 0.65 : 0.5) * loads)
                                                             : product * (0.3 + 1.5 * loads);
  double tap = feed > 1.02 * product ? feed : 1.02 * product;
  /* grouped, tiles whose taps leave the row: each pixel of a tap asks whether it counts (16 groups of 6 and 8 channels
   * of 14 x 14, where all tiles do: 2.2 times the products of 8 lanes) */
  const int64_t ends = (g->lo[2] > 0) + (hk_geom_source(g, 2, g->out[2] - 1, g->win[2] - 1) >= g->in[2]);
  const double edges = p->inputs && p->vw == 8 ? (double)hk_min64(ends, p->tiles) / (double)p->tiles : 0;
  if (tap < product * (1.0 + 1.2 * edges)) tap = product * (1.0 + 1.2 * edges);
  if (p->source == HK_DWC_DIRECT && p->rows == 1 && p->tile > 4 && !(p->chain && p->tile == 6) && aliases(g) &&
      loads < 0.7)
    tap *= 1.5; /* a chain's pixels alias in L1 */
  /* and so do taps that lie a multiple of 4 KiB apart: 7 of them 64 pixels of 64 channels apart take 105 us with AVX2,
   * by phases 80 */
  if (p->source == HK_DWC_DIRECT && !p->inputs && g->win[2] > 3 && !chain_step(g, p) &&
      g->dil[2] * g->x.at[2] * 4 % 4096 == 0)
    tap *= 1.5;
  /* few accumulators do not hide the latency of four cycles */
  const double latency = 4.0 / per_tile;
  if (tap < latency) tap = latency;
  const double store = 1.2 * product + 0.5;
  /* taps outside x are skipped, which depthwise windows are too short to gain from */
  double cycles = vectors * ((p->inputs ? hk_geom_inside(g) : 1.0) * (double)g->taps * inputs * tap + store) +
                  rows * ((double)p->tiles * (10.0 + 4.0 * (double)p->run_count) + 20.0);
  if (p->source == HK_DWC_STAGED)
    cycles += rows * (double)p->blocks * (double)(g->win[0] * g->win[1]) * 2.0 * (double)p->cols_staged *
              (double)p->tiles / (double)p->stretch;
  /* part of a vector is stored in pieces where masks cost */
  if (d->kernel->isa == HK_ISA_AVX2 && g->groups * g->k % p->vw && !p->back) cycles += 4.0 * rows * (double)p->units;
  /* dense, several vectors of outputs: measured 8 % (64 channels of 224 x 224) to 46 % (16 of 8 x 14 x 14, AVX2) above
   * the count */
  if (g->groups == 1 && g->k > p->vw) cycles *= 1.2;
  hk_work w = {.cycles = cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  if (!p->fused) hk_work_store(&w, t, true, rows * (double)g->out[2] * (double)p->blocks);
  return hk_cost_seconds(&hk_cost_here()->dwc, &w, p->shards * p->parts, t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  hk_dwc p = {0};
  if (!hk_dwc_layout(t, d, &p, why)) return false;
  d->predicted_s = predict(t, d, &p);
  d->workspace_bytes = 0;
  return true;
}

/* The kernel knows chains of 4, 6 and 8 pixels. Measured on Zen 4: 8 pixels that lie 4 KiB apart evict each other,
 * unless those of y keep out of the way; six are stored together. */
static int64_t chain_tile(const hk_geom *g, int64_t mr) {
  if (mr < 8) return hk_min64(mr, 4);
  return !aliases(g) || too_large(g) ? 8 : g->taps >= 5 ? 6 : 4;
}

/* Few outputs and many taps: the rows of x are too many for L2, so all channels of some of them go before the others.
 */
static int64_t choose_chains(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  const hk_dwc p = {.source = d->knob[HK_DWC_SOURCE], .unit = d->knob[HK_DWC_UNIT]};
  const int64_t runs = g->win[0] * g->win[1] * row_runs(g, &p);
  if (!resumes(t, &p)) return 0;
  const double rows = (double)g->taps * (double)(g->groups * g->c) * 4;
  if (hk_ceil_div(g->out[2], p.unit) <= 3 * d->knob[HK_DWC_TILE] && runs > 2 * PASS && rows > (double)hk_cost_l2())
    return PASS;
  return runs > HK_DWC_RUNS ? HK_DWC_RUNS : 0;
}

/* Two pixels per page share two sets of L1, and vectors of half a line visit them twice: AVX2 takes 513 us staged for
 * 580, 31 taps of 512 channels x 1024, and 1310 for 1630, 128 taps. */
static bool halves(const hk_geom *g, int64_t vw) {
  return vw == 8 && g->k == 1 && g->x.at[2] * g->stride[2] * 4 == 2048;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!supported(t, why)) return false;
  const int64_t vw = d->kernel->nr, mr = d->kernel->mr;
  if (!blocks_fit(g, vw)) return hk_refuse(why, NO_BLOCKS);
  const int64_t unit = most_unit(t, vw), units = hk_ceil_div(g->out[2], unit);
  d->knob[HK_DWC_SOURCE] = (aliases(g) || halves(g, vw)) && unit == 1 && g->c == 1 && g->win[0] == 1 &&
                           g->win[1] == 1 && g->win[2] >= STAGED_TAPS;
  d->knob[HK_DWC_UNIT] = unit;
  const hk_dwc p = {.source = d->knob[HK_DWC_SOURCE], .unit = unit, .inputs = g->c == 1 && g->k == 1 ? 0 : g->c};
  const int64_t most =
      aliases(g) && !p.source && g->c == 1 && !(go_together(t, &p) && g->out[1] > 1) ? hk_min64(mr, 4) : mr;
  d->knob[HK_DWC_TILE] = hk_ceil_div(units, hk_ceil_div(units, most));
  if (whole_chain(g, &p) && units >= 8) d->knob[HK_DWC_TILE] = chain_tile(g, mr);
  const int64_t blocks = hk_ceil_div(g->groups, hk_max64(1, vw / hk_max64(g->c, g->k)));
  const int64_t items = g->n * g->out[0] * g->out[1] * hk_ceil_div(units, d->knob[HK_DWC_TILE]);
  d->knob[HK_DWC_SHARDS] = hk_max64(1, hk_min64(t->threads, blocks / 4));
  d->knob[HK_DWC_PARTS] = hk_min64(items, hk_ceil_div(t->threads > 1 ? 2 * t->threads : 1, d->knob[HK_DWC_SHARDS]));
  d->knob[HK_DWC_CHAINS] = choose_chains(t, d);
  if (finish(t, d, why)) return true;
  d->knob[HK_DWC_SOURCE] = HK_DWC_DIRECT;
  d->knob[HK_DWC_CHAINS] = choose_chains(t, d);
  return finish(t, d, why);
}

static bool check(const hk_task *t, hk_decision *d, char *why) { return supported(t, why) && finish(t, d, why); }

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  *d = *base;
  if (index == 0) d->knob[HK_DWC_SOURCE] = !base->knob[HK_DWC_SOURCE];
  else if (index == 1) d->knob[HK_DWC_TILE] = hk_max64(1, base->knob[HK_DWC_TILE] / 2);
  else return false;
  return finish(t, d, why);
}

/* ---- build */

static void make_runs(const hk_geom *g, hk_dwc *p) {
  const int64_t chain = chain_step(g, p), step = chain ? chain : g->win[2];
  const bool staged = p->source == HK_DWC_STAGED;
  const int64_t col = staged ? p->vw * p->wide : g->x.at[2];
  int64_t n = 0, placed = 0;
  p->inner_first = 0;
  p->inner_last = p->units;
  for (int64_t a = 0; a < g->win[0]; a++)
    for (int64_t r = 0; r < g->win[1]; r++)
      for (int64_t phase = 0; phase < step && phase < g->win[2]; phase++)
        for (int64_t s = phase; s < g->win[2]; n++) {
          hk_dw_run *run = &p->runs[n];
          const int64_t at = s * g->dil[2];
          *run = (hk_dw_run){.last = INT16_MAX};
          run->offset = (int32_t)(at * col + (staged ? (a * g->win[1] + r) * p->cols_staged * p->vw * p->wide
                                                     : a * g->dil[0] * g->x.at[0] + r * g->dil[1] * g->x.at[1]));
          p->of[n] = (hk_dwc_run_of){a, r, -hk_floor_div(at - g->lo[2], g->stride[2]),
                                     -hk_floor_div(at - g->lo[2] - g->in[2], g->stride[2]), placed};
          for (; s < g->win[2] && run->taps < (chain ? HK_RUN_TAPS : 1); s += step, run->taps++)
            p->order[placed++] = (int32_t)((a * g->win[1] + r) * g->win[2] + s);
          p->inner_first = hk_max64(p->inner_first, p->of[n].first);
          p->inner_last = hk_min64(p->inner_last, p->unit > 1 ? p->units : p->of[n].last - run->taps + 1);
        }
}

static void make_index(const hk_geom *g, hk_dwc *p) {
  const int64_t pixel = p->block_groups * g->k;
  for (int64_t i = 0; i < hk_max64(1, p->inputs); i++)
    for (int64_t l = 0; l < p->vw; l++)
      p->index[i * p->vw + l] =
          l < p->y_lanes && p->inputs ? (int32_t)(l / pixel * p->block_groups * g->c + l % pixel / g->k * g->c + i) : 0;
}

int64_t hk_dwc_weights(const hk_dwc *p, int64_t from, int64_t to) {
  int64_t taps = 0;
  for (int64_t n = from; n < to; n++) taps += p->runs[n].taps;
  return taps * p->vw * hk_max64(1, p->inputs);
}

float *hk_dwc_pack(const hk_geom *g, const hk_dwc *p, const float *f, int64_t block, int64_t from, int64_t to,
                   float *at) {
  const int64_t pixel = p->block_groups * g->k;
  const int64_t first = (block >> p->share) * p->block_groups - (block == p->blocks - 1 ? p->back : 0);
  const int64_t part = (block & ((1 << p->share) - 1)) * p->vw; /* where a group's outputs are several blocks */
  const int32_t *order = p->order + p->of[from].order;
  for (int64_t n = from; n < to; order += p->runs[n++].taps)
    for (int64_t i = 0; i < hk_max64(1, p->inputs); i++)
      for (int64_t t = 0; t < p->runs[n].taps; t++) {
        const float *tap = f + i * g->f.channel + hk_dw_tap(g, order[t]);
        for (int64_t l = 0; l < p->vw; l++) {
          const int64_t lane = part + l, group = first + lane % pixel / g->k;
          *at++ = l < p->y_lanes && group < g->groups ? tap[group * g->f.group + lane % g->k * g->f.outer] : 0.0f;
        }
      }
  return at;
}

static void destroy(hk_plan *plan) {
  hk_dwc *p = plan->own;
  if (p) {
    hk_free(p->runs);
    hk_free(p->of);
    hk_free(p->order);
    hk_free(p->index);
  }
  hk_free(p);
}

static hk_status pack_all(hk_plan *plan, const hk_dwc *p) {
  float *to;
  const int64_t layout[] = {p->back, p->block_groups, p->run_count, p->chains};
  const hk_status s = hk_plan_pack_room(plan, p->blocks * p->f_block, sizeof *to, layout, HK_COUNT(layout), &to);
  for (int64_t run = 0; to && run < p->run_count; run += p->chains)
    for (int64_t b = 0; b < p->blocks; b++)
      to = hk_dwc_pack(&plan->task.geom, p, plan->raw_f, b, run, hk_min64(run + p->chains, p->run_count), to);
  return s;
}

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  char why[HK_REASON];
  hk_dwc *p = plan->own = hk_alloc_zero(sizeof *p);
  if (!p) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!hk_dwc_layout(&plan->task, &plan->decision, p, why)) return hk_fail(HK_UNSUPPORTED, "dwc: %s", why);
  p->stage = hk_kernel_best(HK_FAMILY_STAGE, plan->decision.kernel->isa)->fn;
  if (!p->chains) p->chains = p->run_count;
  p->runs = hk_alloc_zero((size_t)p->run_count * sizeof *p->runs);
  p->of = hk_alloc_zero((size_t)p->run_count * sizeof *p->of);
  p->order = hk_alloc((size_t)g->taps * sizeof *p->order);
  p->index = hk_alloc((size_t)(hk_max64(1, p->inputs) * p->vw) * sizeof *p->index);
  if (!p->runs || !p->of || !p->order || !p->index) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  make_runs(g, p);
  make_index(g, p);
  const hk_status s = pack_all(plan, p);
  if (!s) hk_dwc_prepare(plan, p);
  return s;
}

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_dwc *p = plan->own;
  hk_text_add(t, " source=%lld unit=%lld tile=%lld rows=%lld wide=%lld stretch=%lld back=%d", (long long)p->source,
              (long long)p->unit, (long long)p->tile, (long long)p->rows, (long long)p->wide, (long long)p->stretch,
              p->back);
  hk_text_add(t, " chain=%d chains=%lld runs=%lld past=%d backwards=%d fused=%d at_once=%d shards=%lld parts=%lld",
              p->chain, (long long)p->chains, (long long)p->run_count, p->past, p->backwards, p->fused, p->at_once,
              (long long)p->shards, (long long)p->parts);
}

const hk_algo hk_algo_dwc = {.name = "dwc",
                             .summary = "depthwise and narrow groups, vectors over channels (channels-last)",
                             .knobs = {HK_KNOB("source", 0, 1), HK_KNOB("unit", 1, 64), HK_KNOB("tile", 1, 64),
                                       HK_KNOB("shards", 1, HK_THREAD_PIECES), HK_KNOB("parts", 1, HK_THREAD_PIECES),
                                       HK_KNOB("chains", 0, HK_DWC_RUNS), HK_KNOB_DERIVED("wide", 1, 64),
                                       HK_KNOB_DERIVED("together", 0, 1), HK_KNOB_ORDER("back", 0, 1),
                                       HK_KNOB_DERIVED("past", 0, 1), HK_KNOB_DERIVED("backwards", 0, 1)},
                             .family = HK_FAMILY_DWC,
                             .device = HK_CPU,
                             .offer = offer,
                             .vary = vary,
                             .check = check,
                             .build = build,
                             .run = hk_dwc_run,
                             .destroy = destroy,
                             .trace = trace};
