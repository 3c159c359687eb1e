/* Candidates of batch-invariant plans: chosen as if for one image and one thread, kept only where they serve any. */
#include <stdio.h>

#include "tune/candidates.h"

enum { MANY = 64 }; /* threads or images */

/* The task with another batch; the task itself where that is no legal problem (two images in one place). */
static hk_task with_batch(const hk_task *task, int64_t images) {
  hk_task t = *task;
  hk_problem p = task->problem;
  p.n = images * p.batch_groups;
  return hk_task_shape(&t, &p, &task->epi.e) ? *task : t;
}

hk_task hk_candidates_seen(const hk_task *task) {
  if (!task->options.batch_invariant || task->geom.n <= 1) {
    hk_task t = *task;
    if (t.options.batch_invariant) t.threads = 1;
    return t;
  }
  hk_task t = with_batch(task, 1);
  t.threads = 1;
  return t;
}

/* On a device the ways to store y follow the batch, and change no bit. */
static bool check_for(const hk_task *t, hk_decision *d, char *why) {
  if (t->options.device == HK_CUDA) hk_decision_renew(d);
  return hk_decision_check(t, d, why);
}

/* Whether a decision serves every batch and any number of threads alike. What one image may use and more may not would
 * make the choice depend on the batch or on the threads: because of how images lie, or because a workspace that grows
 * with either exceeds a limit. One image by one thread stands for few; two by many for how images lie (where two share
 * a place, no larger batch of these strides is legal); more for a workspace that grows within its rounding at first. */
static bool serves_any_batch(const hk_task *t, const hk_decision *d, char *why) {
  size_t least = 0;
  bool grows = false; /* beyond the largest legal batch, sizes are again those of the task */
  for (int images = 1; images <= (t->options.limit_workspace ? MANY : 2); images *= 2) {
    hk_task b = with_batch(t, images);
    hk_decision same = *d;
    b.threads = images == 1 ? 1 : MANY;
    if (!check_for(&b, &same, why)) return false;
    if (images == 1) least = same.workspace_bytes;
    grows |= same.workspace_bytes != least;
  }
  if (!t->options.limit_workspace || !grows) return true;
  snprintf(why, HK_REASON,
           "its workspace grows with batch or threads: batch_invariant allows it only without a workspace limit");
  return false;
}

bool hk_candidates_settle(const hk_task *t, hk_decision *d, char *why) {
  const double seconds = d->predicted_s;
  if (!t->options.batch_invariant) return true;
  if (!check_for(t, d, why)) return false;
  d->predicted_s = seconds;
  return t->geom.n == 0 || serves_any_batch(t, d, why);
}
