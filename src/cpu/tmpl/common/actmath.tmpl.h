/* Activation functions of one vector, for any kernel to inline. Include a vocabulary first.
 *
 * Error against the exact value, tested over the whole range of f32 (tests/c/cpu/act_test.c):
 *   exp, sigmoid, silu, tanh              relative 1e-6, plus 1e-42
 *   gelu_tanh                             relative 1e-6, plus 3e-7 * min(1, |v|)
 *   erf                                   absolute 3e-7
 *   gelu                                  absolute 3e-7 * max(1, |v|)
 *   the others                            one rounding per operation
 * NaN stays NaN; infinities give the limit. */
#ifndef HK_ACTMATH_TMPL_H
#define HK_ACTMATH_TMPL_H
#include "base/base.h"

/* silu and gelu round to 0 below this bound; clamping v to it avoids -inf * 0. */
#define FAR_LEFT -1000.0f

/* exp(x) = 2^n e^r with n = round(x log2 e). ln 2 is split in two so that n*hi is exact even without FMA. 2^n is
 * applied as two factors, so that the result overflows to inf and underflows gradually through the denormals. */
static inline v_f32 v_exp(v_f32 x) {
  const v_f32 clipped = v_max(v_set1(-105.0f), v_min(v_set1(89.0f), x));
  const v_f32 n = v_round(v_mul(clipped, v_set1(1.44269504088896341f)));
  const v_f32 r = v_fnma(n, v_set1(-2.12194440e-4f), v_fnma(n, v_set1(0.693359375f), clipped));
  v_f32 p = v_fma(v_set1(1.9875691500e-4f), r, v_set1(1.3981999507e-3f));
  p = v_fma(p, r, v_set1(8.3334519073e-3f));
  p = v_fma(p, r, v_set1(4.1665795894e-2f));
  p = v_fma(p, r, v_set1(1.6666665459e-1f));
  p = v_fma(p, r, v_set1(5.0000001201e-1f));
  p = v_add(v_fma(v_mul(r, r), p, r), v_set1(1.0f));
  const v_f32 half = v_round(v_mul(n, v_set1(0.5f)));
  return v_mul(v_mul(p, v_exp2i(v_to_i32(half))), v_exp2i(v_to_i32(v_sub(n, half))));
}

/* e = exp(-|x|) never overflows: 1/(1+e) for x >= 0, e/(1+e) for x < 0. */
static inline v_f32 v_sigmoid(v_f32 x) {
  const v_f32 one = v_set1(1.0f);
  const v_f32 e = v_exp(v_sub(v_zero(), v_abs(x)));
  const v_f32 top = v_select(v_lt(x, v_zero()), e, one);
  return v_div(top, v_add(one, e));
}

/* x P(x^2) / Q(x^2), a minimax fit of 4/4 with relative error 2.1e-8 up to 9.02, where tanh rounds to 1; all
 * coefficients are positive, so nothing cancels and rounding adds less than 3e-7. */
static inline v_f32 v_tanh(v_f32 x) {
  const v_f32 one = v_set1(1.0f), end = v_set1(9.02f);
  const v_f32 c = v_max(v_sub(v_zero(), end), v_min(end, x));
  const v_f32 z = v_mul(c, c);
  v_f32 p = v_fma(v_set1(1.331900963e-8f), z, v_set1(2.058344684e-5f));
  v_f32 q = v_fma(v_set1(7.761996843e-7f), z, v_set1(3.28308994e-4f));
  p = v_fma(p, z, v_set1(3.494033056e-3f));
  q = v_fma(q, z, v_set1(2.587106819e-2f));
  p = v_fma(p, z, v_set1(1.337971691e-1f));
  q = v_fma(q, z, v_set1(4.671303216e-1f));
  p = v_fma(p, z, v_set1(9.99999979e-1f));
  q = v_fma(q, z, one);
  return v_max(v_sub(v_zero(), one), v_min(one, v_div(v_mul(c, p), q)));
}

/* erf(x)/x as a polynomial in x^2 on |x| < 1: Chebyshev fit, error 1.3e-9 */
static inline v_f32 v_erf_near(v_f32 x) {
  const v_f32 z = v_mul(x, x);
  v_f32 p = v_fma(v_set1(7.875875063e-5f), z, v_set1(-8.016864287e-4f));
  p = v_fma(p, z, v_set1(5.189087423e-3f));
  p = v_fma(p, z, v_set1(-2.685421201e-2f));
  p = v_fma(p, z, v_set1(1.128359472e-1f));
  p = v_fma(p, z, v_set1(-3.761262667e-1f));
  p = v_fma(p, z, v_set1(1.128379166f));
  return v_mul(p, x);
}

/* erfc(m) for m >= 0.9: t e^(-m^2 + P(t)), t = 1/(1 + m/2), the Chebyshev form with relative error 1.2e-7 */
static inline v_f32 v_erfc_far(v_f32 m) {
  const v_f32 t = v_div(v_set1(1.0f), v_fma(v_set1(0.5f), m, v_set1(1.0f)));
  v_f32 p = v_fma(v_set1(0.17087277f), t, v_set1(-0.82215223f));
  p = v_fma(p, t, v_set1(1.48851587f));
  p = v_fma(p, t, v_set1(-1.13520398f));
  p = v_fma(p, t, v_set1(0.27886807f));
  p = v_fma(p, t, v_set1(-0.18628806f));
  p = v_fma(p, t, v_set1(0.09678418f));
  p = v_fma(p, t, v_set1(0.37409196f));
  p = v_fma(p, t, v_set1(1.00002368f));
  p = v_fma(p, t, v_set1(-1.26551223f));
  return v_mul(t, v_exp(v_fnma(m, m, p)));
}

static inline v_f32 v_erf(v_f32 x) {
  const v_f32 m = v_abs(x);
  const v_f32 far = v_copysign(v_sub(v_set1(1.0f), v_erfc_far(m)), x);
  return v_select(v_lt(m, v_set1(0.9f)), v_erf_near(x), far);
}

/* v Phi(v). For negative v the tail comes from erfc itself: 1 + erf would cancel. */
static inline v_f32 v_gelu(v_f32 v) {
  v = v_max(v_set1(FAR_LEFT), v);
  const v_f32 x = v_mul(v, v_set1(0.70710678118654752f));
  const v_f32 m = v_abs(x);
  const v_f32 tail = v_erfc_far(m);
  const v_f32 far = v_select(v_lt(x, v_zero()), tail, v_sub(v_set1(2.0f), tail));
  const v_f32 twice = v_select(v_lt(m, v_set1(0.9f)), v_add(v_set1(1.0f), v_erf_near(x)), far);
  return v_mul(v_mul(v, v_set1(0.5f)), twice);
}

/* 0.5 v (1 + tanh u) is v sigmoid(2u) */
static inline v_f32 v_gelu_tanh(v_f32 v) {
  v = v_max(v_set1(FAR_LEFT), v);
  const v_f32 cube = v_mul(v_mul(v, v), v);
  const v_f32 u2 = v_mul(v_set1(1.5957691216057308f), v_fma(v_set1(0.044715f), cube, v));
  return v_mul(v, v_sigmoid(u2));
}

static inline v_f32 v_silu(v_f32 v) {
  v = v_max(v_set1(FAR_LEFT), v);
  return v_mul(v, v_sigmoid(v));
}
static inline v_f32 v_clip(v_f32 v, v_f32 lo, v_f32 hi) { return v_min(hi, v_max(lo, v)); }
static inline v_f32 v_leaky(v_f32 v, v_f32 slope) { return v_select(v_lt(v, v_zero()), v_mul(v, slope), v); }
static inline v_f32 v_softsign(v_f32 v) {
  v = v_clip(v, v_set1(-3.4028234e38f), v_set1(3.4028234e38f));
  return v_div(v, v_add(v_set1(1.0f), v_abs(v)));
}
/* v * (clip(v + 3, 0, 6) / 6). The division comes first so that a large v does not overflow. */
static inline v_f32 v_hardswish(v_f32 v) {
  v = v_max(v_set1(-4.0f), v);
  const v_f32 gate = v_clip(v_add(v, v_set1(3.0f)), v_zero(), v_set1(6.0f));
  return v_mul(v, v_div(gate, v_set1(6.0f)));
}

/* act(v) of one vector; slope is for PRELU. USER passes v through. With a constant act the compiler removes the
 * switch. */
static inline v_f32 v_act(hk_act act, v_f32 v, float a, float b, v_f32 slope) {
  switch (act) {
    case HK_ACT_RELU: return v_max(v_zero(), v);
    case HK_ACT_CLIP: return v_clip(v, v_set1(a), v_set1(b));
    case HK_ACT_HARDTANH:
      if (a == 0.0f && b == 0.0f) return v_clip(v, v_set1(-1.0f), v_set1(1.0f));
      return v_clip(v, v_set1(a), v_set1(b));
    case HK_ACT_LEAKY: return v_leaky(v, v_set1(a));
    case HK_ACT_PRELU: return v_leaky(v, slope);
    case HK_ACT_SIGMOID: return v_sigmoid(v);
    case HK_ACT_SILU: return v_silu(v);
    case HK_ACT_TANH: return v_tanh(v);
    case HK_ACT_GELU: return v_gelu(v);
    case HK_ACT_GELU_TANH: return v_gelu_tanh(v);
    case HK_ACT_HARDSWISH: return v_hardswish(v);
    case HK_ACT_SOFTSIGN: return v_softsign(v);
    default: return v;
  }
}
#endif
