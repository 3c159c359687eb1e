/* Long depthwise filters for bf16; see dw_toeplitz.cuh. */
#define TYPE HK_CU_BF16
#define MMA_TYPE "bf16"
#include "dw_toeplitz.cuh"
KERNELS(hk_dw_toeplitz_bf16_8, 8, 4, 8)
KERNELS(hk_dw_toeplitz_bf16_32, 32, 3, 7)
KERNELS(hk_dw_toeplitz_bf16_64, 64, 3, 5)
