/* Tiling of the tensor-core kernel for depthwise 5x5 and 7x7 images, channels-last (band.cuh). */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false
#define SHARED_MOST (200 * 1024)
#define SHARED_OF_FOUR (56 * 1024) /* four blocks per SM */

/* Channels are contiguous, pixels and rows start at multiples of 16 bytes, and offsets in an image fit into 32 bits. */
static bool whole(const hk_strides *s, const int64_t *size, int64_t reach) {
  double far = 0;
  for (int d = 1; d < 3; d++) far += (double)hk_max64(s->at[d], -s->at[d]) * (double)(size[d] + reach);
  return hk_cu_dw_pairs(s, 8) && far < 2e9;
}

/* Fills in tiles of `side` windows side by side (8, of which 7 are used, or 4) and `steps` batches of rows; returns
 * the bytes of shared memory. */
static int64_t shape(const hk_geom *g, hk_cu_dw *p, int side, int steps) {
  const int size = (int)g->win[2], windows = (int)hk_ceil_div(g->out[2], 8);
  p->band.row_groups = side == 8 ? 8 : 5;
  p->band.tiles = (int)hk_ceil_div(windows, p->band.row_groups - 1);
  p->band.tile_length = (p->band.row_groups - 1) * 8;
  p->band.tile_rows = 16 / side * HK_BAND_ROWS * steps;
  p->band.row_tiles = (int)hk_ceil_div(g->out[1], p->band.tile_rows);
  p->band.slots = p->band.tile_rows + size - 1;
  p->taps_bytes = size * 2 * HK_BAND_WORDS * 4;
  p->band.taps_at = p->band.slots * p->band.row_groups * HK_BAND_CHANNELS * 16;
  return p->band.taps_at + (int64_t)HK_BAND_CHANNELS * p->taps_bytes + 128;
}

/* Clocks of a block with four blocks per SM: copying, transposing and storing 8 columns that hold x; loads and
 * products of a batch. Fitted to 5x5 and 7x7 at 14x14, 28x28 and 56x56 on an H200. */
static double block_clocks(const hk_geom *g, const hk_cu_dw *p) {
  const double size = (double)g->win[2], batches = p->band.tile_rows / (p->band.row_groups == 8 ? 14.0 : 28.0);
  const double held =
      (double)hk_min64(p->band.row_groups, hk_ceil_div(hk_ceil_div(g->out[2], p->band.tiles) + g->win[2] - 1, 8));
  const double work =
      HK_BAND_CHANNELS * (batches * (4.0 * (HK_BAND_ROWS + size - 1) + 2.0 * HK_BAND_ROWS * size + 40) + 50);
  return 9.8 * (p->band.slots + p->band.tile_rows) * held + 0.52 * work;
}

bool hk_cu_dw_tile_band(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                        char *why) {
  static const char *const names[2][2][2][2] = {
      {{{"hk_dw_band_f16_5x5", "hk_dw_band_f16_5x5_epi"}, {"hk_dw_band_f16_5x8", "hk_dw_band_f16_5x8_epi"}},
       {{"hk_dw_band_f16_7x5", "hk_dw_band_f16_7x5_epi"}, {"hk_dw_band_f16_7x8", "hk_dw_band_f16_7x8_epi"}}},
      {{{"hk_dw_band_bf16_5x5", "hk_dw_band_bf16_5x5_epi"}, {"hk_dw_band_bf16_5x8", "hk_dw_band_bf16_5x8_epi"}},
       {{"hk_dw_band_bf16_7x5", "hk_dw_band_bf16_7x5_epi"}, {"hk_dw_band_bf16_7x8", "hk_dw_band_bf16_7x8_epi"}}}};
  hk_cu_dw *p = &t->params;
  const int64_t size = g->win[2];
  if (g->x_type == HK_F32 || g->y_type != g->x_type)
    REFUSE("x and y must both be f16 or both bf16, they are %s and %s", hk_type_name(g->x_type),
           hk_type_name(g->y_type));
  if (g->c != 1 || g->k != 1)
    REFUSE("groups must have 1 input and 1 output channel, they have %lld and %lld", (long long)g->c, (long long)g->k);
  if (g->win[0] != 1 || g->in[0] != 1 || g->out[0] != 1 || g->win[1] != size || (size != 5 && size != 7) ||
      g->stride[1] != 1 || g->stride[2] != 1 || g->dil[1] != 1 || g->dil[2] != 1)
    REFUSE("needs a 2D window of 5x5 or 7x7, stride and dilation 1; it is %lldx%lld", (long long)g->win[1],
           (long long)size);
  const int64_t reach = 256 + hk_max64(hk_max64(g->lo[1], -g->lo[1]), hk_max64(g->lo[2], -g->lo[2]));
  if (unaligned || g->groups % 8 || !whole(&g->x, g->in, reach) || !whole(&g->y, g->out, reach))
    REFUSE("channels must be contiguous, 16-byte aligned and a multiple of 8; there are %lld", (long long)g->groups);
  int best = 0, steps = 0;
  double least = 0;
  p->channel_blocks = (int)hk_ceil_div(p->channels, HK_BAND_CHANNELS);
  for (int side = 4; side <= 8; side += 4)
    for (int more = 1; more <= 4; more++) {
      if ((knobs.rows && 16 / side * HK_BAND_ROWS * more != knobs.rows) || (knobs.run && side != knobs.run)) continue;
      const int64_t shared = shape(g, p, side, more);
      if (shared > SHARED_MOST) break;
      /* fewer than four blocks per SM hide less latency: bench/results/2026-11-15-depthwise-h200.md */
      const double contention = shared > 100 * 1024     ? 1.7
                                : shared > 75 * 1024    ? 1.35
                                : shared > SHARED_OF_FOUR ? 1.15
                                                          : 1;
      const double clocks = contention * (double)p->band.tiles * p->band.row_tiles * block_clocks(g, p);
      if (!best || clocks < least) best = side, steps = more, least = clocks;
    }
  if (!best)
    REFUSE("rows = %d, run = %d has no tile; run must be 4 or 8, rows a multiple of 28 or 14", knobs.rows, knobs.run);
  t->shared_bytes = (int)shape(g, p, best, steps);
  const int64_t blocks = (int64_t)p->channel_blocks * p->band.tiles * p->band.row_tiles * g->n;
  if (blocks > INT32_MAX) REFUSE("the problem needs %lld blocks, more than 2^31", (long long)blocks);
  p->pack = HK_DW_PACK_BANDS;
  t->packed_bytes = (size_t)p->channel_blocks * HK_BAND_CHANNELS * (size_t)p->taps_bytes;
  t->image = g->x_type == HK_BF16 ? "dw_band_bf16" : "dw_band_f16";
  t->kernel = names[g->x_type == HK_BF16][size == 7][best == 8][e->any];
  t->aligned = true;
  t->threads = HK_BAND_THREADS;
  t->blocks = blocks;
  t->knobs = (hk_cu_dw_knobs){best, 0, p->band.tile_rows, 0};
  t->seconds = hk_cu_dw_seconds(g, (double)p->channel_blocks * (double)g->n * least,
                                1.1 * (1 + 0.3 * (double)(p->band.slots - p->band.tile_rows) / p->band.tile_rows));
  return true;
}
