/* longfft: negacyclic convolution of 2N real values by N complex points; see hk_longfft_args.
 *
 * Define HK_NAME, include a vocabulary with v_transpose, then this. Real values a[p], p < 2N, are taken modulo X^2N + 1
 * as z[p] = a[p] + i*a[p+N], p < N, modulo X^N - i ("right-angle" convolution): one complex transform of N points, with
 * no pass that separates the spectra of real sequences. Its points are the roots of X^N = i,
 *   Z[k] = sum over p of z[p] * exp(-2 pi i p (k - 1/4) / N).
 * N = n1*n2, p = i*n2 + j, k = k1 + n1*k2: columns of n1 points (VW columns at a time, lanes are j), the twiddle
 * exp(-2 pi i j (k1 - 1/4) / N), a transpose of VW x VW, and rows of n2 points (VW rows at a time, lanes are k1). Row
 * block r, point j of a spectrum is the complex vector r*n2 + j. Steps are radix 4, decimation in frequency, and the
 * inverse runs them in reverse, so points stay in the order that the forward steps leave and nothing is reordered. A
 * block of columns or rows stays in L1 up to N = 64k, in L2 above. */
#include "cpu/tmpl/transform/radix4.tmpl.h"

/* A step of radix 3 over 3m points: w^j and w^2j for each j. */
static void down3(float *z, const float *w, int64_t m) {
  const v_f32 half = v_set1(-0.5f), root = v_set1(0.86602540378443864676f);
  for (int64_t j = 0; j < m; j++, w += 4) {
    const cpx a = c_load(z, j), b = c_load(z, j + m), c = c_load(z, j + 2 * m), s = c_add(b, c), d = c_sub(b, c);
    const cpx t = {v_fma(s.re, half, a.re), v_fma(s.im, half, a.im)}, e = {v_mul(d.re, root), v_mul(d.im, root)};
    c_store(z, j, c_add(a, s));
    c_store(z, j + m, c_mul(c_sub_i(t, e), v_bcast(w), v_bcast(w + 1)));
    c_store(z, j + 2 * m, c_mul(c_add_i(t, e), v_bcast(w + 2), v_bcast(w + 3)));
  }
}

static void back3(float *z, const float *w, int64_t m) {
  const v_f32 half = v_set1(-0.5f), root = v_set1(0.86602540378443864676f);
  for (int64_t j = 0; j < m; j++, w += 4) {
    const cpx a = c_load(z, j), b = c_mul_conj(c_load(z, j + m), v_bcast(w), v_bcast(w + 1));
    const cpx c = c_mul_conj(c_load(z, j + 2 * m), v_bcast(w + 2), v_bcast(w + 3)), s = c_add(b, c), d = c_sub(b, c);
    const cpx t = {v_fma(s.re, half, a.re), v_fma(s.im, half, a.im)}, e = {v_mul(d.re, root), v_mul(d.im, root)};
    c_store(z, j, c_add(a, s));
    c_store(z, j + m, c_add_i(t, e));
    c_store(z, j + 2 * m, c_sub_i(t, e));
  }
}

HK_INLINE void radix4(cpx *z) {
  const cpx s = c_add(z[0], z[2]), t = c_sub(z[0], z[2]), u = c_add(z[1], z[3]), v = c_sub(z[1], z[3]);
  z[0] = c_add(s, u), z[1] = c_sub_i(t, v), z[2] = c_sub(s, u), z[3] = c_add_i(t, v);
}
HK_INLINE void radix4_back(cpx *z) {
  const cpx s = c_add(z[0], z[2]), t = c_sub(z[0], z[2]), u = c_add(z[1], z[3]), v = c_sub(z[1], z[3]);
  z[0] = c_add(s, u), z[1] = c_add_i(t, v), z[2] = c_sub(s, u), z[3] = c_sub_i(t, v);
}
/* Eight points in registers; w: exp(-2 pi i j / 8), j < 4. */
HK_INLINE void radix8(cpx *z, const float *w) {
  HK_UNROLL for (int i = 0; i < 4; i++) {
    const cpx a = z[i], b = z[i + 4];
    z[i] = c_add(a, b);
    z[i + 4] = c_mul(c_sub(a, b), v_bcast(w + 2 * i), v_bcast(w + 2 * i + 1));
  }
  radix4(z), radix4(z + 4);
}
HK_INLINE void radix8_back(cpx *z, const float *w) {
  radix4_back(z), radix4_back(z + 4);
  HK_UNROLL for (int i = 0; i < 4; i++) {
    const cpx a = z[i], b = c_mul_conj(z[i + 4], v_bcast(w + 2 * i), v_bcast(w + 2 * i + 1));
    z[i] = c_add(a, b), z[i + 4] = c_sub(a, b);
  }
}

/* What happens to a leaf: its points of z (spectra of x) and g (of dy) are in registers. */
HK_INLINE void leaf(const hk_longfft_args *a, float *z, int64_t at, const float *w, const int n) {
  cpx v[8];
  float *p = z + at * 2 * HK_VW;
  HK_UNROLL for (int i = 0; i < n; i++) v[i] = c_load(p, i);
  if (n == 4) radix4(v);
  else radix8(v, w);
  if (a->op == HK_LONGFFT_CONVOLVE) {
    const float *h = a->h + at * 2 * HK_VW;
    HK_UNROLL for (int i = 0; i < n; i++) {
      const cpx f = c_load(h, i);
      v[i] = c_mul(v[i], f.re, f.im);
    }
    if (n == 4) radix4_back(v);
    else radix8_back(v, w);
  }
  HK_UNROLL for (int i = 0; i < n; i++) c_store(p, i, v[i]);
}
HK_INLINE void leaf_back(float *p, const float *w, const int n) {
  cpx v[8];
  HK_UNROLL for (int i = 0; i < n; i++) v[i] = c_load(p, i);
  if (n == 4) radix4_back(v);
  else radix8_back(v, w);
  HK_UNROLL for (int i = 0; i < n; i++) c_store(p, i, v[i]);
}

static const float *next(const float *w, int64_t n) { return w + (n % 3 ? n / 4 * 6 : n / 3 * 4); }

/* n points from complex vector `at` of z on: forward, or with CONVOLVE forward, times h and back. */
static void transform(const hk_longfft_args *a, float *z, int64_t at, const float *w, int64_t n) {
  if (n == 4) {
    leaf(a, z, at, w, 4);
  } else if (n == 8) {
    leaf(a, z, at, w, 8);
  } else {
    const int64_t ways = n % 3 ? 4 : 3, m = n / ways;
    float *p = z + at * 2 * HK_VW;
    if (ways == 3) down3(p, w, m);
    else down(p, w, m);
    for (int64_t i = 0; i < ways; i++) transform(a, z, at + i * m, next(w, n), m);
    if (a->op != HK_LONGFFT_CONVOLVE) return;
    if (ways == 3) back3(p, w, m);
    else back(p, w, m);
  }
}
static void inverse(float *z, const float *w, int64_t n) {
  if (n == 4) {
    leaf_back(z, w, 4);
  } else if (n == 8) {
    leaf_back(z, w, 8);
  } else {
    const int64_t ways = n % 3 ? 4 : 3, m = n / ways;
    for (int64_t i = 0; i < ways; i++) inverse(z + i * m * 2 * HK_VW, next(w, n), m);
    if (ways == 3) back3(z, w, m);
    else back(z, w, m);
  }
}

/* ---- columns */

HK_INLINE v_f32 load_row(const hk_longfft_row *r, int64_t p) {
  if (p >= r->first && p + HK_VW <= r->last) return v_load(r->at + p + r->shift);
  if (p + HK_VW <= r->first || p >= r->last) return v_zero();
  float lanes[HK_VW];
  for (int i = 0; i < HK_VW; i++) lanes[i] = p + i >= r->first && p + i < r->last ? r->at[p + i + r->shift] : 0.0f;
  return v_load(lanes);
}
HK_INLINE void store_row(const hk_longfft_row *r, int64_t p, v_f32 v) {
  if (p >= r->first && p + HK_VW <= r->last) {
    v_store(r->at + p + r->shift, v);
  } else if (p + HK_VW > r->first && p < r->last) {
    float lanes[HK_VW];
    v_store(lanes, v);
    for (int i = 0; i < HK_VW; i++)
      if (p + i >= r->first && p + i < r->last) r->at[p + i + r->shift] = lanes[i];
  }
}

/* The first step, from the row: value q of a butterfly is multiplied by exp(i pi q / 8), and result q of butterfly j by
 * exp(-2 pi i j (q - 1/4) / n1), which are w. */
HK_INLINE void first_step(const hk_longfft_args *a, const hk_longfft_row *r, int64_t j, const bool real) {
  const int64_t m = a->n1 / 4, points = a->n1 * a->n2;
  const float *w = a->columns;
  const float turn[3][2] = {{0.92387953251128675613f, 0.38268343236508977173f},
                            {0.70710678118654752440f, 0.70710678118654752440f},
                            {0.38268343236508977173f, 0.92387953251128675613f}};
  for (int64_t i = 0; i < m; i++, w += 8) {
    cpx v[4];
    HK_UNROLL for (int q = 0; q < 4; q++) {
      const int64_t p = (i + q * m) * a->n2 + j;
      v[q].re = load_row(r, p);
      v[q].im = real ? v_zero() : load_row(r, p + points);
      if (!q) continue;
      const v_f32 re = v_bcast(&turn[q - 1][0]), im = v_bcast(&turn[q - 1][1]);
      if (real) v[q] = (cpx){v_mul(v[q].re, re), v_mul(v[q].re, im)};
      else v[q] = c_mul(v[q], re, im);
    }
    radix4(v);
    HK_UNROLL for (int q = 0; q < 4; q++)
        c_store(a->buffer, i + q * m, c_mul(v[q], v_bcast(w + 2 * q), v_bcast(w + 2 * q + 1)));
  }
}
HK_INLINE void last_step(const hk_longfft_args *a, const hk_longfft_row *r, int64_t j, const bool real) {
  const int64_t m = a->n1 / 4, points = a->n1 * a->n2;
  const float *w = a->columns;
  const float turn[3][2] = {{0.92387953251128675613f, 0.38268343236508977173f},
                            {0.70710678118654752440f, 0.70710678118654752440f},
                            {0.38268343236508977173f, 0.92387953251128675613f}};
  const v_f32 scale = v_set1(1.0f / (float)points);
  for (int64_t i = 0; i < m; i++, w += 8) {
    cpx v[4];
    HK_UNROLL for (int q = 0; q < 4; q++) {
      v[q] = c_load(a->buffer, i + q * m);
      v[q] = c_mul_conj(v[q], v_bcast(w + 2 * q), v_bcast(w + 2 * q + 1));
    }
    radix4_back(v);
    HK_UNROLL for (int q = 0; q < 4; q++) {
      const int64_t p = (i + q * m) * a->n2 + j;
      if (q) v[q] = c_mul_conj(v[q], v_bcast(&turn[q - 1][0]), v_bcast(&turn[q - 1][1]));
      store_row(r, p, v_mul(v[q].re, scale));
      if (!real) store_row(r, p + points, v_mul(v[q].im, scale));
    }
  }
}

HK_INLINE cpx twiddle(const hk_longfft_args *a, int64_t block, int64_t k) {
  const cpx lane = c_load(a->lane, k);
  const float *base = a->base + (block * a->n1 + k) * 2;
  return c_mul(lane, v_bcast(base), v_bcast(base + 1));
}

/* A block of VW columns takes HK_LONGFFT_STEPS steps: the first radix-4 step into buffer, then one for each quarter of
 * its points. A vector of points is done by the step that completes it. */
static void quarter(const hk_longfft_args *a, int64_t block, int64_t q, float *z) {
  hk_longfft_args forward = *a;
  forward.op = HK_LONGFFT_FORWARD;
  const int64_t m = a->n1 / 4, first = q * m / HK_VW * HK_VW, last = (q + 1) * m / HK_VW * HK_VW;
  transform(&forward, a->buffer, q * m, a->columns + 8 * m, m);
  for (int64_t k = first; k < last; k += HK_VW) {
    v_f32 re[HK_VW], im[HK_VW];
    HK_UNROLL for (int i = 0; i < HK_VW; i++) {
      const cpx t = twiddle(a, block, k + i), v = c_mul(c_load(a->buffer, k + i), t.re, t.im);
      re[i] = v.re, im[i] = v.im;
    }
    v_transpose(re);
    float *to = z + (k / HK_VW * a->n2 + block * HK_VW) * 2 * HK_VW;
    HK_UNROLL for (int i = 0; i < HK_VW; i++) v_store(to + i * 2 * HK_VW, re[i]);
    v_transpose(im);
    HK_UNROLL for (int i = 0; i < HK_VW; i++) v_store(to + i * 2 * HK_VW + HK_VW, im[i]);
  }
}
static void columns(const hk_longfft_args *a, const hk_longfft_row *r, float *z) {
  for (int64_t u = a->from; u < a->to; u++) {
    const int64_t block = u / HK_LONGFFT_STEPS, step = u % HK_LONGFFT_STEPS;
    if (step) quarter(a, block, step - 1, z);
    else if (r->last <= a->n1 * a->n2) first_step(a, r, block * HK_VW, true);
    else first_step(a, r, block * HK_VW, false);
  }
}

static void quarter_back(const hk_longfft_args *a, int64_t block, int64_t q, const float *z) {
  const int64_t m = a->n1 / 4, first = (q * m + HK_VW - 1) / HK_VW * HK_VW;
  const int64_t last = ((q + 1) * m + HK_VW - 1) / HK_VW * HK_VW;
  for (int64_t k = first; k < last; k += HK_VW) {
    v_f32 re[HK_VW], im[HK_VW];
    const float *from = z + (k / HK_VW * a->n2 + block * HK_VW) * 2 * HK_VW;
    HK_UNROLL for (int i = 0; i < HK_VW; i++) re[i] = v_load(from + i * 2 * HK_VW);
    v_transpose(re);
    HK_UNROLL for (int i = 0; i < HK_VW; i++) im[i] = v_load(from + i * 2 * HK_VW + HK_VW);
    v_transpose(im);
    HK_UNROLL for (int i = 0; i < HK_VW; i++) {
      const cpx t = twiddle(a, block, k + i);
      c_store(a->buffer, k + i, c_mul_conj((cpx){re[i], im[i]}, t.re, t.im));
    }
  }
  inverse(a->buffer + q * m * 2 * HK_VW, a->columns + 8 * m, m);
}
static void columns_back(const hk_longfft_args *a, const hk_longfft_row *r, const float *z) {
  for (int64_t u = a->from; u < a->to; u++) {
    const int64_t block = u / HK_LONGFFT_STEPS, step = u % HK_LONGFFT_STEPS;
    if (step < 4) quarter_back(a, block, step, z);
    else if (r->last <= a->n1 * a->n2) last_step(a, r, block * HK_VW, true);
    else last_step(a, r, block * HK_VW, false);
  }
}

/* ---- rows: blocks of VW of them */

/* Products of a block of rows of z = F(x) and g = F(dy): sum += g*conj(z); then z = z*h and g = g*conj(h). */
static void products(const hk_longfft_args *a, int64_t at) {
  for (int64_t i = at; i < at + a->n2; i++) {
    const cpx g = c_load(a->g, i);
    if (a->x.at) {
      const cpx z = c_load(a->z, i);
      if (a->sum) c_store(a->sum, i, c_add(c_load(a->sum, i), c_mul_conj(g, z.re, z.im)));
      if (a->y.at) {
        const cpx h = c_load(a->h, i);
        c_store(a->z, i, c_mul(z, h.re, h.im));
      }
    }
    if (a->dx.at) {
      const cpx h = c_load(a->h, i);
      c_store(a->g, i, c_mul_conj(g, h.re, h.im));
    }
  }
}

static void gradient(const hk_longfft_args *a) {
  if (a->x.at) columns(a, &a->x, a->z);
  columns(a, &a->dy, a->g);
  for (int64_t at = 0; at < a->n1 / HK_VW * a->n2; at += a->n2) {
    if (a->x.at) transform(a, a->z, at, a->rows, a->n2);
    transform(a, a->g, at, a->rows, a->n2);
    products(a, at);
    if (a->y.at) inverse(a->z + at * 2 * HK_VW, a->rows, a->n2);
    if (a->dx.at) inverse(a->g + at * 2 * HK_VW, a->rows, a->n2);
  }
  if (a->y.at) columns_back(a, &a->y, a->z);
  if (a->dx.at) columns_back(a, &a->dx, a->g);
}

/* A block of VW rows takes as many steps: radix 4 over all points, and each quarter. */
static void rows(const hk_longfft_args *a) {
  const int64_t m = a->n2 / 4;
  for (int64_t u = a->from; u < a->to; u++) {
    const int64_t at = u / HK_LONGFFT_STEPS * a->n2, step = u % HK_LONGFFT_STEPS;
    if (step) transform(a, a->z, at + (step - 1) * m, a->rows + 6 * m, m);
    else down(a->z + at * 2 * HK_VW, a->rows, m);
  }
}
static void rows_back(const hk_longfft_args *a) {
  const int64_t m = a->n2 / 4;
  for (int64_t u = a->from; u < a->to; u++) {
    const int64_t at = u / HK_LONGFFT_STEPS * a->n2, step = u % HK_LONGFFT_STEPS;
    if (step < 4) inverse(a->z + (at + step * m) * 2 * HK_VW, a->rows + 6 * m, m);
    else back(a->z + at * 2 * HK_VW, a->rows, m);
  }
}

void HK_NAME(const void *args) {
  const hk_longfft_args *a = args;
  hk_longfft_args whole = *a;
  whole.from = 0, whole.to = a->n2 / HK_VW * HK_LONGFFT_STEPS;
  switch (a->op) {
  case HK_LONGFFT_GRADIENT: gradient(&whole); return;
  case HK_LONGFFT_COLUMNS: columns(a, &a->x, a->z); return;
  case HK_LONGFFT_COLUMNS_BACK: columns_back(a, &a->y, a->z); return;
  case HK_LONGFFT_ROWS: rows(a); return;
  case HK_LONGFFT_ROWS_BACK: rows_back(a); return;
  default: break;
  }
  if (a->op != HK_LONGFFT_INVERSE) columns(&whole, &a->x, a->z);
  for (int64_t r = 0; r < a->n1 / HK_VW; r++)
    if (a->op == HK_LONGFFT_INVERSE) inverse(a->z + r * a->n2 * 2 * HK_VW, a->rows, a->n2);
    else transform(a, a->z, r * a->n2, a->rows, a->n2);
  if (a->op != HK_LONGFFT_FORWARD) columns_back(&whole, &a->y, a->z);
}
