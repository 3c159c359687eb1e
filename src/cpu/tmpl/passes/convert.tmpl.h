/* convert: a row from one element type to another, both contiguous. Widening is exact; narrowing rounds to nearest even
 * and keeps NaN, as core/convert.c defines. Plain C on integers, with vectors of x86 before: AVX2 takes 16 at a time
 * and leaves up to 7 to the plain loop, AVX-512 takes 32 and masks the rest; f16 by F16C instructions. The bf16
 * instructions of AVX-512 would flush denormals. Define HK_CONVERT(name) to form each symbol. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/half.tmpl.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512BW__)
static inline __mmask32 first_lanes(int64_t n) { return n >= 32 ? 0xffffffff : (__mmask32)((1u << n) - 1u); }

/* The bits of f32 whose upper half is the rounded bf16. */
static inline __m512i round_bf16(__m512i u) {
  const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
  const __mmask16 nan = _mm512_cmp_ps_mask(_mm512_castsi512_ps(u), _mm512_castsi512_ps(u), _CMP_UNORD_Q);
  const __m512i half = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_mask_add_epi32(half, odd, u, _mm512_set1_epi32(0x8000));
  return _mm512_mask_or_epi32(rounded, nan, u, _mm512_set1_epi32(0x400000));
}

/* Word 2*i of the result is 0, word 2*i + 1 word first + i of v. */
static inline __m512i spread_words(__m512i v, int first) {
  const __m512i at =
      _mm512_add_epi32(_mm512_setr_epi32(0, 1 << 16, 2 << 16, 3 << 16, 4 << 16, 5 << 16, 6 << 16, 7 << 16, 8 << 16,
                                         9 << 16, 10 << 16, 11 << 16, 12 << 16, 13 << 16, 14 << 16, 15 << 16),
                       _mm512_set1_epi32(first << 16));
  return _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, at, v);
}

static inline __m512i odd_words(__m512i low, __m512i high) {
  const __m512i at = _mm512_setr_epi32(0x30001, 0x70005, 0xb0009, 0xf000d, 0x130011, 0x170015, 0x1b0019, 0x1f001d,
                                       0x230021, 0x270025, 0x2b0029, 0x2f002d, 0x330031, 0x370035, 0x3b0039, 0x3f003d);
  return _mm512_permutex2var_epi16(low, at, high);
}
#elif defined(__AVX2__)
static inline __m256i round_bf16(__m256i u) {
  const __m256i high = _mm256_srli_epi32(u, 16);
  const __m256i odd = _mm256_add_epi32(_mm256_and_si256(high, _mm256_set1_epi32(1)), _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, odd), 16);
  const __m256 v = _mm256_castsi256_ps(u), nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
  return _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), _mm256_castps_si256(nan));
}
#endif

void HK_CONVERT(bf16f32)(const void *args) {
  const hk_convert_args *a = args;
  const uint16_t *s = a->src;
  uint32_t *d = a->dst;
  int64_t i = 0;
#if defined(__AVX512BW__)
  for (; i + 32 <= a->count; i += 32) {
    const __m512i v = _mm512_loadu_si512(s + i);
    _mm512_storeu_si512(d + i, spread_words(v, 0));
    _mm512_storeu_si512(d + i + 16, spread_words(v, 16));
  }
  const __mmask32 rest = first_lanes(a->count - i);
  const __m512i v = _mm512_maskz_loadu_epi16(rest, s + i);
  _mm512_mask_storeu_epi32(d + i, (__mmask16)rest, spread_words(v, 0));
  if (rest >> 16) _mm512_mask_storeu_epi32(d + i + 16, (__mmask16)(rest >> 16), spread_words(v, 16));
  i = a->count;
#elif defined(__AVX2__)
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
#if defined(__AVX512BW__)
  for (; i + 32 <= a->count; i += 32)
    _mm512_storeu_si512(d + i,
                        odd_words(round_bf16(_mm512_loadu_si512(s + i)), round_bf16(_mm512_loadu_si512(s + i + 16))));
  const __mmask32 rest = first_lanes(a->count - i);
  const __m512i low = _mm512_maskz_loadu_epi32((__mmask16)rest, s + i);
  const __m512i high = rest >> 16 ? _mm512_maskz_loadu_epi32((__mmask16)(rest >> 16), s + i + 16) : low;
  _mm512_mask_storeu_epi16(d + i, rest, odd_words(round_bf16(low), round_bf16(high)));
  i = a->count;
#elif defined(__AVX2__)
  for (; i + 16 <= a->count; i += 16) {
    const __m256i low = round_bf16(_mm256_loadu_si256((const __m256i *)(s + i)));
    const __m256i high = round_bf16(_mm256_loadu_si256((const __m256i *)(s + i + 8)));
    _mm256_storeu_si256((__m256i *)(d + i), _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8));
  }
  for (; i + 8 <= a->count; i += 8) {
    const __m256i r = round_bf16(_mm256_loadu_si256((const __m256i *)(s + i)));
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
#if defined(__AVX512BW__)
  for (; i + 16 <= a->count; i += 16)
    _mm512_storeu_ps(d + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(s + i))));
  const __mmask16 rest = (__mmask16)first_lanes(a->count - i);
  _mm512_mask_storeu_ps(d + i, rest, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(rest, s + i)));
  i = a->count;
#elif defined(__F16C__)
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
#if defined(__AVX512BW__)
  for (; i + 16 <= a->count; i += 16)
    _mm256_storeu_si256((__m256i *)(d + i), _mm512_cvtps_ph(_mm512_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
  const __mmask16 rest = (__mmask16)first_lanes(a->count - i);
  _mm256_mask_storeu_epi16(d + i, rest, _mm512_cvtps_ph(_mm512_maskz_loadu_ps(rest, s + i), _MM_FROUND_TO_NEAREST_INT));
  i = a->count;
#elif defined(__F16C__)
  for (; i + 8 <= a->count; i += 8)
    _mm_storeu_si128((__m128i *)(d + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps((const float *)s + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < a->count; i++) d[i] = narrow_half(s[i]);
}
