/* Depthwise convolution of channels-first tensors on the FMA units: any rank, stride, dilation, padding, multiplier.
 *
 * A block stages the input rows of its planes in shared memory as f32, each element once, by aligned 16-byte loads
 * with single elements at the ends, so rows may start at any element. A thread then slides a register window of TQ
 * values along the taps: one shared load of x and one of w for TQ FMAs. Sums return to shared memory and are stored
 * by aligned 16-byte stores. Element i is at index i + i/TQ: threads that start TQ apart hit different banks. Long
 * filters are staged in chunks of chunk_u taps, depth taps and phases one at a time. The host refuses input
 * dilation. */
#include "cuda/depthwise/line.cuh"

typedef struct first_tile { int type, tq; } first_tile;
/* The part of the problem that one block computes. */
typedef struct first_place {
  int plane, row0, class0, index0;   /* first plane, output row, class, window index */
  int live_planes;
} first_place;

HK_DEV int first_pad(first_tile t, int i) { return i + i / t.tq; }

/* A plane is (n, channel, depth position). */
HK_DEV void first_plane(const hk_cu_dw *P, int plane, int *n, int *k, int *p0) {
  const int nk = dw_div(P->div_out0, plane);
  *p0 = plane - nk * (int)P->g.out[0];
  *n = dw_div(P->div_channels, nk);
  *k = nk - *n * P->channels;
}

HK_DEV float first_one(first_tile t, const char *row, hk_cu_i64 i) {
  return t.type == HK_CU_F32 ? ((const float *)row)[i] : dw_half(t.type, ((const hk_cu_u16 *)row)[i]);
}

/* Stages one input row in its slot: window indices index0 + u0.. of class_run classes; columns outside x are zeros. */
HK_DEV void first_stage_row(const hk_cu_dw *P, first_tile t, const char *row, int live, int col0, int length, int rank,
                            int ranks, float *slot) {
  const hk_cu_geom *g = &P->g;
  const int width = live ? (int)g->in[2] : 0, bytes = dw_type_bytes(t.type), per = 16 / bytes;
  if (P->classes == 1 && g->stride[2] == 1 && g->x.at[2] == 1) {
    const char *start = row + (hk_cu_i64)col0 * bytes;
    const int skew = (int)((hk_cu_u64)start & 15) / bytes; /* elements between the aligned address and start */
    const int chunks = (length + skew + per - 1) / per;
    for (int c = rank; c < chunks; c += 2 * ranks) {
      uint4 u[2];
      int whole[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int at = (c + h * ranks) * per - skew;
        whole[h] = at >= 0 && at + per <= length && col0 + at >= 0 && col0 + at + per <= width;
        if (whole[h]) u[h] = __ldg((const uint4 *)(start + (hk_cu_i64)at * bytes));
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int at = (c + h * ranks) * per - skew;
        if (whole[h]) {
          float v[8];
          dw_unpack(t.type, u[h], v);
#pragma unroll
          for (int i = 0; i < per; ++i) slot[(unsigned)(at + i) + (unsigned)(at + i) / t.tq] = v[i];
        } else {
#pragma unroll 1
          for (int i = at < 0 ? 0 : at; i < at + per && i < length; ++i)
            slot[first_pad(t, i)] = (unsigned)(col0 + i) < (unsigned)width ? first_one(t, start, i) : 0.0f;
        }
      }
    }
    return;
  }
  const int run = P->first.class_run, total = length * run;
  for (int i = rank; i < total; i += ranks) {
    const int w = run == 1 ? i : i / run, rho = i - w * run;
    const int col = col0 + (int)g->stride[2] * (rho + P->classes * w);
    slot[first_pad(t, i)] = (unsigned)col < (unsigned)width ? first_one(t, row, col * g->x.at[2]) : 0.0f;
  }
}

HK_DEV void first_stage(const hk_cu_dw *P, first_tile t, first_place at, int d, int f, int u0, int u1, float *tile) {
  const hk_cu_geom *g = &P->g;
  const int rows = P->first.planes * P->first.slots, ranks = rows >= (int)blockDim.x / 32 ? 32 : (int)blockDim.x / rows;
  const int team = threadIdx.x / ranks, teams = blockDim.x / ranks, rank = threadIdx.x - team * ranks;
  const int length = P->first.class_lanes * t.tq + (u1 - u0) - 1;
  const int col0 = (int)g->stride[2] * (at.class0 + P->classes * (at.index0 + u0)) + f * (int)g->dil[2] - (int)g->lo[2];
  if (team >= teams) return;
  for (int i = team; i < rows; i += teams) {
    const int pl = i / P->first.slots, z = i - pl * P->first.slots;
    int n, k, p0;
    first_plane(P, at.plane + pl, &n, &k, &p0);
    const int channel = g->kg == 1 ? k : k / (int)g->kg;
    const int i0 = p0 * (int)g->stride[0] + d * (int)g->dil[0] - (int)g->lo[0];
    const int i1 = at.row0 * (int)g->stride[1] - (int)g->lo[1] + z * P->first.slot_step;
    const int live = pl < at.live_planes && (unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)g->in[1];
    const char *row = (const char *)P->x + (n * g->x.outer + channel * g->x.group + i0 * g->x.at[0] + i1 * g->x.at[1]) *
                                               dw_type_bytes(t.type);
    first_stage_row(P, t, row, live, col0, length, rank, ranks, tile + i * P->first.slot_length);
  }
}

/* Stages the weights of one depth tap and phase, [plane][row tap][chunk_u]. */
HK_DEV void first_weights(const hk_cu_dw *P, first_place at, int d, int f, int u0, int us, float *weights) {
  const int rows = P->first.planes * (int)P->g.win[1];
  for (int row = threadIdx.x / 32; row < rows; row += blockDim.x / 32) {
    const int pl = row / (int)P->g.win[1], r = row - pl * (int)P->g.win[1];
    if (pl >= at.live_planes) continue;
    int n, k, p0;
    first_plane(P, at.plane + pl, &n, &k, &p0);
    const float *from = (const float *)P->packed + (hk_cu_i64)k * P->taps +
                        ((d * (int)P->g.win[1] + r) * P->phases + f) * P->taps_u + u0;
    for (int u = threadIdx.x % 32; u < us; u += 32) weights[row * P->first.weight_pitch + u] = __ldg(from + u);
  }
}

/* Accumulates TQ sums along us taps of one row. tile: at the first value; run: shared words between values. With run
 * 1 all bank padding is constant, since the first index is a multiple of TQ. */
HK_DEV void first_row(first_tile t, const float *tile, int index, int run, int us, const float *weights, float *acc) {
  float window[16];
  const float *x = tile + index + index / t.tq;
#pragma unroll
  for (int j = 0; j < t.tq - 1; ++j) window[j] = run == 1 ? x[j] : tile[first_pad(t, index + j * run)];
  int at = index + (t.tq - 1) * run;
#pragma unroll 1
  for (; us >= t.tq; us -= t.tq, weights += t.tq, x += t.tq + 1) {
    float w[16];
#pragma unroll
    for (int j = 0; j < t.tq; ++j) {
      if (j % 4 == 0) *(float4 *)(w + j) = *(const float4 *)(weights + j);
      window[(t.tq - 1 + j) % t.tq] = run == 1 ? x[t.tq - 1 + j + (j > 0)] : tile[first_pad(t, at)];
      at += run;
#pragma unroll
      for (int i = 0; i < t.tq; ++i) acc[i] = fmaf(window[(i + j) % t.tq], w[j], acc[i]);
    }
  }
#pragma unroll
  for (int j = 0; j < t.tq - 1; ++j) {
    if (j < us) {
      window[(t.tq - 1 + j) % t.tq] = run == 1 ? x[t.tq - 1 + j + (j > 0)] : tile[first_pad(t, at)];
      at += run;
      const float w = weights[j];
#pragma unroll
      for (int i = 0; i < t.tq; ++i) acc[i] = fmaf(window[(i + j) % t.tq], w, acc[i]);
    }
  }
}

/* Stores runs of consecutive outputs, one per row and segment, from shared memory to y. */
HK_DEV void first_store(const hk_cu_dw *P, first_tile t, first_place at, float *tile, int pitch) {
  const hk_cu_geom *g = &P->g;
  const int segments = P->classes > P->first.class_run ? t.tq : 1;
  const int span = segments > 1 ? P->first.class_run : P->first.lanes * t.tq;
  const int lines = P->first.planes * P->first.rows * segments,
            ranks = lines >= (int)blockDim.x / 32 ? 32 : (int)blockDim.x / lines;
  const int team = threadIdx.x / ranks, teams = blockDim.x / ranks, rank = threadIdx.x - team * ranks;
  if (team >= teams) return;
  for (int i = team; i < lines; i += teams) {
    const int seg = i % segments, line = i / segments, rl = line % P->first.rows, pl = line / P->first.rows;
    const int q0 = at.class0 + P->classes * (at.index0 + seg);
    dw_line l = {0, 0, {0, at.row0 + rl, q0}, (int)g->out[2] - q0};
    if (pl >= at.live_planes || l.p[1] >= g->out[1]) continue;
    first_plane(P, at.plane + pl, &l.n, &l.k, &l.p[0]);
    if (l.length > span) l.length = span;
    if (segments > 1 && l.length > P->classes - at.class0) l.length = P->classes - at.class0;
    dw_line_store(P, t.type, l, tile + line * pitch, P->classes == 1 ? dw_line_skew(P, t.type, l) : seg * span, rank,
                  ranks, 0);
  }
}

HK_DEV void first_body(const hk_cu_dw *P, first_tile t, float *tile) {
  const hk_cu_geom *g = &P->g;
  unsigned rest = blockIdx.x;
  const int lane_block = rest % (unsigned)P->first.lane_blocks;
  rest /= (unsigned)P->first.lane_blocks;
  const int row_block = rest % (unsigned)P->first.row_blocks;
  first_place at;
  at.plane = rest / (unsigned)P->first.row_blocks * P->first.planes;
  at.live_planes =
      P->first.plane_count - at.plane < P->first.planes ? P->first.plane_count - at.plane : P->first.planes;
  at.row0 = row_block * P->first.rows;
  const int class_blocks = (P->classes + P->first.class_run - 1) / P->first.class_run;
  at.class0 = lane_block % class_blocks * P->first.class_run;
  at.index0 = lane_block / class_blocks * P->first.class_lanes * t.tq;
  float *weights = tile + P->first.weights_at;
  const int line = threadIdx.x / (unsigned)P->first.lanes, lane = threadIdx.x - line * P->first.lanes;
  const int pl = line / (unsigned)P->first.rows, rl = line - pl * P->first.rows;
  const int cl = P->first.class_run == 1 ? lane : lane / P->first.class_run,
            index = cl * t.tq * P->first.class_run + lane - cl * P->first.class_run;
  const int works = pl < at.live_planes;
  float acc[16];
#pragma unroll
  for (int i = 0; i < t.tq; ++i) acc[i] = 0.0f;
  for (int df = 0; df < (int)g->win[0] * P->phases; ++df) {
    const int d = P->phases == 1 ? df : df / P->phases, f = df - d * P->phases;
    const int us = P->phases == 1 ? P->taps_u : ((int)g->win[2] - f + P->phases - 1) / P->phases;
    for (int u0 = 0; u0 < us; u0 += P->first.chunk_u) {
      const int u1 = u0 + P->first.chunk_u < us ? u0 + P->first.chunk_u : us;
      __syncthreads();
      first_stage(P, t, at, d, f, u0, u1, tile);
      first_weights(P, at, d, f, u0, u1 - u0, weights);
      __syncthreads();
      if (!works) continue;
#pragma unroll 1
      for (int r = 0; r < (int)g->win[1]; ++r) {
        const float *from =
            tile + (pl * P->first.slots + rl * P->first.slot_rows + r * P->first.slot_taps) * P->first.slot_length;
        const float *w = weights + (pl * (int)g->win[1] + r) * P->first.weight_pitch;
        if (P->first.class_run == 1) first_row(t, from, index, 1, u1 - u0, w, acc);
        else first_row(t, from, index, P->first.class_run, u1 - u0, w, acc);
      }
    }
  }
  __syncthreads();
  const int pitch = P->first.lanes * (t.tq + t.tq / 8) + 10;
  /* Output order: classes innermost when the block has all of them, otherwise index by index in runs of classes. */
  if (works) {
    float *to = tile + line * pitch;
    if (P->classes == 1) {
      dw_line l = {0, 0, {0, at.row0 + rl, at.index0}, 0};
      first_plane(P, at.plane + pl, &l.n, &l.k, &l.p[0]);
      const int skew = dw_line_skew(P, t.type, l);
      to += lane * (t.tq + t.tq / 8);
#pragma unroll
      for (int i = 0; i < t.tq; ++i) to[dw_line_at(i + skew)] = acc[i];
    } else {
#pragma unroll
      for (int i = 0; i < t.tq; ++i) to[dw_line_at(index + i * P->first.class_run)] = acc[i];
    }
  }
  __syncthreads();
  first_store(P, t, at, tile, pitch);
}

#define KERNEL(name, type, tq, threads, blocks)                                                            \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ hk_cu_dw P) { \
    extern __shared__ float4 raw[];                                                                        \
    dw_begin();                                                                                            \
    const first_tile t = {type, tq};                                                                       \
    first_body(&P, t, (float *)raw);                                                                       \
  }
KERNEL(hk_dw_first_f32_16, HK_CU_F32, 16, 256, 3)
KERNEL(hk_dw_first_bf16_16, HK_CU_BF16, 16, 256, 3)
KERNEL(hk_dw_first_f16_16, HK_CU_F16, 16, 256, 3)
KERNEL(hk_dw_first_f32_8, HK_CU_F32, 8, 256, 4)
KERNEL(hk_dw_first_bf16_8, HK_CU_BF16, 8, 256, 4)
KERNEL(hk_dw_first_f16_8, HK_CU_F16, 8, 256, 4)
