/* What the row kernels share: unrolling, and the fused epilogue of one vector. Include a vocabulary first. */
#include "cpu/ukernel.h"

#ifndef HK_UNROLL
#ifdef __clang__
#define HK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HK_UNROLL _Pragma("GCC unroll 16")
#endif
#endif
#define HK_INLINE static inline __attribute__((always_inline))
/* Keeps gcc from computing the addresses of all cases of a switch before it, and from spilling them. */
#define HK_OPAQUE(pointer) __asm__("" : "+r"(pointer))

/* Keeps a loaded vector in its register: gcc would rather load it again inside each multiply-add. */
#if defined(__x86_64__)
#define HK_HOLD(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define HK_HOLD(v) __asm__("" : "+w"(v))
#else
#define HK_HOLD(v) ((void)0)
#endif

/* v is one vector of sums, r the residual there; flags are known to be nonzero */
HK_INLINE v_f32 fuse_vector(const hk_dw_fuse *e, v_f32 v, v_f32 scale, v_f32 bias, v_f32 r) {
  if (e->flags & HK_DW_AFFINE) v = v_fma(v, scale, bias);
  if (e->flags & HK_DW_BEFORE) v = v_fma(v_set1(e->beta), r, v);
  if (e->flags & HK_DW_CLAMP) v = v_min(v_set1(e->hi), v_max(v_set1(e->lo), v));
  if (e->flags & HK_DW_AFTER) v = v_fma(v_set1(e->beta), r, v);
  return v;
}
