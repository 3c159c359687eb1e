/* The planner: from a task to a decision. */
#ifndef HK_PLANNER_H
#define HK_PLANNER_H
#include "plan/plan.h"

/* Wisdom, else the best by predicted time (ESTIMATE) or by measuring (MEASURE, PATIENT; what was measured becomes
 * wisdom). *source says which: "wisdom", "estimate" or "measured". */
hk_status hk_planner_decide(const hk_task *task, const hk_weights *w, hk_decision *d, const char **source);
/* tuner.c: times candidates, the first of which is the estimate's choice; fills in the winner and its time. */
hk_status hk_tuner_choose(const hk_task *task, const hk_weights *w, const hk_decision *candidates, int count,
                          hk_decision *winner, double *seconds);
/* Calls fn for every usable candidate, best first, then every refused one with its reason. */
typedef void (*hk_planner_fn)(void *context, const hk_decision *d, const char *refusal);
hk_status hk_planner_visit(const hk_task *task, hk_planner_fn fn, void *context);
#endif
