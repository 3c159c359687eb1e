/* Finds candidates: every algorithm is asked with every kernel row of its family, for the task itself and behind every
 * path of rewrites; each refusal keeps its reason. */
#include "tune/candidates.h"

#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/rewrite/rewrite.h"

/* A path whose passes alone, with its products at the machine's peak, take this many times as long as the best
 * candidate so far is not followed. */
#define HOPELESS 4

bool hk_candidates_fits(const hk_task *t, const hk_decision *d, char *why) {
  if (!t->options.limit_workspace || d->workspace_bytes <= t->options.workspace_limit_bytes) return true;
  snprintf(why, HK_REASON, "needs %zu bytes of workspace, the limit is %zu", d->workspace_bytes,
           t->options.workspace_limit_bytes);
  return false;
}

/* Room for one more element, or false and l->no_memory. */
static bool grow(hk_candidates *l, void *array, int count, int *room, size_t bytes) {
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

void hk_candidates_free(hk_candidates *l) {
  hk_free(l->usable);
  hk_free(l->refused);
}

/* Stable: of candidates with equal times the first asked stays first. */
static void add_usable(hk_candidates *l, const hk_decision *d) {
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
static void add_refused(hk_candidates *l, const hk_decision *d, const char *why) {
  hk_refusal *last = l->refused_count ? &l->refused[l->refused_count - 1] : NULL;
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
  hk_candidates *l;
} search;

/* Asks an algorithm with one kernel row. Offers are made for the task as seen; see hk_candidates_settle. */
static bool consider(search *s, const hk_algo *algo, const hk_kernel *kernel) {
  hk_decision d = {.algo = algo, .kernel = kernel, .isa = hk_decision_isa(s->task, algo, s->path.depth)};
  char why[HK_REASON] = "";
  if (hk_decision_allowed(s->task, &d, why) && hk_path_ask(&s->path, &d, true, why) &&
      hk_candidates_settle(s->task, &d, why) && hk_candidates_fits(s->task, &d, why)) {
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
  for (const hk_kernel *row = NULL; (row = hk_algo_next_row(algo, row));) {
    if (s->path.depth && !hk_kernel_runs(row, s->task->isa)) continue;
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
  const double best = s->l->usable[0].predicted_s, peak = hk_cost_peak(t->isa) * hk_cost_rate(&t->geom, t->isa);
  const double least = hk_path_seconds(&s->path, t->geom.flops / peak / t->threads);
  if (least <= HOPELESS * best) return false;
  snprintf(why, HK_REASON, "its passes take %.3g us at least, another candidate %.3g us in all", 1e6 * least,
           1e6 * best);
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
  const hk_rewrite *taken = NULL; /* of this order */
  int last = -1;
  for (int i = 0; hk_rewrites[i]; i++) {
    const hk_rewrite *r = hk_rewrites[i];
    char why[HK_REASON] = "";
    if (r->device != s->task->options.device || r->order <= order) continue;
    if (r->order != last) same_order = 0, taken = NULL;
    last = r->order;
    if (r->last_resort && taken) snprintf(why, HK_REASON, "%s takes the problem", taken->name);
    if (why[0] || !hk_path_push(&s->path, r, why)) {
      refuse_rewrite(s, r, why);
      continue;
    }
    taken = r;
    const bool skip = hopeless(s, why);
    if (!skip) same_order |= expand(s, slow | same_order);
    s->path.depth--;
    if (skip) refuse_rewrite(s, r, why);
  }
  return here;
}

hk_status hk_candidates_find(const hk_task *task, hk_candidates *l) {
  const hk_task t = hk_candidates_seen(task);
  search *s = hk_alloc(sizeof *s);
  *l = (hk_candidates){.no_memory = !s};
  if (s) {
    s->task = task;
    s->path.task = &t;
    s->path.depth = 0;
    s->l = l;
    expand(s, 0);
  }
  hk_free(s);
  if (!l->no_memory) return HK_OK;
  hk_candidates_free(l);
  return hk_fail(HK_NO_MEMORY, "no memory to plan");
}

hk_status hk_candidates_shortlist(const hk_task *t, const hk_candidates *l, hk_candidates *to) {
  const bool patient = t->options.rigor == HK_PATIENT;
  *to = (hk_candidates){0};
  for (int i = 0; i < l->usable_count; i++) {
    const hk_decision *d = &l->usable[i];
    if (!patient && i && (i >= 6 || d->predicted_s > 3 * l->usable[0].predicted_s)) break;
    hk_decision other = *d;
    for (int v = -1; v < 0 || (patient && hk_path_vary(t, d, v, &other)); v++, other = *d) {
      char why[HK_REASON] = "";
      if (v >= 0 && !(hk_decision_check(t, &other, why) && hk_candidates_fits(t, &other, why))) continue;
      if (grow(to, &to->usable, to->usable_count, &to->usable_room, sizeof other))
        to->usable[to->usable_count++] = other;
    }
  }
  if (!to->no_memory) return HK_OK;
  hk_candidates_free(to);
  return hk_fail(HK_NO_MEMORY, "no memory for the candidates");
}
