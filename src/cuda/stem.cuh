/* Dense convolution of 1 to 8 input channels in 16-bit types, 1D and 2D, any stride, padding and layout of x: the first layers
 * of networks. mma.sync, 64 output channels a block.
 *
 * The block's input rows are staged with pixels widened to 2, 4 or 8 channels, so the taps of a filter row are one run of
 * memory: gk = s*pixel + c, filled up to a multiple of 16 with zero weights. Rows of the left operand are overlapping runs of a
 * staged row, read in place. A warp multiplies two tiles of 16 outputs by 64 channels; the weights lie in shared memory as
 * fragments, output channels dealt so that a lane's 16 sums of one output are neighbours and leave as two 16-byte stores.
 * Zero weights meet foreign pixels: NaN results are recomputed by the plain loop. Dilation of the width is refused by the host.
 * Included by stem_bf16.cu and stem_f16.cu. */
#include "dw_common.cuh"

typedef struct stem_place { int n, row0, col0, k0; } stem_place;

HK_DEV void mma_k16(float *d, const hk_cu_u32 *a, hk_cu_u32 b0, hk_cu_u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Input rows of the tile, [row][pixel][P->pixel], zeros outside x and behind its channels. */
HK_DEV void stem_patch(const hk_cu_dw *P, stem_place at, char *patch) {
  const hk_cu_geom *g = &P->g;
  const int x1 = (int)g->x.at[1], x2 = (int)g->x.at[2], xc = (int)g->x.channel, cg = (int)g->cg;
  const int row0 = at.row0 * (int)g->stride[1] - (int)g->lo[1], col0 = at.col0 * (int)g->stride[2] - (int)g->lo[2];
  const hk_cu_u16 *image = (const hk_cu_u16 *)P->x + at.n * g->x.outer;
  const int count = P->slots * P->patch_pixels;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int z = dw_div(P->div_patch, i), px = i - z * P->patch_pixels, row = row0 + z, col = col0 + px;
    const int in = (unsigned)row < (unsigned)g->in[1] && (unsigned)col < (unsigned)g->in[2];
    const hk_cu_u16 *from = image + (row * x1 + col * x2);
    hk_cu_u32 *to = (hk_cu_u32 *)(patch + z * P->patch_pitch + px * P->pixel * 2);
    for (int c = 0; c < P->pixel; c += 2) {
      hk_cu_u32 w = 0;
      if (in && c < cg) w = __ldg(from + c * xc);
      if (in && c + 1 < cg) w |= (hk_cu_u32)__ldg(from + (c + 1) * xc) << 16;
      to[c / 2] = w;
    }
  }
  /* The filling of gk may read past a row's last pixel; there must be numbers. */
  const int tail = (P->patch_pitch - P->patch_pixels * P->pixel * 2) / 4;
  for (int i = threadIdx.x; i < P->slots * tail; i += blockDim.x)
    ((hk_cu_u32 *)(patch + (i / tail + 1) * P->patch_pitch))[-1 - i % tail] = 0;
}

/* 16 channels of one output with an epilogue, a NaN or a y that takes no 16-byte stores; v lies in local memory, so that the
 * common path keeps its registers. */
static __device__ __noinline__ void stem_finish(const hk_cu_dw *P, int n, int p1, int q, int k, float *v) {
  const hk_cu_geom *g = &P->g;
  const int p[3] = {0, p1, q}, valid = P->channels - k < 16 ? P->channels - k : 16;
  const hk_cu_i64 yo = pixel_offset(&g->y, n, p), co = P->e.residual ? pixel_offset(&g->c, n, p) : 0;
#pragma unroll 1
  for (int i = 0; i < valid; ++i) {
    float cv = P->e.residual ? load_f32(P->e.c, co + (k + i) * g->c.channel, g->y_type) : 0.0f;
    if (v[i] != v[i]) v[i] = dw_plain(P, TYPE, n, 0, p1, q, k + i);
    dw_finish(&P->e, 1, 1, k + i, 1, &cv, &v[i]);
    if (!P->y_vector) store_f32(P->e.y, yo + (k + i) * g->y.channel, g->y_type, v[i]);
  }
  if (P->y_vector) {
    uint4 *to = (uint4 *)((hk_cu_u16 *)P->e.y + yo + k);
    to[0] = dw_pack(TYPE, v);
    to[1] = dw_pack(TYPE, v + 8);
  }
}

HK_DEV void stem_store(const hk_cu_dw *P, stem_place at, int p1, int q, int k, const float *sums) {
  const hk_cu_geom *g = &P->g;
  if (k >= P->channels || p1 >= g->out[1] || q >= g->out[2]) return;
  float all = 0.0f;
#pragma unroll
  for (int i = 0; i < 16; ++i) all += sums[i];
  if (P->plain && P->y_vector && all == all) {
    uint4 *to = (uint4 *)((hk_cu_u16 *)P->e.y + at.n * g->y.outer + (p1 * (int)g->y.at[1] + q * (int)g->y.at[2] + k));
    to[0] = dw_pack(TYPE, sums);
    to[1] = dw_pack(TYPE, sums + 8);
    return;
  }
  float v[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) v[i] = sums[i];
  stem_finish(P, at.n, p1, q, k, v);
}

/* Two tiles of 16 outputs by 64 channels. x: shared words of each tile's first row tap, this lane's place in it. */
HK_DEV void stem_multiply(const hk_cu_dw *P, const hk_cu_u32 *const *x, const uint2 *table, float (*acc)[8][4]) {
  const int pitch = (int)P->g.stride[2] * P->pixel / 2 * 8; /* words from output g to g + 8 */
  const int row = (int)P->g.dil[1] * P->patch_pitch / 4;
#pragma unroll 1
  for (int r = 0; r < (int)P->g.win[1]; ++r)
#pragma unroll 1
    for (int s = 0; s < P->k_steps; ++s, table += 8 * 32) {
      hk_cu_u32 a[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        const hk_cu_u32 *from = x[m] + r * row + s * 8;
        a[m][0] = from[0], a[m][1] = from[pitch], a[m][2] = from[4], a[m][3] = from[pitch + 4];
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const uint2 b = table[j * 32];
        mma_k16(acc[0][j], a[0], b.x, b.y);
        mma_k16(acc[1][j], a[1], b.x, b.y);
      }
    }
}

HK_DEV void stem_body(const hk_cu_dw *P, char *raw) {
  const hk_cu_geom *g = &P->g;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned rest = blockIdx.x;
  stem_place at;
  at.k0 = rest % (unsigned)P->slab_blocks * 64;
  rest /= (unsigned)P->slab_blocks;
  at.col0 = rest % (unsigned)P->tiles * P->tile_length;
  rest /= (unsigned)P->tiles;
  at.n = rest / (unsigned)P->row_tiles;
  at.row0 = (rest - at.n * P->row_tiles) * P->tile_rows;
  uint4 *table = (uint4 *)(raw + P->table_at);
  const int pieces = (int)g->win[1] * P->k_steps * 128;
  const uint4 *from = (const uint4 *)P->packed + (hk_cu_i64)(at.k0 / 64) * pieces;
  for (int i = threadIdx.x; i < pieces; i += blockDim.x) dw_copy16(dw_shared(table + i), from + i, 16);
  stem_patch(P, at, raw);
  dw_copy_wait();
  __syncthreads();
  const int across = P->tile_length / 16, tiles = across * P->tile_rows;
  for (int t = warp * 2; t < tiles; t += blockDim.x / 16) {
    float acc[2][8][4];
    const hk_cu_u32 *x[2];
    int rl[2], cl[2];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const int tile = t + m < tiles ? t + m : t;
      rl[m] = tile / (unsigned)across, cl[m] = (tile - rl[m] * across) * 16;
      x[m] = (const hk_cu_u32 *)(raw + rl[m] * (int)g->stride[1] * P->patch_pitch) +
             (cl[m] + lane / 4) * (int)g->stride[2] * P->pixel / 2 + lane % 4;
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[m][j][i] = 0.0f;
    }
    stem_multiply(P, x, (const uint2 *)table + lane, acc);
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float v[16];
#pragma unroll
        for (int i = 0; i < 16; ++i) v[i] = acc[m][i / 2][h * 2 + i % 2];
        if (t + m < tiles) stem_store(P, at, at.row0 + rl[m], at.col0 + cl[m] + lane / 4 + 8 * h, at.k0 + lane % 4 * 16, v);
      }
  }
}

#define KERNEL(name)                                                                              \
  extern "C" __global__ void __launch_bounds__(256, 2) name(const __grid_constant__ hk_cu_dw P) { \
    extern __shared__ uint4 raw[];                                                                \
    stem_body(&P, (char *)raw);                                                                   \
  }
