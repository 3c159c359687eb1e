/* The long convolution. Up to 2^14 points: hk_long_filter_N and hk_long_convolve_N, where a block of threads holds a
 * whole transform of 2^N points, and hk_long_dx_N and hk_long_df_N for the gradient. Above: hk_long_columns_A_B,
 * hk_long_rows_A_B, hk_long_rows_gradient_A_B and hk_long_columns_back_A_B, which share a transform of 2^A x 2^B points
 * through z. Sizes are constants, so addresses within a transform are too. See params.h and README.md. */
#include "cuda/longconv/fft.cuh"
#include "cuda/longconv/params.h"
#include "cuda/ptx.cuh"

/* Kernels follow each other on a stream and read what the last one wrote: the next may be launched while this one runs,
 * and waits on the device. */
HK_DEV void begin(void) {
  pdl_trigger();
  pdl_wait();
}

typedef struct position {
  int s, c;   /* sequence, channel within the chunk */
  int shift;  /* position p of a block is token p + shift; those outside first..last-1 are left out */
  int first, last;
} position;

/* Where the values of a thread lie in a row of 2^points positions: value s at position at + (s << apart). */
typedef struct stride {
  int at, apart, points;
} stride;
/* 2^n1 x 2^n2 points; n1 = 0: in one block of threads. */
HK_DEV stride stride_of(int n1, int n2, int tile) {
  const int columns = HK_CU_LONG_COLUMNS(n1), log = n1 ? n1 : n2, more = n1 ? n2 : 0;
  const int rest = (int)threadIdx.x >> columns, column = (tile << columns) + ((int)threadIdx.x & ((1 << columns) - 1));
  stride r;
  r.at = ((rest & ((1 << (log - 4)) - 1)) << more) + column, r.apart = log - 4 + more, r.points = n1 + n2;
  return r;
}
HK_DEV bool is_inside(const position *q, int p) { return (unsigned)(p - q->first) < (unsigned)(q->last - q->first); }
HK_DEV hk_cu_i64 element(const hk_cu_long_call *P, const hk_cu_long_tensor *t, const position *q, int p) {
  return q->s * t->outer + (hk_cu_i64)(P->first + q->c) * t->channel + (hk_cu_i64)(p + q->shift) * t->time;
}

/* to[s] = value s of f32, f16 or bf16, 0 outside. Type and stride are asked once: values are written out 16 times, and
 * where time is contiguous their addresses are constants apart. */
HK_DEV void tensor_get(const hk_cu_long_call *P, const hk_cu_long_tensor *t, const position *q, stride r, float *to) {
  const hk_cu_i64 at = element(P, t, q, r.at), apart = t->time << r.apart;
  if (t->type == HK_CU_F32) {
    const float *from = (const float *)t->at + at;
    if (t->time == 1) {
#pragma unroll
      for (int s = 0; s < VALUES; ++s) to[s] = is_inside(q, r.at + (s << r.apart)) ? from[s << r.apart] : 0.0f;
      return;
    }
#pragma unroll
    for (int s = 0; s < VALUES; ++s) to[s] = is_inside(q, r.at + (s << r.apart)) ? from[s * apart] : 0.0f;
    return;
  }
  const hk_cu_u16 *from = (const hk_cu_u16 *)t->at + at;
  const bool f16 = t->type == HK_CU_F16;
  hk_cu_u16 h[VALUES];
  if (t->time == 1) {
#pragma unroll
    for (int s = 0; s < VALUES; ++s) h[s] = is_inside(q, r.at + (s << r.apart)) ? from[s << r.apart] : (hk_cu_u16)0;
  } else {
#pragma unroll
    for (int s = 0; s < VALUES; ++s) h[s] = is_inside(q, r.at + (s << r.apart)) ? from[s * apart] : (hk_cu_u16)0;
  }
#pragma unroll
  for (int s = 0; s < VALUES; ++s) to[s] = f16 ? f32_from_f16(h[s]) : f32_from_bf16(h[s]);
}
HK_DEV void tensor_put(const hk_cu_long_call *P, const hk_cu_long_tensor *t, const position *q, stride r,
                       const float *from) {
  const hk_cu_i64 at = element(P, t, q, r.at), apart = t->time << r.apart;
  if (t->type == HK_CU_F32) {
    float *to = (float *)t->at + at;
    if (t->time == 1) {
#pragma unroll
      for (int s = 0; s < VALUES; ++s)
        if (is_inside(q, r.at + (s << r.apart))) to[s << r.apart] = from[s];
      return;
    }
#pragma unroll
    for (int s = 0; s < VALUES; ++s)
      if (is_inside(q, r.at + (s << r.apart))) to[s * apart] = from[s];
    return;
  }
  hk_cu_u16 *to = (hk_cu_u16 *)t->at + at;
  const bool f16 = t->type == HK_CU_F16;
#pragma unroll
  for (int s = 0; s < VALUES; ++s)
    if (is_inside(q, r.at + (s << r.apart))) to[s * apart] = f16 ? f16_from_f32(from[s]) : bf16_from_f32(from[s]);
}

/* v[s] = values of the row at the thread's positions and, as imaginary parts, 2^points positions behind. Loops that
 * stay loops keep the code within the instruction cache. */
HK_DEV void load_rows(const hk_cu_long_call *P, const hk_cu_long_rows *rows, const position *q, stride r, float2 *v) {
  const bool adds_skip = P->skip.at && r.at == 0;
#pragma unroll
  for (int s = 0; s < VALUES; ++s) v[s] = c_make(0.0f, 0.0f);
#pragma unroll 1
  for (int part = 0; part <= (q->last > 1 << r.points); ++part, r.at += 1 << r.points) {
#pragma unroll 1
    for (int k = 0; k <= (rows->b.at != 0); ++k) {
      float u[VALUES];
      tensor_get(P, k ? &rows->b : &rows->a, q, r, u);
#pragma unroll
      for (int s = 0; s < VALUES; ++s) {
        if (part) v[s].y = k ? v[s].y * u[s] : u[s];
        else v[s].x = k ? v[s].x * u[s] : u[s];
      }
    }
  }
  if (!adds_skip) return;
  const hk_cu_i64 i = P->first + q->c;
  if (P->skip.type == HK_CU_F32) {
    v[0].x += ((const float *)P->skip.at)[i];
  } else {
    const hk_cu_u16 h = ((const hk_cu_u16 *)P->skip.at)[i];
    v[0].x += P->skip.type == HK_CU_F16 ? f32_from_f16(h) : f32_from_bf16(h);
  }
}
/* The reverse, divided by the points of a transform. */
HK_DEV void store_rows(const hk_cu_long_call *P, const hk_cu_long_rows *rows, const position *q, stride r,
                       const float2 *v) {
  const float scale = 1.0f / (float)(1 << r.points);
  if (!rows->a.at) return;
#pragma unroll 1
  for (int part = 0; part <= (q->last > 1 << r.points); ++part, r.at += 1 << r.points) {
    float u[VALUES];
    if (rows->b.at) {
      tensor_get(P, &rows->b, q, r, u);
    } else {
#pragma unroll
      for (int s = 0; s < VALUES; ++s) u[s] = 1.0f;
    }
#pragma unroll
    for (int s = 0; s < VALUES; ++s) u[s] *= (part ? v[s].y : v[s].x) * scale;
    tensor_put(P, &rows->a, q, r, u);
  }
}
/* Filter gradients, zeros beyond the taps; `threads` of all tiles, of which this is number `one`. */
HK_DEV void store_filter(const hk_cu_long_call *P, int c, stride r, int one, int threads, const float2 *v) {
  const float scale = 1.0f / (float)(1 << r.points);
  float *df = P->df ? P->df + (hk_cu_i64)(P->first + c) * P->window : P->df;
  if (P->dskip && r.at == 0) P->dskip[P->first + c] = v[0].x * scale;
  if (!df) return;
#pragma unroll
  for (int s = 0; s < VALUES; ++s) {
    const int p = r.at + (s << r.apart), far = p + (1 << r.points);
    if (p < P->window) df[p] = p < P->taps ? v[s].x * scale : 0.0f;
    if (far < P->window) df[far] = far < P->taps ? v[s].y * scale : 0.0f;
  }
#pragma unroll 1
  for (int p = (2 << r.points) + one; p < P->window; p += threads) df[p] = 0.0f;
}

/* Spectra: value s of this thread is s*threads behind, so that a warp's are adjacent. */
HK_DEV float2 *spectrum(float *base, hk_cu_i64 at) { return (float2 *)(void *)base + at + threadIdx.x; }
HK_DEV void spectrum_put(float2 *to, int threads, const float2 *v) {
#pragma unroll
  for (int s = 0; s < VALUES; ++s) to[s * threads] = v[s];
}
HK_DEV void spectrum_mul(const float2 *h, int threads, bool conj, float2 *v) {
#pragma unroll
  for (int s = 0; s < VALUES; ++s) v[s] = conj ? c_mul_conj(v[s], h[s * threads]) : c_mul(v[s], h[s * threads]);
}
/* v = e * conj(v), plus what was there where it is not the first, kept unless it is the last. */
HK_DEV void spectrum_sum(const float2 *e, float2 *sum, int threads, bool first, bool last, float2 *v) {
#pragma unroll
  for (int s = 0; s < VALUES; ++s) {
    v[s] = c_mul_conj(e[s * threads], v[s]);
    if (!first) v[s] = c_add(v[s], sum[s * threads]);
    if (!last) sum[s * threads] = v[s];
  }
}

HK_DEV position whole(const hk_cu_long_call *P, int s, int c) {
  position q;
  q.s = s, q.c = c, q.shift = 0, q.first = 0, q.last = P->length;
  return q;
}

/* ---- a transform in one block of threads */

HK_DEV position block_at(const hk_cu_long_call *P, int n, int s, int c, int block, int before) {
  position q = whole(P, s, c);
  q.shift = block * P->step - before;
  q.first = q.shift < 0 ? -q.shift : 0;
  q.last = P->length - q.shift < 2 << n ? P->length - q.shift : 2 << n;
  return q;
}

/* The spectrum of a filter. */
HK_DEV void block_filter(const hk_cu_long_call *P, int n) {
  const position q = whole(P, 0, (int)blockIdx.x);
  float2 v[VALUES];
  load_rows(P, &P->in, &q, stride_of(0, n, 0), v);
  forward(v, n, 0, true);
  spectrum_put(spectrum(P->h, (hk_cu_i64)q.c << n), 1 << (n - 4), v);
}

HK_DEV void block_convolve(const hk_cu_long_call *P, int n) {
  const int block = (int)blockIdx.x % P->blocks, row = (int)blockIdx.x / P->blocks;
  position q = block_at(P, n, row / P->channels, row % P->channels, block, P->before);
  float2 v[VALUES];
  load_rows(P, &P->in, &q, stride_of(0, n, 0), v);
  forward(v, n, 0, true);
  spectrum_mul(spectrum(P->h, (hk_cu_i64)q.c << n), 1 << (n - 4), false, v);
  inverse(v, n, 0, true);
  q.first = P->before;
  store_rows(P, &P->out, &q, stride_of(0, n, 0), v);
}

/* dx and dpre; leaves the spectrum of dy in g where a filter's gradient needs it. See src/longconv/gradient.c. */
HK_DEV void block_dx(const hk_cu_long_call *P, int n) {
  const int block = (int)blockIdx.x % P->blocks, row = (int)blockIdx.x / P->blocks;
  position q = block_at(P, n, row / P->channels, row % P->channels, block, 0);
  float2 v[VALUES];
  load_rows(P, &P->dy, &q, stride_of(0, n, 0), v);
  forward(v, n, 0, true);
  if (P->df || P->dskip) spectrum_put(spectrum(P->g, (hk_cu_i64)blockIdx.x << n), 1 << (n - 4), v);
  if (!P->out.a.at && !P->out2.a.at) return;
  spectrum_mul(spectrum(P->h, (hk_cu_i64)q.c << n), 1 << (n - 4), true, v);
  inverse(v, n, 0, true);
  if (P->blocks > 1 && q.last > P->step) q.last = P->step;
#pragma unroll 1
  for (int k = 0; k < 2; ++k) store_rows(P, k ? &P->out2 : &P->out, &q, stride_of(0, n, 0), v);
}

/* df and dskip of a channel: a sum over sequences and blocks in their order. */
HK_DEV void block_df(const hk_cu_long_call *P, int n) {
  const int c = (int)blockIdx.x, all = P->n * P->blocks, threads = 1 << (n - 4);
  float2 v[VALUES];
#pragma unroll 1
  for (int i = 0; i < all; ++i) {
    const int s = i / P->blocks, block = i % P->blocks;
    position q = block_at(P, n, s, c, block, 0);
    if (P->blocks > 1 && q.last > P->step) q.last = P->step;
    load_rows(P, &P->in, &q, stride_of(0, n, 0), v);
    forward(v, n, 0, true);
    const hk_cu_i64 e = ((hk_cu_i64)s * P->channels + c) * P->blocks + block;
    spectrum_sum(spectrum(P->g, e << n), spectrum(P->sum, (hk_cu_i64)c << n), threads, i == 0, i == all - 1, v);
  }
  inverse(v, n, 0, true);
  store_filter(P, c, stride_of(0, n, 0), (int)threadIdx.x, threads, v);
}

#define BLOCK(what, n, least)                                                                \
  extern "C" __global__ void __launch_bounds__(1 << (n - 4), least)                          \
      hk_long_##what##_##n(const __grid_constant__ hk_cu_long_call P) {                      \
    begin();                                                                                 \
    block_##what(&P, n);                                                                     \
  }
/* so many blocks per SM that a thread has 64 registers */
#define BLOCKS(what) BLOCK(what, 10, 16) BLOCK(what, 11, 8) BLOCK(what, 12, 4) BLOCK(what, 13, 2) BLOCK(what, 14, 1)
BLOCKS(filter)
BLOCKS(convolve)
BLOCKS(dx)
BLOCKS(df)

/* ---- a transform shared by columns and rows */

/* Which sequence, channel and tile a block of threads has; tiles are 2^tiles. */
HK_DEV position tile_of(const hk_cu_long_call *P, int tiles, int *tile) {
  const int row = (int)blockIdx.x >> tiles;
  *tile = (int)blockIdx.x & ((1 << tiles) - 1);
  return whole(P, row / P->channels, row % P->channels);
}

/* Twiddles between columns and rows: exp(-2 pi i j (k1 - 1/4) / N) of column j and the row k1 of value s. Positions and
 * rows differ by a permutation of bits, so the twiddle of s is that of value 0 times one factor per bit of s. 4N is
 * below 2^24: quotients are exact. */
HK_DEV void between(int n1, int n2, int j, bool back, float2 *v) {
  const int base = order_of(n1, ((int)threadIdx.x >> HK_CU_LONG_COLUMNS(n1)) << 4);
  const float part = (float)j / (float)(2 << (n1 + n2)), four = 4.0f * part;
  float2 w[4], x[4];
  w[0] = c_unit((float)(j * (4 * base - 1)) / (float)(2 << (n1 + n2)));
  w[1] = c_unit(four * (float)order_of(n1, 1)), w[2] = c_unit(four * (float)order_of(n1, 2));
  x[1] = c_unit(four * (float)order_of(n1, 4)), x[2] = c_unit(four * (float)order_of(n1, 8));
  w[1] = c_mul(w[0], w[1]), w[3] = c_mul(w[1], w[2]), w[2] = c_mul(w[0], w[2]), x[3] = c_mul(x[1], x[2]);
#pragma unroll
  for (int s = 0; s < VALUES; ++s) {
    const float2 t = s >> 2 ? c_mul(w[s & 3], x[s >> 2]) : w[s & 3];
    v[s] = back ? c_mul_conj(v[s], t) : c_mul(v[s], t);
  }
}

HK_DEV void columns(const hk_cu_long_call *P, int n1, int n2) {
  const int wide = HK_CU_LONG_COLUMNS(n1), in_tile = (int)threadIdx.x & ((1 << wide) - 1);
  int tile;
  const position q = tile_of(P, n2 - wide, &tile);
  const int j = (tile << wide) + in_tile;
  float2 v[VALUES];
  load_rows(P, &P->in, &q, stride_of(n1, n2, tile), v);
  forward(v, n1, wide, true);
  between(n1, n2, j, false, v);
  float2 *z = (float2 *)(void *)P->z + ((hk_cu_i64)(blockIdx.x >> (n2 - wide)) << (n1 + n2)) + j +
              ((hk_cu_i64)((int)threadIdx.x >> wide) << (n2 + 4));
#pragma unroll
  for (int s = 0; s < VALUES; ++s) z[s << n2] = v[s];
}

HK_DEV void columns_back(const hk_cu_long_call *P, int n1, int n2) {
  const int wide = HK_CU_LONG_COLUMNS(n1), in_tile = (int)threadIdx.x & ((1 << wide) - 1);
  int tile;
  const position q = tile_of(P, n2 - wide, &tile);
  const int j = (tile << wide) + in_tile;
  float2 v[VALUES];
  const float2 *z = (const float2 *)(const void *)P->z + ((hk_cu_i64)(blockIdx.x >> (n2 - wide)) << (n1 + n2)) + j +
                    ((hk_cu_i64)((int)threadIdx.x >> wide) << (n2 + 4));
#pragma unroll
  for (int s = 0; s < VALUES; ++s) v[s] = z[s << n2];
  between(n1, n2, j, true, v);
  inverse(v, n1, wide, true);
  if (P->op == HK_CU_LONG_FILTER) {
    store_filter(P, q.c, stride_of(n1, n2, tile), tile * (int)blockDim.x + (int)threadIdx.x,
                 (int)blockDim.x << (n2 - wide), v);
    return;
  }
#pragma unroll 1
  for (int k = 0; k < 2; ++k) store_rows(P, k ? &P->out2 : &P->out, &q, stride_of(n1, n2, tile), v);
}

/* Rows of 2^n2 points from `at` on: value s of the first pass. */
HK_DEV hk_cu_i64 row_at(int n2) {
  return (((int)threadIdx.x >> (n2 - 4)) << n2) + ((int)threadIdx.x & ((1 << (n2 - 4)) - 1));
}
HK_DEV void rows_load(const float *z, hk_cu_i64 at, int n2, float2 *v) {
  const float2 *from = (const float2 *)(const void *)z + at + row_at(n2);
#pragma unroll
  for (int s = 0; s < VALUES; ++s) v[s] = from[s << (n2 - 4)];
}
HK_DEV void rows_store(float *z, hk_cu_i64 at, int n2, const float2 *v) {
  float2 *to = (float2 *)(void *)z + at + row_at(n2);
#pragma unroll
  for (int s = 0; s < VALUES; ++s) to[s << (n2 - 4)] = v[s];
}

HK_DEV void rows(const hk_cu_long_call *P, int n1, int n2) {
  const int many = HK_CU_LONG_ROWS(n2), threads = 1 << (many + n2 - 4);
  int tile;
  const position q = tile_of(P, n1 - many, &tile);
  const hk_cu_i64 at = (hk_cu_i64)blockIdx.x << (many + n2);
  float2 *h = spectrum(P->h, ((hk_cu_i64)q.c << (n1 + n2)) + ((hk_cu_i64)tile << (many + n2))), v[VALUES];
  rows_load(P->z, at, n2, v);
  forward(v, n2, 0, false);
  if (P->op == HK_CU_LONG_FILTER) { /* z is h: all of the tile has been read */
    spectrum_put(h, threads, v);
    return;
  }
  spectrum_mul(h, threads, false, v);
  inverse(v, n2, 0, false);
  rows_store(P->z, at, n2, v);
}

/* The same where each filter serves one sequence: its rows are transformed here too, and h is not written. */
HK_DEV void rows_once(const hk_cu_long_call *P, int n1, int n2) {
  const int many = HK_CU_LONG_ROWS(n2);
  const hk_cu_i64 at = (hk_cu_i64)blockIdx.x << (many + n2);
  float2 h[VALUES], v[VALUES];
  rows_load(P->h, at, n2, h);
  forward(h, n2, 0, false);
  rows_load(P->z, at, n2, v);
  forward(v, n2, 0, false);
#pragma unroll
  for (int s = 0; s < VALUES; ++s) v[s] = c_mul(v[s], h[s]);
  inverse(v, n2, 0, false);
  rows_store(P->z, at, n2, v);
}

/* A tile of rows of one channel, all sequences; see src/longconv/gradient.c. */
HK_DEV void rows_gradient(const hk_cu_long_call *P, int n1, int n2) {
  const int many = HK_CU_LONG_ROWS(n2), threads = 1 << (many + n2 - 4);
  int tile;
  const position q = tile_of(P, n1 - many, &tile);
  const hk_cu_i64 in_tile = (hk_cu_i64)tile << (many + n2), own = ((hk_cu_i64)q.c << (n1 + n2)) + in_tile;
  float2 v[VALUES];
#pragma unroll 1
  for (int s = 0; s < P->n; ++s) {
    const hk_cu_i64 at = (((hk_cu_i64)s * P->channels + q.c) << (n1 + n2)) + in_tile;
    float2 *e = spectrum(P->g, at);
    rows_load(P->g, at, n2, v);
    forward(v, n2, 0, false);
    spectrum_put(e, threads, v); /* every value of the tile has been read: forward has synchronised since */
    if (P->z) {
      rows_load(P->z, at, n2, v);
      forward(v, n2, 0, false);
      if (P->dpost.a.at) spectrum_put(spectrum(P->z, at), threads, v);
      if (P->df || P->dskip) {
        spectrum_sum(e, spectrum(P->sum, own), threads, s == 0, s == P->n - 1, v);
        if (s == P->n - 1) {
          inverse(v, n2, 0, false);
          rows_store(P->sum, own, n2, v);
        }
      }
    }
#pragma unroll 1
    for (int k = 0; k < 2; ++k) { /* dx from e, conv(u) from z */
      float *to = k ? P->z : P->g;
      if (k ? !P->dpost.a.at : !P->out.a.at && !P->out2.a.at) continue;
      const float2 *from = spectrum(to, at);
#pragma unroll
      for (int i = 0; i < VALUES; ++i) v[i] = from[i * threads];
      spectrum_mul(spectrum(P->h, own), threads, k == 0, v);
      __syncthreads(); /* all have read before rows_store overwrites it, and the exchange is free */
      inverse(v, n2, 0, false);
      rows_store(to, at, n2, v);
    }
  }
}

#define SHARED(what, a, b, threads)                                                          \
  extern "C" __global__ void __launch_bounds__(threads)                                      \
      hk_long_##what##_##a##_##b(const __grid_constant__ hk_cu_long_call P) {                \
    begin();                                                                                 \
    what(&P, a, b);                                                                          \
  }
#define COLUMN_THREADS(a) (1 << (a + HK_CU_LONG_COLUMNS(a) - 4))
#define ROW_THREADS(b) (1 << (b + HK_CU_LONG_ROWS(b) - 4))
#define EACH(a, b)                              \
  SHARED(columns, a, b, COLUMN_THREADS(a))      \
  SHARED(columns_back, a, b, COLUMN_THREADS(a)) \
  SHARED(rows, a, b, ROW_THREADS(b))            \
  SHARED(rows_once, a, b, ROW_THREADS(b))       \
  SHARED(rows_gradient, a, b, ROW_THREADS(b))
EACH(7, 8)
EACH(8, 8)
EACH(8, 9)
EACH(9, 9)
EACH(9, 10)
EACH(10, 10)
EACH(10, 11)
