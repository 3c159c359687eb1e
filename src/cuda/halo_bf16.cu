/* The halo kernels for bf16 operands, one a row of halo.inc. */
#include "halo.cuh"
#define HALO(mi, nc, wgs, bn, tag)                                                                                           \
  extern "C" __global__ void __launch_bounds__(128 * (nc + 1), 1) hk_halo_bf16_##tag(const __grid_constant__ hk_cu_halo P) { \
    const planes_tile t = {mi, nc, wgs, bn, P.stages, 64 * mi * wgs};                                                       \
    halo_body(&P, HK_CU_BF16, t);                                                                                        \
  }
#include "halo.inc"
