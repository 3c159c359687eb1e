/* Dot products of AVX512-BF16: a group is 2 bf16 values, sums are f32. Include vec_avx512.h first. */
#ifndef HK_DOTS_BF16_H
#define HK_DOTS_BF16_H
#include <string.h>

#define D_GROUP 2
typedef __m512i d_group;
typedef __m512 d_sums;
typedef float d_element;
static inline d_sums d_zero(void) { return _mm512_setzero_ps(); }
static inline d_sums d_load_sums(const d_element *p) { return _mm512_loadu_ps(p); }
static inline void d_store_sums(d_element *p, d_sums v) { _mm512_storeu_ps(p, v); }
static inline d_group d_flip(int32_t flip) { return (void)flip, _mm512_setzero_si512(); }
static inline d_group d_load(const char *f) { return _mm512_loadu_si512(f); }
static inline d_group d_set(uint32_t bits, d_group flip) { return (void)flip, _mm512_set1_epi32((int)bits); }
static inline d_group d_bcast(const char *x, d_group flip) {
  uint32_t bits;
  memcpy(&bits, x, sizeof bits);
  return d_set(bits, flip);
}
static inline d_sums d_dot(d_sums acc, d_group x, d_group f) { return _mm512_dpbf16_ps(acc, (__m512bh)x, (__m512bh)f); }
#endif
