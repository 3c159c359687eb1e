/* Long depthwise filters of 16-bit rows, channels-last; see turned.cuh. */
#include "cuda/instance.cuh"

#include "cuda/depthwise/transposed.cuh"
INSTANCE(TRANSPOSED, TYPED(hk_dw_transposed))
