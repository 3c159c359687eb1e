/* dgemm tile: MR pixels x NR output channels in f64.
 *
 * acc[m][j] += row(m, t)[c * step] * f[t][c][j]; f is packed [t][c][NR]; a row that is NULL reads as zeros.
 * Registers: MR*NV accumulators, NV filter vectors, a broadcast (4x8 AVX2: 8 + 2 + 1 of 16).
 * Define MR, NR and NAME, include a vocabulary first. */
#include "cpu/tmpl/common/unroll.tmpl.h"
#include "cpu/ukernel.h"

#if defined(HK_VEC_AVX512_H)
typedef __m512d d_f64;
#define D_WIDTH 8
#define D_ZERO() _mm512_setzero_pd()
#define D_LOAD(p) _mm512_loadu_pd(p)
#define D_STORE(p, v) _mm512_storeu_pd(p, v)
#define D_BCAST(p) _mm512_set1_pd(*(p))
#define D_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#elif defined(HK_VEC_AVX2_H)
typedef __m256d d_f64;
#define D_WIDTH 4
#define D_ZERO() _mm256_setzero_pd()
#define D_LOAD(p) _mm256_loadu_pd(p)
#define D_STORE(p, v) _mm256_storeu_pd(p, v)
#define D_BCAST(p) _mm256_broadcast_sd(p)
#define D_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#elif defined(HK_VEC_NEON_H)
typedef float64x2_t d_f64;
#define D_WIDTH 2
#define D_ZERO() vdupq_n_f64(0)
#define D_LOAD(p) vld1q_f64(p)
#define D_STORE(p, v) vst1q_f64(p, v)
#define D_BCAST(p) vld1q_dup_f64(p)
#define D_FMA(a, b, c) vfmaq_f64(c, a, b)
#else
typedef double d_f64;
#define D_WIDTH 1
#define D_ZERO() 0.0
#define D_LOAD(p) (*(p))
#define D_STORE(p, v) (*(p) = (v))
#define D_BCAST(p) (*(p))
#define D_FMA(a, b, c) ((a) * (b) + (c))
#endif
#define NV (NR / D_WIDTH)

void NAME(const void *args) {
  static const double zero[1] = {0};
  const hk_dgemm_args *a = args;
  d_f64 acc[MR][NV];
  HK_UNROLL for (int m = 0; m < MR; m++) HK_UNROLL for (int v = 0; v < NV; v++) acc[m][v] = D_ZERO();
  if (a->accumulate) {
    HK_UNROLL for (int m = 0; m < MR; m++)
      HK_UNROLL for (int v = 0; v < NV; v++) acc[m][v] = D_LOAD(a->out + m * NR + v * D_WIDTH);
  }
  const double *f = a->f;
  for (int64_t t = 0; t < a->segments; t++) {
    const double *row[MR];
    int64_t by[MR];
    HK_UNROLL for (int m = 0; m < MR; m++) {
      row[m] = a->row[t * MR + m];
      by[m] = row[m] ? a->step : 0;
      row[m] = row[m] ? row[m] : zero;
    }
    for (int64_t c = 0; c < a->channels; c++, f += NR) {
      d_f64 w[NV];
      HK_UNROLL for (int v = 0; v < NV; v++) w[v] = D_LOAD(f + v * D_WIDTH);
      HK_UNROLL for (int m = 0; m < MR; m++) {
        const d_f64 x = D_BCAST(row[m]);
        row[m] += by[m];
        HK_UNROLL for (int v = 0; v < NV; v++) acc[m][v] = D_FMA(x, w[v], acc[m][v]);
      }
    }
  }
  HK_UNROLL for (int m = 0; m < MR; m++)
    HK_UNROLL for (int v = 0; v < NV; v++) D_STORE(a->out + m * NR + v * D_WIDTH, acc[m][v]);
}
