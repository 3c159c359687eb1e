/* hk_fill: stores the epilogue of 0 to runs of 8 adjacent channels, 16-byte aligned, of f32 or 16-bit values, counted
 * by by_k and by_kg in runs. A thread keeps its run of channels and walks over pixels, so that without a residual what
 * it stores is made once. The kernels of a chain may start early: what they store is disjoint. */
#include "cuda/epilogue.cuh"
#include "cuda/ptx.cuh"

typedef struct fill_value {
  uint4 low, high; /* high: of f32 */
} fill_value;

/* Channels `first` to first + 7 over all groups; the residual lies at co. */
HK_DEV fill_value fill_make(const hk_cu_direct *P, hk_cu_i64 first, hk_cu_i64 co) {
  const hk_cu_epi *e = &P->e;
  const int type = P->g.y_type;
  float v[8], c[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    c[i] = e->residual ? e->beta * load_f32(e->c, co + i, type) : 0.0f;
    v[i] = e->scale ? 0.0f * ((const float *)e->scale)[e->scale_one ? 0 : first + i] : 0.0f;
    if (e->bias) v[i] += ((const float *)e->bias)[first + i];
    if (e->residual == 2) v[i] += c[i];
  }
  act_run(8, e->act, e->a, e->b, NULL, v);
  hk_cu_u32 w[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float r = e->residual == 1 ? v[i] + c[i] : v[i];
    if (type == HK_CU_F32) w[i] = __float_as_uint(r);
    else w[i / 2] |= (hk_cu_u32)(type == HK_CU_F16 ? f16_from_f32(r) : bf16_from_f32(r)) << 16 * (i % 2);
  }
  return (fill_value){make_uint4(w[0], w[1], w[2], w[3]), make_uint4(w[4], w[5], w[6], w[7])};
}

extern "C" __global__ void __launch_bounds__(256) hk_fill(const __grid_constant__ hk_cu_direct P) {
  const hk_cu_geom *g = &P.g;
  const int runs = (int)P.by_k.d, thread = (int)(blockIdx.x * blockDim.x + threadIdx.x), own = div_by(thread, P.by_k);
  const int run = thread - own * runs, group = div_by(run, P.by_kg), wide = g->y_type == HK_CU_F32;
  const int step = div_by((int)(gridDim.x * blockDim.x), P.by_k); /* at least 1: see fill.c */
  const hk_cu_i64 first = (hk_cu_i64)run * 8, k = first - group * g->kg;
  const hk_cu_i64 yk = channel_offset(g, &g->y, 0, group, k), ck = channel_offset(g, &g->c, 0, group, k);
  const int pixels = div_by((int)P.outputs, P.by_k);
  fill_value v;
  pdl_trigger();
  if (!P.e.residual) v = fill_make(&P, first, 0);
  for (int pixel = own; own < step && pixel < pixels; pixel += step) {
    int rest = pixel, p[3];
#pragma unroll
    for (int d = 2; d >= 0; --d) {
      const int up = div_by(rest, P.by_out[d]);
      p[d] = rest - up * (int)P.by_out[d].d, rest = up;
    }
    if (P.e.residual) v = fill_make(&P, first, ck + pixel_offset(&g->c, rest, p));
    uint4 *y = (uint4 *)((hk_cu_u8 *)P.e.y + (yk + pixel_offset(&g->y, rest, p)) * (wide ? 4 : 2));
    y[0] = v.low;
    if (wide) y[1] = v.high;
  }
  pdl_wait(); /* whatever follows this launch follows those before it */
}
