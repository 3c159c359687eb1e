/* Depthwise convolution of channels-first 16-bit rows with long filters, on the tensor cores: y[i*B + j] = sum over
 * m of x[i*B + m] * T[m, j] with T[m, j] = w[m - j - skew]. Rows of the left operand are overlapping windows of the
 * staged row, read in place by ldmatrix. T is never formed: its 8x8 blocks depend on (m - j)/8 alone, so a warp
 * keeps the blocks of the current diagonal in registers and loads two new ones per step of 16 taps, directly from
 * the weights (two copies, one element apart, so that every pair is an aligned word).
 *
 * Staged x: 16-byte piece c is in plane c % (B/8) at index c / (B/8), which keeps ldmatrix free of bank conflicts.
 * Pieces follow the aligned addresses of x, and the difference (skew) is folded into T. A row's tiles start at
 * 16-byte addresses of y, up to 7 outputs before its first one; sums are packed in pairs, pass through shared memory
 * (piece c at c ^ (c/8 mod B/8): no bank conflicts either way) and are stored 16 bytes at a time, all within a warp.
 * Strides are processed phase by phase, rows of 2D and 3D filters one after another. The host refuses more than one
 * class. NaN results are recomputed: the zeros of T would turn an Inf of another window into NaN. */
#include "cuda/depthwise/matrix.cuh"
#include "cuda/depthwise/rows.cuh"

#define FRONT HK_TOEPLITZ_FRONT /* zeros before the weights: a block may reach 7 + 7 + 8 elements back */

/* Elements between the aligned address of x and window index `first`. */
HK_DEV int toeplitz_skew(const hk_cu_dw *P, const hk_cu_u16 *row, int first, int f) {
  const hk_cu_geom *g = &P->g;
  const int col0 = (int)g->stride[2] * first + f * (int)g->dil[2] - (int)g->lo[2];
  return row && g->stride[2] == 1 && g->x.at[2] == 1 ? (int)((hk_cu_u64)(row + col0) & 15) / 2 : 0;
}

/* Stages window indices first.. of one phase of one input row. Returns the skew; `row` NULL: all zeros. */
HK_DEV int toeplitz_stage(const hk_cu_dw *P, const hk_cu_u16 *row, int first, int f, int length, int rank, int ranks,
                          const int b, char *to) {
  const hk_cu_geom *g = &P->g;
  const int planes = b / 8, width = (int)g->in[2];
  const int col0 = (int)g->stride[2] * first + f * (int)g->dil[2] - (int)g->lo[2];
  const int plain = g->stride[2] == 1 && g->x.at[2] == 1;
  const hk_cu_u16 *start = row + col0;
  const int skew = toeplitz_skew(P, row, first, f);
  const int pieces = (length + skew + 7) / 8;
  /* pieces entirely in x; ranks is a multiple of the planes, so a thread stays in its plane */
  const int low = skew > col0 ? (skew - col0 + 7) / 8 : 0, high = row && plain ? (width + skew - col0) >> 3 : 0;
  char *at = to + (unsigned)rank % planes * P->toeplitz.plane_pitch + (unsigned)rank / planes * 16;
  const hk_cu_u16 *source = start + (rank * 8 - skew);
  if (low <= 0 && high >= pieces) { /* a tile inside the row */
    hk_cu_u32 there = dw_shared(at);
#pragma unroll 4
    for (int c = rank; c < pieces; c += ranks, there += ranks / planes * 16, source += ranks * 8)
      dw_copy16(there, source, 16);
    return skew;
  }
  for (int c = rank; c < pieces; c += ranks, at += ranks / planes * 16, source += ranks * 8) {
    if (c >= low && c < high) {
      dw_copy16(dw_shared(at), source, 16);
      continue;
    }
    const int o = c * 8 - skew, col = col0 + o;
    hk_cu_u32 w[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int at_col = plain ? col + i : col0 + (int)g->stride[2] * (o + i);
      if (row && (unsigned)at_col < (unsigned)width && (unsigned)(o + i) < (unsigned)length)
        w[i / 2] |= (hk_cu_u32)row[at_col * g->x.at[2]] << (i % 2 * 16);
    }
    *(uint4 *)at = make_uint4(w[0], w[1], w[2], w[3]);
  }
  return skew;
}

/* Stages two copies of us weights between zeros: word i of copy h holds elements 2i + h and 2i + h + 1. */
HK_DEV void toeplitz_weights(const hk_cu_dw *P, const hk_cu_u16 *f, int s0, int us, int rank, int ranks,
                             hk_cu_u32 *to) {
  const int words = P->taps_bytes / 8, step = P->phases * (int)P->g.f.at[2];
  f += s0 * P->g.f.at[2];
#pragma unroll
  for (int h = 0; h < 2; ++h)
    for (int i = rank; i < words; i += ranks) {
      const int e = i * 2 + h - FRONT;
      hk_cu_u32 w = 0;
      if ((unsigned)e < (unsigned)us) w = f[e * step];
      if ((unsigned)(e + 1) < (unsigned)us) w |= (hk_cu_u32)f[(e + 1) * step] << 16;
      to[h * words + i] = w;
    }
}

/* Multiplies 16 windows by B outputs of one warp; x: shared address of the row's planes, window0: the warp's first
 * window. Steps go in pairs, so that the loads of one overlap the products of the other: up to 16 taps too many,
 * zeros after the weights. */
HK_DEV void toeplitz_multiply(const hk_cu_dw *P, hk_cu_u32 x, int window0, const hk_cu_u32 *taps, int us, int skew,
                              const int b, float (*acc)[4]) {
  const int lane = threadIdx.x % 32, blocks = b / 8, ring = 2 * blocks, pair = blocks > 1 ? 2 : 1;
  const int steps = (b + us - 1 + skew + 15) / 16, pitch = P->toeplitz.plane_pitch;
  const int offset = FRONT + lane % 4 * 2 - lane / 4 - skew;
  const hk_cu_u32 *mine = taps + (offset & 1) * (P->taps_bytes / 8) + (offset >> 1);
  hk_cu_u32 from = x + (window0 + lane % 16) * 16 + lane / 16 * (blocks > 1 ? pitch : 16);
  hk_cu_u32 t[16];
#pragma unroll
  for (int i = 0; i < ring; ++i) t[i] = 0;
#pragma unroll 1
  for (int m0 = 0; m0 < steps; m0 += blocks, mine += 8 * blocks, from += 32) {
#pragma unroll
    for (int s0 = 0; s0 < blocks; s0 += pair) {
      if (m0 + s0 < steps) {
        hk_cu_u32 a[2][4];
#pragma unroll
        for (int s = s0; s < s0 + pair; ++s) {
          load_x4(from + 2 * s % blocks * pitch + 2 * s / blocks * 16, a[s - s0]); /* pieces 2m, 2m + 1; m = m0 + s */
          t[2 * s % ring] = mine[8 * s];
          t[(2 * s + 1) % ring] = mine[8 * s + 4];
        }
        /* all blocks, inside the band or not: a branch costs more than the product with zeros */
#pragma unroll
        for (int s = s0; s < s0 + pair; ++s)
#pragma unroll
          for (int v = 0; v < blocks; ++v)
            mma_k16(acc[v], a[s - s0], t[(2 * s - v + ring) % ring], t[(2 * s - v + 1 + ring) % ring]);
      }
    }
  }
}

/* Byte offset of 16-byte piece c of a warp's results. */
HK_DEV int toeplitz_piece(int c, const int b) { return (c ^ (c >> 3 & (b / 8 - 1))) * 16; }

/* Writes sums to shared memory, piece c at toeplitz_piece(c). */
HK_DEV void toeplitz_put(hk_cu_u32 at, const int b, float (*acc)[4]) {
  const int lane = threadIdx.x % 32, blocks = b / 8;
#pragma unroll
  for (int v = 0; v < blocks; v += 2) {
    const hk_cu_u32 r0 = dw_pack_pair(TYPE, acc[v][0], acc[v][1]), r1 = dw_pack_pair(TYPE, acc[v][2], acc[v][3]);
    if (v + 1 < blocks) {
      const hk_cu_u32 r2 = dw_pack_pair(TYPE, acc[v + 1][0], acc[v + 1][1]),
                      r3 = dw_pack_pair(TYPE, acc[v + 1][2], acc[v + 1][3]);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       at + toeplitz_piece(lane % 16 * blocks + v + lane / 16, b)),
                   "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                   : "memory");
    } else {
      asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(
                       at + toeplitz_piece(lane % 16 * blocks + v, b)),
                   "r"(r0), "r"(r1)
                   : "memory");
    }
  }
}

/* Stores the results of a warp to row `line`, whose first output is y[to], contiguous and of the type of x. stage:
 * 32*B bytes of shared memory of this warp. */
HK_DEV void toeplitz_store(const hk_cu_dw *P, hk_cu_i64 to, int line, int q, char *stage, const int b,
                           float (*acc)[4]) {
  const hk_cu_geom *g = &P->g;
  const int lane = threadIdx.x % 32;
  toeplitz_put(dw_shared(stage), b, acc);
  __syncwarp();
  hk_cu_u16 *y = (hk_cu_u16 *)P->e.y + to + q;
  const int length = (int)g->out[2];
  if (q >= 0 && q + 16 * b <= length) { /* all of it, unless there is a NaN */
    uint4 u[4];
    hk_cu_u32 sum = 0;
#pragma unroll
    for (int r = 0; r < (2 * b + 31) / 32; ++r) {
      u[r] = make_uint4(0, 0, 0, 0);
      if (lane + 32 * r < 2 * b) u[r] = *(const uint4 *)(stage + toeplitz_piece(lane + 32 * r, b));
      sum = r ? matrix_sum(sum, matrix_sum8(u[r])) : matrix_sum8(u[r]);
    }
    if (!matrix_nan(sum)) {
#pragma unroll
      for (int r = 0; r < (2 * b + 31) / 32; ++r)
        if (lane + 32 * r < 2 * b) *(uint4 *)(y + (lane + 32 * r) * 8) = u[r];
      return;
    }
  }
#pragma unroll 1
  for (int c = lane; c < 2 * b; c += 32) {
    const int o = c * 8;
    if (q + o <= -8 || q + o >= length) continue;
    const char *from = stage + toeplitz_piece(c, b);
    const uint4 u = *(const uint4 *)from;
    if (q + o >= 0 && q + o + 8 <= length && !matrix_nan(matrix_sum8(u))) {
      *(uint4 *)(y + o) = u;
      continue;
    }
#pragma unroll 1
    for (int i = 0; i < 8; ++i)
      if ((unsigned)(q + o + i) < (unsigned)length) {
        const hk_cu_u16 bits = ((const hk_cu_u16 *)from)[i];
        const float v = dw_half(TYPE, bits);
        if (v == v) y[o + i] = bits;
        else toeplitz_recompute(P, line, q + o + i);
      }
  }
}

/* Stores to any other y, one element at a time. stage: 64*B bytes. */
HK_DEV void toeplitz_store_any(const hk_cu_dw *P, dw_line l, int q, float *stage, const int b, float (*acc)[4]) {
  const hk_cu_geom *g = &P->g;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int v = 0; v < b / 8; ++v)
#pragma unroll
    for (int i = 0; i < 4; ++i) stage[(lane / 4 + i / 2 * 8) * b + v * 8 + lane % 4 * 2 + i % 2] = acc[v][i];
  __syncwarp();
  const hk_cu_i64 yo = pixel_offset(&g->y, l.n, l.p) + dw_channel(g, &g->y, l.k);
  const hk_cu_i64 co = P->e.residual ? pixel_offset(&g->c, l.n, l.p) + dw_channel(g, &g->c, l.k) : 0;
#pragma unroll 1
  for (int i = lane; i < 16 * b && q + i < (int)g->out[2]; i += 32) {
    float v = stage[i];
    if (v != v) v = dw_plain(P, TYPE, l.n, l.p[0], l.p[1], q + i, l.k);
    dw_line_single(P, l, yo, co, q + i, v);
  }
}

HK_DEV void toeplitz_body(const hk_cu_dw *P, char *raw, const int b, const int plain) {
  const hk_cu_geom *g = &P->g;
  const int warp = threadIdx.x / 32, ln = warp / (unsigned)P->toeplitz.lanes, wl = warp - ln * P->toeplitz.lanes;
  const int tile = P->toeplitz.lanes * 16 * b, place = blockIdx.x / (unsigned)P->toeplitz.lane_blocks;
  const int line = place * P->toeplitz.planes + ln, live = line < P->toeplitz.plane_count;
  const int ranks = P->toeplitz.lanes * 32, rank = threadIdx.x - ln * ranks;
  char *x = raw + ln * P->toeplitz.line_bytes;
  hk_cu_u32 *taps = (hk_cu_u32 *)(raw + P->toeplitz.taps_at + ln * P->taps_bytes);
  toeplitz_row *own = (toeplitz_row *)(raw + P->toeplitz.rows_at) + ln;
  if (rank == 0) toeplitz_find(P, live ? line : 0, own);
  __syncthreads();
  const int index0 = (blockIdx.x - place * P->toeplitz.lane_blocks) * tile - own->skew;
  float acc[8][4];
#pragma unroll
  for (int i = 0; i < b / 8; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) acc[i][j] = 0.0f;
  const int rows = (int)(g->win[0] * g->win[1]) * P->phases;
  int d = 0, r = 0, f = 0;
  for (int row = 0; row < rows; ++row) {
    const int i0 = own->p0 * (int)g->stride[0] + d * (int)g->dil[0] - (int)g->lo[0];
    const int i1 = own->p1 * (int)g->stride[1] + r * (int)g->dil[1] - (int)g->lo[1];
    const int in = live && (unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)g->in[1];
    const hk_cu_u16 *from = in ? (const hk_cu_u16 *)P->x + own->image + i0 * g->x.at[0] + i1 * g->x.at[1] : 0;
    const int us = P->phases == 1 ? P->taps_u : ((int)g->win[2] - f + P->phases - 1) / P->phases;
    for (int u0 = 0; u0 < us; u0 += P->toeplitz.chunk_u) {
      const int count = us - u0 < P->toeplitz.chunk_u ? us - u0 : P->toeplitz.chunk_u;
      if (row + u0) __syncthreads();
      /* Products that other windows need also read pieces past the last window: they must be numbers. */
      const int skew = toeplitz_stage(P, from, index0 + u0, f, tile + count - 1 + 32, rank, ranks, b, x);
      if (P->pack) toeplitz_packed(P, own->k, row, rank, ranks, taps);
      else
        toeplitz_weights(P, (const hk_cu_u16 *)P->f + own->filter + d * g->f.at[0] + r * g->f.at[1], f + P->phases * u0,
                         count, rank, ranks, taps);
      dw_copy_wait();
      __syncthreads();
      if (in) toeplitz_multiply(P, dw_shared(x), wl * 16, taps, count, skew, b, acc);
    }
    if (++f == P->phases) {
      f = 0;
      if (++r == (int)g->win[1]) r = 0, ++d;
    }
  }
  if (!live) return;
  char *stage = raw + P->toeplitz.sums_at + warp * P->toeplitz.sums_pitch;
  const int q = index0 + wl * 16 * b;
  if (P->toeplitz.wide && !plain) toeplitz_finish(P, toeplitz_line(own), q, b, acc);
  if (P->toeplitz.wide) toeplitz_store(P, own->y, line, q, stage, b, acc);
  else toeplitz_store_any(P, toeplitz_line(own), q, (float *)stage, b, acc);
}

#define KERNEL(name, threads, blocks, body)                                                                \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ hk_cu_dw P) { \
    extern __shared__ uint4 raw[];                                                                         \
    dw_begin();                                                                                            \
    body;                                                                                                  \
  }
#include "cuda/depthwise/stream.cuh"
/* hk_dw_toeplitz_<type>_<B>; with an epilogue: .._epi; walking warps: .._stream. */
#define KERNELS(name, b, blocks, streams)                                                           \
  KERNEL(name, 256, blocks, toeplitz_body(&P, (char *)raw, b, 1))                                   \
  KERNEL(name##_epi, 256, 2, toeplitz_body(&P, (char *)raw, b, 0))                                  \
  KERNEL(name##_stream, HK_STREAM_THREADS, streams, toeplitz_stream(&P, (char *)raw, b))
