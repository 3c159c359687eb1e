/* The gradient of the causal Conv1D, 1 to 256 taps, dilation 1, any strides, in tiles of shared memory (tile.cuh).
 * hk_causal_back_<type>_<taps>, taps 2, 3, 4 or `any`, and hk_causal_back_<type>_sum.
 *
 * With z = bias + sum of taps and dz = dy * act'(z): dx[t] = sum over k of f[k] * dz[t + k], df[k] = sum over t of
 * dz[t] * u[t - k], dbias = sum of dz. A block has HK_CU_TILE_ROWS tokens of 32 channels at a time, with the tokens of
 * x before and behind them and of dy behind them, whose dz it computes again. A block writes its sums of df and dbias
 * to `partial`, which `sum` adds up in the order of the blocks: the same bits every time.
 *
 * 2 to 4 taps: a thread passes over 16 tokens with u, dz, df in registers; a block passes over a unit of several tiles.
 * any: dz takes the place of dy, then warps share dx by tokens and df by runs of 16 taps and by tokens. */
#include "cuda/instance.cuh"

#include "cuda/causal/tile.cuh"

enum { ROWS = HK_CU_TILE_ROWS, EARLY = 16 };

HK_DEV float back_get_state(const hk_cu_causal_call *P, const tile_block *b, int c, int e) {
  return tile_get((const char *)P->dstate_out, P->state_type,
                  b->q.s * P->states.outer + c * P->states.channel + e * P->states.time);
}

/* Stores dx of this thread's RUN rows from `row` on, of token t on, with what the new state hands back. */
HK_DEV void back_put(const hk_cu_causal_call *P, const tile_block *b, float *tile, int row, int t, const float *dx) {
  const int c = b->c0 + threadIdx.x % 32, to_entry = P->state_length - b->q.length;
  float *at = tile + row * PITCH + threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < RUN; ++i) at[i * PITCH] = dx[i];
  if (!P->dstate_out || c >= P->c || t + RUN + to_entry <= 0) return;
#pragma unroll 1
  for (int i = 0; i < RUN; ++i)
    if (t + i >= 0 && t + i < b->q.length && t + i + to_entry >= 0)
      at[i * PITCH] += back_get_state(P, b, c, t + i + to_entry);
}

/* dstate_in of the block's channels. dz: token 0 of channel i is in row skew(i). */
HK_DEV void back_state(const hk_cu_causal_call *P, const tile_block *b, const float *f, const float *dz) {
  const int lane = threadIdx.x % 32, c = b->c0 + lane, skew = tile_skew(b, lane), size = P->state_length;
  if (c >= P->c) return;
#pragma unroll 1
  for (int i = threadIdx.x / 32; i < size; i += TILE_WARPS) {
    float sum = 0.0f;
    if (b->q.old) {
#pragma unroll 1
      for (int k = size - i; k < P->window && i - size + k < b->q.length; ++k)
        sum = fmaf(f[k * TILE_WIDE + lane], dz[(i - size + k + skew) * PITCH + lane], sum);
      if (P->dstate_out && i >= b->q.length) sum += back_get_state(P, b, c, i - b->q.length);
    }
    causal_put(P->dstate_in, P->state_type,
               b->q.s * P->states.outer + c * P->states.channel + i * P->states.time, sum);
  }
}

/* Writes sum[j][warp][channel] added up over `parts` warps as value `first + j` of the unit's partial sums. */
HK_DEV void back_partial(const hk_cu_causal_call *P, const tile_block *b, const float *sums, int count, int parts,
                         const int *to) {
  const int lane = threadIdx.x % 32, c = b->c0 + lane;
#pragma unroll 1
  for (int j = threadIdx.x / 32; j < count; j += TILE_WARPS) {
    float sum = sums[j * parts * TILE_WIDE + lane];
#pragma unroll 1
    for (int p = 1; p < parts; ++p) sum += sums[(j * parts + p) * TILE_WIDE + lane];
    const hk_cu_i64 value = (hk_cu_i64)b->unit * (P->window + 1) + (to[0] + j * to[1]);
    if (c < P->c) P->partial[value * P->c + c] = sum;
  }
}

/* The partial sums of a unit without tokens. */
HK_DEV void back_idle(const hk_cu_causal_call *P, const tile_block *b) {
  const int c = b->c0 + threadIdx.x % 32;
#pragma unroll 1
  for (int j = threadIdx.x / 32; j <= P->window; j += TILE_WARPS)
    if (c < P->c) P->partial[((hk_cu_i64)b->unit * (P->window + 1) + j) * P->c + c] = 0.0f;
}

HK_DEV void back_fill(const hk_cu_causal_call *P, const tile_block *b, float *u, float *dy, int t0) {
  const tile_view x = tile_view_of(b, P->x, P->xs, TYPE, P->x_way);
  const tile_view up = tile_view_of(b, P->dy, P->ys, P->y_type, P->y_way);
  tile_fill(P, b, &x, u, t0 - P->halo, P->halo + ROWS + P->after);
  tile_fill(P, b, &up, dy, t0, ROWS + P->after);
  if (t0 < P->halo + b->skew_mask && b->q.old) tile_history(P, b, u, t0 - P->halo);
}
HK_DEV void back_flush(const hk_cu_causal_call *P, const tile_block *b, const float *tile, int t0) {
  const tile_view dx = tile_view_of(b, P->dx, P->dxs, TYPE, P->dx_way);
  tile_flush(P, b, &dx, tile, t0, ROWS);
}
HK_DEV float back_bias(const hk_cu_causal_call *P, const tile_block *b) {
  const int c = b->c0 + threadIdx.x % 32;
  return P->bias && c < P->c ? tile_get((const char *)P->bias, P->f_type, c) : 0.0f;
}

/* ---- 2 to 4 taps */

/* RUN tokens of a lane's channel: u and dy at its first row, which is token t; early: where dz is kept, or NULL. */
typedef struct back_run {
  const float *u, *dy;
  float *early, f[4], bias;
  int t;
} back_run;

HK_DEV void back_pass(const hk_cu_causal_call *P, const tile_block *b, const int w, const back_run *run, float *df,
                      float *dx) {
  const float *u = run->u, *dy = run->dy, *f = run->f;
  float h[4], z, dz[4];
#pragma unroll
  for (int k = 1; k < w; ++k) h[k - 1] = u[-k * PITCH]; /* newest first */
#pragma unroll
  for (int i = 0; i < RUN + w - 1; ++i) {
#pragma unroll
    for (int k = w - 1; k > 0; --k) h[k] = h[k - 1], dz[k] = dz[k - 1];
    h[0] = u[i * PITCH], z = run->bias;
#pragma unroll
    for (int k = 0; k < w; ++k) z = fmaf(f[k], h[k], z);
    dz[0] = (unsigned)(run->t + i) < (unsigned)b->q.length ? causal_slope(P->act, z, dy[i * PITCH]) : 0.0f;
    if (i < RUN) {
      df[w] += dz[0];
#pragma unroll
      for (int k = 0; k < w; ++k) df[k] = fmaf(dz[0], h[k], df[k]);
      if (run->early) run->early[i * PITCH] = dz[0];
    }
    if (i >= w - 1) {
      float sum = 0.0f;
#pragma unroll
      for (int k = 0; k < w; ++k) sum = fmaf(f[k], dz[w - 1 - k], sum);
      dx[i - (w - 1)] = sum;
    }
  }
}

HK_DEV void back_tile(const hk_cu_causal_call *P, const tile_block *b, const int w, float *room, int t0,
                      float *sums) {
  float *u = room, *dy = u + (P->halo + ROWS + P->after) * PITCH, *fs = dy + (ROWS + P->after) * PITCH;
  float *early = fs + 4 * TILE_WIDE, df[5], dx[RUN];
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * RUN, t = t0 - tile_skew(b, lane) + row;
  const int keep = P->dstate_in && t0 == 0 && row == 0;
  back_run run = {u + (P->halo + row) * PITCH + lane, dy + row * PITCH + lane, keep ? early + lane : 0};
  run.t = t;
  back_fill(P, b, u, dy, t0);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < w; ++k) run.f[k] = fs[k * TILE_WIDE + lane], df[k] = 0.0f;
  df[w] = 0.0f, run.bias = back_bias(P, b);
  back_pass(P, b, w, &run, df, dx);
#pragma unroll
  for (int k = 0; k <= w; ++k) sums[k * TILE_WARPS * TILE_WIDE] += df[k];
  __syncthreads();
  back_put(P, b, u, row, t, dx);
  __syncthreads();
  if (P->dx) back_flush(P, b, u, t0);
  if (P->dstate_in && t0 == 0) back_state(P, b, fs, early);
  __syncthreads();
}

HK_DEV void back_few(const hk_cu_causal_call *P, const int w) {
  extern __shared__ float room[];
  const tile_block b = tile_find(P);
  const int end = b.q.t0 + P->chunk, last = b.q.length + b.skew_mask;
  float *f = room + (P->halo + 2 * ROWS + 2 * P->after) * PITCH;
  float *sums = f + 4 * TILE_WIDE + EARLY * PITCH; /* [tap, then bias][warp][channel] */
  if (!b.real) {
    back_idle(P, &b);
    return;
  }
#pragma unroll
  for (int k = 0; k <= w; ++k) sums[k * HK_CU_TILE_THREADS + threadIdx.x] = 0.0f;
  tile_weights(P, &b, f);
#pragma unroll 1
  for (int t0 = b.q.t0; t0 < end && (t0 == b.q.t0 || t0 < last); t0 += ROWS)
    back_tile(P, &b, w, room, t0, sums + threadIdx.x);
  const int taps[2] = {w - 1, -1}, bias[2] = {w, 0};
  back_partial(P, &b, sums, w, TILE_WARPS, taps);
  back_partial(P, &b, sums + w * HK_CU_TILE_THREADS, 1, TILE_WARPS, bias);
}

/* ---- any window */

/* dz of all rows, in the place of dy. */
HK_DEV void causal_slopes(const hk_cu_causal_call *P, const tile_block *b, const float *u, float *dy, const float *f) {
  const int lane = threadIdx.x % 32, t = b->q.t0 - tile_skew(b, lane);
  const float bias = back_bias(P, b);
#pragma unroll 1
  for (int row = threadIdx.x / 32 * RUN; row < ROWS + P->after; row += TILE_WARPS * RUN) {
    float z[RUN];
#pragma unroll
    for (int i = 0; i < RUN; ++i) z[i] = bias;
    if (P->act != HK_CU_NONE) tile_convolve(u + lane, f + lane, P->halo + row, P->window, z, 0);
#pragma unroll
    for (int i = 0; i < RUN; ++i) {
      float *at = dy + (row + i) * PITCH + lane;
      *at = (unsigned)(t + row + i) < (unsigned)b->q.length ? causal_slope(P->act, z[i], *at) : 0.0f;
    }
  }
}

/* sum[m] += over the RUN rows from `row` on of dz * u of k0 + m tokens before. */
HK_DEV void back_taps(const float *u, const float *dz, int row, float *sum) {
  float now[RUN], past[RUN], g[RUN];
  tile_rows(u, row, now), tile_rows(u, row - RUN, past), tile_rows(dz, 0, g);
#pragma unroll
  for (int m = 0; m < RUN; ++m)
#pragma unroll
    for (int i = 0; i < RUN; ++i)
      sum[m] = fmaf(g[i], i >= m ? now[(RUN + i - m) % RUN] : past[(RUN + i - m) % RUN], sum[m]);
}

/* The partial sums: runs of RUN taps over warps; where there are fewer runs, warps share a run by tokens. */
HK_DEV void back_weights(const hk_cu_causal_call *P, const tile_block *b, float *u, const float *dz) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, w = P->window, runs = (w + RUN - 1) / RUN;
  const int parts = runs < TILE_WARPS ? TILE_WARPS / runs : 1, part = warp / runs;
  float sum[RUN], bias = 0.0f;
#pragma unroll
  for (int m = 0; m < RUN; ++m) sum[m] = 0.0f;
#pragma unroll 1
  for (int i = 0; i < RUN; ++i) bias += dz[(warp * RUN + i) * PITCH + lane];
#pragma unroll 1
  for (int run = parts > 1 ? warp % runs : warp; run < runs && part < parts; run += TILE_WARPS) {
#pragma unroll 1
    for (int row = part * RUN; row < ROWS; row += parts * RUN)
      back_taps(u + lane, dz + row * PITCH + lane, P->halo + row - run * RUN, sum);
    if (parts > 1) break;
#pragma unroll 1
    for (int m = 0; m < RUN; ++m) {
      const hk_cu_i64 value = (hk_cu_i64)b->unit * (w + 1) + w - 1 - run * RUN - m;
      if (run * RUN + m < w && b->c0 + lane < P->c) P->partial[value * P->c + b->c0 + lane] = sum[m];
      sum[m] = 0.0f;
    }
  }
  __syncthreads(); /* u may be overwritten now */
  if (parts > 1 && part < parts) {
#pragma unroll
    for (int m = 0; m < RUN; ++m) u[((warp % runs * RUN + m) * parts + part) * TILE_WIDE + lane] = sum[m];
  }
  float *biases = u + TILE_WARPS * RUN * TILE_WIDE;
  biases[warp * TILE_WIDE + lane] = bias;
  __syncthreads();
  const int taps[2] = {w - 1, -1}, to_bias[2] = {w, 0};
  if (parts > 1) back_partial(P, b, u, w, parts, taps);
  back_partial(P, b, biases, 1, TILE_WARPS, to_bias);
  __syncthreads();
}

HK_DEV void back_any(const hk_cu_causal_call *P) {
  extern __shared__ float room[];
  const tile_block b = tile_find(P);
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * RUN;
  float *u = room, *dz = u + (P->halo + ROWS + P->after) * PITCH, *f = dz + (ROWS + P->after) * PITCH, dx[RUN];
  if (!b.real) {
    back_idle(P, &b);
    return;
  }
  tile_weights(P, &b, f);
  back_fill(P, &b, u, dz, b.q.t0);
  __syncthreads();
  causal_slopes(P, &b, u, dz, f);
  __syncthreads();
  if (P->dstate_in && b.q.t0 == 0) back_state(P, &b, f, dz);
  back_weights(P, &b, u, dz);
  if (!P->dx) return;
#pragma unroll
  for (int i = 0; i < RUN; ++i) dx[i] = 0.0f;
  tile_convolve(dz + lane, f + lane, row, P->window, dx, 1);
  back_put(P, &b, u, row, b.q.t0 - tile_skew(&b, lane) + row, dx);
  __syncthreads();
  back_flush(P, &b, u, b.q.t0);
}

/* ---- the sums of all units */

extern "C" __global__ void __launch_bounds__(HK_CU_CAUSAL_THREADS)
    INSTANCE(NAMED, hk_causal_back, sum)(const __grid_constant__ hk_cu_causal_call P) {
  const int thread = blockIdx.x * HK_CU_CAUSAL_THREADS + threadIdx.x, j = thread / P.c, c = thread - j * P.c;
  const hk_cu_i64 step = (hk_cu_i64)(P.window + 1) * P.c;
  const float *at = P.partial + (hk_cu_i64)j * P.c + c;
  double sum = 0;
  if (j > P.window) return;
#pragma unroll 16
  for (int i = 0; i < P.units; ++i) sum += (double)__ldg(at + i * step);
  if (j < P.window && P.df) P.df[(hk_cu_i64)c * P.window + j] = (float)sum;
  if (j == P.window && P.dbias) P.dbias[c] = (float)sum;
}

#define BACK(NAME, W)                                                                                       \
  extern "C" __global__ void __launch_bounds__(HK_CU_TILE_THREADS, 3)                                       \
      NAME(const __grid_constant__ hk_cu_causal_call P) {                                                   \
    back_few(&P, W);                                                                                        \
  }
INSTANCE(BACK, NAMED(hk_causal_back, 2), 2)
INSTANCE(BACK, NAMED(hk_causal_back, 3), 3)
INSTANCE(BACK, NAMED(hk_causal_back, 4), 4)
extern "C" __global__ void __launch_bounds__(HK_CU_TILE_THREADS, 2)
    INSTANCE(NAMED, hk_causal_back, any)(const __grid_constant__ hk_cu_causal_call P) {
  back_any(&P);
}
