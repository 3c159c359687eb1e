        /* One position of a depthwise tapsum tile. HK_LAST(p) loads the last vector of x or dy. */
        v_f32 p[HK_NV];
        HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) p[v] = v_load(dy + v * HK_VW);
        p[HK_NV - 1] = HK_LAST(dy + (HK_NV - 1) * HK_VW);
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
          HK_UNROLL for (int v = 0; v < HK_NV - 1; v++)
            acc[m][v] = v_fma(p[v], v_load(x[m] + at + v * HK_VW), acc[m][v]);
          acc[m][HK_NV - 1] = v_fma(p[HK_NV - 1], HK_LAST(x[m] + at + (HK_NV - 1) * HK_VW), acc[m][HK_NV - 1]);
        }
