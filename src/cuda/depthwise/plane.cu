/* Depthwise 3x3, 5x5, 7x7 of channels-first images; see plane.cuh. */
#include "cuda/instance.cuh"

#include "cuda/depthwise/plane.cuh"
INSTANCE(PAIR, NAMED(hk_dw_plane, 3), 3, 1, 4)
INSTANCE(PAIR, NAMED(hk_dw_plane, 5), 5, 1, 3)
INSTANCE(PAIR, NAMED(hk_dw_plane, 7), 7, 1, 2)
INSTANCE(PAIR, NAMED(hk_dw_plane, 3s2), 3, 2, 4)
INSTANCE(PAIR, NAMED(hk_dw_plane, 5s2), 5, 2, 3)
INSTANCE(PAIR, NAMED(hk_dw_plane, 7s2), 7, 2, 2)
