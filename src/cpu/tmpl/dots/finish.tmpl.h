/* finish for AVX-512: see hk_finish_args. A vector of channels over all rows after the other, so that scale, bias and
 * masks stay in registers. Narrowing to bf16 is by integers: the instruction would flush denormals. Define HK_NAME. */
#include "cpu/ukernel.h"

static inline __m256i narrow_bf16(v_f32 v) {
  const __m512i u = _mm512_castps_si512(v);
  const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000)), nan = v_isnan(v);
  const __m512i half = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  const __m512i even = _mm512_mask_add_epi32(half, odd, u, _mm512_set1_epi32(0x8000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_or_epi32(even, nan, u, _mm512_set1_epi32(0x400000)), 16));
}

/* Elements j.. of y of which the mask has some. */
static inline void store(char *y, int64_t j, hk_type type, v_f32 v, v_mask m) {
  if (type == HK_F32) v_store_m((float *)(void *)y + j, v, m);
  else
    _mm256_mask_storeu_epi16(y + 2 * j, m,
                             type == HK_BF16 ? narrow_bf16(v) : _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline v_f32 load(const char *c, int64_t j, hk_type type, v_mask m) {
  if (type == HK_F32) return v_load_m((const float *)(const void *)c + j, m);
  const __m256i half = _mm256_maskz_loadu_epi16(m, c + 2 * j);
  if (type == HK_F16) return _mm512_cvtph_ps(half);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* A vector of channels from j on, over all rows; type and residual are constants where this is inlined. */
static inline __attribute__((always_inline)) void column(const hk_finish_args *r, int64_t j, hk_type type,
                                                         bool residual) {
  const v_mask some = v_tail(r->columns - j);
  const bool affine = r->flags & HK_IGEMM_AFFINE, clamp = r->flags & HK_IGEMM_CLAMP;
  const v_f32 scale = affine ? v_load_m(r->scale + j, some) : v_zero(),
              bias = affine ? v_load_m(r->bias + j, some) : v_zero();
  const v_f32 beta = v_set1(r->beta), lo = v_set1(r->lo), hi = v_set1(r->hi);
  const float *sums = r->sums + j;
  for (int64_t m = 0; m < r->count; m++, sums += r->width) {
    v_f32 v = v_load_m(sums, some);
    if (affine) v = v_fma(v, scale, bias);
    if (residual && r->flags & HK_IGEMM_BEFORE) v = v_fma(beta, load(r->c[m], j, type, some), v);
    if (clamp) v = v_min(hi, v_max(lo, v));
    if (residual && r->flags & HK_IGEMM_AFTER) v = v_fma(beta, load(r->c[m], j, type, some), v);
    store(r->y[m], j, type, v, some);
  }
}

static inline __attribute__((always_inline)) void columns(const hk_finish_args *r, hk_type type) {
  const bool residual = r->flags & (HK_IGEMM_BEFORE | HK_IGEMM_AFTER);
  for (int64_t j = 0; j < r->columns; j += HK_VW) {
    if (residual) column(r, j, type, true);
    else column(r, j, type, false);
  }
}

void HK_NAME(const void *args) {
  const hk_finish_args *r = args;
  if (r->y_type == HK_BF16) columns(r, HK_BF16);
  else if (r->y_type == HK_F16) columns(r, HK_F16);
  else columns(r, HK_F32);
}
