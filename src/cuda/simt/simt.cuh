/* What the SIMT kernels share: positions of rows and of products. */
#ifndef HK_CUDA_SIMT_CUH
#define HK_CUDA_SIMT_CUH
#include "cuda/epilogue.cuh"
#include "cuda/simt/params.h"

/* Decodes row m: its image and output position. */
HK_DEV void simt_position(const hk_cu_simt *P, int m, hk_cu_at *at) {
  int rest = m, up;
  at->k = 0;
  if (P->images_inner) up = div_by(rest, P->by_n), at->n = rest - up * (int)P->by_n.d, rest = up;
#pragma unroll
  for (int d = 2; d >= 0; --d) up = div_by(rest, P->by_out[d]), at->p[d] = rest - up * (int)P->by_out[d].d, rest = up;
  if (!P->images_inner) at->n = rest;
}

/* The row of a position: simt_position's inverse. */
HK_DEV hk_cu_i64 simt_row(const hk_cu_simt *P, const hk_cu_at *at) {
  const hk_cu_i64 pixel = ((hk_cu_i64)at->p[0] * P->by_out[1].d + at->p[1]) * P->by_out[2].d + at->p[2];
  return P->images_inner ? pixel * P->d.g.n + at->n : at->n * (P->rows / (int)P->d.g.n) + pixel;
}

/* Decodes product k of a sum. */
HK_DEV void simt_product(const hk_cu_simt *P, int k, hk_cu_simt_product *to) {
  const hk_cu_geom *g = &P->d.g;
  const int index = k < P->gk ? k : 0;
  const int up = div_by(index, P->taps_inner ? P->by_taps : P->by_c);
  int tap = P->taps_inner ? index - up * (int)P->by_taps.d : up;
  const int c = P->taps_inner ? up : index - up * (int)P->by_c.d;
  hk_cu_simt_product q = {c * g->x.channel, c * g->f.channel, {0, 0, 0}, k >= P->gk};
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    const int next = div_by(tap, P->by_win[d]), t = tap - next * (int)P->by_win[d].d;
    q.at[d] = t * (int)g->dil[d];
    q.f += t * g->f.at[d];
    if (!P->dilated) q.x += q.at[d] * g->x.at[d];
    tap = next;
  }
  *to = q;
}
#endif
