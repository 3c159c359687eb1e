/* Choosing by measurement: every candidate is built and run on made-up data, rounds interleaved so that a change of the
 * machine's mood hits all alike, hopeless ones dropped early. The estimate's choice keeps its place unless another beats
 * it by more than the spread of both. User functions are replaced by ones that do nothing: a plan being made must not
 * call into the program. */
#include <stdlib.h>
#include <string.h>

#include "tune/planner.h"

#define ROUNDS 9
#define MAX_TUNED 256
#define BLOCK_S 3e-4 /* one sample runs for about this long */

typedef struct buffers {
  void *x, *f, *y, *c, *reals, *workspace;
  hk_args args;
} buffers;

typedef struct trial {
  hk_plan *plan;
  const hk_decision *d;
  int reps, samples;
  double time[ROUNDS];
} trial;

static void idle_user(void *user, const hk_at *at, int64_t count, void *v) { (void)user, (void)at, (void)count, (void)v; }
static void idle_store(void *user, const hk_at *at, int64_t count, const void *v) {
  (void)user, (void)at, (void)count, (void)v;
}

/* elements of a type with values about 1, in a buffer of the tensor's extent */
static void *tensor(hk_type t, const hk_extent *e) {
  const size_t bytes = hk_type_bytes(t);
  char *p = hk_alloc(((size_t)e->elements + 1) * bytes);
  if (!p) return NULL;
  const int64_t head = hk_min64(e->elements, 4096);
  for (int64_t i = 0; i < head; i++) hk_store_element(t, p, i, (double)((i * 2654435761u >> 7) % 2001) / 1000.0 - 1.0);
  for (int64_t done = head; done < e->elements; done += hk_min64(done, e->elements - done))
    memcpy(p + (size_t)done * bytes, p, (size_t)hk_min64(done, e->elements - done) * bytes);
  return p;
}

static void *based(void *p, hk_type t, const hk_extent *e) {
  return p ? (char *)p + e->below * (int64_t)hk_type_bytes(t) : NULL;
}

static void release(buffers *b) {
  hk_free(b->x), hk_free(b->f), hk_free(b->y), hk_free(b->c), hk_free(b->reals), hk_free(b->workspace);
}

static bool prepare(const hk_task *t, size_t workspace, buffers *b) {
  const hk_geom *g = &t->geom;
  const bool gated = t->epi.e.gate != HK_GATE_NONE;
  const int64_t groups = gated ? 1 : g->groups, k = gated ? g->y_channels : g->k;
  const hk_extent x = hk_extent_of(&g->x, g->groups, g->n, g->c, g->in);
  const hk_extent f = hk_extent_of(&g->f, g->groups, g->k, g->c, g->win);
  const hk_extent y = hk_extent_of(&g->y, groups, g->n, k, g->out);
  const hk_extent c = hk_extent_of(&t->epi.c, groups, g->n, k, g->out);
  memset(b, 0, sizeof *b);
  b->x = tensor(g->x_type, &x);
  b->y = tensor(g->y_type, &y);
  b->f = t->f_now ? NULL : tensor(g->f_type, &f);
  b->c = t->epi.e.residual ? tensor(g->y_type, &c) : NULL;
  b->reals = hk_alloc_zero((size_t)(g->k * g->groups + 1) * 8);
  b->workspace = hk_alloc(workspace + 1);
  b->args = (hk_args){.size = sizeof b->args, .x = based(b->x, g->x_type, &x), .f = based(b->f, g->f_type, &f),
                      .y = based(b->y, g->y_type, &y), .c = based(b->c, g->y_type, &c), .scale = b->reals,
                      .bias = b->reals, .workspace = b->workspace, .workspace_bytes = workspace};
  return b->x && b->y && b->reals && b->workspace && (t->f_now || b->f) && (!t->epi.e.residual || b->c);
}

static double sample(const trial *t, const hk_args *a) {
  const double start = hk_clock();
  for (int i = 0; i < t->reps; i++) hk_plan_execute(t->plan, a);
  return (hk_clock() - start) / t->reps;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* median in *middle, half the distance between the quartiles as the spread */
static double spread(trial *t, double *middle) {
  qsort(t->time, (size_t)t->samples, sizeof t->time[0], by_value);
  *middle = t->time[t->samples / 2];
  return (t->time[t->samples * 3 / 4] - t->time[t->samples / 4]) / 2;
}

/* Builds a trial and takes one sample; false when it cannot be built or is far behind the best so far. */
static bool start(const hk_task *task, const hk_weights *w, const hk_decision *d, const buffers *b, double best, trial *t) {
  *t = (trial){.d = d, .reps = 1};
  if (hk_plan_build(&t->plan, task, d, w, NULL)) return false;
  const double cold = sample(t, &b->args);
  if (best > 0 && cold > 8 * best) return false;
  const double warm = cold > 0.05 ? cold : sample(t, &b->args);
  if (best > 0 && warm > 3 * best) return false;
  t->reps = (int)hk_max64(1, hk_min64(10000, (int64_t)(BLOCK_S / (warm + 1e-9))));
  t->time[t->samples++] = warm;
  return true;
}

static int choose(trial *t, int count, hk_decision *winner, double *seconds) {
  int best = 0;
  double first, spread0 = spread(&t[0], &first), best_time = first;
  for (int i = 1; i < count; i++) {
    double middle;
    const double s = spread(&t[i], &middle);
    if (middle < best_time && first - middle > s + spread0) best = i, best_time = middle;
  }
  *winner = *t[best].d;
  *seconds = winner->predicted_s = best_time;
  return best;
}

static hk_status race(const hk_task *task, const hk_weights *w, const hk_decision *c, int count, const buffers *b,
                      trial *t, hk_decision *winner, double *seconds) {
  const double limit = task->options.time_limit_s, begin = hk_clock();
  int n = 0;
  double best = 0;
  for (int i = 0; i < count; i++) {
    if (n && limit > 0 && hk_clock() - begin > 0.6 * limit) break;
    if (!start(task, w, &c[i], b, best, &t[n])) {
      hk_plan_destroy(t[n].plan);
      if (!n && i == count - 1) return hk_fail(HK_UNSUPPORTED, "no candidate could be measured");
      continue;
    }
    if (best == 0 || t[n].time[0] < best) best = t[n].time[0];
    n++;
  }
  for (int r = 1; r < ROUNDS; r++) {
    if (limit > 0 && hk_clock() - begin > limit) break;
    for (int i = 0; i < n; i++) {
      if (r > 2 && t[i].time[0] > 2 * best && i) continue;
      t[i].time[t[i].samples] = sample(&t[i], &b->args);
      if (t[i].time[t[i].samples] < best) best = t[i].time[t[i].samples];
      t[i].samples++;
    }
  }
  choose(t, n, winner, seconds);
  for (int i = 0; i < n; i++) hk_plan_destroy(t[i].plan);
  return HK_OK;
}

hk_status hk_tuner_choose(const hk_task *task, const hk_weights *w, const hk_decision *candidates, int count,
                          hk_decision *winner, double *seconds) {
  hk_task quiet = *task;
  buffers b;
  size_t workspace = 0;
  if (count > MAX_TUNED) count = MAX_TUNED;
  for (int i = 0; i < count; i++)
    if (candidates[i].workspace_bytes > workspace) workspace = candidates[i].workspace_bytes;
  if (quiet.epi.e.user) quiet.epi.e.user = idle_user;
  if (quiet.epi.e.user2) quiet.epi.e.user2 = idle_user;
  if (quiet.epi.e.store) quiet.epi.e.store = idle_store;
  memset(&b, 0, sizeof b);
  trial *t = hk_alloc((size_t)count * sizeof *t);
  hk_status s = t && prepare(&quiet, workspace, &b) ? HK_OK : hk_fail(HK_NO_MEMORY, "no memory to measure candidates");
  if (!s) s = race(&quiet, w, candidates, count, &b, t, winner, seconds);
  release(&b);
  hk_free(t);
  return s;
}
