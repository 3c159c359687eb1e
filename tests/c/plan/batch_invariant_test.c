/* batch_invariant: plans are chosen as if for one image and one thread, and serve the batch and the threads that they
 * are given. The workspace that a plan and a candidate report is that of the real problem (the buffer ends at a guard
 * page), limits hold for it, measuring stays inside it, and an image's bits do not depend on the batch. */
#include <stdbool.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/guard.h"
#include "support/trial.h"

static size_t x_image(const trial *t) { return (size_t)t->problem.x.outer * hk_type_bytes(t->problem.x_type); }
static size_t y_image(const trial *t) { return (size_t)t->problem.y.outer * hk_type_bytes(t->problem.y_type); }

/* Executes with a workspace of exactly the bytes that the plan reports, up to the alignment of its start. */
static void execute(const trial *t, const hk_plan *plan, const char *x, char *y) {
  const size_t bytes = (hk_plan_workspace(plan) + 63) / 64 * 64;
  guarded w = guarded_make(bytes / 4 + 16, 1);
  hk_args a = t->args;
  a.x = x, a.y = y;
  a.workspace = bytes ? (char *)(w.at + 16) : NULL; /* 64 bytes past the start, so it ends at the guard */
  a.workspace_bytes = hk_plan_workspace(plan);
  CHECK(hk_plan_execute(plan, &a) == HK_OK, "%s", hk_last_error());
  guarded_free(&w);
}

static hk_plan *create(const trial *t, const hk_problem *p, const hk_options *o) {
  hk_plan *plan = NULL;
  const hk_status s = hk_plan_create(&plan, p, &t->epilogue, o, &t->weights);
  CHECK(s == HK_OK, "%s", hk_last_error());
  return plan;
}

/* The whole batch, then each image by a plan of its own: the same bits. late: f comes with the calls. */
static void compare_with(const char *text, const char *epilogue, hk_options o, bool late) {
  trial t;
  trial_make(&t, text, epilogue, 5);
  if (late) t.args.f = t.weights.f, t.weights.f = NULL;
  const int before = hk_test_failed;
  hk_problem one = t.problem;
  one.n = 1;
  hk_plan *all = create(&t, &t.problem, &o), *each = create(&t, &one, &o);
  if (all && each) {
    char *y = malloc(trial_y_bytes(&t) + 1);
    if (!y) exit(1);
    memset(t.memory[2], 0xA5, trial_y_bytes(&t));
    execute(&t, all, t.args.x, t.args.y);
    memcpy(y, t.memory[2], trial_y_bytes(&t));
    memset(t.memory[2], 0xA5, trial_y_bytes(&t));
    for (int64_t n = 0; n < t.problem.n; n++)
      execute(&t, each, (const char *)t.args.x + (size_t)n * x_image(&t), (char *)t.args.y + (size_t)n * y_image(&t));
    /* measured plans may choose differently for each problem: only their memory is looked at */
    if (!o.rigor) CHECK(!memcmp(y, t.memory[2], trial_y_bytes(&t)), "other bits");
    free(y);
  }
  if (hk_test_failed > before) fprintf(stderr, "problem: %s, %d threads, rigor %d\n", text, o.threads, (int)o.rigor);
  hk_plan_destroy(all);
  hk_plan_destroy(each);
  trial_free(&t);
}

static void compare(const char *text, const char *epilogue, hk_options o) { compare_with(text, epilogue, o, false); }

typedef struct seen {
  const trial *t;
  hk_options o;
  int count;
} seen;

/* A candidate's bytes are those of the plan it becomes, and the plan runs within them. */
static void candidate(void *context, const hk_candidate *c) {
  seen *s = context;
  if (c->refusal) return;
  hk_options o = s->o;
  o.decision = c->decision;
  hk_plan *plan = create(s->t, &s->t->problem, &o);
  if (!plan) return;
  CHECK(hk_plan_workspace(plan) == c->workspace_bytes, "%s: the candidate reports %zu bytes, its plan %zu", c->decision,
        c->workspace_bytes, hk_plan_workspace(plan));
  execute(s->t, plan, s->t->args.x, s->t->args.y);
  hk_plan_destroy(plan);
  s->count++;
}

static void candidates(const char *text, const char *epilogue, hk_options o) {
  trial t;
  trial_make(&t, text, epilogue, 7);
  seen s = {&t, o, 0};
  CHECK_STATUS(HK_OK, "", hk_plan_candidates(&t.problem, &t.epilogue, &o, candidate, &s));
  CHECK(s.count > 0, "%s: no candidate", text);
  /* one byte less than the chosen plan needs must be respected */
  hk_plan *plan = create(&t, &t.problem, &o);
  if (plan && hk_plan_workspace(plan)) {
    o.limit_workspace = 1;
    o.workspace_limit_bytes = hk_plan_workspace(plan) - 1;
    hk_plan *less = create(&t, &t.problem, &o);
    if (less) {
      CHECK(hk_plan_workspace(less) <= o.workspace_limit_bytes, "%s: %zu bytes above the limit", text,
            hk_plan_workspace(less));
      execute(&t, less, t.args.x, t.args.y);
    }
    hk_plan_destroy(less);
  }
  hk_plan_destroy(plan);
  trial_free(&t);
}

int main(void) {
  static const trial_text list[] = {{"1d_n8_c16_i64_k16_w3_bf16_last", "none"},
                                    {"1d_n8_c16_i64_k16_w3_s8:s8:s32_last", "none"},
                                    {"1d_n5_c16_i64_k16_w3_p1_f16_first", "bias"},
                                    {"2d_n3_c32_i14x14_k32_w3x3_p1_f32_last", "bias+relu"},
                                    {"2d_n3_c32_i14x14_k32_w3x3_p1_f32_first", "bias"},
                                    {"2d_n4_c16_i9x9_k32_w3x3_s2_p1_last", "bias"},
                                    {"1d_n6_c8_i300_k8_w24_p23:0_g8_last", "none"},
                                    {"1d_n6_c8_i200_k8_w3_p2:0_g8_last", "bias+silu"},
                                    {"2d_n3_c16_i8x8_k16_w1x1_f64_last", "scale"},
                                    {"1d_n2_c16_i64_k16_w3_p1_u8:s8:u8_xz3_last", "scale+bias+relu"}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (int32_t threads = 1; threads <= 4; threads += 3)
      for (int fast = 0; fast < 2; fast++) {
        hk_options o = {
            .size = sizeof o, .threads = threads, .batch_invariant = 1, .math = fast ? HK_MATH_FAST_ALGORITHMS : 0};
        compare(list[i].problem, list[i].epilogue, o);
        candidates(list[i].problem, list[i].epilogue, o);
        o.rigor = HK_MEASURE, o.time_limit_s = 0.02;
        if (!fast) compare(list[i].problem, list[i].epilogue, o);
      }
  /* below a limit, what a workspace per thread allows must not depend on the threads */
  for (int32_t threads = 1; threads <= 4; threads++) {
    const hk_options fast = {.size = sizeof fast,
                             .threads = threads,
                             .batch_invariant = 1,
                             .math = HK_MATH_FAST_ALGORITHMS,
                             .isa = HK_ISA_SCALAR,
                             .limit_workspace = 1,
                             .workspace_limit_bytes = 11719};
    trial t;
    hk_plan *plan;
    static char first[512];
    char text[512];
    trial_make(&t, "2d_n4_c51_i4x5_k49_w3x3_f32_last", "bias", 5);
    plan = create(&t, &t.problem, &fast);
    CHECK_STATUS(HK_OK, "", hk_plan_decision(plan, threads == 1 ? first : text, sizeof text, NULL));
    CHECK(threads == 1 || !strcmp(first, text), "%d threads choose %s, one %s", threads, text, first);
    hk_plan_destroy(plan);
    trial_free(&t);
  }
  /* one image may use what two that lie in one place may not: then neither does */
  const hk_options o = {.size = sizeof o, .threads = 3, .batch_invariant = 1, .isa = HK_ISA_AVX2};
  const hk_options limited = {
      .size = sizeof limited, .threads = 4, .batch_invariant = 1, .limit_workspace = 1, .workspace_limit_bytes = 4123};
  compare(
      "3d_n4_c8_i2x1x51_k8_w4x1x1_p2:3x0x0_g8_f16_xs=0.1.816.1.408.408.8_fs=0.2.2.2.16.2.16_ys=0.8.2.64.128.33280.640",
      "bias+silu", limited);
  /* few images fit a vector of tapsum, more do not */
  compare_with(
      "3d_n8_c8_i3x4x7_k16_w3x4x7_g4_f32_xs=0.1344.672.672.224.56.8_fs=0.4.1.1344.448.112.16_ys=0.32.1.8.8.8.8", "none",
      o, true);
  compare("2d_n2_c64_i2x12_k64_w1x1_g32_f32_xs=0.2.0.1.768.64_fs=0.4.2.1.2.2_ys=0.2.1536.1.768.64", "bias", o);
  return hk_test_end();
}
