/* Instructions of the causal kernels that C has no operator for. */
#ifndef HK_CUDA_CAUSAL_PTX_CUH
#define HK_CUDA_CAUSAL_PTX_CUH
#include "cuda/types.cuh"

HK_DEV hk_cu_u32 f16x2_from_f32(float lo, float hi) {
  hk_cu_u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
HK_DEV hk_cu_u32 bf16x2_from_f32(float lo, float hi) {
  hk_cu_u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
HK_DEV float exp2_approx(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
HK_DEV float rcp_approx(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
#endif
