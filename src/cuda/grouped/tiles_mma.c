/* Tilings of the tensor-core kernels: long channels-first filters, grouped and depthwise channels-last. */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>
#include <string.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false
#define SHARED_MOST (200 * 1024)
#define MOST_RUNS (1 << 16) /* of 8 output channels that are looked at one by one */

static bool half_type(hk_type t) { return t == HK_F16 || t == HK_BF16; }

static void toeplitz_shape(const hk_geom *g, hk_cu_dw *p, int b) {
  /* rows of y that do not begin at 16-byte addresses are begun up to 7 outputs early */
  const int64_t warps = hk_ceil_div(g->out[2] + (p->y_vector ? 0 : 7), 16 * b), tiles = hk_ceil_div(warps, 8);
  p->lanes = (int)hk_ceil_div(warps, tiles);
  p->lane_blocks = (int)hk_ceil_div(warps, p->lanes);
  p->planes = (int)hk_max64(1, hk_min64(8 / p->lanes, p->plane_count));
}

static int toeplitz_shared(hk_cu_dw *p, int b) {
  const int tile = p->lanes * 16 * b, pieces = (tile + p->chunk_u + 31 + 7 + 7) / 8, planes = b / 8;
  int pitch = (pieces + planes - 1) / planes;
  if (planes > 1) pitch = (pitch + 6) / 8 * 8 + 1; /* 16 mod 128 bytes: pieces side by side hit different banks */
  p->plane_pitch = pitch * 16;
  p->line_bytes = p->plane_pitch * planes;
  p->taps_bytes = ((HK_TOEPLITZ_FRONT + p->chunk_u + b + 32 + 1) / 2 * 8 + 15) / 16 * 16;
  p->sums_pitch = (p->wide ? 32 : 64) * b;
  p->taps_at = p->planes * p->line_bytes;
  p->sums_at = p->taps_at + p->planes * p->taps_bytes;
  p->rows_at = p->sums_at + p->planes * p->lanes * p->sums_pitch;
  return p->rows_at + p->planes * 64;
}

/* The same where a warp walks along tiles of its own; shared memory of a block of HK_STREAM_THREADS. */
static int stream_shared(const hk_geom *g, hk_cu_dw *p, int b) {
  p->lanes = p->planes = 1;
  p->lane_blocks = (int)hk_ceil_div(g->out[2] + (p->y_vector ? 0 : 7), 16 * b);
  toeplitz_shared(p, b);
  /* copies of 8 pieces side by side hit all banks */
  const int planes = b / 8, length = (16 * b + p->chunk_u + 31 + 7 + 7) / 8 / planes + 1;
  p->plane_pitch = (planes == 4 ? length / 4 * 4 + 2 + (length % 4 > 2) * 4 : length | 1) * 16;
  p->line_bytes = p->plane_pitch * (b / 8);
  p->taps_at = 2 * p->line_bytes;
  p->buffer_bytes = p->taps_at + 2 * p->taps_bytes;
  return p->buffer_bytes * (HK_STREAM_THREADS / 32);
}

/* Rows of the last dimension begin at multiples of 8 elements. */
static bool eights(const hk_strides *s) {
  return s->offset % 8 == 0 && s->outer % 8 == 0 && s->group % 8 == 0 && s->channel % 8 == 0 && s->at[0] % 8 == 0 && s->at[1] % 8 == 0;
}

static size_t toeplitz_packed(const hk_cu_dw *p) {
  return (size_t)p->channels * (size_t)(p->taps / p->taps_u) * (size_t)p->taps_bytes;
}

/* Clocks of all processors: a multiplication of 16x8x16 every 2.3, a fragment every 6. */
static double toeplitz_clocks(const hk_geom *g, const hk_cu_dw *p, int b) {
  const double warps = (double)p->plane_count * p->lane_blocks * p->lanes, rows = (double)(g->win[0] * g->win[1]) * p->phases;
  const double mmas = (double)b / 8 * hk_ceil_div(p->taps_u + 10, 16), loads = (double)hk_ceil_div(b + p->taps_u + 3, 16);
  const double mma = 2.3 * mmas, load = 6 * loads;
  return warps * (rows * ((mma > load ? mma : load) + 16.0 * b / 32 + (rows > 1 ? 300 : 0)) + 16.0 * b / 32 * 2 + 250);
}

/* The same where warps walk by themselves: 16 steps of taps a tile and what comes with it, what a row's beginning and its ends cost. Fitted to
 * 8, 31, 128 and 512 taps and to rows of 66 outputs on an H200. */
static double stream_clocks(const hk_cu_dw *p, int b) {
  const double steps = (b + p->taps_u + 18) / 16.0, tile = b == 64 ? 100 + 14.6 * steps : b == 32 ? 57 + 8.9 * steps : 43 + 3.8 * steps;
  return (double)p->plane_count * (p->lane_blocks * p->lanes * tile + 65);
}

/* One row of taps, not so long that each tile reads x twice, contiguous rows and no epilogue: warps by themselves; else a block a tile. */
static bool streams(const hk_geom *g, const hk_cu_dw *p) {
  return p->wide && p->plain && p->taps == p->taps_u && p->taps_u <= 512 && g->stride[2] == 1 && g->x.at[2] == 1;
}

bool hk_cu_dw_tile_toeplitz(const hk_geom *g, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t, char *why) {
  static const int sizes[] = {64, 32, 8};
  static const char *const names[2][3][3] = {
      {{"hk_dw_toeplitz_f16_64", "hk_dw_toeplitz_f16_32", "hk_dw_toeplitz_f16_8"},
       {"hk_dw_toeplitz_f16_64_epi", "hk_dw_toeplitz_f16_32_epi", "hk_dw_toeplitz_f16_8_epi"},
       {"hk_dw_toeplitz_f16_64_stream", "hk_dw_toeplitz_f16_32_stream", "hk_dw_toeplitz_f16_8_stream"}},
      {{"hk_dw_toeplitz_bf16_64", "hk_dw_toeplitz_bf16_32", "hk_dw_toeplitz_bf16_8"},
       {"hk_dw_toeplitz_bf16_64_epi", "hk_dw_toeplitz_bf16_32_epi", "hk_dw_toeplitz_bf16_8_epi"},
       {"hk_dw_toeplitz_bf16_64_stream", "hk_dw_toeplitz_bf16_32_stream", "hk_dw_toeplitz_bf16_8_stream"}}};
  hk_cu_dw *p = &t->params;
  if (!half_type(g->x_type)) REFUSE("takes f16 and bf16, f32 with the math mode split_f32");
  if (p->classes != 1) REFUSE("does not take dilation %lld", (long long)g->dil[2]);
  const int64_t lines = g->n * p->channels * g->out[0] * g->out[1];
  if (lines > INT32_MAX) REFUSE("more rows than 2^31");
  p->plane_count = (int)lines;
  p->chunk_u = (int)hk_min64(p->taps_u, 8192);
  p->wide = g->y.at[2] == 1 && g->y_type == g->x_type;
  p->y_vector = !p->wide || (!unaligned && eights(&g->y));
  t->aligned = p->wide && p->y_vector;
  int best = -1;
  double least = 0;
  for (int i = 0; i < 3; i++) {
    if (knobs.run && knobs.run != sizes[i]) continue;
    toeplitz_shape(g, p, sizes[i]);
    const double clocks = streams(g, p) ? stream_clocks(p, sizes[i]) : toeplitz_clocks(g, p, sizes[i]);
    if (best < 0 || clocks < least) best = i, least = clocks;
  }
  if (best < 0) REFUSE("run = %d must be 8, 32 or 64", knobs.run);
  const int b = sizes[best];
  toeplitz_shape(g, p, b);
  while (p->planes > 1 && toeplitz_shared(p, b) > 72 * 1024) p->planes--;
  while (toeplitz_shared(p, b) > SHARED_MOST) p->chunk_u = (p->chunk_u + 1) / 2;
  t->shared_bytes = toeplitz_shared(p, b);
  t->packed_bytes = p->chunk_u < p->taps_u || toeplitz_packed(p) >> 28 ? 0 : toeplitz_packed(p);
  p->pack = t->packed_bytes ? HK_DW_PACK_LINES : HK_DW_PACK_NONE;
  t->knobs.run = b;
  t->image = g->x_type == HK_BF16 ? "dw_toeplitz_bf16" : "dw_toeplitz_f16";
  t->threads = p->planes * p->lanes * 32;
  t->blocks = hk_ceil_div(lines, p->planes) * p->lane_blocks;
  bool stream = streams(g, p) && t->packed_bytes;
  if (stream) {
    hk_cu_dw alone = *p;
    const int bytes = stream_shared(g, &alone, b);
    stream = lines * alone.lane_blocks < INT32_MAX / 2 && bytes <= 100 * 1024;
    if (stream) {
      /* as many blocks as run at once: by registers, by shared memory */
      const int64_t resident = hk_min64(b == 8 ? 8 : b == 32 ? 7 : 5, 225 * 1024 / (bytes + 1024));
      *p = alone;
      p->places = (int)(lines * p->lane_blocks);
      t->shared_bytes = bytes;
      t->threads = HK_STREAM_THREADS;
      t->blocks = hk_min64(hk_ceil_div(p->places, HK_STREAM_THREADS / 32), 132 * hk_max64(1, resident));
    }
  }
  t->kernel = names[g->x_type == HK_BF16][stream ? 2 : !p->plain][best];
  /* x or y not contiguous: elements one by one, 330 us for the 33 M of 512 channels by 8 x 4096 */
  t->seconds = hk_cu_dw_seconds(g, least, g->x.at[2] != 1 || g->y.at[2] != 1 ? 19 : stream ? 1.35 : 1.15);
  return true;
}

static int first_slab(const hk_geom *g, int64_t kb) { return (int)(kb * 8 / g->k * g->c / 8); }
static int last_slab(const hk_geom *g, int64_t kb) {
  const int64_t k = hk_min64(kb * 8 + 7, g->k * g->groups - 1);
  return (int)(((k / g->k + 1) * g->c - 1) / 8);
}

/* Runs of 8 output channels after which the slabs that they read repeat: 64 groups are whole runs of outputs and of
 * inputs. */
static int64_t period(const hk_geom *g, const hk_cu_dw *p, int64_t slabs) {
  return hk_min64(hk_ceil_div(p->channels, 8), 8 * g->k * slabs);
}

static void mma_slabs(const hk_geom *g, hk_cu_dw *p, int slabs) {
  const int runs = (int)hk_ceil_div(p->channels, 8);
  p->slabs = slabs;
  p->slab_blocks = (int)hk_ceil_div(runs, slabs);
  p->in_slabs = p->reach;
  for (int64_t kb = 0; kb < period(g, p, slabs); kb++) {
    const int need = first_slab(g, kb) - first_slab(g, kb / slabs * slabs) + p->reach;
    if (need > p->in_slabs) p->in_slabs = need;
  }
}

static void mma_rows(const hk_geom *g, hk_cu_dw *p, int rows) {
  p->tile_rows = rows;
  p->depth_slots = rows == 1 ? (int)g->win[1] : (int)((rows - 1) * g->stride[1] + (g->win[1] - 1) * g->dil[1] + 1);
  p->slot_rows = rows == 1 ? 0 : (int)g->stride[1];
  p->slot_taps = rows == 1 ? 1 : (int)g->dil[1];
  p->slot_step = rows == 1 ? (int)g->dil[1] : 1;
  p->slots = p->depth_slots * (int)g->win[0];
}

static int64_t mma_shared(const hk_geom *g, hk_cu_dw *p, bool roll) {
  const int chunks = roll ? p->tile_length / 16 : p->tile_rows * (p->tile_length / 64);
  p->teams = (int)hk_max64(1, hk_min64(8 / p->slabs, chunks));
  p->patch_length = (int)hk_min64(p->tile_length, p->class_length) + p->taps_u - 1;
  const int64_t pixels = (int64_t)p->slots * p->phases * p->patch_length;
  const int64_t plane = (pixels + 6) / 8 * 8 + 1;
  const int64_t table = (int64_t)p->slabs * g->win[0] * g->win[1] * p->phases * p->taps_u * p->reach * (p->compact ? 16 : 128);
  /* ldmatrix reads whole fragments past the last pixel; what it finds there goes into no stored result */
  const int64_t patch = plane * 16 * p->in_slabs + 80 * 16;
  p->stage_pitch = (p->slabs | 1) * 32;
  p->stage_bytes = (roll ? 128 : 64) * p->stage_pitch;
  if (patch > SHARED_MOST || table > SHARED_MOST) return SHARED_MOST + 1;
  p->plane_bytes = (int)plane * 16;
  p->table_at = (int)patch;
  p->stage_at = (int)((patch + table + 15) / 16 * 16);
  return p->stage_at + (int64_t)p->teams * p->stage_bytes;
}

/* Rows and slabs so that several blocks share a processor; false when nothing fits. */
static bool mma_fit(const hk_geom *g, hk_cu_dw *p, bool roll, hk_cu_dw_knobs knobs) {
  static const int limits[] = {76 * 1024, 113 * 1024, SHARED_MOST};
  const int runs = (int)hk_ceil_div(p->channels, 8);
  for (int l = 0; l < 3; l++) {
    int best = 0, best_rows = 0;
    double least = 0;
    for (int slabs = 8; slabs >= 1; slabs--) {
      /* roll: two slabs and four teams beat wider blocks on an H200 (bench/results/gpu-depthwise-2026-11-15.md) */
      if (knobs.slabs ? slabs != knobs.slabs : roll && slabs > 2) continue;
      mma_slabs(g, p, slabs);
      for (int rows = roll ? 8 : (int)hk_min64(8, g->out[1]); rows >= 1; rows = roll ? 0 : rows / 2) {
        if (knobs.rows && !roll && rows != knobs.rows) continue;
        mma_rows(g, p, rows);
        if (mma_shared(g, p, roll) > limits[l]) continue;
        const double waste = (double)p->slab_blocks * slabs / runs, again = (double)p->depth_slots / rows / (double)g->stride[1];
        const double cost = waste * (1 + (again < (double)g->win[1] ? again : (double)g->win[1])) * (1 + 0.3 / slabs) *
                            (1 + (double)(p->in_slabs - slabs > 0 ? p->in_slabs - slabs : 0) / slabs);
        if (!best || cost < least) best = slabs, best_rows = rows, least = cost;
      }
    }
    if (!best) continue;
    mma_slabs(g, p, best);
    mma_rows(g, p, best_rows);
    return true;
  }
  return false;
}

bool hk_cu_dw_is_last(const hk_geom *g, const hk_strides *s, int64_t per) {
  return (per == 1 || s->channel == 1) && (g->groups == 1 || s->group == per);
}
bool hk_cu_dw_is_whole(const hk_strides *s) {
  return s->offset % 8 == 0 && s->outer % 8 == 0 && s->at[0] % 8 == 0 && s->at[1] % 8 == 0 && s->at[2] % 8 == 0;
}

bool hk_cu_dw_is_small(const hk_geom *g, const hk_strides *s, const int64_t *size) {
  double far = 0;
  for (int d = 0; d < 3; d++) far += (double)hk_max64(s->at[d], -s->at[d]) * (double)(size[d] + 2 * g->win[d] * g->dil[d]);
  return far < 2e9;
}

static double mma_seconds(const hk_geom *g, const hk_cu_dw_tiling *t, bool roll) {
  const hk_cu_dw *p = &t->params;
  const int size = (int)g->win[2];
  /* 1.7 clocks a multiplication, 4 a fragment; walk loads 4 a pair of taps unless they slide. What comes on top was fitted
   * to bench/results/gpu-depthwise-2026-11-15.md */
  const double warps = (double)t->blocks * p->slabs, rows = (double)(g->win[0] * g->win[1]) * p->phases * p->reach;
  double clocks;
  if (roll) {
    clocks = warps * (p->tile_length / 16) * (8.0 * size * (size + 1) / 2 * 1.7 + (8.0 + size) * size * 2 * 0.5 + 250);
  } else {
    const double pairs = (p->taps_u + 1) / 2, slide = hk_ceil_div(p->taps_u, 8);
    const double load = hk_min64(p->taps_u, 8) / 2.0 * 16 + (slide - 1) * 8, mma = pairs * 4 * 1.7;
    clocks = warps * p->tile_rows * (p->tile_length / 64) * rows * ((p->compact ? 3.5 : 2.2) * (load > mma ? load : mma) + 30);
  }
  const double slabs_read = (double)p->in_slabs / p->slabs, rows_read = (double)p->slots / p->tile_rows / (double)g->stride[1];
  /* elements one by one: estimates, not measured for channels-first */
  const double factor = 1.15 + 0.1 * (rows_read > 1 ? rows_read - 1 : 0) + 0.1 * (slabs_read - 1) + (p->x_vector ? 0 : 6) + (p->y_vector ? 0 : 3);
  return hk_cu_dw_seconds(g, clocks, factor);
}

bool hk_cu_dw_tile_mma(const hk_geom *g, const hk_epi *e, bool unaligned, bool roll, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t, char *why) {
  static const char *const names[2][4] = {
      {"hk_grouped_f16_walk", "hk_grouped_f16_roll3", "hk_grouped_f16_roll5", "hk_grouped_f16_roll7"},
      {"hk_grouped_bf16_walk", "hk_grouped_bf16_roll3", "hk_grouped_bf16_roll5", "hk_grouped_bf16_roll7"}};
  hk_cu_dw *p = &t->params;
  if (!half_type(g->x_type)) REFUSE("takes f16 and bf16");
  if (!hk_cu_dw_is_small(g, &g->x, g->in) || !hk_cu_dw_is_small(g, &g->y, g->out)) REFUSE("an image spans more than 2^31 elements");
  const int64_t step = g->c * g->groups == 1 ? 1 : g->c == 1 ? g->x.group : g->x.channel;
  if ((g->c > 1 && g->groups > 1 && g->x.group != g->c * step) || step < 1 || step > INT32_MAX) REFUSE("takes x whose channels lie evenly");
  p->channel_step = (int)step;
  if (g->c > 256) REFUSE("takes up to 256 channels a group, not %lld", (long long)g->c);
  const int size = (int)g->win[2];
  if (roll && (g->win[0] != 1 || g->win[1] != size || (size != 3 && size != 5 && size != 7) || g->stride[1] != 1 ||
               g->stride[2] != 1 || g->dil[1] != 1 || g->dil[2] != 1))
    REFUSE("takes 3x3, 5x5 and 7x7 with stride 1");
  if (period(g, p, 8) > MOST_RUNS)
    REFUSE("more than %d output channels in groups of more than %d", 8 * MOST_RUNS, MOST_RUNS / 64);
  p->reach = 1;
  for (int64_t kb = 0; kb < period(g, p, 1); kb++) {
    const int reach = last_slab(g, kb) - first_slab(g, kb) + 1;
    if (reach > p->reach) p->reach = reach;
  }
  if (roll && p->reach > 1) REFUSE("takes 8 output channels that read 8 input channels");
  p->compact = g->c == 1 && g->k == 1;
  p->leaks = g->c % 8 != 0 || g->k % 8 != 0;
  p->x_vector = !unaligned && g->c * g->groups % 8 == 0 && hk_cu_dw_is_last(g, &g->x, g->c) && hk_cu_dw_is_whole(&g->x);
  p->y_vector = !unaligned && g->y_type == g->x_type && p->channels % 8 == 0 && hk_cu_dw_is_last(g, &g->y, g->k) && hk_cu_dw_is_whole(&g->y);
  p->c_vector = e->e.residual && p->y_vector && hk_cu_dw_is_last(g, &e->c, g->k) && hk_cu_dw_is_whole(&e->c);
  const int unit = roll ? 16 : 64, most = knobs.run ? knobs.run : g->out[1] == 1 ? 256 : roll ? 64 : 128;
  if (most % unit) REFUSE("run = %d must be a multiple of %d", most, unit);
  p->tile_length = (int)hk_min64(hk_ceil_div(p->class_length, unit) * unit, most);
  if (!mma_fit(g, p, roll, knobs)) REFUSE("the window does not fit in shared memory");
  t->shared_bytes = (int)mma_shared(g, p, roll);
  p->div_patch = hk_cu_dw_divisor(p->patch_length);
  p->div_phases = hk_cu_dw_divisor(p->phases);
  p->tiles = (int)hk_ceil_div(p->class_length, p->tile_length);
  p->row_tiles = (int)hk_ceil_div(g->out[1], p->tile_rows);
  t->knobs = (hk_cu_dw_knobs){p->tile_length, p->slabs, p->tile_rows};
  p->pack = HK_DW_PACK_TABLE;
  /* 8 runs more than there are: no choice of slabs reads past them */
  p->table_runs = (p->channels + 7) / 8 + 8;
  t->packed_bytes = (size_t)p->table_runs * (size_t)p->taps * (size_t)p->reach * (p->compact ? 16 : 128);
  t->image = g->x_type == HK_BF16 ? "grouped_bf16" : "grouped_f16";
  t->kernel = names[g->x_type == HK_BF16][roll ? (size - 1) / 2 : 0];
  t->aligned = p->x_vector || p->y_vector;
  t->threads = p->slabs * p->teams * 32;
  t->blocks = (int64_t)p->slab_blocks * p->tiles * p->classes * p->row_tiles * g->out[0] * g->n;
  if (t->blocks > INT32_MAX) REFUSE("more blocks than 2^31");
  t->seconds = mma_seconds(g, t, roll);
  return true;
}
