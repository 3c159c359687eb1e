/* Vocabulary of plain C for f32 kernels: a vector is one float. Rules as in ../x86/vec_avx2.h. */
#ifndef HK_VEC_SCALAR_H
#define HK_VEC_SCALAR_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#define HK_VEC scalar
#define HK_VW 1
#define HK_VREGS 16
#define HK_MASKS_FREE 0 /* masked loads and stores are as fast as whole ones */
#define HK_MUL_FIRST 0 /* the first product of a sum is mul + add, not FMA (tiles.tmpl.h) */

typedef float v_f32;
typedef int32_t v_i32;
typedef int v_mask;

static inline v_f32 v_zero(void) { return 0.0f; }
static inline v_f32 v_set1(float a) { return a; }
static inline v_f32 v_bcast(const float *p) { return *p; }
static inline v_f32 v_load(const float *p) { return *p; }
static inline void v_store(float *p, v_f32 v) { *p = v; }
#define HK_NT_BLOCKS 0 /* vectors per cache line that non-temporal stores fill; 0: plain stores */
static inline void v_store_nt(float *p, v_f32 v) { *p = v; }
static inline void v_fence(void) {}
static inline v_mask v_tail(int64_t n) { return n > 0; }
static inline v_f32 v_load_m(const float *p, v_mask m) { return m ? *p : 0.0f; }
static inline void v_store_m(float *p, v_f32 v, v_mask m) { if (m) *p = v; }
static inline v_f32 v_fma(v_f32 a, v_f32 b, v_f32 c) { return a * b + c; }
static inline v_f32 v_fnma(v_f32 a, v_f32 b, v_f32 c) { return c - a * b; }
static inline void v_transpose(v_f32 v[1]) { (void)v; }
static inline void v_deinterleave3(const float *x, v_f32 v[3]) {
  for (int c = 0; c < 3; c++) v[c] = x[c];
}
static inline void v_deinterleave(const float *x, int64_t step, v_f32 v[8]) {
  (void)step;
  for (int c = 0; c < 8; c++) v[c] = x[c];
}
static inline v_f32 v_add(v_f32 a, v_f32 b) { return a + b; }
static inline v_f32 v_sub(v_f32 a, v_f32 b) { return a - b; }
static inline v_f32 v_mul(v_f32 a, v_f32 b) { return a * b; }
static inline v_f32 v_div(v_f32 a, v_f32 b) { return a / b; }
static inline v_f32 v_min(v_f32 a, v_f32 b) { return a < b ? a : b; }
static inline v_f32 v_max(v_f32 a, v_f32 b) { return a > b ? a : b; }
static inline v_f32 v_abs(v_f32 a) { return fabsf(a); }
static inline v_f32 v_round(v_f32 a) { return nearbyintf(a); }
static inline v_i32 v_to_i32(v_f32 a) { return (int32_t)nearbyintf(a); }
static inline v_f32 v_exp2i(v_i32 e) {
  const int32_t bits = (int32_t)((uint32_t)(e + 127) << 23);
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
static inline v_mask v_lt(v_f32 a, v_f32 b) { return a < b; }
static inline v_mask v_isnan(v_f32 a) { return a != a; }
static inline v_f32 v_select(v_mask m, v_f32 a, v_f32 b) { return m ? a : b; }
static inline v_f32 v_copysign(v_f32 a, v_f32 b) { return copysignf(a, b); }
static inline float v_sum(v_f32 a) { return a; }
static inline void v_prefetch(const void *p) { (void)p; }
static inline void v_store_n(float *p, v_f32 v, int64_t n) { if (n > 0) *p = v; }
static inline v_i32 v_load_i32(const int32_t *p) { return *p; }
static inline v_f32 v_permute(v_f32 a, v_i32 index) { (void)index; return a; }
static inline v_f32 v_permute_quads(v_f32 a, v_i32 index) { return v_permute(a, index); }
static inline v_f32 v_even(v_f32 a, v_f32 b) { (void)b; return a; }
static inline v_f32 v_odd(v_f32 a, v_f32 b) { (void)a; return b; }
static inline v_f32 v_load_n(const float *p, int64_t n) { return n > 0 ? *p : 0.0f; }
#endif
