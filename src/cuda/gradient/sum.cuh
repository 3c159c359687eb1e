/* hk_outer_sum: adds the slices' sums of a filter gradient in their order and finishes them: scale, bias, residual,
 * activation, conversion, any strides of y.
 *
 * A thread has four adjacent columns of a row; `teams` threads share the slices of the same four, each adds its part of
 * them in order, and the first adds the parts in order: the bits depend on slices and teams alone. */
#ifndef HK_CUDA_GRADIENT_SUM_CUH
#define HK_CUDA_GRADIENT_SUM_CUH
#include "cuda/gradient/store.cuh"

/* Results of y, padded to whole columns, are at most 2^30. */
HK_DEV hk_cu_u32 sum_quads(const hk_cu_outer *P) { return (hk_cu_u32)(P->groups * P->rows * (P->columns / 4)); }

HK_DEV float4 sum_slices(const hk_cu_outer *P, hk_cu_u32 quad, int from, int to) {
  const hk_cu_i64 step = sum_quads(P);
  const float4 *at = (const float4 *)P->sums + quad + from * step;
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
  for (int s = from; s < to; ++s, at += step) {
    const float4 u = *at;
    v.x += u.x, v.y += u.y, v.z += u.z, v.w += u.w;
  }
  return v;
}

/* Four results: adjacent channels of x from c on, of which `found` names those that are in the group. */
typedef struct sum_place {
  outer_line line;
  int tap[3], c, found;
} sum_place;

HK_DEV sum_place sum_find(const hk_cu_outer *P, hk_cu_u32 quad) {
  sum_place at;
  const hk_cu_u32 wide = (hk_cu_u32)P->columns / 4, row = quad / wide, joined = row / (hk_cu_u32)P->rows;
  const int column = (int)(quad - row * wide) * 4;
  const outer_columns of = outer_columns_of(P, column / 64);
  at.line = outer_line_of(P, (int)joined, (int)(row - joined * (hk_cu_u32)P->rows));
  at.tap[0] = of.tap[0], at.tap[1] = of.tap[1], at.tap[2] = of.tap[2];
  at.c = of.channel + column % 64 - at.line.skip;
  at.found = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) at.found |= (at.line.valid && outer_has(P, at.c + i)) << i;
  return at;
}

/* Computes those that are NaN again. */
HK_DEV void sum_again(const hk_cu_outer *P, const sum_place *at, float *v) {
#pragma unroll 1
  for (int i = 0; i < 4; ++i) {
    const float u = i == 0 ? v[0] : i == 1 ? v[1] : i == 2 ? v[2] : v[3];
    if (!(at->found >> i & 1) || u == u) continue;
    const float w = outer_plain(P, &at->line, at->tap, at->c + i);
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (i == j) v[j] = w;
  }
}

/* Scale, bias, residual and activation. */
HK_DEV void sum_finish(const hk_cu_outer *P, const sum_place *at, float *v) {
  const hk_cu_i64 from = P->e.residual ? outer_offset(&P->g.c, &at->line, at->tap) : 0;
  const float s = P->e.slopes ? ((const float *)P->e.slopes)[at->line.group * (int)P->by_kg.d + at->line.k] : 0.0f;
  const float slope[4] = {s, s, s, s};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    v[i] = outer_affine(P, &at->line, v[i]);
    if (at->found >> i & 1 && P->e.residual == 2) v[i] = outer_residual(P, from, at->c + i, v[i]);
  }
  act_run(4, P->e.act, P->e.a, P->e.b, slope, v);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (at->found >> i & 1 && P->e.residual == 1) v[i] = outer_residual(P, from, at->c + i, v[i]);
}

HK_DEV void sum_store(const hk_cu_outer *P, const sum_place *at, const float *v) {
  const hk_cu_i64 to = outer_offset(&P->g.y, &at->line, at->tap);
  if (P->quads && at->found == 15) {
    char *y = (char *)P->e.y;
    if (P->g.y_type == HK_CU_F32) *(float4 *)(y + (to + at->c) * 4) = make_float4(v[0], v[1], v[2], v[3]);
    else
      *(uint2 *)(y + (to + at->c) * 2) =
          make_uint2(outer_pack(P->g.y_type, v[0], v[1]), outer_pack(P->g.y_type, v[2], v[3]));
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (at->found >> i & 1) outer_store(P, to, at->c + i, v[i]);
}

HK_DEV void sum_body(const hk_cu_outer *P) {
  __shared__ float4 parts[HK_OUTER_ADDERS];
  pdl_trigger();
  const int teams = P->teams, lanes = HK_OUTER_ADDERS / teams;
  const int team = threadIdx.x / lanes, lane = threadIdx.x - team * lanes;
  const hk_cu_u32 quad = blockIdx.x * (hk_cu_u32)lanes + (hk_cu_u32)lane;
  sum_place at;
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  at.found = 0;
  if (quad < sum_quads(P)) at = sum_find(P, quad);
  pdl_wait();
  if (at.found) v = sum_slices(P, quad, P->slices * team / teams, P->slices * (team + 1) / teams);
  if (teams > 1) {
    parts[threadIdx.x] = v;
    __syncthreads();
    for (int i = 1; i < teams && !team; ++i) {
      const float4 u = parts[i * lanes + lane];
      v.x += u.x, v.y += u.y, v.z += u.z, v.w += u.w;
    }
  }
  if (!at.found || team) return;
  float sums[4] = {v.x, v.y, v.z, v.w};
  if (P->again) sum_again(P, &at, sums);
  sum_finish(P, &at, sums);
  sum_store(P, &at, sums);
}
#endif
