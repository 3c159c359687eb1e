/* What algorithms around another share; see around.h. */
#include "plan/rewrite/around.h"

#include <math.h>

static void account(const hk_around *a, const hk_task *t, hk_decision *d) {
  d->workspace_bytes = (size_t)hk_round_up((int64_t)d->workspace_bytes, HK_ALIGN) + a->bytes(t);
  d->predicted_s += a->seconds(t);
}

/* The inner algorithm sees a decision of its own; what comes of it is the outer one's. */
bool hk_around_offer(const hk_around *a, const hk_task *t, hk_decision *d, char *why) {
  const hk_algo *self = d->algo;
  const hk_task inner = a->task(t);
  d->algo = self->inner;
  const bool takes = self->inner->offer(&inner, d, why);
  d->algo = self;
  if (takes) account(a, t, d);
  return takes;
}

bool hk_around_vary(const hk_around *a, const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  const hk_algo *self = base->algo;
  const hk_task inner = a->task(t);
  hk_decision from = *base;
  from.algo = self->inner;
  if (!self->inner->vary || !self->inner->vary(&inner, &from, index, d)) return false;
  d->algo = self;
  account(a, t, d);
  return true;
}

bool hk_around_check(const hk_around *a, const hk_task *t, hk_decision *d, char *why) {
  const hk_algo *self = d->algo;
  const hk_task inner = a->task(t);
  d->algo = self->inner;
  const bool takes = hk_decision_check(&inner, d, why);
  d->algo = self;
  if (takes) account(a, t, d);
  return takes;
}

hk_status hk_around_build(const hk_around *a, hk_plan *plan, const void *f) {
  const hk_task inner = a->task(&plan->task);
  hk_decision d = plan->decision;
  d.algo = d.algo->inner;
  d.workspace_bytes -= a->bytes(&plan->task);
  const hk_status s = hk_plan_build_inner(plan, &inner, &d, f);
  if (!s) plan->error_factor = fmax(plan->error_factor, ((const hk_plan *)plan->own)->error_factor);
  return s;
}

hk_status hk_around_build_pass(const hk_around *a, hk_plan *plan, size_t bytes) {
  const hk_status s = hk_around_build(a, plan, plan->raw_f);
  if (s) return s;
  plan->pass = hk_alloc_zero(bytes);
  return plan->pass ? HK_OK : hk_fail(HK_NO_MEMORY, "no memory for a plan");
}

void hk_around_destroy(hk_plan *plan) {
  hk_plan_destroy(plan->own);
  hk_free(plan->pass);
}

char *hk_around_workspace(const hk_plan *plan, const hk_call *call) {
  const hk_plan *inner = plan->own;
  return call->workspace + hk_round_up((int64_t)inner->decision.workspace_bytes, HK_ALIGN);
}
