/* Complex vectors. Value i of z is a vector of real parts at z[i*2*VW] and one of imaginary parts VW floats later.
 * Include a vocabulary, then this. */
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
