/* Shared by the depthwise, grouped and stem kernels: loads of short runs, the epilogue on a run of f32 sums, 16-byte
 * stores. Runs are along channels (one pixel) or along the width (one channel). */
#ifndef HK_CUDA_DW_COMMON_CUH
#define HK_CUDA_DW_COMMON_CUH
#include "cuda/depthwise/params.h"
#include "cuda/epilogue.cuh"
#include "cuda/ptx.cuh"

/* Start of every kernel: lets the next launch begin on idle SMs and waits for the previous one. Nothing that other
 * kernels write or read is accessed earlier. */
HK_DEV void dw_begin(void) {
  pdl_trigger();
  pdl_wait();
}

HK_DEV int dw_type_bytes(int type) { return type == HK_CU_F32 ? 4 : 2; }
HK_DEV float dw_half(int type, hk_cu_u16 h) { return type == HK_CU_BF16 ? f32_from_bf16(h) : f32_from_f16(h); }

/* Two values of a 16-bit pair word, low half first. */
HK_DEV void dw_unpack_pair(int type, hk_cu_u32 u, float *v) {
  if (type == HK_CU_BF16) {
    v[0] = __uint_as_float(u << 16);
    v[1] = __uint_as_float(u & 0xffff0000u);
  } else {
    v[0] = f32_from_f16((hk_cu_u16)u);
    v[1] = f32_from_f16((hk_cu_u16)(u >> 16));
  }
}
HK_DEV hk_cu_u32 dw_pack_pair(int type, float a, float b) {
  hk_cu_u32 r;
  if (type == HK_CU_BF16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}

/* 16 bytes as f32: four values of f32, eight of the 16-bit types. */
HK_DEV void dw_unpack(int type, uint4 u, float *v) {
  if (type == HK_CU_F32) {
    v[0] = __uint_as_float(u.x), v[1] = __uint_as_float(u.y), v[2] = __uint_as_float(u.z), v[3] = __uint_as_float(u.w);
  } else {
    dw_unpack_pair(type, u.x, v), dw_unpack_pair(type, u.y, v + 2);
    dw_unpack_pair(type, u.z, v + 4), dw_unpack_pair(type, u.w, v + 6);
  }
}
HK_DEV uint4 dw_pack(int type, const float *v) {
  if (type == HK_CU_F32)
    return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3]));
  return make_uint4(dw_pack_pair(type, v[0], v[1]), dw_pack_pair(type, v[2], v[3]), dw_pack_pair(type, v[4], v[5]),
                    dw_pack_pair(type, v[6], v[7]));
}

HK_DEV int dw_div(hk_cu_div d, int n) { return d.m ? (int)(__umulhi((unsigned)n, d.m) >> d.s) : n; }

/* Offsets of channel k (over all groups) in y, the residual or f. */
HK_DEV hk_cu_i64 dw_channel(const hk_cu_geom *g, const hk_cu_view *s, int k) {
  const int group = g->kg == 1 ? k : k / (int)g->kg;
  return s->group * group + s->channel * (k - group * (int)g->kg);
}
HK_DEV hk_cu_i64 dw_filter(const hk_cu_geom *g, int k) {
  const int group = g->kg == 1 ? k : k / (int)g->kg;
  return g->f.group * group + g->f.outer * (k - group * (int)g->kg);
}

/* Applies everything between the sums and the conversion. Value i belongs to channel k + i*step (step 0 or 1) and is
 * valid for i < valid; cv holds the residual. */
HK_DEV void dw_finish(const hk_cu_epi *e, int n, int valid, int k, int step, const float *cv, float *v) {
  if (e->scale) {
#pragma unroll
    for (int i = 0; i < n; ++i)
      if (i < valid) v[i] *= ((const float *)e->scale)[e->scale_one ? 0 : k + i * step];
  }
  if (e->bias) {
#pragma unroll
    for (int i = 0; i < n; ++i)
      if (i < valid) v[i] += ((const float *)e->bias)[k + i * step];
  }
  if (e->residual == 2) {
#pragma unroll
    for (int i = 0; i < n; ++i) v[i] += e->beta * cv[i];
  }
  if (e->act) {
    float slope[16];
#pragma unroll
    for (int i = 0; i < n; ++i)
      slope[i] = e->act == HK_CU_PRELU && i < valid ? ((const float *)e->slopes)[k + i * step] : 0.0f;
    act_run(n, e->act, e->a, e->b, slope, v);
  }
  if (e->residual == 1) {
#pragma unroll
    for (int i = 0; i < n; ++i) v[i] += e->beta * cv[i];
  }
}

/* Computes one output by the plain loop. The tensor-core kernels use it where a result is NaN: zeros in their padded
 * operands turn an unrelated Inf into NaN. */
HK_DEV float dw_plain(const hk_cu_dw *P, int type, int n, int p0, int p1, int q, int k) {
  const hk_cu_geom *g = &P->g;
  const int group = k / (int)g->kg;
  float sum = 0.0f;
#pragma unroll 1
  for (int d = 0; d < g->win[0]; ++d)
#pragma unroll 1
    for (int r = 0; r < g->win[1]; ++r)
#pragma unroll 1
      for (int s = 0; s < g->win[2]; ++s) {
        const hk_cu_i64 i0 = p0 * g->stride[0] + d * g->dil[0] - g->lo[0],
                        i1 = p1 * g->stride[1] + r * g->dil[1] - g->lo[1];
        const hk_cu_i64 i2 = q * g->stride[2] + s * g->dil[2] - g->lo[2];
        if (i0 < 0 || i0 >= g->in[0] || i1 < 0 || i1 >= g->in[1] || i2 < 0 || i2 >= g->in[2]) continue;
        const hk_cu_i64 x = n * g->x.outer + g->x.group * group + i0 * g->x.at[0] + i1 * g->x.at[1] + i2 * g->x.at[2];
        const hk_cu_i64 f =
            g->f.group * group + g->f.outer * (k - group * g->kg) + d * g->f.at[0] + r * g->f.at[1] + s * g->f.at[2];
#pragma unroll 1
        for (int c = 0; c < g->cg; ++c)
          sum = fmaf(load_f32(P->x, x + c * g->x.channel, type), load_f32(P->f, f + c * g->f.channel, type), sum);
      }
  return sum;
}

HK_DEV hk_cu_u32 dw_shared(const void *p) { return (hk_cu_u32)__cvta_generic_to_shared(p); }
/* Copies 16 bytes from global to shared memory asynchronously; bytes 0 writes zeros and reads nothing. */
HK_DEV void dw_copy16(hk_cu_u32 dst, const void *src, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
HK_DEV void dw_copy_wait(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif
