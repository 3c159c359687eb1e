/* The general kernels: hk_direct_f32, hk_direct_f64, hk_direct_s32, by accumulator type, hk_direct_staged, and
 * hk_recompute_nan. See direct.tmpl.cuh. s32 sums are finished in f64, which represents them exactly. */
#include "cuda/passes/staged.cuh"

#define SUM float
#define REAL float
#define PARAM float
#define IS_INT 0
#define LOAD load_f32
#define LOAD_REAL load_f32
#define STORE store_f32
#define NAME(x) x##_f32
#include "cuda/passes/direct.tmpl.cuh"

/* Whether 16 bytes contain a NaN of y's type. */
HK_DEV int nan_any(uint4 v, int type) {
  const hk_cu_u32 w[4] = {v.x, v.y, v.z, v.w}, inf = type == HK_CU_F32    ? 0x7f800000u
                                                     : type == HK_CU_BF16 ? 0x7f80u
                                                                          : 0x7c00u;
  int any = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    any |= type == HK_CU_F32 ? (w[i] & 0x7fffffffu) > inf : (w[i] & 0x7fffu) > inf || (w[i] >> 16 & 0x7fffu) > inf;
  return any;
}

/* Recomputes every NaN of a dense, 16-byte aligned y of f32 or 16-bit values, after a product with zeros between
 * groups made an Inf of one group a NaN of another. */
extern "C" __global__ void __launch_bounds__(256) hk_recompute_nan(const __grid_constant__ hk_cu_direct P) {
  const int type = P.g.y_type, per = type == HK_CU_F32 ? 4 : 8;
  const hk_cu_i64 pieces = (P.outputs + per - 1) / per, step = (hk_cu_i64)gridDim.x * blockDim.x;
  for (hk_cu_i64 q = (hk_cu_i64)blockIdx.x * blockDim.x + threadIdx.x; q < pieces; q += step) {
    const hk_cu_i64 first = q * per, end = first + per < P.outputs ? first + per : P.outputs;
    if (first + per <= P.outputs && !nan_any(((const uint4 *)P.e.y)[q], type)) continue;
#pragma unroll 1
    for (hk_cu_i64 i = first; i < end; ++i) {
      const float v = load_f32(P.e.y, i, type);
      if (v != v) output_f32(&P, i);
    }
  }
}

/* Stores the epilogue of 0 to runs of 8 adjacent channels, 16-byte aligned, of f32 or 16-bit values: one run per
 * thread, counted by by_k and by_kg in runs. */
extern "C" __global__ void __launch_bounds__(256) hk_fill(const __grid_constant__ hk_cu_direct P) {
  const hk_cu_geom *g = &P.g;
  const hk_cu_epi *e = &P.e;
  const hk_cu_i64 step = (hk_cu_i64)gridDim.x * blockDim.x;
  for (hk_cu_i64 q = (hk_cu_i64)blockIdx.x * blockDim.x + threadIdx.x; q < P.outputs; q += step) {
    int rest = (int)q, up = div_by(rest, P.by_k), p[3];
    const int run = rest - up * (int)P.by_k.d, group = div_by(run, P.by_kg);
    const hk_cu_i64 first = (hk_cu_i64)run * 8, k = first - group * g->kg;
    rest = up;
#pragma unroll
    for (int d = 2; d >= 0; --d) up = div_by(rest, P.by_out[d]), p[d] = rest - up * (int)P.by_out[d].d, rest = up;
    const hk_cu_i64 yo = channel_offset(g, &g->y, 0, group, k) + pixel_offset(&g->y, rest, p),
                    co = channel_offset(g, &g->c, 0, group, k) + pixel_offset(&g->c, rest, p);
    float v[8], c[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      c[i] = e->residual ? e->beta * load_f32(e->c, co + i, g->y_type) : 0.0f;
      v[i] = affine_f32(e, 0.0f, first + i) + (e->residual == 2 ? c[i] : 0.0f);
    }
    act_run(8, e->act, e->a, e->b, NULL, v);
    alignas(16) hk_cu_u32 w[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float r = e->residual == 1 ? v[i] + c[i] : v[i];
      if (g->y_type == HK_CU_F32) w[i] = __float_as_uint(r);
      else if (i % 2 == 0) w[i / 2] = g->y_type == HK_CU_F16 ? f16_from_f32(r) : bf16_from_f32(r);
      else w[i / 2] |= (hk_cu_u32)(g->y_type == HK_CU_F16 ? f16_from_f32(r) : bf16_from_f32(r)) << 16;
    }
    const int wide = g->y_type == HK_CU_F32;
    uint4 *y = (uint4 *)((hk_cu_u8 *)e->y + yo * (wide ? 4 : 2));
    y[0] = make_uint4(w[0], w[1], w[2], w[3]);
    if (wide) y[1] = make_uint4(w[4], w[5], w[6], w[7]);
  }
}

#define SUM double
#define REAL double
#define PARAM double
#define IS_INT 0
#define LOAD load_f64
#define LOAD_REAL load_f64
#define STORE store_f64
#define NAME(x) x##_f64
#include "cuda/passes/direct.tmpl.cuh"

#define SUM int
#define REAL double
#define PARAM float
#define IS_INT 1
#define LOAD load_s32
#define LOAD_REAL load_f64
#define STORE store_f64
#define NAME(x) x##_s32
#include "cuda/passes/direct.tmpl.cuh"
