/* Long depthwise filters for f16; see dw_toeplitz.cuh. */
#define TYPE HK_CU_F16
#define MMA_TYPE "f16"
#include "dw_toeplitz.cuh"
KERNELS(hk_dw_toeplitz_f16_8, 8, 4, 8)
KERNELS(hk_dw_toeplitz_f16_32, 32, 3, 7)
KERNELS(hk_dw_toeplitz_f16_64, 64, 3, 5)
