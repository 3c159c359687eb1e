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

static __device__ __noinline__ void tapsum_finish(const hk_cu_tapsum *P, int i, float v) {
  hk_cu_at at;
  const int column = div_by(i, P->by_n), row = div_by(column, P->by_taps), tap = column - row * P->taps;
  const int line = div_by(tap, P->by_out[2]), group = div_by(row, P->by_k), k = row - group * (int)P->by_k.d;
  at.n = i - column * (int)P->by_n.d, at.k = row;
  at.p[2] = tap - line * (int)P->by_out[2].d;
  at.p[0] = div_by(line, P->by_out[1]);
  at.p[1] = line - at.p[0] * (int)P->by_out[1].d;
  const hk_cu_epi *e = &P->d.e;
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
