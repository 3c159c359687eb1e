/* Creating plans and listing candidates: structs of any header's size, then task, planner, build. No logic of its own.
 */
#include "tune/planner.h"

static void log_create(const hk_plan *plan, double seconds) {
  char problem[1024], epilogue[256], decision[HK_DECISION_TEXT], command[HK_COMMAND_TEXT];
  hk_text c = {command, sizeof command, 0};
  if (!hk_log_on(HK_LOG_CREATE | HK_LOG_DISPATCH)) return;
  hk_problem_print(&plan->task.problem, problem, sizeof problem, NULL);
  hk_epilogue_print(&plan->task.epi.e, epilogue, sizeof epilogue, NULL);
  hk_plan_decision(plan, decision, sizeof decision, NULL);
  const bool cuda = plan->task.options.device == HK_CUDA;
  hk_task_print_command(&c, &plan->task, "plan", decision);
  hk_log(HK_LOG_CREATE, "hankel,create,%s,%s,%s,%s,%s,%.6g ms,%s", cuda ? "cuda" : "cpu", problem, epilogue, decision,
         plan->source, seconds * 1e3, command);
}

static hk_status check_workspace(const hk_task *t, const hk_decision *d) {
  if (!t->options.limit_workspace || d->workspace_bytes <= t->options.workspace_limit_bytes) return HK_OK;
  return hk_fail(HK_UNSUPPORTED, "the decision needs %zu bytes of workspace, the limit is %zu", d->workspace_bytes,
                 t->options.workspace_limit_bytes);
}

/* Room for the structs of a program built against an older header. */
typedef struct rooms {
  hk_problem p;
  hk_epilogue e;
  hk_options o;
  hk_weights w;
} rooms;

hk_status hk_plan_create(hk_plan **plan, const hk_problem *p, const hk_epilogue *e, const hk_options *o,
                         const hk_weights *w) {
  hk_task task;
  hk_decision d;
  rooms room;
  if (!plan) return hk_fail(HK_INVALID, "plan is NULL");
  *plan = NULL;
  const double start = hk_clock();
  if (!(p = hk_take(p, &room.p, sizeof room.p, "problem")) ||
      (e && !(e = hk_take(e, &room.e, sizeof room.e, "epilogue"))) ||
      (o && !(o = hk_take(o, &room.o, sizeof room.o, "options"))) ||
      (w && !(w = hk_take(w, &room.w, sizeof room.w, "weights"))))
    return HK_INVALID;
  const char *text = o ? o->decision : NULL;
  hk_status s = hk_task_make(&task, p, e, o, w);
  if (!s && task.f_now) hk_task_read_weights(&task, w->f);
  const char *source = "forced";
  if (!s) s = text ? hk_decision_parse(&task, text, &d) : hk_planner_decide(&task, w, &d, &source);
  if (!s) s = check_workspace(&task, &d);
  if (!s) s = hk_plan_build(plan, &task, &d, w, NULL);
  if (s) return s;
  (*plan)->source = source;
  log_create(*plan, hk_clock() - start);
  return HK_OK;
}

hk_status hk_plan_create_like(hk_plan **plan, const hk_plan *like, const hk_problem *p) {
  hk_task task;
  hk_problem room;
  if (!plan || !like) return hk_fail(HK_INVALID, "plan and like must not be NULL");
  *plan = NULL;
  if (!(p = hk_take(p, &room, sizeof room, "problem"))) return HK_INVALID;
  const hk_weights w = {.size = sizeof w, .slopes = like->packed->slopes, .f_zero = like->packed->f_zero};
  hk_status s = HK_OK;
  if (!hk_problem_alike(&like->task.problem, p))
    s = hk_fail(HK_INVALID, "the problem differs from the plan's in more than batch, input size, padding and strides");
  if (!s) s = hk_task_make(&task, p, &like->task.epi.e, &like->task.options, &w);
  if (s) return s;
  task.f_now = like->task.f_now;
  hk_task_set_nonfinite(&task, like->task.nonfinite);
  hk_decision d;
  if ((s = hk_decision_adapt(&task, &like->decision, &d)) || (s = check_workspace(&task, &d))) return s;
  if ((s = hk_plan_build(plan, &task, &d, NULL, like))) return s;
  (*plan)->source = like->source;
  return HK_OK;
}

typedef struct visit {
  hk_candidate_fn fn;
  void *context;
} visit;

static void show(void *context, const hk_decision *d, const char *refusal) {
  const visit *v = context;
  char text[HK_DECISION_TEXT];
  hk_text t = {text, sizeof text, 0};
  if (refusal) hk_decision_print_name(&t, d);
  else hk_decision_print(&t, d);
  const hk_candidate c = {sizeof c, text, refusal, d->predicted_s, d->workspace_bytes};
  v->fn(v->context, &c);
}

hk_status hk_plan_candidates(const hk_problem *p, const hk_epilogue *e, const hk_options *o, hk_candidate_fn fn,
                             void *context) {
  hk_task task;
  rooms room;
  if (!fn) return hk_fail(HK_INVALID, "fn is NULL");
  if (!(p = hk_take(p, &room.p, sizeof room.p, "problem")) ||
      (e && !(e = hk_take(e, &room.e, sizeof room.e, "epilogue"))) ||
      (o && !(o = hk_take(o, &room.o, sizeof room.o, "options"))))
    return HK_INVALID;
  /* candidates are those of a plan whose weights are known; a stand-in satisfies prelu's rule */
  static const double none;
  const hk_weights w = {.size = sizeof w, .f = &none, .slopes = &none};
  const hk_status s = hk_task_make(&task, p, e, o, &w);
  if (s) return s;
  visit v = {fn, context};
  return hk_planner_visit(&task, show, &v);
}
