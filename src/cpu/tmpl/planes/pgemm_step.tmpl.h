        /* One step of a pgemm tile: pixels at b, weights at a. HK_FIRST: it starts the sums. HK_COPY: where to copy the
         * pixels. HK_NEXT: the prefetch distance of the pixels in floats. */
        v_f32 p[HK_NV];
        HK_UNROLL for (int v = 0; v < HK_NV; v++) {
          p[v] = v_load(b + v * HK_VW);
#if HK_MR > 1
          HK_PIN(p[v]);
#endif
#ifdef HK_COPY
          v_store(HK_COPY + v * HK_VW, p[v]);
#endif
#ifdef HK_NEXT
          v_prefetch(b + HK_NEXT + v * HK_VW);
#endif
        }
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
          const v_f32 w = v_bcast(a + m);
#ifdef HK_FIRST
          HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = first_product(w, p[v]);
#else
          HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_fma(w, p[v], acc[m][v]);
#endif
        }
