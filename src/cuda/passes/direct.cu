/* The general kernels: hk_direct_f32, hk_direct_f64, hk_direct_s32, by accumulator type, hk_direct_staged, and
 * hk_recompute_nan. See direct.tmpl.cuh. s32 sums are finished in f64, which represents them exactly. */
#include "cuda/passes/staged.cuh"

#define SUM float
#define REAL float
#define PARAM float
#define IS_INT 0
#define LOAD load_f32
#define LOAD_REAL load_f32
#define STORE store_f32
#define NAME(x) x##_f32
#include "cuda/passes/direct.tmpl.cuh"

/* Whether 16 bytes contain a NaN of y's type. */
HK_DEV int nan_any(uint4 v, int type) {
  const hk_cu_u32 w[4] = {v.x, v.y, v.z, v.w}, inf = type == HK_CU_F32    ? 0x7f800000u
                                                     : type == HK_CU_BF16 ? 0x7f80u
                                                                          : 0x7c00u;
  int any = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    any |= type == HK_CU_F32 ? (w[i] & 0x7fffffffu) > inf : (w[i] & 0x7fffu) > inf || (w[i] >> 16 & 0x7fffu) > inf;
  return any;
}

/* Recomputes every NaN of a dense, 16-byte aligned y of f32 or 16-bit values, after a product with zeros between
 * groups made an Inf of one group a NaN of another. */
extern "C" __global__ void __launch_bounds__(256) hk_recompute_nan(const __grid_constant__ hk_cu_direct P) {
  const int type = P.g.y_type, per = type == HK_CU_F32 ? 4 : 8;
  const hk_cu_i64 pieces = (P.outputs + per - 1) / per, step = (hk_cu_i64)gridDim.x * blockDim.x;
  for (hk_cu_i64 q = (hk_cu_i64)blockIdx.x * blockDim.x + threadIdx.x; q < pieces; q += step) {
    const hk_cu_i64 first = q * per, end = first + per < P.outputs ? first + per : P.outputs;
    if (first + per <= P.outputs && !nan_any(((const uint4 *)P.e.y)[q], type)) continue;
#pragma unroll 1
    for (hk_cu_i64 i = first; i < end; ++i) {
      const float v = load_f32(P.e.y, i, type);
      if (v != v) output_f32(&P, i);
    }
  }
}

#define SUM double
#define REAL double
#define PARAM double
#define IS_INT 0
#define LOAD load_f64
#define LOAD_REAL load_f64
#define STORE store_f64
#define NAME(x) x##_f64
#include "cuda/passes/direct.tmpl.cuh"

#define SUM int
#define REAL double
#define PARAM float
#define IS_INT 1
#define LOAD load_s32
#define LOAD_REAL load_f64
#define STORE store_f64
#define NAME(x) x##_s32
#include "cuda/passes/direct.tmpl.cuh"
