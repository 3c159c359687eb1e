/* Winograd against exact sums: the error of every output stays under the stated factor * gk * eps * sum |x||f|, and the
 * norm of the errors under factor * 4 * eps * sqrt(gk) of the result's, on normal-looking data, for both transforms in
 * one and two dimensions and every igemm kernel the host has. F(2x2) and F(2) are exact on small integers. Refusals
 * name their reason. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/ukernel.h"
#include "support/check.h"

enum { C = 37, K = 21, H = 11, W = 14, LONG = H * W };
static float x[LONG * C], f[K * 9 * C], y[LONG * K];
static double want[LONG * K], weight[LONG * K];
static int high, wide, taps; /* an image and a window of 3 x 3, or a line and one of 3 */

static void fill(uint64_t seed, bool integers) {
  for (int i = 0; i < LONG * C; i++)
    x[i] = (float)hk_test_integer(&seed, integers ? 3 : 1000) / (integers ? 1.0f : 577.0f);
  for (int i = 0; i < K * 9 * C; i++)
    f[i] = (float)hk_test_integer(&seed, integers ? 3 : 1000) / (integers ? 1.0f : 577.0f);
  for (int p = 0; p < high; p++)
    for (int q = 0; q < wide; q++)
      for (int k = 0; k < K; k++) {
        double sum = 0, size = 0;
        for (int t = 0; t < taps; t++) {
          const int h = p + t / 3 - (taps == 9), w = q + t % 3 - 1;
          if (h < 0 || h >= high || w < 0 || w >= wide) continue;
          for (int c = 0; c < C; c++) {
            const double v = (double)x[(h * wide + w) * C + c] * (double)f[(k * taps + t) * C + c];
            sum += v, size += fabs(v);
          }
        }
        want[(p * wide + q) * K + k] = sum, weight[(p * wide + q) * K + k] = size;
      }
}

static hk_plan *plan_make(const char *decision, uint32_t math) {
  hk_problem p;
  hk_plan *plan = NULL;
  const hk_conv_desc flat = {.size = sizeof flat,
                             .rank = 2,
                             .layout = HK_CHANNELS_LAST,
                             .n = 1,
                             .c = C,
                             .k = K,
                             .in = {H, W},
                             .window = {3, 3},
                             .pad_lo = {1, 1},
                             .pad_hi = {1, 1}};
  const hk_conv_desc line = {.size = sizeof line,
                             .rank = 1,
                             .layout = HK_CHANNELS_LAST,
                             .n = 1,
                             .c = C,
                             .k = K,
                             .in = {LONG},
                             .window = {3},
                             .pad_lo = {1},
                             .pad_hi = {1}};
  const hk_status s = hk_problem_conv(&p, taps == 9 ? &flat : &line);
  if (s) return NULL;
  const hk_options o = {.size = sizeof o, .threads = 1, .math = math, .decision = decision};
  const hk_weights w = {.size = sizeof w, .f = f};
  return hk_plan_create(&plan, &p, NULL, &o, &w) ? NULL : plan;
}

static void run(hk_plan *plan) {
  const size_t bytes = hk_plan_workspace(plan);
  void *space = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
  const hk_args a = {.size = sizeof a, .x = x, .y = y, .workspace = space, .workspace_bytes = bytes};
  memset(y, 0xff, sizeof y);
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  free(space);
}

static void judge(const char *decision, int m) {
  hk_plan *plan = plan_make(decision, HK_MATH_FAST_ALGORITHMS);
  CHECK(plan != NULL, "%s: %s", decision, hk_last_error());
  if (!plan) return;
  const double factor = hk_plan_error_factor(plan), eps = 0x1p-24;
  run(plan);
  double worst = 0, miss = 0, norm = 0;
  for (int i = 0; i < LONG * K; i++) {
    const double e = fabs((double)y[i] - want[i]), part = e / (C * taps * eps * weight[i]);
    if (!(part <= worst)) worst = part;
    miss += e * e, norm += want[i] * want[i];
  }
  miss = sqrt(miss / norm) / (4 * eps * sqrt(C * taps));
  printf("%s, %d taps: %.3f of gk eps sum|x||f|, norm %.3f of 4 eps sqrt(gk), stated factor %g\n", decision, taps,
         worst, miss, factor);
  CHECK(factor > 0 && worst <= factor, "element error %g", worst);
  CHECK(miss <= factor, "norm error %g", miss);
  hk_plan_destroy(plan);
  fill(7, true);
  plan = plan_make(decision, HK_MATH_FAST_ALGORITHMS);
  run(plan);
  for (int i = 0; m == 2 && i < LONG * K; i++)
    CHECK(y[i] == want[i], "integers: y[%d] = %g, want %g", i, (double)y[i], want[i]);
  hk_plan_destroy(plan);
  fill(1, false);
}

static void judge_all(void) {
  fill(1, false);
  for (int32_t i = 0; i < hk_kernel_count; i++) {
    if (hk_kernels[i].family != HK_FAMILY_IGEMM || !hk_kernel_runs(&hk_kernels[i], HK_ISA_AMX)) continue;
    for (int m = 2; m <= 4; m += 2) {
      char decision[128];
      snprintf(decision, sizeof decision, "winograd%d kernel=%s", m, hk_kernels[i].name);
      judge(decision, m);
      CHECK(plan_make(decision, HK_MATH_STRICT) == NULL && strstr(hk_last_error(), "options.math"), "%s",
            hk_last_error());
    }
  }
}

int main(void) {
  high = H, wide = W, taps = 9;
  judge_all();
  high = 1, wide = LONG, taps = 3;
  judge_all();
  return hk_test_end();
}
