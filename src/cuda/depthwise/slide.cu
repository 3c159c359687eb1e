/* Depthwise 3x3, 5x5, 7x7 of channels-last images; see slide.cuh. */
#include "cuda/instance.cuh"

#include "cuda/depthwise/slide.cuh"
#if TYPE_BYTES == 4
#define LONG 4
#else
#define LONG 7
#endif
INSTANCE(PAIR, NAMED(hk_dw_slide, 3), 3, 1, 7, 2)
INSTANCE(PAIR, NAMED(hk_dw_slide, 5), 5, 1, 7, 3)
INSTANCE(PAIR, NAMED(hk_dw_slide, 7), 7, 1, LONG, 3)
INSTANCE(PAIR, NAMED(hk_dw_slide, 3s2), 3, 2, 4, 1)
INSTANCE(PAIR, NAMED(hk_dw_slide, 5s2), 5, 2, LONG, 3)
INSTANCE(PAIR, NAMED(hk_dw_slide, 7s2), 7, 2, LONG, 3)
