/* Depthwise 3x3, 5x5 and 7x7 of channels-last images on the FMA units, stride 1 or 2, f32, f16, bf16.
 *
 * A thread owns two channels and TQ neighbouring output columns and walks down a strip of output rows. It prefetches
 * every input row once and adds it to the J = ceil(size/stride) output rows that use it: output row p keeps its sums
 * in set p mod J. From row to row the pointer into the weight table rotates, not the registers: set j uses tap row
 * (m - j mod J)*stride + sub at step m, and the table holds its rows twice, so that one moving pointer serves all
 * sets and the loop needs no unrolling; the next row is prefetched in registers. 3x3 has too little arithmetic to
 * hide memory latency: it is unrolled by J, keeps its weights in registers and prefetches more rows: four in
 * registers (stride 2, 16-bit; f32 two) or, with stride 1, J in shared memory, [row][column][thread]. Its blocks are
 * large, so that they hold all channels of a pixel and the last wave is balanced.
 *
 * Table in shared memory: f32 pair [channel pair][2J*stride tap rows][size], the pitch of a channel pair odd.
 * Columns outside x stay zero in registers; rows outside x are skipped. Kernels without an epilogue are separate:
 * the activations would cost them registers. Registers: 2*TQ*J sums, 3 (f32: 4) per column of the input row. The
 * host refuses input dilation, dilation and multipliers. */
#include "cuda/depthwise/common.cuh"

#define TQ_MOST HK_SLIDE_COLUMNS
#define COLUMNS_MOST ((TQ_MOST - 1) * 2 + 7)
#if TYPE_BYTES == 4
#define PAIR_BYTES 8
#else
#define PAIR_BYTES 4
#endif

typedef struct slide_tile { int size, stride, tq, plain; } slide_tile; /* plain: the epilogue is a conversion only */
/* The part of the problem that one thread computes. */
typedef struct slide_place {
  const char *from;                  /* first column of the next input row to read */
  char *to;                          /* the next output row to store */
  hk_cu_i64 from_row, to_row;        /* bytes between rows */
  int from_step, to_step;            /* bytes between columns */
  int i1, ahead, end1;               /* next input row to add, to read; past the last row of x that the strip reads */
  int col0, width;                   /* first column, columns of x */
  int whole, live;                   /* all columns are in x; outputs in y */
  int n, k, p1, q0;                  /* image, first channel, next output row to store, first output column */
  hk_cu_u32 slots;                   /* 3x3 with stride 1: shared address of this thread's column in row 0 */
} slide_place;

HK_DEV constexpr int slide_sets(slide_tile t) { return (t.size + t.stride - 1) / t.stride; }
HK_DEV constexpr int slide_columns(slide_tile t) { return (t.tq - 1) * t.stride + t.size; }
HK_DEV constexpr int slide_buffers(slide_tile t) {
  return t.size != 3 || t.stride != 2 ? 1 : TYPE == HK_CU_F32 ? 2 : 4;
}
HK_DEV constexpr int slide_pitch(slide_tile t) { return (2 * slide_sets(t) * t.stride * t.size) | 1; }

/* Loads in place: a column that is not read keeps its value. */
HK_DEV void slide_read(const char *p, uint2 *u) {
  if (TYPE == HK_CU_F32) asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "+r"(u->x), "+r"(u->y) : "l"(p));
  else asm volatile("ld.global.nc.u32 %0, [%1];" : "+r"(u->x) : "l"(p));
}

/* Loads the next input row if it is in x. */
HK_DEV void slide_load(slide_tile t, slide_place *at, uint2 *raw) {
  if ((unsigned)at->ahead < (unsigned)at->end1) {
    if (at->whole) {
#pragma unroll
      for (int c = 0; c < slide_columns(t); ++c) slide_read(at->from + (hk_cu_i64)c * at->from_step, raw + c);
    } else {
#pragma unroll
      for (int c = 0; c < slide_columns(t); ++c)
        if ((unsigned)(at->col0 + c) < (unsigned)at->width)
          slide_read(at->from + (hk_cu_i64)c * at->from_step, raw + c);
    }
  }
  at->from += at->from_row;
  ++at->ahead;
}

HK_DEV void slide_copy(const char *from, hk_cu_u32 to, int in) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(PAIR_BYTES),
               "r"(in ? PAIR_BYTES : 0)
               : "memory");
}

/* The same for 3x3 with stride 1, into slot `slot`, that of the row just added; columns outside x become zeros. One
 * cp.async group per row. */
HK_DEV void slide_fetch(slide_tile t, slide_place *at, const int slot) {
  const int pitch = HK_SLIDE_THREADS_3 * PAIR_BYTES;
  const hk_cu_u32 to = at->slots + slot * slide_columns(t) * pitch;
  if ((unsigned)at->ahead < (unsigned)at->end1) {
    if (at->whole) {
#pragma unroll
      for (int c = 0; c < slide_columns(t); ++c) slide_copy(at->from + (hk_cu_i64)c * at->from_step, to + c * pitch, 1);
    } else {
#pragma unroll
      for (int c = 0; c < slide_columns(t); ++c)
        slide_copy(at->from + (hk_cu_i64)c * at->from_step, to + c * pitch,
                   (unsigned)(at->col0 + c) < (unsigned)at->width);
    }
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  at->from += at->from_row;
  ++at->ahead;
}

HK_DEV void slide_unpack(uint2 u, float *v) {
  if (TYPE == HK_CU_F32) v[0] = __uint_as_float(u.x), v[1] = __uint_as_float(u.y);
  else dw_unpack_pair(TYPE, u.x, v);
}

/* Adds one tap row of `size` weights to one set. fresh: it is the first of the set. */
HK_DEV void slide_add(slide_tile t, const float (*v)[2], const float2 *w, const int fresh, float (*acc)[2]) {
#pragma unroll
  for (int s = 0; s < t.size; ++s) {
    const float2 f = w[s];
#pragma unroll
    for (int i = 0; i < t.tq; ++i) {
      const float *x = v[i * t.stride + s];
      acc[i][0] = fresh && !s ? x[0] * f.x : fmaf(x[0], f.x, acc[i][0]);
      acc[i][1] = fresh && !s ? x[1] * f.y : fmaf(x[1], f.y, acc[i][1]);
    }
  }
}

/* Applies scale, bias, activation and residual to a row of sums, which alternate between two channels. */
HK_DEV void slide_finish(const hk_cu_dw *P, slide_tile t, const slide_place *at, float *v) {
  const hk_cu_epi *e = &P->e;
  const hk_cu_geom *g = &P->g;
  float cv[2 * TQ_MOST], slope[2 * TQ_MOST];
#pragma unroll
  for (int i = 0; i < t.tq; ++i) {
    cv[2 * i] = cv[2 * i + 1] = 0.0f;
    if (e->residual && i < at->live) {
      const int p[3] = {0, at->p1, at->q0 + i};
      const char *c = (const char *)e->c + (pixel_offset(&g->c, at->n, p) + at->k) * dw_type_bytes(TYPE);
      uint2 u = {0, 0};
      if (TYPE == HK_CU_F32) u = *(const uint2 *)c;
      else u.x = *(const unsigned *)c;
      slide_unpack(u, cv + 2 * i);
    }
  }
#pragma unroll
  for (int i = 0; i < 2 * t.tq; ++i) {
    if (e->scale) v[i] *= ((const float *)e->scale)[e->scale_one ? 0 : at->k + i % 2];
    if (e->bias) v[i] += ((const float *)e->bias)[at->k + i % 2];
    if (e->residual == 2) v[i] += e->beta * cv[i];
    slope[i] = e->act == HK_CU_PRELU ? ((const float *)e->slopes)[at->k + i % 2] : 0.0f;
  }
  if (e->act) act_run(2 * t.tq, e->act, e->a, e->b, slope, v);
  if (e->residual == 1) {
#pragma unroll
    for (int i = 0; i < 2 * t.tq; ++i) v[i] += e->beta * cv[i];
  }
}

HK_DEV void slide_put(const slide_place *at, int i, const float *v) {
  char *to = at->to + (hk_cu_i64)i * at->to_step;
  if (TYPE == HK_CU_F32) *(float2 *)to = make_float2(v[2 * i], v[2 * i + 1]);
  else *(hk_cu_u32 *)to = dw_pack_pair(TYPE, v[2 * i], v[2 * i + 1]);
}

HK_DEV void slide_store(const hk_cu_dw *P, slide_tile t, slide_place *at, float *v) {
  if (!t.plain) slide_finish(P, t, at, v);
  if (at->live >= t.tq) {
#pragma unroll
    for (int i = 0; i < t.tq; ++i) slide_put(at, i, v);
  } else {
#pragma unroll
    for (int i = 0; i < t.tq - 1; ++i)
      if (i < at->live) slide_put(at, i, v);
  }
  at->to += at->to_row;
  ++at->p1;
}

/* Converts the next row to f32 and prefetches another in its place; returns whether it is in x. */
HK_DEV int slide_next(const hk_cu_dw *P, slide_tile t, slide_place *at, uint2 *raw, float (*v)[2]) {
  const int in = (unsigned)at->i1++ < (unsigned)P->g.in[1];
#pragma unroll
  for (int c = 0; c < slide_columns(t); ++c) {
    slide_unpack(raw[c], v[c]);
    asm volatile("" : "+f"(v[c][0]), "+f"(v[c][1])); /* here: later the row would have to be copied */
  }
  slide_load(t, at, raw);
  return in;
}

/* The same for 3x3 with stride 1: the oldest of the J prefetched rows, in slot `slot`. */
HK_DEV int slide_next_fetched(const hk_cu_dw *P, slide_tile t, slide_place *at, const int slot, float (*v)[2]) {
  const int in = (unsigned)at->i1++ < (unsigned)P->g.in[1], pitch = HK_SLIDE_THREADS_3 * PAIR_BYTES;
  asm volatile("cp.async.wait_group 2;" ::: "memory");
#pragma unroll
  for (int c = 0; c < slide_columns(t); ++c) {
    uint2 u = make_uint2(0, 0);
    const hk_cu_u32 from = at->slots + (slot * slide_columns(t) + c) * pitch;
    if (TYPE == HK_CU_F32)
      asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(u.x), "=r"(u.y) : "r"(from) : "memory");
    else asm volatile("ld.shared.u32 %0, [%1];" : "=r"(u.x) : "r"(from) : "memory");
    slide_unpack(u, v[c]);
  }
#pragma unroll
  for (int c = 0; c < slide_columns(t); ++c) asm volatile("" : "+f"(v[c][0]), "+f"(v[c][1]));
  slide_fetch(t, at, slot);
  return in;
}

/* Step m of rows + J - 1 reads input rows m*stride..; then output row m - (J-1) is complete. ring = m mod J, a
 * constant; all sets take part: a set's first tap row overwrites its old sums. w: weights [size][size]. */
HK_DEV void slide_step_fixed(const hk_cu_dw *P, slide_tile t, slide_place *at, int m, int rows, const int ring,
                             const float2 *w, uint2 (*raw)[COLUMNS_MOST], float (*acc)[TQ_MOST][2]) {
  const int sets = slide_sets(t);
#pragma unroll
  for (int sub = 0; sub < t.stride; ++sub) {
    float v[COLUMNS_MOST][2];
    if (t.stride == 1 ? slide_next_fetched(P, t, at, ring, v)
                      : slide_next(P, t, at, raw[(ring * 2 + sub) % slide_buffers(t)], v)) {
#pragma unroll
      for (int a = 0; a < sets; ++a)
        if (a * t.stride + sub < t.size)
          slide_add(t, v, w + (a * t.stride + sub) * t.size, !a && !sub, acc[(ring - a + sets) % sets]);
    } else if (!sub) { /* rare: otherwise zeros would be written for every row before the test */
#pragma unroll
      for (int i = 0; i < t.tq; ++i)
        asm volatile("mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000;" : "=f"(acc[ring][i][0]), "=f"(acc[ring][i][1]));
    }
  }
  if ((unsigned)(m - (sets - 1)) < (unsigned)rows) slide_store(P, t, at, &acc[(ring + 1) % sets][0][0]);
}

/* The same with a variable ring. Rows of neighbouring strips are skipped: live has one bit per set. */
HK_DEV void slide_step(const hk_cu_dw *P, slide_tile t, slide_place *at, int m, int rows, int ring, const float2 *table,
                       uint2 *raw, float (*acc)[TQ_MOST][2]) {
  const int sets = slide_sets(t), done = ring + 1 == sets ? 0 : ring + 1;
  unsigned live = (1u << sets) - 1;
  if (m < sets - 1 || m >= rows) {
    live = 0;
#pragma unroll
    for (int a = 0; a < sets; ++a)
      if ((unsigned)(m - a) < (unsigned)rows) live |= 1u << (ring - a < 0 ? ring - a + sets : ring - a);
  }
#pragma unroll
  for (int sub = 0; sub < t.stride; ++sub) {
    float v[COLUMNS_MOST][2];
    unsigned now = slide_next(P, t, at, raw, v) ? live : 0;
    if ((sets - 1) * t.stride + sub >= t.size) now &= ~(1u << done);
    const float2 *w = table + ((ring + sets) * t.stride + sub) * t.size;
    if (now + 1 == 1u << sets) { /* the common case without branches, so that weights are loaded ahead */
#pragma unroll
      for (int j = 0; j < sets; ++j) slide_add(t, v, w - j * t.stride * t.size, 0, acc[j]);
      continue;
    }
#pragma unroll
    for (int j = 0; j < sets; ++j)
      if (now >> j & 1) slide_add(t, v, w - j * t.stride * t.size, 0, acc[j]);
  }
  if (m < sets - 1) return;
  float out[2 * TQ_MOST];
#pragma unroll
  for (int j = 0; j < sets; ++j)
    if (j == done) {
#pragma unroll
      for (int i = 0; i < 2 * t.tq; ++i) out[i] = acc[j][i / 2][i % 2], acc[j][i / 2][i % 2] = 0.0f;
      if (t.plain) slide_store(P, t, at, out);
    }
  if (!t.plain) slide_store(P, t, at, out);
}

HK_DEV void slide_table(const hk_cu_dw *P, slide_tile t, int k0, float2 *table) {
  const int rows = slide_sets(t) * t.stride, count = 2 * rows * t.size * P->slide.lanes;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int tap = i / P->slide.lanes, pair = i - tap * P->slide.lanes, b = tap / t.size,
              row = b < rows ? b : b - rows;
    const int k = k0 + 2 * pair;
    float2 w = {0.0f, 0.0f};
    if (row < t.size && k < P->channels)
      w = *(const float2 *)((const float *)P->packed + (hk_cu_i64)(row * t.size + tap % t.size) * P->padded + k);
    table[pair * slide_pitch(t) + tap] = w;
  }
}

HK_DEV int slide_begin(const hk_cu_dw *P, slide_tile t, int group, slide_place *at) {
  const hk_cu_geom *g = &P->g;
  const int strip = dw_div(P->slide.div_row_groups, group), bytes = dw_type_bytes(TYPE);
  at->q0 = (group - strip * P->slide.row_groups) * t.tq;
  at->n = dw_div(P->slide.div_strips, strip);
  at->p1 = (strip - at->n * P->slide.strips) * P->slide.strip_rows;
  const int rows = (int)g->out[1] - at->p1 < P->slide.strip_rows ? (int)g->out[1] - at->p1 : P->slide.strip_rows;
  at->col0 = at->q0 * t.stride - (int)g->lo[2];
  at->width = (int)g->in[2];
  at->whole = at->col0 >= 0 && at->col0 + slide_columns(t) <= at->width;
  at->live = (int)g->out[2] - at->q0;
  at->i1 = at->ahead = at->p1 * t.stride - (int)g->lo[1];
  const int end = at->i1 + (rows - 1) * t.stride + t.size;
  at->end1 = end < 0 ? 0 : end < (int)g->in[1] ? end : (int)g->in[1];
  at->from_step = (int)g->x.at[2] * bytes, at->to_step = (int)g->y.at[2] * bytes;
  at->from_row = g->x.at[1] * bytes, at->to_row = g->y.at[1] * bytes;
  at->from = (const char *)P->x + (at->n * g->x.outer + at->k + at->i1 * g->x.at[1] + at->col0 * g->x.at[2]) * bytes;
  at->to = (char *)P->e.y + (at->n * g->y.outer + at->k + at->p1 * g->y.at[1] + at->q0 * g->y.at[2]) * bytes;
  return rows;
}

HK_DEV void slide_body(const hk_cu_dw *P, slide_tile t, float2 *table) {
  const int team = threadIdx.x / (unsigned)P->slide.lanes, pair = threadIdx.x - team * P->slide.lanes;
  const int block = blockIdx.x / (unsigned)P->channel_blocks,
            k0 = (blockIdx.x - block * P->channel_blocks) * P->slide.lanes * 2;
  const int group = block * P->slide.teams + team;
  slide_place at;
  at.k = k0 + 2 * pair;
  const int live = group < P->slide.groups && at.k < P->channels, fetched = t.size == 3 && t.stride == 1;
  const int rows = slide_begin(P, t, live ? group : 0, &at);
  /* uniform over the warp: otherwise it would read each row on both paths */
  at.whole = __all_sync(__activemask(), at.whole || !live);
  uint2 raw[4][COLUMNS_MOST];
  /* the first rows are in flight while the table is built */
  if (!live) at.end1 = 0;
  if (fetched) {
    at.slots = dw_shared(table) + (P->slide.weights_at + threadIdx.x) * PAIR_BYTES;
#pragma unroll 1
    for (int i = 0; i < slide_sets(t); ++i) slide_fetch(t, &at, i);
  } else {
#pragma unroll
    for (int i = 0; i < slide_buffers(t); ++i) {
#pragma unroll
      for (int c = 0; c < slide_columns(t); ++c) raw[i][c] = make_uint2(0, 0);
      slide_load(t, &at, raw[i]);
    }
  }
  slide_table(P, t, k0, table);
  __syncthreads();
  if (!live) return;
  const int steps = rows + slide_sets(t) - 1;
  const float2 *mine = table + pair * slide_pitch(t);
  float acc[7][TQ_MOST][2];
#pragma unroll
  for (int j = 0; j < slide_sets(t); ++j)
#pragma unroll
    for (int i = 0; i < t.tq; ++i) acc[j][i][0] = acc[j][i][1] = 0.0f;
  if (t.size == 3) {
    float2 w[9];
#pragma unroll
    for (int i = 0; i < 9; ++i) w[i] = mine[i];
#pragma unroll 1
    for (int m = 0; m < steps; m += slide_sets(t)) {
#pragma unroll
      for (int ring = 0; ring < slide_sets(t); ++ring)
        slide_step_fixed(P, t, &at, m + ring, rows, ring, w, raw, acc);
    }
  } else {
    int ring = 0;
#pragma unroll 1
    for (int m = 0; m < steps; ++m) {
      slide_step(P, t, &at, m, rows, ring, mine, raw[0], acc);
      ring = ring + 1 == slide_sets(t) ? 0 : ring + 1;
    }
  }
}

#define KERNEL(name, size, stride, tq, plain, blocks)                                                                  \
  extern "C" __global__ void __launch_bounds__(size > 3      ? HK_SLIDE_THREADS                                        \
                                               : stride == 1 ? HK_SLIDE_THREADS_3                                      \
                                                             : HK_SLIDE_THREADS_3S2,                                   \
                                               blocks) name(const __grid_constant__ hk_cu_dw P) {                      \
    extern __shared__ float2 raw[];                                                                                    \
    dw_begin();                                                                                                        \
    slide_body(&P, {size, stride, tq, plain}, raw);                                                                    \
  }
/* hk_dw_slide_<type>_<size>[s2], and the same with an epilogue: .._epi. tiles_slide.c has the same tq and blocks. */
#define PAIR(name, size, stride, tq, blocks)  \
  KERNEL(name, size, stride, tq, 1, blocks)   \
  KERNEL(name##_epi, size, stride, tq, 0, (size == 3 ? 1 : 2))
