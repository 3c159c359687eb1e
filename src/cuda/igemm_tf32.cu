/* The wgmma kernels for f32 rounded to tf32 operands, one a row of kernels.inc. */
#include "igemm.cuh"
#define ROW(mi, nc, bn, stages, chunk, cm, cn, split, tag)                                          \
  extern "C" __global__ void __launch_bounds__(128 * (nc + 1), 1)                                   \
      hk_wgmma_tf32_##tag(const __grid_constant__ hk_cu_igemm P) {                                  \
    const igemm_tile t = {mi, nc, bn, stages, cm, cn, split, chunk};                                \
    igemm_body(&P, HK_CU_F32, t);                                                                          \
  }
#define WIDE ROW
#include "kernels.inc"
