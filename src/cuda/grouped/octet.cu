/* Grouped and depthwise 3x3, groups of up to 8 channels; see octet.cuh. */
#include "cuda/instance.cuh"

#include "cuda/grouped/octet.cuh"
INSTANCE(KERNELS, NAMED(hk_octet, s1), 1)
INSTANCE(KERNELS, NAMED(hk_octet, s2), 2)
