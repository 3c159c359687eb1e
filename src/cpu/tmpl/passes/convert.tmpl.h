/* convert: a row from one element type to another, both contiguous. Widening is exact; narrowing rounds to nearest even
 * and keeps NaN, as core/convert.c defines. Plain C on integers; x86 converts eight at a time, f16 by F16C
 * instructions. Define HK_CONVERT(name) to form each symbol. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/half.tmpl.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

void HK_CONVERT(bf16f32)(const void *args) {
  const hk_convert_args *a = args;
  const uint16_t *s = a->src;
  uint32_t *d = a->dst;
  int64_t i = 0;
#if defined(__AVX2__)
  for (; i + 8 <= a->count; i += 8)
    _mm256_storeu_si256((__m256i *)(d + i),
                        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(s + i))), 16));
#endif
  for (; i < a->count; i++) d[i] = (uint32_t)s[i] << 16;
}

void HK_CONVERT(f32bf16)(const void *args) {
  const hk_convert_args *a = args;
  const uint32_t *s = a->src;
  uint16_t *d = a->dst;
  int64_t i = 0;
#if defined(__AVX2__)
  for (; i + 8 <= a->count; i += 8) {
    const __m256i u = _mm256_loadu_si256((const __m256i *)(s + i)), high = _mm256_srli_epi32(u, 16);
    const __m256i odd = _mm256_add_epi32(_mm256_and_si256(high, _mm256_set1_epi32(1)), _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, odd), 16);
    const __m256i nan =
        _mm256_cmpgt_epi32(_mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff)), _mm256_set1_epi32(0x7f800000));
    const __m256i r = _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
    _mm_storeu_si128((__m128i *)(d + i), _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1)));
  }
#endif
  for (; i < a->count; i++) d[i] = narrow_bf16(s[i]);
}

void HK_CONVERT(f16f32)(const void *args) {
  const hk_convert_args *a = args;
  const uint16_t *s = a->src;
  uint32_t *d = a->dst;
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= a->count; i += 8)
    _mm256_storeu_ps((float *)d + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(s + i))));
#endif
  for (; i < a->count; i++) d[i] = widen_half(s[i]);
}

void HK_CONVERT(f32f16)(const void *args) {
  const hk_convert_args *a = args;
  const uint32_t *s = a->src;
  uint16_t *d = a->dst;
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= a->count; i += 8)
    _mm_storeu_si128((__m128i *)(d + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps((const float *)s + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < a->count; i++) d[i] = narrow_half(s[i]);
}
