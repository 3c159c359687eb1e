    /* Stores the rows of acc to y, y_step apart, and advances y past them; at->last is the number of lanes of the last
     * vector. */
    if (__builtin_expect(at->last != HK_VW, 0)) {
      HK_UNROLL for (int m = 0; m < HK_MR; m++, y += y_step) {
        HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) v_store(y + v * HK_VW, acc[m][v]);
        v_store_n(y + (HK_NV - 1) * HK_VW, acc[m][HK_NV - 1], at->last);
      }
    } else {
      HK_UNROLL for (int m = 0; m < HK_MR; m++, y += y_step) {
        HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(y + v * HK_VW, acc[m][v]);
      }
    }
