/* causalt: causal depthwise Conv1D, lanes are tokens; a tap is the same row shifted, an unaligned load. Tokens whose
 * taps reach before the row, and those beyond whole vectors, come first in a row and are computed in a buffer of f32,
 * with the history before them; the others directly. Where y overwrites x all this goes backwards. TOGETHER vectors
 * share the broadcast of a tap. Define HK_NAME, include a vocabulary, then this. */
#include "cpu/tmpl/causal/finish.tmpl.h"

INLINE void finish_tokens(const hk_causal_tile *r, kinds k, v_f32 *v, const int count, where w) {
  const places at = {w.c * r->y_step + w.t, w.c * r->post_step + w.t, w.c * r->residual_step + w.t};
  finish(r, k, v, count, at, (places){HK_VW, HK_VW, HK_VW}, w.n);
}

/* Adds tap j of `taps` to `count` vectors. */
INLINE void add_tap(const hk_causal_tile *r, kinds k, int64_t taps, int64_t j, where w, const int count, v_f32 *v) {
  const int64_t from = w.t - r->dilation * (taps - 1 - j), x = w.c * r->x_step + from, pre = w.c * r->pre_step + from;
  const v_f32 f = v_bcast(r->f + w.c * r->f_step + j);
  EACH v[i] = v_fma(f, get_u(r, k.x, x + i * HK_VW, pre + i * HK_VW, w.n), v[i]);
}

/* `count` vectors, all taps inside the row; window 0: any. */
INLINE void tile(const hk_causal_tile *r, kinds k, const int window, where w, const int count) {
  v_f32 v[TOGETHER];
  const v_f32 bias = v_set1(r->bias ? r->bias[w.c] : 0.0f);
  EACH v[i] = bias;
  if (window) HK_UNROLL for (int j = 0; j < window; j++) add_tap(r, k, window, j, w, count, v);
  else HK_ROLLED for (int64_t j = 0; j < r->window; j++) add_tap(r, k, r->window, j, w, count, v);
  finish_tokens(r, k, v, count, w);
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
    finish_tokens(r, (kinds){r->x_type, r->y_type}, &v, 1, (where){c, i, count - i});
  }
}

/* Tokens first..end-1 in whole vectors: end - first is a multiple of VW. */
INLINE void direct(const hk_causal_tile *r, kinds k, const int window, int64_t c, int64_t first, int64_t end) {
  enum { WIDE = TOGETHER * HK_VW };
  const int64_t wide = first + (TOGETHER > 1 ? (end - first) / WIDE * WIDE : 0);
  if (r->y != r->x) { /* forward, as memory is prefetched from row to row */
    for (int64_t t = first; t < wide; t += WIDE) tile(r, k, window, (where){c, t, HK_VW}, TOGETHER);
    for (int64_t t = wide; t < end; t += HK_VW) tile(r, k, window, (where){c, t, HK_VW}, 1);
    return;
  }
  for (int64_t t = end; t > wide; t -= HK_VW) tile(r, k, window, (where){c, t - HK_VW, HK_VW}, 1);
  for (int64_t t = wide; t > first; t -= WIDE) tile(r, k, window, (where){c, t - WIDE, HK_VW}, TOGETHER);
}

#if HK_VW == 16
/* Where masks are free and the window reaches less than a vector back: the first n tokens take the lanes that lie
 * before the row from history. A buffer would make every tap wait for two stores. */
INLINE void head_lanes(const hk_causal_tile *r, kinds k, const int window, int64_t c, int64_t n) {
  const int64_t taps = window ? window : r->window, x = c * r->x_step, pre = c * r->pre_step;
  v_f32 v = v_set1(r->bias ? r->bias[c] : 0.0f);
  for (int64_t j = 0; j < taps; j++) {
    const int64_t back = r->dilation * (taps - 1 - j), all = r->dilation * (taps - 1);
    v_f32 u = get_range(k.x, r->x, x - back, back, n);
    if (r->pre) u = v_mul(u, get_range(k.x, r->pre, pre - back, back, n));
    const v_f32 old = get_range(HK_F32, r->history, c * r->history_step + all - back, 0, back);
    v = v_fma(v_bcast(r->f + c * r->f_step + j), v_select(v_tail(back), old, u), v);
  }
  finish_tokens(r, k, &v, 1, (where){c, 0, n});
}

INLINE void row_lanes(const hk_causal_tile *r, kinds k, const int window, int64_t c) {
  const int64_t whole = r->tokens / HK_VW * HK_VW, rest = r->tokens - whole;
  const bool back = r->y == r->x;
  if (!back) head_lanes(r, k, window, c, hk_min64(r->tokens, HK_VW));
  if (back && whole && rest) tile(r, k, window, (where){c, whole, rest}, 1);
  if (whole) direct(r, k, window, c, HK_VW, whole);
  if (!back && whole && rest) tile(r, k, window, (where){c, whole, rest}, 1);
  if (back) head_lanes(r, k, window, c, hk_min64(r->tokens, HK_VW));
}
#endif

INLINE void row(const hk_causal_tile *args, const hk_causal_tile *r, kinds k, const int window, int64_t c) {
  const int64_t reach = r->dilation * (r->window - 1), whole = hk_max64(r->tokens - reach, 0) / HK_VW * HK_VW;
  const int64_t first = r->tokens - whole;
#if HK_VW == 16
  if (r->history && reach < HK_VW) {
    row_lanes(r, k, window, c);
    return;
  }
#endif
  if (first && r->y != r->x) head(args, c, first);
  direct(r, k, window, c, first, r->tokens);
  if (first && r->y == r->x) head(args, c, first);
}

/* args is copied, so that stores to y cannot change it and its fields stay in registers. */
INLINE void run(const hk_causal_tile *args, kinds k) {
  const hk_causal_tile copy = *args, *r = &copy;
  if (r->window == 4) for (int64_t c = 0; c < r->channels; c++) row(args, r, k, 4, c);
  else if (r->window == 3) for (int64_t c = 0; c < r->channels; c++) row(args, r, k, 3, c);
  else if (r->window == 2) for (int64_t c = 0; c < r->channels; c++) row(args, r, k, 2, c);
  else for (int64_t c = 0; c < r->channels; c++) row(args, r, k, 0, c);
}

#include "cpu/tmpl/causal/entry.tmpl.h"
