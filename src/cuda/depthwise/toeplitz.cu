/* Long depthwise filters of 16-bit rows, channels-first; see toeplitz.cuh. */
#include "cuda/instance.cuh"

#include "cuda/depthwise/toeplitz.cuh"
INSTANCE(KERNELS, NAMED(hk_dw_toeplitz, 8), 8, 4, 8)
INSTANCE(KERNELS, NAMED(hk_dw_toeplitz, 32), 32, 3, 7)
INSTANCE(KERNELS, NAMED(hk_dw_toeplitz, 64), 64, 3, 5)
