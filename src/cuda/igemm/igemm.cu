/* The wgmma kernels of one operand type, one per row of kernels.inc. */
#include "cuda/instance.cuh"

#include "cuda/igemm/igemm.cuh"
#define KERNEL(wgs, mi, nc, bn, stages, chunk, cm, cn, split, tag)                                                     \
  extern "C" __global__ void __launch_bounds__(128 * (nc + 1), 1)                                                      \
      NAMED(hk_wgmma, tag)(const __grid_constant__ hk_cu_launch P) {                                                   \
    const igemm_tile t = {mi, nc, bn, stages, cm, cn, split, chunk, PARTS, wgs};                                       \
    igemm_body(&P, TYPE, t);                                                                                           \
  }
#if PARTS == 2
#define ROW(...)
#define SPLIT(mi, nc, ...) KERNEL(nc, mi, nc, __VA_ARGS__)
#else
#define ROW(mi, nc, ...) KERNEL(nc, mi, nc, __VA_ARGS__)
#define SPLIT(...)
#endif
#if PARTS == 2 || TYPE_BYTES == 1
#define WIDE(...)
#define PING_PONG(...)
#else
#define WIDE(mi, nc, ...) KERNEL(nc, mi, nc, __VA_ARGS__)
#define PING_PONG(mi, nc, ...) KERNEL(1, mi, nc, __VA_ARGS__)
#endif
#include "cuda/igemm/kernels.inc"
