/* The filter-gradient kernels of one operand type, one per row of tiles.inc. */
#include "cuda/instance.cuh"

#include "cuda/gradient/outer.cuh"
#define OUTER(mi, wm, wn, bn, px, stages, cm, cn, tag)                                                                 \
  extern "C" __global__ void __launch_bounds__(128 * ((wm) * (wn) + 1), 1)                                             \
      NAMED(hk_outer, tag)(const __grid_constant__ hk_cu_outer P) {                                                    \
    const outer_tile t = {mi, wm, wn, bn, px, stages, cm, cn};                                                         \
    outer_body(&P, TYPE, t);                                                                                           \
  }
#include "cuda/gradient/tiles.inc"
