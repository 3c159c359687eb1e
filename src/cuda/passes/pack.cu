/* Passes that run before the igemm kernels: packing of filters, and copies of x where TMA cannot read it.
 *
 * Filters are packed into the images that the kernels copy whole: out[tile_n][k block][part][bn rows][128 bytes],
 * rows swizzled as wgmma reads them (16-byte piece p of row r is at p ^ (r % 8); half blocks have rows of 64 bytes,
 * and p is at p ^ (r / 2 % 4)), missing channels zero. One thread per element. */
#include "cuda/ptx.cuh"
#include "cuda/igemm/tile.h"
#include "cuda/passes/transpose.cuh"

HK_DEV float round_tf32(float v) {
  hk_cu_u32 u;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(v));
  return __uint_as_float(u);
}

extern "C" __global__ void __launch_bounds__(256) hk_pack_filters(const __grid_constant__ hk_cu_images images) {
  const hk_cu_pack &P = images.pack;
  const int bytes = P.to_type == HK_CU_F32 ? 4 : P.to_type == HK_CU_F8 ? 1 : 2, run = 128 / bytes;
  const hk_cu_i64 taps = P.win[0] * P.win[1] * P.win[2], total = P.blocks * run;
  for (hk_cu_i64 i = (hk_cu_i64)blockIdx.x * blockDim.x + threadIdx.x; i < total;
       i += (hk_cu_i64)gridDim.x * blockDim.x) {
    const int e = (int)(i % run), line = (int)(i / run % (P.bn * P.parts)), row = line % P.bn;
    const hk_cu_i64 kb = i / run / (P.bn * P.parts) % P.k_blocks, tile = i / run / (P.bn * P.parts) / P.k_blocks;
    const hk_cu_i64 group = tile / P.group_tiles_n, k0 = (tile - group * P.group_tiles_n) * P.bn;
    hk_cu_i64 k = k0 + row, live = P.kg;
    if (P.gate) {
      k = k0 / 2 + row / 16 * 8 + row % 8;
      live = P.kg / 2;
    }
    const hk_cu_i64 tap = kb % taps;
    const int mine = images.apart > 1 ? e % (run / images.apart) * images.apart + e / (run / images.apart) : e;
    hk_cu_i64 c = kb / taps * run + mine, s = tap % P.win[2], r = tap / P.win[2] % P.win[1],
              t = tap / P.win[2] / P.win[1], part = 0;
    if (P.fold) {
      const hk_cu_i64 folded = P.fold_run ? c / P.fold_run : c % P.fold;
      c = folded >= P.fold ? P.cg : P.fold_run ? c - folded * P.fold_run : c / P.fold;
      s = folded % P.fold_win[2];
      if (P.fold_win[1] > 1) r = folded / P.fold_win[2] % P.fold_win[1];
      if (P.fold_win[0] > 1) t = folded / P.fold_win[2] / P.fold_win[1];
    }
    float v = 0.0f;
    bool lives = k < live && c < P.cg;
    if (P.join_k && lives) {
      part = k / P.join_k;
      lives = c / P.join_c == part;
      k -= part * P.join_k, c -= part * P.join_c, part += group * (P.kg / P.join_k - 1);
    }
    if (lives) {
      if (P.gate && row % 16 >= 8) k += P.kg / 2;
      v = load_f32(P.f, P.view.offset + P.view.group * (group + part) + P.view.outer * k + P.view.channel * c +
                            P.view.at[0] * t + P.view.at[1] * r + P.view.at[2] * s, P.f_type);
    }
    const int piece = e * bytes / 16, half = kb >= images.halves;
    if (half && e >= run / 2) continue;
    const hk_cu_i64 offset = half ? (i / run - line) * 128 + line * 64 + (piece ^ (row >> 1 & 3)) * 16
                                : i / run * 128 + (piece ^ (row & 7)) * 16;
    const hk_cu_i64 at = offset / bytes + e % (16 / bytes);
    if (P.to_type == HK_CU_F32) {
      const float high = round_tf32(v);
      v = line >= P.bn ? round_tf32(v - high) : high;
    }
    store_f32(P.out, at, P.to_type, v);
  }
}

/* The same for 16-bit filters that are neither gated, joined, folded nor reordered, one thread per 16-byte piece:
 * weights that come at execute are packed in every call. Neighbouring threads take neighbouring rows where those are
 * contiguous. */
extern "C" __global__ void __launch_bounds__(256) hk_pack_pieces(const __grid_constant__ hk_cu_images images) {
  const hk_cu_pack &P = images.pack;
  const hk_cu_u32 i = blockIdx.x * 256 + threadIdx.x, bn = P.bn;
  if (i >= (hk_cu_u32)P.blocks * 8) return;
  const hk_cu_u32 up = P.view.outer == 1 ? i / bn : i / 8, row = P.view.outer == 1 ? i - up * bn : up % bn;
  const hk_cu_u32 piece = P.view.outer == 1 ? up % 8 : i % 8, block = P.view.outer == 1 ? up / 8 : up / bn;
  const hk_cu_u32 tile = block / P.k_blocks, kb = block - tile * P.k_blocks, group = tile / P.group_tiles_n;
  const hk_cu_u32 taps = (hk_cu_u32)(P.win[0] * P.win[1] * P.win[2]), chunk = kb / taps, tap = kb - chunk * taps;
  const hk_cu_u32 line = tap / (hk_cu_u32)P.win[2], t = line / (hk_cu_u32)P.win[1];
  const int half = (int)kb >= images.halves, c = (int)(chunk * 64 + piece * 8), left = (int)P.cg - c;
  const int k = (int)((tile - group * P.group_tiles_n) * bn + row);
  if (half && piece >= 4) return;
  const hk_cu_u16 *from = (const hk_cu_u16 *)P.f + P.view.offset + P.view.group * group + P.view.outer * k +
                          P.view.channel * c + P.view.at[0] * t + P.view.at[1] * (line - t * (hk_cu_u32)P.win[1]) +
                          P.view.at[2] * (tap - line * (hk_cu_u32)P.win[2]);
  uint4 v = make_uint4(0, 0, 0, 0);
  if (k < (int)P.kg && left >= 8 && P.view.channel == 1 && (hk_cu_u64)from % 16 == 0) {
    v = *(const uint4 *)from;
  } else if (k < (int)P.kg) {
    hk_cu_u32 w[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) w[j] = j < left ? from[P.view.channel * j] : 0;
    v = make_uint4(w[0] | w[1] << 16, w[2] | w[3] << 16, w[4] | w[5] << 16, w[6] | w[7] << 16);
  }
  const hk_cu_i64 to =
      (hk_cu_i64)block * bn * 8 + (half ? row * 4 + (piece ^ (row >> 1 & 3)) : row * 8 + (piece ^ (row & 7)));
  ((uint4 *)P.out)[to] = v;
}

/* Any x whose channels are not contiguous: a block transposes tiles of 64 pixels x 64 channels through shared
 * memory, read along x's last dimension, written along channels. */
#define TRANSPOSE(T, PAIR, NAME)                                                                                       \
  extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ hk_cu_transpose P) {                  \
    __shared__ __align__(16) T tile[64][66];                                                                           \
    __shared__ hk_cu_i64 at[64];                                                                                       \
    const int tid = threadIdx.x;                                                                                       \
    const hk_cu_u32 runs = (hk_cu_u32)(P.run + 63) / 64, spots = (hk_cu_u32)(P.pixels + 63) / 64;                      \
    pdl_trigger();                                                                                                     \
    for (hk_cu_u32 b = blockIdx.x; b < P.tiles; b += gridDim.x) {                                                      \
      const hk_cu_u32 line = b / runs, image = line / spots, n = image / (hk_cu_u32)P.groups;                          \
      const int c0 = (int)(b - line * runs) * 64, s0 = (int)(line - image * spots) * 64;                               \
      const hk_cu_i64 g = image - n * (hk_cu_u32)P.groups;                                                             \
      if (tid < 64) at[tid] = transpose_from(&P, n, g, s0 + tid);                                                      \
      __syncthreads();                                                                                                 \
      T v[16];                                                                                                         \
      _Pragma("unroll") for (int j = 0; j < 16; ++j) {                                                                 \
        const int s = tid % 64, c = tid / 64 + j * 4;                                                                  \
        v[j] = at[s] != TRANSPOSE_NONE && c0 + c < P.cg ? ((const T *)P.x)[at[s] + (c0 + c) * P.view.channel] : (T)0;  \
      }                                                                                                                \
      _Pragma("unroll") for (int j = 0; j < 16; ++j) tile[tid % 64][tid / 64 + j * 4] = v[j];                          \
      __syncthreads();                                                                                                 \
      T *to = (T *)P.to + (((hk_cu_i64)n * P.pixels + s0) * P.groups + g) * P.run + c0;                                \
      const int pitch = (int)(P.groups * P.run);                                                                       \
      _Pragma("unroll") for (int j = 0; j < 8; ++j) {                                                                  \
        const int i = tid + j * 256, s = i / 32, c = i % 32 * 2;                                                       \
        if (s0 + s < P.pixels && c0 + c < P.run)                                                                       \
          *(PAIR *)(to + (hk_cu_i64)s * pitch + c) = *(const PAIR *)&tile[s][c];                                       \
      }                                                                                                                \
      __syncthreads();                                                                                                 \
    }                                                                                                                  \
  }
TRANSPOSE(hk_cu_u8, hk_cu_u16, hk_transpose_1)
TRANSPOSE(hk_cu_u16, hk_cu_u32, hk_transpose_2)
TRANSPOSE(hk_cu_u32, hk_cu_u64, hk_transpose_4)

/* An x with contiguous channels: only pads. A thread writes 16 bytes; the short reads of adjacent threads share
 * cache lines. */
#define PAD(T, NAME)                                                                                                   \
  extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ hk_cu_transpose P) {                  \
    enum { PER = 16 / sizeof(T) };                                                                                     \
    pdl_trigger();                                                                                                     \
    for (hk_cu_i64 i = (hk_cu_i64)blockIdx.x * 256 + threadIdx.x; i < P.tiles; i += (hk_cu_i64)gridDim.x * 256) {      \
      const int run = div_by((int)i, P.by_pieces), c = ((int)i - run * (int)P.by_pieces.d) * PER;                      \
      const int pixel = div_by(run, P.by_groups), n = div_by(pixel, P.by_pixels);                                      \
      const hk_cu_i64 from = transpose_from(&P, n, run - pixel * (int)P.by_groups.d, pixel - n * (int)P.by_pixels.d);  \
      if (sizeof(T) == 2) {                                                                                            \
        ((uint4 *)P.to)[i] = transpose_piece(&P, from, c);                                                             \
      } else {                                                                                                         \
        __align__(16) T v[PER];                                                                                        \
        _Pragma("unroll") for (int j = 0; j < PER; ++j) v[j] =                                                         \
            from != TRANSPOSE_NONE && c + j < P.cg ? ((const T *)P.x)[from + c + j] : (T)0;                            \
        ((uint4 *)P.to)[i] = *(const uint4 *)v;                                                                        \
      }                                                                                                                \
    }                                                                                                                  \
  }
PAD(hk_cu_u8, hk_pad_1)
PAD(hk_cu_u16, hk_pad_2)
PAD(hk_cu_u32, hk_pad_4)

/* The same for a 16-bit x of one group without dilation: a block copies up to 384 pieces of one row of pixels, so
 * that little address arithmetic is left per piece, and all loads of a thread are in flight before its first store. */
extern "C" __global__ void __launch_bounds__(128) hk_pad_rows(const __grid_constant__ hk_cu_transpose P) {
  pdl_trigger();
  const int pieces = P.span[2] * (int)P.by_pieces.d, cuts = (pieces + 383) / 384, size = (pieces + cuts - 1) / cuts;
  const int line = blockIdx.x / cuts, cut = (blockIdx.x - line * cuts) * size,
            end = cut + size < pieces ? cut + size : pieces, first = cut + threadIdx.x;
  const int up = div_by(line, P.by_span[1]), n = div_by(up, P.by_span[0]);
  const hk_cu_i64 base =
                      P.view.outer * n + P.view.at[0] * (up - n * P.span[0]) + P.view.at[1] * (line - up * P.span[1]),
                  behind = P.end - base;
  const hk_cu_u16 *row = (const hk_cu_u16 *)P.x + base;
  const int low = base > 0 ? -1 : 0, high = behind < 0x7fffffff ? (int)behind : 0x7fffffff, pitch = (int)P.view.at[2];
  uint4 *to = (uint4 *)P.to + (hk_cu_i64)line * pieces + first;
  transpose_words words[3];
  int at[3];
#pragma unroll
  for (int j = 0; j < 3; ++j) {
    const int piece = first + j * 128, pixel = div_by(piece, P.by_pieces), c = (piece - pixel * (int)P.by_pieces.d) * 8,
              in = pixel - P.shift;
    at[j] = in * pitch + c;
    words[j] = transpose_load(row, at[j], piece < end && in >= 0 && in < P.in[2] ? (int)P.cg - c : 0, low, high);
  }
#pragma unroll
  for (int j = 0; j < 3; ++j) {
    const uint4 v = transpose_align(row + at[j], &words[j]);
    if (first + j * 128 < end) to[j * 128] = v;
  }
}

/* A 16-bit x of one group with small, dense planes of any size: the planes of 64 channels of an image are
 * contiguous; a block reads them 16 bytes at a time into shared memory and writes them pixel by pixel. */
extern "C" __global__ void __launch_bounds__(256) hk_transpose_planes(const __grid_constant__ hk_cu_transpose P) {
  extern __shared__ __align__(16) hk_cu_u16 planes[];
  pdl_trigger();
  const int n = div_by(blockIdx.x, P.by_span[0]), c0 = (int)(blockIdx.x - n * P.by_span[0].d) * 64,
            pixels = (int)P.pixels;
  const int live = P.cg - c0 < 64 ? (int)P.cg - c0 : 64, width = P.run - c0 < 64 ? (int)P.run - c0 : 64,
            count = live * pixels;
  const hk_cu_u16 *x = (const hk_cu_u16 *)P.x + P.view.outer * n + c0 * P.view.channel;
#pragma unroll 4
  for (int i = threadIdx.x; i < count / 8; i += 256) ((uint4 *)planes)[i] = ((const uint4 *)x)[i];
  for (int i = count / 8 * 8 + threadIdx.x; i < count; i += 256) planes[i] = x[i];
  __syncthreads();
  hk_cu_u16 *to = (hk_cu_u16 *)P.to + (hk_cu_i64)n * pixels * P.run + c0;
  const int q = threadIdx.x % 8 * 8;
  for (int p = threadIdx.x / 8; p < pixels && q < width; p += 32) {
    hk_cu_u32 v[4] = {0, 0, 0, 0};
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j / 2] |= q + j < live ? (hk_cu_u32)planes[(q + j) * pixels + p] << (j % 2 * 16) : 0;
    *(uint4 *)(to + p * P.run + q) = make_uint4(v[0], v[1], v[2], v[3]);
  }
}

/* A 16-bit x with contiguous pixels, 4 or 2 at a time: a block transposes one tile of 64 pixels x 64 channels. */
#define TRANSPOSE_PIXELS(PX, NAME)                                                                                     \
  extern "C" __global__ void __launch_bounds__(512 / PX) NAME(const __grid_constant__ hk_cu_transpose P) {             \
    __shared__ __align__(16) hk_cu_u8 tile[64 * 128];                                                                  \
    const hk_cu_u32 runs = (hk_cu_u32)(P.run + 63) / 64, line = blockIdx.x / runs, spots = (hk_cu_u32)P.spots;         \
    const hk_cu_u32 g = line / spots;                                                                                  \
    const int c0 = (int)(blockIdx.x - line * runs) * 64, m0 = (int)(line - g * spots) * 64,                            \
              m1 = (int)(P.n * P.pixels);                                                                              \
    uint2 v[8];                                                                                                        \
    pdl_trigger();                                                                                                     \
    transpose_tile_load(&P, PX, m0, m1, (int)g, c0, threadIdx.x, v);                                                   \
    transpose_tile_put(PX, threadIdx.x, tile, v);                                                                      \
    __syncthreads();                                                                                                   \
    transpose_tile_store(&P, PX, m0, m1, (int)g, c0, threadIdx.x, tile);                                               \
  }
TRANSPOSE_PIXELS(2, hk_transpose_px2)
TRANSPOSE_PIXELS(4, hk_transpose_px4)
