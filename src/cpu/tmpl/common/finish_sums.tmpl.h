  /* Residual and clamp of a tile of igemm or pgemm, after scale and bias. Expects acc, flags, r, and HK_C(m), the
   * address of row m of the residual. */
  const int64_t last = r->columns - (HK_NV - 1) * HK_VW;
  if (flags & HK_IGEMM_BEFORE) {
    const v_f32 beta = v_set1(r->beta);
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      const float *c = HK_C(m);
      HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) acc[m][v] = v_fma(beta, v_load(c + v * HK_VW), acc[m][v]);
      acc[m][HK_NV - 1] = v_fma(beta, v_load_n(c + (HK_NV - 1) * HK_VW, last), acc[m][HK_NV - 1]);
    }
  }
  if (flags & HK_IGEMM_CLAMP) {
    const v_f32 lo = v_set1(r->lo), hi = v_set1(r->hi);
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_min(hi, v_max(lo, acc[m][v]));
    }
  }
  if (flags & HK_IGEMM_AFTER) {
    const v_f32 beta = v_set1(r->beta);
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      const float *c = HK_C(m);
      HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) acc[m][v] = v_fma(beta, v_load(c + v * HK_VW), acc[m][v]);
      acc[m][HK_NV - 1] = v_fma(beta, v_load_n(c + (HK_NV - 1) * HK_VW, last), acc[m][HK_NV - 1]);
    }
  }
