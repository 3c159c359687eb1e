/* Causal Conv1D of w = 2 to 8 taps where time is contiguous (channels-first), dilation 1.
 *
 * A warp computes one segment of r*32 vectors of one channel of a sequence, with r = 2 the last of a row up to 32
 * vectors more; a vector is 16 bytes of x, CAUSAL_VEC tokens. Segments begin where y is aligned to a vector, so the
 * first vector of a row may be cut off on the left and the last on the right. All vectors and the 4 or 8 tokens before
 * each (which L1 holds) are loaded before the first is used, those that are cut off token by token. When x and y are
 * aligned differently all is loaded so. The warp with a sequence's first segment reads its history and writes its new
 * state.
 *
 * full = 0: y has the type of x, the activation is none or SiLU, no gates, residual or ids. full = 1: everything. */
#include "cuda/causal/common.cuh"

enum { VEC = CAUSAL_VEC, R_MOST = 4, W_MOST = 8, BACK_MOST = 8 };
/* Tokens before a vector that are read with it. */
HK_DEV constexpr int first_back(int w) { return w <= 5 ? 4 : 8; }

/* One channel of a sequence. */
typedef struct first_row {
  const char *x, *pre, *post, *residual; /* token 0 */
  char *y;
  const int *ids;
  int channel, skew, y_type; /* skew: tokens between the last vector boundary of y and token 0 */
  int x_alike, pre_alike, post_alike, residual_alike; /* aligned as y */
} first_row;

HK_DEV int first_skew(const void *p, int type) { return (int)((hk_cu_u64)p / causal_bytes(type)) & (VEC - 1); }

HK_DEV first_row first_at(const hk_cu_causal_call *P, const causal_unit *q, int channel, const int full) {
  first_row row = {};
  row.channel = channel, row.y_type = full ? P->y_type : TYPE;
  row.x = causal_at(P->x, TYPE, causal_base(q, P->xs) + channel * P->xs.channel);
  row.y = (char *)causal_at(P->y, row.y_type, causal_base(q, P->ys) + channel * P->ys.channel);
  row.skew = first_skew(row.y, row.y_type);
  row.x_alike = first_skew(row.x, TYPE) == row.skew;
  if (!full) return row;
  if (P->pre) row.pre = causal_at(P->pre, TYPE, causal_base(q, P->pres) + channel * P->pres.channel);
  if (P->post) row.post = causal_at(P->post, TYPE, causal_base(q, P->posts) + channel * P->posts.channel);
  if (P->residual)
    row.residual = causal_at(P->residual, TYPE, causal_base(q, P->residuals) + channel * P->residuals.channel);
  row.pre_alike = first_skew(row.pre, TYPE) == row.skew && P->pres.time == 1;
  row.post_alike = first_skew(row.post, TYPE) == row.skew && P->posts.time == 1;
  row.residual_alike = first_skew(row.residual, TYPE) == row.skew && P->residuals.time == 1;
  if (P->packing == HK_CU_IDS) row.ids = P->ids + (hk_cu_i64)q->s * P->length;
  return row;
}

/* Tokens t to t+VEC-1 of a gate or residual; those outside the sequence are zero. */
HK_DEV void first_gate(const char *p, int alike, hk_cu_i64 step, int t, int length, float *g) {
  if (alike && t >= 0 && t + VEC <= length) causal_load_as(p + (hk_cu_i64)t * TYPE_BYTES, TYPE, VEC, g);
  else {
#pragma unroll
    for (int i = 0; i < VEC; ++i)
      g[i] = (unsigned)(t + i) < (unsigned)length ? causal_get(p, TYPE, (t + i) * step) : 0.0f;
  }
}

/* The w-1 tokens before t, and tokens t to t+VEC-1, element by element; zeros behind the end. */
HK_DEV void first_pieces(const hk_cu_causal_call *P, const causal_unit *q, const first_row *row, const int w, int t,
                         float *u) {
#pragma unroll
  for (int i = 0; i < w - 1 + VEC; ++i) {
    const int at = t - (w - 1) + i;
    u[i] = 0.0f;
    if ((unsigned)at < (unsigned)q->length) u[i] = causal_get(row->x, TYPE, at);
    else if (at < 0 && at >= 1 - w) u[i] = causal_history(P, q, row->channel, at);
  }
}

HK_DEV void first_pre(const hk_cu_causal_call *P, const first_row *row, const int w, int t, int length, float *u) {
  float g[VEC];
  first_gate(row->pre, row->pre_alike, P->pres.time, t, length, g);
#pragma unroll
  for (int i = 0; i < VEC; ++i)
    if (t + i >= 0) u[w - 1 + i] *= g[i];
#pragma unroll
  for (int i = 0; i < w - 1; ++i) {
    const int at = t - (w - 1) + i;
    if ((unsigned)at < (unsigned)length) u[i] *= causal_get(row->pre, TYPE, at * P->pres.time);
  }
}

HK_DEV void first_sums(const first_row *row, const int w, const int full, int t, int length, const float *f,
                       float bias, const float *u, float *y) {
  if (full && row->ids) {
    int id[VEC + W_MOST - 1];
#pragma unroll
    for (int i = 0; i < w - 1 + VEC; ++i) {
      const int at = t - (w - 1) + i;
      id[i] = (unsigned)at < (unsigned)length ? __ldg(row->ids + at) : -1;
    }
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
      y[i] = bias;
#pragma unroll
      for (int k = 0; k < w; ++k)
        if (id[i + k] == id[i + w - 1]) y[i] = fmaf(f[k], u[i + k], y[i]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < VEC; ++i) {
    y[i] = bias;
#pragma unroll
    for (int k = 0; k < w; ++k) y[i] = fmaf(f[k], u[i + k], y[i]);
  }
}

HK_DEV void first_finish(const hk_cu_causal_call *P, const first_row *row, int t, int length, float *y) {
  float g[VEC];
  if (row->post) {
    first_gate(row->post, row->post_alike, P->posts.time, t, length, g);
#pragma unroll
    for (int i = 0; i < VEC; ++i) y[i] *= g[i];
  }
  if (row->residual) {
    first_gate(row->residual, row->residual_alike, P->residuals.time, t, length, g);
#pragma unroll
    for (int i = 0; i < VEC; ++i) y[i] += g[i];
  }
  if (row->ids) {
#pragma unroll
    for (int i = 0; i < VEC; ++i)
      if ((unsigned)(t + i) < (unsigned)length && __ldg(row->ids + t + i) < 0) y[i] = 0.0f;
  }
}

HK_DEV void first_store(const first_row *row, const int full, int t, int length, const float *y) {
  if (t >= 0 && t + VEC <= length) {
    if (full) causal_store(row->y + (hk_cu_i64)t * causal_bytes(row->y_type), row->y_type, VEC, y);
    else causal_store_as(row->y + (hk_cu_i64)t * TYPE_BYTES, TYPE, VEC, y);
  } else {
#pragma unroll
    for (int i = 0; i < VEC; ++i)
      if ((unsigned)(t + i) < (unsigned)length) causal_put(row->y, full ? row->y_type : TYPE, t + i, y[i]);
  }
}

/* Tokens t to t+VEC-1 of a vector that is cut off, with zeros outside the sequence. */
HK_DEV void first_cut(const char *x, int t, int length, hk_cu_u32 *raw) {
#pragma unroll
  for (int i = 0; i < VEC; ++i) {
    const int real = (unsigned)(t + i) < (unsigned)length;
    if (TYPE_BYTES == 4) raw[i] = real ? __ldg((const hk_cu_u32 *)x + t + i) : 0;
    else {
      const hk_cu_u32 v = real ? __ldg((const hk_cu_u16 *)x + t + i) : 0;
      raw[i / 2] = i % 2 ? raw[i / 2] | v << 16 : v;
    }
  }
}

/* What a lane loads of one vector. */
typedef struct first_raw {
  hk_cu_u32 now[4], back[BACK_MOST * TYPE_BYTES / 4];
} first_raw;

/* The w-1 tokens before a vector and its own. */
HK_DEV void first_values(const int w, const first_raw *raw, float *u) {
  float h[BACK_MOST];
  causal_unpack(TYPE, VEC, raw->now, u + w - 1);
  causal_unpack(TYPE, first_back(w), raw->back, h);
#pragma unroll
  for (int k = 0; k < w - 1; ++k) u[k] = h[first_back(w) - (w - 1) + k];
}

/* Entry e of the old state of one channel; zero where e < 0. */
HK_DEV causal_raw first_old(const hk_cu_causal_call *P, const causal_unit *q, int channel, int e) {
  const hk_cu_i64 at = q->slot_in * P->states.outer + channel * P->states.channel + e * P->states.time;
  return causal_ask(e < 0 ? 0 : causal_at(P->state_in, P->state_type, at), P->state_type);
}

/* Puts the tokens before t, where they are less than first_back(w), and the history into u. Lane i has token i-(w-1)
 * of the history; all lanes come here. */
HK_DEV void first_early(const hk_cu_causal_call *P, const causal_unit *q, const first_row *row, const int w, int t,
                        causal_raw history, float *u) {
  if (t < first_back(w)) {
#pragma unroll
    for (int k = 0; k < w - 1; ++k) {
      const int at = t - (w - 1) + k;
      u[k] = (unsigned)at < (unsigned)q->length ? causal_get(row->x, TYPE, at) : 0.0f;
    }
  }
  if (!q->old) return;
  const float h = causal_float(history, P->state_type);
#pragma unroll
  for (int i = 0; i < w - 1 + VEC; ++i) {
    if (i >= w - 1 && !row->skew) break;
    const float v = __shfl_sync(0xffffffffu, h, (t + i) & 31);
    if ((unsigned)(t + i) < (unsigned)(w - 1)) u[i] = v;
  }
}

/* Computes and stores the vector from t on; f: the taps, then the bias. */
HK_DEV void first_output(const hk_cu_causal_call *P, const first_row *row, const int w, const int full, int t,
                         int length, const float *f, float *u) {
  float y[VEC];
  if (full && row->pre) first_pre(P, row, w, t, length, u);
  first_sums(row, w, full, t, length, f, f[w], u, y);
  causal_act(P, full, VEC, y);
  if (full) first_finish(P, row, t, length, y);
  first_store(row, full, t, length, y);
}

HK_DEV void first_segment(const hk_cu_causal_call *P, const causal_unit *q, const first_row *row, const int w,
                          const int r, const int full, causal_raw history) {
  const int start = q->t0 - row->skew + threadIdx.x % 32 * VEC;
  const int rounds = r == 2 ? 3 : r;
  const int more = r == 2 && P->packing != HK_CU_OFFSETS && q->t0 + P->chunk == P->chunks * P->chunk;
  const int end = more || start + P->chunk > q->length ? q->length : start + P->chunk;
  first_raw raw[R_MOST];
  float f[W_MOST + 1];
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    const int t = start + i * 32 * VEC;
    const char *p = row->x + (hk_cu_i64)t * TYPE_BYTES;
    if (!row->x_alike || t <= -VEC || t >= end) continue;
    if (t >= 0 && t + VEC <= q->length) causal_load_raw(p, 16, raw[i].now);
    if (t >= first_back(w)) causal_load_raw(p - first_back(w) * TYPE_BYTES, first_back(w) * TYPE_BYTES, raw[i].back);
  }
  const causal_raw tap = causal_tap(P, w, row->channel);
#pragma unroll
  for (int i = 0; i < rounds; ++i) { /* after all whole ones, since putting tokens together waits for them */
    const int t = start + i * 32 * VEC;
    if (row->x_alike && t > -VEC && t < end && (t < 0 || t + VEC > q->length))
      first_cut(row->x, t, q->length, raw[i].now);
  }
  const float mine = causal_float(tap, P->f_type);
#pragma unroll
  for (int k = 0; k <= w; ++k) f[k] = __shfl_sync(0xffffffffu, mine, k);
  if (!row->x_alike) {
#pragma unroll 1
    for (int t = start; t < end; t += 32 * VEC) {
      float u[VEC + W_MOST - 1];
      if (t <= -VEC) continue;
      first_pieces(P, q, row, w, t, u);
      first_output(P, row, w, full, t, q->length, f, u);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    const int t = start + i * 32 * VEC;
    float u[VEC + W_MOST - 1];
    first_values(w, raw + i, u);
    if (i == 0 && q->t0 == 0) first_early(P, q, row, w, t, history, u);
    if (t <= -VEC || t >= end) continue;
    first_output(P, row, w, full, t, q->length, f, u);
  }
}

/* An entry of the new state: token t of this call where t >= 0, else a value of the old state. */
typedef struct first_entry {
  causal_raw bits;
  int t;
} first_entry;

HK_DEV first_entry first_entry_of(const hk_cu_causal_call *P, const causal_unit *q, const first_row *row, int i) {
  first_entry n;
  const int e = causal_source(P, q, i, &n.t);
  n.bits = n.t < 0 ? first_old(P, q, row->channel, e) : causal_ask(row->x + (hk_cu_i64)n.t * TYPE_BYTES, TYPE);
  return n;
}
HK_DEV void first_keep(const hk_cu_causal_call *P, const causal_unit *q, const first_row *row, int i, first_entry n) {
  float v = causal_float(n.bits, n.t < 0 ? P->state_type : TYPE);
  if (row->pre && n.t >= 0) v *= causal_get(row->pre, TYPE, n.t * P->pres.time);
  causal_put(P->state_out, P->state_type,
             q->slot_out * P->states.outer + row->channel * P->states.channel + i * P->states.time, v);
}

/* The new state of one channel, by a warp: every round reads 32 entries before it writes them, in ascending order. */
HK_DEV void first_state(const hk_cu_causal_call *P, const causal_unit *q, const first_row *row) {
  __syncwarp();
#pragma unroll 1
  for (int i0 = 0; i0 < P->state_length; i0 += 32) {
    const int i = i0 + threadIdx.x % 32;
    first_entry n = {};
    if (i < P->state_length) n = first_entry_of(P, q, row, i);
    __syncwarp();
    if (i < P->state_length) first_keep(P, q, row, i, n);
    __syncwarp();
  }
}

HK_DEV void first_body(const hk_cu_causal_call *P, const int w, const int r, const int full) {
  const int warp = blockIdx.x * (HK_CU_CAUSAL_THREADS / 32) + threadIdx.x / 32;
  int unit, channel;
  causal_unit q;
  if (P->packing == HK_CU_OFFSETS) {
    channel = div_by(warp, P->by_units), unit = warp - channel * P->units;
  } else { /* segments of a row, then channels, then sequences */
    const int row = div_by(warp, P->by_chunks), s = div_by(row, P->by_groups);
    channel = row - s * P->c, unit = s * P->chunks + warp - row * P->chunks;
  }
  if (unit >= P->units || channel >= P->c || !causal_find(P, unit, &q)) return;
  const first_row row = first_at(P, &q, channel, full);
  const int writes = q.t0 == 0 && causal_writes_state(P, &q), lane = threadIdx.x % 32;
  const int round = writes && P->state_length <= 32, mine = round && lane < P->state_length;
  causal_raw history = {};
  first_entry entry = {};
  /* The old state, and a new one of one round, are asked for now and arrive with the segment. */
  if (q.t0 == 0 && q.old && lane < w - 1) history = first_old(P, &q, channel, causal_entry(P, &q, lane - (w - 1)));
  if (mine) entry = first_entry_of(P, &q, &row, lane);
  first_segment(P, &q, &row, w, r, full, history);
  if (round) {
    __syncwarp();
    if (mine) first_keep(P, &q, &row, lane, entry);
  } else if (writes) first_state(P, &q, &row);
}

/* At least 7 or 6 blocks per processor where that spills nothing. */
#define FIRST_BLOCKS(R, FULL) (TYPE_BYTES != 2 || FULL ? 1 : R == 4 ? 7 : 6)
#define FIRST(NAME, W, R, FULL)                                                              \
  extern "C" __global__ void __launch_bounds__(HK_CU_CAUSAL_THREADS, FIRST_BLOCKS(R, FULL)) \
      NAME(const __grid_constant__ hk_cu_causal_call P) {                                    \
    first_body(&P, W, R, FULL);                                                              \
  }
