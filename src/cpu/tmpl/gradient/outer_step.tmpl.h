      /* One position of an outer tile: a row of a at a, of b at b. HK_LAST(p) loads the last vector of b. */
      v_f32 p[HK_NV];
      HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) p[v] = v_load(b + v * HK_VW);
      p[HK_NV - 1] = HK_LAST(b + (HK_NV - 1) * HK_VW);
#if HK_MR > 1
      HK_UNROLL for (int v = 0; v < HK_NV; v++) HK_PIN(p[v]);
#endif
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        const v_f32 w = v_bcast(a + m);
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_fma(w, p[v], acc[m][v]);
      }
