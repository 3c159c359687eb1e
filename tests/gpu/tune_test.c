/* Measuring on the device: a measured plan becomes wisdom under the GPU's name and the next plan is made from it, with
 * few candidates and with all; a plan with a function of the caller's own is not measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

static const char *const problems[] = {"2d_n16_c64_i28_k64_w3_p1_bf16_last", "2d_n4_c256_i14_k512_w1_f16_last",
                                       "1d_n4_c256_i1000_k256_w4_g256_bf16_last", "2d_n2_c19_i17_k33_w3_p1_f16_first",
                                       "2d_n2_c32_i20_k32_w3_p1_f32_last"};

static hk_status make(hk_plan **plan, const char *text, const hk_epilogue *e, hk_rigor rigor, int wisdom_only) {
  hk_problem p = {.size = sizeof p};
  hk_extent x, f, y;
  hk_status s = hk_problem_parse(&p, text);
  if (!s) s = hk_problem_extents(&p, &x, &f, &y);
  if (s) return s;
  void *weights = calloc((size_t)f.elements, hk_type_bytes(p.f_type));
  const hk_weights w = {.size = sizeof w, .f = weights};
  const hk_options o = {.size = sizeof o, .device = HK_CUDA, .rigor = rigor, .wisdom_only = wisdom_only};
  s = hk_plan_create(plan, &p, e, &o, &w);
  free(weights);
  return s;
}

static void check_learnt(const char *text, hk_rigor rigor, const char *gpu) {
  char first[512] = "", second[512] = "", wisdom[16384] = "";
  hk_plan *plan = NULL;
  hk_wisdom_forget();
  CHECK(make(&plan, text, NULL, HK_ESTIMATE, 1) == HK_NO_WISDOM, "%s was known before it was measured", text);
  hk_status s = make(&plan, text, NULL, rigor, 0);
  CHECK(s == HK_OK, "%s: %s", text, hk_last_error());
  if (s) return;
  hk_plan_decision(plan, first, sizeof first, NULL);
  hk_plan_destroy(plan);
  s = make(&plan, text, NULL, HK_ESTIMATE, 1);
  CHECK(s == HK_OK, "%s: %s", text, hk_last_error());
  if (s) return;
  hk_plan_decision(plan, second, sizeof second, NULL);
  hk_plan_destroy(plan);
  CHECK(!strcmp(first, second), "%s: measured %s, wisdom says %s", text, first, second);
  CHECK(hk_wisdom_export(wisdom, sizeof wisdom, NULL) == HK_OK && strstr(wisdom, gpu), "no line of wisdom names %s: %s",
        gpu, wisdom);
  printf("%s: %s\n", text, first);
}

static void check_user(void) {
  hk_plan *plan = NULL;
  const hk_epilogue e = {.size = sizeof e,
                         .act = HK_ACT_USER,
                         .cuda_user =
                             "float hk_user(hk_at at, float v, const void *user) { return v + *(const float *)user; }"};
  hk_wisdom_forget();
  CHECK(make(&plan, problems[0], &e, HK_MEASURE, 0) == HK_OK, "%s", hk_last_error());
  CHECK(hk_wisdom_count() == 0, "a plan with the caller's own function was measured");
  hk_plan_destroy(plan);
}

int main(void) {
  hk_gpu gpu = {.size = sizeof gpu};
  if (hk_gpu_info(&gpu) || !gpu.kernels) return printf("no CUDA device: %s\n", hk_last_error()), 77;
  CHECK(gpu.bytes_per_s > 1e11 && gpu.fma_flops > 1e12, "rates %g B/s, %g flop/s", gpu.bytes_per_s, gpu.fma_flops);
  for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) {
    check_learnt(problems[i], HK_MEASURE, gpu.name);
    check_learnt(problems[i], HK_PATIENT, gpu.name);
  }
  check_user();
  return hk_test_end();
}
