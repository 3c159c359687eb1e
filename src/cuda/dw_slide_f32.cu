/* Depthwise 3x3, 5x5, 7x7 of f32 images, channels-last; see dw_slide.cuh. */
#define TYPE HK_CU_F32
#define TYPE_BYTES 4
#include "dw_slide.cuh"
PAIR(hk_dw_slide_f32_3, 3, 1, 7, 2)
PAIR(hk_dw_slide_f32_5, 5, 1, 7, 3)
PAIR(hk_dw_slide_f32_7, 7, 1, 4, 3)
PAIR(hk_dw_slide_f32_3s2, 3, 2, 4, 1)
PAIR(hk_dw_slide_f32_5s2, 5, 2, 4, 3)
PAIR(hk_dw_slide_f32_7s2, 7, 2, 4, 3)
