/* The gradient of the causal Conv1D of 2 to 8 taps in registers, where x, dy and dx lie alike, without gradients of
 * states (back.cu has the meaning, and the other cases). Partial sums as there.
 * hk_causal_grad_<type>_<taps>first: a warp has a segment of 64 vectors of one channel of a sequence, the last of a
 * row up to 32 more, as in first.cuh; a lane computes dz of the w-1 tokens behind its vector again.
 * hk_causal_grad_<type>_<taps>x<channels>: a thread walks along time with some channels, as in last.cuh, and over the
 * w-1 tokens behind its unit. */
#include "cuda/instance.cuh"

#include "cuda/causal/common.cuh"

enum { VEC = CAUSAL_VEC, TAPS = 8, SIDE_MOST = 8, SIDE_WORDS = SIDE_MOST * TYPE_BYTES / 4, ROUNDS = 2 };
enum { STRIDE = 4, V_MOST = 4 };

HK_DEV char *grad_at(const void *p, const causal_unit *q, hk_cu_causal_view s, int channel) {
  return p ? (char *)causal_at(p, TYPE, causal_base(q, s) + channel * s.channel) : 0;
}

/* ---- time contiguous */

typedef struct grad_row {
  const char *x, *dy; /* token 0 */
  char *dx;
  int channel, skew, length;
  float f[TAPS + 1]; /* the taps, then the bias */
} grad_row;

/* Tokens that are read before and behind a vector. */
HK_DEV constexpr int grad_side(int w) { return w <= 5 ? 4 : 8; }
/* What a lane loads of one vector: the tokens before, of it and behind. */
typedef struct grad_raw {
  hk_cu_u32 back[SIDE_WORDS], now[4], after[SIDE_WORDS], dy[4], dy_after[SIDE_WORDS];
} grad_raw;

/* `count` tokens from t on when they are whole, or with `cut` when some lie outside the sequence: these are zeros. */
HK_DEV void grad_load(const char *p, int t, int length, const int count, const int cut, hk_cu_u32 *raw) {
  const int whole = t >= 0 && t + count <= length;
  if (!cut && whole) causal_load_raw(p + (hk_cu_i64)t * TYPE_BYTES, count * TYPE_BYTES, raw);
  if (!cut || whole) return;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int real = (unsigned)(t + i) < (unsigned)length;
    if (TYPE_BYTES == 4) raw[i] = real ? __ldg((const hk_cu_u32 *)p + t + i) : 0;
    else {
      const hk_cu_u32 v = real ? __ldg((const hk_cu_u16 *)p + t + i) : 0;
      raw[i / 2] = i % 2 ? raw[i / 2] | v << 16 : v;
    }
  }
}

/* The w-1 tokens before t, the vector, and the w-1 tokens behind it. */
HK_DEV void grad_values(const int w, const grad_raw *raw, float *u, float *dy) {
  const int side = grad_side(w);
  float h[SIDE_MOST];
  causal_unpack(TYPE, side, raw->back, h);
#pragma unroll
  for (int k = 0; k < w - 1; ++k) u[k] = h[side - (w - 1) + k];
  causal_unpack(TYPE, VEC, raw->now, u + w - 1);
  causal_unpack(TYPE, VEC, raw->dy, dy);
  causal_unpack(TYPE, side, raw->after, h);
#pragma unroll
  for (int k = 0; k < w - 1; ++k) u[w - 1 + VEC + k] = h[k];
  causal_unpack(TYPE, side, raw->dy_after, h);
#pragma unroll
  for (int k = 0; k < w - 1; ++k) dy[VEC + k] = h[k];
}

/* Puts the history into u. */
HK_DEV void grad_early(const hk_cu_causal_call *P, const causal_unit *q, const grad_row *row, const int w, int t,
                       float *u) {
#pragma unroll
  for (int m = 1; m < w; ++m) {
    const float h = causal_history(P, q, row->channel, -m);
#pragma unroll
    for (int i = 0; i < VEC + 2 * (w - 1); ++i)
      if (t - (w - 1) + i == -m) u[i] = h;
  }
}

HK_DEV void grad_store(const grad_row *row, int t, const float *dx) {
  if (t >= 0 && t + VEC <= row->length) causal_store_as(row->dx + (hk_cu_i64)t * TYPE_BYTES, TYPE, VEC, dx);
  else {
#pragma unroll
    for (int i = 0; i < VEC; ++i)
      if ((unsigned)(t + i) < (unsigned)row->length) causal_put(row->dx, TYPE, t + i, dx[i]);
  }
}

/* dz and dx of the vector from t on; sums: of the taps, then the bias. */
HK_DEV void grad_vector(const hk_cu_causal_call *P, const grad_row *row, const int w, int t, const float *u, float *dz,
                        float *sums) {
  const float *f = row->f;
  float dx[VEC];
#pragma unroll
  for (int i = 0; i < VEC + w - 1; ++i) {
    float z = f[w];
#pragma unroll
    for (int k = 0; k < w; ++k) z = fmaf(f[k], u[i + k], z);
    dz[i] = (unsigned)(t + i) < (unsigned)row->length ? causal_slope(P->act, z, dz[i]) : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < VEC; ++i) {
    dx[i] = 0.0f, sums[w] += dz[i];
#pragma unroll
    for (int k = 0; k < w; ++k) {
      dx[i] = fmaf(f[w - 1 - k], dz[i + k], dx[i]);
      sums[k] = fmaf(dz[i], u[i + k], sums[k]);
    }
  }
  if (row->dx) grad_store(row, t, dx);
}

HK_DEV void grad_segment(const hk_cu_causal_call *P, const causal_unit *q, grad_row *row, const int w, float *sums) {
  const int start = q->t0 - row->skew + threadIdx.x % 32 * VEC, length = q->length, side = grad_side(w);
  const int more = P->packing != HK_CU_OFFSETS && q->t0 + P->chunk == P->chunks * P->chunk;
  const int end = more || start + P->chunk > length ? length : start + P->chunk;
  const causal_raw tap = causal_tap(P, w, row->channel);
  grad_raw raw[ROUNDS + 1];
#pragma unroll
  for (int i = 0; i < 2 * (ROUNDS + 1); ++i) { /* whole ones first: putting tokens together waits for them */
    const int cut = i > ROUNDS, t = start + (i - cut * (ROUNDS + 1)) * 32 * VEC;
    grad_raw *to = raw + i - cut * (ROUNDS + 1);
    if (t <= -VEC || t >= end) continue;
    grad_load(row->x, t, length, VEC, cut, to->now), grad_load(row->dy, t, length, VEC, cut, to->dy);
    grad_load(row->x, t - side, length, side, cut, to->back), grad_load(row->x, t + VEC, length, side, cut, to->after);
    grad_load(row->dy, t + VEC, length, side, cut, to->dy_after);
  }
  const float mine = causal_float(tap, P->f_type);
#pragma unroll
  for (int k = 0; k <= w; ++k) row->f[k] = __shfl_sync(0xffffffffu, mine, k);
#pragma unroll
  for (int i = 0; i <= ROUNDS; ++i) {
    const int t = start + i * 32 * VEC;
    float u[VEC + 2 * (TAPS - 1)], dz[VEC + TAPS - 1];
    if (t <= -VEC || t >= end) continue;
    grad_values(w, raw + i, u, dz);
    if (i == 0 && t < w - 1 && q->old) grad_early(P, q, row, w, t, u);
    grad_vector(P, row, w, t, u, dz, sums);
  }
}

HK_DEV void grad_first(const hk_cu_causal_call *P, const int w) {
  const int warp = blockIdx.x * (HK_CU_CAUSAL_THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  int unit, channel;
  causal_unit q;
  float sums[TAPS + 1];
  if (P->packing == HK_CU_OFFSETS) {
    channel = div_by(warp, P->by_units), unit = warp - channel * P->units;
  } else { /* segments of a row, then channels, then sequences */
    const int row = div_by(warp, P->by_chunks), s = div_by(row, P->by_groups);
    channel = row - s * P->c, unit = s * P->chunks + warp - row * P->chunks;
  }
  if (unit >= P->units || channel >= P->c) return;
#pragma unroll
  for (int k = 0; k <= w; ++k) sums[k] = 0.0f;
  if (causal_find(P, unit, &q)) {
    grad_row row = {grad_at(P->x, &q, P->xs, channel), grad_at(P->dy, &q, P->ys, channel),
                    grad_at(P->dx, &q, P->dxs, channel)};
    row.channel = channel, row.length = q.length, row.skew = (int)((hk_cu_u64)row.x / TYPE_BYTES) & (VEC - 1);
    grad_segment(P, &q, &row, w, sums);
  }
#pragma unroll
  for (int k = 0; k <= w; ++k) {
#pragma unroll
    for (int m = 16; m; m /= 2) sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], m);
    if (lane == k) P->partial[((hk_cu_i64)unit * (w + 1) + k) * P->c + channel] = sums[k];
  }
}

/* ---- channels contiguous */

typedef struct grad_lane {
  const char *x, *dy; /* token 0 of the thread's channels */
  char *dx;
  float f[TAPS * V_MOST], bias[V_MOST];
  float u[TAPS * V_MOST], dz[TAPS * V_MOST]; /* of the last w tokens, oldest first */
} grad_lane;

/* STRIDE tokens from t on; behind the end the last one again. */
HK_DEV void grad_read(const char *p, hk_cu_i64 step, int t, int end, const int v, hk_cu_u32 *raw) {
  const int words = causal_words(v * TYPE_BYTES);
#pragma unroll
  for (int i = 0; i < STRIDE; ++i)
    causal_load_raw(p + (t + i < end ? t + i : end - 1) * step, v * TYPE_BYTES, raw + i * words);
}

/* Takes u and dy of one token into the windows; own: the token belongs to the unit. */
HK_DEV void grad_token(const hk_cu_causal_call *P, grad_lane *me, const int w, const int v, int own, int real,
                       const hk_cu_u32 *x, const hk_cu_u32 *dy, float *sums) {
  float *u = me->u + (w - 1) * v, *dz = me->dz + (w - 1) * v, up[V_MOST];
#pragma unroll
  for (int i = 0; i < (w - 1) * v; ++i) me->u[i] = me->u[i + v], me->dz[i] = me->dz[i + v];
  causal_unpack(TYPE, v, x, u), causal_unpack(TYPE, v, dy, up);
#pragma unroll
  for (int i = 0; i < v; ++i) {
    float z = me->bias[i];
#pragma unroll
    for (int k = 0; k < w; ++k) z = fmaf(me->f[k * v + i], me->u[k * v + i], z);
    dz[i] = real ? causal_slope(P->act, z, up[i]) : 0.0f;
    const float mine = own ? dz[i] : 0.0f;
    sums[w * v + i] += mine;
#pragma unroll
    for (int k = 0; k < w; ++k) sums[k * v + i] = fmaf(mine, me->u[k * v + i], sums[k * v + i]);
  }
}

HK_DEV void grad_put(const grad_lane *me, hk_cu_i64 at, const int w, const int v) {
  float dx[V_MOST];
#pragma unroll
  for (int i = 0; i < v; ++i) {
    dx[i] = 0.0f;
#pragma unroll
    for (int k = 0; k < w; ++k) dx[i] = fmaf(me->f[(w - 1 - k) * v + i], me->dz[k * v + i], dx[i]);
  }
  causal_store_as(me->dx + at, TYPE, v, dx);
}

HK_DEV void grad_history(const hk_cu_causal_call *P, const causal_unit *q, grad_lane *me, const int w, const int v,
                         int c0) {
#pragma unroll
  for (int k = 1; k < w; ++k) { /* the first token moves these down */
    const int t = q->t0 - w + k;
    if (t >= 0) causal_load_as(me->x + t * P->xs.time * TYPE_BYTES, TYPE, v, me->u + k * v);
    else {
#pragma unroll
      for (int i = 0; i < v; ++i) me->u[k * v + i] = causal_history(P, q, c0 + i, t);
    }
  }
#pragma unroll
  for (int i = 0; i < w * v; ++i) me->dz[i] = 0.0f;
}

HK_DEV void grad_walk(const hk_cu_causal_call *P, const causal_unit *q, const int w, const int v, int c0,
                      float *sums) {
  const int words = causal_words(v * TYPE_BYTES), length = q->length;
  const int own = q->t0 + P->chunk < length ? q->t0 + P->chunk : length, stop = own + w - 1;
  const int end = stop < length ? stop : length;
  const hk_cu_i64 x_step = P->xs.time * TYPE_BYTES, dy_step = P->ys.time * TYPE_BYTES;
  const hk_cu_i64 dx_step = P->dxs.time * TYPE_BYTES;
  hk_cu_u32 x[STRIDE * V_MOST], dy[STRIDE * V_MOST], next[2][STRIDE * V_MOST];
  grad_lane me = {grad_at(P->x, q, P->xs, c0), grad_at(P->dy, q, P->ys, c0), grad_at(P->dx, q, P->dxs, c0)};
  grad_read(me.x, x_step, q->t0, end, v, next[0]), grad_read(me.dy, dy_step, q->t0, end, v, next[1]);
  causal_weights(P, P->f_type, w, v, c0, me.f, me.bias);
  grad_history(P, q, &me, w, v, c0);
#pragma unroll 1
  for (int t0 = q->t0; t0 < stop; t0 += STRIDE) {
#pragma unroll
    for (int i = 0; i < STRIDE * words; ++i) x[i] = next[0][i], dy[i] = next[1][i];
    if (t0 + STRIDE < end) {
      grad_read(me.x, x_step, t0 + STRIDE, end, v, next[0]);
      grad_read(me.dy, dy_step, t0 + STRIDE, end, v, next[1]);
    }
#pragma unroll
    for (int j = 0; j < STRIDE; ++j) {
      const int t = t0 + j, to = t - (w - 1);
      grad_token(P, &me, w, v, t < own, t < length, x + j * words, dy + j * words, sums);
      if (me.dx && to >= q->t0 && to < own) grad_put(&me, to * dx_step, w, v);
    }
  }
}

HK_DEV void grad_last(const hk_cu_causal_call *P, const int w, const int v) {
  const int thread = blockIdx.x * HK_CU_CAUSAL_THREADS + threadIdx.x, unit = div_by(thread, P->by_groups);
  const int c0 = (thread - unit * P->groups) * v;
  causal_unit q;
  float sums[(TAPS + 1) * V_MOST];
  if (unit >= P->units) return;
#pragma unroll
  for (int i = 0; i < (w + 1) * v; ++i) sums[i] = 0.0f;
  if (causal_find(P, unit, &q) && q.t0 < q.length) grad_walk(P, &q, w, v, c0, sums);
#pragma unroll
  for (int k = 0; k <= w; ++k)
    causal_store_as(P->partial + ((hk_cu_i64)unit * (w + 1) + k) * P->c + c0, HK_CU_F32, v, sums + k * v);
}

#define GRAD(NAME, CALL)                                                                                      \
  extern "C" __global__ void __launch_bounds__(HK_CU_CAUSAL_THREADS)                                          \
      NAME(const __grid_constant__ hk_cu_causal_call P) {                                                     \
    CALL;                                                                                                     \
  }
#define EACH(W)                                                       \
  INSTANCE(GRAD, NAMED(hk_causal_grad, W##first), grad_first(&P, W)) \
  INSTANCE(GRAD, NAMED(hk_causal_grad, W##x1), grad_last(&P, W, 1))  \
  INSTANCE(GRAD, NAMED(hk_causal_grad, W##x2), grad_last(&P, W, 2))
EACH(2)
EACH(3)
EACH(4)
EACH(5)
EACH(6)
EACH(7)
EACH(8)
INSTANCE(GRAD, NAMED(hk_causal_grad, 2x4), grad_last(&P, 2, 4))
INSTANCE(GRAD, NAMED(hk_causal_grad, 3x4), grad_last(&P, 3, 4))
INSTANCE(GRAD, NAMED(hk_causal_grad, 4x4), grad_last(&P, 4, 4))
