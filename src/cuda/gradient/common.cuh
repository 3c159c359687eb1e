/* What the tapsum kernels share: places of the reduction, and where a sum goes. */
#ifndef HK_CUDA_TAPSUM_COMMON_CUH
#define HK_CUDA_TAPSUM_COMMON_CUH
#include "cuda/gradient/ptx.cuh"
#include "cuda/gradient/tapsum_params.h"

/* The epilogue of one sum, element by element. */
#include "cuda/passes/staged.cuh"

enum { STEM_PIXEL = 144, STEM_COLUMNS = 32 }; /* stem.cuh: bytes of 64 channels in shared memory; most columns */

typedef struct tapsum_row {
  int c, s0, s1;
} tapsum_row;

HK_DEV tapsum_row tapsum_row_at(const hk_cu_tapsum *P, int row) {
  tapsum_row r;
  const int image_rows = div_by(row, P->by_win[1]);
  r.s1 = row - image_rows * (int)P->by_win[1].d;
  r.c = div_by(image_rows, P->by_win[0]);
  r.s0 = image_rows - r.c * (int)P->by_win[0].d;
  return r;
}

/* The first of the units of a slice. */
HK_DEV int tapsum_first(const hk_cu_tapsum *P, int slice) { return (int)((hk_cu_i64)P->units * slice / P->slices); }

/* A sum by the plain loop, in which padding is not multiplied: a zero of it times an Inf is NaN. */
static __device__ __noinline__ float tapsum_plain(const hk_cu_tapsum *P, hk_cu_at at, int group, int k) {
  const hk_cu_geom *g = &P->d.g;
  float sum = 0.0f;
#pragma unroll 1
  for (int row = 0; row < P->rows; ++row) {
    const tapsum_row r = tapsum_row_at(P, row);
#pragma unroll 1
    for (int s2 = 0; s2 < (int)g->win[2]; ++s2) {
      const hk_cu_i64 s[3] = {r.s0, r.s1, s2};
      hk_cu_i64 x = group * g->x.group + at.n * g->x.outer + r.c * g->x.channel;
      hk_cu_i64 f = group * g->f.group + k * g->f.outer + r.c * g->f.channel;
      int in = 1;
#pragma unroll
      for (int d = 0; d < 3; ++d) {
        const hk_cu_i64 i = at.p[d] * g->stride[d] + s[d] * g->dil[d] - g->lo[d], to = i / g->in_dil[d];
        in &= i >= 0 && to * g->in_dil[d] == i && to < g->in[d];
        x += to * g->x.at[d], f += s[d] * g->f.at[d];
      }
      if (in) sum = fmaf(load_f32(P->d.x, x, g->x_type), load_f32(P->d.f, f, g->f_type), sum);
    }
  }
  return sum;
}

static __device__ __noinline__ void tapsum_finish(const hk_cu_tapsum *P, int i, float v) {
  hk_cu_at at;
  const int column = div_by(i, P->by_n), row = div_by(column, P->by_taps), tap = column - row * P->taps;
  const int line = div_by(tap, P->by_out[2]), group = div_by(row, P->by_k), k = row - group * (int)P->by_k.d;
  at.n = i - column * (int)P->by_n.d, at.k = row;
  at.p[2] = tap - line * (int)P->by_out[2].d;
  at.p[0] = div_by(line, P->by_out[1]);
  at.p[1] = line - at.p[0] * (int)P->by_out[1].d;
  const hk_cu_epi *e = &P->d.e;
  if (v != v) v = tapsum_plain(P, at, group, k);
  if (e->scale) v *= ((const float *)e->scale)[e->scale_one ? 0 : row];
  if (e->bias) v += ((const float *)e->bias)[row];
  finish_staged(&P->d, at, group, k, v, 0);
}

/* Output i of a slice: to the partial sums, or the result. */
HK_DEV void tapsum_emit(const hk_cu_tapsum *P, int slice, int i, float v) {
  if (P->sums) P->sums[(hk_cu_i64)slice * P->outputs + i] = v;
  else tapsum_finish(P, i, v);
}
#endif
