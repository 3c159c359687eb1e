/* The choice among the candidates of a task: by wisdom, by predicted time, or by measuring. */
#include "tune/planner.h"

#include "tune/candidates.h"
#include "tune/wisdom.h"

/* Says what the most general algorithm said, where the most was done for it. */
static hk_status nothing(const hk_task *t, const hk_candidates *l) {
  const char *why = "this build has none";
  int deepest = -1;
  for (int i = 0; i < l->refused_count; i++) {
    const hk_decision *d = &l->refused[i].d;
    if (!d->algo || !d->algo->fallback || d->depth < deepest) continue;
    deepest = d->depth;
    why = l->refused[i].why;
  }
  const hk_status s = t->options.forbid_fallback ? HK_FALLBACK : HK_UNSUPPORTED;
  return hk_fail(s, "no algorithm fits the options: %s", why);
}

/* True when wisdom holds a decision that fits this task and that its options allow; another is passed over. */
static bool from_wisdom(const hk_task *task, const char *key, hk_decision *d) {
  char text[HK_DECISION_TEXT];
  double seconds;
  if (!hk_wisdom_find(key, text, sizeof text, &seconds)) return false;
  char why[HK_REASON];
  if (hk_decision_parse(task, text, d)) {
    hk_log(HK_LOG_WARN, "hankel,warn,wisdom,%s", hk_last_error());
    return false;
  }
  if (!hk_candidates_fits(task, d, why)) {
    hk_log(HK_LOG_WARN, "hankel,warn,wisdom,decision \"%.120s\": %s", text, why);
    return false;
  }
  d->predicted_s = seconds;
  return true;
}

/* Functions that the caller wrote for the device cannot be replaced there, and what they read is not at hand yet. */
static bool measurable(const hk_task *t) {
  const hk_epilogue *e = &t->epi.e;
  return t->options.rigor != HK_ESTIMATE &&
         !(t->options.device == HK_CUDA && (e->cuda_user || e->cuda_user2 || e->cuda_store));
}

static hk_status measure(const hk_task *task, const hk_weights *w, const hk_candidates *l, const char *key,
                         hk_decision *d) {
  double seconds = 0;
  char text[HK_DECISION_TEXT];
  hk_text t = {text, sizeof text, 0};
  hk_candidates few;
  hk_status s = hk_candidates_shortlist(task, l, &few);
  if (s) return s;
  s = hk_tuner_choose(task, w, few.usable, few.usable_count, d, &seconds);
  if (!s) {
    hk_decision_print(&t, d);
    s = hk_wisdom_learn(key, text, seconds);
  }
  hk_candidates_free(&few);
  return s;
}

/* One line per candidate, usable or refused, for HANKEL_VERBOSE=dispatch. */
static void log_candidates(const hk_task *task, const hk_candidates *l) {
  char problem[1024], command[HK_COMMAND_TEXT];
  if (!hk_log_on(HK_LOG_DISPATCH)) return;
  hk_problem_print(&task->problem, problem, sizeof problem, NULL);
  for (int i = 0; i < l->usable_count + l->refused_count; i++) {
    const bool usable = i < l->usable_count;
    const hk_refusal *no = usable ? NULL : &l->refused[i - l->usable_count];
    const hk_decision *d = usable ? &l->usable[i] : &no->d;
    char text[HK_DECISION_TEXT];
    hk_text t = {text, sizeof text, 0};
    if (usable) hk_decision_print(&t, d);
    else hk_decision_print_name(&t, d);
    hk_text c = {command, sizeof command, 0};
    hk_task_print_command(&c, task, "plan", usable ? text : NULL);
    const double us = 1e6 * d->predicted_s;
    if (usable) hk_log(HK_LOG_DISPATCH, "hankel,dispatch,%s,%s,usable,%.6g us,%s", problem, text, us, command);
    else hk_log(HK_LOG_DISPATCH, "hankel,dispatch,%s,%s,refused: %s,%s", problem, text, no->why, command);
  }
}

hk_status hk_planner_decide(const hk_task *task, const hk_weights *w, hk_decision *d, const char **source) {
  char key[HK_WISDOM_KEY];
  hk_wisdom_key(task, key, sizeof key);
  *source = "wisdom";
  if (from_wisdom(task, key, d)) return HK_OK;
  if (task->options.wisdom_only) return hk_fail(HK_NO_WISDOM, "wisdom_only is set and no wisdom matches %.300s", key);
  hk_candidates l;
  hk_status s = hk_candidates_find(task, &l);
  if (s) return s;
  log_candidates(task, &l);
  *source = "estimate";
  if (!l.usable_count) {
    s = nothing(task, &l);
  } else if (measurable(task)) {
    *source = "measured";
    s = measure(task, w, &l, key, d);
  } else {
    *d = l.usable[0];
  }
  hk_candidates_free(&l);
  return s;
}

hk_status hk_planner_visit(const hk_task *task, hk_planner_fn fn, void *context) {
  hk_candidates l, all = {0};
  const bool patient = task->options.rigor == HK_PATIENT;
  hk_status s = hk_candidates_find(task, &l);
  if (s) return s;
  if (patient) s = hk_candidates_shortlist(task, &l, &all);
  const hk_candidates *of = patient ? &all : &l;
  for (int i = 0; i < of->usable_count && !s; i++) fn(context, &of->usable[i], NULL);
  for (int i = 0; i < l.refused_count && !s; i++) fn(context, &l.refused[i].d, l.refused[i].why);
  if (!s) hk_candidates_free(&all);
  hk_candidates_free(&l);
  return s;
}
