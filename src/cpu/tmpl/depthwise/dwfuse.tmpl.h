/* What the depthwise kernels share: inlining and unrolling macros, and the fused epilogue of one vector. Include a
 * vocabulary first. */
#include "cpu/ukernel.h"

#ifndef HK_UNROLL
#ifdef __clang__
#define HK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HK_UNROLL _Pragma("GCC unroll 16")
#endif
#endif
#define HK_INLINE static inline __attribute__((always_inline))
/* Hides a value from the optimizer: gcc would hoist the addresses of all cases of a switch above it and spill them. */
#define HK_OPAQUE(pointer) __asm__("" : "+r"(pointer))

/* Keeps a loaded vector in its register; gcc would otherwise fold the load into each FMA. */
#if defined(__x86_64__)
#define HK_HOLD(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define HK_HOLD(v) __asm__("" : "+w"(v))
#else
#define HK_HOLD(v) ((void)0)
#endif

/* Applies the epilogue to the vector of sums v; r is the residual. Expects nonzero flags. */
HK_INLINE v_f32 fuse_vector(const hk_dw_fuse *e, v_f32 v, v_f32 scale, v_f32 bias, v_f32 r) {
  if (e->flags & HK_DW_AFFINE) v = v_fma(v, scale, bias);
  if (e->flags & HK_DW_BEFORE) v = v_fma(v_set1(e->beta), r, v);
  if (e->flags & HK_DW_CLAMP) v = v_min(v_set1(e->hi), v_max(v_set1(e->lo), v));
  if (e->flags & HK_DW_AFTER) v = v_fma(v_set1(e->beta), r, v);
  return v;
}
