/* Vectors of f32, f16 and bf16 elements in memory, as f32 in registers. Stores round half to even and keep NaN, as
 * core/convert.c defines. i counts elements; a part is the first n lanes, 1 <= n < VW: the others read as zeros and are
 * not touched. With a constant type the compiler removes the branches. Include a vocabulary first. */
#ifndef HK_TYPED_TMPL_H
#define HK_TYPED_TMPL_H
#include "cpu/tmpl/common/half.tmpl.h"
#include "cpu/ukernel.h"

#define INLINE static inline __attribute__((always_inline))

static inline float get_one(hk_type type, const void *p, int64_t i) {
  if (type == HK_F32) return ((const float *)p)[i];
  const uint16_t h = ((const uint16_t *)p)[i];
  const uint32_t u = type == HK_F16 ? widen_half(h) : (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static inline void put_one(hk_type type, void *p, int64_t i, float v) {
  uint32_t u;
  memcpy(&u, &v, 4);
  if (type == HK_F32) ((float *)p)[i] = v;
  else ((uint16_t *)p)[i] = type == HK_F16 ? narrow_half(u) : narrow_bf16(u);
}

#if HK_VW == 16
INLINE v_f32 widen(hk_type type, __m256i h) {
  if (type == HK_F16) return _mm512_cvtph_ps(h);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
INLINE __m256i narrow(hk_type type, v_f32 v) {
  if (type == HK_F16) return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
  const __m512i u = _mm512_castps_si512(v), high = _mm512_srli_epi32(u, 16);
  const __m512i odd = _mm512_add_epi32(_mm512_and_si512(high, _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(u, odd), 16);
  return _mm512_cvtepi32_epi16(
      _mm512_mask_or_epi32(rounded, v_isnan(v), high, _mm512_set1_epi32(0x40)));
}
INLINE v_f32 get(hk_type type, const void *p, int64_t i) {
  if (type == HK_F32) return v_load((const float *)p + i);
  return widen(type, _mm256_loadu_si256((const __m256i *)((const uint16_t *)p + i)));
}
INLINE void put(hk_type type, void *p, int64_t i, v_f32 v) {
  if (type == HK_F32) v_store((float *)p + i, v);
  else _mm256_storeu_si256((__m256i *)((uint16_t *)p + i), narrow(type, v));
}
INLINE v_f32 get_part(hk_type type, const void *p, int64_t i, int64_t n) {
  if (type == HK_F32) return v_load_m((const float *)p + i, v_tail(n));
  return widen(type, _mm256_maskz_loadu_epi16(v_tail(n), (const uint16_t *)p + i));
}
INLINE void put_part(hk_type type, void *p, int64_t i, v_f32 v, int64_t n) {
  if (type == HK_F32) v_store_m((float *)p + i, v, v_tail(n));
  else _mm256_mask_storeu_epi16((uint16_t *)p + i, v_tail(n), narrow(type, v));
}
/* Lanes lo..hi-1; the others are zeros and not read. */
INLINE v_f32 get_range(hk_type type, const void *p, int64_t i, int64_t lo, int64_t hi) {
  if (type == HK_F32) return v_load_m((const float *)p + i, v_range(lo, hi));
  return widen(type, _mm256_maskz_loadu_epi16(v_range(lo, hi), (const uint16_t *)p + i));
}
#elif HK_VW > 1
#if HK_VW == 8
typedef __m128i v_half;
INLINE v_half load_half(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
INLINE void store_half(uint16_t *p, v_half v) { _mm_storeu_si128((__m128i *)(void *)p, v); }
INLINE v_f32 widen(hk_type type, v_half h) {
  if (type == HK_F16) return _mm256_cvtph_ps(h);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
INLINE v_half narrow(hk_type type, v_f32 v) {
  if (type == HK_F16) return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
  const __m256i u = _mm256_castps_si256(v), high = _mm256_srli_epi32(u, 16);
  const __m256i odd = _mm256_add_epi32(_mm256_and_si256(high, _mm256_set1_epi32(1)), _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, odd), 16);
  const __m256i r = _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), v_isnan(v));
  return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
#else
typedef uint16x4_t v_half;
INLINE v_half load_half(const uint16_t *p) { return vld1_u16(p); }
INLINE void store_half(uint16_t *p, v_half v) { vst1_u16(p, v); }
INLINE v_f32 widen(hk_type type, v_half h) {
  if (type == HK_F16) return vcvt_f32_f16(vreinterpret_f16_u16(h));
  return vreinterpretq_f32_u32(vshll_n_u16(h, 16));
}
INLINE v_half narrow(hk_type type, v_f32 v) {
  if (type == HK_F16) return vreinterpret_u16_f16(vcvt_f16_f32(v));
  const uint32x4_t u = vreinterpretq_u32_f32(v), high = vshrq_n_u32(u, 16);
  const uint32x4_t odd = vaddq_u32(vandq_u32(high, vdupq_n_u32(1)), vdupq_n_u32(0x7fff));
  const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(u, odd), 16);
  return vmovn_u32(vbslq_u32(v_isnan(v), vorrq_u32(high, vdupq_n_u32(0x40)), rounded));
}
#endif
INLINE v_f32 get(hk_type type, const void *p, int64_t i) {
  if (type == HK_F32) return v_load((const float *)p + i);
  return widen(type, load_half((const uint16_t *)p + i));
}
INLINE void put(hk_type type, void *p, int64_t i, v_f32 v) {
  if (type == HK_F32) v_store((float *)p + i, v);
  else store_half((uint16_t *)p + i, narrow(type, v));
}
INLINE v_f32 get_part(hk_type type, const void *p, int64_t i, int64_t n) {
  if (type == HK_F32) return v_load_n((const float *)p + i, n);
  uint16_t h[HK_VW] = {0};
  for (int64_t l = 0; l < n; l++) h[l] = ((const uint16_t *)p)[i + l];
  return widen(type, load_half(h));
}
INLINE void put_part(hk_type type, void *p, int64_t i, v_f32 v, int64_t n) {
  uint16_t h[HK_VW];
  if (type == HK_F32) {
    v_store_n((float *)p + i, v, n);
    return;
  }
  store_half(h, narrow(type, v));
  for (int64_t l = 0; l < n; l++) ((uint16_t *)p)[i + l] = h[l];
}
#else
INLINE v_f32 get(hk_type type, const void *p, int64_t i) { return get_one(type, p, i); }
INLINE void put(hk_type type, void *p, int64_t i, v_f32 v) { put_one(type, p, i, v); }
INLINE v_f32 get_part(hk_type type, const void *p, int64_t i, int64_t n) { return n > 0 ? get_one(type, p, i) : 0; }
INLINE void put_part(hk_type type, void *p, int64_t i, v_f32 v, int64_t n) {
  if (n > 0) put_one(type, p, i, v);
}
#endif
/* Either: n may be VW. */
INLINE v_f32 get_n(hk_type type, const void *p, int64_t i, int64_t n) {
  return n >= HK_VW ? get(type, p, i) : get_part(type, p, i, n);
}
INLINE void put_n(hk_type type, void *p, int64_t i, v_f32 v, int64_t n) {
  if (n >= HK_VW) put(type, p, i, v);
  else put_part(type, p, i, v, n);
}
#endif
