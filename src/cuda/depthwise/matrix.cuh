/* Matrix instructions of the depthwise kernels for 16-bit data. The including file defines TYPE and MMA_TYPE. */
#ifndef HK_CUDA_DW_MATRIX_CUH
#define HK_CUDA_DW_MATRIX_CUH
#include "cuda/depthwise/common.cuh"

/* Loads four 8x8 matrices; lane l addresses row l % 8 of matrix l / 8. */
HK_DEV void load_x4(hk_cu_u32 at, hk_cu_u32 *r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
/* The same transposed: a lane gets pairs of a column. */
HK_DEV void load_x4_transposed(hk_cu_u32 at, hk_cu_u32 *r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
HK_DEV void mma_k16(float *d, const hk_cu_u32 *a, hk_cu_u32 b0, hk_cu_u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
HK_DEV hk_cu_u32 matrix_sum(hk_cu_u32 a, hk_cu_u32 b) {
  hk_cu_u32 r;
  asm("add.rn." MMA_TYPE "x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
/* The larger of each half, NaN if either is. */
HK_DEV hk_cu_u32 matrix_most(hk_cu_u32 a, hk_cu_u32 b) {
  hk_cu_u32 r;
  asm("max.NaN." MMA_TYPE "x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
/* Reduces 8 values to 2, NaN if one of them is; sums of infinities may be NaN too. */
HK_DEV hk_cu_u32 matrix_sum8(uint4 u) { return matrix_sum(matrix_sum(u.x, u.y), matrix_sum(u.z, u.w)); }
HK_DEV int matrix_nan(hk_cu_u32 sum) {
  float v[2];
  dw_unpack_pair(TYPE, sum, v);
  v[0] += v[1];
  return v[0] != v[0];
}
#endif
