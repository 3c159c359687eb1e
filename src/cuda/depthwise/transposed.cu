/* Long depthwise filters of 16-bit rows, channels-last; see transposed.cuh. */
#include "cuda/instance.cuh"

#include "cuda/depthwise/transposed.cuh"
INSTANCE(TRANSPOSED, TYPED(hk_dw_transposed))
