/* hk_plan_create_like: a plan of the case, plans made like it for another batch, image, padding and strides, and plans
 * made like those for the first problem again, when the plans between are gone. The results are those of the formula; a
 * refusal is accepted with its sentence, but not for the plan's own problem. The weights of both problems are the same,
 * since each tensor of a case has a random stream of its own. */
#include <stdlib.h>
#include <string.h>

#include "check/execute.h"

enum { MOST_PLANS = 24 };

typedef struct family {
  const check_case *t;
  const hk_options *options;
  check_report *report;
  int count;
  const char *name[MOST_PLANS];
  hk_plan *plan[MOST_PLANS];
  bool ok;
} family;

/* Another problem that shares the weights of t's. Strides that stay as they are go with sizes that stay as they are. */
static check_case other_make(const check_case *t) {
  uint64_t r = cli_random_mix(t->seed, 31);
  const check_budget most = {1e6, 1e5, 1};
  check_case q = *t;
  hk_problem *p = &q.p;
  const bool sizes = check_chance(&r, 60);
  if (sizes && check_chance(&r, 60)) p->n = p->batch_groups * check_between(&r, 1, 4);
  for (int d = 0; sizes && d < p->rank; d++) {
    if (check_chance(&r, 60)) p->in[d] = check_between(&r, 1, 2 * p->in[d] + 8);
    if (t->with & WITH_STATE) continue;
    if (check_chance(&r, 40)) p->pad_lo[d] = check_between(&r, -1, 4);
    if (check_chance(&r, 40)) p->pad_hi[d] = check_between(&r, -1, 4);
  }
  if (!check_sizes_fit(&q, &most)) q = *t;
  if (!sizes) {
    check_strides_redraw(&q, &r);
    return q;
  }
  const hk_layout layout = check_chance(&r, 50) ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST;
  hk_problem_dense(p, layout);
  p->f = t->p.f;
  if (q.e.gate) hk_problem_dense_y(p, layout, p->k / 2);
  if (check_chance(&r, 30)) check_strides_redraw(&q, &r);
  return q;
}

static void tell(family *a, int i, const char *what, const char *why) {
  char *full = cli_text("%s: %s", what, why);
  check_tell(a->report, a->t, a->options, a->name[i], "create_like ", full ? full : why);
  free(full);
  a->ok = false;
}

/* Replaces plan i by one made like it for the session's problem, and runs that. */
static void like_run(family *a, check_session *c, int i, const char *what, bool own) {
  char why[CHECK_WHY] = "";
  hk_plan *made = NULL;
  if (!a->plan[i]) return;
  check_before(a->report, a->t, a->options, a->name[i]);
  hk_status status = hk_plan_create_like(&made, a->plan[i], &c->t->p);
  hk_plan_destroy(a->plan[i]);
  a->plan[i] = made;
  if (status && (own || !*hk_last_error())) {
    snprintf(why, sizeof why, "refused: %.300s (%s)", hk_last_error(), hk_status_name(status));
    tell(a, i, what, why);
  }
  if (status) return;
  a->report->decisions++;
  if (check_session_try(c, made, why)) return;
  tell(a, i, what, why);
  hk_plan_destroy(made);
  a->plan[i] = NULL;
}

static void stage_run(family *a, const check_case *q, check_kind kind, const char *what, bool first) {
  check_session c = {.t = q, .options = a->options, .report = a->report};
  check_shape_make(&c.s, q);
  if (check_session_open(&c, kind))
    for (int i = 0; i < a->count; i++) {
      if (first && check_session_plan(&c, &a->plan[i], a->name[i], check_session_threads(&c), false)) continue;
      like_run(a, &c, i, what, first);
    }
  check_session_close(&c);
}

bool check_like_run(const check_case *t, const hk_options *options, const check_names *n, check_report *report) {
  family a = {.t = t, .options = options, .report = report, .ok = true};
  const check_kind kind = t->with & WITH_NONFINITE || t->seed & 1 ? KIND_FLOATS : KIND_INTEGERS;
  const check_case other = other_make(t);
  if (hk_problem_check(&other.p) && !t->e.gate) return true; /* crops more than there is */
  for (int i = 0; i < n->count && a.count < MOST_PLANS; i++) a.name[a.count++] = n->at[i];
  stage_run(&a, t, kind, "for its own problem", true);
  char *text = cli_problem_text(&other.p), *what = cli_text("for %s", text ? text : "?");
  stage_run(&a, &other, kind, what, false);
  stage_run(&a, t, kind, "back from another problem", false);
  for (int i = 0; i < a.count; i++) hk_plan_destroy(a.plan[i]);
  free(text);
  free(what);
  return a.ok;
}
