/* Vocabulary of AVX2 + FMA for f32 kernels: a vector is 8 floats. v_min and v_max return their second argument when
 * either is NaN, so v_max(bound, v) keeps a NaN in v. v_tail(n) is the mask of the first n lanes; masked lanes are
 * neither read nor written. */
#ifndef HK_VEC_AVX2_H
#define HK_VEC_AVX2_H
#include <immintrin.h>
#include <stdint.h>

#include "sum8.h"
#define HK_VEC avx2
#define HK_VW 8
#define HK_VREGS 16
#define HK_MASKS_FREE 0 /* masked loads and stores are as fast as whole ones */
#define HK_MUL_FIRST 0 /* the first product of a sum is mul + add, not FMA (tiles.tmpl.h) */

typedef __m256 v_f32;
typedef __m256i v_i32;
typedef __m256i v_mask;

static inline v_f32 v_zero(void) { return _mm256_setzero_ps(); }
static inline v_f32 v_set1(float a) { return _mm256_set1_ps(a); }
static inline v_f32 v_bcast(const float *p) { return _mm256_broadcast_ss(p); }
static inline v_f32 v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, v_f32 v) { _mm256_storeu_ps(p, v); }
#define HK_NT_BLOCKS 2 /* vectors per cache line that non-temporal stores fill; 0: plain stores */
static inline void v_store_nt(float *p, v_f32 v) { _mm256_stream_ps(p, v); } /* non-temporal; p is aligned */
static inline void v_fence(void) { _mm_sfence(); } /* after v_store_nt */
static inline v_mask v_tail(int64_t n) {
  static const int32_t lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const int64_t keep = n < 0 ? 0 : n > 8 ? 8 : n;
  return _mm256_loadu_si256((const __m256i *)(lanes + 8 - keep));
}
/* The mask of lanes lo..hi-1, which may extend beyond the vector. */
static inline v_mask v_range(int64_t lo, int64_t hi) { return _mm256_andnot_si256(v_tail(lo), v_tail(hi)); }
static inline v_f32 v_load_m(const float *p, v_mask m) { return _mm256_maskload_ps(p, m); }
static inline void v_store_m(float *p, v_f32 v, v_mask m) { _mm256_maskstore_ps(p, m, v); }
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
static inline v_mask v_lt(v_f32 a, v_f32 b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
static inline v_mask v_isnan(v_f32 a) { return _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
/* m ? a : b */
static inline v_f32 v_select(v_mask m, v_f32 a, v_f32 b) { return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m)); }
/* The magnitude of a with the sign of b. */
static inline v_f32 v_copysign(v_f32 a, v_f32 b) {
  const __m256 s = _mm256_set1_ps(-0.0f);
  return _mm256_or_ps(_mm256_andnot_ps(s, a), _mm256_and_ps(s, b));
}
static inline float v_sum(v_f32 a) { return sum1(a); }
#define HK_SUMS 1
/* to[i] = v_sum(v[i]) for i < 8. */
static inline __attribute__((always_inline)) void v_sum8(const v_f32 *v, float *to) { _mm256_storeu_ps(to, sum8(v)); }
static inline void v_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
/* Stores the first n lanes, 1 <= n <= 8, in pieces: masked stores are microcoded on AMD. */
static inline void v_store_n(float *p, v_f32 v, int64_t n) {
  if (n >= 8) {
    _mm256_storeu_ps(p, v);
    return;
  }
  __m128 half = _mm256_castps256_ps128(v);
  if (n & 4) {
    _mm_storeu_ps(p, half);
    half = _mm256_extractf128_ps(v, 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi((__m64 *)(void *)p, half);
    half = _mm_movehl_ps(half, half);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, half);
}
static inline v_i32 v_load_i32(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
/* Lane i of the result is lane index[i] of a; indices lie within the vector. */
static inline v_f32 v_permute(v_f32 a, v_i32 index) { return _mm256_permutevar8x32_ps(a, index); }
/* The same where every index is in the aligned four lanes of its lane. */
static inline v_f32 v_permute_quads(v_f32 a, v_i32 index) { return _mm256_permutevar_ps(a, index); }
#include "vec_transpose8.h"
/* p[0], p[1], p[0], p[1], ...; and p[0], 0, p[0], 0, ... */
typedef double __attribute__((may_alias, aligned(4))) v_pair;
static inline v_f32 v_bcast_pair(const float *p) {
  return _mm256_castpd_ps(_mm256_set1_pd(*(const v_pair *)(const void *)p));
}
static inline v_f32 v_bcast_half_pair(const float *p) {
  return _mm256_castpd_ps(_mm256_broadcastsd_pd(_mm_castps_pd(_mm_load_ss(p))));
}
/* Sums of neighbours: two of a, two of b, two of a, two of b. */
static inline v_f32 v_add_pairs(v_f32 a, v_f32 b) { return _mm256_hadd_ps(a, b); }
/* Vectors as two halves of 4 lanes. */
#define HK_HALVES 1
static inline v_f32 v_load_halves(const float *low, const float *high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}
static inline void v_store_low(float *p, v_f32 v) { _mm_storeu_ps(p, _mm256_castps256_ps128(v)); }
static inline void v_store_high(float *p, v_f32 v) { _mm_storeu_ps(p, _mm256_extractf128_ps(v, 1)); }
/* Transposes each half: swaps v[i][j] and v[j][i]. */
static inline __attribute__((always_inline)) void v_transpose_halves(v_f32 v[4]) {
  const __m256 a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpackhi_ps(v[0], v[1]);
  const __m256 c = _mm256_unpacklo_ps(v[2], v[3]), d = _mm256_unpackhi_ps(v[2], v[3]);
  v[0] = _mm256_shuffle_ps(a, c, 0x44);
  v[1] = _mm256_shuffle_ps(a, c, 0xee);
  v[2] = _mm256_shuffle_ps(b, d, 0x44);
  v[3] = _mm256_shuffle_ps(b, d, 0xee);
}
/* The even and the odd elements of a followed by b. */
static inline v_f32 v_even(v_f32 a, v_f32 b) {
  const __m256d t = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(t, 0xd8));
}
static inline v_f32 v_odd(v_f32 a, v_f32 b) {
  const __m256d t = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(t, 0xd8));
}
/* Loads the first n lanes, 1 <= n <= 8; the others are 0 and not read. */
static inline v_f32 v_load_n(const float *p, int64_t n) {
  return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, v_tail(n));
}
/* Lanes t..t+7 of lo followed by hi; t is a compile-time constant, 0 <= t < 4. */
static inline __attribute__((always_inline)) v_f32 v_shift(v_f32 lo, v_f32 hi, int t) {
  const __m256i a = _mm256_castps_si256(lo), b = _mm256_castps_si256(hi), m = _mm256_permute2x128_si256(a, b, 0x21);
  switch (t) {
    case 1: return _mm256_castsi256_ps(_mm256_alignr_epi8(m, a, 4));
    case 2: return _mm256_castsi256_ps(_mm256_alignr_epi8(m, a, 8));
    case 3: return _mm256_castsi256_ps(_mm256_alignr_epi8(m, a, 12));
    default: return lo;
  }
}
#endif
