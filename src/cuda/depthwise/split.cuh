/* Depthwise convolution of channels-first f32 rows with long filters, on the tensor cores: the product of
 * toeplitz.cuh with each f32 as the sum of two tf32 parts, three products of the four (low by high, high by low,
 * high by high). x is split in registers, the weights at packing. y[i*32 + j] = sum over m of x[i*32 + m] * T[m, j],
 * T[m, j] = w[m - j - skew]; a warp accumulates 16 windows of 32 outputs.
 *
 * The 8x8 blocks of T depend on (m - j)/8 alone: four of them, in two parts, stay in registers, and a step of 8 taps
 * loads one new one. Staged x: 16-byte piece c is in plane c % 8 at index c / 8, free of bank conflicts for
 * ldmatrix, which moves f32 as pairs of halves. The tensor cores truncate when they add, so sums are moved to f32
 * registers every HK_SPLIT_STEPS steps. Packed weights (HK_DW_PACK_SPLIT): [channel][tap row][high, low]
 * HK_TOEPLITZ_FRONT zeros, taps_u weights, zeros. Tiles start at 16-byte addresses of y, up to 3 outputs before the
 * row's first. Stride and dilation along rows are 1, x and y contiguous: the host refuses others. NaN results are
 * recomputed: the zeros of T would turn an Inf of another window into NaN, and an Inf splits into NaN. */
#define TYPE HK_CU_F32
#include "cuda/depthwise/rows.cuh"

#define B 32
#define BLOCKS (B / 8)
#define PLANES (B / 4)

HK_DEV void load_x4(hk_cu_u32 at, hk_cu_u32 *r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
HK_DEV void mma_k8(float *d, const hk_cu_u32 *a, hk_cu_u32 b0, hk_cu_u32 b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Stages columns first.. of one input row. Returns how many elements before them the aligned address of x is; `row`
 * NULL: all zeros. */
HK_DEV int split_stage(const hk_cu_dw *P, const float *row, int first, int length, int rank, int ranks, char *to) {
  const int width = (int)P->g.in[2], col0 = first - (int)P->g.lo[2];
  const float *start = row + col0;
  const int skew = row ? (int)((hk_cu_u64)start & 15) / 4 : 0, pieces = (length + skew + 3) / 4;
  const int low = skew > col0 ? (skew - col0 + 3) / 4 : 0, high = row ? (width + skew - col0) >> 2 : 0;
  char *at = to + rank % PLANES * P->toeplitz.plane_pitch + rank / PLANES * 16;
  for (int c = rank; c < pieces; c += ranks, at += ranks / PLANES * 16) {
    const int o = c * 4 - skew;
    if (c >= low && c < high) {
      dw_copy16(dw_shared(at), start + o, 16);
      continue;
    }
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v[i] = row && (unsigned)(col0 + o + i) < (unsigned)width && (unsigned)(o + i) < (unsigned)length ? start[o + i]
                                                                                                       : 0.0f;
    *(float4 *)at = make_float4(v[0], v[1], v[2], v[3]);
  }
  return skew;
}

/* Splits v into two: the high part is v rounded to tf32; the remainder keeps its first 11 bits in the product. */
HK_DEV void split_parts(const hk_cu_u32 *v, hk_cu_u32 *high, hk_cu_u32 *low) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    high[i] = (v[i] + 0x1000u) & 0xffffe000u;
    low[i] = __float_as_uint(__uint_as_float(v[i]) - __uint_as_float(high[i]));
  }
}

/* Multiplies 16 windows of B outputs of one warp; x: shared address of the row's planes, window0: the warp's first
 * window. */
HK_DEV void split_multiply(const hk_cu_dw *P, hk_cu_u32 x, int window0, const float *taps, int us, int skew,
                           float (*sum)[4]) {
  const int lane = threadIdx.x % 32, steps = (B + us - 1 + skew + 7) / 8, low_at = P->taps_bytes / 8;
  const hk_cu_u32 *mine = (const hk_cu_u32 *)taps + HK_TOEPLITZ_FRONT + lane % 4 - lane / 4 - skew;
  const hk_cu_u32 from = x + (window0 + lane % 16) * 16 + lane / 16 * P->toeplitz.plane_pitch;
  hk_cu_u32 t[BLOCKS][4];
#pragma unroll
  for (int i = 0; i < BLOCKS; ++i) t[i][0] = t[i][1] = t[i][2] = t[i][3] = 0;
#pragma unroll 1
  for (int m0 = 0; m0 < steps; m0 += HK_SPLIT_STEPS) {
    float acc[BLOCKS][4];
#pragma unroll
    for (int v = 0; v < BLOCKS; ++v) acc[v][0] = acc[v][1] = acc[v][2] = acc[v][3] = 0.0f;
#pragma unroll 1
    for (int m1 = m0; m1 < m0 + HK_SPLIT_STEPS && m1 < steps; m1 += BLOCKS) {
#pragma unroll
      for (int s = 0; s < BLOCKS; ++s) {
        const int m = m1 + s;
        if (m < steps) {
          hk_cu_u32 a[4], high[4], low[4];
          load_x4(from + 2 * s * P->toeplitz.plane_pitch + m1 / BLOCKS * 16, a); /* pieces 2m and 2m + 1 */
          t[s][0] = mine[8 * m], t[s][1] = mine[8 * m + 4], t[s][2] = mine[low_at + 8 * m],
          t[s][3] = mine[low_at + 8 * m + 4];
          split_parts(a, high, low);
#pragma unroll
          for (int v = 0; v < BLOCKS; ++v)
            mma_k8(acc[v], low, t[(s - v + BLOCKS) % BLOCKS][0], t[(s - v + BLOCKS) % BLOCKS][1]);
#pragma unroll
          for (int v = 0; v < BLOCKS; ++v)
            mma_k8(acc[v], high, t[(s - v + BLOCKS) % BLOCKS][2], t[(s - v + BLOCKS) % BLOCKS][3]);
#pragma unroll
          for (int v = 0; v < BLOCKS; ++v)
            mma_k8(acc[v], high, t[(s - v + BLOCKS) % BLOCKS][0], t[(s - v + BLOCKS) % BLOCKS][1]);
        }
      }
    }
#pragma unroll
    for (int v = 0; v < BLOCKS; ++v)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[v][i] += acc[v][i];
  }
}

/* Byte offset of 16-byte piece c of a warp's results: windows are 8 pieces, and pairs of pieces are swizzled from
 * window to window. */
HK_DEV int split_piece(int c) { return (c ^ (c / PLANES % 4 * 2)) * 16; }

/* Stores the results of a warp to row `line`, whose first output is y[to]. stage: 64*B bytes of shared memory of
 * this warp. */
HK_DEV void split_store(const hk_cu_dw *P, hk_cu_i64 to, int line, int q, char *stage, float (*acc)[4]) {
  const int lane = threadIdx.x % 32, length = (int)P->g.out[2];
#pragma unroll
  for (int v = 0; v < BLOCKS; ++v)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int c = (lane / 4 + 8 * h) * PLANES + 2 * v + lane % 4 / 2;
      *(float2 *)(stage + split_piece(c) + lane % 2 * 8) = make_float2(acc[v][2 * h], acc[v][2 * h + 1]);
    }
  __syncwarp();
  float *y = (float *)P->e.y + to + q;
#pragma unroll
  for (int r = 0; r < 16 * PLANES / 32; ++r) {
    const int c = lane + 32 * r, o = c * 4;
    if (q + o <= -4 || q + o >= length) continue;
    const float4 v = *(const float4 *)(stage + split_piece(c));
    const float all = v.x + v.y + v.z + v.w;
    if (q + o >= 0 && q + o + 4 <= length && all == all) {
      *(float4 *)(y + o) = v;
    } else {
#pragma unroll 1
      for (int i = 0; i < 4; ++i)
        if ((unsigned)(q + o + i) < (unsigned)length) {
          const float one = ((const float *)(stage + split_piece(c)))[i];
          if (one == one) y[o + i] = one;
          else toeplitz_recompute(P, line, q + o + i);
        }
    }
  }
}

HK_DEV void split_body(const hk_cu_dw *P, char *raw, const int plain) {
  const hk_cu_geom *g = &P->g;
  const int warp = threadIdx.x / 32, ln = warp / (unsigned)P->toeplitz.lanes, wl = warp - ln * P->toeplitz.lanes;
  const int tile = P->toeplitz.lanes * 16 * B, place = blockIdx.x / (unsigned)P->toeplitz.lane_blocks;
  const int line = place * P->toeplitz.planes + ln, live = line < P->toeplitz.plane_count;
  const int ranks = P->toeplitz.lanes * 32, rank = threadIdx.x - ln * ranks;
  char *x = raw + ln * P->toeplitz.line_bytes;
  float *taps = (float *)(raw + P->toeplitz.taps_at + ln * P->taps_bytes);
  toeplitz_row *own = (toeplitz_row *)(raw + P->toeplitz.rows_at) + ln;
  if (rank == 0) toeplitz_find(P, live ? line : 0, own);
  __syncthreads();
  const toeplitz_row here = *own;
  const int index0 = (blockIdx.x - place * P->toeplitz.lane_blocks) * tile - here.skew;
  float sum[BLOCKS][4];
#pragma unroll
  for (int v = 0; v < BLOCKS; ++v) sum[v][0] = sum[v][1] = sum[v][2] = sum[v][3] = 0.0f;
  const int rows = P->taps / P->taps_u;
#pragma unroll 1
  for (int row = 0; row < rows; ++row) {
    const int d = row / (int)g->win[1], r = row - d * (int)g->win[1];
    const int i0 = here.p0 * (int)g->stride[0] + d * (int)g->dil[0] - (int)g->lo[0];
    const int i1 = here.p1 * (int)g->stride[1] + r * (int)g->dil[1] - (int)g->lo[1];
    const int in = live && (unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)g->in[1];
    const float *from = in ? (const float *)P->x + here.image + i0 * g->x.at[0] + i1 * g->x.at[1] : 0;
    if (row) __syncthreads();
    /* products that other windows need also read pieces past the last window: they must be numbers */
    const int skew = split_stage(P, from, index0, tile + P->taps_u - 1 + 16, rank, ranks, x);
    toeplitz_packed(P, here.k, row, rank, ranks, (hk_cu_u32 *)taps);
    dw_copy_wait();
    __syncthreads();
    if (in) split_multiply(P, dw_shared(x), wl * 16, taps, P->taps_u, skew, sum);
  }
  if (!live) return;
  const int q = index0 + wl * 16 * B;
  if (!plain) toeplitz_finish(P, toeplitz_line(own), q, B, sum);
  split_store(P, here.y, line, q, raw + P->toeplitz.sums_at + warp * P->toeplitz.sums_pitch, sum);
}

#define KERNEL(name, plain)                                                                       \
  extern "C" __global__ void __launch_bounds__(256, 3) name(const __grid_constant__ hk_cu_dw P) { \
    extern __shared__ uint4 raw[];                                                                \
    dw_begin();                                                                                   \
    split_body(&P, (char *)raw, plain);                                                           \
  }
