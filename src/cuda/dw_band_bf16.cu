/* Depthwise 5x5 and 7x7 of bf16 images on the tensor cores; see dw_band.cuh. */
#define TYPE HK_CU_BF16
#define MMA_TYPE "bf16"
#include "dw_band.cuh"
KERNELS(hk_dw_band_bf16_5x5, 5, 5)
KERNELS(hk_dw_band_bf16_5x8, 5, 8)
KERNELS(hk_dw_band_bf16_7x5, 7, 5)
KERNELS(hk_dw_band_bf16_7x8, 7, 8)
