/* Element types: what a stored value means, and how a number becomes one (half to even, integers saturated, NaN kept,
 * f8 e4m3 saturating to 448 as the OCP format's finite form has no Inf). */
#include <math.h>
#include <string.h>

#include "core/core.h"

static const struct {
  const char *name;
  size_t bytes;
} types[] = {{"f32", 4}, {"f64", 8}, {"f16", 2}, {"bf16", 2}, {"s8", 1}, {"u8", 1}, {"s32", 4}, {"f8e4m3", 1}};

bool hk_type_valid(hk_type t) { return (unsigned)t < (unsigned)HK_COUNT(types); }
const char *hk_type_name(hk_type t) { return hk_type_valid(t) ? types[t].name : NULL; }
size_t hk_type_bytes(hk_type t) { return hk_type_valid(t) ? types[t].bytes : 0; }
bool hk_type_is_int8(hk_type t) { return t == HK_S8 || t == HK_U8; }

static uint64_t bits64(double d) {
  uint64_t u;
  memcpy(&u, &d, 8);
  return u;
}
static float as_f32(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

/* A small float from a double in one rounding: exp_bits and man_bits; returns sign|exp|man; overflow gives `over`. */
static uint32_t narrow(double d, int exp_bits, int man_bits, uint32_t over, uint32_t nan) {
  const uint32_t sign = (uint32_t)(bits64(d) >> 63) << (exp_bits + man_bits);
  const int bias = (1 << (exp_bits - 1)) - 1;
  const double a = fabs(d);
  if (d != d) return sign | nan;
  if (a == 0) return sign;
  if (isinf(a)) return sign | over;
  int e;
  frexp(a, &e); /* a = m * 2^e, m in [0.5, 1) */
  e -= 1;
  const int shift = e < 1 - bias ? 1 - bias : e; /* denormals share the smallest exponent */
  double q = ldexp(a, man_bits - shift);         /* units in the last place */
  q = nearbyint(q);
  uint32_t code = (uint32_t)q;
  if (e >= 1 - bias) code += (uint32_t)(e + bias - 1) << man_bits; /* the hidden bit adds the last 1 */
  return sign | (code > over ? over : code);
}

float hk_f16_to_f32(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 0x3ff;
  if (e == 31) return as_f32(sign | 0x7f800000u | m << 13);
  if (e) return as_f32(sign | (e + 112) << 23 | m << 13);
  const float tiny = (float)m * 0x1p-24f;
  return sign ? -tiny : tiny;
}
uint16_t hk_f64_to_f16(double d) { return (uint16_t)narrow(d, 5, 10, 0x7c00, 0x7e00); }
uint16_t hk_f32_to_f16(float f) { return hk_f64_to_f16(f); }

float hk_bf16_to_f32(uint16_t h) { return as_f32((uint32_t)h << 16); }
uint16_t hk_f32_to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if (f != f) return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
uint16_t hk_f64_to_bf16(double d) { return (uint16_t)narrow(d, 8, 7, 0x7f80, 0x7fc0); }

float hk_f8_to_f32(uint8_t b) {
  const int e = b >> 3 & 15, m = b & 7;
  float v;
  if (e == 15 && m == 7) v = NAN;
  else v = e ? ldexpf((float)(8 + m), e - 10) : (float)m * 0x1p-9f;
  return b & 0x80 ? -v : v;
}
uint8_t hk_f64_to_f8(double d) { return (uint8_t)narrow(d, 4, 3, 0x7e, 0x7f); }

static double saturate(double v, double lo, double hi) {
  if (v != v) return 0;
  v = nearbyint(v);
  return v < lo ? lo : v > hi ? hi : v;
}

double hk_load_element(hk_type t, const void *base, int64_t i) {
  switch (t) {
  case HK_F32: return ((const float *)base)[i];
  case HK_F64: return ((const double *)base)[i];
  case HK_F16: return hk_f16_to_f32(((const uint16_t *)base)[i]);
  case HK_BF16: return hk_bf16_to_f32(((const uint16_t *)base)[i]);
  case HK_S8: return ((const int8_t *)base)[i];
  case HK_U8: return ((const uint8_t *)base)[i];
  case HK_S32: return ((const int32_t *)base)[i];
  case HK_F8E4M3: return hk_f8_to_f32(((const uint8_t *)base)[i]);
  }
  return 0;
}

void hk_store_element(hk_type t, void *base, int64_t i, double v) {
  switch (t) {
  case HK_F32: ((float *)base)[i] = (float)v; break;
  case HK_F64: ((double *)base)[i] = v; break;
  case HK_F16: ((uint16_t *)base)[i] = hk_f64_to_f16(v); break;
  case HK_BF16: ((uint16_t *)base)[i] = hk_f64_to_bf16(v); break;
  case HK_S8: ((int8_t *)base)[i] = (int8_t)saturate(v, -128, 127); break;
  case HK_U8: ((uint8_t *)base)[i] = (uint8_t)saturate(v, 0, 255); break;
  case HK_S32: ((int32_t *)base)[i] = (int32_t)saturate(v, -2147483648.0, 2147483647.0); break;
  case HK_F8E4M3: ((uint8_t *)base)[i] = hk_f64_to_f8(v); break;
  }
}

hk_status hk_convert(hk_type from, const void *src, hk_type to, void *dst, int64_t count) {
  if (!hk_type_valid(from) || !hk_type_valid(to))
    return hk_fail(HK_INVALID, "hk_convert: types %d and %d must be hk_type values", (int)from, (int)to);
  if (count < 0 || (count > 0 && (!src || !dst)))
    return hk_fail(HK_INVALID, "hk_convert: count %lld must be >= 0 and src, dst not NULL", (long long)count);
  for (int64_t i = 0; i < count; i++) hk_store_element(to, dst, i, hk_load_element(from, src, i));
  return HK_OK;
}
