/* The end of a tile of frame: the activation of acc[NV], and the stores of the first `lanes` lanes at y + j*y_step. */
if (a->act == HK_SMALL_CLIP) {
  const v_f32 lo = v_set1(a->lo), hi = v_set1(a->hi);
  HK_UNROLL for (int j = 0; j < NV; j++) acc[j] = v_min(hi, v_max(lo, acc[j]));
} else if (a->act == HK_SMALL_LEAKY) {
  const v_f32 slope = v_set1(a->lo);
  HK_UNROLL for (int j = 0; j < NV; j++) { acc[j] = v_select(v_lt(acc[j], v_zero()), v_mul(acc[j], slope), acc[j]); }
}
if (lanes == HK_VW) {
  HK_UNROLL for (int j = 0; j < NV; j++) v_store(y + j * y_step, acc[j]);
} else {
  HK_UNROLL for (int j = 0; j < NV; j++) v_store_n(y + j * y_step, acc[j], lanes);
}
