/* The general tapsum kernel, and the one that adds the slices. */
#include "cuda/gradient/common.cuh"
#include "cuda/gradient/tile.cuh"

/* Adds the partial sums of all slices in a fixed order: eight threads an eighth of the slices each, then their sums. A
 * block finishes 32 outputs. */
extern "C" __global__ void __launch_bounds__(256) hk_tapsum_join(const __grid_constant__ hk_cu_tapsum P) {
  __shared__ float part[8][32];
  const int lane = threadIdx.x % 32, team = threadIdx.x / 32, i = blockIdx.x * 32 + lane;
  float v = 0;
  if (i < P.outputs) {
#pragma unroll 8
    for (int s = team; s < P.slices; s += 8) v += P.sums[(hk_cu_i64)s * P.outputs + i];
  }
  part[team][lane] = v;
  __syncthreads();
  if (team || i >= P.outputs) return;
#pragma unroll
  for (int t = 1; t < 8; ++t) v += part[t][lane];
  tapsum_finish(&P, i, v);
}
