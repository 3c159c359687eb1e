/* Causal Conv1D of 1 to 256 taps, dilation 1, any strides, in tiles of shared memory (tile.cuh).
 * hk_causal_wide_<type>_<taps>[_full]; taps: the most that a kernel takes.
 *
 * A block computes HK_CU_TILE_ROWS tokens of 32 channels: it fills a tile with them and the tokens before, every thread
 * sums 16 tokens of its channel, the sums take the place of the inputs, and the tile is stored. So x and y may lie in
 * any way, each read and written in vectors where it allows that, and rows need no alignment. Sums go from the bias
 * and the newest tap to the oldest. The block with a sequence's first unit reads its state and writes the new one.
 *
 * full = 0: the activation is none or SiLU, no gates or residual. full = 1: all but ids. */
#include "cuda/instance.cuh"

#include "cuda/causal/tile.cuh"

/* The new state of the block's channels. Where no entry comes from another old one, warps take entries in turn; else
 * each channel's move in ascending order. */
HK_DEV void wide_state(const hk_cu_causal_call *P, const tile_block *b) {
  const causal_unit *q = &b->q;
  const int c = b->c0 + threadIdx.x % 32, warp = threadIdx.x / 32;
  const hk_cu_i64 in = q->slot_in * P->states.outer + c * P->states.channel;
  const hk_cu_i64 out = q->slot_out * P->states.outer + c * P->states.channel;
  if (c >= P->c) return;
  if (!P->ring && (P->accepted || q->length < P->state_length)) {
    if (warp == 0) causal_state_channel(P, q, c);
    return;
  }
#pragma unroll 4
  for (int i = warp; i < P->state_length; i += TILE_WARPS) {
    int t;
    const int e = causal_source(P, q, i, &t);
    const float v = t >= 0  ? causal_token(P, q, c, t)
                    : e < 0 ? 0.0f
                            : causal_get(P->state_in, P->state_type, in + e * P->states.time);
    causal_put(P->state_out, P->state_type, out + i * P->states.time, v);
  }
}

/* Multiplies inputs by the pre-gate. */
HK_DEV void wide_pre(const hk_cu_causal_call *P, const tile_block *b, float *tile, int first, int rows) {
  if (!P->pre) return;
  const tile_view pre = tile_view_of(b, P->pre, P->pres, TYPE, P->pre_way);
  __syncthreads();
  tile_join(P, b, &pre, tile, first, rows, 0);
}
/* Applies the post-gate and the residual to results. */
HK_DEV void wide_finish(const hk_cu_causal_call *P, const tile_block *b, float *tile, int t0) {
  if (P->post) {
    const tile_view post = tile_view_of(b, P->post, P->posts, TYPE, P->post_way);
    __syncthreads();
    tile_join(P, b, &post, tile, t0, HK_CU_TILE_ROWS, 0);
  }
  if (P->residual) {
    const tile_view residual = tile_view_of(b, P->residual, P->residuals, TYPE, P->residual_way);
    __syncthreads();
    tile_join(P, b, &residual, tile, t0, HK_CU_TILE_ROWS, 1);
  }
}

/* HK_CU_TILE_ROWS tokens from t0 on. */
HK_DEV void wide_tile(const hk_cu_causal_call *P, const tile_block *b, float *room, int t0, const int most,
                      const int full) {
  const int lane = threadIdx.x % 32, halo = P->halo, rows = HK_CU_TILE_ROWS + halo, row = threadIdx.x / 32 * RUN;
  const float *f = room + rows * PITCH + lane;
  float sum[RUN];
  const tile_view x = tile_view_of(b, P->x, P->xs, TYPE, P->x_way);
  tile_fill(P, b, &x, room, t0 - halo, rows);
  if (full) wide_pre(P, b, room, t0 - halo, rows);
  if (t0 < halo + b->skew_mask && b->q.old) tile_history(P, b, room, t0 - halo);
  __syncthreads();
  const float bias = P->bias && b->c0 + lane < P->c ? tile_get((const char *)P->bias, P->f_type, b->c0 + lane) : 0.0f;
#pragma unroll
  for (int i = 0; i < RUN; ++i) sum[i] = bias;
  if (most <= 8) tile_convolve_few(room + lane, f, halo + row, P->window, sum, most);
  else tile_convolve(room + lane, f, halo + row, P->window, sum, 0);
  causal_act(P, full, RUN, sum);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < RUN; ++i) room[(row + i) * PITCH + lane] = sum[i];
  if (full) wide_finish(P, b, room, t0);
  __syncthreads();
  const tile_view y = tile_view_of(b, P->y, P->ys, P->y_type, P->y_way);
  tile_flush(P, b, &y, room, t0, HK_CU_TILE_ROWS);
}

HK_DEV void wide_body(const hk_cu_causal_call *P, const int most, const int full) {
  extern __shared__ float room[];
  const tile_block b = tile_find(P);
  if (!b.real) return;
  const int end = b.q.t0 + P->chunk, last = b.q.length + b.skew_mask;
  tile_weights(P, &b, room + (HK_CU_TILE_ROWS + P->halo) * PITCH);
#pragma unroll 1
  for (int t0 = b.q.t0; t0 < end && t0 < last; t0 += HK_CU_TILE_ROWS) {
    wide_tile(P, &b, room, t0, most, full);
    __syncthreads();
  }
  if (b.q.t0 == 0 && causal_writes_state(P, &b.q)) wide_state(P, &b);
}

#define WIDE(NAME, MOST, FULL, BLOCKS)                                      \
  extern "C" __global__ void __launch_bounds__(HK_CU_TILE_THREADS, BLOCKS) \
      NAME(const __grid_constant__ hk_cu_causal_call P) {                  \
    wide_body(&P, MOST, FULL);                                             \
  }
INSTANCE(WIDE, NAMED(hk_causal_wide, 4), 4, 0, 4)
INSTANCE(WIDE, NAMED(hk_causal_wide, 8), 8, 0, 4)
INSTANCE(WIDE, NAMED(hk_causal_wide, 256), 256, 0, 3)
INSTANCE(WIDE, NAMED(hk_causal_wide, 4_full), 4, 1, 3)
INSTANCE(WIDE, NAMED(hk_causal_wide, 8_full), 8, 1, 3)
INSTANCE(WIDE, NAMED(hk_causal_wide, 256_full), 256, 1, 3)
