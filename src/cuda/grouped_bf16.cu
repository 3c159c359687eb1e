/* Grouped and depthwise kernels for bf16; see grouped_mma.cuh. */
#define TYPE HK_CU_BF16
#define MMA_TYPE "bf16"
#include "grouped_mma.cuh"
KERNEL(hk_grouped_bf16_walk, 0, 3)
KERNEL(hk_grouped_bf16_roll3, 3, 3)
KERNEL(hk_grouped_bf16_roll5, 5, 2)
KERNEL(hk_grouped_bf16_roll7, 7, 2)
