/* Winograd's transforms F(m x m, 3 x 3) and F(m, 3) for one ISA, m = 2 and 4, interpolation points 0, 1, -1 (and 2,
 * -2). Lanes are channels. The transform of a tile applies that of a line twice, through a small array in L1. Define
 * HK_IN_2, HK_IN_4, HK_OUT_2, HK_OUT_4 (the names), include a vocabulary, then this. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

/* t = B^T d, step elements apart. */
static inline void in_2(const v_f32 *d, int step, v_f32 *t, int to) {
  const v_f32 d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
  t[0] = v_sub(d0, d2);
  t[to] = v_add(d1, d2);
  t[2 * to] = v_sub(d2, d1);
  t[3 * to] = v_sub(d1, d3);
}

static inline void in_4(const v_f32 *d, int step, v_f32 *t, int to) {
  const v_f32 d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
  const v_f32 two = v_set1(2.0f), four = v_set1(4.0f), five = v_set1(5.0f);
  const v_f32 a = v_fnma(four, d2, d4), b = v_fnma(four, d1, d3), c = v_sub(d4, d2), e = v_sub(d3, d1);
  t[0] = v_fnma(five, d2, v_fma(four, d0, d4));
  t[to] = v_add(a, b);
  t[2 * to] = v_sub(a, b);
  t[3 * to] = v_fma(two, e, c);
  t[4 * to] = v_fnma(two, e, c);
  t[5 * to] = v_fnma(five, d3, v_fma(four, d1, d5));
}

/* s = A^T m. */
static inline void out_2(const v_f32 *m, int step, v_f32 *s, int to) {
  const v_f32 m0 = m[0], m1 = m[step], m2 = m[2 * step], m3 = m[3 * step];
  s[0] = v_add(m0, v_add(m1, m2));
  s[to] = v_sub(v_sub(m1, m2), m3);
}

static inline void out_4(const v_f32 *m, int step, v_f32 *s, int to) {
  const v_f32 m0 = m[0], m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step], m5 = m[5 * step];
  const v_f32 a = v_add(m1, m2), b = v_sub(m1, m2), c = v_add(m3, m4), d = v_sub(m3, m4);
  s[0] = v_add(m0, v_add(a, c));
  s[to] = v_fma(v_set1(2.0f), d, b);
  s[2 * to] = v_fma(v_set1(4.0f), c, a);
  s[3 * to] = v_add(v_fma(v_set1(8.0f), d, b), m5);
}

/* One vector of channels of a tile: t x t pixels to t x t values. n < HK_VW only in the last. */
static inline __attribute__((always_inline)) void in_tile(const hk_winoin_args *r, int64_t c, int64_t n, int t) {
  v_f32 d[36], u[36];
  HK_UNROLL for (int i = 0; i < t * t; i++) d[i] = v_load_n(r->x[i] + c, n);
  HK_UNROLL for (int j = 0; j < t; j++) {
    if (t == 4) in_2(d + j, t, u + j, t);
    else in_4(d + j, t, u + j, t);
  }
  HK_UNROLL for (int i = 0; i < t; i++) {
    if (t == 4) in_2(u + i * t, 1, d + i * t, 1);
    else in_4(u + i * t, 1, d + i * t, 1);
  }
  HK_UNROLL for (int i = 0; i < t * t; i++) v_store_n(r->v + i * r->v_step + c, d[i], n);
}

/* The same for t pixels of a line. */
static inline __attribute__((always_inline)) void in_line(const hk_winoin_args *r, int64_t c, int64_t n, int t) {
  v_f32 d[6], u[6];
  HK_UNROLL for (int i = 0; i < t; i++) d[i] = v_load_n(r->x[i] + c, n);
  if (t == 4) in_2(d, 1, u, 1);
  else in_4(d, 1, u, 1);
  HK_UNROLL for (int i = 0; i < t; i++) v_store_n(r->v + i * r->v_step + c, u[i], n);
}

static inline v_f32 finish(const hk_winoout_args *r, v_f32 s, int64_t j, int64_t n, v_f32 scale, v_f32 bias, int i) {
  if (r->flags & HK_IGEMM_AFFINE) s = v_fma(s, scale, bias);
  if (r->flags & HK_IGEMM_BEFORE) s = v_fma(v_set1(r->beta), v_load_n(r->c[i] + j, n), s);
  if (r->flags & HK_IGEMM_CLAMP) s = v_min(v_set1(r->hi), v_max(v_set1(r->lo), s));
  if (r->flags & HK_IGEMM_AFTER) s = v_fma(v_set1(r->beta), v_load_n(r->c[i] + j, n), s);
  return s;
}

static inline __attribute__((always_inline)) void out_store(const hk_winoout_args *r, const v_f32 *s, int count,
                                                            int64_t j, int64_t n) {
  const bool affine = r->flags & HK_IGEMM_AFFINE;
  const v_f32 scale = affine ? v_load(r->scale + j) : v_zero(), bias = affine ? v_load(r->bias + j) : v_zero();
  HK_UNROLL for (int i = 0; i < count; i++) {
    if (r->y[i]) v_store_n(r->y[i] + j, finish(r, s[i], j, n, scale, bias, i), n);
  }
}

/* One vector of output channels of a tile: t x t sums to m x m outputs. */
static inline __attribute__((always_inline)) void out_tile(const hk_winoout_args *r, int64_t j, int64_t n, int t) {
  const int m = t - 2;
  v_f32 d[36], u[24], s[16];
  HK_UNROLL for (int i = 0; i < t * t; i++) d[i] = v_load(r->m + i * r->m_step + j);
  HK_UNROLL for (int q = 0; q < t; q++) {
    if (t == 4) out_2(d + q, t, u + q, t);
    else out_4(d + q, t, u + q, t);
  }
  HK_UNROLL for (int p = 0; p < m; p++) {
    if (t == 4) out_2(u + p * t, 1, s + p * m, 1);
    else out_4(u + p * t, 1, s + p * m, 1);
  }
  out_store(r, s, m * m, j, n);
}

/* The same for t sums of a line, t - 2 outputs. */
static inline __attribute__((always_inline)) void out_line(const hk_winoout_args *r, int64_t j, int64_t n, int t) {
  v_f32 d[6], s[4];
  HK_UNROLL for (int i = 0; i < t; i++) d[i] = v_load(r->m + i * r->m_step + j);
  if (t == 4) out_2(d, 1, s, 1);
  else out_4(d, 1, s, 1);
  out_store(r, s, t - 2, j, n);
}

static inline __attribute__((always_inline)) void in_all(const hk_winoin_args *r, int t) {
  if (r->line) {
    for (int64_t c = 0; c < r->channels; c += HK_VW) in_line(r, c, hk_min64(HK_VW, r->channels - c), t);
  } else {
    for (int64_t c = 0; c < r->channels; c += HK_VW) in_tile(r, c, hk_min64(HK_VW, r->channels - c), t);
  }
}

static inline __attribute__((always_inline)) void out_all(const hk_winoout_args *r, int t) {
  if (r->line) {
    for (int64_t j = 0; j < r->columns; j += HK_VW) out_line(r, j, hk_min64(HK_VW, r->columns - j), t);
  } else {
    for (int64_t j = 0; j < r->columns; j += HK_VW) out_tile(r, j, hk_min64(HK_VW, r->columns - j), t);
  }
}

void HK_IN_2(const void *args) { in_all(args, 4); }
void HK_IN_4(const void *args) { in_all(args, 6); }
void HK_OUT_2(const void *args) { out_all(args, 4); }
void HK_OUT_4(const void *args) { out_all(args, 6); }
