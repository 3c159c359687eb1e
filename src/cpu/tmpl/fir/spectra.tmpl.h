/* spectra: sums of products of spectra, the inner loop of partitioned convolution; see hk_spectra_args.
 *
 * Define HK_NAME, include a vocabulary, then this. Four complex vectors of sums stay in registers over all parts, so
 * that a part costs two loads per four FMAs and no stores. Registers: 8 sums, 4 operands. */
#include "cpu/tmpl/transform/cpx.tmpl.h"

HK_INLINE void tile(const hk_spectra_args *a, int64_t i, const int n) {
  cpx sum[4];
  const float *z = a->z + i * 2 * HK_VW, *h = a->h + i * 2 * HK_VW;
  HK_UNROLL for (int j = 0; j < n; j++) sum[j] = a->add ? c_load(a->sum, i + j) : (cpx){v_zero(), v_zero()};
  for (int64_t p = a->parts; p > 0; p--, z += a->z_step, h += a->h_step) {
    HK_UNROLL for (int j = 0; j < n * 2 * HK_VW; j += 16) {
      v_prefetch(z + n * 2 * HK_VW + j);
      v_prefetch(h + n * 2 * HK_VW + j);
    }
    HK_UNROLL for (int j = 0; j < n; j++) {
      const cpx u = c_load(z, j), f = c_load(h, j);
      sum[j].re = v_fnma(u.im, f.im, v_fma(u.re, f.re, sum[j].re));
      sum[j].im = v_fma(u.im, f.re, v_fma(u.re, f.im, sum[j].im));
    }
  }
  HK_UNROLL for (int j = 0; j < n; j++) c_store(a->sum, i + j, sum[j]);
}

void HK_NAME(const void *args) {
  const hk_spectra_args *a = args;
  int64_t i = 0;
  for (; i + 4 <= a->count; i += 4) tile(a, i, 4);
  for (; i < a->count; i++) tile(a, i, 1);
}
