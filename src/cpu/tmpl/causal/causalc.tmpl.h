/* causalc: causal depthwise Conv1D, lanes are channels. Windows of 2, 3 and 4 taps without dilation keep the last
 * values of u in registers and walk forward in time, one load and one store per token: registers 4 taps, 3 + TOGETHER
 * values, bias, and TOGETHER sums with what their activation needs. Other windows load every tap and walk backwards, so
 * that y may overwrite x. Define HK_NAME, include a vocabulary, then this. */
#include "cpu/tmpl/causal/finish.tmpl.h"

/* u of token t < tokens for n channels from c on; t < 0 reads history, if any does. */
INLINE v_f32 value(const hk_causal_tile *r, hk_type type, int64_t c, int64_t t, int64_t n, bool inside) {
  if (inside || t >= 0) return get_u(r, type, c + t * r->x_step, c + t * r->pre_step, n);
  return get_n(HK_F32, r->history, c + (r->dilation * (r->window - 1) + t) * r->history_step, n);
}

INLINE void finish_tokens(const hk_causal_tile *r, kinds k, v_f32 *v, const int count, where w) {
  const places at = {w.c + w.t * r->y_step, w.c + w.t * r->post_step, w.c + w.t * r->residual_step};
  finish(r, k, v, count, at, (places){r->y_step, r->post_step, r->residual_step}, w.n);
}

/* `count` tokens of a whole vector, for march. */
INLINE void stride(const hk_causal_tile *r, kinds k, const int window, const v_f32 *f, v_f32 *u, where w,
                   const int count) {
  v_f32 v[TOGETHER];
  EACH u[window - 1 + i] = value(r, k.x, w.c, w.t + i, HK_VW, true);
  EACH v[i] = f[window];
  HK_UNROLL for (int j = 0; j < window; j++) EACH v[i] = v_fma(f[j], u[i + j], v[i]);
  HK_UNROLL for (int j = 0; j < window - 1; j++) u[j] = u[j + count];
  finish_tokens(r, k, v, count, w);
}

/* One vector of channels, window taps, all tokens forward. */
INLINE void march(const hk_causal_tile *r, kinds k, const int window, int64_t c) {
  v_f32 f[5], u[3 + TOGETHER]; /* taps, then the bias; the values before token t, then its own and those after it */
  HK_UNROLL for (int j = 0; j < window; j++) f[j] = v_load(r->f + j * r->f_step + c);
  f[window] = r->bias ? v_load(r->bias + c) : v_zero();
  HK_UNROLL for (int j = 0; j < window - 1; j++)
    u[j] = value(r, k.x, c, j - (window - 1), HK_VW, !r->history);
  int64_t t = 0;
  for (; t + TOGETHER <= r->tokens; t += TOGETHER) stride(r, k, window, f, u, (where){c, t, HK_VW}, TOGETHER);
  for (; t < r->tokens; t++) stride(r, k, window, f, u, (where){c, t, HK_VW}, 1);
}

/* Any window: `count` tokens. */
INLINE void tile(const hk_causal_tile *r, kinds k, where w, const int count) {
  v_f32 v[TOGETHER];
  const v_f32 bias = r->bias ? get_n(HK_F32, r->bias, w.c, w.n) : v_zero();
  EACH v[i] = bias;
  int64_t j = 0;
  for (; j < r->window && r->history; j++) { /* taps that may reach into history */
    const int64_t from = w.t - r->dilation * (r->window - 1 - j);
    if (from >= 0) break;
    const v_f32 f = get_n(HK_F32, r->f, j * r->f_step + w.c, w.n);
    EACH v[i] = v_fma(f, value(r, k.x, w.c, from + i, w.n, false), v[i]);
  }
  for (; j < r->window; j++) {
    const int64_t from = w.t - r->dilation * (r->window - 1 - j);
    const v_f32 f = get_n(HK_F32, r->f, j * r->f_step + w.c, w.n);
    EACH v[i] = v_fma(f, value(r, k.x, w.c, from + i, w.n, true), v[i]);
  }
  finish_tokens(r, k, v, count, w);
}

INLINE void walk(const hk_causal_tile *r, kinds k, int64_t c, int64_t n) {
  int64_t t = r->tokens;
  for (; TOGETHER > 1 && t >= TOGETHER; t -= TOGETHER) tile(r, k, (where){c, t - TOGETHER, n}, TOGETHER);
  for (; t > 0; t--) tile(r, k, (where){c, t - 1, n}, 1);
}

/* The last, partial vector of channels: of any types, once per call. */
static __attribute__((noinline)) void walk_part(const hk_causal_tile *r, int64_t c, int64_t n) {
  walk(r, (kinds){r->x_type, r->y_type}, c, n);
}

/* args is copied, so that stores to y cannot change it and its fields stay in registers. */
INLINE void run(const hk_causal_tile *args, kinds k) {
  const hk_causal_tile copy = *args, *r = &copy;
  const int64_t whole = r->channels / HK_VW * HK_VW, window = r->dilation == 1 ? r->window : 0;
  if (window == 4) for (int64_t c = 0; c < whole; c += HK_VW) march(r, k, 4, c);
  else if (window == 3) for (int64_t c = 0; c < whole; c += HK_VW) march(r, k, 3, c);
  else if (window == 2) for (int64_t c = 0; c < whole; c += HK_VW) march(r, k, 2, c);
  else for (int64_t c = 0; c < whole; c += HK_VW) walk(r, k, c, HK_VW);
  if (whole < r->channels) walk_part(args, whole, r->channels - whole);
}

#include "cpu/tmpl/causal/entry.tmpl.h"
