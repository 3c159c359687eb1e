/* Depthwise 5x5 and 7x7 of channels-last 16-bit images, stride 1, on the tensor cores.
 *
 * A block is 16 channels of tile_rows x tile_length outputs. Its input rows arrive by 16-byte cp.async, [8
 * channels][column], and a warp transposes each in place (ldmatrix.trans, then words of two neighbouring columns):
 * shared memory then holds [row][channel][column]. One warp handles one channel at a time: 16 windows of 8 outputs
 * each (2^shift side by side, the others HK_BAND_ROWS rows lower each) are a left operand 16 columns wide, read in
 * place by ldmatrix, since neighbouring windows start 16 bytes apart. The right operand of tap row r is T[m, j] =
 * w[r, m - j], 16x8, in two registers for the whole channel. HK_BAND_ROWS output rows are accumulated at a time, so
 * a fragment serves up to 7 tap rows: HK_BAND_ROWS + size - 1 loads for HK_BAND_ROWS * size products. Results
 * overwrite input rows that are no longer needed and are stored as 16 bytes of 8 channels.
 *
 * A row of a channel is `pieces` of 16 bytes, a compile-time constant: 8 (up to 7 windows side by side; channel c
 * starts at piece c + c/8 * 4, modulo 8) or 5 (up to 4). Both make the transpose free of bank conflicts. Columns of
 * channels 8.. are stored in swapped groups of four, which does the same for the copies. cp.async rather than loads:
 * a block needs 40 KB in flight, at 32 bytes per pixel, more lines than the L1 beside the shared memory has.
 *
 * Packed weights (HK_DW_PACK_BANDS): [channel][tap row] two copies of HK_BAND_WORDS words, element e = 2*word + copy
 * - 8. NaN results are recomputed at the end: the zeros of T would turn an Inf of another window into NaN. */
#include "cuda/depthwise/matrix.cuh"

#define ROWS HK_BAND_ROWS
#define WARPS (HK_BAND_THREADS / 32)

/* taps per side; 16-byte pieces per row of a channel; no epilogue */
typedef struct band_tile { int size, pieces, plain; } band_tile;
HK_DEV constexpr int band_shift(band_tile t) { return t.pieces == 8 ? 3 : 2; }
HK_DEV constexpr int band_pitch(band_tile t) { return t.pieces * HK_BAND_CHANNELS * 16; }
typedef struct band_place { int n, k, row, column; } band_place; /* first output, first channel */

HK_DEV band_place band_find(const hk_cu_dw *P) {
  const int a = blockIdx.x / (unsigned)P->channel_blocks, b = a / (unsigned)P->band.tiles,
            c = b / (unsigned)P->band.row_tiles;
  band_place at = {c, ((int)blockIdx.x - a * P->channel_blocks) * HK_BAND_CHANNELS,
                   (b - c * P->band.row_tiles) * P->band.tile_rows, (a - b * P->band.tiles) * P->band.tile_length};
  return at;
}

/* Byte offset of piece p of a channel in a row. */
HK_DEV int band_piece(band_tile t, int channel, int p) {
  return (channel * t.pieces + (t.pieces == 8 ? (p + channel + channel / 8 * 4) & 7 : p)) * 16;
}

/* Starts the copies of rows first, first + WARPS.. of x before `end`: [channels 0..7, 8..15][column] of 16 bytes
 * each, zeros outside x. */
HK_DEV void band_copy(const hk_cu_dw *P, band_tile t, band_place at, int first, int end, char *raw) {
  const hk_cu_geom *g = &P->g;
  const int lane = threadIdx.x % 32, late = lane % 2, row0 = at.row - (int)g->lo[1], k = at.k + late * 8,
            col = at.column - (int)g->lo[2] + lane / 2;
  const int height = k < P->channels ? (int)g->in[1] : 0, width = (int)g->in[2];
  const hk_cu_i64 down = WARPS * g->x.at[1] * 2, right = 32 * g->x.at[2];
  const char *x = (const char *)P->x + (at.n * g->x.outer + (row0 + first) * g->x.at[1] + col * g->x.at[2] + k) * 2;
  hk_cu_u32 to = dw_shared(raw) + first * band_pitch(t) + (late * t.pieces * 8 + (lane / 2 ^ late * 4)) * 16;
#pragma unroll 1
  for (int row = first; row < end; row += WARPS, x += down, to += WARPS * band_pitch(t)) {
    const int in = (unsigned)(row0 + row) < (unsigned)height ? width : 0;
#pragma unroll
    for (int c = 0; c < t.pieces * 16; c += 32)
      if (lane + c < t.pieces * 16)
        dw_copy16(to + c * 8, x + c / 32 * right, (unsigned)(col + c / 2) < (unsigned)in ? 16 : 0);
  }
}

/* Transposes the same rows in place: from [8 channels][column] to [channel][column]. */
HK_DEV void band_transpose(band_tile t, int first, int end, char *raw) {
  const int lane = threadIdx.x % 32, pairs = (t.pieces + 1) / 2;
  const hk_cu_u32 from =
      dw_shared(raw) + (lane / 8 % 2 * t.pieces * 8 + lane / 16 * 8 + (lane % 8 ^ lane / 8 % 2 * 4)) * 16;
  const int past = t.pieces % 2 && lane / 16 ? 128 : 0; /* an odd last piece is followed by another warp's row */
  int to[8]; /* of channels 0..7 */
#pragma unroll
  for (int p = 0; p < t.pieces; ++p) to[p] = band_piece(t, lane / 4, p) + lane % 4 * 4;
  __syncwarp();
#pragma unroll 1
  for (int row = first * band_pitch(t); row < end * band_pitch(t); row += WARPS * band_pitch(t)) {
    hk_cu_u32 v[4][4]; /* lane: channel lane/4, columns lane%4 * 2; of channels 0.. and 8.., then 8 columns on */
#pragma unroll
    for (int a = 0; a < pairs; ++a) load_x4_transposed(from + row + a * 256 - (a + 1 == pairs ? past : 0), v[a]);
    __syncwarp();
#pragma unroll
    for (int p = 0; p < t.pieces; ++p) {
      *(hk_cu_u32 *)(raw + row + to[p]) = v[p / 2][p % 2 * 2];
      *(hk_cu_u32 *)(raw + row + to[t.pieces == 8 ? p ^ 4 : p] + 8 * t.pieces * 16) = v[p / 2][p % 2 * 2 + 1];
    }
  }
}

/* Copies a block's x and weights to shared memory. A warp transposes the rows that it copied itself, the first half
 * while the second is in flight. */
HK_DEV void band_stage(const hk_cu_dw *P, band_tile t, band_place at, char *raw) {
  const int warp = threadIdx.x / 32, half = (P->band.slots + 2 * WARPS - 1) / (2 * WARPS) * WARPS,
            pieces = HK_BAND_CHANNELS * t.size * HK_BAND_WORDS / 2;
  const char *weights = (const char *)P->packed + (hk_cu_i64)at.k * P->taps_bytes;
  band_copy(P, t, at, warp, half, raw);
  asm volatile("cp.async.commit_group;" ::: "memory");
  band_copy(P, t, at, half + warp, P->band.slots, raw);
#pragma unroll
  for (int i = 0; i < pieces; i += HK_BAND_THREADS)
    if (i + (int)threadIdx.x < pieces)
      dw_copy16(dw_shared(raw) + P->band.taps_at + (i + threadIdx.x) * 16, weights + (i + threadIdx.x) * 16, 16);
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  band_transpose(t, warp, half, raw);
  dw_copy_wait();
  band_transpose(t, half + warp, P->band.slots, raw);
}

/* x: shared address of the lane's row of the left operand in the first input row. */
HK_DEV void band_multiply(band_tile t, hk_cu_u32 x, const hk_cu_u32 *w, float (*acc)[4]) {
#pragma unroll
  for (int o = 0; o < ROWS; ++o)
#pragma unroll
    for (int i = 0; i < 4; ++i) acc[o][i] = 0.0f;
#pragma unroll
  for (int i = 0; i < ROWS + t.size - 1; ++i) {
    hk_cu_u32 a[4];
    load_x4(x + i * band_pitch(t), a);
#pragma unroll
    for (int o = 0; o < ROWS; ++o)
      if (i >= o && i - o < t.size) mma_k16(acc[o], a, w[2 * (i - o)], w[2 * (i - o) + 1]);
  }
}

/* Applies everything but the conversion. row, column: of the sums of windows lane/4 and lane/4 + 8. */
HK_DEV void band_finish(const hk_cu_dw *P, int n, int k, const int *row, const int *column, float (*acc)[4]) {
  const hk_cu_geom *g = &P->g;
#pragma unroll
  for (int o = 0; o < ROWS; ++o) {
    float cv[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (P->e.residual) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int p[3] = {0, row[i / 2] + o, column[i / 2] + i % 2};
        if (p[1] < g->out[1] && p[2] < g->out[2])
          cv[i] = load_f32(P->e.c, pixel_offset(&g->c, n, p) + dw_channel(g, &g->c, k), g->y_type);
      }
    }
    dw_finish(&P->e, 4, 4, k, 0, cv, acc[o]);
  }
}

/* Computes one channel of the tile in place. */
HK_DEV void band_channel(const hk_cu_dw *P, band_tile t, band_place at, int channel, char *raw) {
  const int lane = threadIdx.x % 32, shift = band_shift(t), mask = (1 << shift) - 1, pitch = band_pitch(t),
            batch = (16 >> shift) * ROWS;
  const int offset = 8 + lane % 4 * 2 - lane / 4;
  const hk_cu_u32 *taps = (const hk_cu_u32 *)(raw + P->band.taps_at) + channel * t.size * 2 * HK_BAND_WORDS +
                          (offset & 1) * HK_BAND_WORDS + (offset >> 1);
  hk_cu_u32 w[14];
#pragma unroll
  for (int r = 0; r < t.size; ++r)
    w[2 * r] = taps[r * 2 * HK_BAND_WORDS], w[2 * r + 1] = taps[r * 2 * HK_BAND_WORDS + 4];
  hk_cu_u32 x =
      dw_shared(raw) + (lane % 16 >> shift) * ROWS * pitch + band_piece(t, channel, (lane & mask) + lane / 16);
  /* windows lane/4 and lane/4 + 8, which are `lower` rows apart */
  const int column = (lane / 4 & mask) * 8 + lane % 4 * 2, row = (lane / 4 >> shift) * ROWS,
            lower = (8 >> shift) * ROWS;
  char *to = raw + row * pitch + band_piece(t, channel, lane / 4 & mask) + lane % 4 * 4;
#pragma unroll 1
  for (int base = 0; base < P->band.tile_rows; base += batch, x += batch * pitch, to += batch * pitch) {
    float acc[ROWS][4];
    band_multiply(t, x, w, acc);
    if (!t.plain) {
      const int rows[2] = {at.row + base + row, at.row + base + row + lower},
                columns[2] = {at.column + column, at.column + column};
      band_finish(P, at.n, at.k + channel, rows, columns, acc);
    }
    __syncwarp();
    if (column < P->band.tile_length) {
#pragma unroll
      for (int o = 0; o < ROWS; ++o) {
        *(hk_cu_u32 *)(to + o * pitch) = dw_pack_pair(TYPE, acc[o][0], acc[o][1]);
        *(hk_cu_u32 *)(to + (o + lower) * pitch) = dw_pack_pair(TYPE, acc[o][2], acc[o][3]);
      }
    }
    __syncwarp();
  }
}

/* Stores the results: a thread stores two neighbouring columns of 8 channels and walks down. Returns whether there
 * may be a NaN. */
HK_DEV int band_store(const hk_cu_dw *P, band_tile t, band_place at, const char *raw) {
  const hk_cu_geom *g = &P->g;
  const int pairs = (t.pieces - 1) * 4, side = HK_BAND_THREADS / 2 / pairs, late = threadIdx.x % 2, k = at.k + late * 8;
  int row = threadIdx.x / 2 / pairs;
  const int column = (threadIdx.x / 2 - row * pairs) * 2, wide = (int)g->out[2] - at.column - column;
  if (row >= side || k >= P->channels || wide <= 0) return 0;
  const int rows = (int)g->out[1] - at.row < P->band.tile_rows ? (int)g->out[1] - at.row : P->band.tile_rows;
  const hk_cu_i64 right = g->y.at[2], down = side * g->y.at[1];
  hk_cu_u16 *y =
      (hk_cu_u16 *)P->e.y + at.n * g->y.outer + (at.row + row) * g->y.at[1] + (at.column + column) * right + k;
  const char *from[8];
#pragma unroll
  for (int c = 0; c < 8; ++c)
    from[c] = raw + row * band_pitch(t) + band_piece(t, late * 8 + c, column / 8) + column % 8 * 2;
  hk_cu_u32 sum = 0;
#pragma unroll 2
  for (int i = 0; row < rows; ++i, row += side, y += down) {
    hk_cu_u32 low[4], high[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const hk_cu_u32 a = *(const hk_cu_u32 *)(from[2 * j] + i * side * band_pitch(t)),
                      b = *(const hk_cu_u32 *)(from[2 * j + 1] + i * side * band_pitch(t));
      low[j] = __byte_perm(a, b, 0x5410), high[j] = __byte_perm(a, b, 0x7632);
    }
    const uint4 first = make_uint4(low[0], low[1], low[2], low[3]),
                second = make_uint4(high[0], high[1], high[2], high[3]);
    sum = matrix_most(sum, matrix_sum(matrix_sum8(first), matrix_sum8(second)));
    *(uint4 *)y = first;
    if (wide > 1) *(uint4 *)(y + right) = second;
  }
  return matrix_nan(sum);
}

/* Recomputes one output whose sum is NaN. */
static __device__ __noinline__ void band_recompute(const hk_cu_dw *P, int n, int row, int column, int k) {
  const hk_cu_geom *g = &P->g;
  const int p[3] = {0, row, column};
  float v = dw_plain(P, TYPE, n, 0, row, column, k);
  const float cv =
      P->e.residual ? load_f32(P->e.c, pixel_offset(&g->c, n, p) + dw_channel(g, &g->c, k), g->y_type) : 0.0f;
  dw_finish(&P->e, 1, 1, k, 0, &cv, &v);
  store_f32(P->e.y, pixel_offset(&g->y, n, p) + dw_channel(g, &g->y, k), g->y_type, v);
}

/* Recomputes all NaN results of the tile. A function of its own: calls inside band_store would cost it instructions. */
static __device__ __noinline__ void band_recompute_nan(const hk_cu_dw *P) {
  const hk_cu_geom *g = &P->g;
  const band_place at = band_find(P);
  const int k = at.k + threadIdx.x % HK_BAND_CHANNELS, count = P->band.tile_rows * P->band.tile_length;
#pragma unroll 1
  for (int i = threadIdx.x / HK_BAND_CHANNELS; i < count && k < P->channels; i += HK_BAND_THREADS / HK_BAND_CHANNELS) {
    const int down = i / P->band.tile_length, p[3] = {0, at.row + down, at.column + i - down * P->band.tile_length};
    if (p[1] >= (int)g->out[1] || p[2] >= (int)g->out[2]) continue;
    const float v = dw_half(TYPE, ((const volatile hk_cu_u16 *)P->e.y)[pixel_offset(&g->y, at.n, p) + k]);
    if (v != v) band_recompute(P, at.n, p[1], p[2], k);
  }
}

HK_DEV void band_body(const hk_cu_dw *P, band_tile t, char *raw) {
  const band_place at = band_find(P);
  band_stage(P, t, at, raw);
  __syncthreads();
#pragma unroll 1
  for (int channel = threadIdx.x / 32; channel < HK_BAND_CHANNELS && at.k + channel < P->channels; channel += WARPS)
    band_channel(P, t, at, channel, raw);
  __syncthreads();
  if (__syncthreads_or(band_store(P, t, at, raw))) band_recompute_nan(P);
}

#define KERNEL(name, size, pieces, plain, blocks)                                                                    \
  extern "C" __global__ void __launch_bounds__(HK_BAND_THREADS, blocks) name(const __grid_constant__ hk_cu_dw P) {   \
    extern __shared__ uint4 raw[];                                                                                   \
    dw_begin();                                                                                                      \
    const band_tile t = {size, pieces, plain};                                                                       \
    band_body(&P, t, (char *)raw);                                                                                   \
  }
/* hk_dw_band_<type>_<size>x<pieces>; with an epilogue: .._epi. */
#define KERNELS(name, size, pieces)         \
  KERNEL(name, size, pieces, 1, 4)          \
  KERNEL(name##_epi, size, pieces, 0, 3)
