/* Vocabulary of AVX-512VL at 256 bits: a vector is 8 floats, with 32 registers and mask registers. For kernels whose
 * loads are unaligned by nature: an unaligned 512-bit load always crosses a cache line and takes two load slots, a
 * 256-bit one does so every other time; cores that run 512-bit operations as two 256-bit halves lose nothing else.
 * Rules as in vec_avx2.h. */
#ifndef HK_VEC_AVX512VL_H
#define HK_VEC_AVX512VL_H
#include <immintrin.h>
#include <stdint.h>
#define HK_VEC avx512vl
#define HK_VW 8
#define HK_VREGS 32
#define HK_MASKS_FREE 1 /* masked loads and stores are as fast as whole ones */
#define HK_MUL_FIRST 0 /* the first product of a sum is mul + add, not FMA (tiles.tmpl.h) */

typedef __m256 v_f32;
typedef __m256i v_i32;
typedef __mmask8 v_mask;

static inline v_f32 v_zero(void) { return _mm256_setzero_ps(); }
static inline v_f32 v_set1(float a) { return _mm256_set1_ps(a); }
static inline v_f32 v_bcast(const float *p) { return _mm256_broadcast_ss(p); }
static inline v_f32 v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, v_f32 v) { _mm256_storeu_ps(p, v); }
#define HK_NT_BLOCKS 0 /* vectors per cache line that non-temporal stores fill; 0: plain stores */
static inline void v_store_nt(float *p, v_f32 v) {
  _mm256_storeu_ps(p, v);
} /* half a line: a non-temporal store would not pay */
static inline void v_fence(void) {}
static inline v_mask v_tail(int64_t n) {
  return n >= 8 ? (v_mask)0xff : n <= 0 ? (v_mask)0 : (v_mask)((1u << n) - 1u);
}
static inline v_f32 v_load_m(const float *p, v_mask m) { return _mm256_maskz_loadu_ps(m, p); }
static inline void v_store_m(float *p, v_f32 v, v_mask m) { _mm256_mask_storeu_ps(p, m, v); }
static inline v_f32 v_fma(v_f32 a, v_f32 b, v_f32 c) { return _mm256_fmadd_ps(a, b, c); }
static inline v_f32 v_fnma(v_f32 a, v_f32 b, v_f32 c) { return _mm256_fnmadd_ps(a, b, c); }
static inline v_f32 v_add(v_f32 a, v_f32 b) { return _mm256_add_ps(a, b); }
static inline v_f32 v_sub(v_f32 a, v_f32 b) { return _mm256_sub_ps(a, b); }
static inline v_f32 v_mul(v_f32 a, v_f32 b) { return _mm256_mul_ps(a, b); }
static inline v_f32 v_div(v_f32 a, v_f32 b) { return _mm256_div_ps(a, b); }
static inline v_f32 v_min(v_f32 a, v_f32 b) { return _mm256_min_ps(a, b); }
static inline v_f32 v_max(v_f32 a, v_f32 b) { return _mm256_max_ps(a, b); }
static inline v_f32 v_abs(v_f32 a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline v_f32 v_round(v_f32 a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline v_i32 v_to_i32(v_f32 a) { return _mm256_cvtps_epi32(a); }
/* 2^e for integer e in -126..127. */
static inline v_f32 v_exp2i(v_i32 e) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
}
static inline v_mask v_lt(v_f32 a, v_f32 b) { return _mm256_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline v_mask v_isnan(v_f32 a) { return _mm256_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
/* m ? a : b */
static inline v_f32 v_select(v_mask m, v_f32 a, v_f32 b) { return _mm256_mask_blend_ps(m, b, a); }
/* The magnitude of a with the sign of b. */
static inline v_f32 v_copysign(v_f32 a, v_f32 b) {
  const __m256 s = _mm256_set1_ps(-0.0f);
  return _mm256_or_ps(_mm256_andnot_ps(s, a), _mm256_and_ps(s, b));
}
static inline float v_sum(v_f32 a) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
static inline void v_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
static inline void v_store_n(float *p, v_f32 v, int64_t n) { _mm256_mask_storeu_ps(p, v_tail(n), v); }
static inline v_i32 v_load_i32(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
/* Lane i of the result is lane index[i] of a; indices lie within the vector. */
static inline v_f32 v_permute(v_f32 a, v_i32 index) { return _mm256_permutevar8x32_ps(a, index); }
/* The same where every index is in the aligned four lanes of its lane. */
static inline v_f32 v_permute_quads(v_f32 a, v_i32 index) { return _mm256_permutevar_ps(a, index); }
/* The even and the odd elements of a followed by b. */
static inline v_f32 v_even(v_f32 a, v_f32 b) {
  const __m256d t = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(t, 0xd8));
}
static inline v_f32 v_odd(v_f32 a, v_f32 b) {
  const __m256d t = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(t, 0xd8));
}
static inline v_f32 v_load_n(const float *p, int64_t n) { return _mm256_maskz_loadu_ps(v_tail(n), p); }
/* Lanes t..t+7 of lo followed by hi; t is a compile-time constant, 0 <= t < 4. */
static inline __attribute__((always_inline)) v_f32 v_shift(v_f32 lo, v_f32 hi, int t) {
  const __m256i a = _mm256_castps_si256(lo), b = _mm256_castps_si256(hi);
  switch (t) {
    case 1: return _mm256_castsi256_ps(_mm256_alignr_epi32(b, a, 1));
    case 2: return _mm256_castsi256_ps(_mm256_alignr_epi32(b, a, 2));
    case 3: return _mm256_castsi256_ps(_mm256_alignr_epi32(b, a, 3));
    default: return lo;
  }
}
#include "vec_transpose8.h"
#endif
