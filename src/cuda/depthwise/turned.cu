/* Long depthwise filters of 16-bit rows, channels-last; see turned.cuh. */
#include "cuda/instance.cuh"

#include "cuda/depthwise/turned.cuh"
INSTANCE(TURNED, TYPED(hk_dw_turned))
