/* Register tiles of dots from row m0 on: HK_MR rows of pixels x HK_NV vectors of output channels. Registers:
 * HK_MR*HK_NV accumulators, HK_NV of f, one broadcast group of x, and the flip of 8-bit x. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_dots_args *r, int64_t m0, int64_t tiles) {
  enum { NR = HK_NV * HK_VW };
  const int64_t bytes = r->channels * (4 / D_GROUP), rest = bytes % 4, first = rest - bytes, row_step = r->row_step;
  const d_group flip = d_flip(r->x_signed);
  for (; tiles > 0; tiles--, m0 += HK_MR) {
    d_sums acc[HK_MR][HK_NV];
    d_element *sums = (d_element *)r->sums + m0 * NR;
    if (r->resume) {
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = d_load_sums(sums + m * NR + v * HK_VW);
      }
    } else {
      HK_UNROLL for (int m = 0; m < HK_MR; m++) { HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = d_zero(); }
    }
    const char *const *rows = r->rows + m0;
    const int64_t *seg = r->seg;
    for (int64_t n = r->segments; n > 0; n--, rows += row_step, seg++) {
      const char *x[HK_MR];
      const uintptr_t zeros = (uintptr_t)r->zeros;
      uintptr_t live = 0;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        live |= (uintptr_t)rows[m] ^ zeros;
        x[m] = rows[m] - first;
      }
      if (__builtin_expect(!live, 0)) continue;
      const char *f = (const char *)r->f + *seg * (NR * 4);
      HK_UNROLL for (int m = 0; m < HK_MR; m++) HK_HOLD_POINTER(x[m]);
      HK_ROLLED for (int64_t c = first; c; c += 4, f += NR * 4) {
        d_group b[HK_NV];
        HK_UNROLL for (int v = 0; v < HK_NV; v++) {
          b[v] = d_load(f + v * HK_VW * 4);
#if HK_MR > 1
          HK_PIN(b[v]);
#endif
        }
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
          const d_group a = d_bcast(x[m] + c, flip);
          HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = d_dot(acc[m][v], a, b[v]);
        }
      }
      if (__builtin_expect(!rest, 1)) continue;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        const d_group a = d_set(rest_of(x[m], rest), flip);
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = d_dot(acc[m][v], a, d_load(f + v * HK_VW * 4));
      }
    }
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) d_store_sums(sums + m * NR + v * HK_VW, acc[m][v]);
    }
  }
}
