/* Inf and NaN in x reach exactly the outputs that see them, by every decision of the device but the general one: the
 * tensor-core kernels fill their operands with zeros, which would turn a foreign Inf into NaN. Needs a CUDA device;
 * exits with 77 without. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hankel.h"
#include "support/check.h"

static const char *const problems[] = {
    "1d_n2_c24_i1234_k24_w20_p19:0_g24_bf16_last",
    "1d_n2_c24_i1234_k24_w20_p19:0_g24_bf16_first",
    "1d_n1_c16_i900_k16_w150_g16_f16_first",
    "2d_n2_c16_i19x40_k16_w7_p3_g16_bf16_last",
    "2d_n2_c16_i19x40_k16_w3_p1_g4_f16_last",
    "2d_n1_c24_i19x21_k24_w3_s2_p1_g24_bf16_last",
    "2d_n1_c16_i19x40_k16_w5_s2_p2_g16_f16_last",
    "2d_n2_c3_i19x40_k16_w7_s2_p3_bf16_last",
    "2d_n2_c3_i19x40_k16_w7_s2_p3_f16_first",
    "2d_n1_c10_i19x21_k10_w3_p1_g5_bf16_last",
    "1d_n1_c16_i300_k16_w4_g16_f32_first",
    "1d_n1_c16_i300_k16_w4_g16_f32_last",
    "1d_n1_c16_i900_k16_w150_g16_f32_first",
    "2d_n2_c16_i19x60_k16_w5_p2_g16_f16_last",
    "1d_n2_c23_i200_k23_w9_g23_bf16_last",
    "2d_n2_c64_i9x12_k64_w3_p1_g4_bf16_last",
    "2d_n2_c96_i9x12_k96_w3_s2_p1_g3_f16_last",
    "2d_n2_c128_i9x12_k128_w3_p1_g8_f16_first",
    "2d_n2_c64_i9x12_k64_w3_p1_g4_bf16:bf16:f32_first",
    "2d_n2_c3_i32x24_k40_w8_s8_bf16_last",
    "2d_n2_c64_i9x12_k40_w3_p1_f16_last",
    "2d_n2_c40_i80x44_k40_w3_p1_g40_bf16_last",
    "2d_n1_c64_i40x70_k64_w3_s2_p1_g16_f16_last",
    "1d_n1_c3000_i900_k3000_w24_p3_g3000_bf16_first",
    "1d_n1_c24_i2300_k24_w150_p70_g24_f16_last",
};

typedef struct state {
  hk_problem p;
  hk_extent x, f, y;
  void *xh, *fh, *yh, *want, *xd, *yd;
  int ran;
} state;

static void compare(const state *s, const char *text, const char *decision) {
  float *a = malloc((size_t)s->y.elements * 4), *b = malloc((size_t)s->y.elements * 4);
  int64_t wrong = 0, special = 0;
  hk_convert(s->p.y_type, s->yh, HK_F32, a, s->y.elements);
  hk_convert(s->p.y_type, s->want, HK_F32, b, s->y.elements);
  for (int64_t i = 0; i < s->y.elements; ++i) {
    wrong += !(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]));
    special += !isfinite(b[i]);
  }
  CHECK(!wrong && special, "%s: %s: %lld of %lld wrong, %lld not finite", text, decision, (long long)wrong,
        (long long)s->y.elements, (long long)special);
  free(a);
  free(b);
}

static void visit(void *context, const hk_candidate *c) {
  state *s = context;
  char text[512];
  hk_plan *plan = NULL;
  /* split f32 of wgmma multiplies an Inf by the low part of a weight, which may be 0: docs/cuda.md says so */
  if (c->refusal || strstr(c->decision, "direct") || strstr(c->decision, "parts=2")) return;
  hk_problem_print(&s->p, text, sizeof text, NULL);
  const hk_options o = {.size = sizeof o, .device = HK_CUDA, .decision = c->decision, .math = HK_MATH_SPLIT_F32};
  const hk_weights w = {.size = sizeof w, .f = s->fh};
  const size_t bytes = (size_t)s->y.elements * hk_type_bytes(s->p.y_type);
  hk_status st = hk_plan_create(&plan, &s->p, NULL, &o, &w);
  void *workspace = NULL;
  const size_t need = st ? 0 : hk_plan_workspace(plan);
  if (need) st = hk_gpu_alloc(&workspace, need);
  const hk_args a = {.size = sizeof a, .x = s->xd, .y = s->yd, .workspace = workspace, .workspace_bytes = need};
  if (!st) st = hk_plan_execute(plan, &a);
  if (!st) st = hk_gpu_sync(NULL);
  if (!st) st = hk_gpu_copy(s->yh, s->yd, bytes);
  CHECK(!st, "%s: %s: %s", text, c->decision, hk_last_error());
  if (!st) compare(s, text, c->decision), s->ran++;
  hk_plan_destroy(plan);
  hk_gpu_free(workspace);
}

static int run(const char *text, uint64_t seed) {
  state s = {.ran = 0};
  hk_plan *plan = NULL;
  if (hk_problem_parse(&s.p, text) || hk_problem_extents(&s.p, &s.x, &s.f, &s.y))
    exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  const size_t xb = (size_t)s.x.elements * hk_type_bytes(s.p.x_type),
               yb = (size_t)s.y.elements * hk_type_bytes(s.p.y_type);
  float *v = malloc((size_t)(s.x.elements > s.f.elements ? s.x.elements : s.f.elements) * 4);
  s.xh = malloc(xb), s.fh = malloc((size_t)s.f.elements * 4), s.yh = malloc(yb), s.want = malloc(yb);
  for (int64_t i = 0; i < s.x.elements; ++i) v[i] = (float)hk_test_integer(&seed, 2);
  v[s.x.elements / 3] = INFINITY, v[s.x.elements / 2] = -INFINITY, v[s.x.elements - 2] = NAN;
  hk_convert(HK_F32, v, s.p.x_type, s.xh, s.x.elements);
  for (int64_t i = 0; i < s.f.elements; ++i) v[i] = (float)(1 + (hk_test_integer(&seed, 1) > 0));
  hk_convert(HK_F32, v, s.p.f_type, s.fh, s.f.elements);
  const hk_options ref = {.size = sizeof ref, .decision = "ref"};
  const hk_weights w = {.size = sizeof w, .f = s.fh};
  const hk_args a = {.size = sizeof a, .x = s.xh, .y = s.want};
  CHECK(!hk_plan_create(&plan, &s.p, NULL, &ref, &w) && !hk_plan_execute(plan, &a), "reference: %s", hk_last_error());
  hk_plan_destroy(plan);
  if (hk_gpu_alloc(&s.xd, xb) || hk_gpu_alloc(&s.yd, yb) || hk_gpu_copy(s.xd, s.xh, xb))
    exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  const hk_options o = {.size = sizeof o, .device = HK_CUDA, .rigor = HK_PATIENT, .math = HK_MATH_SPLIT_F32};
  CHECK(!hk_plan_candidates(&s.p, NULL, &o, visit, &s), "%s", hk_last_error());
  CHECK(s.ran > 0, "%s: no decision ran", text);
  hk_gpu_free(s.xd), hk_gpu_free(s.yd);
  free(s.xh), free(s.fh), free(s.yh), free(s.want), free(v);
  return s.ran;
}

int main(void) {
  hk_gpu gpu = {.size = sizeof gpu};
  int ran = 0;
  if (hk_gpu_info(&gpu) || !gpu.kernels) {
    printf("no CUDA device: %s\n", hk_last_error());
    return 77;
  }
  for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) ran += run(problems[i], 40 + i);
  printf("%d executions compared\n", ran);
  return hk_test_end();
}
