/* Complex vectors and the steps of radix 4 over them. Value i of z is a vector of real parts at z[i*2*VW] and one of
 * imaginary parts VW floats later. Twiddles of a step of n points: for n/4 values of j, w^j, w^2j and w^3j as pairs,
 * w = exp(-2 pi i / n). Include a vocabulary, then this. */
#include "cpu/tmpl/common/unroll.tmpl.h"
#include "cpu/ukernel.h"

#ifndef HK_INLINE
#define HK_INLINE static inline __attribute__((always_inline))
#endif

typedef struct cpx {
  v_f32 re, im;
} cpx;

HK_INLINE cpx c_load(const float *z, int64_t i) {
  return (cpx){v_load(z + i * 2 * HK_VW), v_load(z + i * 2 * HK_VW + HK_VW)};
}
HK_INLINE void c_store(float *z, int64_t i, cpx v) {
  v_store(z + i * 2 * HK_VW, v.re);
  v_store(z + i * 2 * HK_VW + HK_VW, v.im);
}
HK_INLINE cpx c_add(cpx a, cpx b) { return (cpx){v_add(a.re, b.re), v_add(a.im, b.im)}; }
HK_INLINE cpx c_sub(cpx a, cpx b) { return (cpx){v_sub(a.re, b.re), v_sub(a.im, b.im)}; }
/* Returns a + i*b and a - i*b. */
HK_INLINE cpx c_add_i(cpx a, cpx b) { return (cpx){v_sub(a.re, b.im), v_add(a.im, b.re)}; }
HK_INLINE cpx c_sub_i(cpx a, cpx b) { return (cpx){v_add(a.re, b.im), v_sub(a.im, b.re)}; }
HK_INLINE cpx c_mul(cpx a, v_f32 re, v_f32 im) {
  return (cpx){v_fnma(a.im, im, v_mul(a.re, re)), v_fma(a.im, re, v_mul(a.re, im))};
}
HK_INLINE cpx c_mul_conj(cpx a, v_f32 re, v_f32 im) {
  return (cpx){v_fma(a.im, im, v_mul(a.re, re)), v_fnma(a.re, im, v_mul(a.im, re))};
}

static void down(float *z, const float *w, int64_t m) {
  for (int64_t j = 0; j < m; j++, w += 6) {
    const cpx a = c_load(z, j), b = c_load(z, j + m), c = c_load(z, j + 2 * m), d = c_load(z, j + 3 * m);
    const cpx s = c_add(a, c), t = c_sub(a, c), u = c_add(b, d), v = c_sub(b, d);
    c_store(z, j, c_add(s, u));
    c_store(z, j + m, c_mul(c_sub_i(t, v), v_bcast(w), v_bcast(w + 1)));
    c_store(z, j + 2 * m, c_mul(c_sub(s, u), v_bcast(w + 2), v_bcast(w + 3)));
    c_store(z, j + 3 * m, c_mul(c_add_i(t, v), v_bcast(w + 4), v_bcast(w + 5)));
  }
}

static void back(float *z, const float *w, int64_t m) {
  for (int64_t j = 0; j < m; j++, w += 6) {
    const cpx a = c_load(z, j), b = c_mul_conj(c_load(z, j + m), v_bcast(w), v_bcast(w + 1));
    const cpx c = c_mul_conj(c_load(z, j + 2 * m), v_bcast(w + 2), v_bcast(w + 3));
    const cpx d = c_mul_conj(c_load(z, j + 3 * m), v_bcast(w + 4), v_bcast(w + 5));
    const cpx s = c_add(a, c), t = c_sub(a, c), u = c_add(b, d), v = c_sub(b, d);
    c_store(z, j, c_add(s, u));
    c_store(z, j + m, c_add_i(t, v));
    c_store(z, j + 2 * m, c_sub(s, u));
    c_store(z, j + 3 * m, c_sub_i(t, v));
  }
}
