/* The few-channel kernel for bf16; see stem.cuh. */
#define TYPE HK_CU_BF16
#define MMA_TYPE "bf16"
#include "stem.cuh"
KERNEL(hk_stem_bf16, 0)
KERNEL(hk_stem_bf16_turned, 1)
