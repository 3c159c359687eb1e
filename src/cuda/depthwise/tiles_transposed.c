/* Tiling of the tensor-core kernel for long filters over channels-last rows (transposed.cuh). */
#include "cuda/depthwise/depthwise.h"
#include "cuda/depthwise/transposed.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false
#define SHARED_MOST (226 * 1024)

/* Clocks of a block with three blocks per SM: loads and stores per 64 pixels of 16 channels, where there are any;
 * steps of 16 taps. Fitted to 16 to 1024 taps and to rows of 200 on an H200. */
static double block_clocks(const hk_geom *g, const hk_cu_dw *p, int steps, int shared) {
  const double contention = shared > 112 * 1024  ? 1.33
                       : shared > 74 * 1024 ? 1.05
                                            : 1,
               rows = (double)p->transposed.tiles * 64;
  const double come = (double)hk_min64(p->transposed.slots, (int64_t)((double)g->in[2] / rows) + 2),
               leave = (double)g->out[2] / rows;
  return contention * (78 * (come + leave) + HK_TRANSPOSED_CHANNELS * (14.6 * steps + 30) + 600);
}

/* Leaves *t unchanged when it refuses. */
bool hk_cu_dw_tile_transposed(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_tiling *t, char *why) {
  static const char *const names[2][2] = {{"hk_dw_transposed_f16", "hk_dw_transposed_f16_epi"},
                                          {"hk_dw_transposed_bf16", "hk_dw_transposed_bf16_epi"}};
  hk_cu_dw *p = &t->params;
  if ((g->x_type != HK_F16 && g->x_type != HK_BF16) || g->y_type != g->x_type)
    REFUSE("x and y must both be f16 or both bf16, they are %s and %s", hk_type_name(g->x_type),
           hk_type_name(g->y_type));
  if (g->c != 1 || g->k != 1 || p->taps != p->taps_u || g->stride[2] != 1 || g->dil[2] != 1)
    REFUSE("needs one row of taps, stride and dilation 1, and 1 input and output channel per group");
  if (unaligned || g->groups % 8 || !hk_cu_dw_pairs(&g->x, 8) || !hk_cu_dw_pairs(&g->y, 8))
    REFUSE("channels must be contiguous, 16-byte aligned and a multiple of 8; there are %lld", (long long)g->groups);
  const int64_t lines = g->n * g->out[0] * g->out[1], tiles = hk_ceil_div(g->out[2], HK_TRANSPOSED_LENGTH),
                channel_blocks = hk_ceil_div(p->channels, HK_TRANSPOSED_CHANNELS);
  const int steps = (64 + p->taps_u - 1 + 15) / 16, slots = 15 + (steps + 3) / 4;
  const int taps_bytes = ((HK_TOEPLITZ_FRONT + p->taps_u + 64 + 32 + 1) / 2 * 8 + 15) / 16 * 16;
  const int64_t shared = (int64_t)slots * HK_TRANSPOSED_REGION + (int64_t)HK_TRANSPOSED_CHANNELS * taps_bytes,
                packed = (int64_t)p->channels * taps_bytes;
  if (shared > SHARED_MOST || packed >> 28) REFUSE("a window row of %d taps exceeds shared memory", p->taps_u);
  if (lines * tiles * channel_blocks > INT32_MAX)
    REFUSE("the problem needs %lld blocks, more than 2^31", (long long)(lines * tiles * channel_blocks));
  p->transposed.tiles = (int)tiles;
  p->channel_blocks = (int)channel_blocks;
  p->transposed.slots = slots;
  p->taps_bytes = taps_bytes;
  p->transposed.taps_at = slots * HK_TRANSPOSED_REGION;
  p->pack = HK_DW_PACK_LINES;
  t->packed_bytes = (size_t)packed;
  t->image = g->x_type == HK_BF16 ? "dw_transposed_bf16" : "dw_transposed_f16";
  t->kernel = names[g->x_type == HK_BF16][e->any];
  t->aligned = true;
  t->threads = HK_TRANSPOSED_THREADS;
  t->shared_bytes = (int)shared;
  t->blocks = lines * tiles * channel_blocks;
  t->knobs.run = 64;
  t->knobs.way = HK_TOEPLITZ_TRANSPOSED;
  t->seconds = hk_cu_dw_seconds(g, (double)t->blocks * block_clocks(g, p, steps, (int)shared), 1.55);
  return true;
}
