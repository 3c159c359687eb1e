/* Dot products of AVX-VNNI at 256 bits, as dots_vnni512.h. Include vec_avx2.h first. */
#ifndef HK_DOTS_VNNI256_H
#define HK_DOTS_VNNI256_H
#include <string.h>

#define D_GROUP 4
typedef __m256i d_group;
typedef __m256i d_sums;
typedef int32_t d_element;
static inline d_sums d_zero(void) { return _mm256_setzero_si256(); }
static inline d_sums d_load_sums(const d_element *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void d_store_sums(d_element *p, d_sums v) { _mm256_storeu_si256((__m256i *)p, v); }
static inline d_group d_flip(int32_t flip) { return _mm256_set1_epi8(flip ? -128 : 0); }
static inline d_group d_load(const char *f) { return _mm256_loadu_si256((const __m256i *)(const void *)f); }
static inline d_group d_set(uint32_t bits, d_group flip) {
  return _mm256_xor_si256(_mm256_set1_epi32((int)bits), flip);
}
static inline d_group d_bcast(const char *x, d_group flip) {
  uint32_t bits;
  memcpy(&bits, x, sizeof bits);
  return d_set(bits, flip);
}
static inline d_sums d_dot(d_sums acc, d_group x, d_group f) { return _mm256_dpbusd_avx_epi32(acc, x, f); }
#endif
