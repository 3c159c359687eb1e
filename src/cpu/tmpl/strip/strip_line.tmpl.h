/* Tiles of strip by pairs of inputs in the simple case: HK_MR pixels at a constant stride, all taps inside x, whole
 * vectors. The few parameters stay in registers: a tile of three taps of 8 inputs takes 79 cycles, 93 in
 * strip_tile.tmpl.h (Zen 4; 72 of them are the products). Registers: 2*HK_MR accumulators, two of f, one of x. */
static void HK_PASTE4(line_, HK_MR, x, HK_NV)(const hk_strip_args *a) {
  const int64_t inputs = a->inputs, x_step = a->x_step, y_step = HK_MR > 1 ? a->y_at[1] : 0, x_next = a->x_next,
                y_next = a->y_next, f_next = a->f_next;
  const hk_strip_tap *taps = a->taps, *end = taps + a->tap_count;
  const float *from = a->x, *weights = a->f, *c = a->c;
  const uint32_t flags = a->fuse.flags;
  float *y = a->y;
  int64_t channel = 0;
  for (int64_t tile = a->tiles; tile > 0; tile--, from += x_next, y += y_next, weights += f_next) {
    v_f32 acc[HK_MR][2];
    HK_UNROLL for (int m = 0; m < HK_MR; m++) acc[m][0] = acc[m][1] = v_zero();
    HK_ROLLED for (const hk_strip_tap *t = taps; t < end; t++) {
      const float *f = weights + t->f, *low = from + t->x, *high = low + 3 * x_step;
      HK_ROLLED for (int64_t i = inputs; i >= 2; i -= 2, f += 2 * HK_VW, low += 2, high += 2) {
        v_f32 b0 = v_load(f), b1 = v_load(f + HK_VW);
        HK_PIN(b0);
        HK_PIN(b1);
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
          v_f32 s = v_bcast_pair(m < 3 ? low + m * x_step : high + (m - 3) * x_step);
          HK_PIN(s);
          acc[m][0] = v_fma(s, b0, acc[m][0]);
          acc[m][1] = v_fma(s, b1, acc[m][1]);
        }
      }
      if (inputs % 2 == 0) continue;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        const v_f32 s = v_bcast_half_pair(m < 3 ? low + m * x_step : high + (m - 3) * x_step);
        acc[m][0] = v_fma(s, v_load(f), acc[m][0]);
        acc[m][1] = v_fma(s, v_load(f + HK_VW), acc[m][1]);
      }
    }
    HK_UNROLL for (int m = 0; m < HK_MR; m++) acc[m][0] = v_add_pairs(acc[m][0], acc[m][1]);
    if (flags) {
      const v_f32 scale = !a->scale ? v_set1(1.0f) : a->scale_one ? v_bcast(a->scale) : v_load(a->scale + channel);
      const v_f32 bias = a->bias ? v_load(a->bias + channel) : v_zero();
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        const v_f32 r = flags & (HK_DW_BEFORE | HK_DW_AFTER) ? v_load(c + a->c_at[m]) : v_zero();
        acc[m][0] = fuse_vector(&a->fuse, acc[m][0], scale, bias, r);
      }
      if (c) c += a->c_next;
      channel += a->channel_next;
    }
    float *top = y + 3 * y_step;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) v_store(m < 3 ? y + m * y_step : top + (m - 3) * y_step, acc[m][0]);
  }
}
