/* Long depthwise filters for f32 by three tf32 products; see split.cuh. */
#include "cuda/depthwise/split.cuh"
KERNEL(hk_dw_split, 1)
KERNEL(hk_dw_split_epi, 0)
