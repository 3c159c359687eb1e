/* Grouped 3x3 convolution of 16-bit images, channels-last, stride 1 or 2, groups of a multiple of 16 channels, on
 * the tensor cores.
 *
 * A block copies a patch of pixels of several groups to shared memory like grouped.cuh; a warp computes 16 output
 * channels of 8 rows by 16 columns: D[16 columns][16 k] += A[16 columns][16 c of one tap] * B. The fragments of an
 * input row serve all output rows that use it and both halves of the 16 channels; the weights of 16 input channels
 * stay in registers. Operands contain no zeros of other groups, so no NaN leaks between them. Output channels are
 * ordered so that a lane's four sums of a pixel are adjacent and stored at once. */
#include "cuda/grouped/grouped.cuh"

/* Packed weights: [16 output channels][16 input channels][tap][lane] of four words, see depthwise/pack.cu. */
HK_DEV void bundle_multiply(const hk_cu_dw *P, const uint4 *weights, hk_cu_u32 planes, const int stride,
                            float (*acc)[2][4]) {
  const int lane = threadIdx.x % 32, steps = (int)P->g.cg / 16;
#pragma unroll 1
  for (int j = 0; j < steps; ++j) {
    const hk_cu_u32 from = planes + (2 * j + lane / 16) * P->grouped.plane_bytes + lane % 16 * 16;
    uint4 w[9];
#pragma unroll
    for (int i = 0; i < 9; ++i) w[i] = weights[(j * 9 + i) * 32 + lane];
#pragma unroll
    for (int z = 0; z < 7 * stride + 3; ++z)
#pragma unroll
      for (int s = 0; s < 3; ++s) {
        hk_cu_u32 a[4];
        load_x4(from + ((z * stride + s % stride) * P->grouped.patch_length + s / stride) * 16, a);
#pragma unroll
        for (int r = 0; r < 3; ++r) {
          if (z < r || (z - r) % stride || (z - r) / stride > 7) continue;
          float(*to)[4] = acc[(z - r) / stride];
          mma_k16(to[0], a[0], a[1], a[2], a[3], w[r * 3 + s].x, w[r * 3 + s].y);
          mma_k16(to[1], a[0], a[1], a[2], a[3], w[r * 3 + s].z, w[r * 3 + s].w);
        }
      }
  }
}

/* Finishes and stores four adjacent channels of one pixel. */
HK_DEV void bundle_store(const hk_cu_dw *P, int n, int row, int q, int k, float *v) {
  const hk_cu_geom *g = &P->g;
  const int p[3] = {0, row, q};
  if (!P->plain) {
    float cv[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (P->e.residual) {
      const hk_cu_i64 co = pixel_offset(&g->c, n, p) + dw_channel(g, &g->c, k);
#pragma unroll
      for (int i = 0; i < 4; ++i) cv[i] = load_f32(P->e.c, co + i * g->c.channel, g->y_type);
    }
    dw_finish(&P->e, 4, 4, k, 1, cv, v);
  }
  const hk_cu_i64 yo = pixel_offset(&g->y, n, p) + k;
  if (g->y_type == HK_CU_F32) *(float4 *)((float *)P->e.y + yo) = make_float4(v[0], v[1], v[2], v[3]);
  else
    *(uint2 *)((hk_cu_u16 *)P->e.y + yo) = make_uint2(dw_pack_pair(TYPE, v[0], v[1]), dw_pack_pair(TYPE, v[2], v[3]));
}

HK_DEV void bundle_body(const hk_cu_dw *P, char *raw, const int stride) {
  const hk_cu_geom *g = &P->g;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, slabs = (int)g->cg / 8;
  mma_place at = {0, 0, 0, 0, 0, 0, 0};
  unsigned rest = blockIdx.x;
  at.kb0 = rest % (unsigned)P->grouped.slab_blocks * P->grouped.slabs;
  rest /= (unsigned)P->grouped.slab_blocks;
  at.index0 = rest % (unsigned)P->grouped.tiles * P->grouped.tile_length;
  rest /= (unsigned)P->grouped.tiles;
  at.n = rest / (unsigned)P->grouped.row_tiles;
  at.row0 = (rest - at.n * P->grouped.row_tiles) * 8;
  at.slab0 = at.kb0 * 16 / (int)g->kg * slabs;
  const hk_cu_u32 patch = dw_shared(raw);
  mma_patch(P, at, patch);
  dw_copy_wait();
  __syncthreads();
  const int unit = at.kb0 + warp % P->grouped.slabs, column = at.index0 + warp / P->grouped.slabs * 16;
  if (unit * 16 >= P->channels || column >= g->out[2]) return;
  float acc[8][2][4];
#pragma unroll
  for (int i = 0; i < 64; ++i) acc[i / 8][i / 4 % 2][i % 4] = 0.0f;
  bundle_multiply(P, (const uint4 *)P->packed + (hk_cu_i64)unit * (g->cg / 16) * 288,
                  patch + (unit * 16 / (int)g->kg * slabs - at.slab0) * P->grouped.plane_bytes +
                      (column - at.index0) * 16,
                  stride, acc);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int row = at.row0 + i / 2, q = column + lane / 4 + i % 2 * 8;
    float v[4] = {acc[i / 2][0][i % 2 * 2], acc[i / 2][0][i % 2 * 2 + 1], acc[i / 2][1][i % 2 * 2],
                  acc[i / 2][1][i % 2 * 2 + 1]};
    if (row < g->out[1] && q < g->out[2]) bundle_store(P, at.n, row, q, unit * 16 + lane % 4 * 4, v);
  }
}

#define BUNDLE(name, stride)                                                                              \
  extern "C" __global__ void __launch_bounds__(256, 2) name(const __grid_constant__ hk_cu_dw P) {         \
    extern __shared__ char4 raw[];                                                                        \
    dw_begin();                                                                                           \
    bundle_body(&P, (char *)raw, stride);                                                                 \
  }
