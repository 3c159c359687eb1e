/* unpack8 for AVX2: see hk_unpack8_args. Define HK_NAME. */
#include <immintrin.h>

#include "cpu/ukernel.h"

void HK_NAME(const void *args) {
  const hk_unpack8_args *a = args;
  const __m256i zero = _mm256_set1_epi32(a->zero);
  int64_t i = 0;
  for (; i + 8 <= a->count; i += 8) {
    const __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)((const char *)a->from + i));
    const __m256i w = a->is_signed ? _mm256_cvtepi8_epi32(v) : _mm256_cvtepu8_epi32(v);
    _mm256_storeu_ps(a->to + i, _mm256_cvtepi32_ps(_mm256_sub_epi32(w, zero)));
  }
  for (; i < a->count; i++)
    a->to[i] = (float)((a->is_signed ? ((const int8_t *)a->from)[i] : ((const uint8_t *)a->from)[i]) - a->zero);
}
