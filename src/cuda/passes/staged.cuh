/* hk_direct_staged: what follows scale and bias, over f32 sums that another kernel wrote: gates and user functions
 * of kernels that do not fuse them. Read by nvcc and, with the caller's functions, by NVRTC. */
#include "cuda/epilogue.cuh"

#define STAGED 1
#define SUM float
#define REAL float
#define PARAM float
#define IS_INT 0
#define LOAD load_f32
#define LOAD_REAL load_f32
#define STORE store_f32
#define NAME(x) x##_staged
#include "cuda/passes/direct.tmpl.cuh"
#undef STAGED
