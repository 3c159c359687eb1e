/* Plans by the text of their problem. Lookups take no lock: entries are only ever added, in front of a bucket's list.
 * They stay for good, as XLA does not say when the last program that names a problem is gone; a plan without weights is
 * small. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "jax.h"

enum { BUCKETS = 1024 };

typedef struct entry {
  struct entry *next;
  hk_plan *plan;
  int32_t threads;
  size_t length;
  char text[];
} entry;

static _Atomic(entry *) bucket[BUCKETS];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static _Atomic(entry *) *bucket_of(xla_text t) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < t.length; i++) h = (h ^ (unsigned char)t.at[i]) * 0x100000001b3u;
  return &bucket[h % BUCKETS];
}

static const entry *find(_Atomic(entry *) *list, xla_text problem, int32_t threads) {
  for (const entry *e = atomic_load_explicit(list, memory_order_acquire); e; e = e->next) {
    if (e->threads == threads && e->length == problem.length && !memcmp(e->text, problem.at, problem.length)) return e;
  }
  return NULL;
}

static entry *make(xla_text problem, int32_t threads) {
  entry *e = calloc(1, sizeof *e + problem.length + 1);
  if (!e) return NULL;
  memcpy(e->text, problem.at, problem.length);
  e->length = problem.length;
  e->threads = threads;
  hk_problem p;
  const hk_options o = {.size = sizeof o, .threads = threads, .parallel_for = threads > 1 ? jax_loop : NULL};
  if (!hk_problem_parse(&p, e->text) && !hk_plan_create(&e->plan, &p, NULL, &o, NULL)) return e;
  free(e);
  return NULL;
}

const hk_plan *jax_plan(xla_text problem, int32_t threads) {
  _Atomic(entry *) *list = bucket_of(problem);
  const entry *found = find(list, problem, threads);
  if (found) return found->plan;
  pthread_mutex_lock(&adding);
  found = find(list, problem, threads);
  entry *e = found ? NULL : make(problem, threads);
  if (e) {
    e->next = atomic_load_explicit(list, memory_order_relaxed);
    atomic_store_explicit(list, e, memory_order_release);
    found = e;
  }
  pthread_mutex_unlock(&adding);
  return found ? found->plan : NULL;
}
