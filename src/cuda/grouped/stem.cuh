/* Dense convolution of 1 to 8 input channels in 16-bit types, 1D and 2D, any stride, padding and layout of x: the
 * first layers of networks. mma.sync, 64 output channels per block.
 *
 * The block's input rows are staged with `pixel` elements per pixel, so the taps of a filter row are contiguous. gk
 * counts pairs of elements: row_pairs per filter row, the rows one after another, padded to a multiple of 8 pairs. A
 * run must start at an even element: stride*pixel is even (pixel is the channel count, plus one if necessary), and
 * `lead` elements before the first tap are read with zero weights. A table in shared memory has the position of each
 * pair. Rows of x that are contiguous and 16-byte aligned are staged as they are, those of a channels-first x are
 * distributed to the pixels, others are copied element by element. Rows of the left operand are overlapping runs of
 * a staged row, read in place. A warp multiplies two tiles of 16 outputs by 64 channels; the weights are in shared
 * memory as fragments, output channels ordered so that a lane's sums of one output are two runs of 8 channels and
 * four lanes store 64 contiguous bytes. Zero weights meet other pixels: NaN results are recomputed by the plain
 * loop.
 *
 * `transposed`, for a channels-first y: channels are the left operand, outputs the right one, ordered so that a
 * lane's sums of one channel are 4 adjacent outputs. The host refuses dilation of the width. */
#include "cuda/depthwise/common.cuh"

typedef struct stem_place { int n, row0, col0, k0; } stem_place;

HK_DEV void mma_k16(float *d, const hk_cu_u32 *a, hk_cu_u32 b0, hk_cu_u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Zeroes the surroundings of the staged rows, and the last `widened` (0 or 1) element of each pixel. */
HK_DEV void stem_patch_zeros(const hk_cu_dw *P, char *patch, int widened) {
  const int length = P->stem.patch_pitch / 2, used = P->lead + P->stem.patch_pixels * P->pixel,
            rest = length - used + P->lead;
  for (int i = threadIdx.x; i < P->stem.slots * rest; i += blockDim.x) {
    const int z = i / rest, e = i - z * rest;
    ((hk_cu_u16 *)(patch + z * P->stem.patch_pitch))[e < P->lead ? e : used + e - P->lead] = 0;
  }
  if (!widened) return;
  for (int i = threadIdx.x; i < P->stem.slots * P->stem.patch_pixels; i += blockDim.x) {
    const int z = i / P->stem.patch_pixels, px = i - z * P->stem.patch_pixels;
    ((hk_cu_u16 *)(patch + z * P->stem.patch_pitch))[P->lead + (px + 1) * P->pixel - 1] = 0;
  }
}

/* Stages element by element, [row][lead, pixels], with zeros outside x, after its channels and around the row. */
HK_DEV void stem_patch_single(const hk_cu_dw *P, stem_place at, char *patch) {
  const hk_cu_geom *g = &P->g;
  const int x1 = (int)g->x.at[1], x2 = (int)g->x.at[2], xc = (int)g->x.channel, cg = (int)g->cg;
  const int row0 = at.row0 * (int)g->stride[1] - (int)g->lo[1], col0 = at.col0 * (int)g->stride[2] - (int)g->lo[2];
  const hk_cu_u16 *image = (const hk_cu_u16 *)P->x + at.n * g->x.outer;
  const int count = P->stem.slots * P->stem.patch_pixels;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int z = dw_div(P->stem.div_patch, i), px = i - z * P->stem.patch_pixels, row = row0 + z, col = col0 + px;
    const int in = (unsigned)row < (unsigned)g->in[1] && (unsigned)col < (unsigned)g->in[2];
    const hk_cu_u16 *from = image + (row * x1 + col * x2);
    hk_cu_u16 *to = (hk_cu_u16 *)(patch + z * P->stem.patch_pitch) + P->lead + px * P->pixel;
    for (int c = 0; c < P->pixel; ++c) to[c] = in && c < cg ? __ldg(from + c * xc) : (hk_cu_u16)0;
  }
  stem_patch_zeros(P, patch, 0);
}

/* Stages a channels-first x: 16 bytes of a channel's row at a time, distributed to the pixels. */
HK_DEV void stem_patch_rows(const hk_cu_dw *P, stem_place at, char *patch) {
  const hk_cu_geom *g = &P->g;
  const int row0 = at.row0 * (int)g->stride[1] - (int)g->lo[1], col0 = at.col0 * (int)g->stride[2] - (int)g->lo[2],
            grid = col0 & ~7;
  const int pieces = P->stem.row_pieces, cg = (int)g->cg, width = (int)g->in[2];
  const hk_cu_u16 *image = (const hk_cu_u16 *)P->x + at.n * g->x.outer;
#pragma unroll 4
  for (int i = threadIdx.x; i < P->stem.slots * cg * pieces; i += blockDim.x) {
    const int zc = dw_div(P->stem.div_patch, i), z = zc / cg, c = zc - z * cg, row = row0 + z,
              col = grid + (i - zc * pieces) * 8;
    const int in = (unsigned)row < (unsigned)g->in[1];
    const hk_cu_u16 *from = image + (c * g->x.channel + row * (int)g->x.at[1] + col);
    uint4 u = make_uint4(0, 0, 0, 0);
    if (in && col >= 0 && col + 8 <= width) {
      u = __ldg((const uint4 *)from);
    } else if (in) {
      hk_cu_u32 w[4] = {0, 0, 0, 0};
#pragma unroll
      for (int j = 0; j < 8; ++j)
        if ((unsigned)(col + j) < (unsigned)width) w[j / 2] |= (hk_cu_u32)__ldg(from + j) << (j % 2 * 16);
      u = make_uint4(w[0], w[1], w[2], w[3]);
    }
    const hk_cu_u32 w[4] = {u.x, u.y, u.z, u.w};
    hk_cu_u16 *to = (hk_cu_u16 *)(patch + z * P->stem.patch_pitch) + P->lead + (col - col0) * P->pixel + c;
#pragma unroll
    for (int j = 0; j < 8; ++j)
      if ((unsigned)(col + j - col0) < (unsigned)P->stem.patch_pixels)
        to[j * P->pixel] = (hk_cu_u16)(w[j / 2] >> (j % 2 * 16));
  }
  stem_patch_zeros(P, patch, P->pixel - cg);
}

/* Stages aligned 16-byte pieces of x. Returns the position of the tile's first element in the staged rows. */
HK_DEV int stem_patch(const hk_cu_dw *P, stem_place at, char *patch) {
  const hk_cu_geom *g = &P->g;
  if (P->stem.x_vector != 1) {
    if (P->stem.x_vector) stem_patch_rows(P, at, patch);
    else stem_patch_single(P, at, patch);
    return 0;
  }
  const int row0 = at.row0 * (int)g->stride[1] - (int)g->lo[1];
  const int start = (at.col0 * (int)g->stride[2] - (int)g->lo[2]) * P->pixel - P->lead, grid = start & ~7;
  const int pieces = P->stem.patch_pitch / 16, length = (int)g->in[2] * P->pixel;
  const hk_cu_u16 *image = (const hk_cu_u16 *)P->x + at.n * g->x.outer;
  for (int i = threadIdx.x; i < P->stem.slots * pieces; i += blockDim.x) {
    const int z = dw_div(P->stem.div_patch, i), c = i - z * pieces, row = row0 + z, e = grid + c * 8;
    const int in = (unsigned)row < (unsigned)g->in[1];
    const hk_cu_u16 *from = image + (row * (int)g->x.at[1] + e);
    char *to = patch + z * P->stem.patch_pitch + c * 16;
    if (in && e >= 0 && e + 8 <= length) {
      dw_copy16(dw_shared(to), from, 16);
      continue;
    }
    hk_cu_u32 w[4] = {0, 0, 0, 0};
    if (in && e + 8 > 0 && e < length) {
#pragma unroll
      for (int j = 0; j < 8; ++j)
        if ((unsigned)(e + j) < (unsigned)length) w[j / 2] |= (hk_cu_u32)__ldg(from + j) << (j % 2 * 16);
    }
    *(uint4 *)to = make_uint4(w[0], w[1], w[2], w[3]);
  }
  return start - grid;
}

/* Finishes and stores 8 channels of one output with an epilogue, a NaN or a y without 16-byte stores; v is in local
 * memory, so that the common path keeps its registers. */
static __device__ __noinline__ void stem_finish(const hk_cu_dw *P, int n, int p1, int q, int k, float *v) {
  const hk_cu_geom *g = &P->g;
  const int p[3] = {0, p1, q}, valid = P->channels - k < 8 ? P->channels - k : 8;
  const hk_cu_i64 yo = pixel_offset(&g->y, n, p), co = P->e.residual ? pixel_offset(&g->c, n, p) : 0;
#pragma unroll 1
  for (int i = 0; i < valid; ++i) {
    float cv = P->e.residual ? load_f32(P->e.c, co + (k + i) * g->c.channel, g->y_type) : 0.0f;
    if (v[i] != v[i]) v[i] = dw_plain(P, TYPE, n, 0, p1, q, k + i);
    dw_finish(&P->e, 1, 1, k + i, 1, &cv, &v[i]);
    if (!P->stem.y_vector) store_f32(P->e.y, yo + (k + i) * g->y.channel, g->y_type, v[i]);
  }
  if (P->stem.y_vector) *(uint4 *)((hk_cu_u16 *)P->e.y + yo + k) = dw_pack(TYPE, v);
}

/* The same for 4 outputs of one channel, or a y without 8-byte stores. */
static __device__ __noinline__ void stem_finish_row(const hk_cu_dw *P, int n, int p1, int q, int k, float *v) {
  const hk_cu_geom *g = &P->g;
#pragma unroll 1
  for (int i = 0; i < 4 && q + i < g->out[2]; ++i) {
    const int p[3] = {0, p1, q + i};
    float cv = P->e.residual ? load_f32(P->e.c, pixel_offset(&g->c, n, p) + k * g->c.channel, g->y_type) : 0.0f;
    if (v[i] != v[i]) v[i] = dw_plain(P, TYPE, n, 0, p1, q + i, k);
    dw_finish(&P->e, 1, 1, k, 1, &cv, &v[i]);
    store_f32(P->e.y, pixel_offset(&g->y, n, p) + k * g->y.channel, g->y_type, v[i]);
  }
}

HK_DEV void stem_store_row(const hk_cu_dw *P, stem_place at, int p1, int q, int k, const float *sums) {
  const hk_cu_geom *g = &P->g;
  if (k >= P->channels || p1 >= g->out[1] || q >= g->out[2]) return;
  const float all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if (P->plain && P->stem.y_vector && all == all) {
    *(uint2 *)((hk_cu_u16 *)P->e.y + at.n * g->y.outer + k * g->y.channel + (p1 * (int)g->y.at[1] + q)) =
        make_uint2(dw_pack_pair(TYPE, sums[0], sums[1]), dw_pack_pair(TYPE, sums[2], sums[3]));
    return;
  }
  float v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = sums[i];
  stem_finish_row(P, at.n, p1, q, k, v);
}

HK_DEV void stem_store(const hk_cu_dw *P, stem_place at, int p1, int q, int k, const float *sums) {
  const hk_cu_geom *g = &P->g;
  if (k >= P->channels || p1 >= g->out[1] || q >= g->out[2]) return;
  const float all = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  if (P->plain && P->stem.y_vector && all == all) {
    *(uint4 *)((hk_cu_u16 *)P->e.y + at.n * g->y.outer + (p1 * (int)g->y.at[1] + q * (int)g->y.at[2] + k)) =
        dw_pack(TYPE, sums);
    return;
  }
  float v[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = sums[i];
  stem_finish(P, at.n, p1, q, k, v);
}

/* Multiplies two tiles of 16 outputs by 64 channels. x: words of each tile's first row tap at this lane's output;
 * pairs: positions of this lane's pairs. acc[tile][8 channels][..] or, transposed, acc[tile][16 channels * 2 + 8
 * outputs][..]. */
HK_DEV void stem_multiply(const hk_cu_dw *P, const hk_cu_u32 *const *x, const int *pairs, const uint4 *table,
                          const int transposed, float (*acc)[8][4]) {
  /* words between this lane's two outputs */
  const int pitch = (int)P->g.stride[2] * P->pixel / 2 * (transposed ? 2 : 8);
#pragma unroll 2
  for (int s = 0; s < P->k_steps; ++s, pairs += 8, table += 4 * 32) {
    const int at0 = pairs[0], at1 = pairs[4];
    hk_cu_u32 a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m)
      a[m][0] = x[m][at0], a[m][transposed ? 2 : 1] = x[m][at0 + pitch], a[m][transposed ? 1 : 2] = x[m][at1],
      a[m][3] = x[m][at1 + pitch];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint4 b = table[j * 32];
      if (transposed) {
        const hk_cu_u32 f[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          mma_k16(acc[m][2 * j], f, a[m][0], a[m][1]);
          mma_k16(acc[m][2 * j + 1], f, a[m][2], a[m][3]);
        }
        continue;
      }
      mma_k16(acc[0][2 * j], a[0], b.x, b.y);
      mma_k16(acc[1][2 * j], a[1], b.x, b.y);
      mma_k16(acc[0][2 * j + 1], a[0], b.z, b.w);
      mma_k16(acc[1][2 * j + 1], a[1], b.z, b.w);
    }
  }
}

/* Stores a tile of 16 outputs from q. */
HK_DEV void stem_store_tile(const hk_cu_dw *P, stem_place at, int p1, int q, const float (*acc)[4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < 4; ++h) { /* output g or g + 8, lower or upper 32 channels */
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = acc[h % 2 * 4 + i / 2][h / 2 * 2 + i % 2];
    stem_store(P, at, p1, q + lane / 4 + h / 2 * 8, at.k0 + h % 2 * 32 + lane % 4 * 8, v);
  }
}
HK_DEV void stem_store_transposed(const hk_cu_dw *P, stem_place at, int p1, int q, const float (*acc)[4]) {
  const int lane = threadIdx.x % 32, n = lane / 4;
#pragma unroll
  for (int j = 0; j < 8; ++j) { /* block j of 8 channels as packed, see depthwise/pack.cu */
    const float v[4] = {acc[j / 2 * 2][j % 2 * 2], acc[j / 2 * 2][j % 2 * 2 + 1], acc[j / 2 * 2 + 1][j % 2 * 2],
                        acc[j / 2 * 2 + 1][j % 2 * 2 + 1]};
    stem_store_row(P, at, p1, q + lane % 4 * 4, at.k0 + j / 4 * 32 + n / 2 * 8 + j % 4 * 2 + n % 2, v);
  }
}

HK_DEV void stem_body(const hk_cu_dw *P, char *raw, const int transposed) {
  const hk_cu_geom *g = &P->g;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned rest = blockIdx.x;
  stem_place at;
  at.k0 = rest % (unsigned)P->stem.slab_blocks * 64;
  rest /= (unsigned)P->stem.slab_blocks;
  at.col0 = rest % (unsigned)P->stem.tiles * P->stem.tile_length;
  rest /= (unsigned)P->stem.tiles;
  at.n = rest / (unsigned)P->stem.row_tiles;
  at.row0 = (rest - at.n * P->stem.row_tiles) * P->stem.tile_rows;
  uint4 *table = (uint4 *)(raw + P->stem.table_at);
  const int pieces = P->k_steps * 128;
  const uint4 *from = (const uint4 *)P->packed + (hk_cu_i64)(at.k0 / 64) * pieces;
  for (int i = threadIdx.x; i < pieces; i += blockDim.x) dw_copy16(dw_shared(table + i), from + i, 16);
  int *pairs = (int *)(table + pieces);
  for (int i = threadIdx.x; i < P->k_steps * 8; i += blockDim.x) {
    const int r = i / P->row_pairs;
    pairs[i] = r < (int)g->win[1] ? r * (int)g->dil[1] * (P->stem.patch_pitch / 4) + i - r * P->row_pairs : 0;
  }
  const int skew = stem_patch(P, at, raw) / 2;
  dw_copy_wait();
  __syncthreads();
  const int across = P->stem.tile_length / 16, tiles = across * P->stem.tile_rows;
  for (int t = warp * 2; t < tiles; t += blockDim.x / 16) {
    float acc[2][8][4];
    const hk_cu_u32 *x[2];
    int rl[2], cl[2];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const int tile = t + m < tiles ? t + m : t;
      rl[m] = tile / (unsigned)across, cl[m] = (tile - rl[m] * across) * 16;
      x[m] = (const hk_cu_u32 *)(raw + rl[m] * (int)g->stride[1] * P->stem.patch_pitch) +
             (cl[m] + (transposed ? lane / 8 * 4 + lane / 4 % 2 : lane / 4)) * ((int)g->stride[2] * P->pixel / 2) +
             skew;
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[m][j][i] = 0.0f;
    }
    stem_multiply(P, x, pairs + lane % 4, table + lane, transposed, acc);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      if (t + m >= tiles) continue;
      if (transposed) stem_store_transposed(P, at, at.row0 + rl[m], at.col0 + cl[m], acc[m]);
      else stem_store_tile(P, at, at.row0 + rl[m], at.col0 + cl[m], acc[m]);
    }
  }
}

#define KERNEL(name, transposed)                                                                      \
  extern "C" __global__ void __launch_bounds__(256, 2) name(const __grid_constant__ hk_cu_dw P) { \
    extern __shared__ uint4 raw[];                                                                \
    dw_begin();                                                                                   \
    stem_body(&P, (char *)raw, transposed);                                                           \
  }
