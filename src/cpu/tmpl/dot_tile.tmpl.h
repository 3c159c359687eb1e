/* One register tile of dot: HK_MR rows of pixels x HK_NV output channels, vectors along the input channels.
 * Registers: HK_MR*HK_NV sums, HK_NV of f, one of x. Packed f: f[(seg[t])*HK_NV + j*channels + c]. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_igemm_args *r, int64_t m0) {
  v_f32 acc[HK_MR][HK_NV];
  HK_UNROLL for (int m = 0; m < HK_MR; m++) {
    HK_UNROLL for (int j = 0; j < HK_NV; j++) acc[m][j] = v_zero();
  }
  const int64_t channels = r->channels, whole = channels - channels % HK_VW;
  const float *const *rows = r->rows + m0;
  for (int64_t t = 0; t < r->segments; t++, rows += r->row_step) {
    uintptr_t live = 0;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) live |= (uintptr_t)rows[m] ^ (uintptr_t)r->zeros;
    if (!live) continue;
    const float *f = r->f + r->seg[t] * HK_NV;
    const float *x[HK_MR];
    HK_UNROLL for (int m = 0; m < HK_MR; m++) x[m] = rows[m] + r->x_at;
    HK_ROLLED for (int64_t c = 0; c < whole; c += HK_VW) {
      v_f32 b[HK_NV];
      HK_UNROLL for (int j = 0; j < HK_NV; j++) b[j] = v_load(f + j * channels + c);
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        const v_f32 a = v_load(x[m] + c);
        HK_UNROLL for (int j = 0; j < HK_NV; j++) acc[m][j] = v_fma(a, b[j], acc[m][j]);
      }
    }
    if (whole == channels) continue;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      const v_f32 a = v_load_n(x[m] + whole, channels - whole);
      HK_UNROLL for (int j = 0; j < HK_NV; j++)
        acc[m][j] = v_fma(a, v_load_n(f + j * channels + whole, channels - whole), acc[m][j]);
    }
  }
  HK_UNROLL for (int m = 0; m < HK_MR; m++) {
    HK_UNROLL for (int j = 0; j < HK_NV; j++) finish(r, m0 + m, j, HK_NV, v_sum(acc[m][j]));
  }
}
