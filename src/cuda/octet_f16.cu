/* Grouped and depthwise 3x3 of f16 images, groups of up to 8 channels; see octet.cuh. */
#define TYPE HK_CU_F16
#define MMA_TYPE "f16"
#include "octet.cuh"
KERNELS(hk_octet_f16_s1, 1)
KERNELS(hk_octet_f16_s2, 2)
