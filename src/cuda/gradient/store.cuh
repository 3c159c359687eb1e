/* The result of a filter gradient, for both kernels: where a row and a column lie in y, the epilogue, and the plain
 * loop for results that are NaN because a zero of the padding met an Inf of dy. */
#ifndef HK_CUDA_GRADIENT_STORE_CUH
#define HK_CUDA_GRADIENT_STORE_CUH
#include "cuda/epilogue.cuh"
#include "cuda/gradient/params.h"
#include "cuda/ptx.cuh"

/* The tap and the first channel, in its joined group, of a block of 64 columns. */
typedef struct outer_columns {
  int tap[3], channel;
} outer_columns;

HK_DEV outer_columns outer_columns_of(const hk_cu_outer *P, int block) {
  outer_columns at;
  /* the inner and the outer of chunk and tap[2] */
  const hk_cu_divisor inner = P->strip ? P->by_taps[1] : P->by_chunks, outer = P->strip ? P->by_chunks : P->by_taps[1];
  const int t = div_by(block, inner), u = div_by(t, outer), v = div_by(u, P->by_taps[0]);
  const int i = block - t * (int)inner.d, o = t - u * (int)outer.d;
  at.channel = (P->strip ? o : i) * 64;
  at.tap[2] = P->strip ? i : o;
  at.tap[1] = u - v * (int)P->by_taps[0].d;
  at.tap[0] = v;
  return at;
}

/* A row's results of one tap: group and channel of dy in it. Channel c of x in the group is that in the joined group
 * less `skip`; others are results of no group. */
typedef struct outer_line {
  int group, k, skip, valid;
} outer_line;

HK_DEV outer_line outer_line_of(const hk_cu_outer *P, int joined, int row) {
  outer_line at;
  const int up = div_by(row, P->by_kg);
  at.group = joined * P->join + up;
  at.k = row - up * (int)P->by_kg.d;
  at.skip = up * P->channels;
  at.valid = row < P->rows && at.group < (int)P->g.groups;
  return at;
}
/* Whether channel c of the group is one: also false for what lies before the group. */
HK_DEV bool outer_has(const hk_cu_outer *P, int c) { return (hk_cu_u32)c < (hk_cu_u32)P->channels; }

/* Offset of channel 0 of x in y or the residual. */
HK_DEV hk_cu_i64 outer_offset(const hk_cu_view *s, const outer_line *at, const int *tap) {
  return s->group * at->group + s->channel * at->k + s->at[0] * tap[0] + s->at[1] * tap[1] + s->at[2] * tap[2];
}

/* The sum by the plain loop, in the order of the window. */
HK_DEV float outer_plain(const hk_cu_outer *P, const outer_line *at, const int *tap, int c) {
  const hk_cu_geom *g = &P->g;
  float sum = 0.0f;
#pragma unroll 1
  for (hk_cu_i64 n = 0; n < g->cg; ++n)
#pragma unroll 1
    for (int d = 0; d < g->win[0]; ++d)
#pragma unroll 1
      for (int r = 0; r < g->win[1]; ++r)
#pragma unroll 1
        for (int s = 0; s < g->win[2]; ++s) {
          const hk_cu_i64 i0 = tap[0] * g->stride[0] + d * g->dil[0] - g->lo[0],
                          i1 = tap[1] * g->stride[1] + r * g->dil[1] - g->lo[1],
                          i2 = tap[2] * g->stride[2] + s * g->dil[2] - g->lo[2];
          if (i0 < 0 || i0 >= g->in[0] || i1 < 0 || i1 >= g->in[1] || i2 < 0 || i2 >= g->in[2]) continue;
          const hk_cu_i64 x = g->x.group * at->group + g->x.outer * c + g->x.channel * n + i0 * g->x.at[0] +
                              i1 * g->x.at[1] + i2 * g->x.at[2];
          const hk_cu_i64 f = g->f.group * at->group + g->f.outer * at->k + g->f.channel * n + d * g->f.at[0] +
                              r * g->f.at[1] + s * g->f.at[2];
          sum = fmaf(load_f32(P->x, x, g->x_type), load_f32(P->f, f, g->f_type), sum);
        }
  return sum;
}

/* Scale and bias. */
HK_DEV float outer_affine(const hk_cu_outer *P, const outer_line *at, float v) {
  const hk_cu_epi *e = &P->e;
  const int k = at->group * (int)P->by_kg.d + at->k;
  if (e->scale) v *= ((const float *)e->scale)[e->scale_one ? 0 : k];
  return e->bias ? v + ((const float *)e->bias)[k] : v;
}
/* base: of channel 0. */
HK_DEV float outer_residual(const hk_cu_outer *P, hk_cu_i64 base, int c, float v) {
  return P->e.residual ? v + P->e.beta * load_f32(P->e.c, base + P->g.c.outer * c, P->g.y_type) : v;
}
HK_DEV void outer_store(const hk_cu_outer *P, hk_cu_i64 base, int c, float v) {
  store_f32(P->e.y, base + P->g.y.outer * c, P->g.y_type, v);
}
/* Two 16-bit values in one word. */
HK_DEV hk_cu_u32 outer_pack(int type, float a, float b) {
  hk_cu_u32 r;
  if (type == HK_CU_BF16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
#endif
