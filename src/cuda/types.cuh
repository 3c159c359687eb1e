/* Element types on the device: loads and stores that take the type as a value, with f32 in between. No toolkit
 * header is included, so NVRTC can read this. The type is uniform over a launch: the switch costs a predicted
 * branch. */
#ifndef HK_CUDA_TYPES_CUH
#define HK_CUDA_TYPES_CUH
#include "cuda/params.h"

#define HK_DEV static __device__ __forceinline__
typedef unsigned long long hk_cu_u64;
typedef unsigned int hk_cu_u32;
typedef unsigned short hk_cu_u16;
typedef unsigned char hk_cu_u8;

HK_DEV int div_by(int n, hk_cu_divisor by) {
  return (int)((__umulhi((hk_cu_u32)n, by.mul) + (hk_cu_u32)n) >> by.shift);
}

HK_DEV float f32_from_f16(hk_cu_u16 h) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
  return v;
}
HK_DEV float f32_from_bf16(hk_cu_u16 h) { return __uint_as_float((hk_cu_u32)h << 16); }
HK_DEV hk_cu_u16 f16_from_f32(float v) {
  hk_cu_u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}
HK_DEV hk_cu_u16 bf16_from_f32(float v) {
  hk_cu_u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}
/* e4m3: bias 7, no infinity, 0x7f is NaN. */
HK_DEV float f32_from_f8(hk_cu_u8 b) {
  const int e = (b >> 3) & 15, m = b & 7;
  float v = e ? __uint_as_float((hk_cu_u32)(e + 120) << 23 | (hk_cu_u32)m << 20) : (float)m * 0x1p-9f;
  if ((b & 127) == 127) v = __uint_as_float(0x7fc00000u);
  return b & 128 ? -v : v;
}
/* Half to even; values beyond the largest finite one saturate to 448, NaN stays NaN. */
HK_DEV hk_cu_u8 f8_from_f32(float v) {
  const hk_cu_u32 u = __float_as_uint(v), s = u >> 24 & 128, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return (hk_cu_u8)(s | 127);
  if (a >= 0x43e80000u) return (hk_cu_u8)(s | 126);
  if (a < 0x3c800000u) return (hk_cu_u8)(s | (hk_cu_u32)__float2int_rn(__uint_as_float(a) * 512.0f));
  const hk_cu_u32 r = a + 0x7ffffu + (a >> 20 & 1);
  const hk_cu_u32 q = (r >> 20) - (120u << 3);
  return (hk_cu_u8)(s | (q > 126 ? 126 : q));
}

HK_DEV float load_f32(const void *p, hk_cu_i64 i, int type) {
  switch (type) {
    case HK_CU_F32: return ((const float *)p)[i];
    case HK_CU_F64: return (float)((const double *)p)[i];
    case HK_CU_F16: return f32_from_f16(((const hk_cu_u16 *)p)[i]);
    case HK_CU_BF16: return f32_from_bf16(((const hk_cu_u16 *)p)[i]);
    case HK_CU_S8: return (float)((const signed char *)p)[i];
    case HK_CU_U8: return (float)((const hk_cu_u8 *)p)[i];
    case HK_CU_S32: return (float)((const int *)p)[i];
    default: return f32_from_f8(((const hk_cu_u8 *)p)[i]);
  }
}
HK_DEV double load_f64(const void *p, hk_cu_i64 i, int type) {
  return type == HK_CU_F64 ? ((const double *)p)[i] : (double)load_f32(p, i, type);
}
HK_DEV int load_s32(const void *p, hk_cu_i64 i, int type) {
  return type == HK_CU_S8   ? ((const signed char *)p)[i]
         : type == HK_CU_U8 ? ((const hk_cu_u8 *)p)[i]
                            : ((const int *)p)[i];
}

/* NaN becomes 0, as in the library's saturating casts in C; rounding is half to even. */
HK_DEV int saturate(float v, int lo, int hi) {
  if (!(v == v)) return 0;
  return v <= (float)lo ? lo : v >= (float)hi ? hi : __float2int_rn(v);
}
HK_DEV void store_f32(void *p, hk_cu_i64 i, int type, float v) {
  switch (type) {
    case HK_CU_F32: ((float *)p)[i] = v; break;
    case HK_CU_F64: ((double *)p)[i] = v; break;
    case HK_CU_F16: ((hk_cu_u16 *)p)[i] = f16_from_f32(v); break;
    case HK_CU_BF16: ((hk_cu_u16 *)p)[i] = bf16_from_f32(v); break;
    case HK_CU_S8: ((signed char *)p)[i] = (signed char)saturate(v, -128, 127); break;
    case HK_CU_U8: ((hk_cu_u8 *)p)[i] = (hk_cu_u8)saturate(v, 0, 255); break;
    case HK_CU_S32: ((int *)p)[i] = __float2int_rn(v); break;
    default: ((hk_cu_u8 *)p)[i] = f8_from_f32(v); break;
  }
}
/* One rounding from f64 to the narrow types: through f32 rounded to odd, which the second rounding cannot notice. */
HK_DEV float f32_odd_from_f64(double v) {
  const float z = __double2float_rz(v);
  if ((double)z != v && v == v) return __uint_as_float(__float_as_uint(z) | 1u);
  return z;
}
HK_DEV void store_f64(void *p, hk_cu_i64 i, int type, double v) {
  if (type == HK_CU_F64) ((double *)p)[i] = v;
  else if (type == HK_CU_F32) ((float *)p)[i] = (float)v;
  else store_f32(p, i, type, f32_odd_from_f64(v));
}
#endif
