/* Buffers, comparison and epilogues of the kernel checkers; see kernel.h. */
#include "support/kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

int64_t trial_between(kernel_trial *t, int64_t lo, int64_t hi) { return hk_test_between(&t->seed, lo, hi); }
bool trial_chance(kernel_trial *t, int percent) { return trial_between(t, 0, 99) < percent; }

static float *take(kernel_trial *t, int64_t count) {
  if (t->buffers == HK_COUNT(t->buffer)) abort();
  t->buffer[t->buffers] = guarded_make((size_t)hk_max64(count, 0), t->high);
  return t->buffer[t->buffers++].at;
}

float *trial_operand(kernel_trial *t, int64_t count) {
  float *p = take(t, count);
  for (int64_t i = 0; i < count; i++)
    p[i] = t->integers ? (float)hk_test_integer(&t->seed, 3) : hk_test_float(&t->seed);
  return p;
}

float *trial_output(kernel_trial *t, int64_t count) {
  float *p = take(t, count);
  for (int64_t i = 0; i < count; i++) p[i] = KERNEL_POISON;
  return p;
}

float *trial_copy(kernel_trial *t, const float *from, int64_t count) {
  float *p = take(t, count);
  if (count > 0) memcpy(p, from, (size_t)count * sizeof *p);
  return p;
}

void trial_compare(kernel_trial *t, const float *got, const float *want, int64_t count) {
  for (int64_t i = 0; i < count && !t->failed; i++) {
    if (got[i] == want[i]) continue;
    if (!t->integers && want[i] != KERNEL_POISON && fabs((double)got[i] - (double)want[i]) <= t->tolerance) continue;
    t->failed = true;
  }
}

static double clamp(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }

double trial_igemm_epilogue(const trial_epilogue *e, double v, double scale, double bias, double c) {
  if (e->flags & HK_IGEMM_AFFINE) v = v * scale + bias;
  if (e->flags & HK_IGEMM_BEFORE) v += (double)e->beta * c;
  if (e->flags & HK_IGEMM_CLAMP) v = clamp(v, e->lo, e->hi);
  if (e->flags & HK_IGEMM_AFTER) v += (double)e->beta * c;
  return v;
}

double trial_dw_epilogue(const hk_dw_fuse *e, double v, double scale, double bias, double c) {
  if (e->flags & HK_DW_AFFINE) v = v * scale + bias;
  if (e->flags & HK_DW_BEFORE) v += (double)e->beta * c;
  if (e->flags & HK_DW_CLAMP) v = clamp(v, e->lo, e->hi);
  if (e->flags & HK_DW_AFTER) v += (double)e->beta * c;
  return v;
}

trial_epilogue trial_draw_igemm_epilogue(kernel_trial *t) {
  static const uint32_t flags[] = {0, HK_IGEMM_AFFINE, HK_IGEMM_BEFORE | HK_IGEMM_CLAMP,
                                   HK_IGEMM_AFFINE | HK_IGEMM_CLAMP | HK_IGEMM_AFTER};
  return (trial_epilogue){flags[trial_between(t, 0, HK_COUNT(flags) - 1)], 2, -9, 11};
}

hk_dw_fuse trial_draw_dw_epilogue(kernel_trial *t, bool residual) {
  static const int32_t flags[] = {0, HK_DW_AFFINE, HK_DW_AFFINE | HK_DW_CLAMP, HK_DW_BEFORE | HK_DW_CLAMP,
                                  HK_DW_AFFINE | HK_DW_CLAMP | HK_DW_AFTER};
  hk_dw_fuse e = {flags[trial_between(t, 0, residual ? HK_COUNT(flags) - 1 : 2)], 2, -9, 11};
  if (!(e.flags & HK_DW_CLAMP)) e.lo = -INFINITY, e.hi = INFINITY;
  return e;
}

double trial_act(hk_act act, double a, double b, double slope, double v) {
  switch (act) {
  case HK_ACT_RELU: return v > 0 ? v : 0;
  case HK_ACT_CLIP: return fmin(fmax(v, a), b);
  case HK_ACT_HARDTANH: return a == 0 && b == 0 ? fmin(fmax(v, -1), 1) : fmin(fmax(v, a), b);
  case HK_ACT_LEAKY: return v < 0 ? a * v : v;
  case HK_ACT_PRELU: return v < 0 ? slope * v : v;
  case HK_ACT_SIGMOID: return 1 / (1 + exp(-v));
  case HK_ACT_SILU: return v / (1 + exp(-v));
  case HK_ACT_TANH: return tanh(v);
  case HK_ACT_GELU: return 0.5 * v * erfc(-v * sqrt(0.5));
  case HK_ACT_GELU_TANH: return v / (1 + exp(-2 * sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  case HK_ACT_HARDSWISH: return v * fmin(fmax(v + 3, 0), 6) / 6;
  case HK_ACT_SOFTSIGN: return v / (1 + fabs(v));
  default: return v;
  }
}
