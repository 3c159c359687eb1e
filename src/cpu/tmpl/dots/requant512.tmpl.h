/* requant for AVX-512: see hk_requant_args. 16 sums at a time, as two vectors of doubles, a vector of channels over all
 * rows after the other. Both bounds become one, because a rounded sum with zero is monotonous; only scales that are not
 * finite can make a NaN. Define HK_NAME. */
#include "cpu/ukernel.h"

typedef struct bounds {
  __m512d zero, least, most, none; /* none: what a NaN is stored as */
} bounds;

static inline double within(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

static bounds bounds_of(const hk_requant_args *r) {
  const double low = r->y_type == HK_S8 ? -128 : 0, high = r->y_type == HK_S8 ? 127 : 255;
  const double none = within(-r->zero, r->lo, r->hi) + r->zero;
  return (bounds){_mm512_set1_pd(r->zero), _mm512_set1_pd(within(r->lo + r->zero, low, high)),
                  _mm512_set1_pd(within(r->hi + r->zero, low, high)), _mm512_set1_pd(none)};
}

static inline __attribute__((always_inline)) __m256i quantised(__m256i sum, __m512d scale, const bounds *b, bool nan) {
  __m512d v = _mm512_mul_pd(_mm512_cvtepi32_pd(sum), scale);
  const __mmask8 bad = nan ? _mm512_cmp_pd_mask(v, v, _CMP_UNORD_Q) : 0;
  v = _mm512_add_pd(v, b->zero);
  if (nan) v = _mm512_mask_mov_pd(v, bad, b->none);
  return _mm512_cvtpd_epi32(_mm512_min_pd(b->most, _mm512_max_pd(b->least, v)));
}

static inline __attribute__((always_inline)) void column(const hk_requant_args *r, const bounds *b, int64_t j,
                                                         bool nan) {
  const v_mask some = v_tail(r->columns - j);
  const v_f32 scale = v_load_m(r->scale + j, some);
  const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(scale)),
                high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(scale, 1));
  const __m512i bias = _mm512_maskz_loadu_epi32(some, r->bias + j);
  const int32_t *sums = r->sums + j;
  for (int64_t m = 0; m < r->count; m++, sums += r->width) {
    const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(some, sums), bias);
    const __m256i a = quantised(_mm512_castsi512_si256(sum), low, b, nan);
    const __m256i c = quantised(_mm512_extracti64x4_epi64(sum, 1), high, b, nan);
    _mm_mask_storeu_epi8(r->y[m] + j, some, _mm512_cvtepi32_epi8(_mm512_inserti64x4(_mm512_castsi256_si512(a), c, 1)));
  }
}

void HK_NAME(const void *args) {
  const hk_requant_args *r = args;
  const bounds b = bounds_of(r);
  for (int64_t j = 0; j < r->columns; j += 16) {
    const v_f32 scale = v_load_m(r->scale + j, v_tail(r->columns - j));
    if (_mm512_cmp_ps_mask(v_abs(scale), v_set1(__builtin_inff()), _CMP_NLT_UQ)) column(r, &b, j, true);
    else column(r, &b, j, false);
  }
}
