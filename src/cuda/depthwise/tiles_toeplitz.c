/* Tiling of the tensor-core kernels for long filters over channels-first 16-bit rows (toeplitz.cuh, stream.cuh). */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false
#define SHARED_MOST (200 * 1024)

static bool half_type(hk_type t) { return t == HK_F16 || t == HK_BF16; }

static void toeplitz_shape(const hk_geom *g, hk_cu_dw *p, int b) {
  /* unaligned rows of y start up to 7 outputs early, at a 16-byte address */
  const int64_t warps = hk_ceil_div(g->out[2] + (p->toeplitz.y_vector ? 0 : 7), 16 * b), tiles = hk_ceil_div(warps, 8);
  p->toeplitz.lanes = (int)hk_ceil_div(warps, tiles);
  p->toeplitz.lane_blocks = (int)hk_ceil_div(warps, p->toeplitz.lanes);
  p->toeplitz.planes = (int)hk_max64(1, hk_min64(8 / p->toeplitz.lanes, p->toeplitz.plane_count));
}

static int toeplitz_shared(hk_cu_dw *p, int b) {
  const int tile = p->toeplitz.lanes * 16 * b, pieces = (tile + p->toeplitz.chunk_u + 31 + 7 + 7) / 8, planes = b / 8;
  int pitch = (pieces + planes - 1) / planes;
  if (planes > 1) pitch = (pitch + 6) / 8 * 8 + 1; /* 16 mod 128 bytes: adjacent pieces hit different banks */
  p->toeplitz.plane_pitch = pitch * 16;
  p->toeplitz.line_bytes = p->toeplitz.plane_pitch * planes;
  p->taps_bytes = ((HK_TOEPLITZ_FRONT + p->toeplitz.chunk_u + b + 32 + 1) / 2 * 8 + 15) / 16 * 16;
  p->toeplitz.sums_pitch = (p->toeplitz.wide ? 32 : 64) * b;
  p->toeplitz.taps_at = p->toeplitz.planes * p->toeplitz.line_bytes;
  p->toeplitz.sums_at = p->toeplitz.taps_at + p->toeplitz.planes * p->taps_bytes;
  p->toeplitz.rows_at = p->toeplitz.sums_at + p->toeplitz.planes * p->toeplitz.lanes * p->toeplitz.sums_pitch;
  return p->toeplitz.rows_at + p->toeplitz.planes * 64;
}

/* The same where each warp walks along tiles of its own; shared memory of a block of HK_STREAM_THREADS. */
static int stream_shared(const hk_geom *g, hk_cu_dw *p, int b) {
  p->toeplitz.lanes = p->toeplitz.planes = 1;
  p->toeplitz.lane_blocks = (int)hk_ceil_div(g->out[2] + (p->toeplitz.y_vector ? 0 : 7), 16 * b);
  toeplitz_shared(p, b);
  /* copies of 8 adjacent pieces hit all banks */
  const int planes = b / 8, length = (16 * b + p->toeplitz.chunk_u + 31 + 7 + 7) / 8 / planes + 1;
  p->toeplitz.plane_pitch = (planes == 4 ? length / 4 * 4 + 2 + (length % 4 > 2) * 4 : length | 1) * 16;
  p->toeplitz.line_bytes = p->toeplitz.plane_pitch * (b / 8);
  p->toeplitz.taps_at = 2 * p->toeplitz.line_bytes;
  p->toeplitz.buffer_bytes = p->toeplitz.taps_at + 2 * p->taps_bytes;
  return p->toeplitz.buffer_bytes * (HK_STREAM_THREADS / 32);
}

/* Rows of the last dimension start at multiples of 8 elements. */
static bool aligned16(const hk_strides *s) {
  return s->offset % 8 == 0 && s->outer % 8 == 0 && s->group % 8 == 0 && s->channel % 8 == 0 && s->at[0] % 8 == 0 &&
         s->at[1] % 8 == 0;
}

static size_t toeplitz_packed(const hk_cu_dw *p) {
  return (size_t)p->channels * (size_t)(p->taps / p->taps_u) * (size_t)p->taps_bytes;
}

/* Clocks summed over SMs: one 16x8x16 product per 2.3, one fragment per 6. */
static double toeplitz_clocks(const hk_geom *g, const hk_cu_dw *p, int b) {
  const double warps = (double)p->toeplitz.plane_count * p->toeplitz.lane_blocks * p->toeplitz.lanes,
               rows = (double)(g->win[0] * g->win[1]) * p->phases;
  const double mmas = (double)b / 8 * hk_ceil_div(p->taps_u + 10, 16),
               loads = (double)hk_ceil_div(b + p->taps_u + 3, 16);
  const double mma = 2.3 * mmas, load = 6 * loads;
  return warps * (rows * ((mma > load ? mma : load) + 16.0 * b / 32 + (rows > 1 ? 300 : 0)) + 16.0 * b / 32 * 2 + 250);
}

/* The same for walking warps: steps of 16 taps per tile with their loads, plus the start and the ends of a row.
 * Fitted to 8, 31, 128 and 512 taps and to rows of 66 outputs on an H200. */
static double stream_clocks(const hk_cu_dw *p, int b) {
  const double steps = (b + p->taps_u + 18) / 16.0, tile = b == 64   ? 100 + 14.6 * steps
                                                           : b == 32 ? 57 + 8.9 * steps
                                                                     : 43 + 3.8 * steps;
  return (double)p->toeplitz.plane_count * (p->toeplitz.lane_blocks * p->toeplitz.lanes * tile + 65);
}

/* Whether warps walk along tiles (stream.cuh): one row of taps, short enough that a tile does not read x twice,
 * contiguous rows, no epilogue. Otherwise one tile per block. */
static bool streams(const hk_geom *g, const hk_cu_dw *p) {
  return p->toeplitz.wide && p->plain && p->taps == p->taps_u && p->taps_u <= 512 && g->stride[2] == 1 &&
         g->x.at[2] == 1;
}

/* Walking warps for a shape of b outputs per lane, where they fit. */
static bool stream_set(const hk_geom *g, int b, int64_t lines, hk_cu_dw_tiling *t) {
  hk_cu_dw alone = t->params;
  if (!t->packed_bytes) return false;
  const int bytes = stream_shared(g, &alone, b);
  if (lines * alone.toeplitz.lane_blocks >= INT32_MAX / 2 || bytes > 100 * 1024) return false;
  /* as many blocks as are resident: by registers, by shared memory */
  const int64_t resident = hk_min64(b == 8 ? 8 : b == 32 ? 7 : 5, 225 * 1024 / (bytes + 1024));
  alone.toeplitz.places = (int)(lines * alone.toeplitz.lane_blocks);
  t->params = alone;
  t->shared_bytes = bytes;
  t->threads = HK_STREAM_THREADS;
  t->blocks = hk_min64(hk_ceil_div(alone.toeplitz.places, HK_STREAM_THREADS / 32), 132 * hk_max64(1, resident));
  return true;
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
  if (!half_type(g->x_type))
    REFUSE("x must be f16 or bf16, it is %s; f32 needs options.math = HK_MATH_SPLIT_F32", hk_type_name(g->x_type));
  if (p->classes != 1)
    REFUSE("dilation must divide the stride, they are %lld and %lld", (long long)g->dil[2], (long long)g->stride[2]);
  const int64_t lines = g->n * p->channels * g->out[0] * g->out[1];
  if (lines > INT32_MAX) REFUSE("y has %lld rows, more than 2^31", (long long)lines);
  p->toeplitz.plane_count = (int)lines;
  p->toeplitz.chunk_u = (int)hk_min64(p->taps_u, 8192);
  p->toeplitz.wide = g->y.at[2] == 1 && g->y_type == g->x_type;
  p->toeplitz.y_vector = !p->toeplitz.wide || (!unaligned && aligned16(&g->y));
  t->aligned = p->toeplitz.wide && p->toeplitz.y_vector;
  const bool may_stream = knobs.way != HK_TOEPLITZ_TILES && streams(g, p);
  int best = -1;
  double least = 0;
  for (int i = 0; i < 3; i++) {
    if (knobs.run && knobs.run != sizes[i]) continue;
    toeplitz_shape(g, p, sizes[i]);
    const double clocks = may_stream ? stream_clocks(p, sizes[i]) : toeplitz_clocks(g, p, sizes[i]);
    if (best < 0 || clocks < least) best = i, least = clocks;
  }
  if (best < 0) REFUSE("run = %d must be 8, 32 or 64", knobs.run);
  const int b = sizes[best];
  toeplitz_shape(g, p, b);
  while (p->toeplitz.planes > 1 && toeplitz_shared(p, b) > 72 * 1024) p->toeplitz.planes--;
  while (toeplitz_shared(p, b) > SHARED_MOST) p->toeplitz.chunk_u = (p->toeplitz.chunk_u + 1) / 2;
  t->shared_bytes = toeplitz_shared(p, b);
  t->packed_bytes = p->toeplitz.chunk_u < p->taps_u || toeplitz_packed(p) >> 28 ? 0 : toeplitz_packed(p);
  p->pack = t->packed_bytes ? HK_DW_PACK_LINES : HK_DW_PACK_NONE;
  t->knobs.run = b;
  t->image = g->x_type == HK_BF16 ? "dw_toeplitz_bf16" : "dw_toeplitz_f16";
  t->threads = p->toeplitz.planes * p->toeplitz.lanes * 32;
  t->blocks = hk_ceil_div(lines, p->toeplitz.planes) * p->toeplitz.lane_blocks;
  const bool stream = may_stream && stream_set(g, b, lines, t);
  if (knobs.way == HK_TOEPLITZ_STREAM && !stream)
    REFUSE("way = 2 needs one row of at most 512 taps, stride 1, contiguous rows and no epilogue");
  t->knobs.way = stream ? HK_TOEPLITZ_STREAM : HK_TOEPLITZ_TILES;
  t->kernel = names[g->x_type == HK_BF16][stream ? 2 : !p->plain][best];
  /* x or y not contiguous: element by element, 330 us for the 33 M of 512 channels by 8 x 4096 */
  t->seconds = hk_cu_dw_seconds(g, least, g->x.at[2] != 1 || g->y.at[2] != 1 ? 19 : stream ? 1.35 : 1.15);
  return true;
}
