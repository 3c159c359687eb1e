/* Every act row of every ISA the host has, against double precision: all exponents of f32 and both signs, the stated
 * bounds of cpu/tmpl/common/actmath.tmpl.h, NaN and infinities, tails (nothing beyond count is touched), PRELU's
 * slopes. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"

static double bound(hk_act act, double v, double want) {
  if (act == HK_ACT_GELU) return 3e-7 * fmax(1, fabs(v));
  /* the cube of gelu_tanh's argument carries its own rounding into the exponent */
  if (act == HK_ACT_GELU_TANH) return 1e-6 * fabs(want) + 3e-7 * fmin(1, fabs(v)) + 1e-42;
  return 1e-6 * fabs(want) + 1e-42;
}

/* finite arguments: every 8th exponent step finely, both signs */
static int sweep(const hk_kernel *k, hk_act act) {
  enum { N = 1021 };
  float in[N], v[N], slope[N];
  double worst = 0;
  for (int e = -126; e < 127; e++) {
    for (int i = 0; i < N; i++) {
      in[i] = ldexpf(1.0f + (float)i / N, e) * (i & 1 ? -1.0f : 1.0f);
      slope[i] = 0.25f + (float)(i % 7);
    }
    memcpy(v, in, sizeof v);
    hk_act_args args = {v, v, N, act, -2.0f, 3.0f, slope, NULL, 1, 0};
    if (act == HK_ACT_LEAKY) args.a = 0.1f;
    k->fn(&args);
    for (int i = 0; i < N; i++) {
      const double want = trial_act(act, args.a, args.b, slope[i], in[i]);
      if (fabs(want) > 3.4028234e38) continue;
      const double miss = fabs((double)v[i] - want), limit = bound(act, in[i], want);
      if (!(miss <= limit)) {
        printf("%s act %d: f(%a) = %a, want %a\n", k->name, act, (double)in[i], (double)v[i], want);
        return 1;
      }
      if (miss / limit > worst) worst = miss / limit;
    }
  }
  printf("%s act %d: at most %.2f of the stated bound\n", k->name, act, worst);
  return 0;
}

/* NaN stays; infinities give the limits */
static int specials(const hk_kernel *k) {
  static const struct {
    hk_act act;
    float at_inf, at_minus_inf;
  } limit[] = {{HK_ACT_RELU, INFINITY, 0},
               {HK_ACT_CLIP, 3, -2},
               {HK_ACT_LEAKY, INFINITY, INFINITY},
               {HK_ACT_PRELU, INFINITY, -INFINITY},
               {HK_ACT_SIGMOID, 1, 0},
               {HK_ACT_SILU, INFINITY, 0},
               {HK_ACT_TANH, 1, -1},
               {HK_ACT_GELU, INFINITY, 0},
               {HK_ACT_GELU_TANH, INFINITY, 0},
               {HK_ACT_HARDSWISH, INFINITY, 0},
               {HK_ACT_HARDTANH, 3, -2},
               {HK_ACT_SOFTSIGN, 1, -1}};
  const float slope = 0.5f;
  for (int i = 0; i < HK_COUNT(limit); i++) {
    float v[3] = {NAN, INFINITY, -INFINITY};
    k->fn(&(hk_act_args){v, v, 3, limit[i].act, -2.0f, 3.0f, &slope, NULL, 0, 0});
    if (!isnan(v[0]) || v[1] != limit[i].at_inf || v[2] != limit[i].at_minus_inf)
      return printf("%s act %d of NaN, inf, -inf: %g %g %g\n", k->name, limit[i].act, (double)v[0], (double)v[1],
                    (double)v[2]),
             1;
  }
  return 0;
}

/* counts 0..40: the neighbours keep their values, the row gives the same as one at a time */
static int tails(const hk_kernel *k) {
  for (int n = 0; n <= 40; n++) {
    float v[48], want[48];
    for (int i = 0; i < 48; i++) v[i] = want[i] = 0.37f * (float)(i - 20);
    for (int i = 0; i < n; i++) k->fn(&(hk_act_args){want + 3 + i, want + 3 + i, 1, .act = HK_ACT_TANH});
    k->fn(&(hk_act_args){v + 3, v + 3, n, .act = HK_ACT_TANH});
    if (memcmp(v, want, sizeof v)) return printf("%s: count %d\n", k->name, n), 1;
  }
  return 0;
}

int main(void) {
  int bad = 0, rows = 0;
  for (int32_t i = 0; i < hk_kernel_count; i++) {
    const hk_kernel *k = &hk_kernels[i];
    if (k->family != HK_FAMILY_ACT || !hk_kernel_runs(k, HK_ISA_AMX)) continue;
    rows++;
    for (int act = HK_ACT_RELU; act < HK_ACT_USER; act++) bad += sweep(k, (hk_act)act);
    bad += specials(k) + tails(k);
  }
  assert(rows > 0);
  return bad != 0;
}
