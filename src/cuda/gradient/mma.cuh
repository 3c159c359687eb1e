/* hk_tapsum_mma_<type>: groups of 4, 8, 16 or 32 channels, channels-last, on the tensor cores. A block has 64 channels
 * and walks along bands of rows: those of dy and what they read of x lie in shared memory, 144 bytes per pixel, and
 * every matrix row is the address of some pixel, so padding, strides and the ends of rows cost nothing. The next band
 * is copied while one is multiplied. A warp has 16 channels of dy and 16 of x; of their products those within a group
 * are kept. */
enum { MMA_TAPS = 9, MMA_PIXEL = 144 };

typedef struct mma_band {
  int image, first, rows; /* of dy; rows may be fewer than P->band */
} mma_band;

HK_DEV mma_band mma_band_at(const hk_cu_tapsum *P, int unit) {
  mma_band b;
  b.image = div_by(unit, P->by_segments);
  b.first = (unit - b.image * P->segments) * P->band;
  b.rows = min(P->band, (int)P->d.g.win[1] - b.first);
  return b;
}

typedef struct mma_box { /* of an image: pixels from (row, column) on; live channels, the image's size */
  const hk_cu_u16 *image;
  int row, column, rows, columns, live, size[2];
  hk_cu_divisor by_columns;
} mma_box;

/* Copies a box of pixels x 64 channels, zeros outside the tensor; at: the tensor's strides. */
HK_DEV void mma_stage(hk_cu_u32 to, mma_box b, const hk_cu_i64 *at) {
  for (int i = threadIdx.x; i < b.rows * b.columns * 8; i += blockDim.x) {
    const int piece = i % 8, pixel = i / 8, row = div_by(pixel, b.by_columns), h = b.row + row;
    const int w = b.column + pixel - row * b.columns;
    const int in = (unsigned)h < (unsigned)b.size[0] && (unsigned)w < (unsigned)b.size[1] && piece * 8 < b.live;
    copy_16(to + pixel * MMA_PIXEL + piece * 16, in ? b.image + h * at[1] + w * at[2] + piece * 8 : b.image, in);
  }
}

HK_DEV void mma_load(const hk_cu_tapsum *P, mma_band b, int channel, hk_cu_u32 x, hk_cu_u32 f) {
  const hk_cu_geom *g = &P->d.g;
  const int live = (int)(g->groups * g->n) - channel, height = (b.rows - 1) * (int)g->dil[1] + 1;
  const mma_box of_x = {(const hk_cu_u16 *)P->d.x + b.image * g->x.channel + channel,
                        b.first * (int)g->dil[1] - (int)g->lo[1],
                        -(int)g->lo[2],
                        height + ((int)g->out[1] - 1) * (int)g->stride[1],
                        P->columns,
                        live,
                        {(int)g->in[1], (int)g->in[2]},
                        P->by_columns};
  const mma_box of_f = {(const hk_cu_u16 *)P->d.f + b.image * g->f.channel + channel,
                        b.first,
                        0,
                        b.rows,
                        (int)g->win[2],
                        live,
                        {(int)g->win[1], (int)g->win[2]},
                        P->by_win[2]};
  mma_stage(x, of_x, g->x.at);
  mma_stage(f, of_f, g->f.at);
}

typedef struct mma_room { /* this lane's 16 bytes of a pixel: in x, in f, of zeros */
  hk_cu_u32 x, f, zero;
} mma_room;

/* Adds the products of a band to the sums of the warp's taps, which are so many bytes apart in x. */
HK_DEV void mma_band_add(const hk_cu_tapsum *P, mma_band b, mma_room room, const int *tap, int part, int taps,
                         float (*acc)[2][4]) {
  const hk_cu_geom *g = &P->d.g;
  const int lane = threadIdx.x % 32, pixels = b.rows * (int)g->win[2];
#pragma unroll 1
  for (int first = part * 16; first < pixels; first += 16 * P->parity) {
    const int pixel = first + lane / 16 * 8 + lane % 8;
    const int row = div_by(pixel, P->by_win[2]), column = pixel - row * (int)P->by_win[2].d, in = pixel < pixels;
    hk_cu_u32 a[4];
    matrices_4(in ? room.f + pixel * MMA_PIXEL : room.zero, a);
    const hk_cu_u32 from = room.x + (row * (int)g->dil[1] * P->columns + column * (int)g->dil[2]) * MMA_PIXEL;
#pragma unroll
    for (int t = 0; t < MMA_TAPS; ++t) {
      if (t >= taps) break;
      hk_cu_u32 v[4];
      matrices_4(in ? from + tap[t] : room.zero, v);
      mma_add(acc[t][0], a, v[0], v[2]);
      mma_add(acc[t][1], a, v[1], v[3]);
    }
  }
}

/* Adds the sums of the warps that share a tile to those of the first of them, in their order. */
HK_DEV void mma_join(const hk_cu_tapsum *P, float *room, int tiles, int part, float (*acc)[2][4]) {
  const int lane = threadIdx.x % 32, tile = threadIdx.x / 32 % tiles;
#pragma unroll 1
  for (int from = 1; from < P->parity; ++from) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MMA_TAPS * 8; ++i)
      if (part == from) room[(tile * MMA_TAPS * 8 + i) * 32 + lane] = acc[i / 8][i / 4 % 2][i % 4];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MMA_TAPS * 8; ++i)
      if (part == 0) acc[i / 8][i / 4 % 2][i % 4] += room[(tile * MMA_TAPS * 8 + i) * 32 + lane];
  }
}

extern "C" __global__ void __launch_bounds__(256, 2) TYPED(hk_tapsum_mma)(const __grid_constant__ hk_cu_tapsum P) {
  extern __shared__ __align__(16) unsigned char shared[];
  const hk_cu_geom *g = &P.d.g;
  const int width = P.width, across = width > 16 ? width / 16 : 1, tiles = 4 * across;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, tile = warp % tiles, part = warp / tiles;
  const int per = blockIdx.x / P.chunks, channel = blockIdx.x % P.chunks * 64;
  const int tap0 = per % P.job_blocks * MMA_TAPS, slice = per / P.job_blocks;
  const int m = tile / across * 16, n = (across > 1 ? tile / across / across * across + tile % across : tile) * 16;
  const int side = lane / 8 % 2 * 16;
  const hk_cu_u32 base = shared_address(shared), x = base + MMA_PIXEL, f = x + P.x_bytes;
  if (threadIdx.x < MMA_PIXEL / 4) ((hk_cu_u32 *)shared)[threadIdx.x] = 0;
  int taps[MMA_TAPS];
#pragma unroll
  for (int t = 0; t < MMA_TAPS; ++t) {
    const int tap = min(tap0 + t, P.taps - 1), p1 = div_by(tap, P.by_out[2]), p2 = tap - p1 * (int)P.by_out[2].d;
    taps[t] = (p1 * (int)g->stride[1] * P.columns + p2 * (int)g->stride[2]) * MMA_PIXEL;
  }
  const mma_room room = {x + n * 2 + side, f + m * 2 + side, base + side};
  float acc[MMA_TAPS][2][4] = {};
  const int begin = tapsum_first(&P, slice), end = tapsum_first(&P, slice + 1);
  if (begin < end) mma_load(&P, mma_band_at(&P, begin), channel, x, f);
#pragma unroll 1
  for (int unit = begin; unit < end; ++unit) {
    const hk_cu_u32 here = (unit - begin) % P.buffers * P.buffer_bytes;
    const hk_cu_u32 there = (unit + 1 - begin) % P.buffers * P.buffer_bytes;
    const mma_room at = {room.x + here, room.f + here, room.zero};
    copy_wait();
    __syncthreads();
    if (P.buffers > 1 && unit + 1 < end) mma_load(&P, mma_band_at(&P, unit + 1), channel, x + there, f + there);
    mma_band_add(&P, mma_band_at(&P, unit), at, taps, part, P.taps - tap0, acc);
    if (P.buffers > 1 || unit + 1 == end) continue;
    __syncthreads();
    mma_load(&P, mma_band_at(&P, unit + 1), channel, x, f);
  }
  mma_join(&P, (float *)shared, tiles, part, acc);
  __syncthreads();
  if (part) return;
  /* not from registers: 72 copies of the store would be 100 KB of code, each block's to fetch */
  float *sums = (float *)shared + tile * MMA_TAPS * 8 * 32 + lane;
#pragma unroll
  for (int i = 0; i < MMA_TAPS * 8; ++i) sums[i * 32] = acc[i / 8][i / 4 % 2][i % 4];
#pragma unroll 1
  for (int i = 0; i < MMA_TAPS * 8; ++i) {
    const int tap = tap0 + i / 8, to = channel + m + lane / 4 + i / 2 % 2 * 8;
    const int from = channel + n + i / 4 % 2 * 8 + lane % 4 * 2 + i % 2;
    if (tap < P.taps && (to ^ from) < width && to < (int)(g->groups * g->n)) /* width: a power of two */
      tapsum_emit(&P, slice, (to * P.taps + tap) * width + (from & width - 1), sums[i * 32]);
  }
}
