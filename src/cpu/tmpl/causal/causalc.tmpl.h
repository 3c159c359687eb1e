/* causalc: causal depthwise Conv1D, lanes are channels. Windows of 2, 3 and 4 taps without dilation keep the last
 * values of u in registers and walk forward in time, one load and one store per token: registers 4 taps, 3 values,
 * bias, sum, and those of the activation. Other windows load every tap and walk backwards, so that y may overwrite x:
 * the taps of TOKENS tokens at once. Define HK_NAME, include a vocabulary, then this. */
#include "cpu/tmpl/causal/finish.tmpl.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

enum { TOKENS = HK_VW > 1 ? 4 : 1 };

/* u of token t < tokens for n channels from c on; t < 0 reads history. */
INLINE v_f32 value(const hk_causal_tile *r, hk_type type, int64_t c, int64_t t, int64_t n) {
  if (t >= 0 || !r->history) return get_u(r, type, c + t * r->x_step, c + t * r->pre_step, n);
  return get_n(HK_F32, r->history, c + (r->dilation * (r->window - 1) + t) * r->history_step, n);
}

INLINE places place(const hk_causal_tile *r, int64_t c, int64_t t) {
  return (places){c + t * r->y_step, c + t * r->post_step, c + t * r->residual_step};
}

/* One vector of channels, window taps, all tokens forward. */
INLINE void march(const hk_causal_tile *r, hk_type x_type, hk_type y_type, const int window, int64_t c) {
  v_f32 f[4], u[4];
  HK_UNROLL for (int j = 0; j < window; j++) f[j] = v_load(r->f + j * r->f_step + c);
  HK_UNROLL for (int j = 0; j < window - 1; j++) u[j] = value(r, x_type, c, j - (window - 1), HK_VW);
  const v_f32 bias = r->bias ? v_load(r->bias + c) : v_zero();
  for (int64_t t = 0; t < r->tokens; t++) {
    u[window - 1] = get_u(r, x_type, c + t * r->x_step, c + t * r->pre_step, HK_VW);
    v_f32 v = bias;
    HK_UNROLL for (int j = 0; j < window; j++) v = v_fma(f[j], u[j], v);
    HK_UNROLL for (int j = 0; j < window - 1; j++) u[j] = u[j + 1];
    finish(r, x_type, y_type, v, place(r, c, t), HK_VW);
  }
}

/* Any window: `count` tokens from t on, n channels. */
INLINE void tile(const hk_causal_tile *r, hk_type x_type, hk_type y_type, int64_t c, int64_t n, int64_t t,
                 const int count) {
  v_f32 v[TOKENS];
  const v_f32 bias = r->bias ? get_n(HK_F32, r->bias, c, n) : v_zero();
  HK_UNROLL for (int i = 0; i < count; i++) v[i] = bias;
  for (int64_t j = 0; j < r->window; j++) {
    const v_f32 f = get_n(HK_F32, r->f, j * r->f_step + c, n);
    const int64_t from = t - r->dilation * (r->window - 1 - j);
    HK_UNROLL for (int i = 0; i < count; i++) v[i] = v_fma(f, value(r, x_type, c, from + i, n), v[i]);
  }
  HK_UNROLL for (int i = 0; i < count; i++) finish(r, x_type, y_type, v[i], place(r, c, t + i), n);
}

INLINE void walk(const hk_causal_tile *r, hk_type x_type, hk_type y_type, int64_t c, int64_t n) {
  int64_t t = r->tokens;
  for (; TOKENS > 1 && t >= TOKENS; t -= TOKENS) tile(r, x_type, y_type, c, n, t - TOKENS, TOKENS);
  for (; t > 0; t--) tile(r, x_type, y_type, c, n, t - 1, 1);
}

/* The last, partial vector of channels: of any types, once per call. */
static __attribute__((noinline)) void walk_part(const hk_causal_tile *r, int64_t c, int64_t n) {
  walk(r, r->x_type, r->y_type, c, n);
}

/* args is copied, so that stores to y cannot change it and its fields stay in registers. */
INLINE void run(const hk_causal_tile *args, hk_type x_type, hk_type y_type) {
  const hk_causal_tile copy = *args, *r = &copy;
  const int64_t whole = r->channels / HK_VW * HK_VW, window = r->dilation == 1 ? r->window : 0;
  if (window == 4) for (int64_t c = 0; c < whole; c += HK_VW) march(r, x_type, y_type, 4, c);
  else if (window == 3) for (int64_t c = 0; c < whole; c += HK_VW) march(r, x_type, y_type, 3, c);
  else if (window == 2) for (int64_t c = 0; c < whole; c += HK_VW) march(r, x_type, y_type, 2, c);
  else for (int64_t c = 0; c < whole; c += HK_VW) walk(r, x_type, y_type, c, HK_VW);
  if (whole < r->channels) walk_part(args, whole, r->channels - whole);
}

#include "cpu/tmpl/causal/entry.tmpl.h"
