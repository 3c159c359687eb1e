/* f16 and bf16 to and from the bits of f32, one at a time, without hardware. Narrowing rounds to nearest even and keeps
 * NaN. */
#ifndef HK_HALF_TMPL_H
#define HK_HALF_TMPL_H
#include <stdint.h>
#include <string.h>

static inline uint16_t narrow_bf16(uint32_t u) {
  const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? (u >> 16 | 0x40) : rounded);
}

/* Denormals of f16 are counted as integers in units of 2^-24: as floats they would read as 0 where the
 * caller flushes denormals, which F16C does not. */
static inline uint32_t widen_half(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
  if ((h & 0x7c00) == 0x7c00) return sign | rest | 0x7f800000;
  if (h & 0x7c00) return sign | (rest + (112u << 23));
  const float f = (float)(h & 0x3ff) * 0x1p-24f;
  uint32_t u;
  memcpy(&u, &f, 4);
  return sign | u;
}

static inline uint16_t narrow_half(uint32_t u) {
  const uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (a >= 0x47800000) return (uint16_t)(sign | 0x7c00); /* 65536 and above */
  if (a < 0x38800000) { /* below 2^-14: adding 0.5 rounds to units of 2^-24 */
    float f;
    const float magic = 0.5f;
    memcpy(&f, &a, 4);
    f += magic;
    uint32_t r, m;
    memcpy(&r, &f, 4);
    memcpy(&m, &magic, 4);
    return (uint16_t)(sign | (r - m));
  }
  const uint32_t rounded = a + 0xfff + (a >> 13 & 1) - (112u << 23);
  return (uint16_t)(sign | rounded >> 13);
}
#endif
