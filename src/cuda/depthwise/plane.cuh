/* Depthwise 3x3, 5x5 and 7x7 of channels-first images on the FMA units, stride 1 or 2, any multiplier, f32, f16,
 * bf16.
 *
 * A unit is a strip of output rows of one plane. A block stages the input rows of its units in shared memory, in
 * pieces of 2, 4, 8 or 16 bytes as the row length allows, with zero padding around them so that the loop needs no
 * bounds tests. A thread owns TQ neighbouring output columns and walks down some rows of the strip, adding each
 * input row to the J = ceil(size/stride) output rows that use it, like slide.cuh. Results go to shared memory and
 * are stored in runs: the rows of a strip are one run of y. The planes of x and y must have no gaps. Registers: TQ*J
 * sums, one per column of the input row. The host refuses dilation. */
#include "cuda/depthwise/common.cuh"

#define TQ HK_SLIDE_COLUMNS
#define BYTES (TYPE == HK_CU_F32 ? 4 : 2)
#define COLUMNS_MOST ((TQ - 1) * 2 + 7)

typedef struct plane_tile { int size, stride, plain; } plane_tile; /* plain: the epilogue is a conversion only */
typedef struct plane_place {
  int n, k, p1, rows;                /* image, output channel, first output row, output rows */
  hk_cu_i64 from, to;                /* elements: offset of the plane of x; of the strip's first output in y */
} plane_place;

HK_DEV constexpr int plane_sets(plane_tile t) { return (t.size + t.stride - 1) / t.stride; }
HK_DEV constexpr int plane_columns(plane_tile t) { return (TQ - 1) * t.stride + t.size; }
HK_DEV constexpr int plane_weights(plane_tile t) { return 2 * plane_sets(t) * t.stride * t.size; }

HK_DEV float plane_value(const char *p) {
  return TYPE == HK_CU_F32 ? *(const float *)p : dw_half(TYPE, *(const hk_cu_u16 *)p);
}

/* Copies one piece of x to shared memory, or zeros. */
HK_DEV void plane_copy(const int bytes, hk_cu_u32 to, const char *from, int in) {
  if (bytes == 2) {
    const hk_cu_u16 v = in ? __ldg((const hk_cu_u16 *)from) : (hk_cu_u16)0;
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(v) : "memory");
  } else if (bytes == 16) {
    dw_copy16(to, from, in ? 16 : 0);
  } else if (bytes == 8) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(in ? 8 : 0) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(in ? 4 : 0) : "memory");
  }
}

/* Stages input rows first.. of the unit, slot_length pieces per row; rows outside x are zeros. */
HK_DEV void plane_stage(const hk_cu_dw *P, const int bytes, plane_place at, int first, int lane, hk_cu_u32 to) {
  const hk_cu_geom *g = &P->g;
  const int per = bytes / BYTES, count = P->plane.slots * P->plane.slot_length, width = (int)g->in[2];
  const char *plane = (const char *)P->x + at.from * BYTES;
  for (int i = lane; i < count; i += P->plane.lanes) {
    const int z = dw_div(P->plane.div_patch, i), c = i - z * P->plane.slot_length, row = first + z,
              col = c * per - P->plane.lead;
    const int in = (unsigned)row < (unsigned)g->in[1] && (unsigned)col < (unsigned)width;
    plane_copy(bytes, to + z * P->plane.patch_pitch + c * bytes, in ? plane + (row * width + col) * BYTES : plane, in);
  }
}

/* Writes the tap rows twice, so that all sets reach theirs from one pointer. */
HK_DEV void plane_table(const hk_cu_dw *P, plane_tile t, int k, int lane, float *table) {
  const int rows = plane_sets(t) * t.stride;
  for (int i = lane; i < plane_weights(t); i += P->plane.lanes) {
    const int b = i / t.size, row = b < rows ? b : b - rows;
    table[i] =
        row < t.size ? __ldg((const float *)P->packed + (hk_cu_i64)k * P->taps + row * t.size + i % t.size) : 0.0f;
  }
}

HK_DEV void plane_add(plane_tile t, const float *v, const float *w, float *acc) {
#pragma unroll
  for (int s = 0; s < t.size; ++s) {
    const float f = w[s];
#pragma unroll
    for (int i = 0; i < TQ; ++i) acc[i] = fmaf(v[i * t.stride + s], f, acc[i]);
  }
}

HK_DEV void plane_finish(const hk_cu_dw *P, plane_place at, int p1, int q0, float *v) {
  const hk_cu_geom *g = &P->g;
  float cv[TQ];
#pragma unroll
  for (int i = 0; i < TQ; ++i) {
    const int p[3] = {0, p1, q0 + i};
    cv[i] = P->e.residual && q0 + i < g->out[2]
                ? load_f32(P->e.c, pixel_offset(&g->c, at.n, p) + dw_channel(g, &g->c, at.k), g->y_type)
                : 0.0f;
  }
  dw_finish(&P->e, TQ, TQ, at.k, 0, cv, v);
}

HK_DEV void plane_keep(const hk_cu_dw *P, int q0, const float *v, char *to) {
#pragma unroll
  for (int i = 0; i < TQ; ++i)
    if (q0 + i < (int)P->g.out[2]) {
      if (TYPE == HK_CU_F32) ((float *)to)[i] = v[i];
      else ((hk_cu_u16 *)to)[i] = TYPE == HK_CU_BF16 ? bf16_from_f32(v[i]) : f16_from_f32(v[i]);
    }
}

/* Step m of rows + J - 1, see slide.cuh; in: shared memory at the step's first input row and column; out: at output
 * row 0. */
HK_DEV void plane_step(const hk_cu_dw *P, plane_tile t, plane_place at, int m, int rows, const int ring, const char *in,
                       const float *table, int r0, int q0, char *out, float (*acc)[TQ]) {
  const int sets = plane_sets(t), done = ring + 1 == sets ? 0 : ring + 1;
  unsigned live = (1u << sets) - 1;
  if (m < sets - 1 || m >= rows) {
    live = 0;
#pragma unroll
    for (int a = 0; a < sets; ++a)
      if ((unsigned)(m - a) < (unsigned)rows) live |= 1u << (ring - a < 0 ? ring - a + sets : ring - a);
  }
#pragma unroll
  for (int sub = 0; sub < t.stride; ++sub, in += P->plane.patch_pitch) {
    float v[COLUMNS_MOST];
#pragma unroll
    for (int c = 0; c < plane_columns(t); ++c) v[c] = plane_value(in + c * BYTES);
    unsigned now = live;
    if ((sets - 1) * t.stride + sub >= t.size) now &= ~(1u << done);
    const float *w = table + ((ring + sets) * t.stride + sub) * t.size;
#pragma unroll
    for (int j = 0; j < sets; ++j)
      if (now >> j & 1) plane_add(t, v, w - j * t.stride * t.size, acc[j]);
  }
  if (m < sets - 1) return;
  const int row = r0 + m - (sets - 1);
  char *to = out + (row * (int)P->g.out[2] + q0) * BYTES;
  float v[TQ];
#pragma unroll
  for (int j = 0; j < sets; ++j)
    if (j == done) {
#pragma unroll
      for (int i = 0; i < TQ; ++i) v[i] = acc[j][i], acc[j][i] = 0.0f;
      /* stored here: after the branch the compiler would select among all sets */
      if (t.plain) plane_keep(P, q0, v, to);
    }
  if (t.plain) return;
  plane_finish(P, at, at.p1 + row, q0, v);
  plane_keep(P, q0, v, to);
}

/* Stores the unit's results, one run of y, by aligned 16-byte stores. out: at the aligned address. */
HK_DEV void plane_store(const hk_cu_dw *P, plane_place at, int skew, int lane, const char *out) {
  const int per = 16 / BYTES, length = at.rows * (int)P->g.out[2], pieces = (length + skew + per - 1) / per;
  char *y = (char *)P->e.y + at.to * BYTES;
  for (int c = lane; c < pieces; c += P->plane.lanes) {
    const int o = c * per - skew;
    if (o >= 0 && o + per <= length) {
      *(uint4 *)(y + o * BYTES) = *(const uint4 *)(out + c * 16);
    } else {
#pragma unroll 1
      for (int i = o < 0 ? 0 : o; i < o + per && i < length; ++i) {
        if (TYPE == HK_CU_F32) ((float *)y)[i] = ((const float *)out)[i + skew];
        else ((hk_cu_u16 *)y)[i] = ((const hk_cu_u16 *)out)[i + skew];
      }
    }
  }
}

HK_DEV plane_place plane_begin(const hk_cu_dw *P, int unit) {
  const hk_cu_geom *g = &P->g;
  plane_place at;
  const int plane = dw_div(P->plane.div_strips, unit);
  at.p1 = (unit - plane * P->plane.strips) * P->plane.strip_rows;
  at.n = dw_div(P->div_channels, plane);
  at.k = plane - at.n * P->channels;
  at.rows = (int)g->out[1] - at.p1 < P->plane.strip_rows ? (int)g->out[1] - at.p1 : P->plane.strip_rows;
  at.from = at.n * g->x.outer + (g->kg == 1 ? at.k : at.k / (int)g->kg) * g->x.group;
  at.to = at.n * g->y.outer + dw_channel(g, &g->y, at.k) + (hk_cu_i64)at.p1 * g->out[2];
  return at;
}

/* Computes the rows of one thread. */
HK_DEV void plane_walk(const hk_cu_dw *P, plane_tile t, plane_place at, int lane, const char *in, const float *table,
                       char *out) {
  const int sub = lane / P->plane.row_groups, q0 = (lane - sub * P->plane.row_groups) * TQ,
            r0 = sub * P->plane.tile_rows;
  const int rows = at.rows - r0 < P->plane.tile_rows ? at.rows - r0 : P->plane.tile_rows;
  if (rows <= 0) return;
  float acc[7][TQ];
#pragma unroll
  for (int j = 0; j < plane_sets(t); ++j)
#pragma unroll
    for (int i = 0; i < TQ; ++i) acc[j][i] = 0.0f;
  const int steps = rows + plane_sets(t) - 1;
  in += r0 * t.stride * P->plane.patch_pitch + (q0 * t.stride + P->plane.lead - (int)P->g.lo[2]) * BYTES;
  if (t.size == 3) {
    float w[2 * 3 * 2 * 3];
#pragma unroll
    for (int i = 0; i < plane_weights(t); ++i) w[i] = table[i];
#pragma unroll 1
    for (int m = 0; m < steps; m += plane_sets(t)) {
#pragma unroll
      for (int ring = 0; ring < plane_sets(t); ++ring, in += t.stride * P->plane.patch_pitch)
        if (m + ring < steps) plane_step(P, t, at, m + ring, rows, ring, in, w, r0, q0, out, acc);
    }
  } else {
    int ring = 0;
#pragma unroll 1
    for (int m = 0; m < steps; ++m, in += t.stride * P->plane.patch_pitch) {
      plane_step(P, t, at, m, rows, ring, in, table, r0, q0, out, acc);
      ring = ring + 1 == plane_sets(t) ? 0 : ring + 1;
    }
  }
}

HK_DEV void plane_body(const hk_cu_dw *P, plane_tile t, char *raw) {
  const int local = threadIdx.x / (unsigned)P->plane.lanes, lane = threadIdx.x - local * P->plane.lanes,
            unit = blockIdx.x * P->plane.planes + local;
  const int live = local < P->plane.planes && unit < P->plane.groups;
  const plane_place at = plane_begin(P, live ? unit : 0);
  char *in = raw + local * P->plane.line_bytes, *out = raw + P->plane.sums_at + local * P->plane.sums_pitch;
  float *table = (float *)(raw + P->plane.taps_at) + local * plane_weights(t);
  const int first = at.p1 * t.stride - (int)P->g.lo[1];
  const int skew = (int)((hk_cu_u64)((const char *)P->e.y + at.to * BYTES) & 15) / BYTES;
  if (live) {
    switch (P->plane.patch_length) {
      case 16: plane_stage(P, 16, at, first, lane, dw_shared(in)); break;
      case 8: plane_stage(P, 8, at, first, lane, dw_shared(in)); break;
      case 4: plane_stage(P, 4, at, first, lane, dw_shared(in)); break;
      default: if (BYTES == 2) plane_stage(P, 2, at, first, lane, dw_shared(in)); break;
    }
    plane_table(P, t, at.k, lane, table);
  }
  dw_copy_wait();
  __syncthreads();
  if (live) plane_walk(P, t, at, lane, in, table, out + skew * BYTES);
  __syncthreads();
  if (live) plane_store(P, at, skew, lane, out);
}

#define KERNEL(name, size, stride, plain, blocks)                                                                    \
  extern "C" __global__ void __launch_bounds__(HK_PLANE_THREADS, blocks) name(const __grid_constant__ hk_cu_dw P) { \
    extern __shared__ uint4 raw[];                                                                                   \
    dw_begin();                                                                                                     \
    plane_body(&P, {size, stride, plain}, (char *)raw);                                                              \
  }
/* hk_dw_plane_<type>_<size>[s2], and the same with an epilogue: .._epi. */
#define PAIR(name, size, stride, blocks)  \
  KERNEL(name, size, stride, 1, blocks)   \
  KERNEL(name##_epi, size, stride, 0, 2)
