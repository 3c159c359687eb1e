/* Shared by the kernels of the causal depthwise Conv1D: short runs of values as f32, the sequence of a unit, states.
 * Arrays of values are [entry][channel]; v (channels per thread) and other counts are constants after inlining. */
#ifndef HK_CUDA_CAUSAL_COMMON_CUH
#define HK_CUDA_CAUSAL_COMMON_CUH
#include "cuda/causal/params.h"
#include "cuda/causal/ptx.cuh"
#include "cuda/epilogue.cuh"
#include "cuda/instance.cuh"

#define CAUSAL_VEC (16 / TYPE_BYTES) /* elements of x in 16 bytes */

HK_DEV constexpr int causal_bytes(int type) { return type == HK_CU_F32 ? 4 : 2; }
HK_DEV constexpr int causal_words(int bytes) { return bytes < 4 ? 1 : bytes / 4; }
HK_DEV const char *causal_at(const void *p, int type, hk_cu_i64 i) { return (const char *)p + i * causal_bytes(type); }

/* Loads 2, 4, 8 or a multiple of 16 bytes, aligned to themselves (at most to 16). */
HK_DEV void causal_load_raw(const void *p, const int bytes, hk_cu_u32 *r) {
  if (bytes == 2) r[0] = __ldg((const hk_cu_u16 *)p);
  else if (bytes == 4) r[0] = __ldg((const hk_cu_u32 *)p);
  else if (bytes == 8) {
    const uint2 u = __ldg((const uint2 *)p);
    r[0] = u.x, r[1] = u.y;
  } else {
#pragma unroll
    for (int i = 0; i < bytes / 16; ++i) {
      const uint4 u = __ldg((const uint4 *)p + i);
      r[4 * i] = u.x, r[4 * i + 1] = u.y, r[4 * i + 2] = u.z, r[4 * i + 3] = u.w;
    }
  }
}
HK_DEV void causal_store_raw(void *p, const int bytes, const hk_cu_u32 *r) {
  if (bytes == 2) *(hk_cu_u16 *)p = (hk_cu_u16)r[0];
  else if (bytes == 4) *(hk_cu_u32 *)p = r[0];
  else if (bytes == 8) *(uint2 *)p = make_uint2(r[0], r[1]);
  else {
#pragma unroll
    for (int i = 0; i < bytes / 16; ++i)
      ((uint4 *)p)[i] = make_uint4(r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]);
  }
}
HK_DEV void causal_unpack(const int type, const int v, const hk_cu_u32 *r, float *to) {
#pragma unroll
  for (int i = 0; i < v; ++i) {
    if (type == HK_CU_F32) to[i] = __uint_as_float(r[i]);
    else if (type == HK_CU_F16) to[i] = f32_from_f16((hk_cu_u16)(r[i / 2] >> i % 2 * 16));
    else to[i] = __uint_as_float(i % 2 ? r[i / 2] & 0xffff0000u : r[i / 2] << 16);
  }
}
HK_DEV void causal_pack(const int type, const int v, const float *from, hk_cu_u32 *r) {
  if (type == HK_CU_F32) {
#pragma unroll
    for (int i = 0; i < v; ++i) r[i] = __float_as_uint(from[i]);
  } else if (v == 1) {
    r[0] = type == HK_CU_F16 ? f16_from_f32(from[0]) : bf16_from_f32(from[0]);
  } else {
#pragma unroll
    for (int i = 0; i < v / 2; ++i)
      r[i] = type == HK_CU_F16 ? f16x2_from_f32(from[2 * i], from[2 * i + 1])
                               : bf16x2_from_f32(from[2 * i], from[2 * i + 1]);
  }
}

/* v consecutive values; p is aligned to v elements or to 16 bytes. */
HK_DEV void causal_load_as(const void *p, const int type, const int v, float *to) {
  hk_cu_u32 r[8];
  causal_load_raw(p, v * causal_bytes(type), r);
  causal_unpack(type, v, r, to);
}
HK_DEV void causal_store_as(void *p, const int type, const int v, const float *from) {
  hk_cu_u32 r[8];
  causal_pack(type, v, from, r);
  causal_store_raw(p, v * causal_bytes(type), r);
}
HK_DEV void causal_load(const void *p, int type, const int v, float *to) {
  if (type == HK_CU_F32) causal_load_as(p, HK_CU_F32, v, to);
  else if (type == HK_CU_F16) causal_load_as(p, HK_CU_F16, v, to);
  else causal_load_as(p, HK_CU_BF16, v, to);
}
HK_DEV void causal_store(void *p, int type, const int v, const float *from) {
  if (type == HK_CU_F32) causal_store_as(p, HK_CU_F32, v, from);
  else if (type == HK_CU_F16) causal_store_as(p, HK_CU_F16, v, from);
  else causal_store_as(p, HK_CU_BF16, v, from);
}
HK_DEV float causal_get(const void *p, int type, hk_cu_i64 i) {
  return type == HK_CU_F32   ? ((const float *)p)[i]
         : type == HK_CU_F16 ? f32_from_f16(((const hk_cu_u16 *)p)[i])
                             : f32_from_bf16(((const hk_cu_u16 *)p)[i]);
}
HK_DEV void causal_put(void *p, int type, hk_cu_i64 i, float v) {
  if (type == HK_CU_F32) ((float *)p)[i] = v;
  else ((hk_cu_u16 *)p)[i] = type == HK_CU_F16 ? f16_from_f32(v) : bf16_from_f32(v);
}

/* A value whose bits have been asked for; nothing waits for them before causal_float. */
typedef struct causal_raw {
  hk_cu_u32 low, high;
} causal_raw;
HK_DEV causal_raw causal_ask(const void *p, int type) {
  causal_raw b = {};
  if (p) b.low = *(const hk_cu_u16 *)p;
  if (p && type == HK_CU_F32) b.high = ((const hk_cu_u16 *)p)[1];
  return b;
}
HK_DEV float causal_float(causal_raw b, int type) {
  return type == HK_CU_F16 ? f32_from_f16((hk_cu_u16)b.low)
                           : __uint_as_float(type == HK_CU_F32 ? b.low | b.high << 16 : b.low << 16);
}

/* Lane k of a warp asks for tap k of a channel, lane w for the bias. */
HK_DEV causal_raw causal_tap(const hk_cu_causal_call *P, const int w, int channel) {
  const int k = threadIdx.x % 32;
  const char *p = 0;
  if (k < w) p = causal_at(P->f, P->f_type, channel * P->f_channel + k * P->f_tap);
  else if (k == w && P->bias) p = causal_at(P->bias, P->f_type, channel);
  return causal_ask(p, P->f_type);
}

/* Loads `entries` values of each of v channels from p on. RUN: entries of a channel are together, channels follow. */
HK_DEV void causal_load_tile(const char *p, int type, int access, const int entries, const int v, hk_cu_i64 channel,
                             hk_cu_i64 step, float *to) {
  if (access == HK_CU_RUN) {
#pragma unroll
    for (int k = 0; k < entries; ++k) {
      float run[8];
      causal_load(causal_at(p, type, k * v), type, v, run);
#pragma unroll
      for (int i = 0; i < v; ++i) to[(k * v + i) % entries * v + (k * v + i) / entries] = run[i];
    }
  } else if (access == HK_CU_VECTOR) {
#pragma unroll
    for (int k = 0; k < entries; ++k) causal_load(causal_at(p, type, k * step), type, v, to + k * v);
  } else {
#pragma unroll
    for (int k = 0; k < entries; ++k)
#pragma unroll
      for (int i = 0; i < v; ++i) to[k * v + i] = causal_get(p, type, i * channel + k * step);
  }
}
HK_DEV void causal_store_tile(char *p, int type, int access, const int entries, const int v, hk_cu_i64 channel,
                              hk_cu_i64 step, const float *from) {
  if (access == HK_CU_RUN) {
#pragma unroll
    for (int k = 0; k < entries; ++k) {
      float run[8];
#pragma unroll
      for (int i = 0; i < v; ++i) run[i] = from[(k * v + i) % entries * v + (k * v + i) / entries];
      causal_store(p + k * v * causal_bytes(type), type, v, run);
    }
  } else if (access == HK_CU_VECTOR) {
#pragma unroll
    for (int k = 0; k < entries; ++k) causal_store(p + k * step * causal_bytes(type), type, v, from + k * v);
  } else {
#pragma unroll
    for (int k = 0; k < entries; ++k)
#pragma unroll
      for (int i = 0; i < v; ++i) causal_put(p, type, i * channel + k * step, from[k * v + i]);
  }
}

/* Weights as [tap][channel], and bias, of channels c0 to c0+v-1. */
HK_DEV void causal_weights(const hk_cu_causal_call *P, int type, const int w, const int v, int c0, float *f,
                           float *bias) {
  causal_load_tile(causal_at(P->f, type, c0 * P->f_channel), type, P->f_access, w, v, P->f_channel, P->f_tap, f);
#pragma unroll
  for (int i = 0; i < v; ++i) bias[i] = P->bias ? causal_get(P->bias, type, c0 + i) : 0.0f;
}

/* x * sigmoid(x) in 7 instructions, two of them on the special function unit: twice as fast as act_run's, which keeps
 * denormal intermediate results. -Inf gives -0, NaN stays NaN. */
HK_DEV float causal_silu(float v) {
  const float r = rcp_approx(1.0f + exp2_approx(v * -1.4426950408889634f));
  return v == -INFINITY ? -0.0f : v * r;
}
HK_DEV void causal_act(const hk_cu_causal_call *P, const int full, const int v, float *y) {
  if (P->act == HK_CU_SILU) {
#pragma unroll
    for (int i = 0; i < v; ++i) y[i] = causal_silu(y[i]);
  } else if (full) act_run(v, P->act, P->a, P->b, y, y);
}

/* dy * act'(z) */
HK_DEV float causal_slope(const int act, float z, float dy) {
  if (act == HK_CU_RELU) return z > 0.0f ? dy : 0.0f;
  if (act != HK_CU_SILU) return dy;
  const float g = rcp_approx(1.0f + exp2_approx(z * -1.4426950408889634f));
  return dy * g * fmaf(z, 1.0f - g, 1.0f);
}

/* One unit: its sequence, and its first token within the sequence. */
typedef struct causal_unit {
  int s, t0, length;   /* sequence, first token of the unit, tokens of the sequence */
  hk_cu_i64 begin;     /* token 0 of the sequence in the run (OFFSETS) */
  int slot_in, slot_out, old; /* old: the state has values */
} causal_unit;

HK_DEV hk_cu_i64 causal_base(const causal_unit *q, hk_cu_causal_view s) { return q->s * s.outer + q->begin * s.time; }

/* The tokens and slots of sequence s; false when it is left out. */
HK_DEV int causal_sequence(const hk_cu_causal_call *P, int s, causal_unit *q) {
  q->s = s, q->begin = 0, q->t0 = 0, q->length = P->length;
  if (P->packing == HK_CU_OFFSETS)
    q->begin = __ldg(P->offsets + s), q->length = __ldg(P->offsets + s + 1) - (int)q->begin;
  q->slot_in = P->slots_in ? __ldg(P->slots_in + s) : s;
  q->slot_out = P->slots_out ? __ldg(P->slots_out + s) : q->slot_in;
  q->old = P->state_in && (!P->has_state || __ldg(P->has_state + s));
  return !P->has_skip || q->slot_in != P->skip;
}

/* The sequence of a unit; false for a unit behind its sequence, or whose sequence is left out. A sequence has at
 * least one unit, so that one without tokens can copy its state. */
HK_DEV int causal_find(const hk_cu_causal_call *P, int unit, causal_unit *q) {
  int s, first;
  if (P->packing == HK_CU_OFFSETS) {
    int hi = P->n;
    s = 0;
    while (hi - s > 1) {
      const int mid = (s + hi) / 2;
      if (__ldg(P->offsets + mid) / P->chunk + mid * P->spare <= unit) s = mid;
      else hi = mid;
    }
    first = __ldg(P->offsets + s) / P->chunk + s * P->spare;
  } else {
    s = div_by(unit, P->by_chunks);
    first = s * P->chunks;
  }
  const int counts = causal_sequence(P, s, q);
  q->t0 = (unit - first) * P->chunk;
  return counts && (q->t0 == 0 || (q->t0 > 0 && q->t0 < q->length + (P->spare - 1) * CAUSAL_VEC));
}

/* The state's entry of token t, which is -dilation*(window-1) to -1; -1 when the state does not hold it. */
HK_DEV int causal_entry(const hk_cu_causal_call *P, const causal_unit *q, int t) {
  const int size = P->state_length;
  int e;
  if (!q->old) return -1;
  if (P->ring) {
    if (P->positions[q->s] + t < 0) return -1;
    e = (int)((unsigned)P->positions[q->s] % (unsigned)size) + t;
    return e < 0 ? e + size : e;
  }
  e = (P->accepted ? P->accepted[q->s] - 1 + P->dilation * (P->window - 1) : size) + t;
  return e < 0 || e >= size ? -1 : e;
}
HK_DEV float causal_history(const hk_cu_causal_call *P, const causal_unit *q, int channel, int t) {
  const int e = causal_entry(P, q, t);
  return e < 0 ? 0.0f
               : causal_get(P->state_in, P->state_type,
                            q->slot_in * P->states.outer + channel * P->states.channel + e * P->states.time);
}
/* u = pre * x at token t >= 0. */
HK_DEV float causal_token(const hk_cu_causal_call *P, const causal_unit *q, int channel, int t) {
  float u = causal_get(P->x, TYPE, causal_base(q, P->xs) + channel * P->xs.channel + t * P->xs.time);
  if (P->pre) u *= causal_get(P->pre, TYPE, causal_base(q, P->pres) + channel * P->pres.channel + t * P->pres.time);
  return u;
}

/* Entry i of the new state comes from token *t of this call when that is not negative, else from the old state's
 * entry that is returned (-1: zero). An entry never comes from one below it, so ascending order may overwrite. */
HK_DEV int causal_source(const hk_cu_causal_call *P, const causal_unit *q, int i, int *t) {
  const int size = P->state_length;
  int e = i;
  *t = -1;
  if (P->ring) {
    int behind = i - (int)((unsigned)P->positions[q->s] % (unsigned)size);
    behind += behind < 0 ? size : 0;
    if (behind < q->length) *t = behind + (q->length - 1 - behind) / size * size;
  } else if (P->accepted && q->length) {
    const int reach = P->dilation * (P->window - 1), kept = reach ? reach - 1 : 0;
    if (i < kept) e += P->accepted[q->s];
    else if (i - kept < q->length) *t = i - kept;
  } else if (i >= size - q->length) *t = i - (size - q->length);
  else e += q->length;
  return !q->old || e < 0 || e >= size ? -1 : e;
}

/* Whether this call writes the state of the unit's sequence. */
HK_DEV int causal_writes_state(const hk_cu_causal_call *P, const causal_unit *q) {
  return P->state_out && !(P->has_skip && q->slot_out == P->skip);
}
/* Writes the new state of one channel. */
HK_DEV void causal_state_channel(const hk_cu_causal_call *P, const causal_unit *q, int channel) {
  const hk_cu_i64 in = q->slot_in * P->states.outer + channel * P->states.channel;
  const hk_cu_i64 out = q->slot_out * P->states.outer + channel * P->states.channel;
  const int same = P->state_in == P->state_out && in == out;
#pragma unroll 4
  for (int i = 0; i < P->state_length; ++i) {
    int t;
    const int e = causal_source(P, q, i, &t);
    if (t < 0 && same && e == i) continue;
    causal_put(P->state_out, P->state_type, out + i * P->states.time,
               t >= 0  ? causal_token(P, q, channel, t)
               : e < 0 ? 0.0f
                       : causal_get(P->state_in, P->state_type, in + e * P->states.time));
  }
}

#endif
