/* Tiling of the f32 Toeplitz kernel by three tf32 products (split.cuh). */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false
#define SHARED_MOST (200 * 1024)
enum { B = 32 };

/* Rows of the last dimension start at multiples of 16 bytes. */
static bool aligned16(const hk_strides *s) {
  return s->offset % 4 == 0 && s->outer % 4 == 0 && s->group % 4 == 0 && s->channel % 4 == 0 && s->at[0] % 4 == 0 &&
         s->at[1] % 4 == 0;
}

static int64_t shared(hk_cu_dw *p) {
  const int64_t pieces = ((int64_t)p->toeplitz.lanes * 16 * B + p->taps_u + 15 + 3 + 3) / 4,
                pitch = hk_ceil_div(pieces, B / 4);
  /* 16 mod 128 bytes: adjacent pieces hit different banks */
  const int64_t plane = ((pitch + 6) / 8 * 8 + 1) * 16,
                taps = (HK_TOEPLITZ_FRONT + (int64_t)p->taps_u + 40 + 3) / 4 * 4 * 8;
  const int64_t all = p->toeplitz.planes * (plane * (B / 4) + taps + p->toeplitz.lanes * 64 * B + 64);
  if (all > SHARED_MOST) return all;
  p->toeplitz.plane_pitch = (int)plane;
  p->toeplitz.line_bytes = (int)plane * (B / 4);
  p->taps_bytes = (int)taps;
  p->toeplitz.taps_at = p->toeplitz.planes * p->toeplitz.line_bytes;
  p->toeplitz.sums_pitch = 64 * B;
  p->toeplitz.sums_at = p->toeplitz.taps_at + p->toeplitz.planes * p->taps_bytes;
  p->toeplitz.rows_at = p->toeplitz.sums_at + p->toeplitz.planes * p->toeplitz.lanes * p->toeplitz.sums_pitch;
  return all;
}

bool hk_cu_dw_tile_split(const hk_geom *g, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t, char *why) {
  hk_cu_dw *p = &t->params;
  if (g->x_type != HK_F32 || g->y_type != HK_F32)
    REFUSE("x and y must be f32, they are %s and %s", hk_type_name(g->x_type), hk_type_name(g->y_type));
  if (g->stride[2] != 1 || p->classes != 1 || g->x.at[2] != 1 || g->y.at[2] != 1)
    REFUSE("rows must be contiguous, stride and dilation 1; they are %lld and %lld", (long long)g->stride[2],
           (long long)g->dil[2]);
  if (knobs.run && knobs.run != B) REFUSE("run = %d must be %d", knobs.run, B);
  const int64_t lines = g->n * p->channels * g->out[0] * g->out[1];
  if (lines > INT32_MAX) REFUSE("y has %lld rows, more than 2^31", (long long)lines);
  p->toeplitz.plane_count = (int)lines;
  p->toeplitz.y_vector = !unaligned && aligned16(&g->y);
  t->aligned = p->toeplitz.y_vector;
  /* unaligned rows of y start up to 3 outputs early, at a 16-byte address */
  const int64_t warps = hk_ceil_div(g->out[2] + (p->toeplitz.y_vector ? 0 : 3), 16 * B), tiles = hk_ceil_div(warps, 8);
  p->toeplitz.lanes = (int)hk_ceil_div(warps, tiles);
  p->toeplitz.lane_blocks = (int)hk_ceil_div(warps, p->toeplitz.lanes);
  p->toeplitz.planes = (int)hk_max64(1, hk_min64(8 / p->toeplitz.lanes, lines));
  while (p->toeplitz.planes > 1 && shared(p) > 72 * 1024) p->toeplitz.planes--;
  while (p->toeplitz.lanes > 1 && shared(p) > SHARED_MOST)
    p->toeplitz.lanes--, p->toeplitz.lane_blocks = (int)hk_ceil_div(warps, p->toeplitz.lanes);
  if (shared(p) > SHARED_MOST) REFUSE("a window row of %d taps exceeds shared memory", p->taps_u);
  const size_t packed = (size_t)p->channels * (size_t)(p->taps / p->taps_u) * (size_t)p->taps_bytes;
  if (packed >> 30) REFUSE("packed weights take %zu bytes, more than 2^30", packed);
  p->pack = HK_DW_PACK_SPLIT;
  t->packed_bytes = packed;
  t->shared_bytes = (int)shared(p);
  t->knobs = (hk_cu_dw_knobs){B, 0, 0, HK_TOEPLITZ_SPLIT};
  t->image = "dw_split";
  t->kernel = p->plain ? "hk_dw_split" : "hk_dw_split_epi";
  t->threads = p->toeplitz.planes * p->toeplitz.lanes * 32;
  t->blocks = hk_ceil_div(lines, p->toeplitz.planes) * p->toeplitz.lane_blocks;
  if (t->blocks > INT32_MAX) REFUSE("the problem needs %lld blocks, more than 2^31", (long long)t->blocks);
  /* clocks summed over SMs: one 16x8x8 product per 2.2, 12 per step; each row of taps is staged and waited for */
  const double rows = (double)(p->taps / p->taps_u), steps = (double)hk_ceil_div(B + p->taps_u + 8, 8);
  const double warp = rows * (steps * 12 * 2.2 + 16.0 * B / 32 + (rows > 1 ? 300 : 0)) + 250;
  t->seconds = hk_cu_dw_seconds(g, (double)t->blocks * p->toeplitz.planes * p->toeplitz.lanes * warp, 1.2);
  return true;
}
