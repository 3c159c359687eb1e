/* hk_causal_general_<type>_any: causal Conv1D of any window, dilation and strides, everything else included.
 *
 * A thread owns one channel of one unit, of at least dilation*(window-1) tokens, so that only the first unit of a
 * sequence reads its state, which it also writes. It computes RUN outputs at a time, `dilation` tokens apart, which
 * share their inputs: for RUN taps it holds 2*RUN - 1 values of u, and RUN new values serve the next RUN taps. */
#include "cuda/instance.cuh"

#include "cuda/causal/common.cuh"

enum { RUN = 8 };

/* u at token t of channel c, from the state before the first token; tokens behind the sequence are not used. */
HK_DEV float general_u(const hk_cu_causal_call *P, const causal_unit *q, int c, int t) {
  return t < 0 ? causal_history(P, q, c, t) : t < q->length ? causal_token(P, q, c, t) : 0.0f;
}

HK_DEV void general_finish(const hk_cu_causal_call *P, const causal_unit *q, int c, int t, float sum) {
  causal_act(P, 1, 1, &sum);
  if (P->post) sum *= causal_get(P->post, TYPE, causal_base(q, P->posts) + c * P->posts.channel + t * P->posts.time);
  if (P->residual)
    sum += causal_get(P->residual, TYPE,
                      causal_base(q, P->residuals) + c * P->residuals.channel + t * P->residuals.time);
  if (P->packing == HK_CU_IDS && __ldg(P->ids + (hk_cu_i64)q->s * P->length + t) < 0) sum = 0.0f;
  causal_put(P->y, P->y_type, causal_base(q, P->ys) + c * P->ys.channel + t * P->ys.time, sum);
}

/* RUN outputs at t, t + dilation, .. before `end`. */
HK_DEV void general_run(const hk_cu_causal_call *P, const causal_unit *q, int c, int t, int end, float bias) {
  const int d = P->dilation, w = P->window;
  float sum[RUN], u[2 * RUN];
#pragma unroll
  for (int i = 0; i < RUN; ++i) sum[i] = bias;
  /* u[i] is token t + (i - k)*d for taps k before the newest; the newest values first */
#pragma unroll
  for (int i = 0; i < RUN; ++i) u[RUN + i] = t + i * d < end ? general_u(P, q, c, t + i * d) : 0.0f;
#pragma unroll 1
  for (int k0 = 0; k0 < w; k0 += RUN) {
#pragma unroll
    for (int i = 1; i < RUN; ++i)
      u[i] = k0 + RUN - i < w && k0 + RUN - i > 0 ? general_u(P, q, c, t + (i - RUN - k0) * d) : 0.0f;
    u[0] = k0 + RUN < w ? general_u(P, q, c, t - (RUN + k0) * d) : 0.0f;
#pragma unroll
    for (int k = 0; k < RUN; ++k)
      if (k0 + k < w) {
        const float f = causal_get(P->f, P->f_type, c * P->f_channel + (w - 1 - k0 - k) * P->f_tap);
#pragma unroll
        for (int i = 0; i < RUN; ++i) sum[i] = fmaf(f, u[RUN + i - k], sum[i]);
      }
#pragma unroll
    for (int i = 0; i < RUN; ++i) u[RUN + i] = u[i];
  }
#pragma unroll
  for (int i = 0; i < RUN; ++i)
    if (t + i * d < end) general_finish(P, q, c, t + i * d, sum[i]);
}

/* One output whose taps reach only tokens of the same id. */
HK_DEV void general_ids(const hk_cu_causal_call *P, const causal_unit *q, int c, int t, float sum) {
  const int *ids = P->ids + (hk_cu_i64)q->s * P->length;
  const int id = __ldg(ids + t);
#pragma unroll 4
  for (int j = 0; j < P->window; ++j) {
    const int at = t - P->dilation * (P->window - 1 - j);
    if (at >= 0 && __ldg(ids + at) == id)
      sum = fmaf(causal_get(P->f, P->f_type, c * P->f_channel + j * P->f_tap), causal_token(P, q, c, at), sum);
  }
  general_finish(P, q, c, t, sum);
}

extern "C" __global__ void __launch_bounds__(HK_CU_CAUSAL_THREADS)
    INSTANCE(NAMED, hk_causal_general, any)(const __grid_constant__ hk_cu_causal_call P) {
  const int thread = blockIdx.x * HK_CU_CAUSAL_THREADS + threadIdx.x, unit = div_by(thread, P.by_groups);
  const int c = thread - unit * P.groups;
  causal_unit q;
  if (unit >= P.units || !causal_find(&P, unit, &q)) return;
  const int end = q.length - q.t0 < P.chunk ? q.length : q.t0 + P.chunk, d = P.dilation;
  const float bias = P.bias ? causal_get(P.bias, P.f_type, c) : 0.0f;
  if (P.packing == HK_CU_IDS) {
#pragma unroll 1
    for (int t = q.t0; t < end; ++t) general_ids(&P, &q, c, t, bias);
  } else {
#pragma unroll 1
    for (int t0 = q.t0; t0 < end; t0 += RUN * d)
#pragma unroll 1
      for (int t = t0; t < t0 + d && t < end; ++t) general_run(&P, &q, c, t, end, bias);
  }
  if (q.t0 == 0 && causal_writes_state(&P, &q)) causal_state_channel(&P, &q, c);
}
