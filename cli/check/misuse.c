/* Calls that break a rule: each fails with the status of the rule and a sentence, and writes nothing. */
#include <stdlib.h>
#include <string.h>

#include "check/execute.h"

typedef struct misuse {
  check_session *c;
  const hk_plan *plan;
  hk_args args; /* right */
  char *why;
} misuse;

static bool refused(misuse *m, hk_status status, hk_status want, const char *what) {
  if (status == want && *hk_last_error()) return true;
  snprintf(m->why, CHECK_WHY, "%s: %s, expected %s", what, hk_status_name(status), hk_status_name(want));
  return false;
}

static bool call_refused(misuse *m, const hk_args *a, hk_status want, const char *what) {
  const size_t bytes = m->c->t->with & WITH_STORE ? 0 : m->c->result_bytes;
  if (!refused(m, hk_plan_execute(m->plan, a), want, what)) return false;
  if (!bytes || !memcmp(m->c->again, m->c->before[0], bytes)) return true;
  snprintf(m->why, CHECK_WHY, "%s: refused, but y was written", what);
  return false;
}

static bool arguments_refused(misuse *m) {
  hk_args a = m->args;
  a.size--;
  bool ok = call_refused(m, &a, HK_INVALID, "args.size");
  a = m->args;
  if (!(m->c->t->with & WITH_STATE)) {
    a.state_out = m->c->again;
    ok = ok && call_refused(m, &a, HK_INVALID, "a state for a plan without one");
  } else if (m->c->s.past && hk_type_bytes(m->c->t->p.x_type) > 1) {
    a.state_out = m->c->again + 1;
    ok = ok && call_refused(m, &a, HK_INVALID, "a misaligned state");
  }
  if (!hk_plan_workspace(m->plan)) return ok;
  a = m->args;
  a.workspace = NULL;
  ok = ok && call_refused(m, &a, HK_WORKSPACE, "no workspace");
  a.workspace = (char *)m->args.workspace + 1;
  ok = ok && call_refused(m, &a, HK_WORKSPACE, "a misaligned workspace");
  a.workspace = m->args.workspace;
  a.workspace_bytes--;
  return ok && call_refused(m, &a, HK_WORKSPACE, "a workspace one byte short");
}

static bool creation_refused(misuse *m) {
  const check_case *t = m->c->t;
  hk_plan *plan = NULL;
  hk_options o = *m->c->options;
  hk_epilogue e = t->e;
  hk_weights w = {.size = sizeof w - 1};
  bool ok = refused(m, hk_plan_create(&plan, &t->p, &e, &o, &w), HK_INVALID, "weights.size");
  e.size--;
  ok = ok && refused(m, hk_plan_create(&plan, &t->p, &e, &o, NULL), HK_INVALID, "epilogue.size");
  o.size--;
  ok = ok && refused(m, hk_plan_create(&plan, &t->p, &t->e, &o, NULL), HK_INVALID, "options.size");
  o.size++;
  o.denormals = (hk_denormals)7;
  return ok && refused(m, hk_plan_create(&plan, &t->p, &t->e, &o, NULL), HK_INVALID, "options.denormals");
}

bool check_misuse_refused(check_session *c, const hk_plan *plan, char why[CHECK_WHY]) {
  misuse m = {.c = c, .plan = plan, .args = check_session_args(c, PLACE_HIGH), .why = why};
  const bool store = c->t->with & WITH_STORE;
  if (!store) memcpy(c->again, c->before[0], c->result_bytes);
  m.args.y = c->again + (store ? 0 : c->s.y.below * (int64_t)hk_type_bytes(c->t->p.y_type));
  if (c->t->with & WITH_IN_PLACE) m.args.c = m.args.y;
  m.args.workspace_bytes = hk_plan_workspace(plan);
  if (!c->s.outputs) return true; /* nothing to do, and nothing is looked at */
  if (m.args.workspace_bytes) m.args.workspace = aligned_alloc(64, (m.args.workspace_bytes + 63) / 64 * 64);
  const bool ok = arguments_refused(&m) && creation_refused(&m);
  free(m.args.workspace);
  return ok;
}
