/* Which depthwise kernel supports a problem, and its tiling: checks common to all, and the two general FMA kernels. */
#include "cuda/depthwise/depthwise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROCESSORS 132
#define LAUNCH 3e-6        /* seconds */
#define SHARED (227 << 10) /* bytes of shared memory of an SM */
#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false

double hk_cu_dw_seconds(const hk_geom *g, double clocks, double bytes_factor) {
  const double moved = g->bytes * bytes_factor / 4.0e12, worked = clocks / (PROCESSORS * 1.7e9);
  const double longer = moved > worked ? moved : worked, shorter = moved > worked ? worked : moved;
  return LAUNCH + longer + 0.3 * shorter;
}

/* The share of the device that a grid of few blocks keeps busy: SMs without a block idle, and those with fewer warps
 * than hide latency (16, or what fits) wait. H200: bench/timings/h200-cuda.csv. */
static double filled(const hk_cu_dw_tiling *t) {
  const double per_block = (double)t->threads / 32, each = (double)t->blocks / PROCESSORS;
  const double fit = fmax(1, fmin(64 / per_block, (double)(SHARED / (t->shared_bytes + 1024))));
  return fmin(1, each) * fmin(1, fmin(fmax(each, 1), fit) * per_block / fmin(16, fit * per_block));
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    const int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

static bool float_type(hk_type t) { return t == HK_F32 || t == HK_F16 || t == HK_BF16; }

static bool common(const hk_geom *g, const hk_epi *e, char *why) {
  if (g->x_type != g->f_type || !float_type(g->x_type) || !float_type(g->y_type))
    REFUSE("x, f and y must be f32, f16 or bf16, x and f of one type; they are %s, %s, %s", hk_type_name(g->x_type),
           hk_type_name(g->f_type), hk_type_name(g->y_type));
  if (!g->gm || !g->y_channels || !g->gk) REFUSE("the problem has no products: a size is 0");
  if (g->batch_grouped) REFUSE("batch groups are not supported; cuda_direct supports them");
  if (e->e.gate) REFUSE("gates are not fused: the channels of a pair are in different blocks; finish adds them");
  if (e->e.cuda_user || e->e.cuda_user2 || e->e.cuda_store || e->e.user || e->e.user2 || e->e.store)
    REFUSE("user functions are not fused; finish adds them");
  double outputs = (double)g->n * (double)g->k * (double)g->groups;
  for (int d = 0; d < 3; d++) {
    if (g->in_dil[d] != 1) REFUSE("input dilation must be 1, it is %lld", (long long)g->in_dil[d]);
    outputs *= (double)g->out[d];
    if (g->in[d] > 1 << 28 || g->win[d] > 1 << 24 || g->stride[d] > 1 << 20 || g->dil[d] > 1 << 20 ||
        g->out[d] > 1 << 28 || hk_max64(g->lo[d], -g->lo[d]) > 1 << 28 || g->win[d] * g->dil[d] > 1 << 28 ||
        g->out[d] * g->stride[d] > 1 << 29)
      REFUSE("a size of dimension %d exceeds 2^28", d);
  }
  if (g->k * g->groups > 1 << 28 || outputs > 0x1p34) REFUSE("y has %.3g values, more than 2^34", outputs);
  return true;
}

bool hk_cu_dw_pairs(const hk_strides *s, int v) {
  return s->group == 1 && s->offset % v == 0 && s->outer % v == 0 && s->at[0] % v == 0 && s->at[1] % v == 0 &&
         s->at[2] % v == 0;
}

hk_cu_div hk_cu_dw_divisor(int64_t d) {
  hk_cu_div r = {(unsigned)d, 0, 0};
  if (d <= 1) return r;
  while ((INT64_C(1) << r.s) < d) r.s++;
  r.m = (unsigned)(((UINT64_C(1) << (31 + r.s)) + (uint64_t)d - 1) / (uint64_t)d);
  r.s--;
  return r;
}

/* Variants of dw_last: channels and outputs per thread, adjacent threads. fitted: measured over counted clocks on an
 * H200 (bench/results/2026-11-15-depthwise-h200.md). */
typedef struct last_form {
  int v, tq, lanes;
  bool odd, few, epi;         /* pairs at any element; 3 or 4 taps per row; with an epilogue (v other than 2: both) */
  double fitted, fitted_half; /* of f32; of f16 and bf16 */
  const char *names[4];       /* by hk_type */
} last_form;
static const last_form last_forms[] = {
    {8, 4, 8, false, false, false, 2.3, 2.3, {"", "", "hk_dw_last_f16_8x4", "hk_dw_last_bf16_8x4"}},
    {4, 8, 8, false, false, false, 1.75, 1.75, {"hk_dw_last_f32_4x8", "", "", ""}},
    {2,
     16,
     32,
     false,
     false,
     false,
     1.6,
     1.9,
     {"hk_dw_last_f32_2x16", "", "hk_dw_last_f16_2x16", "hk_dw_last_bf16_2x16"}},
    {2,
     16,
     32,
     false,
     false,
     true,
     1.6,
     1.9,
     {"hk_dw_last_f32_2x16_epi", "", "hk_dw_last_f16_2x16_epi", "hk_dw_last_bf16_2x16_epi"}},
    {2, 16, 32, true, false, false, 2.1, 2.8, {"hk_dw_last_f32_odd", "", "hk_dw_last_f16_odd", "hk_dw_last_bf16_odd"}},
    {2,
     16,
     32,
     true,
     false,
     true,
     2.1,
     2.8,
     {"hk_dw_last_f32_odd_epi", "", "hk_dw_last_f16_odd_epi", "hk_dw_last_bf16_odd_epi"}},
    {2, 16, 32, false, true, false, 1.6, 1.7, {"", "", "hk_dw_last_f16_few", "hk_dw_last_bf16_few"}},
    {1, 8, 32, false, false, false, 3.5, 3.5, {"hk_dw_last_f32_1x8", "", "hk_dw_last_f16_1x8", "hk_dw_last_bf16_1x8"}},
};

static int last_way(const last_form *f) {
  return f->odd      ? HK_LAST_ODD
         : f->few    ? HK_LAST_FEW
         : f->v == 1 ? HK_LAST_SINGLE
         : f->v == 2 ? HK_LAST_PAIRS
                     : HK_LAST_VECTORS;
}

static bool last_takes(const hk_geom *g, const hk_cu_dw *p, const hk_epi *e, bool unaligned, const last_form *f,
                       int run) {
  const int v = f->v;
  if (!f->names[g->x_type][0] || (run && run != f->tq) || (v == 2 && f->epi != e->any)) return false;
  if (f->few && (p->phases != 1 || p->last.pairs || p->taps_u < 3 || p->taps_u > 4)) return false;
  if (f->odd)
    return g->k == 1 && g->groups > 1 && g->y_type == g->x_type && g->x.group == 1 && g->y.group == 1 &&
           (!e->e.residual || e->c.group == 1);
  return v == 1 ||
         (!unaligned && g->k == 1 && g->groups % v == 0 && g->y_type == g->x_type && hk_cu_dw_pairs(&g->x, v) &&
          hk_cu_dw_pairs(&g->y, v) && (!e->e.residual || hk_cu_dw_pairs(&e->c, v)));
}

/* Adjacent threads along the channels: the variant's number, or another that leaves fewer idle. */
static int last_lanes(const hk_cu_dw *p, const last_form *f, double *idle) {
  const int64_t runs = hk_ceil_div(p->channels, f->v);
  int best = 0;
  for (int lanes = f->lanes; lanes >= f->lanes * 3 / 4; lanes--) {
    const double threads = (double)(hk_ceil_div(runs, lanes) * 256) / (256 / lanes) / (double)runs;
    if (!best || threads < *idle * 0.95) best = lanes, *idle = threads;
  }
  for (int lanes = f->lanes + 1; lanes <= 2 * f->lanes; lanes++) {
    const double threads = (double)(hk_ceil_div(runs, lanes) * 256) / (256 / lanes) / (double)runs;
    if (threads < *idle * 0.95) best = lanes, *idle = threads;
  }
  return best;
}

static double last_seconds(const hk_geom *g, const hk_cu_dw *p, const last_form *f) {
  double idle = 1;
  last_lanes(p, f, &idle);
  const double groups =
      (double)(g->n * g->out[0] * g->out[1]) * p->classes * (double)hk_ceil_div(p->class_length, f->tq);
  const double work = groups * idle * p->channels / f->v * (double)(g->win[0] * g->win[1]) * p->phases;
  /* an FMA of 32 lanes per quarter clock; loads move 128 bytes per clock, half of that for one channel */
  const double bytes = (double)f->v * (double)hk_type_bytes(g->x_type);
  const double loads = work * (f->tq + p->taps_u - 1) * (f->v == 1 ? 2.0 : bytes / 4) / 32;
  const double fmas = work * p->taps_u * f->tq * f->v / 128;
  /* several tap rows: all but the first hit a cache, not always L1 */
  const double wide = g->win[0] * g->win[1] > 1 ? 1.3 : 1.1;
  double clocks = (g->x_type == HK_F32 ? f->fitted : f->fitted_half) * (fmas + 0.8 * loads);
  /* one long row of 16-bit taps: 342 clocks per 1024 sums to start, and less for the rest (8 to 512 taps) */
  if (g->x_type != HK_F32 && f->v > 1 && p->taps == p->taps_u && p->taps_u >= 8)
    clocks = 0.72 * clocks + 342 * groups * idle * p->channels * f->tq / 1024;
  return hk_cu_dw_seconds(g, clocks, f->odd ? wide * 1.3 : f->v > 1 ? wide : g->x.group == 1 ? 1.6 : 8);
}

static bool tile_last(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                      char *why) {
  hk_cu_dw *p = &t->params;
  const last_form *f = NULL;
  for (int i = 0; i < HK_COUNT(last_forms); i++)
    if ((!knobs.way || knobs.way == last_way(&last_forms[i])) &&
        last_takes(g, p, e, unaligned, &last_forms[i], knobs.run) &&
        (!f || (f->v > 1 && last_forms[i].v > 1 && last_seconds(g, p, &last_forms[i]) < last_seconds(g, p, f))))
      f = &last_forms[i];
  if (!f)
    REFUSE("run = %d, way = %d have no kernel for %s and these strides; run must be 4, 8 or 16", knobs.run, knobs.way,
           hk_type_name(g->x_type));
  const int64_t row_groups = (int64_t)p->classes * hk_ceil_div(p->class_length, f->tq);
  const int64_t groups = g->n * g->out[0] * g->out[1] * row_groups;
  if (groups > INT32_MAX / 2) REFUSE("the problem has %lld groups of outputs, more than 2^30", (long long)groups);
  p->last.row_groups = (int)row_groups;
  p->last.groups = (int)groups;
  p->last.div_row_groups = hk_cu_dw_divisor(row_groups);
  double idle;
  p->last.lanes = last_lanes(p, f, &idle);
  p->last.teams = 256 / p->last.lanes;
  p->channel_blocks = (int)hk_ceil_div(p->channels, p->last.lanes * f->v);
  p->pack = HK_DW_PACK_TAPS;
  t->packed_bytes = (size_t)p->taps * (size_t)p->padded * 4;
  t->image = "dw_last";
  t->kernel = f->names[g->x_type];
  t->knobs.run = f->tq;
  t->knobs.way = last_way(f);
  t->aligned = f->v > 1 && !f->odd;
  t->threads = p->last.lanes * p->last.teams;
  t->blocks = hk_ceil_div(groups, p->last.teams) * p->channel_blocks;
  t->seconds = last_seconds(g, p, f);
  return true;
}

static void first_slots(const hk_geom *g, hk_cu_dw *p, int rows) {
  p->first.rows = rows;
  p->first.slots = rows == 1 ? (int)g->win[1] : (int)((rows - 1) * g->stride[1] + (g->win[1] - 1) * g->dil[1] + 1);
  p->first.slot_rows = rows == 1 ? 0 : (int)g->stride[1];
  p->first.slot_taps = rows == 1 ? 1 : (int)g->dil[1];
  p->first.slot_step = rows == 1 ? (int)g->dil[1] : 1;
}

/* Floats of shared memory for the planes, rows and lanes set in p. */
static int64_t first_shared(const hk_geom *g, hk_cu_dw *p, int tq) {
  const int64_t length = ((int64_t)p->first.class_lanes * tq + p->first.chunk_u - 1) * p->first.class_run;
  p->first.slot_length = (int)(length + length / tq + 1);
  const int64_t sums = (int64_t)p->first.planes * p->first.rows * (p->first.lanes * (tq + tq / 8) + 10);
  const int64_t tile = (hk_max64((int64_t)p->first.planes * p->first.slots * p->first.slot_length, sums) + 3) / 4 * 4;
  p->first.weight_pitch = (p->first.chunk_u + 3) / 4 * 4;
  p->first.weights_at = (int)hk_min64(tile, INT32_MAX / 8);
  return tile + (int64_t)p->first.planes * g->win[1] * p->first.weight_pitch;
}

static bool tile_first(const hk_geom *g, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t, char *why) {
  static const char *const names[4][2] = {{"hk_dw_first_f32_8", "hk_dw_first_f32_16"}, {"", ""},
                                          {"hk_dw_first_f16_8", "hk_dw_first_f16_16"},
                                          {"hk_dw_first_bf16_8", "hk_dw_first_bf16_16"}};
  hk_cu_dw *p = &t->params;
  const int64_t length = p->class_length, wide = hk_ceil_div(length, 16) * 16;
  const int tq = knobs.run ? knobs.run : wide * 100 > length * 107 ? 8 : 16;
  if (tq != 8 && tq != 16) REFUSE("run = %d must be 8 or 16", tq);
  const int64_t need = hk_ceil_div(length, tq), planes = g->n * p->channels * g->out[0];
  if (planes > INT32_MAX) REFUSE("y has %lld planes, more than 2^31", (long long)planes);
  p->first.plane_count = (int)planes;
  p->first.class_run = (int)hk_min64(p->classes, 256);
  const int64_t most = hk_max64(1, 256 / p->first.class_run), tiles = hk_ceil_div(need, most);
  p->first.class_lanes = (int)hk_ceil_div(need, tiles);
  int rows = (int)hk_max64(1, hk_min64(g->out[1], 256 / (p->first.class_run * p->first.class_lanes)));
  p->first.chunk_u = (int)hk_min64(p->taps_u, 8192);
  /* four blocks per SM where they fit, otherwise as many as fit */
  for (int64_t limit = 52 * 1024 / 4;;) {
    p->first.lanes = p->first.class_run * p->first.class_lanes;
    first_slots(g, p, rows);
    p->first.planes = (int)hk_max64(1, hk_min64(planes, 256 / ((int64_t)p->first.lanes * rows)));
    while (p->first.planes > 1 && first_shared(g, p, tq) > limit) p->first.planes--;
    if (first_shared(g, p, tq) <= limit) break;
    if (rows > 1) rows = (rows + 1) / 2;
    else if (limit < 200 * 1024 / 4) limit = 200 * 1024 / 4;
    else if (p->first.chunk_u > 64) p->first.chunk_u = (p->first.chunk_u + 1) / 2;
    else if (p->first.class_lanes > 1) p->first.class_lanes = (p->first.class_lanes + 1) / 2;
    else REFUSE("a window row of %d taps exceeds shared memory", p->taps_u);
  }
  p->first.row_blocks = (int)hk_ceil_div(g->out[1], p->first.rows);
  p->first.lane_blocks = (int)(hk_ceil_div(p->classes, p->first.class_run) * hk_ceil_div(need, p->first.class_lanes));
  p->pack = HK_DW_PACK_CHANNELS;
  t->packed_bytes = (size_t)p->taps * (size_t)p->channels * 4;
  t->image = "dw_first";
  t->kernel = names[g->x_type][tq == 16];
  t->knobs.run = tq;
  t->threads = (int)hk_max64(128, hk_ceil_div((int64_t)p->first.planes * p->first.rows * p->first.lanes, 32) * 32);
  t->blocks = hk_ceil_div(planes, p->first.planes) * p->first.row_blocks * p->first.lane_blocks;
  t->shared_bytes = (int)first_shared(g, p, tq) * 4;
  const double per_row = (double)p->taps_u * (tq + 2) / 4 + 2 * tq;
  const double warps = (double)t->blocks * hk_ceil_div((int64_t)p->first.planes * p->first.rows * p->first.lanes, 32);
  /* a staged row takes 3 clocks per 32 values; rows of small planes, of which blocks hold many, 110 more */
  const double begin = g->out[1] * g->out[2] < 1600 ? 110 : 0;
  const double stage = (double)t->blocks * p->first.planes * p->first.slots * (begin + p->first.slot_length / 32 * 3.0);
  const bool contiguous = g->x.at[2] == 1 && g->y.at[2] == 1;
  /* 400 clocks of set-up per warp: bench/results/2026-11-15-depthwise-h200.md */
  t->seconds =
      hk_cu_dw_seconds(g, warps * 400 + (warps * per_row * (double)g->win[1] + stage) * (double)g->win[0] * p->phases,
                       contiguous ? 1.15 : 19);
  return true;
}

/* The Toeplitz kernels start a row's tiles at 16-byte addresses, so the order of a sum follows the address of the row:
 * images of other alignment would get other bits. */
static bool images_alike(const hk_geom *g, char *why) {
  const int64_t x = g->x.outer * (int64_t)hk_type_bytes(g->x_type), y = g->y.outer * (int64_t)hk_type_bytes(g->y_type);
  if (g->n > 1 && (x % 16 || y % 16))
    REFUSE("batch_invariant needs images a multiple of 16 bytes apart, those of x and y are %lld and %lld apart",
           (long long)x, (long long)y);
  return true;
}

static bool tile_toeplitz(const hk_geom *g, const hk_epi *e, hk_cu_dw_rules rules, hk_cu_dw_knobs knobs,
                          hk_cu_dw_tiling *t, char *why) {
  const bool split = rules.split && g->x_type == HK_F32;
  if (knobs.way && split != (knobs.way == HK_TOEPLITZ_SPLIT))
    REFUSE("way = 4 is for f32 with options.math = HK_MATH_SPLIT_F32, and no other way is");
  if (split) return hk_cu_dw_tile_split(g, rules.unaligned, knobs, t, why);
  const bool may = !knobs.way || knobs.way == HK_TOEPLITZ_TRANSPOSED;
  if (may && (!knobs.run || knobs.run == 64) && hk_cu_dw_tile_transposed(g, e, rules.unaligned, t, why)) return true;
  if (knobs.way != HK_TOEPLITZ_TRANSPOSED) return hk_cu_dw_tile_toeplitz(g, rules.unaligned, knobs, t, why);
  if (knobs.run && knobs.run != 64) REFUSE("run = %d must be 64 where way is 3", knobs.run);
  return false;
}

/* The faster of the two kernels, or the one that is asked for; other knobs without a way are walk's. */
static bool tile_grouped(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                         char *why) {
  if (knobs.way || knobs.run || knobs.slabs || knobs.rows)
    return hk_cu_dw_tile_mma(g, e, unaligned, knobs.way == HK_GROUPED_ROLL, knobs, t, why);
  hk_cu_dw_tiling roll = *t;
  const bool rolls = hk_cu_dw_tile_mma(g, e, unaligned, true, knobs, &roll, why);
  const bool walks = hk_cu_dw_tile_mma(g, e, unaligned, false, knobs, t, why);
  if (rolls && (!walks || roll.seconds <= t->seconds)) *t = roll;
  return rolls || walks;
}

static int most_ways(hk_cu_dw_kind kind) {
  return kind == HK_DW_LAST       ? HK_LAST_RUN
         : kind == HK_DW_TOEPLITZ ? HK_TOEPLITZ_SPLIT
         : kind == HK_DW_GROUPED  ? HK_GROUPED_ROLL
                                  : 0;
}

/* The tiling of one kind, from the parameters that all have. */
static bool tile_kind(hk_cu_dw_kind kind, const hk_geom *g, const hk_epi *e, hk_cu_dw_rules rules, hk_cu_dw_tiling *t,
                      char *why) {
  const bool unaligned = rules.unaligned;
  const hk_cu_dw_knobs knobs = t->knobs;
  switch (kind) {
    case HK_DW_LAST:
      if ((!knobs.way || knobs.way == HK_LAST_RUN) && hk_cu_dw_tile_run(g, e, unaligned, knobs, t, why)) return true;
      return knobs.way != HK_LAST_RUN && tile_last(g, e, unaligned, knobs, t, why);
    case HK_DW_FIRST: return tile_first(g, knobs, t, why);
    case HK_DW_TOEPLITZ:
      return (!rules.batch_invariant || images_alike(g, why)) && tile_toeplitz(g, e, rules, knobs, t, why);
    case HK_DW_SLIDE: return hk_cu_dw_tile_slide(g, e, unaligned, knobs, t, why);
    case HK_DW_PLANE: return hk_cu_dw_tile_plane(g, e, unaligned, knobs, t, why);
    case HK_DW_ROW: return hk_cu_dw_tile_row(g, e, t, why);
    case HK_DW_BUNDLE: return hk_cu_dw_tile_bundle(g, unaligned, knobs, t, why);
    case HK_DW_OCTET: return hk_cu_dw_tile_octet(g, e, unaligned, knobs, t, why);
    case HK_DW_BAND: return hk_cu_dw_tile_band(g, e, unaligned, knobs, t, why);
    case HK_DW_STEM: return hk_cu_dw_tile_stem(g, e, unaligned, knobs, t, why);
    default: return tile_grouped(g, e, unaligned, knobs, t, why);
  }
}

bool hk_cu_dw_tile(hk_cu_dw_kind kind, const hk_geom *g, const hk_epi *e, hk_cu_dw_rules rules, hk_cu_dw_knobs knobs,
                   hk_cu_dw_tiling *t, char *why) {
  memset(t, 0, sizeof *t);
  if (!common(g, e, why)) return false;
  hk_cu_dw *p = &t->params;
  const int64_t common_step = gcd(g->stride[2], g->dil[2]);
  t->knobs = knobs;
  p->phases = (int)(g->stride[2] / common_step);
  /* later phases have no tap; one tap per phase needs no window */
  if (p->phases > g->win[2]) p->phases = (int)g->win[2];
  p->classes = g->win[2] == 1 ? 1 : (int)(g->dil[2] / common_step);
  if (p->phases == g->win[2]) p->classes = 1;
  p->last.pairs = kind == HK_DW_LAST && g->stride[2] == 2 && g->win[2] == 3 && g->dil[2] == 1;
  if (p->last.pairs) p->phases = 1;
  if (kind == HK_DW_SLIDE || kind == HK_DW_PLANE || kind == HK_DW_BAND || kind == HK_DW_OCTET)
    p->phases = p->classes = 1;
  p->class_length = (int)hk_ceil_div(g->out[2], p->classes);
  p->taps_u = (int)hk_ceil_div(g->win[2], p->phases);
  p->channels = (int)(g->k * g->groups);
  p->padded = (p->channels + 7) / 8 * 8;
  p->plain = !e->any;
  if (g->win[0] * g->win[1] * p->phases * p->taps_u > 1 << 24) REFUSE("the window has more than 2^24 taps");
  p->taps = (int)(g->win[0] * g->win[1]) * p->phases * p->taps_u;
  p->div_out0 = hk_cu_dw_divisor(g->out[0]);
  p->div_out1 = hk_cu_dw_divisor(g->out[1]);
  p->div_channels = hk_cu_dw_divisor(p->channels);
  p->div_classes = hk_cu_dw_divisor(p->classes);
  if (knobs.way > most_ways(kind)) REFUSE("way = %d must be 0..%d", knobs.way, most_ways(kind));
  if (kind < HK_DW_GROUPED && g->c != 1) REFUSE("groups must have 1 input channel, they have %lld", (long long)g->c);
  if (!tile_kind(kind, g, e, rules, t, why)) return false;
  const bool counted = kind == HK_DW_TOEPLITZ || kind == HK_DW_SLIDE || kind == HK_DW_BAND || kind == HK_DW_BUNDLE ||
                       kind == HK_DW_OCTET; /* their seconds tell small grids apart already */
  const double share = counted ? 1 : filled(t);
  const bool walks = kind == HK_DW_GROUPED && t->knobs.way != HK_GROUPED_ROLL;
  const bool waits = walks && (share < 1 || p->grouped.in_slabs > p->grouped.slabs);
  t->seconds = LAUNCH + (t->seconds - LAUNCH) / share * (waits ? 1.3 : 1);
  return true;
}
