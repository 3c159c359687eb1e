/* Long depthwise filters of channels-last bf16 rows; see dw_turned.cuh. */
#define TYPE HK_CU_BF16
#define MMA_TYPE "bf16"
#include "dw_turned.cuh"
TURNED(hk_dw_turned_bf16)
