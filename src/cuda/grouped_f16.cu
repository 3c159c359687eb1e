/* Grouped and depthwise kernels for f16; see grouped_mma.cuh. */
#define TYPE HK_CU_F16
#define MMA_TYPE "f16"
#include "grouped_mma.cuh"
KERNEL(hk_grouped_f16_walk, 0, 3)
KERNEL(hk_grouped_f16_roll3, 3, 3)
KERNEL(hk_grouped_f16_roll5, 5, 2)
KERNEL(hk_grouped_f16_roll7, 7, 2)
