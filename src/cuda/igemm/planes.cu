/* The planes kernels of one operand type, one per row of planes.inc. */
#include "cuda/instance.cuh"

#include "cuda/igemm/planes.cuh"
#define PLANES(mi, nc, wgs, bn, stages, tag)                                                                           \
  extern "C" __global__ void __launch_bounds__(128 * (nc + 1), 1)                                                      \
      NAMED(hk_planes, tag)(const __grid_constant__ hk_cu_planes P) {                                                  \
    const planes_tile t = {mi, nc, wgs, bn, stages, 64 * mi * wgs};                                                    \
    planes_body(&P, TYPE, t);                                                                                          \
  }
#include "cuda/igemm/planes.inc"
