/* Epilogue: from accumulators to y. The fast paths are in finish_wide.cuh; the general path here supports any y: a
 * consumer warpgroup stages its f32 sums in shared memory, `chunk` columns of 64 rows at a time, and finishes them
 * one by one. With split > 1 the blocks of the cluster add their sums in rank order, and each finishes its share of
 * the rows. Included by igemm.cuh.
 *
 * wgmma leaves sum (row, col) of a 64-row piece in warp row/16, lane (row%8)*4 + (col%8)/2, register col/8*4 +
 * (row%16)/8*2 + col%2. */

/* Channel (in its group) of column `col` of the tile: with a gate, 8 channels alternate with their 8 partners. */
HK_DEV int finish_channel(const hk_cu_igemm *P, int k0, int col) {
  if (!P->e.gate) return k0 + col;
  const int j = k0 / 2 + col / 16 * 8 + col % 8;
  return col % 16 < 8 ? j : j + (int)P->g.kg / 2;
}

HK_DEV hk_cu_i64 finish_offset(const hk_cu_divisor *by_out, const hk_cu_view *s, int linear, int m) {
  if (linear) return m * s->at[2];
  int p[3];
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    const int up = div_by(m, by_out[d]);
    p[d] = m - up * (int)by_out[d].d;
    m = up;
  }
  return pixel_offset(s, m, p);
}

/* Prefetches the residual of the next split tile into L2 while the tile is multiplied. */
HK_DEV void finish_prefetch(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int part) {
  const hk_cu_geom *g = &P->g;
  const int bytes = g->y_type == HK_CU_F32 ? 4 : 2, width = (int)g->kg - at.k0 < t.bn ? (int)g->kg - at.k0 : t.bn,
            lines = (t.bn * 4 + 127) / 128;
  for (int i = threadIdx.x % 128; i < 64 * t.mi * lines && P->wide; i += 128) {
    const int m = at.m0 + part * 64 * t.mi + i / lines, k = i % lines * (128 / bytes);
    if (m < P->gm && k < width)
      prefetch_line((const hk_cu_u8 *)P->e.c + (m * g->c.at[2] + at.group * g->c.group + at.k0 + k) * bytes);
  }
}

/* Scale and bias of this thread's columns (tid, tid + 128), loaded while the tile is multiplied. */
typedef struct finish_affine {
  float scale[2], bias[2];
} finish_affine;
HK_DEV float finish_scale(const hk_cu_igemm *P, igemm_place at, int k) {
  const hk_cu_epi *e = &P->e;
  return e->scale && k < P->g.kg ? ((const float *)e->scale)[e->scale_one ? 0 : at.group * P->g.kg + k] : 1.0f;
}
HK_DEV float finish_bias(const hk_cu_igemm *P, igemm_place at, int k) {
  return P->e.bias && k < P->g.kg ? ((const float *)P->e.bias)[at.group * P->g.kg + k] : 0.0f;
}
HK_DEV finish_affine finish_load_affine(const hk_cu_igemm *P, igemm_tile t, igemm_place at) {
  finish_affine a;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int k = finish_channel(P, at.k0, threadIdx.x % 128 + i * 128);
    a.scale[i] = finish_scale(P, at, k);
    a.bias[i] = finish_bias(P, at, k);
  }
  return a;
}

/* Computes the row offsets of y and the residual for `count` pixels from m0, once per tile, with `threads` threads. */
HK_DEV void finish_prepare(const hk_cu_igemm *P, int m0, int count, int tid, int threads, hk_cu_i64 *rows) {
  const hk_cu_epi *e = &P->e;
  const int need = !P->wide || P->tall || (!P->y_linear && !P->transposed) || (e->residual && !P->c_linear);
  for (int r = tid; need && r < count; r += threads)
    if (m0 + r < P->gm) {
      rows[r * 2] = finish_offset(P->by_out, &P->g.y, P->y_linear, m0 + r);
      rows[r * 2 + 1] = e->residual ? finish_offset(P->by_out, &P->g.c, P->c_linear, m0 + r) : 0;
    }
}

HK_DEV void finish_unpack(int type, uint4 lo, uint4 hi, float *v) {
  const hk_cu_u32 w[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (type == HK_CU_F32) v[i] = __uint_as_float(w[i]);
    else if (type == HK_CU_F8) v[i] = f32_from_f8((hk_cu_u8)(w[i / 4] >> (i % 4 * 8)));
    else {
      const hk_cu_u16 h = (hk_cu_u16)(w[i / 2] >> (i % 2 * 16));
      v[i] = type == HK_CU_BF16 ? f32_from_bf16(h) : f32_from_f16(h);
    }
  }
}
HK_DEV void finish_load8(const void *c, hk_cu_i64 i, int type, uint4 *lo, uint4 *hi) {
  if (type == HK_CU_F32) {
    *lo = ((const uint4 *)((const float *)c + i))[0];
    *hi = ((const uint4 *)((const float *)c + i))[1];
  } else if (type == HK_CU_F8) {
    const uint2 u = *(const uint2 *)((const hk_cu_u8 *)c + i);
    lo->x = u.x;
    lo->y = u.y;
  } else {
    *lo = *(const uint4 *)((const hk_cu_u16 *)c + i);
  }
}
HK_DEV hk_cu_u32 pack_pair(int type, float a, float b) {
  hk_cu_u32 r;
  if (type == HK_CU_BF16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
HK_DEV void finish_store8(void *y, hk_cu_i64 i, int type, const float *v) {
  if (type == HK_CU_F32) {
    ((float4 *)((float *)y + i))[0] = make_float4(v[0], v[1], v[2], v[3]);
    ((float4 *)((float *)y + i))[1] = make_float4(v[4], v[5], v[6], v[7]);
  } else if (type == HK_CU_F8) {
    hk_cu_u32 w[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < 8; ++j) w[j / 4] |= (hk_cu_u32)f8_from_f32(v[j]) << (j % 4 * 8);
    *(uint2 *)((hk_cu_u8 *)y + i) = make_uint2(w[0], w[1]);
  } else {
    uint4 u;
    u.x = pack_pair(type, v[0], v[1]);
    u.y = pack_pair(type, v[2], v[3]);
    u.z = pack_pair(type, v[4], v[5]);
    u.w = pack_pair(type, v[6], v[7]);
    *(uint4 *)((hk_cu_u16 *)y + i) = u;
  }
}

/* Applies one activation to one sum; k counts over all groups. */
HK_DEV float finish_act(const hk_cu_epi *e, int act, float a, float b, const hk_cu_at *at, hk_cu_i64 k, float v) {
#ifdef HK_USER
  if (act == HK_CU_USER) {
    hk_cu_at there = *at;
    there.k = k;
    return hk_user(there, v, e->user);
  }
#endif
  (void)at;
  const float slope = act == HK_CU_PRELU ? ((const float *)e->slopes)[k] : 0.0f;
  act_run(1, act, a, b, &slope, &v);
  return v;
}

/* Finishes and stores one sum after scale and bias. partner: the gate's other value; k: channel in the group. */
HK_DEV void finish_one(const hk_cu_igemm *P, igemm_place place, int m, const hk_cu_i64 *row, int k, float v,
                       float partner) {
  const hk_cu_epi *e = &P->e;
  const hk_cu_geom *g = &P->g;
  hk_cu_at at;
  at.k = (hk_cu_i64)place.group * g->kg + k;
#if defined(HK_USER) || defined(HK_USER2) || defined(HK_USER_STORE)
  for (int d = 2; d >= 0; --d) {
    at.p[d] = m % (int)g->out[d];
    m /= (int)g->out[d];
  }
  at.n = m;
#endif
  float c = 0.0f;
  if (e->residual) c = load_f32(e->c, row[1] + channel_offset(g, &g->c, e->gate, place.group, k), g->y_type);
  if (e->residual == 2) v = fmaf(e->beta, c, v);
  float r = finish_act(e, e->act, e->a, e->b, &at, at.k, v);
  if (e->gate) {
    const float b = finish_act(e, e->act2, e->a2, e->b2, &at, at.k + g->kg / 2, partner);
    r = e->gate == 1 ? r * b : b * r + (1.0f - b) * v;
  }
  if (e->residual == 1) r = fmaf(e->beta, c, r);
#ifdef HK_USER2
  r = hk_user2(at, r, e->user);
#endif
#ifdef HK_USER_STORE
  hk_user_store(at, r, e->user);
#else
  store_f32(e->y, row[0] + channel_offset(g, &g->y, e->gate, place.group, k), g->y_type, r);
#endif
}

/* Writes the sums of columns [c*chunk, +chunk) of the consumer's piece c / columns to shared memory. */
HK_DEV void finish_put(igemm_tile t, int c, float *sums, const float (*acc)[128]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, pitch = HK_IGEMM_PITCH(t.chunk);
  const int columns = (t.bn + t.chunk - 1) / t.chunk;
  float *to = sums + (warp * 16 + lane / 4) * pitch + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < t.mi; ++i)
#pragma unroll
    for (int u = 0; u < columns; ++u)
      if (c == i * columns + u) {
#pragma unroll
        for (int j = 0; j < t.chunk / 8; ++j) {
          const int at = (u * t.chunk / 8 + j) * 4;
          if (at < t.bn / 2) {
            *(float2 *)(to + j * 8) = make_float2(acc[i][at], acc[i][at + 1]);
            *(float2 *)(to + j * 8 + 8 * pitch) = make_float2(acc[i][at + 2], acc[i][at + 3]);
          }
        }
      }
}

HK_DEV void finish_read(igemm_tile t, const float *from, float *v) {
  float4 a, b;
  if (t.split == 1) {
    a = ((const float4 *)from)[0];
    b = ((const float4 *)from)[1];
  } else {
    a = load_remote(smem_u32(from), 0);
    b = load_remote(smem_u32(from) + 16, 0);
#pragma unroll
    for (int r = 1; r < t.split; ++r) {
      const float4 c = load_remote(smem_u32(from), r), d = load_remote(smem_u32(from) + 16, r);
      a = make_float4(a.x + c.x, a.y + c.y, a.z + c.z, a.w + c.w);
      b = make_float4(b.x + d.x, b.y + d.y, b.z + d.z, b.w + d.w);
    }
  }
  v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

#include "cuda/igemm/finish_wide.cuh"

/* Sum (row, col) of the staged chunk, over all blocks of a split tile. */
HK_DEV float finish_sum(igemm_tile t, const float *from) {
  if (t.split == 1) return *from;
  float v = load_remote1(smem_u32(from), 0);
#pragma unroll
  for (int r = 1; r < t.split; ++r) v += load_remote1(smem_u32(from), r);
  return v;
}

/* The general path: element by element, neighbouring threads along y's contiguous dimension. Handles `count` rows of
 * `width` columns from column c0, staged at `from` with `pitch`; row 0 is pixel m0 and entry 0 of rows. */
HK_DEV void finish_items(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int m0, int count, int c0, int width,
                         int tid, int threads, const float *from, int pitch, const hk_cu_i64 *rows,
                         const float *params) {
  const int limit = (int)(P->e.gate ? P->g.kg / 2 : P->g.kg);
#pragma unroll 1
  for (int i = tid; i < count * width; i += threads) {
    const int row = P->k_inner ? i / width : i % count, in = P->k_inner ? i % width : i / count, col = c0 + in;
    const int k = finish_channel(P, at.k0, col);
    if (m0 + row >= P->gm || k >= limit || col >= t.bn || (P->e.gate && col % 16 >= 8)) continue;
    const float *sum = from + row * pitch + in;
    const float v = fmaf(finish_sum(t, sum), params[col], params[t.bn + col]);
    const float partner = P->e.gate ? fmaf(finish_sum(t, sum + 8), params[col + 8], params[t.bn + col + 8]) : 0.0f;
    finish_one(P, at, m0 + row, rows + row * 2, k, v, partner);
  }
}

/* Writes scale and bias of the tile's columns to shared memory. */
HK_DEV void finish_params(igemm_tile t, finish_affine affine, float *params) {
  const int tid = threadIdx.x % 128;
#pragma unroll
  for (int i = 0; i < 2; ++i)
    if (tid + i * 128 < t.bn) {
      params[tid + i * 128] = affine.scale[i];
      params[t.bn + tid + i * 128] = affine.bias[i];
    }
}

/* Applies everything before the residual to the accumulators. */
HK_DEV void finish_early(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int m0, const float *params,
                         float (*acc)[128]) {
  if (P->e.scale || P->e.bias) wide_affine(&P->e, t, params, acc);
#ifdef HK_USER
  if (P->e.act == HK_CU_USER) user_act(P, t, at, m0, acc);
#endif
  if (P->e.act && !P->late)
#pragma unroll
    for (int i = 0; i < t.mi; ++i) wide_act(&P->e, t.bn / 2, acc[i]);
}

/* Stores y by TMA. */
HK_DEV void finish_slabs(const hk_cu_igemm *P, int type, igemm_tile t, igemm_place at, int m0, slab_residuals *rest,
                         float (*acc)[128]) {
  if (P->e.scale || P->e.bias) slab_affine(P, t, at, acc);
#ifdef HK_USER
  if (P->e.act == HK_CU_USER) user_act(P, t, at, m0, acc);
#endif
  if (P->g.y_type == HK_CU_F32) slab_tile(P, t, at, m0, rest, acc, HK_CU_F32);
  else slab_tile(P, t, at, m0, rest, acc, type == HK_CU_F16 ? HK_CU_F16 : HK_CU_BF16);
}

HK_DEV void finish_tile(const hk_cu_igemm *P, int type, igemm_tile t, igemm_place at, int wg, int part, hk_cu_u8 *raw,
                        finish_affine affine, slab_residuals *rest, float (*acc)[128]) {
  const int ring = HK_IGEMM_RING(t.mi, t.wgs, t.bn, t.parts, t.stages);
  const int tid = threadIdx.x % 128, columns = (t.bn + t.chunk - 1) / t.chunk, pitch = HK_IGEMM_PITCH(t.chunk);
  hk_cu_u8 *staging = raw + ring + wg * HK_IGEMM_STAGING(ring, t.mi, t.nc, t.bn, t.chunk);
  const int m0 = at.m0 + part * 64 * t.mi;
  if (P->slab) {
    finish_slabs(P, type, t, at, m0, rest, acc);
    return;
  }
  float *sums = (float *)staging, *params = (float *)(staging + HK_IGEMM_SUMS_BYTES(t.chunk) + 64 * t.mi * 16);
  hk_cu_i64 *rows = (hk_cu_i64 *)(staging + HK_IGEMM_SUMS_BYTES(t.chunk));
  finish_prepare(P, m0, 64 * t.mi, tid, 128, rows);
  finish_params(t, affine, params);
  named_sync(wg + 1, 128);
  if (P->wide) {
    finish_early(P, t, at, m0, params, acc);
    const int narrow = type == HK_CU_F16 ? HK_CU_F16 : HK_CU_BF16;
    if (P->strip || P->transposed) named_sync(wg + 1, 128); /* params have been read; the values overwrite them */
    if (P->strip) {
      if (HK_IGEMM_STRIPS(ring, t.nc, t.bn)) strip_tile(P, t, m0, at.m0 + launch_of(P)->step, staging, acc, narrow);
    } else if (P->transposed) transpose_tile(P, t, at, m0, wg, staging, acc, narrow);
    else if (P->slim && P->g.y_type == HK_CU_F32) slim_tile(P, t, at, m0, wg, (hk_cu_u32 *)sums, rows, acc, HK_CU_F32);
    else if (P->slim) slim_tile(P, t, at, m0, wg, (hk_cu_u32 *)sums, rows, acc, narrow);
    else if (P->g.y_type == HK_CU_F32) tall_tile(P, t, at, m0, wg, (hk_cu_u32 *)sums, rows, acc, HK_CU_F32);
    else tall_tile(P, t, at, m0, wg, (hk_cu_u32 *)sums, rows, acc, narrow);
  } else {
#pragma unroll 1
    for (int c = 0; c < t.mi * columns; ++c) {
      const int piece = c / columns * 64;
      finish_put(t, c, sums, acc);
      named_sync(wg + 1, 128);
      finish_items(P, t, at, m0 + piece, 64, c % columns * t.chunk, t.chunk, tid, 128, sums, pitch, rows + piece * 2,
                   params);
      named_sync(wg + 1, 128);
    }
  }
  /* The rows and params of the next tile must not overwrite what a slow warp still reads. */
  named_sync(wg + 1, 128);
}

/* Finishes a split tile: every block writes its sums to its own ring, which is idle now, and finishes its share of
 * the rows, adding the blocks' sums in rank order. All threads of all blocks synchronise before and after. */
HK_DEV void finish_split(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int wg, int rank, hk_cu_u8 *raw,
                         const float (*acc)[128]) {
  const int threads = 128 * t.nc, tid = threadIdx.x - 128, lane = tid % 32, warp = tid / 32 % 4;
  const int bm = igemm_bm(t), share = bm / t.split, first = rank * share, pitch = HK_IGEMM_SUM_PITCH(t.bn);
  hk_cu_i64 *rows = (hk_cu_i64 *)(raw + HK_IGEMM_RING(t.mi, t.wgs, t.bn, t.parts, t.stages));
  float *params = (float *)(rows + bm * 2), *sums = (float *)raw;
  named_sync(6, threads);
  float *to = sums + (wg * 64 * t.mi + warp * 16 + lane / 4) * pitch + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < t.mi; ++i)
#pragma unroll
    for (int j = 0; j < t.bn / 8; ++j) {
      *(float2 *)(to + i * 64 * pitch + j * 8) = make_float2(acc[i][j * 4], acc[i][j * 4 + 1]);
      *(float2 *)(to + (i * 64 + 8) * pitch + j * 8) = make_float2(acc[i][j * 4 + 2], acc[i][j * 4 + 3]);
    }
  finish_prepare(P, at.m0 + first, share, tid, threads, rows);
  for (int col = tid; col < t.bn; col += threads) {
    params[col] = finish_scale(P, at, finish_channel(P, at.k0, col));
    params[t.bn + col] = finish_bias(P, at, finish_channel(P, at.k0, col));
  }
  cluster_sync();
  if (P->wide) {
#pragma unroll 1
    for (int i = tid; i < share * (t.bn / 8); i += threads) {
      const int row = i / (t.bn / 8), col = i % (t.bn / 8) * 8, k = at.k0 + col;
      const int m = at.m0 + first + row;
      if (m < P->gm && k < P->g.kg)
        wide_run(P, t, at, col, m, k, rows + row * 2, sums + (first + row) * pitch + col, params);
    }
  } else {
    finish_items(P, t, at, at.m0 + first, share, 0, t.bn, tid, threads, sums + first * pitch, pitch, rows, params);
  }
  fence_async();
  cluster_sync();
}
