/* Building blocks of the passes in pack.cu that copy x channels-last: to[n][space][group][run], channels innermost,
 * zero-padded; the last dimension may start before x does. */
#ifndef HK_CUDA_TRANSPOSE_CUH
#define HK_CUDA_TRANSPOSE_CUH
#include "cuda/types.cuh"

#define TRANSPOSE_NONE (-0x7fffffffffffffffll)
/* Offset of the first channel of a pixel of the dilated, shifted input; TRANSPOSE_NONE where it has no element. */
HK_DEV hk_cu_i64 transpose_from(const hk_cu_transpose *P, hk_cu_i64 n, hk_cu_i64 g, int s) {
  hk_cu_i64 o = P->view.outer * n + P->view.group * g;
  if (s >= P->pixels) return TRANSPOSE_NONE;
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    const int up = div_by(s, P->by_span[d]), i = s - up * P->span[d] - (d == 2 ? P->shift : 0),
              at = P->dil[d] == 1 ? i : i / P->dil[d];
    if (i < 0 || at >= P->in[d] || at * P->dil[d] != i) return TRANSPOSE_NONE;
    o += at * P->view.at[d];
    s = up;
  }
  return o;
}

/* Loads 8 16-bit channels from c on of a pixel whose channels are contiguous from element `from`, at any 2-byte
 * address: three aligned words and two halves. Channels past the last are read where x still has elements there, and
 * cleared. */
HK_DEV uint4 transpose_piece(const hk_cu_transpose *P, hk_cu_i64 from, int c) {
  const int live = from == TRANSPOSE_NONE ? 0 : (int)P->cg - c;
  const hk_cu_u16 *x = (const hk_cu_u16 *)P->x + (from == TRANSPOSE_NONE ? 0 : from + c);
  hk_cu_u32 v[4] = {0, 0, 0, 0};
  if (live > 0 && from + c + 8 <= P->end) {
    const int odd = (int)((hk_cu_u64)x >> 1 & 1);
    const hk_cu_u32 *w = (const hk_cu_u32 *)(x + odd);
    const hk_cu_u32 a = w[0], b = w[1], d = w[2], lone = x[odd ? 0 : 6], last = x[7];
    v[0] = odd ? lone | a << 16 : a;
    v[1] = odd ? __funnelshift_l(a, b, 16) : b;
    v[2] = odd ? __funnelshift_l(b, d, 16) : d;
    v[3] = odd ? d >> 16 | last << 16 : lone | last << 16;
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] &= live > 2 * i + 1 ? 0xffffffffu : live > 2 * i ? 0xffffu : 0;
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i / 2] |= i < live ? (hk_cu_u32)x[i] << (i % 2 * 16) : 0;
  }
  return make_uint4(v[0], v[1], v[2], v[3]);
}

/* The same in two steps, so that the loads of several pieces are in flight at once: `at` elements from `row` on,
 * which has elements [low, high) in x; `live` of the 8 are needed. */
typedef struct transpose_words {
  hk_cu_u32 w[5];
  int odd, live, near; /* near: the aligned words around the piece are in x */
} transpose_words;
HK_DEV transpose_words transpose_load(const hk_cu_u16 *row, int at, int live, int low, int high) {
  transpose_words a;
  a.live = live;
  a.odd = (int)((hk_cu_u64)(row + at) >> 1 & 1);
  a.near = live > 0 && at - a.odd >= low && at + 8 + a.odd <= high;
  const hk_cu_u32 *w = (const hk_cu_u32 *)(row + (at - a.odd));
#pragma unroll
  for (int i = 0; i < 4; ++i) a.w[i] = a.near ? w[i] : 0;
  a.w[4] = a.near && a.odd ? w[4] : 0;
  return a;
}
HK_DEV uint4 transpose_align(const hk_cu_u16 *x, const transpose_words *a) {
  hk_cu_u32 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v[i] = __funnelshift_r(a->w[i], a->w[i + 1], a->odd * 16) & (a->live > 2 * i + 1 ? 0xffffffffu
                                                                 : a->live > 2 * i   ? 0xffffu
                                                                                     : 0);
  if (a->live > 0 && !a->near)
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i / 2] |= i < a->live ? (hk_cu_u32)x[i] << (i % 2 * 16) : 0;
  return make_uint4(v[0], v[1], v[2], v[3]);
}

/* A 16-bit x with contiguous pixels: a tile of 64 pixels (counted over images) x 64 channels is transposed by 64 /
 * px * 8 threads. A thread handles `px` pixels of 8 channels, px = 4 or 2, which never straddle images. Piece q (8
 * channels) of pixel p is at q ^ (p / px % 8), so that 8 threads access distinct banks. */
HK_DEV void transpose_tile_load(const hk_cu_transpose *P, int px, int m0, int m1, int g, int c0, int tid, uint2 *v) {
  const int m = m0 + tid % (64 / px) * px, c = c0 + tid / (64 / px) * 8, n = div_by(m, P->by_pixels);
  const hk_cu_u16 *x = (const hk_cu_u16 *)P->x + P->view.outer * n + P->view.group * g + (m - n * (int)P->by_pixels.d) +
                       c * P->view.channel;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    v[j] = make_uint2(0, 0);
    if (m < m1 && c + j < P->cg) {
      if (px == 4) v[j] = *(const uint2 *)(x + j * P->view.channel);
      else v[j].x = *(const hk_cu_u32 *)(x + j * P->view.channel);
    }
  }
}
HK_DEV void transpose_tile_put(int px, int tid, hk_cu_u8 *tile, const uint2 *v) {
  const int col = tid % (64 / px), octet = tid / (64 / px);
#pragma unroll
  for (int k = 0; k < px; ++k) {
    const hk_cu_u32 half = k % 2 ? 0x7632 : 0x5410;
    uint4 w;
    w.x = k < 2 ? __byte_perm(v[0].x, v[1].x, half) : __byte_perm(v[0].y, v[1].y, half);
    w.y = k < 2 ? __byte_perm(v[2].x, v[3].x, half) : __byte_perm(v[2].y, v[3].y, half);
    w.z = k < 2 ? __byte_perm(v[4].x, v[5].x, half) : __byte_perm(v[4].y, v[5].y, half);
    w.w = k < 2 ? __byte_perm(v[6].x, v[7].x, half) : __byte_perm(v[6].y, v[7].y, half);
    *(uint4 *)(tile + (col * px + k) * 128 + (octet ^ (col & 7)) * 16) = w;
  }
}
HK_DEV void transpose_tile_store(const hk_cu_transpose *P, int px, int m0, int m1, int g, int c0, int tid,
                                 const hk_cu_u8 *tile) {
  const int q = tid % 8, threads = 64 / px * 8;
  hk_cu_u16 *to = (hk_cu_u16 *)P->to + g * P->run + c0 + q * 8;
#pragma unroll
  for (int p = tid / 8, j = 0; j < 512 / threads; ++j, p += threads / 8)
    if (m0 + p < m1 && c0 + q * 8 < P->run)
      *(uint4 *)(to + (hk_cu_i64)(m0 + p) * P->groups * P->run) =
          *(const uint4 *)(tile + p * 128 + (q ^ (p / px & 7)) * 16);
}
#endif
