/* Depthwise 3x3, 5x5, 7x7 of bf16 images, channels-last; see dw_slide.cuh. */
#define TYPE HK_CU_BF16
#define TYPE_BYTES 2
#include "dw_slide.cuh"
PAIR(hk_dw_slide_bf16_3, 3, 1, 7, 2)
PAIR(hk_dw_slide_bf16_5, 5, 1, 7, 3)
PAIR(hk_dw_slide_bf16_7, 7, 1, 7, 3)
PAIR(hk_dw_slide_bf16_3s2, 3, 2, 4, 1)
PAIR(hk_dw_slide_bf16_5s2, 5, 2, 7, 3)
PAIR(hk_dw_slide_bf16_7s2, 7, 2, 7, 3)
