/* The same bits for any number of threads, for the caller's own loop in any order, and for a second execution: every
 * decision, with and without workspace, of every problem of the list, from poisoned output. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/trial.h"

static void backwards(void *pool, int64_t count, void (*body)(void *context, int64_t i), void *context) {
  *(int64_t *)pool += count;
  for (int64_t i = count; i-- > 0;) body(context, i);
}

/* Executes with these options and compares with what the first call of the decision gave; first: keeps it. */
static void run(trial *t, const hk_options *o, char *expected, bool first) {
  hk_plan *plan = NULL;
  const hk_status made = hk_plan_create(&plan, &t->problem, &t->epilogue, o, &t->weights);
  CHECK(made == HK_OK, "%s, %d threads: %s", o->decision, o->threads, hk_last_error());
  if (made) return;
  for (int time = 0; time < 2; time++) {
    trial_prepare(t, plan, time ? 0x5A : 0xA5);
    CHECK(hk_plan_execute(plan, &t->args) == HK_OK, "%s: %s", o->decision, hk_last_error());
    if (first) {
      memcpy(expected, t->memory[2], trial_y_bytes(t));
      first = false;
    }
    CHECK(!memcmp(expected, t->memory[2], trial_y_bytes(t)), "%s, %d threads, execution %d: other bits", o->decision,
          o->threads, time);
  }
  hk_plan_destroy(plan);
}

static void visit(trial *t, const char *decision, void *context) {
  const char *problem = context;
  const int before = hk_test_failed;
  char *expected = malloc(trial_y_bytes(t) + 1);
  if (!expected) exit(1);
  static const int32_t counts[] = {1, 2, 3, 7};
  for (int i = 0; i < 4; i++) {
    hk_options o = {.size = sizeof o, .threads = counts[i], .decision = decision};
    run(t, &o, expected, i == 0);
  }
  int64_t ran = 0;
  hk_options o = {.size = sizeof o, .threads = 4, .decision = decision, .parallel_for = backwards, .pool = &ran};
  run(t, &o, expected, false);
  if (hk_test_failed > before) fprintf(stderr, "problem: %s\n", problem);
  free(expected);
}

int main(void) {
  int visited = 0;
  for (const trial_text *text = trial_list; text->problem; text++) {
    trial t;
    trial_make(&t, text->problem, text->epilogue, 2);
    visited += trial_decisions(&t, NULL, visit, (void *)text->problem);
    trial_free(&t);
  }
  CHECK(visited > 0, "no decision was visited");
  printf("%d decisions\n", visited);
  return hk_test_end();
}
