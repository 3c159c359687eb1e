/* The planes kernels for bf16 operands, one a row of planes.inc. */
#include "planes.cuh"
#define PLANES(mi, nc, wgs, bn, stages, tag)                                                                                 \
  extern "C" __global__ void __launch_bounds__(128 * (nc + 1), 1) hk_planes_bf16_##tag(const __grid_constant__ hk_cu_planes P) { \
    const planes_tile t = {mi, nc, wgs, bn, stages, 64 * mi * wgs};                                                         \
    planes_body(&P, HK_CU_BF16, t);                                                                                  \
  }
#include "planes.inc"
