/* requant for AVX2: see hk_requant_args. 4 sums at a time, as a vector of doubles. Define HK_NAME. */
#include <string.h>

#include "cpu/ukernel.h"

typedef struct bounds {
  __m256d lo, hi, zero, low, high;
} bounds;

/* Lowest byte of every lane. */
static inline uint32_t bytes_of(__m128i v) {
  const __m128i at = _mm_set1_epi32(0x0c080400);
  return (uint32_t)_mm_cvtsi128_si32(_mm_shuffle_epi8(v, at));
}

static inline uint32_t quantised(__m128i sum, __m128 scale, const bounds *b) {
  __m256d v = _mm256_mul_pd(_mm256_cvtepi32_pd(sum), _mm256_cvtps_pd(scale));
  v = _mm256_blendv_pd(v, _mm256_sub_pd(_mm256_setzero_pd(), b->zero), _mm256_cmp_pd(v, v, _CMP_UNORD_Q));
  v = _mm256_add_pd(_mm256_min_pd(b->hi, _mm256_max_pd(b->lo, v)), b->zero);
  return bytes_of(_mm256_cvtpd_epi32(_mm256_min_pd(b->high, _mm256_max_pd(b->low, v))));
}

/* sums, bias and scale of less than a vector */
static inline uint32_t quantised_few(const hk_requant_args *r, const int32_t *sums, int64_t j, int64_t few,
                                     const bounds *b) {
  int32_t sum[4] = {0};
  float scale[4] = {0};
  for (int64_t i = 0; i < few; i++) {
    sum[i] = (int32_t)((uint32_t)sums[j + i] + (uint32_t)r->bias[j + i]);
    scale[i] = r->scale[j + i];
  }
  return quantised(_mm_loadu_si128((const __m128i *)sum), _mm_loadu_ps(scale), b);
}

void HK_NAME(const void *args) {
  const hk_requant_args *r = args;
  const bool is_signed = r->y_type == HK_S8;
  const bounds b = {_mm256_set1_pd(r->lo), _mm256_set1_pd(r->hi), _mm256_set1_pd(r->zero),
                    _mm256_set1_pd(is_signed ? -128 : 0), _mm256_set1_pd(is_signed ? 127 : 255)};
  for (int64_t m = 0; m < r->count; m++) {
    const int32_t *sums = r->sums + m * r->width;
    int64_t j = 0;
    for (; j + 4 <= r->columns; j += 4) {
      const __m128i sum =
          _mm_add_epi32(_mm_loadu_si128((const __m128i *)(sums + j)), _mm_loadu_si128((const __m128i *)(r->bias + j)));
      const uint32_t four = quantised(sum, _mm_loadu_ps(r->scale + j), &b);
      memcpy(r->y[m] + j, &four, sizeof four);
    }
    if (j == r->columns) continue;
    const uint32_t few = quantised_few(r, sums, j, r->columns - j, &b);
    for (int64_t i = 0; j < r->columns; i++, j++) r->y[m][j] = (uint8_t)(few >> 8 * i);
  }
}
