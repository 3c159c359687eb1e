/* Decisions as paths of rewrites: how they print, parse and are refused; which of them the planner finds for the tasks
 * that no algorithm takes as they are; that every one found computes what the reference computes; and that wisdom of
 * the time before paths is refused with a sentence. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/rewrite/rewrite.h"
#include "support/check.h"
#include "support/trial.h"

typedef struct task_text {
  const char *problem, *epilogue, *path; /* path: one that must be offered, "" for none */
  int32_t stateful;
} task_text;

static const task_text tasks[] = {
    {"2d_n2_c16_i9x9_k24_w3x3_p1_first", "bias+relu", "transpose_x / igemm", 0},
    {"2d_n2_c16_i9x9_k24_w3x3_p1_first", "bias+tanh", "transpose / igemm", 0},
    {"2d_n2_c16_i9x9_k24_w3x3_p1_first", "bias+relu+sum:0.5", "transpose / igemm", 0},
    {"2d_n2_c16_i9x9_k24_w3x3_p1_first", "presum:2+relu", "transpose / strip", 0},
    {"2d_n2_c16_i9x9_k24_w3x3_p1_g2_first", "bias+relu+sum:0.5", "transpose / strip", 0},
    {"2d_n2_c16_i9x9_k24_w3x3_p1_bf16_first", "bias+relu", "slice / transpose_x / igemm", 0},
    {"2d_n2_c16_i9x9_k24_w3x3_p1_f16_first", "sum:0.5+relu", "slice / transpose / igemm", 0},
    {"2d_n2_c16_i9x9_k24_w3x3_p1_f8e4m3_first", "none", "slice / transpose_x / igemm", 0},
    {"2d_n2_c16_i9x9_k24_w3x3_p1_f16:f16:f32_first", "none", "slice / transpose_x / igemm", 0},
    {"2d_n2_c16_i9x9_k24_w3x3_p1_f16:f32:f32_last", "none", "slice / igemm", 0},
    {"2d_n1_c6_i9x9_k8_w3x3_p1_last", "bias+gated:tanh:sigmoid", "gate / igemm", 0},
    {"2d_n1_c6_i9x9_k8_w3x3_p1_first", "bias+blended:tanh:sigmoid", "gate / transpose_x / igemm", 0},
    {"2d_n1_c6_i9x9_k8_w3x3_p1_bf16_last", "bias+gated:tanh:sigmoid", "gate / slice / igemm", 0},
    {"2d_n1_c6_i9x9_k8_w3x3_p1_f16_first", "gated:relu:sigmoid+sum:0.5", "gate / slice / transpose_x / igemm", 0},
    {"2d_n1_c6_i9x9_k8_w3x3_p1_f64_last", "scale+bias+blended:tanh:sigmoid+sum:2", "gate / dgemm", 0},
    {"2d_n1_c6_i9x9_k8_w3x3_p1_s8:s8:s8_xz3_yz2_first", "scale+bias+gated:relu:sigmoid+sum:0.5", "gate / qgemm", 0},
    {"2d_n1_c6_i9x9_k8_w3x3_p1_g2_s8:s8:f32_last", "scale+gated:relu:sigmoid", "gate / qgemm", 0},
    {"1d_n2_c8_i40_k8_w3_p2:0_first", "bias", "state / grouped", 1},
    {"1d_n2_c8_i40_k8_w3_p2:0_last", "bias", "state / igemm", 1},
    {"1d_n2_c8_i40_k8_w3_p2:0_bf16_last", "bias", "state / slice / igemm", 1},
    {"1d_n2_c8_i40_k8_w3_p2:0_f16_first", "none", "state / slice / transpose_x / igemm", 1},
    {"1d_n2_c8_i40_k8_w3_p2:0_last", "gated:tanh:sigmoid", "state / gate / igemm", 1},
    {"1d_n2_c8_i40_k8_w3_p2:0_bf16_first", "gated:tanh:sigmoid", "state / gate / slice / transpose_x / igemm", 1},
    {"1d_n2_c8_i40_k8_w3_p2:0_s8:s8:s8_last", "scale+gated:relu:relu", "state / gate / qgemm", 1},
    {"1d_n2_c8_i40_k8_w3_p4:0_d2_g8_last", "bias", "phase / dwc", 0},
    {"1d_n2_c8_i40_k8_w3_p4:0_d2_g8_bf16:bf16:f32_last", "bias", "slice / phase / dwc", 0},
    {"1d_n2_c8_i41_k8_w3_p4:0_d2_g4_first", "none", "transpose / phase / dwc", 0},
    {"1d_n2_c8_i40_k8_w3_p4:0_d2_g8_last", "bias", "state / dwc", 1},
    /* windows of 2x2, 2x1, 1x2 and 1x1; rows and columns without taps; all taps of a phase between two elements */
    {"2d_n2_c8_i9x7_k24_w3x3_p1:2_l2_last", "bias+relu+sum:0.5", "polyphase / igemm", 0},
    {"2d_n2_c8_i9x7_k24_w4x3_p2x1_l2x3_last", "scale+bias+relu", "polyphase / strip", 0},
    {"2d_n2_c8_i9x7_k24_w1x2_p1:2_l3x2_last", "presum:2+relu", "polyphase / igemm", 0},
    {"2d_n1_c6_i9x7_k8_w2x1_p1_l2_first", "bias+silu+sum", "transpose / polyphase / igemm", 0},
    {"2d_n1_c16_i9x7_k16_w3x3_p2_d2_l2_bf16_last", "bias", "slice / polyphase / igemm", 0},
    {"1d_n2_c8_i40_k8_w5_p3_l2_last", "gated:tanh:sigmoid", "gate / polyphase / igemm", 0},
    {"3d_n1_c4_i3x4x5_k6_w3x2x4_s1x2x1_p1_l2x4x3_last", "bias", "polyphase / igemm", 0},
    {"1d_n2_c8_i40_k16_w4_p2_l2_b2_s8:s8:s32_last", "none", "polyphase / qgemm", 0},
    {"1d_n2_c8_i40_k16_w4_p2_l2_f64_last", "bias", "polyphase / dgemm", 0},
    {"2d_n2_c8_i9x7_k8_w3x3_p1:2_l2_g8_last", "bias", "polyphase / dwc", 0},
    /* parts of different lengths, for which strip would choose different knobs */
    {"1d_n3_c35_i52_k1_w2_p5:0_d5_last", "bias+clip:-2:3", "state / phase / strip", 1},
};

typedef struct visit {
  const task_text *t;
  const double *expected;
  bool found;
} visit;

static void values(const trial *t, double *to) {
  for (int64_t i = 0; i < t->y.elements; i++) to[i] = hk_load_element(t->problem.y_type, t->memory[2], i);
}

/* Elements that an int8 or narrow result rounds the other way are one unit apart. */
static bool near_enough(const trial *t, const double *got, const double *want) {
  const hk_type y = t->problem.y_type;
  double error = 0, norm = 1e-30;
  for (int64_t i = 0; i < t->y.elements; i++) {
    error += (got[i] - want[i]) * (got[i] - want[i]), norm += want[i] * want[i];
  }
  const double eps = y == HK_F64 || y == HK_F32 ? 1e-5 : y == HK_F16 ? 1e-3 : y == HK_BF16 ? 4e-3 : 0.07;
  return hk_type_is_int8(y) ? error == 0 : sqrt(error / norm) <= eps;
}

static void check_decision(trial *t, const char *decision, void *context) {
  visit *v = context;
  char name[256] = "";
  const char *algorithm = decision_algorithm(decision);
  snprintf(name, sizeof name, "%.*s%.*s", (int)(algorithm - decision), decision, (int)strcspn(algorithm, " "),
           algorithm);
  v->found |= !strcmp(name, v->t->path);
  const hk_options o = {.size = sizeof o, .threads = 1, .decision = decision, .stateful = v->t->stateful};
  hk_plan *plan = NULL;
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &t->problem, &t->epilogue, &o, &t->weights));
  if (!plan) return;
  char text[512];
  hk_plan_decision(plan, text, sizeof text, NULL);
  CHECK(!strcmp(text, decision), "\"%s\" prints as \"%s\"", decision, text);
  trial_prepare(t, plan, 0xA5);
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &t->args));
  double *got = malloc((size_t)t->y.elements * sizeof *got);
  if (!got) exit(1);
  values(t, got);
  CHECK(near_enough(t, got, v->expected), "%s %s: %s differs from the reference", v->t->problem, v->t->epilogue,
        decision);
  free(got);
  hk_plan_destroy(plan);
}

/* A gated y has half of the channels: the parsed problem's y is dense for all of them, and is used as it is. */
static void check_task(const task_text *text) {
  trial t;
  trial_make(&t, text->problem, text->epilogue, 5);
  const hk_options ref = {.size = sizeof ref, .threads = 1, .decision = "ref", .stateful = text->stateful},
                   fast = {.size = sizeof fast,
                           .threads = 2,
                           .stateful = text->stateful,
                           .forbid_fallback = 1,
                           .rigor = HK_PATIENT};
  hk_plan *plan = NULL;
  double *expected = calloc((size_t)t.y.elements, sizeof *expected);
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &t.problem, &t.epilogue, &ref, &t.weights));
  if (!expected || !plan) exit(1);
  trial_prepare(&t, plan, 0xA5);
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &t.args));
  values(&t, expected);
  hk_plan_destroy(plan);
  visit v = {text, expected, false};
  CHECK(trial_decisions(&t, &fast, check_decision, &v) > 0, "%s %s: only the slow path", text->problem, text->epilogue);
  CHECK(v.found, "%s %s: %s is not offered", text->problem, text->epilogue, text->path);
  free(expected);
  trial_free(&t);
}

static void refused(const char *problem, const char *decision, hk_status status, const char *why) {
  trial t;
  hk_plan *plan = NULL;
  const hk_options o = {.size = sizeof o, .decision = decision};
  trial_make(&t, problem, "none", 1);
  CHECK_STATUS(status, why, hk_plan_create(&plan, &t.problem, &t.epilogue, &o, &t.weights));
  hk_plan_destroy(plan);
  trial_free(&t);
}

static void check_refusals(void) {
  static const char first[] = "2d_n1_c8_i9x9_k8_w3x3_p1_first";
  refused(first, "relay_igemm", HK_SYNTAX, "no algorithm \"relay_igemm\"");
  refused(first, "relay / igemm", HK_SYNTAX, "no rewrite \"relay\"");
  refused(first, "dot", HK_SYNTAX, "no algorithm \"dot\"");     /* merged into igemm */
  refused(first, "small", HK_SYNTAX, "no algorithm \"small\""); /* and into grouped */
  refused(first, "grouped source=2", HK_OK, "");
  refused(first, "grouped kernel=hk_small_f32_4x2_scalar source=2 rows=2", HK_UNSUPPORTED,
          "source = 2 needs rows, shards and parts of 1");
  refused(first, "transpose / igemm kernel=hk_dot_f32_2x4_scalar isa=scalar", HK_OK, "");
  refused(first, "transpose / igemm kernel=hk_dot_f32_2x4_scalar isa=fast", HK_SYNTAX, "no ISA \"fast\"");
  refused(first, "transpose / ", HK_SYNTAX, "no algorithm \"transpose\"");
  refused(first, "transpose /", HK_SYNTAX, "no algorithm \"transpose\"");
  refused(first, "/ igemm", HK_SYNTAX, "no algorithm \"/\"");
  refused(first, "transpose / transpose / igemm", HK_UNSUPPORTED, "transpose cannot follow transpose");
  refused(first, "transpose / convert / igemm", HK_UNSUPPORTED, "convert cannot follow transpose");
  refused(first, "transpose / convert / igemm", HK_UNSUPPORTED, "then the algorithm: \"convert / transpose / igemm\"");
  refused(first, "phase / gate / state / gate / igemm", HK_UNSUPPORTED, "\"state / gate / phase / igemm\"");
  refused(first, "igemm / transpose", HK_SYNTAX, "no rewrite \"igemm\": it is an algorithm, which ends a path");
  refused(first, "transpose", HK_SYNTAX, "write the algorithm behind it, \"transpose / ALGORITHM\"");
  refused(first, "transpose/igemm", HK_SYNTAX, "a blank on each side of \"/\"");
  refused(first, "state / transpose / igemm", HK_UNSUPPORTED, "state: options.stateful is 0");
  refused(first, "gate / igemm", HK_UNSUPPORTED, "the epilogue has no gate");
  refused(first, "finish / igemm", HK_SYNTAX, "no rewrite \"finish\"");
  refused(first, "phase / dwc", HK_UNSUPPORTED, "no dilation");
  refused(first, "gate / state / gate / state / gate / state / igemm", HK_SYNTAX, "at most 5 rewrites");
  refused("2d_n1_c8_i9x9_k8_w3x3_p1_last", "transpose / igemm", HK_UNSUPPORTED, "adjacent already");
}

/* Of the two rows that phase makes of x, only the second has padded taps. */
static void check_nonfinite(void) {
  trial t;
  hk_plan *plan = NULL;
  const hk_options o = {.size = sizeof o, .decision = "phase / dwc"};
  trial_make(&t, "1d_n1_c8_i11_k8_w3_p0:1_d2_g8_last", "none", 1);
  ((float *)t.memory[1])[1] = INFINITY;
  CHECK_STATUS(HK_UNSUPPORTED, "decision \"phase / dwc\": weights hold Inf or NaN",
               hk_plan_create(&plan, &t.problem, &t.epilogue, &o, &t.weights));
  hk_plan_destroy(plan);
  trial_free(&t);
}

/* The lines that a plan prints are decisions, whatever stands around them. */
static void check_printed(void) {
  static const char first[] = "2d_n1_c8_i9x9_k8_w3x3_p1_first";
  refused(first, "decision   transpose / igemm bm=12  (estimate)\n", HK_OK, "");
  refused(first, "transpose / igemm (measured)", HK_OK, "");
  refused(first, "  ref  (wisdom)", HK_OK, "");
  refused(first, "decision ref (forced)", HK_OK, "");
  refused(first, "ref (guessed)", HK_SYNTAX, "cannot read \"(guessed)\"");
  refused(first, "ref(estimate)", HK_SYNTAX, "no algorithm \"ref(estimate)\"");
  refused(first, "(estimate)", HK_SYNTAX, "no algorithm \"(estimate)\"");
}

typedef struct told {
  bool rewrite, path;
} told;
static void note(void *context, const hk_candidate *c) {
  told *t = context;
  t->rewrite |= c->refusal && !strcmp(c->decision, "state") && strstr(c->refusal, "stateful");
  t->path |= c->refusal && !strncmp(c->decision, "transpose_x / strip", 19) && strstr(c->refusal, "adjacent");
}

/* Refusals are kept per rewrite and per path. */
static void check_why(void) {
  hk_problem p;
  told t = {false, false};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "2d_n1_c16_i9x9_k24_w3x3_p1_first"));
  CHECK_STATUS(HK_OK, "", hk_plan_candidates(&p, NULL, NULL, note, &t));
  CHECK(t.rewrite && t.path, "refusals: rewrite %d, path %d", t.rewrite, t.path);
}

static void check_orders(void) {
  for (int i = 0; hk_rewrites[i]; i++) {
    const hk_rewrite *r = hk_rewrites[i];
    CHECK(r->takes && r->inner && r->seconds && r->run, "%s lacks a function", r->name);
    CHECK(r->order >= 0 && r->order < HK_DEPTH, "%s has order %d", r->name, r->order);
    if (i && hk_rewrites[i - 1]->device == r->device)
      CHECK(r->order >= hk_rewrites[i - 1]->order, "%s stands after a later rewrite", r->name);
  }
  int algos = 0;
  while (hk_algos[algos]) algos++;
  CHECK(algos <= 64, "%d algorithms: the planner's sets hold 64", algos);
}

static void check_wisdom(void) {
  CHECK_STATUS(HK_SYNTAX, "nor names rewrites", hk_wisdom_import("hankel-wisdom 1\nend 0\n"));
  CHECK_STATUS(HK_OK, "", hk_wisdom_import("hankel-wisdom 2\nend 0\n"));
}

static char line[4096];
static void listen(void *context, const char *text) {
  (void)context;
  snprintf(line, sizeof line, "%s", text);
}

static void halve(void *user, const hk_at *at, int64_t count, void *values) {
  (void)user, (void)at;
  for (int64_t i = 0; i < count; i++) ((float *)values)[i] /= 2;
}

/* A log line of what no option of the command can say names that in place of half a command. */
static void check_no_command(void) {
  trial t;
  hk_plan *plan = NULL;
  trial_make(&t, "1d_n1_c8_i11_k8_w3_last", "bias", 1);
  hk_log_set(listen, NULL);
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &t.problem, &t.epilogue, NULL, &t.weights));
  CHECK(strstr(line, ",hankel plan '1d_n1_c8_i11_k8_w3_f32_last' --epilogue 'bias' --threads "), "%s", line);
  hk_plan_destroy(plan);
  t.epilogue.act = HK_ACT_USER;
  t.epilogue.user = halve;
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &t.problem, &t.epilogue, NULL, &t.weights));
  CHECK(strstr(line, "no command: it has no option for functions of the caller"), "%s", line);
  hk_plan_destroy(plan);
  hk_log_set(NULL, NULL);
  trial_free(&t);
}

int main(void) {
  setenv("HANKEL_VERBOSE", "profile_create", 1);
  hk_log_set(listen, NULL);
  for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) check_task(&tasks[i]);
  check_refusals();
  check_printed();
  check_nonfinite();
  check_why();
  check_orders();
  check_wisdom();
  check_no_command();
  return hk_test_end();
}
