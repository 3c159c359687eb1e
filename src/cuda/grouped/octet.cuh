/* Grouped 3x3 convolution of 16-bit images, channels-last, stride 1 or 2, groups of 8, 4, 2 or 1 channels, on the
 * tensor cores.
 *
 * A block walks down a strip of the image: `slabs` runs of 8 channels by tile_length columns. TMA loads its input
 * rows into a ring in shared memory, with zeros outside x, and stores the results, two rows at a time. A warp keeps
 * the weights of its 8 channels in registers and multiplies two rows of 8 outputs at a time: D[2 x 8 pixels][8 k] +=
 * A[2 x 8 pixels][8 c of a tap, 8 c of the next tap] * B, where the 8x8 block of a tap is dense for groups of 8,
 * block-diagonal or diagonal for smaller ones. An 8x8 matrix of A is 8 pixels of one row in the ring, so each serves
 * all taps of both rows that use it.
 *
 * Bank conflicts: an odd number of slabs makes all pixels of a matrix hit different banks; an even one (2, 4, 8)
 * uses TMA's swizzle. Rows of the ring are refilled one step after their last use; all warps of a block synchronise
 * once per step. The zeros of B turn an Inf of another group into NaN: steps with NaN sums are recomputed at the end
 * (leaks). The host refuses dilation, other windows and unaligned tensors. */
#include "cuda/depthwise/matrix.cuh"

typedef struct octet_tile { int stride, plain; } octet_tile;
typedef struct octet_place {
  int n, p0, q0, c0;                 /* image, first output row and column, first channel */
  int steps;                         /* two output rows each */
  int k;                             /* first of the warp's 8 channels */
} octet_place;

HK_DEV constexpr int octet_rows(octet_tile t) { return t.stride + 3; }            /* input rows per step */
HK_DEV constexpr int octet_loads(octet_tile t) { return (3 * octet_rows(t) + 3) / 4; } /* of four matrices each */

HK_DEV void mma_k8(float *d, hk_cu_u32 a0, hk_cu_u32 a1, hk_cu_u32 b0) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b0));
}

/* Loads input row i of the strip into its slot. */
HK_DEV void octet_load(const hk_cu_dw *P, octet_tile t, octet_place at, hk_cu_u32 ring, int i) {
  const int slot = i % (unsigned)P->octet.slots;
  const hk_cu_u32 bar = ring + P->octet.table_at + slot * 8;
  const int column = at.q0 * t.stride - (int)P->g.lo[2], row = at.p0 * t.stride - (int)P->g.lo[1] + i;
  bar_expect(bar, P->octet.patch_length * P->octet.slabs * 16);
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
               "%6}], [%2];" ::"r"(ring + slot * P->octet.plane_bytes),
               "l"(&P->octet.xmap), "r"(bar), "r"(at.c0), "r"(column), "r"(row), "r"(at.n)
               : "memory");
}

/* Stores two rows of results from a buffer; TMA clips what is outside y. */
HK_DEV void octet_store(const hk_cu_dw *P, octet_place at, hk_cu_u32 from, int row) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&P->octet.ymap),
      "r"(from), "r"(at.c0), "r"(at.q0), "r"(row), "r"(at.n)
      : "memory");
  copy_out_commit();
}

/* Byte offset in its row of the ring of a lane's row of matrix i = 3*row + shift, for the first 8 columns. */
HK_DEV int octet_offset(const hk_cu_dw *P, octet_tile t, int slab, int shift) {
  const int pixel = shift + threadIdx.x % 8 * t.stride;
  return (pixel * P->octet.slabs + (slab ^ (pixel >> P->octet.swizzle_shift & P->octet.swizzle_mask))) * 16;
}

/* a: matrices [row][shift] of 8 columns; w: one word per tap. */
HK_DEV void octet_multiply(octet_tile t, const hk_cu_u32 *a, const hk_cu_u32 *w, float *acc) {
  acc[0] = acc[1] = acc[2] = acc[3] = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const hk_cu_u32 four[4] = {a[i], a[i + 3 * t.stride], a[i + 1], a[i + 1 + 3 * t.stride]};
    mma_k16(acc, four, w[i], w[i + 1]);
  }
  mma_k8(acc, a[8], a[8 + 3 * t.stride], w[8]);
}

/* Applies everything but the conversion; v: channels k, k+1 of column q of rows p1 and p1 + 1. */
HK_DEV void octet_finish(const hk_cu_dw *P, int n, int p1, int q, int k, float *v) {
  const hk_cu_epi *e = &P->e;
  float cv[4] = {0.0f, 0.0f, 0.0f, 0.0f}, slope[4];
  if (e->residual && q < (int)P->g.out[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int p[3] = {0, p1 + i, q};
      if (p[1] < (int)P->g.out[1])
        dw_unpack_pair(TYPE, *(const hk_cu_u32 *)((const hk_cu_u16 *)e->c + pixel_offset(&P->g.c, n, p) + k),
                       cv + 2 * i);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (e->scale) v[i] *= ((const float *)e->scale)[e->scale_one ? 0 : k + i % 2];
    if (e->bias) v[i] += ((const float *)e->bias)[k + i % 2];
    if (e->residual == 2) v[i] += e->beta * cv[i];
    slope[i] = e->act == HK_CU_PRELU ? ((const float *)e->slopes)[k + i % 2] : 0.0f;
  }
  if (e->act) act_run(4, e->act, e->a, e->b, slope, v);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (e->residual == 1) v[i] += e->beta * cv[i];
}

/* Computes two rows, 16 columns at a time. x: the lane's rows of its matrices in the ring; to: its row in the result
 * buffer. Returns whether a sum is NaN. */
HK_DEV int octet_step(const hk_cu_dw *P, octet_tile t, octet_place at, int team, int p1, const hk_cu_u32 *x,
                      hk_cu_u32 to, const hk_cu_u32 *w) {
  const int lane = threadIdx.x % 32, eights = P->octet.tile_length / 8, right = 128 * P->octet.slabs;
  int nan = 0;
#pragma unroll 1
  for (int j = 2 * team; j < eights; j += 2 * P->octet.teams) {
    const int two = j + 1 < eights; /* otherwise the same columns twice */
    hk_cu_u32 a[2][16], out[4];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int l = 0; l < octet_loads(t); ++l) load_x4(x[l] + (j + (h & two)) * right * t.stride, a[h] + 4 * l);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float v[4];
      octet_multiply(t, a[h], w, v);
      const float sum = v[0] + v[1] + v[2] + v[3];
      nan |= sum != sum;
      if (!t.plain) octet_finish(P, at.n, p1, at.q0 + (j + (h & two)) * 8 + lane / 4, at.k + lane % 4 * 2, v);
      out[2 * h] = dw_pack_pair(TYPE, v[0], v[1]);
      out[2 * h + 1] = dw_pack_pair(TYPE, v[2], v[3]);
    }
    matrix_put(two ? 4 : 2, to + j * right, out);
  }
  return nan;
}

/* Recomputes one output whose sum is NaN. */
static __device__ __noinline__ void octet_recompute(const hk_cu_dw *P, int n, int row, int column, int k) {
  const hk_cu_geom *g = &P->g;
  const int p[3] = {0, row, column};
  float v = dw_plain(P, TYPE, n, 0, row, column, k);
  dw_finish(&P->e, 1, 1, k, 0, &v, &v);
  store_f32(P->e.y, pixel_offset(&g->y, n, p) + dw_channel(g, &g->y, k), g->y_type, v);
}

/* Recomputes the NaN results of the warp's 8 channels in steps whose bit (modulo 32) is set. */
static __device__ __noinline__ void octet_recompute_nan(const hk_cu_dw *P, octet_place at, unsigned steps) {
  const hk_cu_geom *g = &P->g;
  const int count = 2 * P->octet.tile_length * 8;
#pragma unroll 1
  for (int s = 0; s < at.steps; ++s)
#pragma unroll 1
    for (int i = threadIdx.x % 32; (steps >> (s & 31) & 1) && i < count; i += 32) {
      const int k = at.k + i % 8, down = i / 8 / P->octet.tile_length,
                p[3] = {0, at.p0 + 2 * s + down, at.q0 + i / 8 - down * P->octet.tile_length};
      if (p[1] >= (int)g->out[1] || p[2] >= (int)g->out[2] || k >= P->channels) continue;
      const float v = dw_half(TYPE, ((const volatile hk_cu_u16 *)P->e.y)[pixel_offset(&g->y, at.n, p) + k]);
      if (v != v) octet_recompute(P, at.n, p[1], p[2], k);
    }
}

HK_DEV octet_place octet_find(const hk_cu_dw *P, int slab) {
  octet_place at;
  unsigned rest = blockIdx.x;
  const unsigned a = rest / (unsigned)P->octet.slab_blocks, b = a / (unsigned)P->octet.tiles,
                 c = b / (unsigned)P->octet.row_tiles;
  at.n = (int)c, at.p0 = (int)(b - c * P->octet.row_tiles) * P->octet.tile_rows,
  at.q0 = (int)(a - b * P->octet.tiles) * P->octet.tile_length;
  at.c0 = (int)(rest - a * P->octet.slab_blocks) * P->octet.slabs * 8;
  at.k = at.c0 + slab * 8;
  const int rows = (int)P->g.out[1] - at.p0 < P->octet.tile_rows ? (int)P->g.out[1] - at.p0 : P->octet.tile_rows;
  at.steps = (rows + 1) / 2;
  return at;
}

HK_DEV void octet_body(const hk_cu_dw *P, octet_tile t, char *raw) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, team = warp / (unsigned)P->octet.slabs,
            slab = warp - team * P->octet.slabs;
  const octet_place at = octet_find(P, slab);
  const hk_cu_u32 ring = dw_shared(raw), bars = ring + P->octet.table_at;
  const int rows = (2 * at.steps - 1) * t.stride + 3, live = at.k < P->channels;
  int sent = P->octet.slots < rows ? P->octet.slots : rows;
  if (threadIdx.x == 0) {
    for (int i = 0; i < P->octet.slots; ++i) bar_init(bars + i * 8, 1);
    bar_init_fence();
    fence_async();
    for (int i = 0; i < sent; ++i) octet_load(P, t, at, ring, i);
  }
  hk_cu_u32 w[9];
#pragma unroll
  for (int i = 0; i < 9; ++i)
    w[i] = live ? ((const hk_cu_u32 *)P->packed)[((hk_cu_i64)(at.k / 8) * 9 + i) * 32 + lane] : 0;
  int row[4], offset[4];
#pragma unroll
  for (int l = 0; l < octet_loads(t); ++l) {
    const int m = 4 * l + lane / 8 < 3 * octet_rows(t) ? 4 * l + lane / 8 : 0;
    row[l] = m / 3, offset[l] = octet_offset(P, t, slab, m % 3);
  }
  const int pixel = lane / 8 % 2 * P->octet.tile_length + lane / 16 * 8 + lane % 8;
  const hk_cu_u32 to =
      ring + P->octet.stage_at +
      (pixel * P->octet.slabs + (slab ^ (pixel >> P->octet.swizzle_shift & P->octet.swizzle_mask))) * 16;
  __syncthreads();
  int first = 0, next = 0, parity = 0, seen = 0; /* slot of the step's first row; of the next row to wait for */
  unsigned bad = 0;
#pragma unroll 1
  for (int s = 0; s < at.steps; ++s) {
    for (; seen < (2 * s) * t.stride + octet_rows(t); ++seen) {
      bar_wait(bars + next * 8, parity);
      if (++next == P->octet.slots) next = 0, parity ^= 1;
    }
    hk_cu_u32 x[4];
#pragma unroll
    for (int l = 0; l < octet_loads(t); ++l) {
      const int slot = first + row[l];
      x[l] = ring + (slot < P->octet.slots ? slot : slot - P->octet.slots) * P->octet.plane_bytes + offset[l];
    }
    const int side = s % 2 * P->octet.stage_bytes;
    if (live && octet_step(P, t, at, team, at.p0 + 2 * s, x, to + side, w)) bad |= 1u << (s & 31);
    first += 2 * t.stride;
    if (first >= P->octet.slots) first -= P->octet.slots;
    fence_async();
    if (threadIdx.x == 0) copy_out_wait(0); /* frees the other buffer for the next step */
    __syncthreads();
    if (threadIdx.x == 0) {
      octet_store(P, at, ring + P->octet.stage_at + side, at.p0 + 2 * s);
      for (int i = 0; i < 2 * t.stride && sent < rows; ++i, ++sent) octet_load(P, t, at, ring, sent);
    }
  }
  if (threadIdx.x == 0) copy_out_wait(0);
  if (!P->octet.leaks || !__syncthreads_or(bad)) return;
  if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  __syncthreads();
  bad = __reduce_or_sync(0xffffffffu, bad);
  if (bad) octet_recompute_nan(P, at, bad);
}

#define KERNEL(name, stride, plain)                                                                             \
  extern "C" __global__ void __launch_bounds__(HK_OCTET_THREADS, 3) name(const __grid_constant__ hk_cu_dw P) {  \
    extern __shared__ __align__(1024) char raw[];                                                               \
    dw_begin();                                                                                                 \
    octet_body(&P, {stride, plain}, raw);                                                                       \
  }
/* hk_octet_<type>_s<stride>, and the same with an epilogue: .._epi. */
#define KERNELS(name, stride)     \
  KERNEL(name, stride, 1)         \
  KERNEL(name##_epi, stride, 0)
