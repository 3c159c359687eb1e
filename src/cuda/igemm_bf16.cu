/* The wgmma kernels for bf16 operands, one a row of kernels.inc. */
#include "igemm.cuh"
#define KERNEL(wgs, mi, nc, bn, stages, chunk, cm, cn, split, tag)                                  \
  extern "C" __global__ void __launch_bounds__(128 * (nc + 1), 1)                                   \
      hk_wgmma_bf16_##tag(const __grid_constant__ hk_cu_launch P) {                                   \
    const igemm_tile t = {mi, nc, bn, stages, cm, cn, split, chunk, 1, wgs};                    \
    igemm_body(&P, HK_CU_BF16, t);                                                                  \
  }
#define ROW(mi, nc, ...) KERNEL(nc, mi, nc, __VA_ARGS__)
#define WIDE(mi, nc, ...) KERNEL(nc, mi, nc, __VA_ARGS__)
#define TURNS(mi, nc, ...) KERNEL(1, mi, nc, __VA_ARGS__)
#define SPLIT(...)
#include "kernels.inc"
