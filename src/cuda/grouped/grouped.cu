/* Grouped and depthwise kernels of 16-bit types; see grouped.cuh. */
#include "cuda/instance.cuh"

#include "cuda/grouped/grouped.cuh"
INSTANCE(KERNEL, NAMED(hk_grouped, walk), 0, 3)
INSTANCE(KERNEL, NAMED(hk_grouped, roll3), 3, 3)
INSTANCE(KERNEL, NAMED(hk_grouped, roll5), 5, 2)
INSTANCE(KERNEL, NAMED(hk_grouped, roll7), 7, 2)
