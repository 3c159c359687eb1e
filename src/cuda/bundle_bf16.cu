/* Groups of sixteens of bf16 channels, 3x3; see bundle.cuh. */
#define TYPE HK_CU_BF16
#define MMA_TYPE "bf16"
#include "bundle.cuh"
BUNDLE(hk_bundle_bf16_s1, 1)
BUNDLE(hk_bundle_bf16_s2, 2)
