/* Causal Conv1D of w = 2 to 4 taps for one or a few tokens per sequence (decoding), any strides, dilation 1.
 *
 * A thread owns v channels of one sequence: it reads their history, walks over the tokens, and writes the new state,
 * so states may be updated in place. One token with a linear state of w-1 or w entries, the common case, keeps the
 * whole state in registers; other states are moved entry by entry. */
#include "cuda/causal/common.cuh"

enum { W_MOST = 4, V_MOST = 4 };

HK_DEV void step_load(const void *p, int access, const int v, hk_cu_causal_view s, hk_cu_i64 at, float *to) {
  if (access == HK_CU_VECTOR) causal_load_as(causal_at(p, TYPE, at), TYPE, v, to);
  else {
#pragma unroll
    for (int i = 0; i < v; ++i) to[i] = causal_get(p, TYPE, at + i * s.channel);
  }
}

/* u of the thread's channels at token t. */
HK_DEV void step_token(const hk_cu_causal_call *P, const causal_unit *q, const int v, int c0, int t, float *u) {
  step_load(P->x, P->x_access, v, P->xs, causal_base(q, P->xs) + c0 * P->xs.channel + t * P->xs.time, u);
  if (P->pre) {
#pragma unroll
    for (int i = 0; i < v; ++i)
      u[i] *= causal_get(P->pre, TYPE, causal_base(q, P->pres) + (c0 + i) * P->pres.channel + t * P->pres.time);
  }
}

/* y at token t from w values of u per channel. */
HK_DEV void step_output(const hk_cu_causal_call *P, const causal_unit *q, const int w, const int v, const int alike,
                        int c0, int t, const float *f, const float *bias, const float *u) {
  const int type = alike ? TYPE : P->y_type;
  float y[V_MOST];
#pragma unroll
  for (int i = 0; i < v; ++i) y[i] = bias[i];
#pragma unroll
  for (int k = 0; k < w; ++k)
#pragma unroll
    for (int i = 0; i < v; ++i) y[i] = fmaf(f[k * v + i], u[k * v + i], y[i]);
  causal_act(P, 1, v, y);
  const hk_cu_i64 at = causal_base(q, P->ys) + c0 * P->ys.channel + t * P->ys.time;
  if (P->post || P->residual) {
#pragma unroll
    for (int i = 0; i < v; ++i) {
      if (P->post)
        y[i] *= causal_get(P->post, TYPE, causal_base(q, P->posts) + (c0 + i) * P->posts.channel + t * P->posts.time);
      if (P->residual)
        y[i] += causal_get(P->residual, TYPE,
                           causal_base(q, P->residuals) + (c0 + i) * P->residuals.channel + t * P->residuals.time);
    }
  }
  if (P->y_access == HK_CU_VECTOR) causal_store((char *)causal_at(P->y, type, at), type, v, y);
  else {
#pragma unroll
    for (int i = 0; i < v; ++i) causal_put(P->y, type, at + i * P->ys.channel, y[i]);
  }
}

/* One token, a linear state of `size` = w-1 or w entries. alike: every type is that of x. */
HK_DEV void step_one(const hk_cu_causal_call *P, const causal_unit *q, const int w, const int v, const int size,
                     const int alike, int c0) {
  const int state_type = alike ? TYPE : P->state_type;
  const hk_cu_causal_view s = P->states;
  float f[W_MOST * V_MOST], bias[V_MOST], u[(W_MOST + 1) * V_MOST]; /* the old state, then the token */
  step_token(P, q, v, c0, 0, u + size * v);
  if (q->old)
    causal_load_tile(causal_at(P->state_in, state_type, q->slot_in * s.outer + c0 * s.channel), state_type,
                     P->state_access, size, v, s.channel, s.time, u);
  else {
#pragma unroll
    for (int i = 0; i < size * v; ++i) u[i] = 0.0f;
  }
  causal_weights(P, alike ? TYPE : P->f_type, w, v, c0, f, bias);
  step_output(P, q, w, v, alike, c0, 0, f, bias, u + (size + 1 - w) * v);
  if (causal_writes_state(P, q))
    causal_store_tile((char *)causal_at(P->state_out, state_type, q->slot_out * s.outer + c0 * s.channel), state_type,
                      P->state_access, size, v, s.channel, s.time, u + v);
}

HK_DEV void step_few(const hk_cu_causal_call *P, const causal_unit *q, const int w, const int v, const int alike,
                     int c0) {
  float f[W_MOST * V_MOST], bias[V_MOST], u[W_MOST * V_MOST];
  causal_weights(P, alike ? TYPE : P->f_type, w, v, c0, f, bias);
#pragma unroll
  for (int k = 0; k < w - 1; ++k)
#pragma unroll
    for (int i = 0; i < v; ++i) u[k * v + i] = causal_history(P, q, c0 + i, k - (w - 1));
#pragma unroll 1
  for (int t = 0; t < q->length; ++t) {
    step_token(P, q, v, c0, t, u + (w - 1) * v);
    step_output(P, q, w, v, alike, c0, t, f, bias, u);
#pragma unroll
    for (int i = 0; i < (w - 1) * v; ++i) u[i] = u[i + v];
  }
  if (!causal_writes_state(P, q)) return;
#pragma unroll 1
  for (int i = 0; i < v; ++i) causal_state_channel(P, q, c0 + i);
}

HK_DEV void step_body(const hk_cu_causal_call *P, const int w, const int v, const int alike) {
  const int thread = blockIdx.x * HK_CU_CAUSAL_THREADS + threadIdx.x, s = div_by(thread, P->by_groups);
  const int c0 = (thread - s * P->groups) * v;
  causal_unit q;
  if (s >= P->n || !causal_sequence(P, s, &q)) return;
  const int one = q.length == 1 && !P->ring && !P->accepted;
  if (one && P->state_length == w - 1) step_one(P, &q, w, v, w - 1, alike, c0);
  else if (one && P->state_length == w) step_one(P, &q, w, v, w, alike, c0);
  else step_few(P, &q, w, v, alike, c0);
}

#define STEP(NAME, W, V, ALIKE)                                                                     \
  extern "C" __global__ void __launch_bounds__(HK_CU_CAUSAL_THREADS)                                \
      NAME(const __grid_constant__ hk_cu_causal_call P) {                                           \
    step_body(&P, W, V, ALIKE);                                                                     \
  }
