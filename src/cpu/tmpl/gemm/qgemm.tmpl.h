/* qgemm tile: MR pixels x NR output channels, pairs of s16 products accumulated in s32 (two's complement).
 *
 * acc[m][j] += row(m, t)[2c] * f[t][c][j][0] + row(m, t)[2c+1] * f[t][c][j][1]; f is packed [t][pair][NR][2].
 * Registers: MR*NV accumulators, NV filter vectors, a broadcast pair and a product (4x16 AVX2: 8 + 2 + 2 of 16). Define
 * MR, NR and NAME, include a vocabulary first. */
#include <string.h>

#include "cpu/tmpl/common/unroll.tmpl.h"
#include "cpu/ukernel.h"

#if defined(HK_VEC_AVX512_H)
typedef __m512i q_s32;
#define Q_WIDTH 16
#define Q_ZERO() _mm512_setzero_si512()
#define Q_LOAD(p) _mm512_loadu_si512(p)
#define Q_STORE(p, v) _mm512_storeu_si512(p, v)
#define Q_PAIR(p) _mm512_set1_epi32(p)
#define Q_MADD(acc, a, b) _mm512_add_epi32(acc, _mm512_madd_epi16(a, b))
#elif defined(HK_VEC_AVX2_H)
typedef __m256i q_s32;
#define Q_WIDTH 8
#define Q_ZERO() _mm256_setzero_si256()
#define Q_LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define Q_STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define Q_PAIR(p) _mm256_set1_epi32(p)
#define Q_MADD(acc, a, b) _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
#elif defined(HK_VEC_NEON_H)
typedef int32x4_t q_s32;
#define Q_WIDTH 4
#define Q_ZERO() vdupq_n_s32(0)
#define Q_LOAD(p) vld1q_s32((const int32_t *)(p))
#define Q_STORE(p, v) vst1q_s32(p, v)
#define Q_PAIR(p) vdupq_n_s32(p)
static inline int32x4_t q_madd(int32x4_t acc, int32x4_t a, int32x4_t b) {
  const int16x8_t x = vreinterpretq_s16_s32(a), y = vreinterpretq_s16_s32(b);
  return vaddq_s32(acc, vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
}
#define Q_MADD(acc, a, b) q_madd(acc, a, b)
#else
typedef int32_t q_s32;
#define Q_WIDTH 1
#define Q_ZERO() 0
#define Q_LOAD(p) q_load(p)
#define Q_STORE(p, v) (*(p) = (v))
#define Q_PAIR(p) (p)
static inline int32_t q_load(const void *p) { int32_t v; memcpy(&v, p, 4); return v; }
static inline int32_t q_madd(int32_t acc, int32_t a, int32_t b) {
  const int32_t lo = (int16_t)a * (int16_t)b, hi = (a >> 16) * (b >> 16);
  return (int32_t)((uint32_t)acc + (uint32_t)lo + (uint32_t)hi);
}
#define Q_MADD(acc, a, b) q_madd(acc, a, b)
#endif
#define NV (NR / Q_WIDTH)

void NAME(const void *args) {
  const hk_qgemm_args *a = args;
  q_s32 acc[MR][NV];
  HK_UNROLL for (int m = 0; m < MR; m++) HK_UNROLL for (int v = 0; v < NV; v++) acc[m][v] = Q_ZERO();
  if (a->accumulate) {
    HK_UNROLL for (int m = 0; m < MR; m++)
      HK_UNROLL for (int v = 0; v < NV; v++) acc[m][v] = Q_LOAD(a->out + m * NR + v * Q_WIDTH);
  }
  for (int64_t t = 0; t < a->segments; t++) {
    const int16_t *row[MR];
    HK_UNROLL for (int m = 0; m < MR; m++) row[m] = a->row[t * MR + m];
    const int16_t *f = a->f + t * a->pairs * 2 * NR;
    for (int64_t c = 0; c < a->pairs; c++, f += 2 * NR) {
      q_s32 w[NV];
      HK_UNROLL for (int v = 0; v < NV; v++) w[v] = Q_LOAD(f + 2 * v * Q_WIDTH);
      HK_UNROLL for (int m = 0; m < MR; m++) {
        int32_t pair;
        memcpy(&pair, row[m] + 2 * c, sizeof pair);
        const q_s32 x = Q_PAIR(pair);
        HK_UNROLL for (int v = 0; v < NV; v++) acc[m][v] = Q_MADD(acc[m][v], x, w[v]);
      }
    }
  }
  HK_UNROLL for (int m = 0; m < MR; m++)
    HK_UNROLL for (int v = 0; v < NV; v++) Q_STORE(a->out + m * NR + v * Q_WIDTH, acc[m][v]);
}
