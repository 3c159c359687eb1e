/* The halo kernels of one operand type, one per row of halo.inc. */
#include "cuda/instance.cuh"

#include "cuda/igemm/halo.cuh"
#define HALO(mi, nc, wgs, bn, tag)                                                                                     \
  extern "C" __global__ void __launch_bounds__(128 * (nc + 1), 1)                                                      \
      NAMED(hk_halo, tag)(const __grid_constant__ hk_cu_halo P) {                                                      \
    const planes_tile t = {mi, nc, wgs, bn, P.stages, 64 * mi * wgs};                                                  \
    halo_body(&P, TYPE, t);                                                                                            \
  }
#include "cuda/igemm/halo.inc"
