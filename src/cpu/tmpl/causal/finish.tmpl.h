/* What follows the sum of a vector of y: activation, post gate, residual, store. */
#ifndef HK_CAUSAL_FINISH_TMPL_H
#define HK_CAUSAL_FINISH_TMPL_H
#include "cpu/tmpl/causal/typed.tmpl.h"
#include "cpu/tmpl/common/actmath.tmpl.h"

/* a / b for b from 1 to 1e38, within 2 units in the last place. */
INLINE v_f32 quotient(v_f32 a, v_f32 b) {
#if HK_VW == 16 /* a division of 16 lanes takes 10 cycles of Zen 4 */
  const v_f32 r = _mm512_rcp14_ps(b);
  return v_mul(a, v_mul(r, v_fnma(b, r, v_set1(2.0f))));
#else
  return v_div(a, b);
#endif
}

/* p * 2^n for whole n from -126 to 126. */
INLINE v_f32 scaled(v_f32 p, v_f32 n) {
#if HK_VW == 16
  return _mm512_scalef_ps(p, n);
#else
  return v_mul(p, v_exp2i(v_to_i32(n)));
#endif
}

/* e^-c for c from -87 to 87: 2^n e^-r with r = c + n ln 2 and a minimax polynomial of degree 5 on |r| <= ln(2)/2.
 * Relative error 6e-7. */
INLINE v_f32 exp_minus(v_f32 c) {
  const v_f32 n = v_round(v_mul(c, v_set1(-1.44269504088896341f)));
  const v_f32 r = v_fma(n, v_set1(0.69314718055994531f), c);
  v_f32 p = v_fma(v_set1(-8.297647966e-3f), r, v_set1(4.191543143e-2f));
  p = v_fma(p, r, v_set1(-1.666757509e-1f));
  p = v_fma(p, r, v_set1(4.999889441e-1f));
  p = v_fma(p, r, v_set1(-9.999996918e-1f));
  p = v_fma(p, r, v_set1(1.0f));
  return scaled(p, n);
}

/* v / (1 + e^-v) in 17 instructions where actmath's takes 30. Relative error 1e-6 down to v = -87; below, where silu is
 * under 1e-35 in magnitude, absolute error 2e-35. NaN stays NaN; -inf gives -0. */
INLINE v_f32 silu(v_f32 v) {
  const v_f32 e = exp_minus(v_max(v_set1(-87.0f), v_min(v_set1(87.0f), v)));
  return quotient(v_max(v_set1(FAR_LEFT), v), v_add(v_set1(1.0f), e));
}

/* The activations but the two that every loop inlines; out of line, so that loops keep their registers. */
static __attribute__((noinline)) v_f32 other_act(hk_act act, float a, float b, v_f32 v) {
  return v_act(act, v, a, b, v_zero());
}

/* n lanes at y[y], post[post] and residual[residual], counted in elements. */
typedef struct places {
  int64_t y, post, residual;
} places;
INLINE void finish(const hk_causal_tile *r, hk_type x_type, hk_type y_type, v_f32 v, places at, int64_t n) {
  if (r->act == HK_ACT_SILU) v = silu(v);
  else if (r->act) v = other_act(r->act, r->a, r->b, v);
  if (r->post) v = v_mul(v, get_n(x_type, r->post, at.post, n));
  if (r->residual) v = v_add(v, get_n(x_type, r->residual, at.residual, n));
  put_n(y_type, r->y, at.y, v, n);
}

/* u = pre*x of n lanes. */
INLINE v_f32 get_u(const hk_causal_tile *r, hk_type x_type, int64_t x, int64_t pre, int64_t n) {
  const v_f32 v = get_n(x_type, r->x, x, n);
  return r->pre ? v_mul(v, get_n(x_type, r->pre, pre, n)) : v;
}
#endif
