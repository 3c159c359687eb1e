/* Convolution of few input channels; see stem.cuh. */
#include "cuda/instance.cuh"

#include "cuda/grouped/stem.cuh"
INSTANCE(KERNEL, TYPED(hk_stem), 0)
INSTANCE(KERNEL, NAMED(hk_stem, transposed), 1)
