/* Depthwise convolution of channels-last tensors on the FMA units: any rank, stride, dilation, padding, multiplier.
 *
 * A thread owns V channels (16 bytes, two, or one) and computes TQ outputs of one class of one output row. Filters
 * of 3, 4, 5 or 7 taps per row have loops of their own with all pixels of the row in registers; others slide a
 * window of TQ pixels along the taps. Filters of 3 or 4 taps also have kernels of their own (few), which need fewer
 * registers and raise occupancy. With 16 bytes per thread, 8 adjacent threads make 128-byte accesses, and 4 groups
 * of them share each load of the weights. With two channels per thread a warp does, and 16 outputs share a load: the
 * variant for long filters. Odd: pairs of channels may start at any element (odd channel counts, unaligned tensors);
 * pairs that are not aligned are accessed one by one, and the last may be a single channel. Tap rows of one block
 * hit L1. One channel per thread supports any strides. Sums are f32; the host refuses input dilation. Registers:
 * TQ*V sums, TQ*V window or TQ+U-1 pixels. */
#include "cuda/depthwise/common.cuh"

#define THREADS 256

/* plain: no epilogue; few: 3 or 4 taps per row */
typedef struct last_tile { int type, v, tq, plain, odd, few; } last_tile;

/* Loads two channels at any element; y: the second one where they were loaded separately. single: there is no second
 * one. */
HK_DEV uint4 last_load_odd(last_tile t, const char *p, int single) {
  uint4 u = make_uint4(0, 0, 0, 0);
  const int bytes = dw_type_bytes(t.type), apart = single || ((hk_cu_u64)p & (2 * bytes - 1)) != 0;
  if (t.type == HK_CU_F32) {
    if (!apart) {
      const uint2 h = __ldg((const uint2 *)p);
      u.x = h.x, u.y = h.y;
    } else {
      u.x = __ldg((const unsigned *)p);
      if (!single) u.y = __ldg((const unsigned *)p + 1);
    }
  } else if (!apart) {
    u.x = __ldg((const unsigned *)p);
  } else {
    u.x = __ldg((const unsigned short *)p);
    if (!single) u.y = __ldg((const unsigned short *)p + 1);
  }
  return u;
}

/* Loads the channels of one pixel. in: 0: the column is outside x, nothing is read; 2: one of two channels. */
HK_DEV uint4 last_load(last_tile t, const char *p, int in) {
  uint4 u = make_uint4(0, 0, 0, 0);
  if (in) {
    if (t.odd) {
      u = last_load_odd(t, p, in == 2);
    } else if (t.v > 2) {
      u = __ldg((const uint4 *)p);
    } else if (t.v == 2 && t.type == HK_CU_F32) {
      const uint2 h = __ldg((const uint2 *)p);
      u.x = h.x, u.y = h.y;
    } else if (t.v == 2) {
      u.x = __ldg((const unsigned *)p);
    } else if (t.type == HK_CU_F32) {
      u.x = __ldg((const unsigned *)p);
    } else {
      u.x = __ldg((const unsigned short *)p);
    }
  }
  return u;
}
HK_DEV void last_unpack(last_tile t, uint4 u, float *v) {
  if (t.v > 2) dw_unpack(t.type, u, v);
  else if (t.v == 2 && t.type == HK_CU_F32) v[0] = __uint_as_float(u.x), v[1] = __uint_as_float(u.y);
  else if (t.v == 2) dw_unpack_pair(t.type, t.odd ? u.x | u.y << 16 : u.x, v);
  else v[0] = t.type == HK_CU_F32 ? __uint_as_float(u.x) : dw_half(t.type, (hk_cu_u16)u.x);
}
HK_DEV void last_weight(last_tile t, const float *from, float *w) {
  if (t.v > 2) {
    *(float4 *)w = __ldg((const float4 *)from);
    if (t.v > 4) *(float4 *)(w + 4) = __ldg((const float4 *)(from + 4));
  } else if (t.v == 2) {
    *(float2 *)w = __ldg((const float2 *)from);
  } else {
    w[0] = __ldg(from);
  }
}

/* Accumulates us taps with stride 1 or 2 (constants), dilation 1. p, col: of window index `first`; step, col_step:
 * to the next; live: last_load's `in`. */
HK_DEV void last_few(last_tile t, const char *p, hk_cu_i64 step, int col, int col_step, int width, const int us,
                     const int stride, int live, const float *weights, int pitch, float (*acc)[8]) {
  uint4 x[40];
  const int columns = (t.tq - 1) * stride + us;
#pragma unroll
  for (int j = 0; j < columns; ++j, p += step, col += col_step)
    x[j] = last_load(t, p, (unsigned)col < (unsigned)width ? live : 0);
  float w[8][8];
#pragma unroll
  for (int s = 0; s < us; ++s) last_weight(t, weights + s * pitch, w[s]);
#pragma unroll
  for (int j = 0; j < columns; ++j) {
    float v[8];
    last_unpack(t, x[j], v);
#pragma unroll
    for (int s = 0; s < us; ++s)
      if (j >= s && (j - s) % stride == 0 && (j - s) / stride < t.tq) {
#pragma unroll
        for (int c = 0; c < t.v; ++c) acc[(j - s) / stride][c] = fmaf(v[c], w[s][c], acc[(j - s) / stride][c]);
      }
  }
}

HK_DEV void last_tap(last_tile t, int j, uint4 x, const float *weight, float (*window)[8], float (*acc)[8]) {
  float w[8];
  last_weight(t, weight, w);
  last_unpack(t, x, window[(t.tq - 1 + j) % t.tq]);
#pragma unroll
  for (int i = 0; i < t.tq; ++i)
#pragma unroll
    for (int v = 0; v < t.v; ++v) acc[i][v] = fmaf(window[(i + j) % t.tq][v], w[v], acc[i][v]);
}

HK_DEV void last_many(last_tile t, const char *p, hk_cu_i64 step, int col, int col_step, int width, int us, int live,
                      const float *weights, int pitch, float (*acc)[8]) {
  float window[16][8];
  uint4 ahead[16];
#pragma unroll
  for (int j = 0; j < t.tq - 1; ++j, p += step, col += col_step)
    ahead[j] = last_load(t, p, (unsigned)col < (unsigned)width ? live : 0);
#pragma unroll
  for (int j = 0; j < t.tq - 1; ++j) last_unpack(t, ahead[j], window[j]);
#pragma unroll 1
  for (; us >= t.tq; us -= t.tq) {
#pragma unroll
    for (int j = 0; j < t.tq; ++j, p += step, col += col_step)
      ahead[j] = last_load(t, p, (unsigned)col < (unsigned)width ? live : 0);
#pragma unroll
    for (int j = 0; j < t.tq; ++j) last_tap(t, j, ahead[j], weights + j * pitch, window, acc);
    weights += t.tq * pitch;
  }
#pragma unroll
  for (int j = 0; j < t.tq - 1; ++j, p += step, col += col_step)
    ahead[j] = last_load(t, p, j < us && (unsigned)col < (unsigned)width ? live : 0);
#pragma unroll
  for (int j = 0; j < t.tq - 1; ++j)
    if (j < us) last_tap(t, j, ahead[j], weights + j * pitch, window, acc);
}

/* Stores two channels at any element. */
HK_DEV void last_put_odd(last_tile t, char *to, int single, const float *v) {
  const int bytes = dw_type_bytes(t.type), apart = single || ((hk_cu_u64)to & (2 * bytes - 1)) != 0;
  if (t.type == HK_CU_F32) {
    if (!apart) {
      *(float2 *)to = make_float2(v[0], v[1]);
    } else {
      ((float *)to)[0] = v[0];
      if (!single) ((float *)to)[1] = v[1];
    }
  } else {
    const hk_cu_u32 u = dw_pack_pair(t.type, v[0], v[1]);
    if (!apart) {
      *(hk_cu_u32 *)to = u;
    } else {
      ((hk_cu_u16 *)to)[0] = (hk_cu_u16)u;
      if (!single) ((hk_cu_u16 *)to)[1] = (hk_cu_u16)(u >> 16);
    }
  }
}

HK_DEV void last_store(const hk_cu_dw *P, last_tile t, hk_cu_i64 at, hk_cu_i64 c_at, int k, int live, float *v) {
  const hk_cu_geom *g = &P->g;
  float cv[8];
  const int vector = t.v > 1;
  if (!t.plain && !P->plain) {
    if (P->e.residual) {
      if (vector) last_unpack(t, last_load(t, (const char *)P->e.c + c_at * dw_type_bytes(t.type), live), cv);
      else cv[0] = load_f32(P->e.c, c_at, g->y_type);
    }
    dw_finish(&P->e, t.v, t.odd && live == 2 ? 1 : t.v, k, 1, cv, v);
  }
  char *to = (char *)P->e.y + at * dw_type_bytes(t.type);
  if (t.odd) last_put_odd(t, to, live == 2, v);
  else if (t.v > 2) *(uint4 *)to = dw_pack(t.type, v);
  else if (vector && t.type == HK_CU_F32) *(float2 *)to = make_float2(v[0], v[1]);
  else if (vector) *(hk_cu_u32 *)to = dw_pack_pair(t.type, v[0], v[1]);
  else if (t.type == HK_CU_F32 && g->y_type == t.type) *(float *)to = v[0];
  else if (g->y_type == t.type) *(hk_cu_u16 *)to = t.type == HK_CU_BF16 ? bf16_from_f32(v[0]) : f16_from_f32(v[0]);
  else store_f32(P->e.y, at, g->y_type, v[0]);
}

HK_DEV void last_row(const hk_cu_dw *P, last_tile t, const char *line, int first, int col0, int us, int live,
                     const float *weights, float (*acc)[8]) {
  const int col_step = (int)P->g.stride[2] * P->classes, width = (int)P->g.in[2], pitch = P->padded;
  const hk_cu_i64 step = P->g.x.at[2] * dw_type_bytes(t.type) * col_step;
  const char *p = line + first * step;
  const int col = col0 + first * col_step;
  if (t.few) {
    if (us == 3) last_few(t, p, step, col, col_step, width, 3, 1, live, weights, pitch, acc);
    else last_few(t, p, step, col, col_step, width, 4, 1, live, weights, pitch, acc);
    return;
  }
  switch (us) {
    case 3: last_few(t, p, step, col, col_step, width, 3, 1, live, weights, pitch, acc); break;
    case 4: last_few(t, p, step, col, col_step, width, 4, 1, live, weights, pitch, acc); break;
    default:
      if (t.v < 8 && us == 5) last_few(t, p, step, col, col_step, width, 5, 1, live, weights, pitch, acc);
      else if (t.v < 8 && us == 7) last_few(t, p, step, col, col_step, width, 7, 1, live, weights, pitch, acc);
      else last_many(t, p, step, col, col_step, width, us, live, weights, pitch, acc);
  }
}

HK_DEV void last_body(const hk_cu_dw *P, last_tile t) {
  const hk_cu_geom *g = &P->g;
  const int sub = threadIdx.x / (unsigned)P->last.lanes, lane = threadIdx.x - sub * P->last.lanes;
  const int sb = blockIdx.x / (unsigned)P->channel_blocks, cb = blockIdx.x - sb * P->channel_blocks;
  const int k = (cb * P->last.lanes + lane) * t.v, group = sb * P->last.teams + sub;
  if (group >= P->last.groups || k >= P->channels) return;
  const int channel = g->kg == 1 ? k : k / (int)g->kg;
  int rest = dw_div(P->last.div_row_groups, group);
  const int in_row = group - rest * P->last.row_groups, block = dw_div(P->div_classes, in_row);
  const int cls = in_row - block * P->classes, first = block * t.tq;
  const int np0 = dw_div(P->div_out1, rest), p1 = rest - np0 * (int)g->out[1];
  const int n = dw_div(P->div_out0, np0), p0 = np0 - n * (int)g->out[0];
  const char *image = (const char *)P->x + (n * g->x.outer + channel * g->x.group) * dw_type_bytes(t.type);
  const float *weights = (const float *)P->packed + k;
  const int live = t.odd && k + 1 == P->channels ? 2 : 1;
  float acc[16][8];
#pragma unroll
  for (int i = 0; i < t.tq; ++i)
#pragma unroll
    for (int v = 0; v < t.v; ++v) acc[i][v] = 0.0f;
#pragma unroll 1
  for (int d = 0; d < (int)g->win[0]; ++d) {
    const int i0 = p0 * (int)g->stride[0] + d * (int)g->dil[0] - (int)g->lo[0];
#pragma unroll 1
    for (int r = 0; r < (int)g->win[1]; ++r) {
      const int i1 = p1 * (int)g->stride[1] + r * (int)g->dil[1] - (int)g->lo[1];
      const int in = (unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)g->in[1];
      if (!t.few && P->last.pairs) {
        /* stride 2, 3 taps: all columns at once; the host packs one phase */
        const int col = 2 * first - (int)g->lo[2];
        const hk_cu_i64 step = g->x.at[2] * dw_type_bytes(t.type);
        if (in)
          last_few(t, image + (i0 * g->x.at[0] + i1 * g->x.at[1]) * dw_type_bytes(t.type) + col * step, step, col, 1,
                   (int)g->in[2], 3, 2, live, weights, P->padded, acc);
        weights += (hk_cu_i64)3 * P->padded;
        continue;
      }
#pragma unroll 1
      for (int f = 0; f < P->phases; ++f, weights += (hk_cu_i64)P->taps_u * P->padded) {
        if (!in) continue;
        const int us = P->phases == 1 ? P->taps_u : ((int)g->win[2] - f + P->phases - 1) / P->phases;
        const int col0 = (int)g->stride[2] * cls + f * (int)g->dil[2] - (int)g->lo[2];
        const char *line = image + (i0 * g->x.at[0] + i1 * g->x.at[1] + col0 * g->x.at[2]) * dw_type_bytes(t.type);
        last_row(P, t, line, first, col0, us, live, weights, acc);
      }
    }
  }
  const int p[3] = {p0, p1, cls + P->classes * first};
  hk_cu_i64 yo = pixel_offset(&g->y, n, p) + dw_channel(g, &g->y, k);
  hk_cu_i64 co = P->e.residual ? pixel_offset(&g->c, n, p) + dw_channel(g, &g->c, k) : 0;
  int q = p[2];
#pragma unroll
  for (int i = 0; i < t.tq; ++i, q += P->classes, yo += P->classes * g->y.at[2], co += P->classes * g->c.at[2])
    if (q < g->out[2]) last_store(P, t, yo, co, k, live, acc[i]);
}

#define KERNEL(name, type, v, tq, plain, odd, few, blocks)                                                          \
  extern "C" __global__ void __launch_bounds__(THREADS, blocks) name(const __grid_constant__ hk_cu_dw P) { \
    dw_begin();                                                                                            \
    const last_tile t = {type, v, tq, plain, odd, few};                                                         \
    last_body(&P, t);                                                                                      \
  }
KERNEL(hk_dw_last_f32_4x8, HK_CU_F32, 4, 8, 0, 0, 0, 2)
KERNEL(hk_dw_last_f32_2x16, HK_CU_F32, 2, 16, 1, 0, 0, 2)
KERNEL(hk_dw_last_f32_2x16_epi, HK_CU_F32, 2, 16, 0, 0, 0, 2)
KERNEL(hk_dw_last_f32_1x8, HK_CU_F32, 1, 8, 0, 0, 0, 4)
KERNEL(hk_dw_last_bf16_8x4, HK_CU_BF16, 8, 4, 0, 0, 0, 2)
KERNEL(hk_dw_last_bf16_2x16, HK_CU_BF16, 2, 16, 1, 0, 0, 2)
KERNEL(hk_dw_last_bf16_2x16_epi, HK_CU_BF16, 2, 16, 0, 0, 0, 2)
KERNEL(hk_dw_last_bf16_1x8, HK_CU_BF16, 1, 8, 0, 0, 0, 4)
KERNEL(hk_dw_last_f16_8x4, HK_CU_F16, 8, 4, 0, 0, 0, 2)
KERNEL(hk_dw_last_f16_2x16, HK_CU_F16, 2, 16, 1, 0, 0, 2)
KERNEL(hk_dw_last_f16_2x16_epi, HK_CU_F16, 2, 16, 0, 0, 0, 2)
KERNEL(hk_dw_last_f16_1x8, HK_CU_F16, 1, 8, 0, 0, 0, 4)
KERNEL(hk_dw_last_f32_odd, HK_CU_F32, 2, 16, 1, 1, 0, 2)
KERNEL(hk_dw_last_f32_odd_epi, HK_CU_F32, 2, 16, 0, 1, 0, 2)
KERNEL(hk_dw_last_bf16_odd, HK_CU_BF16, 2, 16, 1, 1, 0, 2)
KERNEL(hk_dw_last_bf16_odd_epi, HK_CU_BF16, 2, 16, 0, 1, 0, 2)
KERNEL(hk_dw_last_f16_odd, HK_CU_F16, 2, 16, 1, 1, 0, 2)
KERNEL(hk_dw_last_f16_odd_epi, HK_CU_F16, 2, 16, 0, 1, 0, 2)
KERNEL(hk_dw_last_bf16_few, HK_CU_BF16, 2, 16, 1, 0, 1, 3)
KERNEL(hk_dw_last_f16_few, HK_CU_F16, 2, 16, 1, 0, 1, 3)
