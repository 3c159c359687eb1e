/* Vocabulary of AVX-512 (F, BW, DQ, VL) for f32 kernels: a vector is 16 floats. Rules as in vec_avx2.h. */
#ifndef HK_VEC_AVX512_H
#define HK_VEC_AVX512_H
#include <immintrin.h>
#include <stdint.h>

#include "sum8.h"
#define HK_VEC avx512
#define HK_VW 16
#define HK_VREGS 32
#define HK_MASKS_FREE 1 /* masked loads and stores are as fast as whole ones */
#define HK_MUL_FIRST 1 /* the first product of a sum is mul + add, not FMA (tiles.tmpl.h) */

typedef __m512 v_f32;
typedef __m512i v_i32;
typedef __mmask16 v_mask;

static inline v_f32 v_zero(void) { return _mm512_setzero_ps(); }
static inline v_f32 v_set1(float a) { return _mm512_set1_ps(a); }
static inline v_f32 v_bcast(const float *p) { return _mm512_set1_ps(*p); }
static inline v_f32 v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void v_store(float *p, v_f32 v) { _mm512_storeu_ps(p, v); }
#define HK_NT_BLOCKS 1 /* vectors per cache line that non-temporal stores fill; 0: plain stores */
static inline void v_store_nt(float *p, v_f32 v) { _mm512_stream_ps(p, v); } /* non-temporal; p is aligned */
static inline void v_fence(void) { _mm_sfence(); } /* after v_store_nt */
static inline v_mask v_tail(int64_t n) {
  return n >= 16 ? (v_mask)0xffff : n <= 0 ? (v_mask)0 : (v_mask)((1u << n) - 1u);
}
static inline v_mask v_range(int64_t lo, int64_t hi) {
  const uint32_t from = (uint32_t)(lo < 0 ? 0 : lo > 16 ? 16 : lo), to = (uint32_t)(hi < 0 ? 0 : hi > 16 ? 16 : hi);
  return (v_mask)((0xffffu << from) & (0xffffu >> (16 - to)));
}
static inline v_f32 v_load_m(const float *p, v_mask m) { return _mm512_maskz_loadu_ps(m, p); }
static inline void v_store_m(float *p, v_f32 v, v_mask m) { _mm512_mask_storeu_ps(p, m, v); }
static inline v_f32 v_fma(v_f32 a, v_f32 b, v_f32 c) { return _mm512_fmadd_ps(a, b, c); }
static inline v_f32 v_fnma(v_f32 a, v_f32 b, v_f32 c) { return _mm512_fnmadd_ps(a, b, c); }
static inline v_f32 v_add(v_f32 a, v_f32 b) { return _mm512_add_ps(a, b); }
static inline v_f32 v_sub(v_f32 a, v_f32 b) { return _mm512_sub_ps(a, b); }
static inline v_f32 v_mul(v_f32 a, v_f32 b) { return _mm512_mul_ps(a, b); }
static inline v_f32 v_div(v_f32 a, v_f32 b) { return _mm512_div_ps(a, b); }
static inline v_f32 v_min(v_f32 a, v_f32 b) { return _mm512_min_ps(a, b); }
static inline v_f32 v_max(v_f32 a, v_f32 b) { return _mm512_max_ps(a, b); }
static inline v_f32 v_abs(v_f32 a) { return _mm512_abs_ps(a); }
static inline v_f32 v_round(v_f32 a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline v_i32 v_to_i32(v_f32 a) { return _mm512_cvtps_epi32(a); }
static inline v_f32 v_exp2i(v_i32 e) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(e, _mm512_set1_epi32(127)), 23));
}
static inline v_mask v_lt(v_f32 a, v_f32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline v_mask v_isnan(v_f32 a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
static inline v_f32 v_select(v_mask m, v_f32 a, v_f32 b) { return _mm512_mask_blend_ps(m, b, a); }
static inline v_f32 v_copysign(v_f32 a, v_f32 b) {
  const __m512 s = _mm512_set1_ps(-0.0f);
  return _mm512_or_ps(_mm512_andnot_ps(s, a), _mm512_and_ps(s, b));
}
static inline __m256 fold(v_f32 a) { return _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)); }
static inline float v_sum(v_f32 a) { return sum1(fold(a)); }
#define HK_SUMS 1
/* to[i] = v_sum(v[i]) for i < 8. */
static inline __attribute__((always_inline)) void v_sum8(const v_f32 *v, float *to) {
  __m256 h[8];
  for (int i = 0; i < 8; i++) h[i] = fold(v[i]);
  _mm256_storeu_ps(to, sum8(h));
}
static inline void v_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
static inline void v_store_n(float *p, v_f32 v, int64_t n) { _mm512_mask_storeu_ps(p, v_tail(n), v); }
static inline v_i32 v_load_i32(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline v_f32 v_permute(v_f32 a, v_i32 index) { return _mm512_permutexvar_ps(index, a); }
/* The same where every index is in the aligned four lanes of its lane. */
static inline v_f32 v_permute_quads(v_f32 a, v_i32 index) { return _mm512_permutevar_ps(a, index); }
static inline v_f32 v_even(v_f32 a, v_f32 b) {
  const v_i32 i = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(a, i, b);
}
static inline v_f32 v_odd(v_f32 a, v_f32 b) {
  const v_i32 i = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_ps(a, i, b);
}
static inline v_f32 v_load_n(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(v_tail(n), p); }
/* Lanes t..t+15 of lo followed by hi; t is a compile-time constant, 0 <= t < 16. */
#define SHIFTED(t) case t: return _mm512_castsi512_ps(_mm512_alignr_epi32(b, a, t));
static inline __attribute__((always_inline)) v_f32 v_shift(v_f32 lo, v_f32 hi, int t) {
  const __m512i a = _mm512_castps_si512(lo), b = _mm512_castps_si512(hi);
  switch (t) {
    SHIFTED(1) SHIFTED(2) SHIFTED(3) SHIFTED(4) SHIFTED(5) SHIFTED(6) SHIFTED(7) SHIFTED(8)
    SHIFTED(9) SHIFTED(10) SHIFTED(11) SHIFTED(12) SHIFTED(13) SHIFTED(14) SHIFTED(15)
    default: return lo;
  }
}
#undef SHIFTED
#endif
