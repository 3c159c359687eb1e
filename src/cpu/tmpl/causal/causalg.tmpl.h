/* causalg: the backward pass of one tile in rows of f32: dz = dy * act'(z) in place of z, and the sums over the tile's
 * tokens that make df and dbias. TAPS taps share the loads of dz. Define HK_NAME, include a vocabulary, then this. */
#include "cpu/tmpl/causal/finish.tmpl.h"

enum { TAPS = 4 };

/* With s = 1/(1 + e^-z): silu' = s * (1 + z*(1 - s)), and 1 - s = e^-z * s. */
INLINE v_f32 slope(hk_act act, v_f32 z, v_f32 dy) {
  if (act == HK_ACT_RELU) return v_select(v_lt(v_zero(), z), dy, v_zero());
  if (act == HK_ACT_NONE) return dy;
  const v_f32 one = v_set1(1.0f), c = v_max(v_set1(-87.0f), v_min(v_set1(87.0f), z));
  v_f32 e;
  exp_minus(&c, &e, 1, 5);
  const v_f32 s = quotient(one, v_add(one, e), false), near = v_max(v_set1(FAR_LEFT), v_min(v_set1(-FAR_LEFT), z));
  return v_mul(v_mul(dy, s), v_fma(near, v_mul(e, s), one));
}

/* Where tap j of token t lies in u. */
INLINE int64_t source(const hk_causal_back *r, int64_t t, int64_t j) {
  return t + j * r->dilation;
}

/* Lanes are channels: n of them from c on. */
INLINE void channels(const hk_causal_back *r, int64_t c, int64_t n) {
  v_f32 sum = v_zero();
  for (int64_t t = 0; t < r->tokens; t++) {
    const v_f32 z = get_n(HK_F32, r->z, t * r->z_step + c, n), dy = get_n(HK_F32, r->dy, t * r->dy_step + c, n);
    const v_f32 dz = slope(r->act, z, dy);
    put_n(HK_F32, r->z, t * r->z_step + c, dz, n);
    sum = v_add(sum, dz);
  }
  put_n(HK_F32, r->dbias, c, sum, n);
  for (int64_t j = 0; j < r->window; j += TAPS) {
    v_f32 df[TAPS];
    const int64_t last = r->window - 1;
    HK_UNROLL for (int i = 0; i < TAPS; i++) df[i] = v_zero();
    for (int64_t t = 0; t < r->tokens; t++) {
      const v_f32 dz = get_n(HK_F32, r->z, t * r->z_step + c, n);
      HK_UNROLL for (int i = 0; i < TAPS; i++)
        df[i] = v_fma(dz, get_n(HK_F32, r->u, source(r, t, hk_min64(j + i, last)) * r->u_step + c, n), df[i]);
    }
    HK_UNROLL for (int i = 0; i < TAPS; i++)
      if (j + i < r->window) put_n(HK_F32, r->df, (j + i) * r->df_step + c, df[i], n);
  }
}

/* Lanes are tokens, of channel c. */
static void tokens(const hk_causal_back *r, int64_t c) {
  v_f32 sum = v_zero();
  float *z = r->z + c * r->z_step;
  for (int64_t t = 0; t < r->tokens; t += HK_VW) {
    const int64_t n = r->tokens - t;
    const v_f32 dz = slope(r->act, get_n(HK_F32, z, t, n), get_n(HK_F32, r->dy, c * r->dy_step + t, n));
    put_n(HK_F32, z, t, dz, n);
    sum = v_add(sum, dz);
  }
  r->dbias[c] = v_sum(sum);
  for (int64_t j = 0; j < r->window; j += TAPS) {
    v_f32 df[TAPS];
    const int64_t last = r->window - 1;
    HK_UNROLL for (int i = 0; i < TAPS; i++) df[i] = v_zero();
    for (int64_t t = 0; t < r->tokens; t += HK_VW) {
      const int64_t n = r->tokens - t;
      const v_f32 dz = get_n(HK_F32, z, t, n);
      HK_UNROLL for (int i = 0; i < TAPS; i++)
        df[i] = v_fma(dz, get_n(HK_F32, r->u, c * r->u_step + source(r, t, hk_min64(j + i, last)), n), df[i]);
    }
    HK_UNROLL for (int i = 0; i < TAPS; i++)
      if (j + i < r->window) r->df[c * r->df_step + j + i] = v_sum(df[i]);
  }
}

void HK_NAME(const void *args) {
  const hk_causal_back copy = *(const hk_causal_back *)args, *r = &copy;
  if (r->along_tokens) {
    for (int64_t c = 0; c < r->channels; c++) tokens(r, c);
    return;
  }
  int64_t c = 0;
  for (; c + HK_VW <= r->channels; c += HK_VW) channels(r, c, HK_VW);
  if (c < r->channels) channels(r, c, r->channels - c);
}
