    /* The steps of one segment of an igemm tile, from f on. HK_NEXT: weights that lie so far behind those in use are asked for. */
    HK_ROLLED for (int64_t c = -channels; c < 0; c++, f += NR) {
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
        const v_f32 a = v_bcast(x[m] + c);
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_fma(a, b[v], acc[m][v]);
      }
    }
