/* Grouped convolution over planar rows (channels-first) on the kernels of the small family: any groups, channels,
 * stride, padding and filter dilation, at most 128 taps. f32 data, weights at creation, y of any type, fastest with a
 * contiguous last dimension; few adjacent channels (channels-last) are transposed into rows on the way in and back on
 * the way to y. No workspace. Refuses input dilation, gates, state, groups of the batch. See grouped.h for the sources,
 * of which grouped_rows.c is the third. */
#include <math.h>

#include "cost/cost.h"
#include "plan/grouped/grouped.h"

#define INPUTS 6144 /* floats of staged inputs that stay in L1 beside the sums */

static int64_t reach(const hk_geom *g, int d) { return (g->win[d] - 1) * g->dil[d] / g->stride[d]; }

/* ---- tiles of channels */

/* The kernels of an ISA, or of one below it, by the channels of their tiles. */
#define MOST_ROWS 8
typedef struct kernels {
  const hk_kernel *of[MOST_ROWS + 2];
} kernels;

static kernels kernels_of(hk_isa isa) {
  kernels by = {0};
  for (const hk_kernel *k = hk_kernels; k < hk_kernels + hk_kernel_count; k++) {
    if (k->family != HK_FAMILY_SMALL || k->mr > MOST_ROWS || !hk_kernel_runs(k, isa)) continue;
    if (!by.of[k->mr] || k->isa > by.of[k->mr]->isa) by.of[k->mr] = k;
  }
  return by;
}

/* cycles a tap, input and vector of 8 lanes: products, or the loads that a tile shares */
static double tile_cycles(const hk_kernel *k) {
  const double product = 16.0 / hk_cost_flops(k->isa), vectors = (double)k->nr / 8.0;
  const double work = (double)k->mr * product, feed = 1.4 + (double)k->mr * 0.5 / vectors;
  return work > feed ? work : feed;
}

/* Cuts the outputs of a group into so many tiles of at most two sizes; false: there are no kernels for these sizes. */
static bool cut_tiles(const hk_geom *g, const kernels *by, int64_t count, hk_grouped *p) {
  const int64_t small = g->k / count, larger = g->k % count;
  if (small > MOST_ROWS) return false;
  const hk_kernel *kernel[2] = {by->of[small], larger ? by->of[small + 1] : NULL};
  if (!kernel[0] || (larger && !kernel[1])) return false;
  p->tile_cycles =
      (double)(count - larger) * tile_cycles(kernel[0]) + (larger ? (double)larger * tile_cycles(kernel[1]) : 0);
  p->tile_sizes = larger ? 2 : 1;
  p->tile[0] = (hk_grouped_tiles){.kernel = kernel[0], .tiles = count - larger};
  p->tile[1] = (hk_grouped_tiles){.kernel = kernel[1], .tiles = larger, .first = (count - larger) * small};
  p->tile[1].f = g->groups * p->tile[0].tiles * small * g->gk;
  return true;
}

/* The count with the least cycles, of those whose first tile is this kernel's (NULL: any); 0 when there is none. */
static int64_t choose_tiles(const hk_geom *g, const kernels *by, const hk_kernel *first) {
  double best = 0;
  int64_t tiles = 0;
  for (int64_t mr = 1; mr <= MOST_ROWS; mr++) {
    hk_grouped p;
    const int64_t count = hk_ceil_div(g->k, mr);
    if (!cut_tiles(g, by, count, &p) || (first && p.tile[0].kernel != first)) continue;
    if (tiles && p.tile_cycles >= best) continue;
    best = p.tile_cycles;
    tiles = count;
  }
  return tiles;
}

/* ---- bands */

static void buffer_shape(const hk_geom *g, hk_grouped *p) {
  p->pitch = p->band_q + reach(g, 2);
  /* the copy may clear up to a vector beyond a row */
  p->plane = (p->band_p + reach(g, 1)) * p->pitch + 16;
  p->channel = g->win[0] * g->stride[1] * g->stride[2] * p->plane;
  p->used = g->c * p->channel;
}

static bool fits(const hk_geom *g, hk_grouped *p, int64_t limit) {
  /* sizes that would overflow a product never fit */
  if (g->win[2] * g->dil[2] > HK_DW_BUFFER || g->win[1] * g->dil[1] > HK_DW_BUFFER || g->stride[1] > 64 ||
      g->stride[2] > 64 || g->c > HK_DW_BUFFER || p->band_q > HK_DW_BUFFER || p->band_p > HK_DW_BUFFER)
    return false;
  buffer_shape(g, p);
  return p->used <= limit && g->k * ((p->band_p - 1) * p->pitch + p->band_q) <= HK_GROUPED_SUMS;
}

static bool choose_band(const hk_geom *g, hk_grouped *p) {
  static const int64_t limits[] = {INPUTS, HK_DW_BUFFER};
  for (int i = 0; i < 2; i++) {
    p->band_p = 1;
    for (p->band_q = g->out[2]; !fits(g, p, limits[i]) && p->band_q > 16;) p->band_q = hk_ceil_div(p->band_q, 2);
    if (!fits(g, p, limits[i])) continue;
    while (p->band_p < g->out[1]) {
      p->band_p++;
      if (fits(g, p, limits[i])) continue;
      p->band_p--;
      break;
    }
    p->band_p = hk_ceil_div(g->out[1], hk_ceil_div(g->out[1], p->band_p));
    return fits(g, p, limits[i]);
  }
  return false;
}

static bool direct(const hk_geom *g) {
  return g->in[0] == 1 && g->in[1] == 1 && g->win[0] == 1 && g->win[1] == 1 && g->out[0] == 1 && g->out[1] == 1 &&
         g->lo[0] == 0 && g->lo[1] == 0 && g->stride[2] == 1 && g->lo[2] <= 0 && g->x.at[2] == 1 && g->y.at[2] == 1 &&
         g->out[2] - 1 + (g->win[2] - 1) * g->dil[2] - g->lo[2] < g->in[2];
}

/* Rows of x that lie a few bytes off a multiple of 4 KiB apart: many of them alias in a few sets of L1, and tiles of 8
 * lanes come back to a line again (Zen 4, AVX2, 3 taps of 4098 frames: 16 channels took 97 us for 72, 32 channels 371
 * for 258; AVX-512 takes whole lines). Of 2 KiB it takes twice as many. */
bool hk_grouped_crowded(const hk_task *t, const hk_geom *g) {
  const int64_t apart = g->c >= 28 ? 2048 : 4096, off = g->x.channel * 4 & (apart - 1);
  return t->isa < HK_ISA_AVX512 && g->c >= 12 && hk_min64(off, apart - off) < 64;
}

/* Pieces of crowded rows that are worth copying; false and no band: they are not. */
static bool choose_copy(const hk_task *t, const hk_geom *g, hk_grouped *p) {
  if (g->taps > 1 && hk_grouped_crowded(t, g)) {
    p->band_p = 1;
    for (p->band_q = hk_min64(g->out[2], 256); p->band_q > 4 * reach(g, 2) && p->band_q >= 64; p->band_q /= 2)
      if (fits(g, p, HK_DW_BUFFER)) return true;
  }
  p->band_q = 0;
  return false;
}

/* ---- the epilogue that the kernel does */

static bool fuse(const hk_task *t, hk_grouped *p) {
  const hk_epilogue *e = &t->epi.e;
  p->act = HK_SMALL_NONE;
  if (t->geom.y_type != HK_F32 || (t->geom.y.at[2] != 1 && !hk_woven(&t->geom.y, t->geom.k)) || e->scale ||
      e->residual || e->user2 || e->store)
    return false;
  if (e->act == HK_ACT_NONE) return true;
  const bool plain = e->act == HK_ACT_HARDTANH && e->a == 0 && e->b == 0;
  p->act = e->act == HK_ACT_LEAKY ? HK_SMALL_LEAKY : HK_SMALL_CLIP;
  p->lo = e->act == HK_ACT_RELU ? 0.0f : plain ? -1.0f : e->a;
  p->hi = e->act == HK_ACT_RELU ? INFINITY : plain ? 1.0f : e->b;
  return e->act == HK_ACT_RELU || e->act == HK_ACT_CLIP || e->act == HK_ACT_HARDTANH || e->act == HK_ACT_LEAKY;
}

/* ---- the shape that is run */

static bool in_line(const hk_strides *s, const int64_t size[3]) {
  int64_t step = s->at[2];
  for (int d = 2; d >= 0; step *= size[d], d--)
    if (size[d] > 1 && s->at[d] != step) return false;
  return true;
}

/* A pointwise problem whose pixels all follow each other is one row, unless the epilogue must know where in the image
 * it is. */
static void shape(const hk_task *t, hk_grouped *p) {
  hk_geom *g = &p->geom;
  *g = t->geom;
  p->fused = fuse(t, p);
  bool flat = p->fused && g->taps == 1 && g->out[2] > 1 && in_line(&g->x, g->in) && in_line(&g->y, g->out);
  for (int d = 0; d < 3; d++) flat &= g->stride[d] == 1 && g->lo[d] == 0 && g->in[d] == g->out[d];
  if (!flat) return;
  g->in[2] = g->out[2] = g->in_span[2] = g->pixels;
  g->in[0] = g->in[1] = g->out[0] = g->out[1] = g->in_span[0] = g->in_span[1] = 1;
}

/* ---- decisions */

static bool supported(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) return hk_refuse(why, "x and f must be f32");
  if (g->gm == 0 || g->c < 1 || g->k < 1) return hk_refuse(why, "y is empty");
  if (!t->f_now) return hk_refuse(why, "needs the weights at creation");
  if (g->batch_grouped) return hk_refuse(why, "batch_groups must be 1");
  if (g->taps > HK_GROUPED_TAPS) return hk_refuse(why, "the window has more than 128 taps");
  if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) return hk_refuse(why, "input dilation must be 1");
  if (t->epi.e.gate) return hk_refuse(why, "epilogue.gate must be 0");
  if (t->options.stateful) return hk_refuse(why, "options.stateful must be 0");
  if (g->k > HK_TABLE_BYTES / (int64_t)sizeof(float) / g->groups)
    return hk_refuse(why, "a row of zeros in place of the bias would take more than 16 MiB");
  return true;
}

bool hk_grouped_layout(const hk_task *t, hk_decision *d, hk_grouped *p, char *why) {
  const hk_geom *g = &p->geom;
  int64_t *knob = d->knob;
  shape(t, p);
  if (knob[HK_GROUPED_ROWS] > g->out[1] || knob[HK_GROUPED_COLS] > g->out[2])
    return hk_refuse(
        why, "rows and cols are at most the rows and columns of the output, rows merged where they follow each other");
  p->source = knob[HK_GROUPED_SOURCE];
  p->band_p = knob[HK_GROUPED_ROWS];
  p->band_q = knob[HK_GROUPED_COLS];
  p->shards = knob[HK_GROUPED_SHARDS];
  p->parts = knob[HK_GROUPED_PARTS];
  p->bands_p = hk_ceil_div(g->out[1], p->band_p);
  p->bands_q = hk_ceil_div(g->out[2], p->band_q);
  p->bands = g->out[0] * p->bands_p * p->bands_q;
  p->uniform = g->k == 1 || g->y.group == g->k * g->y.channel || g->groups == 1;
  const kernels by = kernels_of(d->kernel->isa);
  if (knob[HK_GROUPED_TILES] < 0) knob[HK_GROUPED_TILES] = choose_tiles(g, &by, d->kernel);
  if (knob[HK_GROUPED_TILES] < 1 || !cut_tiles(g, &by, knob[HK_GROUPED_TILES], p) || p->tile[0].kernel != d->kernel)
    return hk_refuse(why, "no tiles of this kernel's channels, or one more, make up k");
  if (t->padded_nonfinite && p->source == HK_GROUPED_STAGED)
    return hk_refuse(why, "weights hold Inf or NaN, and source = 1 multiplies padded taps by zero");
  if (p->source == HK_GROUPED_DIRECT)
    return (direct(g) && p->fused) ||
           hk_refuse(why, "source=0 needs one dimension, stride 1, no padding, an epilogue that fuses");
  return fits(g, p, HK_DW_BUFFER) || hk_refuse(why, "a band does not fit the buffer");
}

/* cycles an element: rows are copied; adjacent channels are transposed, by squares of 8 x 8 or, few that fill a pixel,
 * by whole vectors; else one by one (Zen 4, 3 to 33 channels of 28 x 28) */
static double bring(const hk_strides *s, int64_t channels, int64_t stride) {
  if (s->at[2] == 1) return stride == 1 ? 0.25 : 0.5;
  if (!hk_woven(s, channels)) return 3.0;
  if (channels >= 8) return 0.6 * (double)hk_round_up(channels, 8) / (double)channels;
  return s->at[2] == channels && stride == 1 ? 0.45 : 1.5;
}

static double predict(const hk_task *t, const hk_grouped *p) {
  const hk_geom *g = &p->geom;
  const bool staged = p->source == HK_GROUPED_STAGED;
  const double groups = (double)g->n * (double)g->groups, bands = (double)p->bands;
  const double flat = staged ? (double)((p->band_p - 1) * p->pitch + p->band_q) : (double)p->band_q;
  double cycles = groups * bands * (ceil(flat / 8.0) * (double)g->gk * p->tile_cycles * 1.08 + 40.0);
  if (!staged && hk_grouped_crowded(t, g)) cycles *= g->x.channel * 4 % 4096 < 2000 ? 1.4 : 1.15;
  const double rows = (double)p->band_p,
               out = hk_woven(&g->y, g->k) ? 20.0 * rows + rows * (double)(g->k * p->band_q) * bring(&g->y, g->k, 1)
                                           : (double)g->k * rows * (20.0 + 0.3 * (double)p->band_q);
  /* planes are brought one by one, a call for each of the rows' phases, and row by row */
  const double each = 25.0 + 8.0 * (double)(p->band_p + reach(g, 1)); /* 27 taps of 5 x 5 x 5, 3 to 2 channels */
  const double calls = hk_woven(&g->x, g->c) ? 0 : each * (double)(g->c * g->win[0] * g->stride[1]);
  /* without masks the end of a row that is part of a vector is stored in pieces (Zen 4: 24 cycles, 13 positions) */
  const bool pieces = p->tile[0].kernel->isa == HK_ISA_AVX2 && p->band_q % 8;
  if (!staged && pieces) cycles += groups * bands * (double)g->k * 20.0;
  if (staged) cycles += groups * bands * ((double)p->used * bring(&g->x, g->c, g->stride[2]) + calls + out);
  hk_work w = {.cycles = cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  if (staged && !p->fused) hk_work_store(&w, t, false, groups * bands * (double)(g->k * p->band_p));
  return hk_cost_seconds(&hk_cost_here()->grouped, &w, p->shards * p->parts, t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  hk_grouped p = {0};
  if (!hk_grouped_layout(t, d, &p, why)) return false;
  /* tiles for few channels read their rows again and again: with many channels per group those leave L1, and it takes
   * up to twice the count above; many outputs read the staged rows once per tile
   * (bench/results/2026-11-15-cost-audit-zen4.txt) */
  const double channels = (double)t->geom.c / 256;
  const double single =
      t->geom.c == 1 && t->geom.k == 1 && t->geom.taps > 1 ? 1.2 : 1; /* a tile of one row waits for its loads */
  d->predicted_s = predict(t, &p) * (1 + (channels < 1 ? channels : 1)) * (t->geom.k > 32 ? 1.5 : 1) * single;
  d->workspace_bytes = 0;
  return true;
}

/* True for the row that the best tiles of the highest ISA begin with. */
static bool best_row(const hk_task *t, const hk_kernel *row) {
  hk_grouped p;
  const kernels by = kernels_of(t->isa);
  const int64_t tiles = choose_tiles(&t->geom, &by, NULL);
  return tiles && cut_tiles(&t->geom, &by, tiles, &p) && p.tile[0].kernel == row;
}

/* DIRECT or STAGED. */
static bool offer_bands(const hk_task *t, hk_decision *d, char *why) {
  if (!supported(t, why)) return false;
  hk_grouped p = {0};
  const hk_geom *g = &p.geom;
  if (!best_row(t, d->kernel)) return hk_refuse(why, "tiles of another kernel are faster for this k");
  shape(t, &p);
  const bool is_direct = direct(g) && p.fused && !choose_copy(t, g, &p);
  if (!is_direct && !p.band_q && !choose_band(g, &p)) return hk_refuse(why, "a band does not fit the buffer");
  const int64_t planes = g->n * g->groups;
  d->knob[HK_GROUPED_SHARDS] = hk_min64(t->threads, planes);
  d->knob[HK_GROUPED_PARTS] = 1;
  if (is_direct) { /* several tiles of channels read a long row again: in bands that stay in L1 */
    const bool longs = g->k > 8 && g->taps == 1 && g->groups == 1 && g->c * g->out[2] > 16 * INPUTS;
    p.band_p = 1;
    p.band_q = longs ? hk_min64(g->out[2], hk_max64(256, INPUTS / g->c / 64 * 64)) : g->out[2];
  }
  if (t->threads > 1 && planes < 2 * t->threads) {
    const int64_t want = hk_ceil_div(2 * t->threads, d->knob[HK_GROUPED_SHARDS]);
    if (is_direct) p.band_q = hk_min64(p.band_q, hk_round_up(hk_ceil_div(g->out[2], want), 64));
    d->knob[HK_GROUPED_PARTS] =
        hk_min64(want, g->out[0] * hk_ceil_div(g->out[1], p.band_p) * hk_ceil_div(g->out[2], p.band_q));
  }
  d->knob[HK_GROUPED_SOURCE] = is_direct ? HK_GROUPED_DIRECT : HK_GROUPED_STAGED;
  d->knob[HK_GROUPED_ROWS] = p.band_p;
  d->knob[HK_GROUPED_COLS] = p.band_q;
  d->knob[HK_GROUPED_TILES] = HK_KNOB_AUTO;
  return finish(t, d, why);
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  hk_decision rows = *d;
  const bool bands = offer_bands(t, d, why);
  char other[HK_REASON];
  const bool in_place = hk_grouped_rows_offer(t, &rows, other);
  if (in_place && (!bands || rows.predicted_s < d->predicted_s)) *d = rows;
  return bands || in_place;
}

static bool is_rows(const hk_decision *d) { return d->knob[HK_GROUPED_SOURCE] == HK_GROUPED_ROWS_OF_X; }

static bool check(const hk_task *t, hk_decision *d, char *why) {
  return is_rows(d) ? hk_grouped_rows_check(t, d, why) : supported(t, why) && finish(t, d, why);
}

/* The other source. */
static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  *d = *base;
  return index == 0 && (is_rows(base) ? offer_bands : hk_grouped_rows_offer)(t, d, why);
}

/* ---- build */

static void make_offsets(const hk_geom *g, hk_grouped *p) {
  for (int64_t t = 0; t < g->taps; t++) {
    const int64_t s = t % g->win[2] * g->dil[2], r = t / g->win[2] % g->win[1] * g->dil[1],
                  a = t / g->win[2] / g->win[1];
    const int64_t phase = (a * g->stride[1] + r % g->stride[1]) * g->stride[2] + s % g->stride[2];
    p->offset[t] = p->source == HK_GROUPED_DIRECT ? s - g->lo[2]
                                                  : phase * p->plane + r / g->stride[1] * p->pitch + s / g->stride[2];
  }
}

/* [size of tiles][tap][group][tile][c][MR] */
static void pack(const hk_geom *g, const hk_grouped *p, const float *f, float *to) {
  for (int64_t i = 0; i < p->tile_sizes; i++)
    for (int64_t t = 0; t < g->taps; t++)
      for (int64_t group = 0; group < g->groups; group++)
        for (int64_t tile = 0; tile < p->tile[i].tiles; tile++)
          for (int64_t c = 0; c < g->c; c++)
            for (int64_t m = 0; m < p->tile[i].kernel->mr; m++)
              *to++ = f[group * g->f.group + (p->tile[i].first + tile * p->tile[i].kernel->mr + m) * g->f.outer +
                        c * g->f.channel + hk_dw_tap(g, t)];
}

static void destroy(hk_plan *plan) {
  hk_grouped *p = plan->own;
  if (p && !is_rows(&plan->decision)) hk_free(p->zeros);
  hk_free(p);
}

static hk_status build(hk_plan *plan) {
  char why[HK_REASON];
  if (is_rows(&plan->decision)) return hk_grouped_rows_build(plan);
  hk_grouped *p = plan->own = hk_alloc_zero(sizeof *p);
  if (!p) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  const hk_geom *g = &p->geom;
  if (!hk_grouped_layout(&plan->task, &plan->decision, p, why)) return hk_fail(HK_UNSUPPORTED, "grouped: %s", why);
  p->zeros = hk_alloc_zero((size_t)(g->k * g->groups) * sizeof(float));
  if (!p->zeros) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  p->stage = hk_kernel_best(HK_FAMILY_STAGE, p->tile[0].kernel->isa)->fn;
  p->transpose = hk_kernel_best(HK_FAMILY_TRANSPOSE, p->tile[0].kernel->isa)->fn;
  make_offsets(g, p);
  float *to;
  const int64_t layout[] = {p->tile_sizes, p->tile[0].kernel->mr, p->tile[0].tiles, p->tile[1].tiles};
  const hk_status s = hk_plan_pack_room(plan, g->groups * g->k * g->gk, sizeof *to, layout, HK_COUNT(layout), &to);
  if (s) return s;
  if (to) pack(g, p, plan->raw_f, to);
  hk_grouped_prepare(plan, p);
  return HK_OK;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  return (is_rows(&plan->decision) ? hk_grouped_rows_run : hk_grouped_run)(plan, call);
}

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_grouped *p = plan->own;
  if (is_rows(&plan->decision)) {
    hk_grouped_rows_trace(plan, t);
    return;
  }
  hk_text_add(t, " source=%lld bands=%lld fused=%d uniform=%d at_once=%d shards=%lld parts=%lld", (long long)p->source,
              (long long)p->bands, p->fused, p->uniform, p->at_once, (long long)p->shards, (long long)p->parts);
  for (int64_t i = 0; i < p->tile_sizes; i++)
    hk_text_add(t, " tiles=%lldx%s", (long long)p->tile[i].tiles, p->tile[i].kernel->name);
}

const hk_algo hk_algo_grouped = {
    .name = "grouped",
    .summary = "few channels per group over planar rows: in place, or staged with padding in L1",
    .knobs = {HK_KNOB("source", 0, HK_GROUPED_ROWS_OF_X), HK_KNOB_OF("rows", ROWS), HK_KNOB_OF("cols", POSITIONS),
              HK_KNOB("shards", 1, HK_THREAD_PIECES), HK_KNOB("parts", 1, HK_THREAD_PIECES),
              HK_KNOB_ORDER("tiles", 1, HK_KNOB_MOST)},
    .family = HK_FAMILY_SMALL,
    .device = HK_CPU,
    .skips_padding = true,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = run,
    .destroy = destroy,
    .trace = trace};
