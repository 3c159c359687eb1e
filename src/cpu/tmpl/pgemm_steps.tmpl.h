/* The steps of one segment of a pgemm tile: count of them, from a and b on. HK_NEXT: the pixels that lie so far behind
 * those in use are asked for. */
      HK_ROLLED for (int64_t i = count; i > 0; i--, a += HK_MR, b += b_step) {
        v_f32 p[HK_NV];
        HK_UNROLL for (int v = 0; v < HK_NV; v++) {
          p[v] = v_load(b + v * HK_VW);
#if HK_MR > 1
          HK_PIN(p[v]);
#endif
#ifdef HK_NEXT
          v_prefetch(b + HK_NEXT + v * HK_VW);
#endif
        }
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
          const v_f32 w = v_bcast(a + m);
          HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_fma(w, p[v], acc[m][v]);
        }
      }
