/* Candidates and the choice among them by predicted time. Every algorithm is asked with every kernel row of its family,
 * for the task itself and behind every path of rewrites; each refusal keeps its reason. */
#include "tune/planner.h"

#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/rewrite/rewrite.h"
#include "tune/wisdom.h"

/* A path whose passes alone, with its products at the machine's peak, take this many times as long as the best candidate
 * so far is not followed. */
#define HOPELESS 4

typedef struct refusal {
  hk_decision d; /* algo is NULL where a rewrite was refused */
  char why[HK_REASON];
} refusal;

/* Sorted by predicted time; refusals in the order they were made. */
typedef struct list {
  hk_decision *usable;
  refusal *refused;
  int usable_count, usable_room, refused_count, refused_room;
  bool no_memory;
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

/* Room for one more element, or false and l->no_memory. */
static bool grow(list *l, void *array, int count, int *room, size_t bytes) {
  void *old, *wide;
  if (count < *room) return true;
  memcpy(&old, array, sizeof old);
  wide = hk_alloc((size_t)*room * 2 * bytes + 64 * bytes);
  l->no_memory |= !wide;
  if (!wide) return false;
  if (count) memcpy(wide, old, (size_t)count * bytes);
  hk_free(old);
  memcpy(array, &wide, sizeof wide);
  *room = *room * 2 + 64;
  return true;
}

static void list_free(list *l) {
  hk_free(l->usable);
  hk_free(l->refused);
}

/* Stable: of candidates with equal times the first asked stays first. */
static void add_usable(list *l, const hk_decision *d) {
  if (!grow(l, &l->usable, l->usable_count, &l->usable_room, sizeof *l->usable)) return;
  int i = l->usable_count++;
  for (; i > 0 && l->usable[i - 1].predicted_s > d->predicted_s; i--) l->usable[i] = l->usable[i - 1];
  l->usable[i] = *d;
}

static bool same_path(const hk_decision *a, const hk_decision *b) {
  bool same = a->depth == b->depth;
  for (int i = 0; same && i < a->depth; i++) same = a->path[i] == b->path[i];
  return same;
}

/* Rows of one algorithm refused one after the other for the same reason are told once, without a row. */
static void add_refused(list *l, const hk_decision *d, const char *why) {
  refusal *last = l->refused_count ? &l->refused[l->refused_count - 1] : NULL;
  if (last && last->d.algo == d->algo && same_path(&last->d, d) && !strcmp(last->why, why)) {
    last->d.kernel = NULL;
    return;
  }
  if (!grow(l, &l->refused, l->refused_count, &l->refused_room, sizeof *l->refused)) return;
  l->refused[l->refused_count].d = *d;
  memcpy(l->refused[l->refused_count++].why, why, HK_REASON);
}

/* What a search holds: the task, the path being followed from the task as the choice sees it, and what was found. */
typedef struct search {
  const hk_task *task;
  hk_path path;
  list *l;
} search;

/* Asks an algorithm with one kernel row. Offers are made for the task as seen; see settle. */
static bool consider(search *s, const hk_algo *algo, const hk_kernel *kernel) {
  hk_decision d = {.algo = algo, .kernel = kernel};
  char why[HK_REASON] = "";
  if (hk_decision_allowed(s->task, &d, why) && hk_path_ask(&s->path, &d, true, why) && settle(s->task, &d, why) &&
      fits(s->task, &d, why)) {
    add_usable(s->l, &d);
    return true;
  }
  memcpy(d.path, s->path.step, (size_t)s->path.depth * sizeof *d.path);
  d.depth = s->path.depth;
  add_refused(s->l, &d, why);
  return false;
}

/* Algorithms by their place in hk_algos, one bit each. */
typedef uint64_t algo_set;
enum { SET_SIZE = 64 };
static algo_set set_of(int i) { return UINT64_C(1) << i; }

/* Rows that the machine or the options exclude are told once, not behind every path. */
static bool ask_algo(search *s, const hk_algo *algo) {
  bool any = false;
  if (algo->family == HK_FAMILY_NONE) return consider(s, algo, NULL);
  for (int k = 0; k < hk_kernel_count; k++) {
    const hk_kernel *row = &hk_kernels[k];
    if (row->family != algo->family) continue;
    if (s->path.depth && (row->isa > s->task->isa || !hk_cpu_has(row->isa))) continue;
    any |= consider(s, algo, row);
  }
  return any;
}

/* Asks every algorithm but those of a set; returns those that take the task. */
static algo_set ask_algos(search *s, algo_set but) {
  algo_set taken = 0;
  for (int i = 0; hk_algos[i] && i < SET_SIZE; i++) {
    if (hk_algos[i]->device != s->task->options.device || (but & set_of(i))) continue;
    if (ask_algo(s, hk_algos[i])) taken |= set_of(i);
  }
  return taken;
}

/* True when the path can hardly lead to the best candidate; on a GPU no bound is known. */
static bool hopeless(const search *s, char *why) {
  const hk_task *t = hk_path_task(&s->path, s->path.depth);
  if (!s->l->usable_count || t->options.device != HK_CPU) return false;
  const double best = s->l->usable[0].predicted_s, products = t->geom.flops / hk_cost_peak(t->isa) / t->threads;
  const double least = hk_path_seconds(&s->path, products);
  if (least <= HOPELESS * best) return false;
  snprintf(why, HK_REASON, "its passes take %.3g us at least, another candidate %.3g us in all", 1e6 * least, 1e6 * best);
  return true;
}

static algo_set slow_ones(algo_set set) {
  for (int i = 0; hk_algos[i] && i < SET_SIZE; i++)
    if (!hk_algos[i]->fallback) set &= ~set_of(i);
  return set;
}

static void refuse_rewrite(search *s, const hk_rewrite *r, const char *why) {
  hk_decision d = {.depth = s->path.depth + 1};
  memcpy(d.path, s->path.step, (size_t)s->path.depth * sizeof *d.path);
  d.path[s->path.depth] = r;
  add_refused(s->l, &d, why);
}

/* Asks every algorithm for the task at the end of the path, then follows every rewrite that may come next. Where a
 * rewrite cannot help an algorithm, it is not asked again: a slow one that takes a task behind rewrites of it, another
 * behind the second rewrite of one order that it takes. Returns the algorithms that take the task at the end itself. */
static algo_set expand(search *s, algo_set but) {
  const int order = s->path.depth ? s->path.step[s->path.depth - 1]->order : -1;
  const algo_set here = ask_algos(s, but), slow = slow_ones(here | but);
  algo_set same_order = 0;
  int last = -1;
  for (int i = 0; hk_rewrites[i]; i++) {
    const hk_rewrite *r = hk_rewrites[i];
    char why[HK_REASON] = "";
    if (r->device != s->task->options.device || r->order <= order) continue;
    if (r->order != last) same_order = 0;
    last = r->order;
    if (!hk_path_push(&s->path, r, why)) {
      refuse_rewrite(s, r, why);
      continue;
    }
    const bool skip = hopeless(s, why);
    if (!skip) same_order |= expand(s, slow | same_order);
    s->path.depth--;
    if (skip) refuse_rewrite(s, r, why);
  }
  return here;
}

static hk_status gather(const hk_task *task, list *l) {
  const hk_task t = seen(task);
  search *s = hk_alloc(sizeof *s);
  *l = (list){.no_memory = !s};
  if (s) {
    s->task = task;
    s->path.task = &t;
    s->path.depth = 0;
    s->l = l;
    expand(s, 0);
  }
  hk_free(s);
  if (!l->no_memory) return HK_OK;
  list_free(l);
  return hk_fail(HK_NO_MEMORY, "no memory to plan");
}

/* Says what the most general algorithm said, where the most was done for it. */
static hk_status nothing(const hk_task *t, const list *l) {
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
static hk_status shortlist(const hk_task *t, const list *l, list *to) {
  const bool patient = t->options.rigor == HK_PATIENT;
  *to = (list){0};
  for (int i = 0; i < l->usable_count; i++) {
    const hk_decision *d = &l->usable[i];
    if (!patient && i && (i >= 6 || d->predicted_s > 3 * l->usable[0].predicted_s)) break;
    hk_decision other = *d;
    for (int v = -1; v < 0 || (patient && hk_path_vary(t, d, v, &other)); v++, other = *d) {
      char why[HK_REASON] = "";
      if (v >= 0 && !(hk_decision_check(t, &other, why) && fits(t, &other, why))) continue;
      if (grow(to, &to->usable, to->usable_count, &to->usable_room, sizeof other)) to->usable[to->usable_count++] = other;
    }
  }
  if (!to->no_memory) return HK_OK;
  list_free(to);
  return hk_fail(HK_NO_MEMORY, "no memory for the candidates");
}

/* Functions that the caller wrote for the device cannot be replaced there, and what they read is not at hand yet. */
static bool measurable(const hk_task *t) {
  const hk_epilogue *e = &t->epi.e;
  return t->options.rigor != HK_ESTIMATE && !(t->options.device == HK_CUDA && (e->cuda_user || e->cuda_user2 || e->cuda_store));
}

static hk_status measure(const hk_task *task, const hk_weights *w, const list *l, const char *key, hk_decision *d) {
  double seconds = 0;
  char text[512];
  hk_text t = {text, sizeof text, 0};
  list few;
  hk_status s = shortlist(task, l, &few);
  if (s) return s;
  s = hk_tuner_choose(task, w, few.usable, few.usable_count, d, &seconds);
  if (!s) {
    hk_decision_print(&t, d);
    s = hk_wisdom_learn(key, text, seconds);
  }
  list_free(&few);
  return s;
}

/* One line per candidate, usable or refused, for HANKEL_VERBOSE=dispatch. */
static void log_candidates(const hk_task *task, const list *l) {
  char problem[1024];
  if (!hk_log_on(HK_LOG_DISPATCH)) return;
  hk_problem_print(&task->problem, problem, sizeof problem, NULL);
  for (int i = 0; i < l->usable_count + l->refused_count; i++) {
    const bool usable = i < l->usable_count;
    const refusal *no = usable ? NULL : &l->refused[i - l->usable_count];
    const hk_decision *d = usable ? &l->usable[i] : &no->d;
    char text[512];
    hk_text t = {text, sizeof text, 0};
    if (usable) hk_decision_print(&t, d);
    else hk_decision_print_name(&t, d);
    if (usable) hk_log(HK_LOG_DISPATCH, "hankel,dispatch,%s,%s,usable,%.6g us,hankel plan '%s' --why", problem, text, 1e6 * d->predicted_s, problem);
    else hk_log(HK_LOG_DISPATCH, "hankel,dispatch,%s,%s,refused: %s,hankel plan '%s' --why", problem, text, no->why, problem);
  }
}

hk_status hk_planner_decide(const hk_task *task, const hk_weights *w, hk_decision *d, const char **source) {
  char key[HK_WISDOM_KEY];
  hk_wisdom_key(task, key, sizeof key);
  *source = "wisdom";
  if (from_wisdom(task, key, d)) return HK_OK;
  if (task->options.wisdom_only) return hk_fail(HK_NO_WISDOM, "wisdom_only is set and no wisdom matches %.300s", key);
  list l;
  hk_status s = gather(task, &l);
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
  list_free(&l);
  return s;
}

hk_status hk_planner_visit(const hk_task *task, hk_planner_fn fn, void *context) {
  list l, all = {0};
  const bool patient = task->options.rigor == HK_PATIENT;
  hk_status s = gather(task, &l);
  if (s) return s;
  if (patient) s = shortlist(task, &l, &all);
  const list *of = patient ? &all : &l;
  for (int i = 0; i < of->usable_count && !s; i++) fn(context, &of->usable[i], NULL);
  for (int i = 0; i < l.refused_count && !s; i++) fn(context, &l.refused[i].d, l.refused[i].why);
  if (!s) list_free(&all);
  list_free(&l);
  return s;
}
