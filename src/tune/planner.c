/* Candidates and the choice among them by predicted time. Every algorithm is asked with every kernel row of its family;
 * each refusal keeps its reason. */
#include "tune/planner.h"

#include <stdio.h>
#include <string.h>

#include "tune/wisdom.h"

#define MAX_CANDIDATES 256

typedef struct list {
  hk_decision usable[MAX_CANDIDATES], refused[MAX_CANDIDATES];
  char why[MAX_CANDIDATES][HK_REASON];
  int usable_count, refused_count;
} list;

static bool fits(const hk_task *t, const hk_decision *d, char *why) {
  if (!t->options.limit_workspace || d->workspace_bytes <= t->options.workspace_limit_bytes) return true;
  snprintf(why, HK_REASON, "needs %zu bytes of workspace, the limit is %zu", d->workspace_bytes,
           t->options.workspace_limit_bytes);
  return false;
}

/* The task with another batch; the task itself where that is no legal problem (two images in one place). */
static hk_task with_batch(const hk_task *task, int64_t images) {
  hk_task t = *task;
  t.problem.n = images * t.problem.batch_groups;
  if (hk_geom_make(&t.geom, &t.problem, task->epi.e.gate) || hk_epi_make(&t.epi, &task->epi.e, &t.problem))
    return *task;
  return t;
}

/* A batch-invariant choice is made as if for one image and one thread. */
static hk_task seen(const hk_task *task) {
  if (!task->options.batch_invariant || task->geom.n <= 1) {
    hk_task t = *task;
    if (t.options.batch_invariant) t.threads = 1;
    return t;
  }
  hk_task t = with_batch(task, 1);
  t.threads = 1;
  return t;
}

/* Whether a decision serves every batch and any number of threads alike. What one image may use and more may not would
 * make the choice depend on the batch or on the threads: because of how images lie, or because a workspace that grows
 * with either exceeds a limit. One image by one thread stands for few, two by many for all others: where two images
 * share a place, no larger batch of these strides is legal. */
static bool serves_any_batch(const hk_task *t, const hk_decision *d, char *why) {
  static const int32_t threads[2] = {1, 64};
  size_t bytes[2] = {0, 0};
  for (int i = 0; i < 2; i++) {
    hk_task b = with_batch(t, i + 1);
    hk_decision same = *d;
    b.threads = threads[i];
    if (!hk_decision_check(&b, &same, why)) return false;
    bytes[i] = same.workspace_bytes;
  }
  if (!t->options.limit_workspace || bytes[0] == bytes[1]) return true;
  snprintf(why, HK_REASON,
           "its workspace grows with batch or threads: batch_invariant allows it only without a workspace limit");
  return false;
}

/* An offer made for one image and one thread gets the workspace of the task that will run; its place among the others
 * stays. */
static bool settle(const hk_task *t, hk_decision *d, char *why) {
  const double seconds = d->predicted_s;
  if (!t->options.batch_invariant) return true;
  if (!hk_decision_check(t, d, why)) return false;
  d->predicted_s = seconds;
  return t->geom.n == 0 || serves_any_batch(t, d, why);
}

/* Rows of one algorithm refused one after the other for the same reason are told once, without a row. */
static bool refused_alike(list *l, const hk_algo *algo, const char *why) {
  const int last = l->refused_count - 1;
  if (last < 0 || l->refused[last].algo != algo || strcmp(l->why[last], why)) return false;
  l->refused[last].kernel = NULL;
  return true;
}

/* Asks an algorithm with one kernel row. Offers are made for the task as seen; see settle. */
static void consider(const hk_task *t, const hk_task *as_seen, const hk_algo *algo, const hk_kernel *kernel, list *l) {
  hk_decision d = {.algo = algo, .kernel = kernel};
  char why[HK_REASON] = "";
  if (hk_decision_allowed(t, &d, why) && algo->offer(as_seen, &d, why) && settle(t, &d, why) && fits(t, &d, why)) {
    if (l->usable_count == MAX_CANDIDATES) return;
    int i = l->usable_count++;
    for (; i > 0 && l->usable[i - 1].predicted_s > d.predicted_s; i--) l->usable[i] = l->usable[i - 1];
    l->usable[i] = d;
  } else if (algo->device == t->options.device && !refused_alike(l, algo, why) && l->refused_count < MAX_CANDIDATES) {
    l->refused[l->refused_count] = d;
    memcpy(l->why[l->refused_count++], why, sizeof why);
  }
}

static void gather(const hk_task *task, list *l) {
  const hk_task t = seen(task);
  l->usable_count = l->refused_count = 0;
  for (int i = 0; hk_algos[i]; i++) {
    if (hk_algos[i]->family == HK_FAMILY_NONE) {
      consider(task, &t, hk_algos[i], NULL, l);
      continue;
    }
    for (int k = 0; k < hk_kernel_count; k++)
      if (hk_kernels[k].family == hk_algos[i]->family) consider(task, &t, hk_algos[i], &hk_kernels[k], l);
  }
}

/* Says what the most general algorithm said; those around another count only where the task needs what they add. */
static hk_status nothing(const hk_task *t, const list *l) {
  const hk_epilogue *e = &t->epi.e;
  const bool more = t->options.stateful || e->gate || e->cuda_user || e->cuda_user2 || e->cuda_store;
  int i = l->refused_count - 1;
  while (!more && i > 0 && l->refused[i].algo->inner) i--;
  const char *why = i >= 0 ? l->why[i] : "this build has none";
  const hk_status s = t->options.forbid_fallback ? HK_FALLBACK : HK_UNSUPPORTED;
  return hk_fail(s, "no algorithm fits the options: %s", why);
}

/* True when wisdom holds a decision that fits this task and that its options allow; another is passed over. */
static bool from_wisdom(const hk_task *task, const char *key, hk_decision *d) {
  char text[512];
  double seconds;
  if (!hk_wisdom_find(key, text, sizeof text, &seconds)) return false;
  char why[HK_REASON];
  if (hk_decision_parse(task, text, d)) {
    hk_log(HK_LOG_WARN, "hankel,warn,wisdom,%s", hk_last_error());
    return false;
  }
  if (!fits(task, d, why)) {
    hk_log(HK_LOG_WARN, "hankel,warn,wisdom,decision \"%.120s\": %s", text, why);
    return false;
  }
  d->predicted_s = seconds;
  return true;
}

/* MEASURE looks at the few best predictions, PATIENT at every candidate and its other knob settings. */
static int shortlist(const hk_task *t, const list *l, hk_decision *to) {
  const bool patient = t->options.rigor == HK_PATIENT;
  int n = 0;
  for (int i = 0; i < l->usable_count && n < MAX_CANDIDATES; i++) {
    const hk_decision *d = &l->usable[i];
    if (!patient && n && (n >= 6 || d->predicted_s > 3 * to[0].predicted_s)) break;
    to[n++] = *d;
    for (int v = 0; patient && d->algo->vary && n < MAX_CANDIDATES; v++) {
      char why[HK_REASON] = "";
      to[n] = *d;
      if (!d->algo->vary(t, d, v, &to[n])) break;
      if (hk_decision_check(t, &to[n], why) && fits(t, &to[n], why)) n++;
    }
  }
  return n;
}

/* Functions that the caller wrote for the device cannot be replaced there, and what they read is not at hand yet. */
static bool measurable(const hk_task *t) {
  const hk_epilogue *e = &t->epi.e;
  return t->options.rigor != HK_ESTIMATE && !(t->options.device == HK_CUDA && (e->cuda_user || e->cuda_user2 || e->cuda_store));
}

static hk_status measure(const hk_task *task, const hk_weights *w, const list *l, const char *key, hk_decision *d) {
  hk_decision *few = hk_alloc(MAX_CANDIDATES * sizeof *few);
  if (!few) return hk_fail(HK_NO_MEMORY, "no memory to plan");
  double seconds = 0;
  char text[512];
  hk_text t = {text, sizeof text, 0};
  hk_status s = hk_tuner_choose(task, w, few, shortlist(task, l, few), d, &seconds);
  if (!s) {
    hk_decision_print(&t, d);
    s = hk_wisdom_learn(key, text, seconds);
  }
  hk_free(few);
  return s;
}

/* One line a candidate, usable or refused, for HANKEL_VERBOSE=dispatch. */
static void log_candidates(const hk_task *task, const list *l) {
  char problem[1024];
  if (!hk_log_on(HK_LOG_DISPATCH)) return;
  hk_problem_print(&task->problem, problem, sizeof problem, NULL);
  for (int i = 0; i < l->usable_count + l->refused_count; i++) {
    const bool usable = i < l->usable_count;
    const hk_decision *d = usable ? &l->usable[i] : &l->refused[i - l->usable_count];
    char text[512];
    hk_text t = {text, sizeof text, 0};
    if (usable) hk_decision_print(&t, d);
    else hk_text_add(&t, "%s%s%s", d->algo->name, d->kernel ? " kernel=" : "", d->kernel ? d->kernel->name : "");
    if (usable) hk_log(HK_LOG_DISPATCH, "hankel,dispatch,%s,%s,usable,%.6g us,hankel plan '%s' --why", problem, text, 1e6 * d->predicted_s, problem);
    else hk_log(HK_LOG_DISPATCH, "hankel,dispatch,%s,%s,refused: %s,hankel plan '%s' --why", problem, text, l->why[i - l->usable_count], problem);
  }
}

hk_status hk_planner_decide(const hk_task *task, const hk_weights *w, hk_decision *d, const char **source) {
  char key[HK_WISDOM_KEY];
  hk_wisdom_key(task, key, sizeof key);
  *source = "wisdom";
  if (from_wisdom(task, key, d)) return HK_OK;
  if (task->options.wisdom_only) return hk_fail(HK_NO_WISDOM, "wisdom_only is set and no wisdom matches %.300s", key);
  list *l = hk_alloc(sizeof *l);
  if (!l) return hk_fail(HK_NO_MEMORY, "no memory to plan");
  gather(task, l);
  log_candidates(task, l);
  hk_status s = HK_OK;
  *source = "estimate";
  if (!l->usable_count) {
    s = nothing(task, l);
  } else if (measurable(task)) {
    *source = "measured";
    s = measure(task, w, l, key, d);
  } else {
    *d = l->usable[0];
  }
  hk_free(l);
  return s;
}

hk_status hk_planner_visit(const hk_task *task, hk_planner_fn fn, void *context) {
  list *l = hk_alloc(sizeof *l);
  if (!l) return hk_fail(HK_NO_MEMORY, "no memory to plan");
  gather(task, l);
  hk_decision *all = task->options.rigor == HK_PATIENT ? hk_alloc(MAX_CANDIDATES * sizeof *all) : NULL;
  if (task->options.rigor == HK_PATIENT && !all) {
    hk_free(l);
    return hk_fail(HK_NO_MEMORY, "no memory for the candidates");
  }
  const hk_decision *usable = all ? all : l->usable;
  const int count = all ? shortlist(task, l, all) : l->usable_count;
  for (int i = 0; i < count; i++) fn(context, &usable[i], NULL);
  hk_free(all);
  for (int i = 0; i < l->refused_count; i++) fn(context, &l->refused[i], l->why[i]);
  hk_free(l);
  return HK_OK;
}
