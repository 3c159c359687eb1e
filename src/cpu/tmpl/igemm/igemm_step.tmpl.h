      /* One step of an igemm tile: the channel c bytes from the rows' ends x, and its weights at f. HK_FIRST: it starts
       * the sums. HK_NEXT: the prefetch distance of the weights in floats. */
      v_f32 b[HK_NV];
      HK_UNROLL for (int v = 0; v < HK_NV; v++) {
        b[v] = v_load(f + v * HK_VW);
#if HK_MR > 1
        HK_PIN(b[v]);
#endif
#ifdef HK_NEXT
        v_prefetch(f + HK_NEXT + v * HK_VW);
#endif
      }
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        const v_f32 a = v_bcast((const float *)(const void *)(x[m] + c));
#ifdef HK_FIRST
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = first_product(a, b[v]);
#else
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_fma(a, b[v], acc[m][v]);
#endif
      }
