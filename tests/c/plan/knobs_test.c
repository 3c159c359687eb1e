/* Hostile knobs: every knob of every decision of the list is set to values outside and inside its range. Creation
 * refuses with a sentence, or the plan is right and stays within its tensors and the workspace that it reports, which
 * all lie against guard pages. Wisdom passes the same gate: a decision that it would be an error to force is passed
 * over. */
#include <stdbool.h>
#include <stdlib.h>

#include "plan/plan.h"
#include "support/check.h"
#include "support/guard.h"
#include "support/trial.h"

static int tried, taken;

static const hk_algo *algo_of(const char *decision) {
  decision = decision_algorithm(decision);
  const size_t n = strcspn(decision, " ");
  for (int i = 0; hk_algos[i]; i++)
    if (strlen(hk_algos[i]->name) == n && !strncmp(hk_algos[i]->name, decision, n)) return hk_algos[i];
  return NULL;
}

/* The decision with one knob replaced. */
static void replaced(const char *decision, const char *knob, long long value, char *to, size_t size) {
  char word[64];
  snprintf(word, sizeof word, " %s=", knob);
  const char *at = strstr(decision, word), *rest = at + strlen(word);
  rest += strcspn(rest, " ");
  snprintf(to, size, "%.*s%s%lld%s", (int)(at - decision), decision, word, value, rest);
}

/* Runs a plan whose workspace ends at a guard page; y must be what the reference gave, to the norm of its rounding. */
static void run(trial *t, const hk_plan *plan, const float *expected, const char *decision) {
  const size_t bytes = hk_plan_workspace(plan);
  trial_prepare(t, plan, 0xA5);
  guarded w = guarded_make((bytes + 3) / 4 + 16, 1);
  const uintptr_t end = (uintptr_t)w.at + ((bytes + 3) / 4 + 16) * 4;
  t->args.workspace = (void *)((end - bytes) & ~(uintptr_t)63); /* aligned: at most 63 bytes before the guard */
  CHECK(hk_plan_execute(plan, &t->args) == HK_OK, "%s: %s", decision, hk_last_error());
  guarded_free(&w);
  double error = 0, norm = 0;
  float *y = malloc((size_t)t->y.elements * sizeof *y + 1);
  if (!y) exit(1);
  hk_convert(t->problem.y_type, t->memory[2], HK_F32, y, t->y.elements);
  for (int64_t i = 0; i < t->y.elements; i++) {
    const double d = (double)y[i] - (double)expected[i];
    error += d * d, norm += (double)expected[i] * (double)expected[i];
  }
  free(y);
  CHECK(error <= 1e-4 * norm, "%s: wrong by %g of %g", decision, error, norm);
}

static void attempt(trial *t, const char *decision, const float *expected) {
  hk_plan *plan = NULL;
  const hk_options o = {.size = sizeof o, .threads = 2, .decision = decision, .math = HK_MATH_FAST_ALGORITHMS};
  tried++;
  const hk_status s = hk_plan_create(&plan, &t->problem, &t->epilogue, &o, &t->weights);
  if (s) {
    CHECK(s == HK_UNSUPPORTED || s == HK_SYNTAX, "%s: %s", decision, hk_status_name(s));
    CHECK(strstr(hk_last_error(), "decision \"") != NULL, "%s: %s", decision, hk_last_error());
    return;
  }
  taken++;
  run(t, plan, expected, decision);
  hk_plan_destroy(plan);
}

static void visit(trial *t, const char *decision, void *context) {
  const hk_algo *a = algo_of(decision);
  CHECK(a != NULL, "%s", decision);
  if (!a) return;
  const hk_knob *knobs = a->knobs;
  for (int i = 0; i < HK_KNOBS && knobs[i].name; i++) {
    CHECK(knobs[i].least <= knobs[i].most && knobs[i].most <= HK_KNOB_MOST, "%s: knob %s has no range", a->name,
          knobs[i].name);
    const long long values[] = {0,
                                1,
                                2,
                                3,
                                7,
                                64,
                                255,
                                256,
                                257,
                                4096,
                                4097,
                                -1,
                                65536,
                                INT32_MAX,
                                INT64_C(1) << 31,
                                INT64_C(1) << 32,
                                (INT64_C(1) << 32) + 1,
                                (INT64_C(1) << 40) + 1,
                                INT64_C(4611686022722355196),
                                INT64_MAX / 2,
                                INT64_MAX - 63,
                                INT64_MAX,
                                INT64_MIN,
                                -INT64_MAX};
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
      char text[512];
      replaced(decision, knobs[i].name, values[v], text, sizeof text);
      attempt(t, text, context);
    }
  }
}

static void problem(const char *text, const char *epilogue) {
  trial t;
  trial_make(&t, text, epilogue, 3);
  const hk_options o = {.size = sizeof o, .threads = 2, .decision = "ref"},
                   fast = {.size = sizeof o, .threads = 2, .math = HK_MATH_FAST_ALGORITHMS};
  hk_plan *plan = NULL;
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &t.problem, &t.epilogue, &o, &t.weights));
  float *expected = malloc((size_t)t.y.elements * sizeof *expected + 1);
  if (!expected || !plan) exit(1);
  trial_prepare(&t, plan, 0);
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &t.args));
  hk_convert(t.problem.y_type, t.memory[2], HK_F32, expected, t.y.elements);
  hk_plan_destroy(plan);
  trial_decisions(&t, &fast, visit, expected);
  free(expected);
  trial_free(&t);
}

int main(void) {
  /* every algorithm names a range for every knob, on any device */
  for (int i = 0; hk_algos[i]; i++) {
    CHECK(hk_algos[i]->check != NULL, "%s has no check", hk_algos[i]->name);
    const hk_knob *k = hk_algos[i]->knobs;
    for (int j = 0; j < HK_KNOBS && k[j].name; j++)
      CHECK(k[j].least < k[j].most, "%s: knob %s has no range", hk_algos[i]->name, k[j].name);
  }
  for (const trial_text *text = trial_list; text->problem; text++) problem(text->problem, text->epilogue);
  problem("1d_n2_c8_i300_k8_w24_p23:0_g8_last", "none");   /* fft, karatsuba */
  problem("1d_n2_c8_i96_k8_w3_p32:0_d16_g8_last", "bias"); /* phase */
  problem("2d_n2_c8_i7x7_k8_w1x1_g2_last", "none");        /* point */
  problem("2d_n1_c8_i7x6_k8_w3x3_p1:2_l2_last", "bias");   /* polyphase */
  problem("2d_n1_c4_i6x6_k8_w1x1_first", "none");
  CHECK(tried > 5000 && taken > 500, "%d decisions tried, %d taken", tried, taken);
  printf("%d decisions tried, %d taken\n", tried, taken);
  return hk_test_end();
}
