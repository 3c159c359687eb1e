/* The end of a sum, and the pass that adds the slices of a reduction, for one accumulator type. Expects what
 * finish.tmpl.cuh expects. */

HK_DEV void NAME(complete)(const hk_cu_simt *P, hk_cu_at at, hk_cu_i64 group, hk_cu_i64 k, SUM sum) {
#if IS_INT
  if (P->d.g.y_type == HK_CU_S32) {
    const hk_cu_view *y = &P->d.g.y;
    ((int *)P->d.e.y)[channel_offset(&P->d.g, y, 0, group, k) + pixel_offset(y, at.n, at.p)] =
        (int)NAME(affine)(&P->d.e, sum, at.k);
    return;
  }
#endif
  NAME(finish)(&P->d, at, group, k, NAME(affine)(&P->d.e, sum, at.k), 0);
}

/* One thread per output: the slices in order. */
extern "C" __global__ void __launch_bounds__(256) NAME(hk_simt_slices)(const __grid_constant__ hk_cu_simt P) {
  const hk_cu_i64 step = (hk_cu_i64)gridDim.x * blockDim.x, channels = P.d.g.groups * P.d.g.kg;
  for (hk_cu_i64 i = (hk_cu_i64)blockIdx.x * blockDim.x + threadIdx.x; i < P.d.outputs; i += step) {
    hk_cu_at at;
    const hk_cu_i64 group = NAME(place)(&P.d, i, &at);
    const SUM *from = (const SUM *)P.partial + simt_row(&P, &at) * channels + at.k;
    SUM sum = 0;
#pragma unroll 4
    for (int s = 0; s < P.slices; ++s) sum += from[(hk_cu_i64)s * P.rows * channels];
    NAME(complete)(&P, at, group, at.k - group * P.d.g.kg, sum);
  }
}
