  /* The epilogue of an igemm tile, whose columns are channels. Expects acc, flags, r, and HK_C(m), the address of row m
   * of the residual. */
  if (flags & HK_IGEMM_AFFINE) {
    HK_UNROLL for (int v = 0; v < HK_NV; v++) {
      const v_f32 scale = v_load(r->scale + v * HK_VW), bias = v_load(r->bias + v * HK_VW);
      HK_UNROLL for (int m = 0; m < HK_MR; m++) acc[m][v] = v_fma(acc[m][v], scale, bias);
    }
  }
#include "cpu/tmpl/common/finish_sums.tmpl.h"
