/* One register tile of dot: HK_MR rows of pixels x HK_NV output channels, lanes are input channels. Registers:
 * HK_MR*HK_NV accumulators, HK_NV of f, one of x. Packed f: f[seg[t]*HK_NV + j*channels + c]. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_igemm_args *r, int64_t m0) {
  enum { SUMS = HK_MR * HK_NV };
  v_f32 acc[SUMS];
  HK_UNROLL for (int i = 0; i < SUMS; i++) acc[i] = v_zero();
  const int64_t channels = r->channels, whole = channels - channels % HK_VW;
  const hk_igemm_line *line = r->line;
  const float *const *rows = line ? NULL : r->rows + m0;
  for (int64_t t = 0; t < r->segments; t++) {
    const float *f = r->f + r->seg[t] * HK_NV;
    const float *x[HK_MR];
    if (__builtin_expect(line != NULL, 0)) {
      x[0] = line->x + line->x_seg[t] + m0 * line->x_step + r->x_at;
      HK_UNROLL for (int m = 1; m < HK_MR; m++) x[m] = x[m - 1] + line->x_step;
    } else {
      uintptr_t live = 0;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        live |= (uintptr_t)rows[m] ^ (uintptr_t)r->zeros;
        x[m] = rows[m] + r->x_at;
      }
      rows += r->row_step;
      if (!live) continue;
    }
    HK_ROLLED for (int64_t c = 0; c < whole; c += HK_VW) {
      v_f32 b[HK_NV];
      HK_UNROLL for (int j = 0; j < HK_NV; j++) b[j] = v_load(f + j * channels + c);
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        const v_f32 a = v_load(x[m] + c);
        HK_UNROLL for (int j = 0; j < HK_NV; j++) acc[m * HK_NV + j] = v_fma(a, b[j], acc[m * HK_NV + j]);
      }
    }
    if (whole == channels) continue;
    const v_mask rest = v_tail(channels - whole);
    v_f32 b[HK_NV];
    HK_UNROLL for (int j = 0; j < HK_NV; j++) b[j] = v_load_m(f + j * channels + whole, rest);
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      const v_f32 a = v_load_m(x[m] + whole, rest);
      HK_UNROLL for (int j = 0; j < HK_NV; j++) acc[m * HK_NV + j] = v_fma(a, b[j], acc[m * HK_NV + j]);
    }
  }
  float sum[SUMS];
#ifdef HK_SUMS
  HK_UNROLL for (int i = 0; i < SUMS - SUMS % 8; i += 8) v_sum8(acc + i, sum + i);
  HK_UNROLL for (int i = SUMS - SUMS % 8; i < SUMS; i++) sum[i] = v_sum(acc[i]);
#else
  HK_UNROLL for (int i = 0; i < SUMS; i++) sum[i] = v_sum(acc[i]);
#endif
  if (!r->flags && line) {
    float *y = line->y + m0 * line->y_step + r->y_at;
    const int64_t step = line->y_step;
    HK_UNROLL for (int m = 0; m < HK_MR; m++, y += step) {
      HK_UNROLL for (int j = 0; j < HK_NV; j++) y[j] = sum[m * HK_NV + j];
    }
    return;
  }
  HK_UNROLL for (int m = 0; m < HK_MR; m++) {
    HK_UNROLL for (int j = 0; j < HK_NV; j++) finish(r, m0 + m, j, HK_NV, sum[m * HK_NV + j]);
  }
}
