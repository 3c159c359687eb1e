/* The general kernel for one accumulator type: one thread per output, the sum in tap and channel order. Any strides,
 * any dilation of either side, both kinds of groups, gates, 64-bit sizes. It defines what the other kernels must
 * compute, and is the fallback that a decision names. Expects REAL, SUM, PARAM (of scale and slopes), LOAD,
 * LOAD_REAL, STORE, NAME, IS_INT, and undefines them. With STAGED the sums are in memory already, scaled and biased,
 * and only the rest of the epilogue is applied. */

#ifndef STAGED
HK_DEV SUM NAME(sum)(const hk_cu_direct *P, const int *p, hk_cu_i64 n, hk_cu_i64 group, hk_cu_i64 k) {
  const hk_cu_geom *g = &P->g;
  const hk_cu_i64 xb = g->x.group * group + g->x.outer * n, fb = g->f.group * group + g->f.outer * k;
  const int fz = IS_INT ? (P->e.f_zeros ? P->e.f_zeros[group * g->kg + k] : g->f_zero) : 0;
  const int xz = IS_INT ? g->x_zero : 0;
  SUM acc = 0;
  for (hk_cu_i64 t = 0; t < g->win[0]; ++t) {
    const hk_cu_i64 i0 = p[0] * g->stride[0] + t * g->dil[0] - g->lo[0], d0 = i0 / g->in_dil[0];
    if (i0 < 0 || d0 >= g->in[0] || d0 * g->in_dil[0] != i0) continue;
    for (hk_cu_i64 r = 0; r < g->win[1]; ++r) {
      const hk_cu_i64 i1 = p[1] * g->stride[1] + r * g->dil[1] - g->lo[1], d1 = i1 / g->in_dil[1];
      if (i1 < 0 || d1 >= g->in[1] || d1 * g->in_dil[1] != i1) continue;
      for (hk_cu_i64 s = 0; s < g->win[2]; ++s) {
        const hk_cu_i64 i2 = p[2] * g->stride[2] + s * g->dil[2] - g->lo[2], d2 = i2 / g->in_dil[2];
        if (i2 < 0 || d2 >= g->in[2] || d2 * g->in_dil[2] != i2) continue;
        const hk_cu_i64 xo = xb + d0 * g->x.at[0] + d1 * g->x.at[1] + d2 * g->x.at[2];
        const hk_cu_i64 fo = fb + t * g->f.at[0] + r * g->f.at[1] + s * g->f.at[2];
        for (hk_cu_i64 c = 0; c < g->cg; ++c) {
          const SUM xv = LOAD(P->x, xo + c * g->x.channel, g->x_type);
          const SUM fv = LOAD(P->f, fo + c * g->f.channel, g->f_type);
          acc += IS_INT ? (SUM)((xv - xz) * (fv - fz)) : (SUM)(xv * fv);
        }
      }
    }
  }
  return acc;
}
#endif

#include "cuda/passes/finish.tmpl.cuh"

/* Sum, scale and bias of channel k of a group; with STAGED they are in memory, at x's strides of y's positions. */
HK_DEV REAL NAME(value)(const hk_cu_direct *P, hk_cu_at at, hk_cu_i64 group, hk_cu_i64 k) {
#ifdef STAGED
  return ((const SUM *)P->x)[pixel_offset(&P->g.x, at.n, at.p) + P->g.x.group * group + P->g.x.channel * k];
#else
  return NAME(affine)(&P->e, NAME(sum)(P, at.p, at.n, group, k), group * P->g.kg + k);
#endif
}

/* Computes and stores output i. */
HK_DEV void NAME(output)(const hk_cu_direct *P, hk_cu_i64 i) {
  const hk_cu_geom *g = &P->g;
  hk_cu_at at;
  const hk_cu_i64 group = NAME(place)(P, i, &at), k = at.k - group * g->kg;
  const REAL v = NAME(value)(P, at, group, k);
  REAL partner = 0;
  if (P->e.gate) {
    const hk_cu_i64 pk = at.k + g->groups * g->kg / 2, pg = pk / g->kg;
    partner = NAME(value)(P, at, pg, pk - pg * g->kg);
  }
#if IS_INT
  if (g->y_type == HK_CU_S32) {
    const hk_cu_i64 yo = g->y.offset + channel_offset(g, &g->y, 0, group, k) + pixel_offset(&g->y, at.n, at.p);
    ((int *)P->e.y)[yo] = (int)v;
    return;
  }
#endif
  NAME(finish)(P, at, group, k, v, partner);
}

extern "C" __global__ void __launch_bounds__(256) NAME(hk_direct)(const __grid_constant__ hk_cu_direct P) {
  const hk_cu_i64 step = (hk_cu_i64)gridDim.x * blockDim.x;
  for (hk_cu_i64 i = (hk_cu_i64)blockIdx.x * blockDim.x + threadIdx.x; i < P.outputs; i += step) NAME(output)(&P, i);
}

#undef SUM
#undef REAL
#undef PARAM
#undef IS_INT
#undef LOAD
#undef LOAD_REAL
#undef STORE
#undef NAME
