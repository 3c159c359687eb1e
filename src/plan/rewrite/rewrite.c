/* What all rewrites share: see rewrite.h. */
#include "plan/rewrite/rewrite.h"

#include <stdio.h>
#include <string.h>

bool hk_path_push(hk_path *p, const hk_rewrite *r, char *why) {
  const hk_task *t = hk_path_task(p, p->depth);
  const hk_rewrite *last = p->depth ? p->step[p->depth - 1] : NULL;
  if (r->device != t->options.device) return hk_refuse(why, "is for another device");
  if (last && last->order >= r->order) {
    snprintf(why, HK_REASON,
             "%s cannot follow %s: paths go state, gate or finish, convert, transpose, phase or polyphase", r->name,
             last->name);
    return false;
  }
  if (t->vast && r->device == HK_CPU) return hk_refuse(why, "sizes beyond those of docs/limits.md are for ref alone");
  if (!r->takes(t, why)) return false;
  hk_task *to = &p->inner[p->depth];
  *to = *t;
  p->step[p->depth] = r;
  p->parts[p->depth++] = r->inner(t, 0, to);
  hk_task_set_nonfinite(to, t->nonfinite);
  return true;
}

bool hk_path_make(hk_path *p, const hk_task *task, const hk_decision *d, char *why) {
  p->task = task;
  p->depth = 0;
  for (int i = 0; i < d->depth; i++) {
    char reason[HK_REASON] = "";
    if (hk_path_push(p, d->path[i], reason)) continue;
    snprintf(why, HK_REASON, "%s: %.*s", d->path[i]->name, HK_REASON - 20, reason);
    return false;
  }
  return true;
}

/* The algorithm's answer for the task that it would see. */
static bool answer(const hk_task *t, hk_decision *d, bool offer, char *why) {
  /* 0 * Inf is NaN: such weights need an algorithm that leaves taps outside x out */
  if (t->padded_nonfinite && !d->algo->skips_padding && d->algo->device == HK_CPU)
    return hk_refuse(why, "weights hold Inf or NaN, and padded taps would be multiplied by zero");
  if (t->geom.fold && !d->algo->folds) return hk_refuse(why, "subpixel folds the channels of y, for wgmma alone");
  if (!offer) return hk_decision_check_algo(t, d, why);
  hk_decision_derive(d);
  return d->algo->offer(t, d, why);
}

/* The knobs that one part completed serve the others; but on a device, where the shape determines the derived ones,
 * each part has its own. */
static void part_knobs(const hk_rewrite *r, hk_decision *d) {
  if (r->device == HK_CUDA) hk_decision_derive(d);
}

/* The algorithm's answer for all parts of the last rewrite, of which the one at `from` completes the knobs: time is
 * added, workspace is shared. */
static bool ask_parts(const hk_path *p, int from, hk_decision *d, bool offer, char *why) {
  const hk_task *t = hk_path_task(p, p->depth - 1);
  const hk_rewrite *r = p->step[p->depth - 1];
  double seconds = 0;
  size_t bytes = 0;
  for (int i = -1; i < p->parts[p->depth - 1]; i++) {
    hk_task part = *t;
    if (i == from) continue;
    r->inner(t, i < 0 ? from : i, &part);
    hk_task_set_nonfinite(&part, t->nonfinite);
    hk_decision one = *d;
    if (i >= 0) part_knobs(r, &one);
    if (!answer(&part, &one, offer && i < 0, why)) return false;
    seconds += one.predicted_s;
    if (one.workspace_bytes > bytes) bytes = one.workspace_bytes;
    if (i < 0) *d = one;
  }
  d->predicted_s = seconds;
  d->workspace_bytes = bytes;
  return true;
}

double hk_path_seconds(const hk_path *p, double inner) {
  for (int i = p->depth - 1; i >= 0; i--) inner = p->step[i]->seconds(hk_path_task(p, i), inner);
  return inner;
}

static void set_path(const hk_path *p, hk_decision *d) {
  for (int i = 0; i < HK_DEPTH; i++) d->path[i] = i < p->depth ? p->step[i] : NULL;
  d->depth = p->depth;
}

bool hk_path_suggest(const hk_path *p, hk_decision *d, char *why) {
  set_path(p, d);
  return answer(hk_path_task(p, p->depth), d, true, why);
}

/* The choice of the first part, or where another does not take it, that of the last. */
static bool ask(const hk_path *p, hk_decision *d, bool offer, char *why) {
  const int parts = p->depth ? p->parts[p->depth - 1] : 1;
  set_path(p, d);
  if (parts == 1) return answer(hk_path_task(p, p->depth), d, offer, why);
  const hk_decision start = *d;
  if (ask_parts(p, 0, d, offer, why)) return true;
  *d = start;
  return ask_parts(p, parts - 1, d, offer, why);
}

bool hk_path_ask(const hk_path *p, hk_decision *d, bool offer, char *why) {
  if (!ask(p, d, offer, why)) return false;
  for (int i = p->depth - 1; i >= 0; i--) {
    const hk_rewrite *r = p->step[i];
    d->workspace_bytes = (size_t)hk_round_up((int64_t)d->workspace_bytes, HK_ALIGN);
    if (r->copies) d->workspace_bytes *= (size_t)r->copies(hk_path_task(p, i));
    if (r->bytes) d->workspace_bytes += r->bytes(hk_path_task(p, i));
  }
  d->predicted_s = hk_path_seconds(p, d->predicted_s);
  if (d->algo->device == HK_CPU)
    d->predicted_s = hk_cost_above(hk_cost_floors_of(&p->task->geom, p->task->isa, p->task->threads),
                                   !d->algo->fewer_products, d->predicted_s);
  return true;
}

bool hk_path_vary(const hk_task *task, const hk_decision *base, int index, hk_decision *d) {
  hk_path p;
  char why[HK_REASON];
  hk_decision from = *base;
  if (!base->algo->vary || !hk_path_make(&p, task, base, why)) return false;
  hk_decision_derive(&from);
  return base->algo->vary(hk_path_task(&p, p.depth), &from, index, d);
}

bool hk_decision_check(const hk_task *t, hk_decision *d, char *why) {
  hk_path p;
  return hk_path_make(&p, t, d, why) && hk_path_ask(&p, d, false, why);
}

/* Of parts with filters of their own: the packed weights of the one whose first tap is `part`, or NULL. */
static hk_packed *packed_of(hk_packed *p, int64_t part) {
  while (p && p->part != part) p = p->next;
  return p;
}

static void packed_append(hk_packed *p, hk_packed *last) {
  while (p->next) p = p->next;
  atomic_fetch_add(&last->refs, 1);
  p->next = last;
}

/* Builds the inner plan of a part that has a filter of its own, alone or with the weights of a plan made alike. With
 * nothing to pack it shares scale and bias. */
static hk_status build_part(hk_plan *plan, int i, hk_task *t, const hk_decision *path, const hk_weights *w) {
  const hk_rewrite *r = plan->decision.path[0];
  int64_t first;
  const int64_t at = r->filter_at(&plan->task, i, &first);
  const bool now = plan->task.f_now, shares = hk_plan_shares(plan) || !now;
  const hk_plan shared = {.packed = now ? packed_of(plan->packed, first) : plan->packed};
  hk_decision d = *path;
  char why[HK_REASON] = "";
  if (shares && !shared.packed)
    return hk_fail(HK_UNSUPPORTED,
                   "%s: the plan that this one is made like has no part with the taps from %lld on; "
                   "hk_plan_create makes a plan of its own",
                   r->name, (long long)first);
  if (i) part_knobs(r, &d);
  if (!hk_decision_check(t, &d, why)) return hk_fail(HK_UNSUPPORTED, "%s: %s", r->name, why);
  const char *f = w->f ? (const char *)w->f + at * (int64_t)hk_type_bytes(t->geom.f_type) : NULL;
  const hk_status s = hk_plan_build_at(&plan->inner[i], t, &d, w, shares ? NULL : f, shares ? &shared : NULL);
  if (s || shares) return s;
  plan->inner[i]->packed->part = first;
  if (i) packed_append(plan->inner[0]->packed, plan->inner[i]->packed);
  return HK_OK;
}

/* The inner plan of the first part packs the weights, those of the others share them, or each packs its own. */
static hk_status build_inner(hk_plan *plan, const void *f) {
  const hk_rewrite *r = plan->decision.path[0];
  hk_packed *mine = plan->packed;
  const hk_weights w = {.size = sizeof w,
                        .f = f,
                        .scale = mine->scale,
                        .bias = mine->bias,
                        .slopes = mine->slopes,
                        .f_zero = mine->f_zero};
  const hk_plan shared = {.packed = mine};
  hk_decision d = plan->decision;
  hk_status s = HK_OK;
  d.depth--;
  memmove(d.path, d.path + 1, (size_t)d.depth * sizeof *d.path);
  d.path[d.depth] = NULL;
  int parts = 1;
  for (int i = 0; i < parts && !s; i++) {
    char why[HK_REASON] = "";
    hk_task t = plan->task;
    parts = r->inner(&plan->task, i, &t);
    hk_task_set_nonfinite(&t, plan->task.nonfinite);
    if (r->filter_at) {
      s = build_part(plan, i, &t, &d, &w);
      continue;
    }
    /* with nothing to pack all is shared: scale and bias are those of the whole, though the part may have fewer */
    const hk_plan *like = i ? plan->inner[0] : hk_plan_shares(plan) || !t.f_now ? &shared : NULL;
    if (hk_decision_check(&t, &d, why)) s = hk_plan_build_at(&plan->inner[i], &t, &d, &w, like ? NULL : f, like);
    else s = hk_fail(HK_UNSUPPORTED, "%s: %s", r->name, why);
  }
  return s;
}

hk_status hk_rewrite_build(hk_plan *plan) {
  const hk_rewrite *r = plan->decision.path[0];
  const void *f = plan->raw_f;
  void *made = NULL;
  hk_status s = HK_OK;
  if (r->filter && f) s = r->filter(plan, &f, &made);
  if (!s) s = build_inner(plan, f);
  hk_free(made);
  if (s) return s;
  const hk_plan *inner = plan->inner[0];
  atomic_fetch_add(&inner->packed->refs, 1);
  hk_packed_release(plan->packed);
  plan->packed = inner->packed;
  plan->error_factor = inner->error_factor;
  return r->build ? r->build(plan) : HK_OK;
}

hk_status hk_rewrite_alloc_pass(hk_plan *plan, size_t bytes) {
  plan->pass = hk_alloc_zero(bytes);
  return plan->pass ? HK_OK : hk_fail(HK_NO_MEMORY, "no memory for a plan");
}

void hk_rewrite_destroy(hk_plan *plan) {
  const hk_rewrite *r = plan->decision.path[0];
  if (r->destroy && plan->pass) r->destroy(plan);
  for (int i = 0; i < HK_PARTS; i++) hk_plan_destroy(plan->inner[i]);
  hk_free(plan->pass);
}

char *hk_rewrite_workspace(const hk_plan *plan, const hk_call *call) {
  size_t most = 0;
  for (int i = 0; i < HK_PARTS && plan->inner[i]; i++) {
    const size_t bytes = plan->inner[i]->decision.workspace_bytes;
    if (bytes > most) most = bytes;
  }
  const hk_rewrite *r = plan->decision.path[0];
  return call->workspace + hk_round_up((int64_t)most, HK_ALIGN) * (r->copies ? r->copies(&plan->task) : 1);
}

hk_status hk_rewrite_run_inner(const hk_plan *plan, int part, const hk_call *call) {
  const hk_plan *inner = plan->inner[part];
  hk_call c = *call;
  c.state_in = NULL;
  c.state_out = NULL;
  if (plan->task.f_now && inner->packed->f)
    c.f = (const char *)inner->packed->f + inner->packed->f_shift * (int64_t)hk_type_bytes(inner->task.geom.f_type);
  return hk_plan_run(inner, &c);
}
