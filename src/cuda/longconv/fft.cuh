/* Transforms of 2^n points in a block of threads: 16 complex values per thread in registers, passes of radix 16 with an
 * exchange through shared memory between them, and a last pass of radix 2, 4 or 8 where n is no multiple of 4.
 * Decimation in frequency; the inverse runs the passes in reverse, so values stay in the order that the forward passes
 * leave. Value i of shared memory is at i + i/16, which no pass reads or writes with bank conflicts. A tile may hold
 * 2^c columns side by side: value p of column j is then value p*2^c + j.
 *
 * With `twist` the points are the roots of X^N = i: Z[k] = sum over p of z[p] exp(-2 pi i p (k - 1/4) / N); see
 * src/cpu/tmpl/transform/longfft.tmpl.h. */
#ifndef HK_CUDA_LONGCONV_FFT_CUH
#define HK_CUDA_LONGCONV_FFT_CUH
#include "cuda/types.cuh"

enum { VALUES = 16 };
extern __shared__ float2 exchange[];

HK_DEV float2 c_make(float x, float y) {
  float2 v;
  v.x = x, v.y = y;
  return v;
}
HK_DEV float2 c_add(float2 a, float2 b) { return c_make(a.x + b.x, a.y + b.y); }
HK_DEV float2 c_sub(float2 a, float2 b) { return c_make(a.x - b.x, a.y - b.y); }
HK_DEV float2 c_mul(float2 a, float2 b) { return c_make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
HK_DEV float2 c_mul_conj(float2 a, float2 b) { return c_make(a.x * b.x + a.y * b.y, a.y * b.x - a.x * b.y); }
/* exp(-pi i t) */
HK_DEV float2 c_unit(float t) {
  float s, c;
  sincospif(-t, &s, &c);
  return c_make(c, s);
}

/* Four points, forward or (back = -1) inverse. */
HK_DEV void radix4(float2 *a, float2 *b, float2 *c, float2 *d, float back) {
  const float2 s = c_add(*a, *c), t = c_sub(*a, *c), u = c_add(*b, *d), v = c_sub(*b, *d);
  *a = c_add(s, u), *c = c_sub(s, u);
  *b = c_make(t.x + back * v.y, t.y - back * v.x), *d = c_make(t.x - back * v.y, t.y + back * v.x);
}

/* cos and sin of 2 pi i / 16 for i = b*c <= 9. */
#define C16_1 0.92387953251128675613f
#define S16_1 0.38268343236508977173f
#define C16_2 0.70710678118654752440f
HK_DEV float2 root16(int i) {
  switch (i) {
    case 0: return c_make(1.0f, 0.0f);
    case 1: return c_make(C16_1, -S16_1);
    case 2: return c_make(C16_2, -C16_2);
    case 3: return c_make(S16_1, -C16_1);
    case 4: return c_make(0.0f, -1.0f);
    case 6: return c_make(-C16_2, -C16_2);
    default: return c_make(-C16_1, S16_1); /* 9 */
  }
}

/* Sixteen points: slot s of the result is point order16(s). */
HK_DEV int order16(int s) { return (s >> 2) + ((s & 3) << 2); }
HK_DEV void radix16(float2 *v) {
#pragma unroll
  for (int b = 0; b < 4; ++b) {
    radix4(&v[b], &v[b + 4], &v[b + 8], &v[b + 12], 1.0f);
#pragma unroll
    for (int c = 1; c < 4; ++c)
      if (b) v[b + 4 * c] = c_mul(v[b + 4 * c], root16(b * c));
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) radix4(&v[4 * c], &v[4 * c + 1], &v[4 * c + 2], &v[4 * c + 3], 1.0f);
}
HK_DEV void radix16_back(float2 *v) {
#pragma unroll
  for (int c = 0; c < 4; ++c) radix4(&v[4 * c], &v[4 * c + 1], &v[4 * c + 2], &v[4 * c + 3], -1.0f);
#pragma unroll
  for (int b = 0; b < 4; ++b) {
#pragma unroll
    for (int c = 1; c < 4; ++c)
      if (b) v[b + 4 * c] = c_mul_conj(v[b + 4 * c], root16(b * c));
    radix4(&v[b], &v[b + 4], &v[b + 8], &v[b + 12], -1.0f);
  }
}

/* Sixteen neighbours as transforms of 2, 4 or 8 points. */
HK_DEV void small(float2 *v, int log) {
#pragma unroll
  for (int i = 0; i < VALUES; i += 8) {
    if (log == 3) {
#pragma unroll
      for (int j = i; j < i + 4; ++j) {
        const float2 a = v[j], b = v[j + 4];
        v[j] = c_add(a, b), v[j + 4] = c_mul(c_sub(a, b), root16(2 * (j - i)));
      }
    }
    if (log >= 2) {
      radix4(&v[i], &v[i + 1], &v[i + 2], &v[i + 3], 1.0f);
      radix4(&v[i + 4], &v[i + 5], &v[i + 6], &v[i + 7], 1.0f);
    } else {
#pragma unroll
      for (int j = i; j < i + 8; j += 2) {
        const float2 a = v[j], b = v[j + 1];
        v[j] = c_add(a, b), v[j + 1] = c_sub(a, b);
      }
    }
  }
}
HK_DEV void small_back(float2 *v, int log) {
#pragma unroll
  for (int i = 0; i < VALUES; i += 8) {
    if (log >= 2) {
      radix4(&v[i], &v[i + 1], &v[i + 2], &v[i + 3], -1.0f);
      radix4(&v[i + 4], &v[i + 5], &v[i + 6], &v[i + 7], -1.0f);
    } else {
#pragma unroll
      for (int j = i; j < i + 8; j += 2) {
        const float2 a = v[j], b = v[j + 1];
        v[j] = c_add(a, b), v[j + 1] = c_sub(a, b);
      }
    }
    if (log == 3) {
#pragma unroll
      for (int j = i; j < i + 4; ++j) {
        const float2 a = v[j], b = c_mul_conj(v[j + 4], root16(2 * (j - i)));
        v[j] = c_add(a, b), v[j + 4] = c_sub(a, b);
      }
    }
  }
}

/* Which of 2^log points the forward passes leave at position p. */
HK_DEV int order_of(int log, int p) {
  int k = 0, scale = 0;
  for (; log >= 4; log -= 4, scale += 4) {
    k += order16(p >> (log - 4)) << scale;
    p &= (1 << (log - 4)) - 1;
  }
  return k + ((log == 3 ? (p >> 2) + 2 * (p & 3) : p) << scale);
}

/* Twiddles of a pass over 2^log points: slot s of butterfly `at` times exp(-2 pi i at (order16(s) - shift) / 2^log),
 * shift = 1/4 with twist; back: conjugate. Powers are products of at most four factors. */
HK_DEV void twiddle(float2 *v, int at, int log, bool twist, bool back) {
  const float part = (float)at / (float)(1 << log);
  float2 w[4], x[4];
  w[0] = c_make(1.0f, 0.0f), w[1] = c_unit(2.0f * part), w[2] = c_mul(w[1], w[1]), w[3] = c_mul(w[2], w[1]);
  x[1] = c_mul(w[2], w[2]), x[2] = c_mul(x[1], x[1]), x[3] = c_mul(x[2], x[1]);
  if (twist) {
    const float2 t = c_unit(-0.5f * part);
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = c_mul(w[i], t);
  }
#pragma unroll
  for (int s = 0; s < VALUES; ++s) {
    if (s == 0 && !twist) continue;
    const float2 t = s & 3 ? c_mul(w[s >> 2], x[s & 3]) : w[s >> 2];
    v[s] = back ? c_mul_conj(v[s], t) : c_mul(v[s], t);
  }
}

/* Value s of the first pass times exp(2 pi i s / 64), or the conjugate. */
HK_DEV void turn(float2 *v, bool back) {
  const float2 one = c_make(0.99518472667219688624f, 0.09801714032956060199f);
  const float2 four = c_make(C16_1, S16_1);
  float2 w = c_make(1.0f, 0.0f);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float2 t = w;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (i || j) v[4 * i + j] = back ? c_mul_conj(v[4 * i + j], t) : c_mul(v[4 * i + j], t);
      t = c_mul(t, one);
    }
    w = c_mul(w, four);
  }
}

/* Where value 0 of a thread lies in shared memory in a pass over 2^log points, and value s beyond it; log <= 4: sixteen
 * neighbours. Sizes are constants where these are called, so the second one is a constant too. */
HK_DEV int place(int log, int columns) {
  const int rest = (int)threadIdx.x >> columns, part = log > 4 ? log - 4 : 0;
  const int p = ((rest >> part) << (part + 4)) + (rest & ((1 << part) - 1));
  const int i = (p << columns) + ((int)threadIdx.x & ((1 << columns) - 1));
  return i + (i >> 4);
}
HK_DEV int beyond(int log, int columns, int s) {
  const int i = s << ((log > 4 ? log - 4 : 0) + columns);
  return i + (i >> 4);
}
HK_DEV void put(const float2 *v, int log, int columns) {
  float2 *to = exchange + place(log, columns);
#pragma unroll
  for (int s = 0; s < VALUES; ++s) to[beyond(log, columns, s)] = v[s];
}
HK_DEV void get(float2 *v, int log, int columns) {
  const float2 *from = exchange + place(log, columns);
#pragma unroll
  for (int s = 0; s < VALUES; ++s) v[s] = from[beyond(log, columns, s)];
}
/* The butterfly of this thread in the pass over 2^log points. */
HK_DEV int butterfly(int log, int columns) { return ((int)threadIdx.x >> columns) & ((1 << (log - 4)) - 1); }

/* v: value s is point place(log) of the input; then point place(4) of the result, 16 neighbours. log is a constant, at
 * least 5. */
HK_DEV void forward(float2 *v, int log, int columns, bool twist) {
  if (twist) turn(v, false);
  __syncthreads(); /* the last pass of an earlier transform has been read */
#pragma unroll
  for (int l = log; l > 4; l -= 4) {
    radix16(v);
    twiddle(v, butterfly(l, columns), l, twist && l == log, false);
    put(v, l, columns);
    __syncthreads();
    get(v, l - 4, columns);
  }
  if (log & 3) small(v, log & 3);
  else radix16(v);
}

HK_DEV void inverse(float2 *v, int log, int columns, bool twist) {
  if (log & 3) small_back(v, log & 3);
  else radix16_back(v);
#pragma unroll
  for (int l = (log & 3) ? (log & 3) : 4; l < log; l += 4) {
    put(v, l, columns);
    __syncthreads();
    get(v, l + 4, columns);
    twiddle(v, butterfly(l + 4, columns), l + 4, twist && l + 4 == log, true);
    radix16_back(v);
  }
  if (twist) turn(v, true);
}
#endif
