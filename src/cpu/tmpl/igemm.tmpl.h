/* igemm tile: MR pixels x NR output channels, f32.
 *
 * acc[m][v] += row(m, t)[c * c_stride] * f[t][c][v*VW ..]; f is packed [t][c][NR].
 * Registers: MR*NV accumulators + NV filter vectors + 1 broadcast (6x16 AVX2: 12 + 2 + 1 of 16).
 * Define MR, NR and NAME, include the vocabulary first. Rows beyond args->rows read row 0's offsets' zeros. */
#include "cpu/ukernel.h"

#define NV (NR / HK_VW)
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif

void NAME(const void *args) {
  const hk_igemm_args *a = args;
  static const float zero[1] = {0};
  v_f32 acc[MR][NV];
  const int64_t step = a->c_stride;
  UNROLL
  for (int m = 0; m < MR; m++) UNROLL for (int v = 0; v < NV; v++) {
    acc[m][v] = a->accumulate ? v_load(a->out + m * NR + v * HK_VW) : v_zero();
  }
  for (int64_t t = 0; t < a->segments; t++) {
    const float *row[MR];
    int64_t by[MR];
    UNROLL
    for (int m = 0; m < MR; m++) {
      const int64_t o = a->offset[t * MR + m];
      row[m] = o == HK_ROW_SKIP ? zero : a->x + o;
      by[m] = o == HK_ROW_SKIP ? 0 : step;
    }
    const float *f = a->f + t * a->channels * NR;
    for (int64_t c = 0; c < a->channels; c++, f += NR) {
      v_f32 w[NV];
      UNROLL
      for (int v = 0; v < NV; v++) w[v] = v_load(f + v * HK_VW);
      UNROLL
      for (int m = 0; m < MR; m++) {
        const v_f32 x = v_bcast(row[m]);
        row[m] += by[m];
        UNROLL
        for (int v = 0; v < NV; v++) acc[m][v] = v_fma(x, w[v], acc[m][v]);
      }
    }
  }
  UNROLL
  for (int m = 0; m < MR; m++) UNROLL for (int v = 0; v < NV; v++) v_store(a->out + m * NR + v * HK_VW, acc[m][v]);
}

#undef NV
#undef UNROLL
