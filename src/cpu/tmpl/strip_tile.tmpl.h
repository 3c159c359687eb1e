/* Tiles of strip: HK_MR pixels x HK_NV vectors of output channels, `tiles` of them one after another.
 * Registers: HK_MR*HK_NV sums, HK_NV of f, one broadcast of x; HK_MR pointers to pixels. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_strip_args *a) {
  enum { NR = HK_NV * HK_VW };
  const int64_t inputs = a->inputs, *x_at = a->x_at, *y_at = a->y_at, last = a->lanes - (HK_NV - 1) * HK_VW;
  const hk_strip_tap *taps = a->taps, *end = taps + a->tap_count;
  const float *from = a->x, *c = a->c, *zeros = a->zeros;
  float *y = a->y;
  for (int64_t tile = a->tiles; tile > 0; tile--, from += a->x_next, y += a->y_next) {
    v_f32 acc[HK_MR][HK_NV];
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_zero();
    }
    HK_ROLLED for (const hk_strip_tap *t = taps; t < end; t++) {
      const float *x[HK_MR], *f = a->f + t->f;
      const uint32_t mask = t->mask;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) x[m] = from + t->x + x_at[m];
      if (mask != (1u << HK_MR) - 1) {
        HK_UNROLL for (int m = 0; m < HK_MR; m++) x[m] = mask >> m & 1 ? x[m] : zeros;
      }
      HK_ROLLED for (int64_t i = 0; i < inputs; i++, f += NR) {
        v_f32 b[HK_NV];
        HK_UNROLL for (int v = 0; v < HK_NV; v++) {
          b[v] = v_load(f + v * HK_VW);
#if HK_MR > 1
          HK_PIN(b[v]);
#endif
        }
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
          const v_f32 s = v_bcast(x[m] + i);
          HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_fma(s, b[v], acc[m][v]);
        }
      }
    }
    if (a->fuse.flags) {
      const v_mask mask = v_tail(last);
      HK_UNROLL for (int v = 0; v < HK_NV; v++) {
        const int at = v * HK_VW;
        const bool whole = v < HK_NV - 1;
        v_f32 scale = v_set1(1.0f), bias = v_zero();
        if (a->scale) scale = a->scale_one ? v_bcast(a->scale) : whole ? v_load(a->scale + at) : v_load_m(a->scale + at, mask);
        if (a->bias) bias = whole ? v_load(a->bias + at) : v_load_m(a->bias + at, mask);
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
          v_f32 r = v_zero();
          if (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER)) r = whole ? v_load(c + a->c_at[m] + at) : v_load_m(c + a->c_at[m] + at, mask);
          acc[m][v] = fuse_vector(&a->fuse, acc[m][v], scale, bias, r);
        }
      }
      if (c) c += a->c_next;
    }
    if (last == HK_VW) {
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(y + y_at[m] + v * HK_VW, acc[m][v]);
      }
    } else {
      const bool over = a->over;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) v_store(y + y_at[m] + v * HK_VW, acc[m][v]);
        float *to = y + y_at[m] + (HK_NV - 1) * HK_VW;
        if (over && m < HK_MR - 1) v_store(to, acc[m][HK_NV - 1]);
        else v_store_n(to, acc[m][HK_NV - 1], last);
      }
    }
  }
}
