/* The instructions of the tapsum kernels: asynchronous copies, matrix loads and products. */
#ifndef HK_CUDA_GRADIENT_PTX_CUH
#define HK_CUDA_GRADIENT_PTX_CUH
#include "cuda/types.cuh"

HK_DEV hk_cu_u32 shared_address(const void *p) { return (hk_cu_u32)__cvta_generic_to_shared(p); }
/* Copies 16 bytes to shared memory; writes zeros where `in` is 0. */
HK_DEV void copy_16(hk_cu_u32 to, const void *from, int in) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(in ? 16 : 0) : "memory");
}
HK_DEV void copy_wait(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }
HK_DEV void store_16(hk_cu_u32 to, const hk_cu_u32 *v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
               : "memory");
}
/* Loads transposed 8x8 matrices of 16-bit values; lane l addresses row l % 8 of matrix l / 8. */
HK_DEV void matrices_4(hk_cu_u32 at, hk_cu_u32 *r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
HK_DEV void matrices_2(hk_cu_u32 at, hk_cu_u32 *r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(at)
               : "memory");
}
/* Stores 8x8 matrices; lane l addresses row l % 8 of matrix l / 8. */
HK_DEV void matrices_put_4(hk_cu_u32 at, const hk_cu_u32 *r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
}
#ifdef MMA_TYPE
HK_DEV void mma_add_8(float *d, const hk_cu_u32 *a, hk_cu_u32 b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}
HK_DEV void mma_add(float *d, const hk_cu_u32 *a, hk_cu_u32 b0, hk_cu_u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
#endif
