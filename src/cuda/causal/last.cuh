/* Causal Conv1D of w = 2 to 8 taps where channels are contiguous (channels-last), dilation 1.
 *
 * A thread owns v channels (16 bytes or less) of one unit and walks along time with weights, bias and the last w-1
 * tokens in registers; the next STRIDE tokens are loaded while STRIDE tokens are computed. The thread with a
 * sequence's first unit reads its history and, at the end, writes its new state: no other thread reads or writes
 * either, so both may be the same memory. Neighbouring threads own neighbouring channels.
 *
 * full = 0: y has the type of x, the activation is none or SiLU, no gates, residual or ids. full = 1: everything. */
#include "cuda/causal/common.cuh"

enum { STRIDE = 4, W_MOST = 8, V_MOST = 8 };

typedef struct last_place {
  const char *x, *pre, *post, *residual; /* this thread's channels at token 0 of the sequence */
  char *y;
  const int *ids;
  hk_cu_i64 x_step, y_step, pre_step, post_step, residual_step; /* bytes per token */
} last_place;

HK_DEV last_place last_at(const hk_cu_causal_call *P, const causal_unit *q, int c0, const int full) {
  last_place at;
  at.x = causal_at(P->x, TYPE, causal_base(q, P->xs) + c0), at.x_step = P->xs.time * TYPE_BYTES;
  const int y_type = full ? P->y_type : TYPE;
  at.y = (char *)causal_at(P->y, y_type, causal_base(q, P->ys) + c0), at.y_step = P->ys.time * causal_bytes(y_type);
  if (!full) return at;
  at.pre = P->pre ? causal_at(P->pre, TYPE, causal_base(q, P->pres) + c0) : 0, at.pre_step = P->pres.time * TYPE_BYTES;
  at.post = P->post ? causal_at(P->post, TYPE, causal_base(q, P->posts) + c0) : 0;
  at.post_step = P->posts.time * TYPE_BYTES;
  at.residual = P->residual ? causal_at(P->residual, TYPE, causal_base(q, P->residuals) + c0) : 0;
  at.residual_step = P->residuals.time * TYPE_BYTES;
  at.ids = P->packing == HK_CU_IDS ? P->ids + (hk_cu_i64)q->s * P->length : 0;
  return at;
}

/* Loads STRIDE tokens from t on; behind the end the last one again. */
HK_DEV void last_read(const char *p, hk_cu_i64 step, int t, int end, const int v, hk_cu_u32 *raw) {
  const int words = causal_words(v * TYPE_BYTES);
#pragma unroll
  for (int i = 0; i < STRIDE; ++i)
    causal_load_raw(p + (t + i < end ? t + i : end - 1) * step, v * TYPE_BYTES, raw + i * words);
}

/* The w-1 tokens before t0, oldest first, and their ids. */
HK_DEV void last_history(const hk_cu_causal_call *P, const causal_unit *q, const last_place *at, const int w,
                         const int v, int c0, const int full, float *h, int *id) {
#pragma unroll
  for (int k = 0; k < w - 1; ++k) {
    const int t = q->t0 - (w - 1) + k;
    if (full) id[k] = at->ids && t >= 0 ? __ldg(at->ids + t) : -1;
    if (t >= 0) {
      causal_load_as(at->x + t * at->x_step, TYPE, v, h + k * v);
      if (full && at->pre) {
        float g[V_MOST];
        causal_load_as(at->pre + t * at->pre_step, TYPE, v, g);
#pragma unroll
        for (int i = 0; i < v; ++i) h[k * v + i] *= g[i];
      }
    } else {
#pragma unroll
      for (int i = 0; i < v; ++i) h[k * v + i] = causal_history(P, q, c0 + i, t);
    }
  }
}

/* Post-gate, residual and the zeros of tokens without a sequence. */
HK_DEV void last_finish(const last_place *at, const int v, int t, int id, float *y) {
  float g[V_MOST];
  if (at->post) {
    causal_load_as(at->post + t * at->post_step, TYPE, v, g);
#pragma unroll
    for (int i = 0; i < v; ++i) y[i] *= g[i];
  }
  if (at->residual) {
    causal_load_as(at->residual + t * at->residual_step, TYPE, v, g);
#pragma unroll
    for (int i = 0; i < v; ++i) y[i] += g[i];
  }
  if (at->ids && id < 0) {
#pragma unroll
    for (int i = 0; i < v; ++i) y[i] = 0.0f;
  }
}

HK_DEV void last_walk(const hk_cu_causal_call *P, const causal_unit *q, const int w, const int v, int c0,
                      const int full) {
  const int words = causal_words(v * TYPE_BYTES), left = q->length - q->t0;
  const int end = q->t0 + (left < P->chunk ? left : P->chunk);
  const last_place at = last_at(P, q, c0, full);
  float f[W_MOST * V_MOST], bias[V_MOST], h[W_MOST * V_MOST];
  hk_cu_u32 raw[STRIDE * V_MOST], next[STRIDE * V_MOST];
  int id[W_MOST];
  last_read(at.x, at.x_step, q->t0, end, v, next);
  causal_weights(P, P->f_type, w, v, c0, f, bias);
  last_history(P, q, &at, w, v, c0, full, h, id);
#pragma unroll 1
  for (int t0 = q->t0; t0 < end; t0 += STRIDE) {
#pragma unroll
    for (int i = 0; i < STRIDE * words; ++i) raw[i] = next[i];
    if (t0 + STRIDE < end) last_read(at.x, at.x_step, t0 + STRIDE, end, v, next);
#pragma unroll
    for (int j = 0; j < STRIDE; ++j) {
      const int t = t0 + j;
      float *u = h + (w - 1) * v, y[V_MOST];
      if (t >= end) break;
      causal_unpack(TYPE, v, raw + j * words, u);
      if (full && at.pre) {
        float g[V_MOST];
        causal_load_as(at.pre + t * at.pre_step, TYPE, v, g);
#pragma unroll
        for (int i = 0; i < v; ++i) u[i] *= g[i];
      }
      if (full) id[w - 1] = at.ids ? __ldg(at.ids + t) : -1;
#pragma unroll
      for (int i = 0; i < v; ++i) y[i] = bias[i];
#pragma unroll
      for (int k = 0; k < w; ++k)
        if (!full || id[k] == id[w - 1]) {
#pragma unroll
          for (int i = 0; i < v; ++i) y[i] = fmaf(f[k * v + i], h[k * v + i], y[i]);
        }
      causal_act(P, full, v, y);
      if (full) last_finish(&at, v, t, id[w - 1], y);
      if (full) causal_store(at.y + t * at.y_step, P->y_type, v, y);
      else causal_store_as(at.y + t * at.y_step, TYPE, v, y);
#pragma unroll
      for (int i = 0; i < (w - 1) * v; ++i) h[i] = h[i + v];
      if (full) {
#pragma unroll
        for (int k = 0; k < w - 1; ++k) id[k] = id[k + 1];
      }
    }
  }
}

/* The new state as the last w-1 tokens, all channels of the thread at once; 0 where it is another one. */
HK_DEV int last_state(const hk_cu_causal_call *P, const causal_unit *q, const int w, const int v, int c0) {
  const hk_cu_causal_view s = P->states;
  float u[(W_MOST - 1) * V_MOST];
  if (P->ring || P->accepted || P->pre || P->state_length != w - 1 || q->length < w - 1) return 0;
  const hk_cu_i64 at = causal_base(q, P->xs) + c0 + (q->length - (w - 1)) * P->xs.time;
#pragma unroll
  for (int k = 0; k < w - 1; ++k) causal_load_as(causal_at(P->x, TYPE, at + k * P->xs.time), TYPE, v, u + k * v);
  const hk_cu_i64 to = q->slot_out * s.outer + c0 * s.channel;
  causal_store_tile((char *)causal_at(P->state_out, P->state_type, to), P->state_type, P->state_access, w - 1, v,
                    s.channel, s.time, u);
  return 1;
}

HK_DEV void last_body(const hk_cu_causal_call *P, const int w, const int v, const int full) {
  const int thread = blockIdx.x * HK_CU_CAUSAL_THREADS + threadIdx.x, unit = div_by(thread, P->by_groups);
  const int c0 = (thread - unit * P->groups) * v;
  causal_unit q;
  if (unit >= P->units || !causal_find(P, unit, &q)) return;
  if (q.t0 < q.length) last_walk(P, &q, w, v, c0, full);
  if (q.t0 || !causal_writes_state(P, &q) || last_state(P, &q, w, v, c0)) return;
#pragma unroll 1
  for (int i = 0; i < v; ++i) causal_state_channel(P, &q, c0 + i);
}

#define LAST(NAME, W, V, FULL)                                                                      \
  extern "C" __global__ void __launch_bounds__(HK_CU_CAUSAL_THREADS)                                \
      NAME(const __grid_constant__ hk_cu_causal_call P) {                                           \
    last_body(&P, W, V, FULL);                                                                      \
  }
