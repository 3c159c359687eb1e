/* Packs weights into the layouts that the depthwise and grouped kernels read, see params.h. One thread per element
 * or word. */
#include "cuda/depthwise/common.cuh"

typedef struct pack_tap { int d, r, s; } pack_tap;

HK_DEV pack_tap pack_decode(const hk_cu_dw *P, int tap) {
  const int u = tap % P->taps_u, row = tap / P->taps_u, f = row % P->phases, dr = row / P->phases;
  pack_tap t = {dr / (int)P->g.win[1], dr % (int)P->g.win[1], f + P->phases * u};
  return t;
}
HK_DEV hk_cu_i64 pack_offset(const hk_cu_geom *g, pack_tap t) {
  return t.d * g->f.at[0] + t.r * g->f.at[1] + t.s * g->f.at[2];
}

/* Weight of output channel k for input channel c (over all groups) in bits; 0 where they belong to different groups. */
HK_DEV hk_cu_u32 pack_bits(const hk_cu_dw *P, int k, int c, pack_tap t) {
  const hk_cu_geom *g = &P->g;
  const int group = k / (int)g->kg, in = c - group * (int)g->cg;
  if (k >= P->channels || in < 0 || in >= g->cg || t.s >= g->win[2]) return 0;
  return ((const hk_cu_u16 *)P->f)[dw_filter(g, k) + g->f.channel * in + pack_offset(g, t)];
}

/* Word i of the stem's fragments: two blocks of 8 channels by 16 of gk side by side. Output channels are ordered so
 * that a lane's sums of a pixel are two runs of 8 channels. */
HK_DEV hk_cu_u32 pack_stem(const hk_cu_dw *P, hk_cu_i64 i) {
  const int low = (int)(i & 1), high = (int)(i >> 1 & 1), half = P->turned ? high : low;
  const int lane = (int)(i >> 2 & 31), j = (int)(i >> 7 & 3) * 2 + (P->turned ? low : high), n = lane / 4;
  const hk_cu_i64 rest = i >> 9;
  const int step = (int)(rest % P->k_steps), tile = (int)(rest / P->k_steps);
  const int k = tile * 64 + j / 4 * 32 + n / 2 * 8 + j % 4 * 2 + n % 2, pair = step * 8 + half * 4 + lane % 4;
  const int r = pair / P->row_pairs, at = (pair - r * P->row_pairs) * 2 - P->lead;
  hk_cu_u32 w = 0;
  for (int e = 0; e < 2; ++e) {
    const int s = (at + e) / P->pixel, c = (at + e) % P->pixel;
    const pack_tap t = {0, r, s};
    if (r < (int)P->g.win[1] && at + e >= 0 && c < P->g.cg) w |= pack_bits(P, k, c, t) << (16 * e);
  }
  return w;
}

/* Word i of the Toeplitz kernel's rows: elements 2w + h - front and the next, copies h = 0 and 1. */
HK_DEV hk_cu_u32 pack_line(const hk_cu_dw *P, hk_cu_i64 i) {
  const int words = P->taps_bytes / 8, w = (int)(i % words), h = (int)(i / words % 2), rows = P->taps / P->taps_u;
  const int row = (int)(i / (2 * words) % rows), k = (int)(i / (2 * words) / rows);
  hk_cu_u32 r = 0;
  for (int e = 0; e < 2; ++e) {
    const int u = 2 * w + h + e - HK_TOEPLITZ_FRONT;
    if (u < 0 || u >= P->taps_u) continue;
    const pack_tap t = pack_decode(P, row * P->taps_u + u);
    if (t.s < P->g.win[2])
      r |= (hk_cu_u32)((const hk_cu_u16 *)P->f)[dw_filter(&P->g, k) + pack_offset(&P->g, t)] << (16 * e);
  }
  return r;
}

/* Word i of the split kernel's weights: the high part rounded to tf32, or the remainder rounded to tf32. */
HK_DEV hk_cu_u32 pack_split(const hk_cu_dw *P, hk_cu_i64 i) {
  const int words = P->taps_bytes / 8, u = (int)(i % words) - HK_TOEPLITZ_FRONT, rest = (int)(i / words % 2),
            rows = P->taps / P->taps_u;
  const int row = (int)(i / (2 * words) % rows), k = (int)(i / (2 * words) / rows);
  if (u < 0 || u >= P->taps_u) return 0;
  const float v =
      load_f32(P->f, dw_filter(&P->g, k) + pack_offset(&P->g, pack_decode(P, row * P->taps_u + u)), HK_CU_F32);
  const float high = __uint_as_float((__float_as_uint(v) + 0x1000u) & 0xffffe000u);
  return ((rest ? __float_as_uint(v - high) : __float_as_uint(high)) + (rest ? 0x1000u : 0u)) & 0xffffe000u;
}

/* Word i of the band kernel's weights. */
HK_DEV hk_cu_u32 pack_band(const hk_cu_dw *P, hk_cu_i64 i) {
  const int w = (int)(i % HK_BAND_WORDS), h = (int)(i / HK_BAND_WORDS % 2), size = P->taps_u;
  const int r = (int)(i / (2 * HK_BAND_WORDS) % size), k = (int)(i / (2 * HK_BAND_WORDS) / size);
  hk_cu_u32 word = 0;
  for (int e = 0; e < 2; ++e) {
    const pack_tap t = {0, r, 2 * w + h + e - 8};
    if (t.s >= 0 && k < P->channels) word |= pack_bits(P, k, k / (int)P->g.kg, t) << (16 * e);
  }
  return word;
}

/* Word i of the bundle kernel's weights. Columns are ordered so that columns 2t, 2t+1 of both fragments are four
 * neighbouring channels. */
HK_DEV hk_cu_u32 pack_bundle(const hk_cu_dw *P, hk_cu_i64 i) {
  const int word = (int)(i & 3), lane = (int)(i >> 2 & 31), tap = (int)((i >> 7) % 9), steps = (int)P->g.cg / 16;
  const int j = (int)((i >> 7) / 9 % steps), unit = (int)((i >> 7) / 9 / steps), column = lane / 4;
  const int k = unit * 16 + column / 2 * 4 + word / 2 * 2 + column % 2,
            c = k / (int)P->g.kg * (int)P->g.cg + j * 16 + word % 2 * 8 + lane % 4 * 2;
  const pack_tap t = {0, tap / 3, tap % 3};
  return pack_bits(P, k, c, t) | pack_bits(P, k, c + 1, t) << 16;
}

extern "C" __global__ void __launch_bounds__(256) hk_dw_pack(const __grid_constant__ hk_cu_dw P) {
  const hk_cu_geom *g = &P.g;
  const hk_cu_i64 step = (hk_cu_i64)gridDim.x * blockDim.x, start = (hk_cu_i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (P.pack == HK_DW_PACK_STEM) {
    const hk_cu_i64 count = (hk_cu_i64)((P.channels + 63) / 64) * P.k_steps * 512;
    for (hk_cu_i64 i = start; i < count; i += step) ((hk_cu_u32 *)P.packed)[i] = pack_stem(&P, i);
    return;
  }
  if (P.pack == HK_DW_PACK_LINES || P.pack == HK_DW_PACK_SPLIT) {
    const hk_cu_i64 count = (hk_cu_i64)P.channels * (P.taps / P.taps_u) * (P.taps_bytes / 4);
    for (hk_cu_i64 i = start; i < count; i += step)
      ((hk_cu_u32 *)P.packed)[i] = P.pack == HK_DW_PACK_LINES ? pack_line(&P, i) : pack_split(&P, i);
    return;
  }
  if (P.pack == HK_DW_PACK_BANDS) {
    const hk_cu_i64 count = (hk_cu_i64)P.channel_blocks * HK_BAND_CHANNELS * (P.taps_bytes / 4);
    for (hk_cu_i64 i = start; i < count; i += step) ((hk_cu_u32 *)P.packed)[i] = pack_band(&P, i);
    return;
  }
  if (P.pack == HK_DW_PACK_BUNDLE) {
    const hk_cu_i64 count = (hk_cu_i64)(P.channels / 16) * (g->cg / 16) * 9 * 128;
    for (hk_cu_i64 i = start; i < count; i += step) ((hk_cu_u32 *)P.packed)[i] = pack_bundle(&P, i);
    return;
  }
  if (P.pack != HK_DW_PACK_TABLE) {
    const int by_tap = P.pack == HK_DW_PACK_TAPS, inner = by_tap ? P.padded : P.taps;
    const hk_cu_i64 count = (hk_cu_i64)P.taps * (by_tap ? P.padded : P.channels);
    for (hk_cu_i64 i = start; i < count; i += step) {
      const int a = (int)(i / inner), b = (int)(i - (hk_cu_i64)a * inner), tap = by_tap ? a : b, k = by_tap ? b : a;
      const pack_tap t = pack_decode(&P, tap);
      ((float *)P.packed)[i] =
          k < P.channels && t.s < g->win[2] ? load_f32(P.f, dw_filter(g, k) + pack_offset(g, t), g->f_type) : 0.0f;
    }
    return;
  }
  const int words = P.compact ? 4 : 32;
  const hk_cu_i64 count = (hk_cu_i64)P.table_runs * P.taps * P.reach * words;
  for (hk_cu_i64 i = start; i < count; i += step) {
    const int word = (int)(i % words), j = (int)(i / words % P.reach), tap = (int)(i / words / P.reach % P.taps);
    const int kb = (int)(i / words / P.reach / P.taps);
    const int k = kb * 8 + (P.compact ? word * 2 : word / 4),
              c = (kb * 8 / (int)g->kg * (int)g->cg / 8 + j) * 8 + word % 4 * 2;
    const pack_tap t = pack_decode(&P, tap);
    ((hk_cu_u32 *)P.packed)[i] = pack_bits(&P, k, c, t) | pack_bits(&P, P.compact ? k + 1 : k, c + 1, t) << 16;
  }
}
