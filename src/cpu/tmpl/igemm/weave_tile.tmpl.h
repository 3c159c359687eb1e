/* One register tile of weave: HK_MR consecutive vectors of outputs of the line. Registers: HK_MR accumulators, HK_MR of
 * x, one of weights, one of lane indices; HK_MR masks, which all window rows share. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_weave_args *r, int64_t j0) {
  v_f32 acc[HK_MR];
  HK_UNROLL for (int u = 0; u < HK_MR; u++) acc[u] = v_zero();
  const int64_t x_step = r->x_step, channels = r->channels;
  for (int64_t s = 0; s < r->taps; s++) {
    const int64_t at = r->start + s * r->tap_step + j0 * x_step;
    v_mask m[HK_MR];
    if (at >= 0 && at + (HK_MR - 1) * x_step + HK_VW <= r->width) {
      HK_UNROLL for (int u = 0; u < HK_MR; u++) m[u] = v_tail(HK_VW);
    } else {
      HK_UNROLL for (int u = 0; u < HK_MR; u++) m[u] = v_range(-(at + u * x_step), r->width - (at + u * x_step));
    }
    for (int64_t t = 0; t < r->rows; t++) {
      const float *x = r->x[t] + at, *f = r->f + (s * r->f_rows + r->f_row[t]) * channels * HK_VW;
      const int32_t *index = r->index;
      v_f32 v[HK_MR];
      HK_UNROLL for (int u = 0; u < HK_MR; u++) {
        v[u] = v_load_m(x + u * x_step, m[u]);
        HK_PIN(v[u]);
      }
      HK_ROLLED for (int64_t c = channels; c > 0; c--, f += HK_VW, index += HK_VW) {
        const v_i32 lane = v_load_i32(index);
        const v_f32 w = v_load(f);
        HK_UNROLL for (int u = 0; u < HK_MR; u++) acc[u] = v_fma(v_permute(v[u], lane), w, acc[u]);
      }
    }
  }
  const uint32_t flags = r->flags;
  if (flags & HK_IGEMM_AFFINE) {
    const v_f32 scale = v_load(r->scale), bias = v_load(r->bias);
    HK_UNROLL for (int u = 0; u < HK_MR; u++) acc[u] = v_fma(acc[u], scale, bias);
  }
  const int64_t lanes = r->y_lanes, left = r->outputs - j0 * lanes;
  const float *c = flags & (HK_IGEMM_BEFORE | HK_IGEMM_AFTER) ? r->c + j0 * lanes : NULL;
  const v_f32 beta = v_set1(r->beta), lo = v_set1(r->lo), hi = v_set1(r->hi);
  float *y = r->y + j0 * lanes;
  if (!(flags & (HK_IGEMM_BEFORE | HK_IGEMM_CLAMP | HK_IGEMM_AFTER)) && left >= HK_MR * lanes) {
    const v_mask whole = v_tail(lanes);
    HK_UNROLL for (int u = 0; u < HK_MR; u++)
      HK_MASKS_FREE ? v_store_m(y + u * lanes, acc[u], whole) : v_store_n(y + u * lanes, acc[u], lanes);
    return;
  }
  HK_UNROLL for (int u = 0; u < HK_MR; u++) {
    const int64_t n = hk_min64(lanes, left - u * lanes);
    if (flags & HK_IGEMM_BEFORE) acc[u] = v_fma(beta, v_load_n(c + u * lanes, n), acc[u]);
    if (flags & HK_IGEMM_CLAMP) acc[u] = v_min(hi, v_max(lo, acc[u]));
    if (flags & HK_IGEMM_AFTER) acc[u] = v_fma(beta, v_load_n(c + u * lanes, n), acc[u]);
    v_store_n(y + u * lanes, acc[u], n);
  }
}
