/* A problem with everything needed to run it, and every decision that the planner would consider for it: what tests of
 * all decisions share. */
#ifndef HK_TESTS_TRIAL_H
#define HK_TESTS_TRIAL_H
#include <stddef.h>
#include <stdint.h>

#include "hankel.h"

/* One problem with everything needed to run it. */
typedef struct trial {
  hk_problem problem;
  hk_epilogue epilogue;
  hk_weights weights;
  hk_args args;
  hk_extent x, f, y; /* elements */
  void *memory[8];
} trial;
/* Parses and fills with seeded fractions (so that the order of a sum shows in its bits) or, for int8, integers; exits
 * the test when a text is wrong or memory is out. */
void trial_make(trial *t, const char *problem, const char *epilogue, uint64_t seed);
void trial_free(trial *t);
/* Gives args a workspace for the plan, and y the poison byte. */
void trial_prepare(trial *t, const hk_plan *plan, int poison);
size_t trial_y_bytes(const trial *t);

/* Calls visit for every decision usable for the trial under options (may be NULL). Returns how many. */
typedef void (*decision_fn)(trial *t, const char *decision, void *context);
int trial_decisions(trial *t, const hk_options *options, decision_fn visit, void *context);

/* What stands behind the last " / " of a decision: the algorithm and its knobs. */
const char *decision_algorithm(const char *decision);

/* A short list of problems with epilogues that between them reach every algorithm. Ends with NULL. */
typedef struct trial_text {
  const char *problem, *epilogue;
} trial_text;
extern const trial_text trial_list[];
#endif
