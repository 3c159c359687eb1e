/* The few-channel kernel for f16; see stem.cuh. */
#define TYPE HK_CU_F16
#define MMA_TYPE "f16"
#include "stem.cuh"
KERNEL(hk_stem_f16, 0)
KERNEL(hk_stem_f16_turned, 1)
