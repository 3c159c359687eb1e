/* Grouped and depthwise 3x3 of bf16 images, groups of up to 8 channels; see octet.cuh. */
#define TYPE HK_CU_BF16
#define MMA_TYPE "bf16"
#include "octet.cuh"
KERNELS(hk_octet_bf16_s1, 1)
KERNELS(hk_octet_bf16_s2, 2)
