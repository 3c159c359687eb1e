/* Depthwise 5x5 and 7x7 of 16-bit images on the tensor cores; see band.cuh. */
#include "cuda/instance.cuh"

#include "cuda/depthwise/band.cuh"
INSTANCE(KERNELS, NAMED(hk_dw_band, 5x5), 5, 5)
INSTANCE(KERNELS, NAMED(hk_dw_band, 5x8), 5, 8)
INSTANCE(KERNELS, NAMED(hk_dw_band, 7x5), 7, 5)
INSTANCE(KERNELS, NAMED(hk_dw_band, 7x8), 7, 8)
