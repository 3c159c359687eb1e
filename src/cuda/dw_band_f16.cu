/* Depthwise 5x5 and 7x7 of f16 images on the tensor cores; see dw_band.cuh. */
#define TYPE HK_CU_F16
#define MMA_TYPE "f16"
#include "dw_band.cuh"
KERNELS(hk_dw_band_f16_5x5, 5, 5)
KERNELS(hk_dw_band_f16_5x8, 5, 8)
KERNELS(hk_dw_band_f16_7x5, 7, 5)
KERNELS(hk_dw_band_f16_7x8, 7, 8)
