/* A parallel loop on XLA's threads. The caller takes part, and takes everything that no other thread has begun, so the
 * loop ends even where XLA runs none of the tasks; a task that starts late finds nothing left and only frees the job.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "jax.h"

typedef struct job {
  void (*body)(void *context, int64_t i);
  void *context;
  int64_t count;
  atomic_llong next, done;
  atomic_int holders; /* the caller and the tasks that have not ended; the last one frees */
} job;

static _Thread_local const xla_frame *here;

void jax_enter(const xla_frame *frame) { here = frame; }

static void take(job *j) {
  for (int64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->count;) {
    j->body(j->context, i);
    atomic_fetch_add(&j->done, 1);
  }
}

static void release(job *j) {
  if (atomic_fetch_sub(&j->holders, 1) == 1) free(j);
}

static void task(void *data) {
  take(data);
  release(data);
}

static bool schedule(const xla_frame *f, job *j) {
  const xla_api *api = f->api;
  if (api->struct_size < offsetof(xla_api, schedule) + sizeof api->schedule || !api->schedule) return false;
  xla_schedule_args a = {.struct_size = sizeof a, .context = f->context, .task = task, .data = j};
  xla_error *e = api->schedule(&a);
  if (!e) return true;
  xla_destroy_args d = {.struct_size = sizeof d, .error = e};
  api->error_destroy(&d);
  return false;
}

void jax_loop(void *pool, int64_t count, void (*body)(void *context, int64_t i), void *context) {
  (void)pool;
  job *j = here && count > 1 ? malloc(sizeof *j) : NULL;
  if (!j) {
    for (int64_t i = 0; i < count; i++) body(context, i);
    return;
  }
  j->body = body;
  j->context = context;
  j->count = count;
  atomic_init(&j->next, 0);
  atomic_init(&j->done, 0);
  atomic_init(&j->holders, 1);
  for (int64_t i = 1; i < count; i++) {
    atomic_fetch_add(&j->holders, 1);
    if (schedule(here, j)) continue;
    atomic_fetch_sub(&j->holders, 1);
    break;
  }
  take(j);
  while (atomic_load(&j->done) < count) sched_yield(); /* what others have begun */
  release(j);
}
