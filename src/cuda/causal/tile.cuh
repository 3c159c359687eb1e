/* Tiles of 32 channels and some tokens as f32 in shared memory, [row][channel], whatever lies contiguous in memory:
 * lanes own channels, and a thread slides along time in registers. Rows of PITCH floats keep both directions free of
 * bank conflicts.
 *
 * Row r of channel i is token first + r - skew(i). Where time is contiguous the skew makes vectors of 16 bytes along
 * time aligned in every channel, so that a tile has whole vectors but for the ends of a sequence; else it is 0. */
#ifndef HK_CUDA_CAUSAL_TILE_CUH
#define HK_CUDA_CAUSAL_TILE_CUH
#include "cuda/causal/common.cuh"

enum { VEC = CAUSAL_VEC, TILE_WIDE = 32, PITCH = 33, TILE_WARPS = HK_CU_TILE_THREADS / 32, TILE_BATCH = 3 };

/* A block: its unit, its first channel, and how the skew of a channel follows from its number. */
typedef struct tile_block {
  causal_unit q;
  int c0, unit, real; /* real: the unit has tokens or a state */
  int skew, skew_step, skew_mask;
} tile_block;

/* A tensor as a block sees it: channel c0 of token 0. */
typedef struct tile_view {
  char *at;
  hk_cu_i64 channel, time;
  int type, way;
} tile_view;

HK_DEV int tile_skew(const tile_block *b, int i) { return (b->skew + i * b->skew_step) & b->skew_mask; }

HK_DEV tile_view tile_view_of(const tile_block *b, const void *p, hk_cu_causal_view s, int type, int way) {
  const hk_cu_i64 first = causal_base(&b->q, s) + b->c0 * s.channel;
  const tile_view v = {(char *)causal_at(p, type, first), s.channel, s.time, type, way};
  return v;
}

HK_DEV tile_block tile_find(const hk_cu_causal_call *P) {
  tile_block b = {};
  int group;
  if (P->x_way == HK_CU_TIME_VECTORS || P->x_way == HK_CU_TIME_SINGLE) {
    group = div_by(blockIdx.x, P->by_units), b.unit = blockIdx.x - group * P->units;
  } else {
    b.unit = div_by(blockIdx.x, P->by_groups), group = blockIdx.x - b.unit * P->groups;
  }
  b.c0 = group * TILE_WIDE;
  b.real = causal_find(P, b.unit, &b.q);
  if (b.real && P->x_way == HK_CU_TIME_VECTORS) {
    const char *x = causal_at(P->x, TYPE, causal_base(&b.q, P->xs) + b.c0 * P->xs.channel);
    b.skew = (int)((hk_cu_u64)x / TYPE_BYTES) & (VEC - 1), b.skew_step = (int)(P->xs.channel & (VEC - 1));
    b.skew_mask = VEC - 1;
  }
  return b;
}

HK_DEV float tile_get(const char *p, int type, hk_cu_i64 i) {
  return type == HK_CU_F32   ? __ldg((const float *)p + i)
         : type == HK_CU_F16 ? f32_from_f16(__ldg((const hk_cu_u16 *)p + i))
                             : f32_from_bf16(__ldg((const hk_cu_u16 *)p + i));
}

/* A token of the sequence, or zero. */
HK_DEV float tile_value(const tile_block *b, const tile_view *v, int i, int t) {
  return (unsigned)t < (unsigned)b->q.length ? tile_get(v->at, v->type, i * v->channel + t * v->time) : 0.0f;
}

/* Where vector number `item` of this lane lies: VEC rows of a channel, or VEC channels of a row. */
HK_DEV void tile_vector(const int way, int item, int *row, int *i) {
  const int lane = threadIdx.x % 32;
  if (way == HK_CU_TIME_VECTORS) {
    *row = item / (32 / VEC) * 32 + lane % (32 / VEC) * VEC;
    *i = item % (32 / VEC) * VEC + lane / (32 / VEC);
  } else {
    *row = item * VEC + lane / (32 / VEC);
    *i = lane % (32 / VEC) * VEC;
  }
}
HK_DEV int tile_items(const int way, int rows) {
  return way == HK_CU_TIME_VECTORS ? (rows + 31) / 32 * (32 / VEC) : (rows + VEC - 1) / VEC;
}

HK_DEV void tile_fill_vectors(const hk_cu_causal_call *P, const tile_block *b, const tile_view *v, float *tile,
                              int first, int rows, const int way) {
  const int items = tile_items(way, rows);
  const int down = way == HK_CU_TIME_VECTORS ? PITCH : 1, length = b->q.length;
#pragma unroll 1
  for (int item0 = threadIdx.x / 32; item0 < items; item0 += TILE_WARPS * TILE_BATCH) {
    hk_cu_u32 raw[TILE_BATCH * 4];
    int whole = 0;
#pragma unroll
    for (int k = 0; k < TILE_BATCH; ++k) {
      int row, i;
      tile_vector(way, item0 + k * TILE_WARPS, &row, &i);
      const int t = first + row - tile_skew(b, i), more = way == HK_CU_TIME_VECTORS ? VEC : 1;
      if (row >= rows || b->c0 + i >= P->c || t < 0 || t + more > length) continue;
      causal_load_raw(v->at + (i * v->channel + t * v->time) * TYPE_BYTES, 16, raw + 4 * k);
      whole |= 1 << k;
    }
#pragma unroll
    for (int k = 0; k < TILE_BATCH; ++k) {
      int row, i;
      float u[VEC];
      tile_vector(way, item0 + k * TILE_WARPS, &row, &i);
      if (row >= rows || b->c0 + i >= P->c) continue;
      float *to = tile + row * PITCH + i;
      if (whole >> k & 1) {
        causal_unpack(TYPE, VEC, raw + 4 * k, u);
#pragma unroll
        for (int e = 0; e < VEC; ++e) to[e * down] = u[e];
      } else {
        const int t = first + row - tile_skew(b, i);
#pragma unroll 1
        for (int e = 0; e < VEC; ++e)
          to[e * down] = way == HK_CU_TIME_VECTORS ? tile_value(b, v, i, t + e) : 0.0f;
      }
    }
  }
}

/* Rows 0 to rows-1 of a tile, each value by itself; lanes along what has the shorter stride. */
HK_DEV int tile_single(const int way, int item, int *row, int *i) {
  const int lane = threadIdx.x % 32;
  if (way == HK_CU_TIME_SINGLE) *row = item / 32 * 32 + lane, *i = item % 32;
  else *row = item, *i = lane;
  return 0;
}
HK_DEV int tile_singles(const int way, int rows) { return way == HK_CU_TIME_SINGLE ? (rows + 31) / 32 * 32 : rows; }

HK_DEV void tile_fill_single(const hk_cu_causal_call *P, const tile_block *b, const tile_view *v, float *tile,
                             int first, int rows, const int way) {
  const int items = tile_singles(way, rows);
#pragma unroll 4
  for (int item = threadIdx.x / 32; item < items; item += TILE_WARPS) {
    int row, i;
    tile_single(way, item, &row, &i);
    if (row < rows && b->c0 + i < P->c)
      tile[row * PITCH + i] = tile_value(b, v, i, first + row - tile_skew(b, i));
  }
}

/* Fills rows 0 to rows-1, a multiple of VEC, with tokens from first on; zeros outside the sequence. */
HK_DEV void tile_fill(const hk_cu_causal_call *P, const tile_block *b, const tile_view *v, float *tile, int first,
                      int rows) {
  const int way = v->way;
  if (way == HK_CU_TIME_VECTORS) tile_fill_vectors(P, b, v, tile, first, rows, HK_CU_TIME_VECTORS);
  else if (way == HK_CU_CHANNEL_VECTORS) tile_fill_vectors(P, b, v, tile, first, rows, HK_CU_CHANNEL_VECTORS);
  else tile_fill_single(P, b, v, tile, first, rows, way);
}

/* Puts the values before the sequence's first token into a tile that has been filled from `first` < 0 on. */
HK_DEV void tile_history(const hk_cu_causal_call *P, const tile_block *b, float *tile, int first) {
  const int lane = threadIdx.x % 32, skew = tile_skew(b, lane);
  __syncthreads();
  if (b->c0 + lane >= P->c) return;
#pragma unroll 1
  for (int k = threadIdx.x / 32; k < P->window - 1; k += TILE_WARPS) {
    const int row = -1 - k - first + skew;
    if (row >= 0) tile[row * PITCH + lane] = causal_history(P, &b->q, b->c0 + lane, -1 - k);
  }
}

/* Multiplies (or adds to) the tile's tokens by those of a gate or residual. */
HK_DEV void tile_join(const hk_cu_causal_call *P, const tile_block *b, const tile_view *v, float *tile, int first,
                      int rows, const int add) {
  const int way = v->way, items = tile_singles(way, rows);
#pragma unroll 4
  for (int item = threadIdx.x / 32; item < items; item += TILE_WARPS) {
    int row, i;
    tile_single(way, item, &row, &i);
    const int t = first + row - tile_skew(b, i);
    if (row >= rows || b->c0 + i >= P->c || (unsigned)t >= (unsigned)b->q.length) continue;
    const float g = tile_get(v->at, v->type, i * v->channel + t * v->time);
    float *at = tile + row * PITCH + i;
    *at = add ? *at + g : *at * g;
  }
}

HK_DEV void tile_flush_vectors(const hk_cu_causal_call *P, const tile_block *b, const tile_view *v, const float *tile,
                               int first, int rows, const int way) {
  const int items = tile_items(way, rows), down = way == HK_CU_TIME_VECTORS ? PITCH : 1, length = b->q.length;
#pragma unroll 2
  for (int item = threadIdx.x / 32; item < items; item += TILE_WARPS) {
    int row, i;
    float y[VEC];
    tile_vector(way, item, &row, &i);
    const int t = first + row - tile_skew(b, i), more = way == HK_CU_TIME_VECTORS ? VEC : 1;
    if (row >= rows || b->c0 + i >= P->c || t >= length || t + more <= 0) continue;
#pragma unroll
    for (int e = 0; e < VEC; ++e) y[e] = tile[row * PITCH + i + e * down];
    if (t >= 0 && t + more <= length) {
      causal_store_as(v->at + (i * v->channel + t * v->time) * TYPE_BYTES, TYPE, VEC, y);
    } else { /* along time, the end of a sequence */
#pragma unroll
      for (int e = 0; e < VEC; ++e)
        if ((unsigned)(t + e) < (unsigned)length) causal_put(v->at, TYPE, i * v->channel + (t + e) * v->time, y[e]);
    }
  }
}

/* Stores the tokens of rows 0 to rows-1 that belong to the sequence. */
HK_DEV void tile_flush(const hk_cu_causal_call *P, const tile_block *b, const tile_view *v, const float *tile,
                       int first, int rows) {
  const int way = v->way;
  if (way == HK_CU_TIME_VECTORS) tile_flush_vectors(P, b, v, tile, first, rows, HK_CU_TIME_VECTORS);
  else if (way == HK_CU_CHANNEL_VECTORS) tile_flush_vectors(P, b, v, tile, first, rows, HK_CU_CHANNEL_VECTORS);
  else {
    const int items = tile_singles(way, rows);
#pragma unroll 4
    for (int item = threadIdx.x / 32; item < items; item += TILE_WARPS) {
      int row, i;
      tile_single(way, item, &row, &i);
      const int t = first + row - tile_skew(b, i);
      if (row < rows && b->c0 + i < P->c && (unsigned)t < (unsigned)b->q.length)
        causal_put(v->at, v->type, i * v->channel + t * v->time, tile[row * PITCH + i]);
    }
  }
}

/* Weights of the block's channels, newest tap first: f[k*TILE_WIDE + channel]. */
HK_DEV void tile_weights(const hk_cu_causal_call *P, const tile_block *b, float *f) {
  const int lane = threadIdx.x % 32, w = P->window;
  const char *at = causal_at(P->f, P->f_type, (b->c0 + lane) * P->f_channel);
  if (b->c0 + lane >= P->c || !P->f) return; /* without tokens there may be none */
#pragma unroll 4
  for (int k = threadIdx.x / 32; k < w; k += TILE_WARPS)
    f[k * TILE_WIDE + lane] = tile_get(at, P->f_type, (w - 1 - k) * P->f_tap);
}

/* sum[i] += `count` taps, at most 16, over 16 rows. now: u of these rows, as many before as the first tap; past:
 * of the 16 rows before these. f: the weights of tap k0 on, of this lane. mirror: the rows after, ascending. */
enum { RUN = 16 };
HK_DEV void tile_taps(float *sum, const float *now, const float *past, const float *f, int count, const int mirror) {
  if (count >= RUN) {
#pragma unroll
    for (int m = 0; m < RUN; ++m) {
      const float w = f[m * TILE_WIDE];
#pragma unroll
      for (int i = 0; i < RUN; ++i)
        sum[i] = fmaf(w, mirror ? (i + m < RUN ? now[(i + m) % RUN] : past[(i + m) % RUN])
                                : (i >= m ? now[(RUN + i - m) % RUN] : past[(RUN + i - m) % RUN]), sum[i]);
    }
  } else {
#pragma unroll
    for (int m = 0; m < RUN; ++m)
      if (m < count) {
        const float w = f[m * TILE_WIDE];
#pragma unroll
        for (int i = 0; i < RUN; ++i)
          sum[i] = fmaf(w, mirror ? (i + m < RUN ? now[(i + m) % RUN] : past[(i + m) % RUN])
                                  : (i >= m ? now[(RUN + i - m) % RUN] : past[(RUN + i - m) % RUN]), sum[i]);
      }
  }
}
HK_DEV void tile_rows(const float *tile, int row, float *u) {
#pragma unroll
  for (int i = 0; i < RUN; ++i) u[i] = tile[(row + i) * PITCH];
}

/* The sums of RUN rows from `row` on, by any number of taps; tile and f are at this lane's channel. */
HK_DEV void tile_convolve(const float *tile, const float *f, int row, int w, float *sum, const int mirror) {
  const int step = mirror ? RUN : -RUN;
  float a[RUN], b[RUN];
  tile_rows(tile, row, a);
#pragma unroll 1
  for (int k = 0;; k += 2 * RUN) {
    row += step, tile_rows(tile, row, b);
    tile_taps(sum, a, b, f + k * TILE_WIDE, w - k, mirror);
    if (k + RUN >= w) break;
    row += step, tile_rows(tile, row, a);
    tile_taps(sum, b, a, f + (k + RUN) * TILE_WIDE, w - k - RUN, mirror);
    if (k + 2 * RUN >= w) break;
  }
}
/* The same of at most 8 taps, each of which reads no more than it needs. */
HK_DEV void tile_convolve_few(const float *tile, const float *f, int row, int w, float *sum, const int most) {
  float u[RUN + 7];
#pragma unroll
  for (int i = 0; i < RUN + most - 1; ++i) u[i] = tile[(row - (most - 1) + i) * PITCH];
#pragma unroll
  for (int k = 0; k < most; ++k)
    if (k < w) {
      const float g = f[k * TILE_WIDE];
#pragma unroll
      for (int i = 0; i < RUN; ++i) sum[i] = fmaf(g, u[most - 1 + i - k], sum[i]);
    }
}
#endif
