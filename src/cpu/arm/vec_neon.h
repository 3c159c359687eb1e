/* Vocabulary of NEON (aarch64) for f32 kernels: a vector is 4 floats. Rules as in ../x86/vec_avx2.h; every mask is a
 * vector of lane masks (v_tail for loads and stores; v_lt, v_isnan for v_select). */
#ifndef HK_VEC_NEON_H
#define HK_VEC_NEON_H
#include <arm_neon.h>
#include <stdint.h>
#define HK_VEC neon
#define HK_VW 4
#define HK_VREGS 32
#define HK_MASKS_FREE 0 /* masked loads and stores are as fast as whole ones */
#define HK_MUL_FIRST 0 /* the first product of a sum is mul + add, not FMA (tiles.tmpl.h) */

typedef float32x4_t v_f32;
typedef int32x4_t v_i32;
typedef uint32x4_t v_mask;

static inline v_f32 v_zero(void) { return vdupq_n_f32(0.0f); }
static inline v_f32 v_set1(float a) { return vdupq_n_f32(a); }
static inline v_f32 v_bcast(const float *p) { return vld1q_dup_f32(p); }
static inline v_f32 v_load(const float *p) { return vld1q_f32(p); }
static inline void v_store(float *p, v_f32 v) { vst1q_f32(p, v); }
#define HK_NT_BLOCKS 0 /* vectors per cache line that non-temporal stores fill; 0: plain stores */
static inline void v_store_nt(float *p, v_f32 v) { vst1q_f32(p, v); }
static inline void v_fence(void) {}
static inline v_mask v_tail(int64_t n) {
  static const uint32_t lanes[8] = {~0u, ~0u, ~0u, ~0u, 0, 0, 0, 0};
  const int64_t keep = n < 0 ? 0 : n > 4 ? 4 : n;
  return vld1q_u32(lanes + 4 - keep);
}
static inline v_f32 v_load_m(const float *p, v_mask m) {
  float t[4] = {0, 0, 0, 0};
  if (vgetq_lane_u32(m, 0)) t[0] = p[0];
  if (vgetq_lane_u32(m, 1)) t[1] = p[1];
  if (vgetq_lane_u32(m, 2)) t[2] = p[2];
  if (vgetq_lane_u32(m, 3)) t[3] = p[3];
  return vld1q_f32(t);
}
static inline void v_store_m(float *p, v_f32 v, v_mask m) {
  if (vgetq_lane_u32(m, 0)) p[0] = vgetq_lane_f32(v, 0);
  if (vgetq_lane_u32(m, 1)) p[1] = vgetq_lane_f32(v, 1);
  if (vgetq_lane_u32(m, 2)) p[2] = vgetq_lane_f32(v, 2);
  if (vgetq_lane_u32(m, 3)) p[3] = vgetq_lane_f32(v, 3);
}
static inline v_f32 v_fma(v_f32 a, v_f32 b, v_f32 c) { return vfmaq_f32(c, a, b); }
static inline v_f32 v_fnma(v_f32 a, v_f32 b, v_f32 c) { return vfmsq_f32(c, a, b); }
static inline v_f32 v_add(v_f32 a, v_f32 b) { return vaddq_f32(a, b); }
static inline v_f32 v_sub(v_f32 a, v_f32 b) { return vsubq_f32(a, b); }
static inline v_f32 v_mul(v_f32 a, v_f32 b) { return vmulq_f32(a, b); }
static inline v_f32 v_div(v_f32 a, v_f32 b) { return vdivq_f32(a, b); }
static inline v_f32 v_min(v_f32 a, v_f32 b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
static inline v_f32 v_max(v_f32 a, v_f32 b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline v_f32 v_abs(v_f32 a) { return vabsq_f32(a); }
static inline v_f32 v_round(v_f32 a) { return vrndnq_f32(a); }
static inline v_i32 v_to_i32(v_f32 a) { return vcvtnq_s32_f32(a); }
static inline v_f32 v_exp2i(v_i32 e) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(e, vdupq_n_s32(127)), 23));
}
static inline v_mask v_lt(v_f32 a, v_f32 b) { return vcltq_f32(a, b); }
static inline v_mask v_isnan(v_f32 a) { return vmvnq_u32(vceqq_f32(a, a)); }
static inline v_f32 v_select(v_mask m, v_f32 a, v_f32 b) { return vbslq_f32(m, a, b); }
static inline v_f32 v_copysign(v_f32 a, v_f32 b) { return vbslq_f32(vdupq_n_u32(0x80000000u), b, a); }
static inline float v_sum(v_f32 a) { return vaddvq_f32(a); }
static inline void v_prefetch(const void *p) { __builtin_prefetch(p); }
static inline void v_store_n(float *p, v_f32 v, int64_t n) {
  if (n >= 4) {
    vst1q_f32(p, v);
    return;
  }
  float32x2_t half = vget_low_f32(v);
  if (n & 2) {
    vst1_f32(p, half);
    half = vget_high_f32(v);
    p += 2;
  }
  if (n & 1) vst1_lane_f32(p, half, 0);
}
static inline v_i32 v_load_i32(const int32_t *p) { return vld1q_s32(p); }
static inline v_f32 v_permute(v_f32 a, v_i32 index) {
  const uint32x4_t first = vmulq_n_u32(vreinterpretq_u32_s32(index), 0x04040404u);
  const uint8x16_t bytes = vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(0x03020100u)));
  return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(a), bytes));
}
static inline v_f32 v_permute_quads(v_f32 a, v_i32 index) { return v_permute(a, index); }
/* Swaps v[i][j] and v[j][i]. */
static inline void v_transpose(v_f32 v[4]) {
  const float32x4x2_t a = vtrnq_f32(v[0], v[1]), b = vtrnq_f32(v[2], v[3]);
  v[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
  v[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
  v[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
  v[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}
/* v[c][r] = x[r*step + c] for c < 8; reads eight floats per r. */
static inline void v_deinterleave(const float *x, int64_t step, v_f32 v[8]) {
  for (int r = 0; r < 4; r++) {
    v[r] = vld1q_f32(x + r * step);
    v[r + 4] = vld1q_f32(x + r * step + 4);
  }
  v_transpose(v);
  v_transpose(v + 4);
}
/* v[c][r] = x[r*3 + c] for c < 3; reads nothing else. */
static inline void v_deinterleave3(const float *x, v_f32 v[3]) {
  const float32x4x3_t d = vld3q_f32(x);
  for (int c = 0; c < 3; c++) v[c] = d.val[c];
}
static inline v_f32 v_even(v_f32 a, v_f32 b) { return vuzp1q_f32(a, b); }
static inline v_f32 v_odd(v_f32 a, v_f32 b) { return vuzp2q_f32(a, b); }
static inline v_f32 v_load_n(const float *p, int64_t n) { return n >= 4 ? vld1q_f32(p) : v_load_m(p, v_tail(n)); }
/* Lanes t..t+3 of lo followed by hi; t is a compile-time constant, 0 <= t < 4. */
static inline __attribute__((always_inline)) v_f32 v_shift(v_f32 lo, v_f32 hi, int t) {
  switch (t) {
    case 1: return vextq_f32(lo, hi, 1);
    case 2: return vextq_f32(lo, hi, 2);
    case 3: return vextq_f32(lo, hi, 3);
    default: return lo;
  }
}
#endif
