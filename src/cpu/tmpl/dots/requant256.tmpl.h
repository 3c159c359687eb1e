/* requant for AVX2: see hk_requant_args. 8 sums at a time, in f32 as requant512.tmpl.h does it: vectors with a lane
 * near a tie, and channels whose scale is not finite, go through double, as do the channels of a last, partial vector.
 * Define HK_NAME. */
#include <math.h>
#include <string.h>

#include "cpu/ukernel.h"

typedef struct bounds {
  __m256d zero, least, most, none; /* of v + zero; none: what a NaN is stored as */
  v_f32 lo, hi;                    /* of v, rounded */
  __m256i add;
} bounds;

static inline double within(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

static bounds bounds_of(const hk_requant_args *r) {
  const double low = r->y_type == HK_S8 ? -128 : 0, high = r->y_type == HK_S8 ? 127 : 255;
  const double none = within(-r->zero, r->lo, r->hi) + r->zero;
  const double least = within(r->lo + r->zero, low, high), most = within(r->hi + r->zero, low, high);
  const __m128d ends = _mm_setr_pd(least, most);
  const __m128d whole =
      _mm_sub_pd(_mm_round_pd(ends, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), _mm_set1_pd(r->zero));
  return (bounds){_mm256_set1_pd(r->zero),
                  _mm256_set1_pd(least),
                  _mm256_set1_pd(most),
                  _mm256_set1_pd(none),
                  v_set1((float)_mm_cvtsd_f64(whole)),
                  v_set1((float)_mm_cvtsd_f64(_mm_unpackhi_pd(whole, whole))),
                  _mm256_set1_epi32((int)r->zero)};
}

static inline __m128i half(__m128i sum, __m128 scale, const bounds *b) {
  __m256d v = _mm256_mul_pd(_mm256_cvtepi32_pd(sum), _mm256_cvtps_pd(scale));
  const __m256d nan = _mm256_cmp_pd(v, v, _CMP_UNORD_Q);
  v = _mm256_blendv_pd(_mm256_add_pd(v, b->zero), b->none, nan);
  return _mm256_cvtpd_epi32(_mm256_min_pd(b->most, _mm256_max_pd(b->least, v)));
}

static __attribute__((noinline)) __m256i in_double(__m256i sum, v_f32 scale, const bounds *b) {
  const __m128i low = half(_mm256_castsi256_si128(sum), _mm256_castps256_ps128(scale), b);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                 half(_mm256_extracti128_si256(sum, 1), _mm256_extractf128_ps(scale, 1), b), 1);
}

/* The low bytes of all lanes, in the low half. */
static inline __m128i low_bytes(__m256i v) {
  const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(255));
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  return _mm_packus_epi16(words, words);
}

static inline __m256i load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }

static inline bool all_finite(v_f32 scale) {
  return !_mm256_movemask_ps(_mm256_cmp_ps(v_abs(scale), v_set1(INFINITY), _CMP_NLT_UQ));
}

/* 8 channels from j on, over all rows. */
static void column(const hk_requant_args *r, const bounds *b, int64_t j) {
  const v_f32 scale = v_load(r->scale + j), near_half = v_set1(0.5f - 0x1p-13f);
  const bool exact = !all_finite(scale);
  const __m256i bias = load(r->bias + j);
  const int32_t *sums = r->sums + j;
  for (int64_t m = 0; m < r->count; m++, sums += r->width) {
    const __m256i sum = _mm256_add_epi32(load(sums), bias);
    const v_f32 v = v_min(b->hi, v_max(b->lo, v_mul(_mm256_cvtepi32_ps(sum), scale)));
    const __m256i rounded = _mm256_cvtps_epi32(v);
    const v_f32 off = v_abs(v_sub(v, _mm256_cvtepi32_ps(rounded)));
    __m256i y = _mm256_add_epi32(rounded, b->add);
    if (__builtin_expect(exact || _mm256_movemask_ps(_mm256_cmp_ps(off, near_half, _CMP_GT_OQ)), 0))
      y = in_double(sum, scale, b);
    _mm_storel_epi64((__m128i *)(void *)(r->y[m] + j), low_bytes(y));
  }
}

/* The channels behind the last whole vector. */
static void rest(const hk_requant_args *r, const bounds *b, int64_t j) {
  const int64_t few = r->columns - j;
  float scale[8] = {0};
  memcpy(scale, r->scale + j, (size_t)few * sizeof *scale);
  for (int64_t m = 0; m < r->count; m++) {
    int32_t sum[8] = {0};
    uint8_t y[16];
    for (int64_t i = 0; i < few; i++)
      sum[i] = (int32_t)((uint32_t)r->sums[m * r->width + j + i] + (uint32_t)r->bias[j + i]);
    _mm_storeu_si128((__m128i *)(void *)y, low_bytes(in_double(load(sum), v_load(scale), b)));
    memcpy(r->y[m] + j, y, (size_t)few);
  }
}

void HK_NAME(const void *args) {
  const hk_requant_args *r = args;
  const bounds b = bounds_of(r);
  int64_t j = 0;
  for (; j + 8 <= r->columns; j += 8) column(r, &b, j);
  if (j < r->columns) rest(r, &b, j);
}
