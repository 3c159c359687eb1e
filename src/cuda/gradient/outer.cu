/* The filter-gradient kernels of one operand type, one per row of tiles.inc. */
#include "cuda/instance.cuh"

#include "cuda/gradient/outer.cuh"
#define KERNEL(mi, wm, wn, bn, px, stages, cm, cn, strip, tag)                                                         \
  extern "C" __global__ void __launch_bounds__(128 * ((wm) * (wn) + 1), 1)                                             \
      NAMED(hk_outer, tag)(const __grid_constant__ hk_cu_outer P) {                                                    \
    const outer_tile t = {mi, wm, wn, bn, px, stages, cm, cn, strip};                                                  \
    outer_body(&P, TYPE, t);                                                                                           \
  }
#define OUTER(mi, wm, wn, bn, px, stages, cm, cn, tag) KERNEL(mi, wm, wn, bn, px, stages, cm, cn, 0, tag)
#define STRIP(mi, wm, wn, bn, tag) KERNEL(mi, wm, wn, bn, HK_OUTER_STRIP_PX, HK_OUTER_STRIP_STAGES, 1, 1, 1, tag)
#include "cuda/gradient/tiles.inc"
