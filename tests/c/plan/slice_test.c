/* slice: problems whose f16 or bf16 tensors are cut into rows, images or planes, against the reference. Small integers,
 * so that sums are exact and every decision rounds them alike: the same bits for any number of threads, with the
 * residual elsewhere and in place of y, weights at creation and at execute. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/trial.h"

static const trial_text texts[] = {
    /* rows: with and without a last slice that begins early, stride, two dimensions of padding, depth */
    {"2d_n2_c96_i71x61_k8_w3x3_p1_bf16_last", "bias+relu+sum:2"},
    {"2d_n1_c60_i64x77_k12_w5x3_s2x1_p2_f16_first", "scale+presum:2+relu"},
    {"3d_n1_c8_i17x40x41_k6_w3x3x3_p1_bf16:f32:f16_last", "bias"},
    {"1d_n1_c96_i3001_k96_w4_p3:0_g96_bf16_last", "scale+bias+sum:2"},
    {"1d_n1_c3_i200001_k3_w4_p2_g3_f16_first", "none"},
    /* images */
    {"2d_n67_c32_i9x9_k16_w3x3_p1_bf16_last", "bias+sum:2"},
    /* planes */
    {"2d_n3_c25_i40x41_k50_w3x3_p1_g25_bf16_first", "scale+bias+sum:2"},
    {"2d_n2_c24_i33x31_k24_w5x5_s2_p2_g24_f16:bf16:f32_first", "bias+relu"},
};

static void fill(uint64_t *seed, hk_type type, void *to, int64_t count, int range) {
  for (int64_t i = 0; i < count; i++) {
    const float v = (float)hk_test_integer(seed, range);
    hk_convert(HK_F32, &v, type, (char *)to + (size_t)i * hk_type_bytes(type), 1);
  }
}

/* What the decision writes (NULL: the planner's, which must be a slice), y filled with the residual before. */
static void run(trial *t, const char *decision, int32_t threads, bool in_place, bool late, char *y) {
  hk_plan *plan = NULL;
  /* bf16 problems run as dots otherwise, where the machine has its instructions */
  const hk_options o = {.size = sizeof o, .threads = threads, .decision = decision, .denormals = HK_DENORMALS_EXACT};
  const void *f = t->weights.f, *c = t->args.c;
  hk_weights w = t->weights;
  if (late) w.f = NULL;
  CHECK(hk_plan_create(&plan, &t->problem, &t->epilogue, &o, &w) == HK_OK, "%s", hk_last_error());
  if (!plan) return;
  char text[1024];
  CHECK(hk_plan_decision(plan, text, sizeof text, NULL) == HK_OK, "%s", hk_last_error());
  if (!decision) CHECK(strstr(text, "slice / "), "%s is no slice", text);
  trial_prepare(t, plan, 0xA5);
  if (in_place) {
    memcpy(t->memory[2], t->memory[3], trial_y_bytes(t));
    t->args.c = t->args.y;
  }
  t->args.f = late ? f : NULL;
  CHECK(hk_plan_execute(plan, &t->args) == HK_OK, "%s", hk_last_error());
  memcpy(y, t->memory[2], trial_y_bytes(t));
  t->args.c = c;
  t->args.f = NULL;
  hk_plan_destroy(plan);
}

static void compare(const trial_text *text) {
  trial t;
  uint64_t seed = 3;
  trial_make(&t, text->problem, text->epilogue, 1);
  fill(&seed, t.problem.x_type, t.memory[0], t.x.elements, 3);
  fill(&seed, t.problem.f_type, t.memory[1], t.f.elements, 3);
  fill(&seed, t.problem.y_type, t.memory[3], t.y.elements, 9);
  fill(&seed, HK_F32, t.memory[4], t.problem.k, 5);
  fill(&seed, HK_F32, t.memory[5], t.problem.k, 9);
  char *want = malloc(trial_y_bytes(&t)), *y = malloc(trial_y_bytes(&t));
  if (!want || !y) exit(1);
  const int before = hk_test_failed;
  run(&t, "ref", 1, false, false, want);
  for (int i = 0; i < 8; i++) {
    const int32_t threads = i < 4 ? 1 : 3;
    const bool in_place = (i & 1) && t.epilogue.residual, late = i & 2;
    run(&t, NULL, threads, in_place, late, y);
    CHECK(!memcmp(want, y, trial_y_bytes(&t)), "%d threads, in place %d, late %d: other bits", threads, in_place, late);
  }
  if (hk_test_failed > before) fprintf(stderr, "problem: %s %s\n", text->problem, text->epilogue);
  free(want);
  free(y);
  trial_free(&t);
}

int main(void) {
  for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) compare(&texts[i]);
  return hk_test_end();
}
