/* What follows the sum of a vector of y: activation, post gate, residual, store. */
#ifndef HK_CAUSAL_FINISH_TMPL_H
#define HK_CAUSAL_FINISH_TMPL_H
#include "cpu/tmpl/causal/typed.tmpl.h"
#include "cpu/tmpl/common/actmath.tmpl.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

/* Vectors that go through the activation together. Its 17 instructions depend on one another: alone, a vector fills the
 * scheduler with instructions that wait (Zen 4, n8 c256 l512 w4 bf16, channels-last: 501 in place of 373 us). */
enum { TOGETHER = HK_VREGS >= 32 ? 4 : HK_VW > 1 ? 2 : 1 };
#define EACH HK_UNROLL for (int i = 0; i < count; i++)

/* p * 2^n for whole n from -126 to 126. */
INLINE v_f32 scaled(v_f32 p, v_f32 n) {
#if HK_VW == 16
  return _mm512_scalef_ps(p, n);
#else
  return v_mul(p, v_exp2i(v_to_i32(n)));
#endif
}

/* a / b for b from 1 to 1e38: within 2 units in the last place, or within 1e-4. */
INLINE v_f32 quotient(v_f32 a, v_f32 b, const bool rough) {
#if HK_VW == 16 /* a division of 16 lanes takes 10 cycles of Zen 4 */
  const v_f32 r = _mm512_rcp14_ps(b);
  return v_mul(a, rough ? r : v_mul(r, v_fnma(b, r, v_set1(2.0f))));
#else
  (void)rough;
  return v_div(a, b);
#endif
}

/* e[i] = e^-c[i] for c from -87 to 87: 2^n e^-r with r = c + n ln 2 and a minimax polynomial on |r| <= ln(2)/2, of
 * degree 5 (relative error 6e-7), 4 (4e-6) or 3 (8e-5). */
INLINE void exp_minus(const v_f32 *c, v_f32 *e, const int count, const int degree) {
  v_f32 n[TOGETHER], r[TOGETHER];
  EACH n[i] = v_mul(c[i], v_set1(-1.44269504088896341f));
  EACH n[i] = v_round(n[i]);
  EACH r[i] = v_fma(n[i], v_set1(0.69314718055994531f), c[i]);
  if (degree == 3) {
    EACH e[i] = v_fma(v_set1(-1.656682243e-1f), r[i], v_set1(5.049642486e-1f));
    EACH e[i] = v_fma(e[i], r[i], v_set1(-1.000164251f));
    EACH e[i] = v_fma(e[i], r[i], v_set1(9.999280454e-1f));
  } else if (degree == 4) {
    EACH e[i] = v_fma(v_set1(4.145856668e-2f), r[i], v_set1(-1.679093189e-1f));
    EACH e[i] = v_fma(e[i], r[i], v_set1(5.00043604e-1f));
    EACH e[i] = v_fma(e[i], r[i], v_set1(-9.999633904e-1f));
    EACH e[i] = v_fma(e[i], r[i], v_set1(9.99999261e-1f));
  } else {
    EACH e[i] = v_fma(v_set1(-8.297647966e-3f), r[i], v_set1(4.191543143e-2f));
    EACH e[i] = v_fma(e[i], r[i], v_set1(-1.666757509e-1f));
    EACH e[i] = v_fma(e[i], r[i], v_set1(4.999889441e-1f));
    EACH e[i] = v_fma(e[i], r[i], v_set1(-9.999996918e-1f));
    EACH e[i] = v_fma(e[i], r[i], v_set1(1.0f));
  }
  EACH e[i] = scaled(e[i], n[i]);
}

/* v / (1 + e^-v) in 17 instructions where actmath's takes 30. Relative error 1e-6 down to v = -87 (results of 16 bits:
 * a tenth of their own rounding); below, where silu is under 1e-35 in magnitude, absolute error 2e-35. NaN stays NaN;
 * -inf gives -0. */
INLINE void silu(v_f32 *v, const int count, const int degree) {
  v_f32 c[TOGETHER], e[TOGETHER];
  EACH c[i] = v_max(v_set1(-87.0f), v_min(v_set1(87.0f), v[i]));
  exp_minus(c, e, count, degree);
  EACH e[i] = v_add(v_set1(1.0f), e[i]);
  EACH v[i] = v_max(v_set1(FAR_LEFT), v[i]);
  EACH v[i] = quotient(v[i], e[i], degree < 5);
}

/* The activations but the two that every loop inlines; out of line, so that loops keep their registers. */
static __attribute__((noinline)) v_f32 other_act(hk_act act, float a, float b, v_f32 v) {
  return v_act(act, v, a, b, v_zero());
}

/* Types of x and y: constants in the loops but those of mixed types. */
typedef struct kinds {
  hk_type x, y;
} kinds;
/* n lanes of channel c and token t. */
typedef struct where {
  int64_t c, t, n;
} where;
/* Element offsets in y, post and residual. */
typedef struct places {
  int64_t y, post, residual;
} places;
/* Finishes `count` vectors of n lanes, the first at `at`, the others one step further each. */
INLINE void finish(const hk_causal_tile *r, kinds k, v_f32 *v, const int count, places at, places step, int64_t n) {
  /* As exact as the result's type shows, which a residual that cancels would reveal; the same in every loop, so that
   * the bits do not depend on the position. */
  const int degree = k.y == HK_BF16 ? 3 : k.y == HK_F16 ? 4 : 5;
  if (r->act == HK_ACT_SILU && r->residual) silu(v, count, 5);
  else if (r->act == HK_ACT_SILU) silu(v, count, degree);
  else if (r->act) EACH v[i] = other_act(r->act, r->a, r->b, v[i]);
  if (r->post) EACH v[i] = v_mul(v[i], get_n(k.x, r->post, at.post + i * step.post, n));
  if (r->residual) EACH v[i] = v_add(v[i], get_n(k.x, r->residual, at.residual + i * step.residual, n));
  EACH put_n(k.y, r->y, at.y + i * step.y, v[i], n);
}

/* u = pre*x of n lanes. */
INLINE v_f32 get_u(const hk_causal_tile *r, hk_type x_type, int64_t x, int64_t pre, int64_t n) {
  const v_f32 v = get_n(x_type, r->x, x, n);
  return r->pre ? v_mul(v, get_n(x_type, r->pre, pre, n)) : v;
}
#endif
