/* Depthwise convolution of channels-first 16-bit rows with long filters, on the tensor cores: y[i*B + j] = sum over m of
 * x[i*B + m] * T[m, j] with T[m, j] = w[m - j - skew]. Rows of the left operand are overlapping windows of the staged row, read
 * in place by ldmatrix; T is never formed: its 8x8 blocks depend on (m - j)/8 alone, so a warp keeps the blocks of the
 * current diagonal in registers and reads two new ones a step of 16 taps, straight from the weights (two copies, one element
 * apart, so that every pair is an aligned word). Blocks off the band are skipped.
 * Staged x: 16-byte piece c lies in plane c % (B/8) at index c / (B/8), which keeps ldmatrix free of bank conflicts. Pieces
 * follow the aligned addresses of x, and the difference (skew) is folded into T.
 * Strides go phase by phase. Rows of 2D and 3D filters are staged one after another. Classes other than 1 are refused by
 * the host. NaN results are recomputed: T's zeros would let a foreign Inf in. Included by dw_toeplitz_bf16.cu and _f16.cu. */
#include "dw_line.cuh"

#define FRONT 24 /* zeros before the weights: a block may reach 7 + 7 + 8 elements back */

HK_DEV void load_x4(hk_cu_u32 at, hk_cu_u32 *r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
HK_DEV void mma_k16(float *d, const hk_cu_u32 *a, hk_cu_u32 b0, hk_cu_u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Output row `line` of all (n, channel, depth, row). */
HK_DEV void toeplitz_line(const hk_cu_dw *P, int line, dw_line *l) {
  const hk_cu_geom *g = &P->g;
  const int a = dw_div(P->div_out1, line), b = dw_div(P->div_out0, a);
  l->p[1] = line - a * (int)g->out[1];
  l->p[0] = a - b * (int)g->out[0];
  l->n = dw_div(P->div_channels, b);
  l->k = b - l->n * P->channels;
}

/* Window indices first.. of one phase of one input row. Returns the skew; `row` NULL: all zeros. */
HK_DEV int toeplitz_stage(const hk_cu_dw *P, const hk_cu_u16 *row, int first, int f, int length, int rank, int ranks, const int b,
                          char *to) {
  const hk_cu_geom *g = &P->g;
  const int planes = b / 8, width = (int)g->in[2];
  const int col0 = (int)g->stride[2] * first + f * (int)g->dil[2] - (int)g->lo[2];
  const int plain = g->stride[2] == 1 && g->x.at[2] == 1;
  const hk_cu_u16 *start = row + col0;
  const int skew = row && plain ? (int)((hk_cu_u64)start & 15) / 2 : 0;
  const int pieces = (length + skew + 7) / 8;
  for (int c = rank; c < pieces; c += ranks) {
    char *at = to + (unsigned)c % planes * P->plane_pitch + (unsigned)c / planes * 16;
    const int o = c * 8 - skew, col = col0 + o;
    if (row && plain && col >= 0 && col + 8 <= width) {
      dw_copy16(dw_shared(at), start + o, 16);
      continue;
    }
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

/* Two copies of us weights between zeros: word i of copy h holds elements 2i + h and 2i + h + 1. */
HK_DEV void toeplitz_weights(const hk_cu_dw *P, const hk_cu_u16 *f, int s0, int us, int rank, int ranks, hk_cu_u32 *to) {
  const int words = P->taps_bytes / 8;
  for (int i = rank; i < 2 * words; i += ranks) {
    const int e = i % words * 2 + i / words - FRONT;
    hk_cu_u32 w = 0;
    if ((unsigned)e < (unsigned)us) w = f[(s0 + P->phases * e) * P->g.f.at[2]];
    if ((unsigned)(e + 1) < (unsigned)us) w |= (hk_cu_u32)f[(s0 + P->phases * (e + 1)) * P->g.f.at[2]] << 16;
    to[i] = w;
  }
}

/* 16 windows times B outputs of one warp; x: shared address of the row's planes, window0: the warp's first window. */
HK_DEV void toeplitz_multiply(const hk_cu_dw *P, hk_cu_u32 x, int window0, const hk_cu_u32 *taps, int us, int skew, const int b,
                              float (*acc)[4]) {
  const int lane = threadIdx.x % 32, blocks = b / 8, ring = 2 * blocks;
  const int steps = (b + us - 1 + skew + 15) / 16, last = (us + skew + 6) / 8;
  const int offset = FRONT + lane % 4 * 2 - lane / 4 - skew;
  const hk_cu_u32 *mine = taps + (offset & 1) * (P->taps_bytes / 8) + (offset >> 1);
  const hk_cu_u32 from = x + (window0 + lane % 16) * 16;
  hk_cu_u32 t[16];
#pragma unroll
  for (int i = 0; i < ring; ++i) t[i] = 0;
#pragma unroll 1
  for (int m0 = 0; m0 < steps; m0 += blocks) {
#pragma unroll
    for (int s = 0; s < blocks; ++s) {
      const int m = m0 + s;
      if (m < steps) {
        hk_cu_u32 a[4];
        const int piece = 2 * m + lane / 16;
        load_x4(from + (unsigned)piece % blocks * P->plane_pitch + (unsigned)piece / blocks * 16, a);
        t[2 * s % ring] = 2 * m <= last ? mine[8 * m] : 0;
        t[(2 * s + 1) % ring] = 2 * m + 1 <= last ? mine[8 * m + 4] : 0;
#pragma unroll
        for (int v = 0; v < blocks; ++v)
          if (2 * m - v + 1 >= 0 && 2 * m - v <= last)
            mma_k16(acc[v], a, t[(2 * s - v + ring) % ring], t[(2 * s - v + 1 + ring) % ring]);
      }
    }
  }
}

HK_DEV void toeplitz_body(const hk_cu_dw *P, char *raw, const int b) {
  const hk_cu_geom *g = &P->g;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, ln = warp / (unsigned)P->lanes, wl = warp - ln * P->lanes;
  const int tile = P->lanes * 16 * b, index0 = blockIdx.x % P->lane_blocks * tile;
  const int line = blockIdx.x / P->lane_blocks * P->planes + ln, live = line < P->plane_count;
  const int ranks = P->lanes * 32, rank = threadIdx.x - ln * ranks;
  char *x = raw + ln * P->line_bytes;
  hk_cu_u32 *taps = (hk_cu_u32 *)(raw + P->taps_at + ln * P->taps_bytes);
  float *sums = (float *)(raw + P->sums_at) + ln * P->sums_pitch;
  dw_line l;
  toeplitz_line(P, live ? line : 0, &l);
  const int group = l.k / (int)g->kg;
  const hk_cu_u16 *image = (const hk_cu_u16 *)P->x + l.n * g->x.outer + group * g->x.group;
  const hk_cu_u16 *filter = (const hk_cu_u16 *)P->f + dw_filter(g, l.k);
  float acc[8][4];
#pragma unroll
  for (int i = 0; i < b / 8; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) acc[i][j] = 0.0f;
  const int rows = (int)(g->win[0] * g->win[1]) * P->phases;
  for (int row = 0; row < rows; ++row) {
    const int dr = P->phases == 1 ? row : row / P->phases, f = row - dr * P->phases;
    const int d = dr / (unsigned)g->win[1], r = dr - d * (int)g->win[1];
    const int i0 = l.p[0] * (int)g->stride[0] + d * (int)g->dil[0] - (int)g->lo[0];
    const int i1 = l.p[1] * (int)g->stride[1] + r * (int)g->dil[1] - (int)g->lo[1];
    const int in = live && (unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)g->in[1];
    const hk_cu_u16 *from = in ? image + i0 * g->x.at[0] + i1 * g->x.at[1] : 0;
    const int us = P->phases == 1 ? P->taps_u : ((int)g->win[2] - f + P->phases - 1) / P->phases;
    for (int u0 = 0; u0 < us; u0 += P->chunk_u) {
      const int here = us - u0 < P->chunk_u ? us - u0 : P->chunk_u;
      __syncthreads();
      /* Pieces past the last window are read by multiplications that other windows need: they must hold numbers. */
      const int skew = toeplitz_stage(P, from, index0 + u0, f, tile + here - 1 + 16, rank, ranks, b, x);
      toeplitz_weights(P, filter + d * g->f.at[0] + r * g->f.at[1], f + P->phases * u0, here, rank, ranks, taps);
      dw_copy_wait();
      __syncthreads();
      if (in) toeplitz_multiply(P, dw_shared(x), wl * 16, taps, here, skew, b, acc);
    }
  }
  l.p[2] = index0;
  l.length = (int)g->out[2] - index0 < tile ? (int)g->out[2] - index0 : tile;
  const int skew = dw_line_skew(P, TYPE, l), e = lane % 4 * 2 + skew;
  float *mine = sums + (wl * 16 + lane / 4) * (b / 8) * 9;
#pragma unroll
  for (int v = 0; v < b / 8; ++v)
#pragma unroll
    for (int i = 0; i < 4; ++i) mine[v * 9 + i / 2 * b * 9 + dw_line_at(e + i % 2)] = acc[v][i];
  __syncthreads();
  if (live) dw_line_store(P, TYPE, l, sums, skew, rank, ranks, 1);
}

#define KERNEL(name, b, blocks)                                                                        \
  extern "C" __global__ void __launch_bounds__(256, blocks) name(const __grid_constant__ hk_cu_dw P) { \
    extern __shared__ uint4 raw[];                                                                     \
    toeplitz_body(&P, (char *)raw, b);                                                                 \
  }
