/* Groups of 16 channels each, 3x3; see bundle.cuh. */
#include "cuda/instance.cuh"

#include "cuda/grouped/bundle.cuh"
INSTANCE(BUNDLE, NAMED(hk_bundle, s1), 1)
INSTANCE(BUNDLE, NAMED(hk_bundle, s2), 2)
