/* Memory of plans. Every algorithm that the planner offers for a list of problems is forced, and every allocation of
 * its creation fails once, alone and together with all that follow it: HK_NO_MEMORY with a sentence each time, nothing
 * leaked, and the plan that is made afterwards computes what the one before the failures computed. The same for plans
 * made like another, for planning without a forced decision (estimated and measured) and for the list of candidates.
 * Execute allocates nothing. The run must reach every algorithm and every rewrite of the CPU. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/rewrite/rewrite.h"
#include "support/allocs.h"
#include "support/check.h"
#include "support/trial.h"

enum { MOST = 2000 }; /* allocations of one call */

static bool reached[256];  /* by index in hk_algos */
static bool followed[256]; /* by index in hk_rewrites */

static void mark(const char *decision) {
  for (int i = 0; hk_rewrites[i]; i++) {
    char word[64];
    snprintf(word, sizeof word, "%s / ", hk_rewrites[i]->name);
    const char *at = strstr(decision, word);
    if (at && (at == decision || at[-1] == ' ')) followed[i] = true;
  }
  decision = decision_algorithm(decision);
  const size_t length = strcspn(decision, " ");
  for (int i = 0; hk_algos[i]; i++) {
    if (strlen(hk_algos[i]->name) == length && !strncmp(hk_algos[i]->name, decision, length)) reached[i] = true;
  }
}

/* One call under test. Returns its status; what it made is in *plan. */
typedef struct call {
  hk_status (*run)(const struct call *c, hk_plan **plan);
  const trial *t;
  const hk_options *options;
  const hk_plan *like;
  const hk_problem *problem; /* of the plan made like it */
  const char *what;
  bool may_succeed; /* measuring goes on without a candidate that finds no memory */
} call;

static hk_status run_create(const call *c, hk_plan **plan) {
  return hk_plan_create(plan, &c->t->problem, &c->t->epilogue, c->options, &c->t->weights);
}
static hk_status run_bare(const call *c, hk_plan **plan) { /* weights come with execute */
  const hk_weights w = {.size = sizeof w, .slopes = c->t->weights.slopes};
  return hk_plan_create(plan, &c->t->problem, &c->t->epilogue, c->options, &w);
}
static hk_status run_like(const call *c, hk_plan **plan) { return hk_plan_create_like(plan, c->like, c->problem); }

static void ignore(void *context, const hk_candidate *c) { *(int *)context += !c->refusal; }
static hk_status run_candidates(const call *c, hk_plan **plan) {
  int count = 0;
  (void)plan;
  return hk_plan_candidates(&c->t->problem, &c->t->epilogue, c->options, ignore, &count);
}

static void failed(const call *c, long n, hk_status s, const hk_plan *plan, long leaked) {
  CHECK(s == HK_NO_MEMORY, "%s: allocation %ld%s failed, got %s \"%s\"", c->what, n,
        fail_rest ? " and all after it" : "", hk_status_name(s), hk_last_error());
  CHECK(strstr(hk_last_error(), "memory"), "%s: allocation %ld failed: \"%s\"", c->what, n, hk_last_error());
  CHECK(!plan && !leaked, "%s: allocation %ld failed: a plan, or %ld blocks leaked", c->what, n, leaked);
}

/* Fails allocations of the call until none is left to fail; the caller owns the plan of the last. */
static hk_plan *withstand(const call *c) {
  hk_plan *plan = NULL;
  for (fail_rest = 0; fail_rest < 2; fail_rest++) {
    long n = 1;
    for (; n < MOST; n++) {
      hk_plan_destroy(plan);
      plan = NULL;
      const long start = live;
      refused = 0;
      fail_at = n;
      const hk_status s = c->run(c, &plan);
      fail_at = 0;
      if (c->may_succeed) hk_wisdom_forget(); /* what is known is not measured again */
      if (!refused) {
        CHECK(s == HK_OK, "%s: %s", c->what, hk_last_error());
        break;
      }
      if (c->may_succeed && s == HK_OK) continue;
      failed(c, n, s, plan, live - start);
    }
    CHECK(n < MOST, "%s: never without a failing allocation", c->what);
  }
  fail_rest = 0;
  return plan;
}

/* Executes into y and checks that nothing was allocated. */
static void execute(trial *t, const hk_plan *plan, const char *what, bool bare) {
  if (!plan) return;
  trial_prepare(t, plan, 0xa5);
  hk_args a = t->args;
  if (bare) {
    a.f = t->weights.f;
    a.scale = t->weights.scale;
    a.bias = t->weights.bias;
  }
  made = 0;
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  CHECK(made == 0, "%s: execute made %ld allocations", what, made);
}

typedef struct setting {
  const char *problem;
  const hk_options *options;
} setting;

static void force(trial *t, const char *decision, void *context) {
  const setting *set = context;
  hk_options o = *set->options;
  char what[1024];
  snprintf(what, sizeof what, "%s %s", set->problem, decision);
  o.decision = decision;
  mark(decision);
  const long before = live;
  call c = {.run = run_create, .t = t, .options = &o, .what = what};
  hk_plan *clean = NULL, *plan = NULL;
  CHECK_STATUS(HK_OK, "", run_create(&c, &clean));
  if (!clean) return;
  execute(t, clean, what, false);
  const size_t bytes = trial_y_bytes(t);
  void *want = malloc(bytes);
  memcpy(want, t->memory[2], bytes);
  plan = withstand(&c);
  execute(t, plan, what, false);
  CHECK(!memcmp(want, t->memory[2], bytes), "%s: another result after failing allocations", what);
  c = (call){.run = run_like, .like = clean, .problem = &t->problem, .what = what};
  hk_plan *like = NULL;
  if (!hk_plan_create_like(&like, clean, &t->problem)) {
    hk_plan_destroy(like);
    like = withstand(&c);
    hk_problem longer = t->problem;
    longer.n *= 2;
    hk_plan *twice = NULL;
    c.problem = &longer;
    if (!hk_plan_create_like(&twice, clean, &longer)) {
      hk_plan_destroy(twice);
      hk_plan_destroy(withstand(&c));
    }
    hk_plan_destroy(clean); /* its weights live on */
    clean = NULL;
    execute(t, like, what, false);
    CHECK(!memcmp(want, t->memory[2], bytes), "%s: another result of a plan like it", what);
    hk_plan_destroy(like);
  }
  hk_plan_destroy(plan);
  hk_plan_destroy(clean);
  free(want);
  trial_prepare(t, NULL, 0);
  CHECK(live == before, "%s: %ld blocks left at the end", what, live - before);
}

static void force_bare(trial *t, const char *decision, void *context) {
  const setting *set = context;
  hk_options o = *set->options;
  char what[1024];
  hk_plan *plan = NULL;
  snprintf(what, sizeof what, "%s %s, weights with execute", set->problem, decision);
  o.decision = decision;
  const call c = {.run = run_bare, .t = t, .options = &o, .what = what};
  const long before = live;
  if (run_bare(&c, &plan)) return; /* the algorithm packs at creation only */
  hk_plan_destroy(plan);
  plan = withstand(&c);
  execute(t, plan, what, true);
  hk_plan_destroy(plan);
  trial_prepare(t, NULL, 0);
  CHECK(live == before, "%s: %ld blocks left at the end", what, live - before);
}

/* Without a decision, by estimate and by measuring; and the candidates. */
static void plan_freely(trial *t, const setting *set, bool measured) {
  hk_options o = *set->options;
  o.rigor = measured ? HK_MEASURE : HK_ESTIMATE;
  o.time_limit_s = 1e-4;
  const long before = live;
  const call c = {.run = run_create, .t = t, .options = &o, .what = set->problem, .may_succeed = measured};
  hk_plan_destroy(withstand(&c));
  const call list = {.run = run_candidates, .t = t, .options = &o, .what = set->problem};
  withstand(&list);
  o.rigor = HK_PATIENT;
  withstand(&list);
  hk_wisdom_forget();
  CHECK(live == before, "%s: %ld blocks left at the end", set->problem, live - before);
}

static void visit(const char *problem, const char *epilogue, const hk_options *o, bool measured) {
  trial t;
  setting set = {problem, o};
  trial_make(&t, problem, epilogue, 1);
  t.memory[7] = NULL;
  CHECK(trial_decisions(&t, o, force, &set) > 0, "no decision for %s", problem);
  if (!o->stateful) trial_decisions(&t, o, force_bare, &set);
  plan_freely(&t, &set, measured);
  trial_free(&t);
}

/* What trial_list leaves out. */
static const struct {
  const char *problem, *epilogue;
  uint32_t math;
  int32_t stateful;
} more[] = {{"2d_n1_c8_i9x9_k16_w3x3_p1_first", "scale+bias+prelu+sum:0.5", 0, 0},
            {"1d_n1_c2_i64_k5_w1_last", "bias+relu", 0, 0},
            {"2d_n1_c32_i16x16_k32_w3x3_p1_last", "none", HK_MATH_FAST_ALGORITHMS, 0},
            {"2d_n1_c32_i16x16_k32_w3x3_p1_first", "none", HK_MATH_FAST_ALGORITHMS, 0},
            {"1d_n1_c1_i400_k1_w64_first", "none", HK_MATH_FAST_ALGORITHMS, 0},
            {"1d_n1_c8_i40_k8_w3_d2_p4:0_g8_last", "none", 0, 0},
            {"1d_n1_c8_i40_k8_w4_l2_p3_g8_bf16_last", "none", 0, 0},
            {"2d_n1_c8_i9x8_k8_w3x1_l2_p1_last", "bias", 0, 0},
            {"1d_n1_c8_i40_k8_w4_g8_bf16_last", "bias", 0, 0},
            {"2d_n4_c3_i8x8_k6_w3x3_b2_p1_bf16_first", "none", 0, 0},
            {"2d_n1_c8_i9x9_k8_w3x3_p1_last", "bias+gated:tanh:sigmoid", 0, 0},
            {"2d_n1_c8_i9x9_k8_w3x3_p1_g8_last", "blended:tanh:sigmoid", 0, 0},
            {"2d_n1_c8_i9x9_k8_w3x3_p1_g8_first", "gated:tanh:sigmoid", 0, 0},
            {"1d_n1_c8_i40_k8_w3_p2:0_first", "bias", 0, 1},
            {"1d_n1_c8_i40_k8_w3_p2:0_last", "bias", 0, 1},
            {"1d_n1_c8_i40_k8_w3_p2:0_g8_first", "none", 0, 1},
            {"1d_n1_c8_i40_k8_w3_p2:0_g8_last", "none", 0, 1},
            {"1d_n1_c8_i40_k8_w3_p2:0_g4_first", "none", 0, 1},
            {"1d_n1_c8_i40_k8_w3_p2:0_f64_first", "none", 0, 1},
            {"1d_n1_c8_i40_k8_w3_p2:0_s8:s8:s32_last", "none", 0, 1}};

int main(void) {
  const hk_options strict = {.size = sizeof strict, .threads = 1},
                   invariant = {.size = sizeof invariant, .threads = 2, .batch_invariant = 1};
  for (int i = 0; trial_list[i].problem; i++) {
    visit(trial_list[i].problem, trial_list[i].epilogue, &strict, i % 5 == 0);
    if (i < 3) visit(trial_list[i].problem, trial_list[i].epilogue, &invariant, false);
  }
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    const hk_options o = {.size = sizeof o, .threads = 1, .math = more[i].math, .stateful = more[i].stateful};
    visit(more[i].problem, more[i].epilogue, &o, false);
  }
  for (int i = 0; hk_algos[i] && hk_cpu_has(HK_ISA_AVX2); i++) { /* other machines have fewer */
    if (hk_algos[i]->device == HK_CPU) CHECK(reached[i], "no problem here reaches %s", hk_algos[i]->name);
  }
  for (int i = 0; hk_rewrites[i]; i++)
    if (hk_rewrites[i]->device == HK_CPU) CHECK(followed[i], "no problem here reaches %s", hk_rewrites[i]->name);
  return hk_test_end();
}
