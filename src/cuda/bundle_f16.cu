/* Groups of sixteens of f16 channels, 3x3; see bundle.cuh. */
#define TYPE HK_CU_F16
#define MMA_TYPE "f16"
#include "bundle.cuh"
BUNDLE(hk_bundle_f16_s1, 1)
BUNDLE(hk_bundle_f16_s2, 2)
