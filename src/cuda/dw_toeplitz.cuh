/* Depthwise convolution of channels-first 16-bit rows with long filters, on the tensor cores: y[i*B + j] = sum over m of
 * x[i*B + m] * T[m, j] with T[m, j] = w[m - j - skew]. Rows of the left operand are overlapping windows of the staged row, read
 * in place by ldmatrix; T is never formed: its 8x8 blocks depend on (m - j)/8 alone, so a warp keeps the blocks of the
 * current diagonal in registers and reads two new ones a step of 16 taps, straight from the weights (two copies, one element
 * apart, so that every pair is an aligned word).
 * Staged x: 16-byte piece c lies in plane c % (B/8) at index c / (B/8), which keeps ldmatrix free of bank conflicts. Pieces
 * follow the aligned addresses of x, and the difference (skew) is folded into T.
 * A row's tiles begin at 16-byte addresses of y, up to 7 outputs before its first one, so that sums leave the registers as pairs, turn in
 * shared memory (piece c at c ^ (c/8 mod B/8): no bank conflicts either way) and go out 16 bytes at a time, all inside a warp.
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
  /* pieces that lie in x whole; ranks is a multiple of the planes, so a thread stays in its plane */
  const int low = skew > col0 ? (skew - col0 + 7) / 8 : 0, high = row && plain ? (width + skew - col0) >> 3 : 0;
  char *at = to + (unsigned)rank % planes * P->plane_pitch + (unsigned)rank / planes * 16;
  const hk_cu_u16 *source = start + (rank * 8 - skew);
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
        /* all blocks, in the band or not: a branch costs more than the product with zeros */
#pragma unroll
        for (int v = 0; v < blocks; ++v) mma_k16(acc[v], a, t[(2 * s - v + ring) % ring], t[(2 * s - v + 1 + ring) % ring]);
      }
    }
  }
}

/* Where 16-byte piece c of a warp's results lies. */
HK_DEV int toeplitz_piece(int c, const int b) { return (c ^ (c >> 3 & (b / 8 - 1))) * 16; }

/* Epilogue of a lane's sums: windows g and g + 8, pairs of neighbouring outputs. q: of the warp's first output. */
HK_DEV void toeplitz_finish(const hk_cu_dw *P, dw_line l, int q, const int b, float (*acc)[4]) {
  const hk_cu_geom *g = &P->g;
  const int lane = threadIdx.x % 32;
  const hk_cu_i64 co = P->e.residual ? pixel_offset(&g->c, l.n, l.p) + dw_channel(g, &g->c, l.k) : 0;
#pragma unroll
  for (int v = 0; v < b / 8; ++v) {
    float cv[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (P->e.residual) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = q + (lane / 4 + i / 2 * 8) * b + v * 8 + lane % 4 * 2 + i % 2;
        if ((unsigned)at < (unsigned)g->out[2]) cv[i] = load_f32(P->e.c, co + at * g->c.at[2], g->y_type);
      }
    }
    dw_finish(&P->e, 4, 4, l.k, 0, cv, acc[v]);
  }
}

/* One output from its sum's bits or, where that is NaN, anew. */
static __device__ __noinline__ void toeplitz_single(const hk_cu_dw *P, const dw_line *l, int q, hk_cu_u16 bits) {
  const hk_cu_geom *g = &P->g;
  const float v = dw_half(TYPE, bits);
  const hk_cu_i64 yo = pixel_offset(&g->y, l->n, l->p) + dw_channel(g, &g->y, l->k) + q;
  if (v == v) {
    ((hk_cu_u16 *)P->e.y)[yo] = bits;
    return;
  }
  const hk_cu_i64 co = P->e.residual ? pixel_offset(&g->c, l->n, l->p) + dw_channel(g, &g->c, l->k) : 0;
  dw_line_single(P, *l, yo - q, co, q, dw_plain(P, TYPE, l->n, l->p[0], l->p[1], q, l->k));
}

/* Results of a warp to y, contiguous and of the type of x. stage: 32*B bytes of shared memory of this warp's own. */
HK_DEV void toeplitz_store(const hk_cu_dw *P, dw_line l, int q, char *stage, const int b, const int plain,
                           float (*acc)[4]) {
  const hk_cu_geom *g = &P->g;
  const int lane = threadIdx.x % 32, blocks = b / 8;
  const hk_cu_u32 at = dw_shared(stage);
  if (!plain) toeplitz_finish(P, l, q, b, acc);
#pragma unroll
  for (int v = 0; v < blocks; v += 2) {
    /* matrices: windows 0..7 and 8..15 of block v, then of block v + 1 */
    const hk_cu_u32 r0 = dw_pack_pair(TYPE, acc[v][0], acc[v][1]), r1 = dw_pack_pair(TYPE, acc[v][2], acc[v][3]);
    if (v + 1 < blocks) {
      const hk_cu_u32 r2 = dw_pack_pair(TYPE, acc[v + 1][0], acc[v + 1][1]), r3 = dw_pack_pair(TYPE, acc[v + 1][2], acc[v + 1][3]);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at + toeplitz_piece(lane % 16 * blocks + v + lane / 16, b)),
                   "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
    } else {
      asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(at + toeplitz_piece(lane % 16 * blocks + v, b)), "r"(r0), "r"(r1)
                   : "memory");
    }
  }
  __syncwarp();
  hk_cu_u16 *y = (hk_cu_u16 *)P->e.y + pixel_offset(&g->y, l.n, l.p) + dw_channel(g, &g->y, l.k) + q;
  const int length = (int)g->out[2];
#pragma unroll
  for (int r = 0; r < (2 * b + 31) / 32; ++r) {
    const int c = lane + 32 * r, o = c * 8;
    if (c < 2 * b && q + o > -8 && q + o < length) {
      const char *from = stage + toeplitz_piece(c, b);
      const uint4 u = *(const uint4 *)from;
      float all[8];
      dw_unpack(TYPE, u, all);
      const float sum = ((all[0] + all[1]) + (all[2] + all[3])) + ((all[4] + all[5]) + (all[6] + all[7]));
      if (q + o >= 0 && q + o + 8 <= length && sum == sum) {
        *(uint4 *)(y + o) = u;
      } else {
#pragma unroll 1
        for (int i = 0; i < 8; ++i)
          if ((unsigned)(q + o + i) < (unsigned)length) toeplitz_single(P, &l, q + o + i, ((const hk_cu_u16 *)from)[i]);
      }
    }
  }
}

/* Any other y, one element at a time. stage: 64*B bytes. */
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
  const int warp = threadIdx.x / 32, ln = warp / (unsigned)P->lanes, wl = warp - ln * P->lanes;
  const int tile = P->lanes * 16 * b;
  const int line = blockIdx.x / P->lane_blocks * P->planes + ln, live = line < P->plane_count;
  const int ranks = P->lanes * 32, rank = threadIdx.x - ln * ranks;
  char *x = raw + ln * P->line_bytes;
  hk_cu_u32 *taps = (hk_cu_u32 *)(raw + P->taps_at + ln * P->taps_bytes);
  dw_line l;
  l.p[2] = 0;
  toeplitz_line(P, live ? line : 0, &l);
  const int index0 = blockIdx.x % P->lane_blocks * tile - dw_line_skew(P, TYPE, l);
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
  if (!live) return;
  char *stage = raw + P->sums_at + warp * P->sums_pitch;
  if (dw_line_wide(P, TYPE)) toeplitz_store(P, l, index0 + wl * 16 * b, stage, b, plain, acc);
  else toeplitz_store_any(P, l, index0 + wl * 16 * b, (float *)stage, b, acc);
}

#define KERNEL(name, b, plain, blocks)                                                                 \
  extern "C" __global__ void __launch_bounds__(256, blocks) name(const __grid_constant__ hk_cu_dw P) { \
    extern __shared__ uint4 raw[];                                                                     \
    toeplitz_body(&P, (char *)raw, b, plain);                                                          \
  }
/* hk_dw_toeplitz_<type>_<B>, and the same with an epilogue: .._epi. */
#define PAIR(name, b, blocks) \
  KERNEL(name, b, 1, blocks)  \
  KERNEL(name##_epi, b, 0, 2)
