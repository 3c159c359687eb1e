  /* The epilogue of a pgemm tile, whose rows are channels. Expects acc, flags, r, m0 and pixel. */
  if (flags & HK_IGEMM_AFFINE) {
    const float *scales = r->scale + m0, *biases = r->bias + m0;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      const v_f32 scale = v_bcast(scales + m), bias = v_bcast(biases + m);
      HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_fma(acc[m][v], scale, bias);
    }
  }
#define HK_C(m) (r->c + (m0 + (m)) * r->c_step + pixel)
#include "cpu/tmpl/common/finish_sums.tmpl.h"
#undef HK_C
