/* Long depthwise filters of channels-last f16 rows; see dw_turned.cuh. */
#define TYPE HK_CU_F16
#define MMA_TYPE "f16"
#include "dw_turned.cuh"
TURNED(hk_dw_turned_f16)
