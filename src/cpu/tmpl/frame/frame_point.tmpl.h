/* frame with one tap and IN inputs per output, IN known: weights and indices stay in registers over the whole block.
 * Included by frame_mode.tmpl.h with IN and MODE set; nothing is made where a vector does not fit HK_VREGS beside what
 * is held. Returns the frame to go on from. */
#if MODE == BROADCAST
#define HELD (IN + 3)
#define EACH 1
#define MOST 4 /* Zen 5, 16 channels to 16, 64 frames: 141 ns, 144 with 2, 171 with 8 */
#else
#define HELD (2 * IN + 3)
#define EACH 2
#define MOST NVM
#endif
#define FIT ((HK_VREGS - HELD) / EACH)
#if HK_VREGS >= HELD + EACH
#define NV (FIT < MOST ? FIT : MOST)
static inline __attribute__((always_inline)) int64_t FRAME_PASTE(NAME(_loop), IN)(const hk_frame_args *a,
                                                                                  const hk_frame_tile *q, int64_t last,
                                                                                  int64_t lanes, int64_t x_step,
                                                                                  int64_t y_step) {
  const v_f32 bias = v_load(q->bias);
  const int64_t frames = q->frames;
  const float *x = a->x[0].x + q->x_at;
  float *y = a->y + q->y_at;
  int64_t t = 0;
  v_f32 f[IN];
  HK_UNROLL for (int m = 0; m < IN; m++) f[m] = v_load(q->f + m * HK_VW);
#if MODE != BROADCAST
  v_i32 from[IN];
  HK_UNROLL for (int m = 0; m < IN; m++) from[m] = v_load_i32(q->index + m * HK_VW);
#endif
  for (; t + (NV - 1) * frames <= last; t += NV * frames, x += NV * x_step, y += NV * y_step) {
    v_f32 acc[NV];
    HK_UNROLL for (int j = 0; j < NV; j++) acc[j] = bias;
#if MODE != BROADCAST
    v_f32 u[NV];
    HK_UNROLL for (int j = 0; j < NV; j++) u[j] = v_load(x + j * x_step);
    HK_UNROLL for (int m = 0; m < IN; m++) {
      HK_UNROLL for (int j = 0; j < NV; j++) acc[j] = v_fma(TAKE(u[j], from[m]), f[m], acc[j]);
    }
#else /* frame by frame: loads at one offset of several lines would meet in one bank of L1 */
    HK_UNROLL for (int j = 0; j < NV; j++) {
      HK_UNROLL for (int m = 0; m < IN; m++) acc[j] = v_fma(v_bcast(x + j * x_step + m), f[m], acc[j]);
    }
#endif
#include "cpu/tmpl/frame/frame_store.tmpl.h"
  }
  return t;
}

/* Vectors side by side, as of 4, 8 or 16 channels, take constant addresses. */
static int64_t FRAME_PASTE(NAME(_point), IN)(const hk_frame_args *a, const hk_frame_tile *q, int64_t last) {
  const int64_t lanes = q->outputs * q->frames, x_step = q->frames * a->x_frame, y_step = q->frames * a->y_frame;
  if (lanes == HK_VW && x_step == HK_VW && y_step == HK_VW)
    return FRAME_PASTE(NAME(_loop), IN)(a, q, last, HK_VW, HK_VW, HK_VW);
  return FRAME_PASTE(NAME(_loop), IN)(a, q, last, lanes, x_step, y_step);
}
#undef NV
#endif
#undef MOST
#undef FIT
#undef HELD
#undef EACH
#undef IN
