/* Dot products of AVX-512 VNNI: a group is 4 bytes of x (u8, or s8 with its sign bits flipped) and of f (s8), sums are
 * s32. Include vec_avx512.h first. */
#ifndef HK_DOTS_VNNI512_H
#define HK_DOTS_VNNI512_H
#include <string.h>

#define D_GROUP 4
typedef __m512i d_group;
typedef __m512i d_sums;
typedef int32_t d_element;
static inline d_sums d_zero(void) { return _mm512_setzero_si512(); }
static inline d_sums d_load_sums(const d_element *p) { return _mm512_loadu_si512(p); }
static inline void d_store_sums(d_element *p, d_sums v) { _mm512_storeu_si512(p, v); }
static inline d_group d_flip(int32_t flip) { return _mm512_set1_epi8(flip ? -128 : 0); }
static inline d_group d_load(const char *f) { return _mm512_loadu_si512(f); }
static inline d_group d_set(uint32_t bits, d_group flip) {
  return _mm512_xor_si512(_mm512_set1_epi32((int)bits), flip);
}
static inline d_group d_bcast(const char *x, d_group flip) {
  uint32_t bits;
  memcpy(&bits, x, sizeof bits);
  return d_set(bits, flip);
}
static inline d_sums d_dot(d_sums acc, d_group x, d_group f) { return _mm512_dpbusd_epi32(acc, x, f); }
#endif
