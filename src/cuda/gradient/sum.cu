/* The adding kernel of the filter gradients. */
#include "cuda/gradient/sum.cuh"

extern "C" __global__ void __launch_bounds__(HK_OUTER_ADDERS) hk_outer_sum(const __grid_constant__ hk_cu_outer P) {
  sum_body(&P);
}
