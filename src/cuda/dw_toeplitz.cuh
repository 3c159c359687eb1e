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

#define FRONT HK_TOEPLITZ_FRONT /* zeros before the weights: a block may reach 7 + 7 + 8 elements back */

HK_DEV void load_x4(hk_cu_u32 at, hk_cu_u32 *r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
HK_DEV void mma_k16(float *d, const hk_cu_u32 *a, hk_cu_u32 b0, hk_cu_u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* What a block knows of one of its output rows; one thread finds it out for all. */
typedef struct toeplitz_row {
  hk_cu_i64 image, filter, y;        /* elements: the channel's in x and in f; the row's first output */
  int n, k, p0, p1;
  int skew;                          /* outputs that the tiles begin before the row */
  int live, index0, x_skew;          /* toeplitz_steady: is there a row; the tile's first output; the staged x's skew, -1 without one */
} toeplitz_row;

HK_DEV dw_line toeplitz_line(const toeplitz_row *row) {
  dw_line l = {row->n, row->k, {row->p0, row->p1, 0}, 0};
  return l;
}

/* Output row `line` of all (n, channel, depth, row). */
HK_DEV void toeplitz_find(const hk_cu_dw *P, int line, toeplitz_row *to) {
  const hk_cu_geom *g = &P->g;
  const int a = dw_div(P->div_out1, line), b = dw_div(P->div_out0, a);
  to->p1 = line - a * (int)g->out[1];
  to->p0 = a - b * (int)g->out[0];
  to->n = dw_div(P->div_channels, b);
  to->k = b - to->n * P->channels;
  const int group = g->kg == 1 ? to->k : to->k / (int)g->kg;
  const dw_line l = toeplitz_line(to);
  to->image = to->n * g->x.outer + group * g->x.group;
  to->filter = dw_filter(g, to->k);
  to->y = pixel_offset(&g->y, l.n, l.p) + dw_channel(g, &g->y, l.k);
  to->skew = dw_line_skew(P, TYPE, l);
}

/* Elements that the aligned addresses of x begin before window index `first`. */
HK_DEV int toeplitz_skew(const hk_cu_dw *P, const hk_cu_u16 *row, int first, int f) {
  const hk_cu_geom *g = &P->g;
  const int col0 = (int)g->stride[2] * first + f * (int)g->dil[2] - (int)g->lo[2];
  return row && g->stride[2] == 1 && g->x.at[2] == 1 ? (int)((hk_cu_u64)(row + col0) & 15) / 2 : 0;
}

/* Window indices first.. of one phase of one input row. Returns the skew; `row` NULL: all zeros. */
HK_DEV int toeplitz_stage(const hk_cu_dw *P, const hk_cu_u16 *row, int first, int f, int length, int rank, int ranks, const int b,
                          char *to) {
  const hk_cu_geom *g = &P->g;
  const int planes = b / 8, width = (int)g->in[2];
  const int col0 = (int)g->stride[2] * first + f * (int)g->dil[2] - (int)g->lo[2];
  const int plain = g->stride[2] == 1 && g->x.at[2] == 1;
  const hk_cu_u16 *start = row + col0;
  const int skew = toeplitz_skew(P, row, first, f);
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

/* The same where they were packed at creation. */
HK_DEV void toeplitz_packed(const hk_cu_dw *P, int k, int row, int rank, int ranks, hk_cu_u32 *to) {
  const int rows = P->taps / P->taps_u;
  const char *from = (const char *)P->packed + ((hk_cu_i64)k * rows + row) * P->taps_bytes;
  for (int i = rank; i < P->taps_bytes / 16; i += ranks) dw_copy16(dw_shared(to + i * 4), from + i * 16, 16);
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

/* One output whose sum is NaN, anew. */
static __device__ __noinline__ void toeplitz_again(const hk_cu_dw *P, const toeplitz_row *row, int q) {
  const hk_cu_geom *g = &P->g;
  const dw_line l = toeplitz_line(row);
  const hk_cu_i64 co = P->e.residual ? pixel_offset(&g->c, l.n, l.p) + dw_channel(g, &g->c, l.k) : 0;
  dw_line_single(P, l, row->y, co, q, dw_plain(P, TYPE, l.n, l.p[0], l.p[1], q, l.k));
}

/* Whether one of 8 values is NaN; sums of infinities may say so too. */
HK_DEV int toeplitz_nan(uint4 u) {
  hk_cu_u32 a, b;
  asm("add.rn." MMA_TYPE "x2 %0, %1, %2;" : "=r"(a) : "r"(u.x), "r"(u.y));
  asm("add.rn." MMA_TYPE "x2 %0, %1, %2;" : "=r"(b) : "r"(u.z), "r"(u.w));
  asm("add.rn." MMA_TYPE "x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
  float v[2];
  dw_unpack_pair(TYPE, a, v);
  v[0] += v[1];
  return v[0] != v[0];
}

/* Results of a warp to y, contiguous and of the type of x. stage: 32*B bytes of shared memory of this warp's own. */
HK_DEV void toeplitz_store(const hk_cu_dw *P, const toeplitz_row *row, int q, char *stage, const int b, const int plain,
                           float (*acc)[4]) {
  const hk_cu_geom *g = &P->g;
  const int lane = threadIdx.x % 32, blocks = b / 8;
  const hk_cu_u32 at = dw_shared(stage);
  if (!plain) toeplitz_finish(P, toeplitz_line(row), q, b, acc);
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
  hk_cu_u16 *y = (hk_cu_u16 *)P->e.y + row->y + q;
  const int length = (int)g->out[2];
#pragma unroll
  for (int r = 0; r < (2 * b + 31) / 32; ++r) {
    const int c = lane + 32 * r, o = c * 8;
    if (c < 2 * b && q + o > -8 && q + o < length) {
      const char *from = stage + toeplitz_piece(c, b);
      const uint4 u = *(const uint4 *)from;
      if (q + o >= 0 && q + o + 8 <= length && !toeplitz_nan(u)) {
        *(uint4 *)(y + o) = u;
      } else {
#pragma unroll 1
        for (int i = 0; i < 8; ++i)
          if ((unsigned)(q + o + i) < (unsigned)length) {
            const hk_cu_u16 bits = ((const hk_cu_u16 *)from)[i];
            const float v = dw_half(TYPE, bits);
            if (v == v) y[o + i] = bits;
            else toeplitz_again(P, row, q + o + i);
          }
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
  const int tile = P->lanes * 16 * b, place = blockIdx.x / (unsigned)P->lane_blocks;
  const int line = place * P->planes + ln, live = line < P->plane_count;
  const int ranks = P->lanes * 32, rank = threadIdx.x - ln * ranks;
  char *x = raw + ln * P->line_bytes;
  hk_cu_u32 *taps = (hk_cu_u32 *)(raw + P->taps_at + ln * P->taps_bytes);
  toeplitz_row *own = (toeplitz_row *)(raw + P->rows_at) + ln;
  if (rank == 0) toeplitz_find(P, live ? line : 0, own);
  __syncthreads();
  const toeplitz_row here = *own;
  const int index0 = (blockIdx.x - place * P->lane_blocks) * tile - here.skew;
  float acc[8][4];
#pragma unroll
  for (int i = 0; i < b / 8; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) acc[i][j] = 0.0f;
  const int rows = (int)(g->win[0] * g->win[1]) * P->phases;
  int d = 0, r = 0, f = 0;
  for (int row = 0; row < rows; ++row) {
    const int i0 = here.p0 * (int)g->stride[0] + d * (int)g->dil[0] - (int)g->lo[0];
    const int i1 = here.p1 * (int)g->stride[1] + r * (int)g->dil[1] - (int)g->lo[1];
    const int in = live && (unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)g->in[1];
    const hk_cu_u16 *from = in ? (const hk_cu_u16 *)P->x + here.image + i0 * g->x.at[0] + i1 * g->x.at[1] : 0;
    const int us = P->phases == 1 ? P->taps_u : ((int)g->win[2] - f + P->phases - 1) / P->phases;
    for (int u0 = 0; u0 < us; u0 += P->chunk_u) {
      const int count = us - u0 < P->chunk_u ? us - u0 : P->chunk_u;
      if (row + u0) __syncthreads();
      /* Pieces past the last window are read by multiplications that other windows need: they must hold numbers. */
      const int skew = toeplitz_stage(P, from, index0 + u0, f, tile + count - 1 + 16, rank, ranks, b, x);
      if (P->pack) toeplitz_packed(P, here.k, row, rank, ranks, taps);
      else toeplitz_weights(P, (const hk_cu_u16 *)P->f + here.filter + d * g->f.at[0] + r * g->f.at[1], f + P->phases * u0, count, rank, ranks, taps);
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
  char *stage = raw + P->sums_at + warp * P->sums_pitch;
  if (P->wide) toeplitz_store(P, own, index0 + wl * 16 * b, stage, b, plain, acc);
  else toeplitz_store_any(P, toeplitz_line(own), index0 + wl * 16 * b, (float *)stage, b, acc);
}

/* One row of taps, packed, no epilogue: a block takes tiles in turn, and while it works at one the next is on its way. What is known of a
 * tile's rows is kept for three tiles: slower warps may still read the last one's while the next one's is written. */
HK_DEV void toeplitz_bring(const hk_cu_dw *P, toeplitz_row *row, int place, char *x, hk_cu_u32 *taps, int rank, int ranks, const int b) {
  const hk_cu_geom *g = &P->g;
  const int tile = P->lanes * 16 * b;
  const int i0 = row->p0 * (int)g->stride[0] - (int)g->lo[0], i1 = row->p1 * (int)g->stride[1] - (int)g->lo[1];
  const int in = (unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)g->in[1];
  const hk_cu_u16 *from = in ? (const hk_cu_u16 *)P->x + row->image + i0 * g->x.at[0] + i1 * g->x.at[1] : 0;
  const int index0 = place % (unsigned)P->lane_blocks * tile - row->skew;
  toeplitz_packed(P, row->k, 0, rank, ranks, taps);
  const int skew = toeplitz_stage(P, from, index0, 0, tile + P->taps_u - 1 + 16, rank, ranks, b, x);
  if (rank == 0) row->index0 = index0, row->x_skew = in ? skew : -1;
}

HK_DEV void toeplitz_steady(const hk_cu_dw *P, char *raw, const int b) {
  const int warp = threadIdx.x / 32, ln = warp / (unsigned)P->lanes, wl = warp - ln * P->lanes;
  const int ranks = P->lanes * 32, rank = threadIdx.x - ln * ranks;
  toeplitz_row *rows = (toeplitz_row *)(raw + P->rows_at) + ln * 3;
  char *const buffers = raw + ln * P->line_bytes, *const taps = raw + P->taps_at + ln * P->taps_bytes;
  int next = 0, side = 0; /* of rows; of the buffers */
  /* the first time round there is nothing to multiply yet */
  for (int ahead = blockIdx.x, now = ahead - gridDim.x; now < P->places; now = ahead, ahead += gridDim.x) {
    const int line = ahead / (unsigned)P->lane_blocks * P->planes + ln, live = ahead < P->places && line < P->plane_count;
    if (rank == 0) {
      if (live) toeplitz_find(P, line, rows + next);
      rows[next].live = live;
    }
    __syncthreads();
    if (live)
      toeplitz_bring(P, rows + next, ahead, buffers + side * P->buffer_bytes, (hk_cu_u32 *)(taps + side * P->buffer_bytes), rank, ranks, b);
    asm volatile("cp.async.commit_group;" ::: "memory");
    const toeplitz_row *row = rows + (next ? next - 1 : 2);
    next = next == 2 ? 0 : next + 1;
    side ^= 1;
    if (now < 0) continue;
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    if (!row->live) continue;
    float acc[8][4];
#pragma unroll
    for (int i = 0; i < b / 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[i][j] = 0.0f;
    if (row->x_skew >= 0)
      toeplitz_multiply(P, dw_shared(buffers + side * P->buffer_bytes), wl * 16, (const hk_cu_u32 *)(taps + side * P->buffer_bytes), P->taps_u,
                        row->x_skew, b, acc);
    toeplitz_store(P, row, row->index0 + wl * 16 * b, raw + P->sums_at + warp * P->sums_pitch, b, 1, acc);
  }
}

#define KERNEL(name, b, blocks, body)                                                                  \
  extern "C" __global__ void __launch_bounds__(256, blocks) name(const __grid_constant__ hk_cu_dw P) { \
    extern __shared__ uint4 raw[];                                                                     \
    body;                                                                                              \
  }
/* hk_dw_toeplitz_<type>_<B>; with an epilogue: .._epi; tiles in turn: .._steady. */
#define KERNELS(name, b, blocks)                                          \
  KERNEL(name, b, blocks, toeplitz_body(&P, (char *)raw, b, 1))           \
  KERNEL(name##_epi, b, 2, toeplitz_body(&P, (char *)raw, b, 0))          \
  KERNEL(name##_steady, b, blocks, toeplitz_steady(&P, (char *)raw, b))
