/* One register tile of frame: NV steps from frame t on. Included by frame_mode.tmpl.h once per shape with NV, TILE,
 * MASKED and MODE set. MASKED (NV is 1) loads the x and stores the y of `frames` frames only. */
static inline __attribute__((always_inline)) void TILE(const hk_frame_args *a, const hk_frame_tile *q, int64_t t,
                                                       int64_t frames, int64_t x_step, int64_t y_step) {
  /* Read before the first store: a store may alias the arguments, so the compiler would reload them. */
  const int64_t lanes = q->outputs * frames, inputs = q->inputs, at = q->x_at + t * a->x_frame;
  const float *w = q->f;
  float *const y = a->y + q->y_at + t * a->y_frame;
  v_f32 acc[NV];
  HK_UNROLL for (int j = 0; j < NV; j++) acc[j] = v_load(q->bias);
  for (int32_t s = 0; s < a->taps; s++) {
    const float *x = a->x[s].x + at;
#if MODE == BROADCAST
    for (int64_t m = inputs; m > 0; m--, x++, w += HK_VW) {
      const v_f32 f = v_load(w);
      HK_UNROLL for (int j = 0; j < NV; j++) acc[j] = v_fma(v_bcast(x + j * x_step), f, acc[j]);
    }
#else
    v_f32 u[NV];
#if MASKED
    u[0] = v_load_n(x, q->reads * frames);
#else
    HK_UNROLL for (int j = 0; j < NV; j++) u[j] = v_load(x + j * x_step);
#endif
#if MODE == PLAIN
    const v_f32 f = v_load(w);
    w += HK_VW;
    HK_UNROLL for (int j = 0; j < NV; j++) acc[j] = v_fma(u[j], f, acc[j]);
#else
    const int32_t *index = q->index;
    for (int64_t m = inputs; m > 0; m--, index += HK_VW, w += HK_VW) {
      const v_i32 from = v_load_i32(index);
      const v_f32 f = v_load(w);
      HK_UNROLL for (int j = 0; j < NV; j++) acc[j] = v_fma(TAKE(u[j], from), f, acc[j]);
    }
#endif
#endif
  }
  (void)inputs;
  (void)x_step, (void)y_step;
#include "cpu/tmpl/frame/frame_store.tmpl.h"
}
#undef NV
#undef TILE
#undef MASKED
