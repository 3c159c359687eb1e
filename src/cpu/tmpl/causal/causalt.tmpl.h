/* causalt: causal depthwise Conv1D, lanes are tokens; a tap is the same row shifted, an unaligned load. Tokens whose
 * taps reach before the row, and those beyond whole vectors, come first in a row and are computed in a buffer of f32,
 * with the history before them; the others directly. Where y overwrites x all this goes backwards. VECTORS vectors
 * share the broadcast of a tap. Define HK_NAME, include a vocabulary, then this. */
#include "cpu/tmpl/causal/finish.tmpl.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

enum { VECTORS = HK_VW > 1 ? 4 : 1 };

INLINE places place(const hk_causal_tile *r, int64_t c, int64_t t) {
  return (places){c * r->y_step + t, c * r->post_step + t, c * r->residual_step + t};
}

/* Adds tap j of `taps` to `count` vectors of channel c from token t on. */
INLINE void add_tap(const hk_causal_tile *r, hk_type x_type, int64_t taps, int64_t j, int64_t c, int64_t t,
                    const int count, v_f32 *v) {
  const int64_t back = r->dilation * (taps - 1 - j), x = c * r->x_step + t - back, pre = c * r->pre_step + t - back;
  const v_f32 w = v_bcast(r->f + c * r->f_step + j);
  HK_UNROLL for (int i = 0; i < count; i++)
    v[i] = v_fma(w, get_u(r, x_type, x + i * HK_VW, pre + i * HK_VW, HK_VW), v[i]);
}

/* `count` vectors of channel c from token t on, all taps inside the row; window 0: any. */
INLINE void tile(const hk_causal_tile *r, hk_type x_type, hk_type y_type, const int window, int64_t c, int64_t t,
                 const int count) {
  v_f32 v[VECTORS];
  const v_f32 bias = v_set1(r->bias ? r->bias[c] : 0.0f);
  HK_UNROLL for (int i = 0; i < count; i++) v[i] = bias;
  if (window) HK_UNROLL for (int j = 0; j < window; j++) add_tap(r, x_type, window, j, c, t, count, v);
  else HK_ROLLED for (int64_t j = 0; j < r->window; j++) add_tap(r, x_type, r->window, j, c, t, count, v);
  HK_UNROLL for (int i = 0; i < count; i++) finish(r, x_type, y_type, v[i], place(r, c, t + i * HK_VW), HK_VW);
}

/* The first `count` tokens of channel c. */
static __attribute__((noinline)) void head(const hk_causal_tile *r, int64_t c, int64_t count) {
  float u[2 * HK_CAUSALT_REACH + 2 * HK_VW];
  const int64_t reach = r->dilation * (r->window - 1);
  const float *f = r->f + c * r->f_step;
  int64_t i = 0;
  if (r->history)
    for (; i < reach; i += HK_VW) v_store(u + i, get_n(HK_F32, r->history, c * r->history_step + i, reach - i));
  else
    for (; i < reach; i += HK_VW)
      v_store(u + i, get_u(r, r->x_type, c * r->x_step + i - reach, c * r->pre_step + i - reach, reach - i));
  for (i = 0; i < count; i += HK_VW)
    v_store(u + reach + i, get_u(r, r->x_type, c * r->x_step + i, c * r->pre_step + i, count - i));
  for (i = 0; i < count; i += HK_VW) {
    v_f32 v = v_set1(r->bias ? r->bias[c] : 0.0f);
    for (int64_t j = 0; j < r->window; j++) v = v_fma(v_bcast(f + j), v_load(u + i + j * r->dilation), v);
    finish(r, r->x_type, r->y_type, v, place(r, c, i), count - i);
  }
}

INLINE void row(const hk_causal_tile *args, const hk_causal_tile *r, hk_type x_type, hk_type y_type, const int window,
                int64_t c) {
  enum { WIDE = VECTORS * HK_VW };
  const int64_t reach = r->dilation * (r->window - 1), direct = hk_max64(r->tokens - reach, 0) / HK_VW * HK_VW;
  const int64_t first = r->tokens - direct, wide = first + (VECTORS > 1 ? direct / WIDE * WIDE : 0);
  if (r->y != r->x) { /* forward, as memory is prefetched from row to row */
    if (first) head(args, c, first);
    for (int64_t t = first; t < wide; t += WIDE) tile(r, x_type, y_type, window, c, t, VECTORS);
    for (int64_t t = wide; t < r->tokens; t += HK_VW) tile(r, x_type, y_type, window, c, t, 1);
    return;
  }
  for (int64_t t = r->tokens; t > wide; t -= HK_VW) tile(r, x_type, y_type, window, c, t - HK_VW, 1);
  for (int64_t t = wide; t > first; t -= WIDE) tile(r, x_type, y_type, window, c, t - WIDE, VECTORS);
  if (first) head(args, c, first);
}

/* args is copied, so that stores to y cannot change it and its fields stay in registers. */
INLINE void run(const hk_causal_tile *args, hk_type x_type, hk_type y_type) {
  const hk_causal_tile copy = *args, *r = &copy;
  if (r->window == 4) for (int64_t c = 0; c < r->channels; c++) row(args, r, x_type, y_type, 4, c);
  else if (r->window == 3) for (int64_t c = 0; c < r->channels; c++) row(args, r, x_type, y_type, 3, c);
  else if (r->window == 2) for (int64_t c = 0; c < r->channels; c++) row(args, r, x_type, y_type, 2, c);
  else for (int64_t c = 0; c < r->channels; c++) row(args, r, x_type, y_type, 0, c);
}

#include "cpu/tmpl/causal/entry.tmpl.h"
