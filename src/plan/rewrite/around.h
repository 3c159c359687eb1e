/* Algorithms around another: they change the task, ask the inner algorithm, and add what their own pass costs. */
#ifndef HK_AROUND_H
#define HK_AROUND_H
#include "plan/plan.h"

typedef struct hk_around {
  hk_task (*task)(const hk_task *task);             /* what the inner algorithm is asked */
  size_t (*bytes)(const hk_task *task);             /* workspace of the pass itself, a multiple of HK_ALIGN, behind the inner's */
  double (*seconds)(const hk_task *task);           /* what the pass costs */
} hk_around;

bool hk_around_offer(const hk_around *a, const hk_task *t, hk_decision *d, char *why);
bool hk_around_vary(const hk_around *a, const hk_task *t, const hk_decision *base, int index, hk_decision *d);
bool hk_around_check(const hk_around *a, const hk_task *t, hk_decision *d, char *why);
/* Builds the inner plan, which is plan->own then, and takes its error; f as in hk_plan_build_inner. */
hk_status hk_around_build(const hk_around *a, hk_plan *plan, const void *f);
/* The same over the caller's weights, with that many zeroed bytes at plan->pass. */
hk_status hk_around_build_pass(const hk_around *a, hk_plan *plan, size_t bytes);
void hk_around_destroy(hk_plan *plan);
/* Where the pass's own workspace starts. */
char *hk_around_workspace(const hk_plan *plan, const hk_call *call);
#endif
