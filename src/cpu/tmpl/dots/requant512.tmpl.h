/* requant for AVX-512: see hk_requant_args. A vector of channels over all rows after the other, 16 sums at a time, in
 * f32: within the range of y a product is off by less than 2^-14, so it rounds as the product in double does unless it
 * is that close to a tie. Vectors with such a lane are computed in double, as are channels whose scale is not finite:
 * only these can make a NaN. Clamping and adding an integer commute with rounding. Define HK_NAME. */
#include <math.h>

#include "cpu/ukernel.h"

typedef struct bounds {
  __m512d zero, least, most, none; /* of v + zero; none: what a NaN is stored as */
  v_f32 lo, hi;                    /* of v, rounded */
  __m512i add;
} bounds;

static inline double within(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

static bounds bounds_of(const hk_requant_args *r) {
  const double low = r->y_type == HK_S8 ? -128 : 0, high = r->y_type == HK_S8 ? 127 : 255;
  const double none = within(-r->zero, r->lo, r->hi) + r->zero;
  const double least = within(r->lo + r->zero, low, high), most = within(r->hi + r->zero, low, high);
  return (bounds){_mm512_set1_pd(r->zero),
                  _mm512_set1_pd(least),
                  _mm512_set1_pd(most),
                  _mm512_set1_pd(none),
                  v_set1((float)(nearbyint(least) - r->zero)),
                  v_set1((float)(nearbyint(most) - r->zero)),
                  _mm512_set1_epi32((int)r->zero)};
}

static inline __m256i half(__m256i sum, __m256 scale, const bounds *b) {
  __m512d v = _mm512_mul_pd(_mm512_cvtepi32_pd(sum), _mm512_cvtps_pd(scale));
  const __mmask8 nan = _mm512_cmp_pd_mask(v, v, _CMP_UNORD_Q);
  v = _mm512_mask_mov_pd(_mm512_add_pd(v, b->zero), nan, b->none);
  return _mm512_cvtpd_epi32(_mm512_min_pd(b->most, _mm512_max_pd(b->least, v)));
}

static __attribute__((noinline)) __m512i in_double(__m512i sum, v_f32 scale, const bounds *b) {
  const __m256i low = half(_mm512_castsi512_si256(sum), _mm512_castps512_ps256(scale), b);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low),
                            half(_mm512_extracti64x4_epi64(sum, 1), _mm512_extractf32x8_ps(scale, 1), b), 1);
}

static inline void column(const hk_requant_args *r, const bounds *b, int64_t j) {
  const v_mask some = v_tail(r->columns - j);
  const v_f32 scale = v_load_m(r->scale + j, some), near_half = v_set1(0.5f - 0x1p-13f);
  const bool finite = !_mm512_cmp_ps_mask(v_abs(scale), v_set1(INFINITY), _CMP_NLT_UQ);
  const __m512i bias = _mm512_maskz_loadu_epi32(some, r->bias + j);
  const int32_t *sums = r->sums + j;
  for (int64_t m = 0; m < r->count; m++, sums += r->width) {
    const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(some, sums), bias);
    const v_f32 v = v_min(b->hi, v_max(b->lo, v_mul(_mm512_cvtepi32_ps(sum), scale)));
    const v_i32 rounded = _mm512_cvtps_epi32(v);
    const v_mask close = _mm512_cmp_ps_mask(v_abs(v_sub(v, _mm512_cvtepi32_ps(rounded))), near_half, _CMP_GT_OQ);
    __m512i y = _mm512_add_epi32(rounded, b->add);
    if (__builtin_expect(close || !finite, 0)) y = in_double(sum, scale, b);
    _mm_mask_storeu_epi8(r->y[m] + j, some, _mm512_cvtepi32_epi8(y));
  }
}

void HK_NAME(const void *args) {
  const hk_requant_args *r = args;
  const bounds b = bounds_of(r);
  for (int64_t j = 0; j < r->columns; j += 16) column(r, &b, j);
}
