/* The planner: from a task to a decision. */
#ifndef HK_PLANNER_H
#define HK_PLANNER_H
#include "plan/plan.h"

/* Best decision by predicted time among those the options allow. */
hk_status hk_planner_decide(const hk_task *task, hk_decision *d);
/* Calls fn for every usable candidate, best first, then every refused one with its reason. */
typedef void (*hk_planner_fn)(void *context, const hk_decision *d, const char *refusal);
hk_status hk_planner_visit(const hk_task *task, hk_planner_fn fn, void *context);
#endif
