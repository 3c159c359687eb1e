/* Depthwise convolution of channels-last 16-bit rows with long filters, on the tensor cores: the product of
 * toeplitz.cuh with B = 64, y[i*64 + j] = sum over m of x[i*64 + m] * T[m, j] with T[m, j] = w[m - j].
 *
 * A block is 16 channels of 1024 outputs of a row. x arrives by 16-byte cp.async of 8 channels, and a warp
 * transposes its copies in place, 64 pixels (a region) at a time, like band.cuh: shared memory then holds
 * [region][channel][8 pieces of 8 pixels]. A window starts where a region does; regions are 2 KB + 16 bytes apart,
 * so that the pieces of 8 windows hit all banks. Piece p of channel c is rotated by c + c/8 * 4, modulo 8, for the
 * same reason. A warp handles one channel at a time, its weights in shared memory as in stream.cuh. Results
 * overwrite the channel's x, which no other warp reads, and are stored as 16 bytes of 8 channels. NaN results are
 * recomputed at the end: the zeros of T would turn an Inf of another window into NaN. */
#include "cuda/depthwise/toeplitz.cuh"
#include "cuda/depthwise/transposed.h"

#define REGION HK_TRANSPOSED_REGION
#define WARPS (HK_TRANSPOSED_THREADS / 32)

typedef struct transposed_place {
  int n, p0, p1, k, q; /* first channel, first output */
  int width;           /* columns of x, 0: the row is outside x */
  hk_cu_i64 x;         /* offset of column 0 of the first channel */
} transposed_place;

HK_DEV transposed_place transposed_find(const hk_cu_dw *P) {
  const hk_cu_geom *g = &P->g;
  const int a = blockIdx.x / (unsigned)P->channel_blocks, line = a / (unsigned)P->transposed.tiles;
  const int b = dw_div(P->div_out1, line), n = dw_div(P->div_out0, b);
  transposed_place at = {n,
                         b - n * (int)g->out[0],
                         line - b * (int)g->out[1],
                         ((int)blockIdx.x - a * P->channel_blocks) * HK_TRANSPOSED_CHANNELS,
                         (a - line * P->transposed.tiles) * HK_TRANSPOSED_LENGTH,
                         0,
                         0};
  const int i0 = at.p0 * (int)g->stride[0] - (int)g->lo[0], i1 = at.p1 * (int)g->stride[1] - (int)g->lo[1];
  if ((unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)g->in[1]) at.width = (int)g->in[2];
  at.x = n * g->x.outer + i0 * g->x.at[0] + i1 * g->x.at[1] + at.k;
  return at;
}

/* Byte offset of piece p of a channel in a region. */
HK_DEV int transposed_piece(int channel, int p) { return channel * 128 + ((p + channel + channel / 8 * 4) & 7) * 16; }

/* Starts the copies of regions first, first + WARPS.. before `end`: [channels 0..7, 8..15][pixel] of 16 bytes each,
 * zeros outside x. */
HK_DEV void transposed_copy(const hk_cu_dw *P, transposed_place at, int first, int end, char *raw) {
  const hk_cu_geom *g = &P->g;
  const int lane = threadIdx.x % 32, late = lane % 2, width = at.k + late * 8 < P->channels ? at.width : 0;
  int col = at.q - (int)g->lo[2] + first * 64 + lane / 2;
  const hk_cu_i64 right = 32 * g->x.at[2];
  const char *x = (const char *)P->x + (at.x + late * 8 + col * g->x.at[2]) * 2;
  hk_cu_u32 to = dw_shared(raw) + first * REGION + (late * 64 + (lane / 2 ^ late * 4)) * 16;
#pragma unroll 1
  for (int i = first; i < end; i += WARPS, x += 4 * WARPS * right, to += WARPS * REGION, col += 64 * WARPS) {
#pragma unroll
    for (int c = 0; c < 4; ++c)
      dw_copy16(to + c * 256, x + c * right, (unsigned)(col + c * 16) < (unsigned)width ? 16 : 0);
  }
}

/* Transposes the same regions in place: from [8 channels][pixel] to [channel][pixel]. */
HK_DEV void transposed_in_place(int first, int end, char *raw) {
  const int lane = threadIdx.x % 32;
  const hk_cu_u32 from = dw_shared(raw) + (lane / 8 % 2 * 64 + lane / 16 * 8 + (lane % 8 ^ lane / 8 % 2 * 4)) * 16;
  int to[8]; /* of channels 0..7 */
#pragma unroll
  for (int p = 0; p < 8; ++p) to[p] = transposed_piece(lane / 4, p) + lane % 4 * 4;
  __syncwarp();
#pragma unroll 1
  for (int region = first * REGION; region < end * REGION; region += WARPS * REGION) {
    hk_cu_u32 v[4][4]; /* lane: channel lane/4, pixels lane%4 * 2; of channels 0.. and 8.., then 8 pixels on */
#pragma unroll
    for (int a = 0; a < 4; ++a) load_x4_transposed(from + region + a * 256, v[a]);
    __syncwarp();
#pragma unroll
    for (int p = 0; p < 8; ++p) {
      *(hk_cu_u32 *)(raw + region + to[p]) = v[p / 2][p % 2 * 2];
      *(hk_cu_u32 *)(raw + region + to[p ^ 4] + 1024) = v[p / 2][p % 2 * 2 + 1];
    }
  }
}

/* Copies a block's x and weights to shared memory; the first half is transposed while the second is in flight. */
HK_DEV void transposed_stage(const hk_cu_dw *P, transposed_place at, char *raw) {
  const int warp = threadIdx.x / 32, half = (P->transposed.slots + 2 * WARPS - 1) / (2 * WARPS) * WARPS,
            half_end = half < P->transposed.slots ? half : P->transposed.slots;
  const int count = P->channels - at.k < HK_TRANSPOSED_CHANNELS ? P->channels - at.k : HK_TRANSPOSED_CHANNELS;
  const char *weights = (const char *)P->packed + (hk_cu_i64)at.k * P->taps_bytes;
  transposed_copy(P, at, warp, half_end, raw);
  asm volatile("cp.async.commit_group;" ::: "memory");
  transposed_copy(P, at, half + warp, P->transposed.slots, raw);
#pragma unroll 4
  for (int i = threadIdx.x * 16; i < count * P->taps_bytes; i += HK_TRANSPOSED_THREADS * 16)
    dw_copy16(dw_shared(raw) + P->transposed.taps_at + i, weights + i, 16);
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  transposed_in_place(warp, half_end, raw);
  dw_copy_wait();
  transposed_in_place(half + warp, P->transposed.slots, raw);
}

/* Computes one channel of the block in place. */
HK_DEV void transposed_channel(const hk_cu_dw *P, transposed_place at, int channel, char *raw, const int plain) {
  const int lane = threadIdx.x % 32, offset = FRONT + lane % 4 * 2 - lane / 4;
  hk_cu_u32 taps = dw_shared(raw) + P->transposed.taps_at + channel * P->taps_bytes +
                   (offset & 1) * (P->taps_bytes / 2) + (offset >> 1) * 4;
  hk_cu_u32 x[4]; /* of pieces 0, 2, 4, 6 of the lane's window, or one more */
#pragma unroll
  for (int s = 0; s < 4; ++s) x[s] = dw_shared(raw) + lane % 16 * REGION + transposed_piece(channel, 2 * s + lane / 16);
  float acc[8][4];
  stream_diagonal t;
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) acc[i][j] = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) t.even[i][0] = t.even[i][1] = t.odd[i][0] = t.odd[i][1] = 0;
  int steps = stream_steps(P, 0, 64);
#pragma unroll 1
  for (; steps >= 4; steps -= 4, taps += 128) {
#pragma unroll
    for (int s = 0; s < 4; ++s) stream_step(x[s], taps + 32 * s, s, 64, &t, acc), x[s] += REGION;
  }
#pragma unroll
  for (int s = 0; s < 3; ++s)
    if (s < steps) stream_step(x[s], taps + 32 * s, s, 64, &t, acc);
  if (!plain) {
    const dw_line line = {at.n, at.k + channel, {at.p0, at.p1, 0}, 0};
    toeplitz_finish(P, line, at.q, 64, acc);
  }
  __syncwarp();
  char *to = raw + lane / 4 * REGION + lane % 4 * 4;
#pragma unroll
  for (int v = 0; v < 8; ++v) {
    *(hk_cu_u32 *)(to + transposed_piece(channel, v)) = dw_pack_pair(TYPE, acc[v][0], acc[v][1]);
    *(hk_cu_u32 *)(to + transposed_piece(channel, v) + 8 * REGION) = dw_pack_pair(TYPE, acc[v][2], acc[v][3]);
  }
}

/* Stores the results: a thread stores two neighbouring pixels of 8 channels and walks along. Returns whether there
 * may be a NaN. */
HK_DEV int transposed_store(const hk_cu_dw *P, transposed_place at, const char *raw) {
  const hk_cu_geom *g = &P->g;
  const int late = threadIdx.x % 2, column = threadIdx.x / 2 % 32 * 2, first = threadIdx.x / 64, k = at.k + late * 8;
  const int p[3] = {at.p0, at.p1, at.q + first * 64 + column};
  int wide = (int)g->out[2] - p[2];
  if (k >= P->channels) return 0;
  hk_cu_u16 *y = (hk_cu_u16 *)P->e.y + pixel_offset(&g->y, at.n, p) + k;
  const char *from[8];
#pragma unroll
  for (int c = 0; c < 8; ++c)
    from[c] = raw + first * REGION + transposed_piece(late * 8 + c, column / 8) + column % 8 * 2;
  hk_cu_u32 sum = 0;
#pragma unroll 2
  for (int i = 0; i < 16;
       i += HK_TRANSPOSED_THREADS / 64, wide -= HK_TRANSPOSED_THREADS, y += HK_TRANSPOSED_THREADS * g->y.at[2]) {
    if (wide <= 0) break;
    hk_cu_u32 low[4], high[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const hk_cu_u32 a = *(const hk_cu_u32 *)(from[2 * j] + i * REGION),
                      b = *(const hk_cu_u32 *)(from[2 * j + 1] + i * REGION);
      low[j] = __byte_perm(a, b, 0x5410), high[j] = __byte_perm(a, b, 0x7632);
    }
    const uint4 left = make_uint4(low[0], low[1], low[2], low[3]),
                right = make_uint4(high[0], high[1], high[2], high[3]);
    sum = matrix_most(sum, matrix_sum(matrix_sum8(left), matrix_sum8(right)));
    *(uint4 *)y = left;
    if (wide > 1) *(uint4 *)(y + g->y.at[2]) = right;
  }
  return matrix_nan(sum);
}

/* Recomputes the NaN results of the block. */
static __device__ __noinline__ void transposed_recompute_nan(const hk_cu_dw *P) {
  const hk_cu_geom *g = &P->g;
  const transposed_place at = transposed_find(P);
  const int k = at.k + threadIdx.x % HK_TRANSPOSED_CHANNELS,
            end = at.q + HK_TRANSPOSED_LENGTH < (int)g->out[2] ? at.q + HK_TRANSPOSED_LENGTH : (int)g->out[2];
#pragma unroll 1
  for (int q = at.q + threadIdx.x / HK_TRANSPOSED_CHANNELS; q < end && k < P->channels;
       q += HK_TRANSPOSED_THREADS / HK_TRANSPOSED_CHANNELS) {
    const int p[3] = {at.p0, at.p1, q};
    const hk_cu_i64 to = pixel_offset(&g->y, at.n, p) + k;
    float v = dw_half(TYPE, ((const volatile hk_cu_u16 *)P->e.y)[to]);
    if (v == v) continue;
    v = dw_plain(P, TYPE, at.n, at.p0, at.p1, q, k);
    const float cv =
        P->e.residual ? load_f32(P->e.c, pixel_offset(&g->c, at.n, p) + dw_channel(g, &g->c, k), g->y_type) : 0.0f;
    dw_finish(&P->e, 1, 1, k, 0, &cv, &v);
    store_f32(P->e.y, to, g->y_type, v);
  }
}

HK_DEV void transposed_body(const hk_cu_dw *P, char *raw, const int plain) {
  const transposed_place at = transposed_find(P);
  transposed_stage(P, at, raw);
  __syncthreads();
#pragma unroll 1
  for (int channel = threadIdx.x / 32; channel < HK_TRANSPOSED_CHANNELS && at.k + channel < P->channels;
       channel += WARPS)
    transposed_channel(P, at, channel, raw, plain);
  __syncthreads();
  if (__syncthreads_or(transposed_store(P, at, raw))) transposed_recompute_nan(P);
}

/* hk_dw_transposed_<type>; with an epilogue: .._epi. */
#define TRANSPOSED(name)                                                               \
  KERNEL(name, HK_TRANSPOSED_THREADS, 3, transposed_body(&P, (char *)raw, 1))              \
  KERNEL(name##_epi, HK_TRANSPOSED_THREADS, 2, transposed_body(&P, (char *)raw, 0))
