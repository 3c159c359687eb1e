/* Choosing by measurement: every candidate is built and run on made-up data, rounds interleaved so that a change of the
 * machine's mood hits all alike, hopeless ones dropped early. The estimate's choice keeps its place unless another
 * beats it by more than the spread of both. User functions are replaced by ones that do nothing: a plan being made must
 * not call into the program. */
#include <stdlib.h>
#include <string.h>

#include "tune/planner.h"
#include "tune/stage.h"

#define ROUNDS 9
#define BLOCK_S 3e-4 /* one sample runs for about this long */

typedef struct contest { /* what all candidates have in common */
  const hk_task *task;
  const hk_weights *w;
  const hk_stage *stage;
} contest;

typedef struct trial {
  hk_plan *plan;
  const hk_decision *d;
  int reps, samples;
  double time[ROUNDS];
} trial;

static void idle_user(void *user, const hk_at *at, int64_t count, void *v) {
  (void)user, (void)at, (void)count, (void)v;
}
static void idle_store(void *user, const hk_at *at, int64_t count, const void *v) {
  (void)user, (void)at, (void)count, (void)v;
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

/* Builds a trial and takes one sample; false when it cannot be built (then *built says why) or run, or is far behind
 * the best so far. */
static bool start(const contest *m, const hk_decision *d, double best, trial *t, hk_status *built) {
  const hk_stage *b = m->stage;
  const int most = b->device == HK_CUDA ? 200 : 10000; /* a launch each, recorded anew for every sample */
  double cold, warm;
  *t = (trial){.d = d, .reps = 1};
  if ((*built = hk_plan_build(&t->plan, m->task, d, m->w, NULL)) || hk_stage_time(b, t->plan, 1, &cold)) return false;
  if (best > 0 && cold > 8 * best) return false;
  warm = cold;
  if (cold <= 0.05 && hk_stage_time(b, t->plan, b->sets, &warm)) return false;
  if (best > 0 && warm > 3 * best) return false;
  t->reps = (int)hk_max64(b->sets, hk_min64(most, (int64_t)(BLOCK_S / (warm + 1e-9))));
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

static hk_status race(const contest *m, const hk_decision *c, int count, trial *t, hk_decision *winner,
                      double *seconds) {
  const double limit = m->task->options.time_limit_s, begin = hk_clock();
  int n = 0;
  double best = 0;
  bool no_memory = false;
  for (int i = 0; i < count; i++) {
    if (n && limit > 0 && hk_clock() - begin > 0.6 * limit) break;
    hk_status built;
    if (!start(m, &c[i], best, &t[n], &built)) {
      hk_plan_destroy(t[n].plan);
      if (built == HK_NO_MEMORY) no_memory = true;
      if (!n && i == count - 1) {
        return no_memory ? hk_fail(HK_NO_MEMORY, "no memory to build a candidate to measure")
                         : hk_fail(HK_UNSUPPORTED, "no candidate could be measured");
      }
      continue;
    }
    if (best == 0 || t[n].time[0] < best) best = t[n].time[0];
    n++;
  }
  for (int r = 1; r < ROUNDS; r++) {
    if (limit > 0 && hk_clock() - begin > limit) break;
    for (int i = 0; i < n; i++) {
      if (r > 2 && t[i].time[0] > 2 * best && i) continue;
      if (hk_stage_time(m->stage, t[i].plan, t[i].reps, &t[i].time[t[i].samples])) continue;
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
  hk_stage b;
  size_t workspace = 0;
  for (int i = 0; i < count; i++)
    if (candidates[i].workspace_bytes > workspace) workspace = candidates[i].workspace_bytes;
  if (quiet.epi.e.user) quiet.epi.e.user = idle_user;
  if (quiet.epi.e.user2) quiet.epi.e.user2 = idle_user;
  if (quiet.epi.e.store) quiet.epi.e.store = idle_store;
  trial *t = hk_alloc((size_t)count * sizeof *t);
  hk_status s = hk_stage_make(&b, &quiet, workspace);
  if (!s && !t) s = hk_fail(HK_NO_MEMORY, "no memory to measure candidates");
  if (!s) s = race(&(contest){&quiet, w, &b}, candidates, count, t, winner, seconds);
  hk_stage_free(&b);
  hk_free(t);
  return s;
}
