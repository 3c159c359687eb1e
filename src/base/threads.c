/* One process-wide thread pool. A run takes the pool or, when another run holds it, works alone on the caller's thread.
 * Helpers spin briefly for work, then sleep on a condition variable. A forked child has no helper threads and works
 * alone until it starts its own. Each index is computed entirely by one thread, so results do not depend on which
 * thread computes it. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/base.h"

#define MAX_HELPERS 255
#define SPINS 2000

typedef struct job {
  hk_body body;
  void *context;
  int64_t count;
} job;

static struct {
  atomic_flag taken; /* a run owns the pool */
  pthread_mutex_t lock;
  pthread_cond_t wake;
  int helpers; /* threads started, by the owner only */
  job current;
  atomic_int wanted;      /* helpers that may still join this run */
  atomic_int active;      /* helpers inside this run */
  atomic_llong next;      /* next index */
  atomic_uint generation; /* counts runs */
  int hooked;
} pool = {.taken = ATOMIC_FLAG_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static inline void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void work(void) {
  const job j = pool.current;
  for (;;) {
    const int64_t i = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed);
    if (i >= j.count) return;
    j.body(j.context, i);
  }
}

/* Returns whether this helper joined the open run. active is raised before wanted is tested, so that the owner, which
 * first closes wanted and then waits for active to reach 0, cannot miss a joiner. */
static bool join_run(void) {
  atomic_fetch_add(&pool.active, 1);
  int left = atomic_load(&pool.wanted);
  while (left > 0)
    if (atomic_compare_exchange_weak(&pool.wanted, &left, left - 1)) return true;
  atomic_fetch_sub(&pool.active, 1);
  return false;
}

static void *helper(void *unused) {
  (void)unused;
  unsigned seen = atomic_load(&pool.generation) - 1;
  for (;;) {
    for (int i = 0; i < SPINS && atomic_load_explicit(&pool.generation, memory_order_acquire) == seen; i++) pause_cpu();
    if (atomic_load(&pool.generation) == seen) {
      pthread_mutex_lock(&pool.lock);
      while (atomic_load(&pool.generation) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
      pthread_mutex_unlock(&pool.lock);
    }
    seen = atomic_load(&pool.generation);
    if (!join_run()) continue;
    work();
    atomic_fetch_sub(&pool.active, 1);
  }
  return NULL;
}

static void after_fork_child(void) {
  pool.helpers = 0;
  pthread_mutex_init(&pool.lock, NULL);
  pthread_cond_init(&pool.wake, NULL);
  atomic_store(&pool.wanted, 0);
  atomic_store(&pool.active, 0);
  atomic_flag_clear(&pool.taken);
}

/* Starts helpers up to n and returns how many there are. Asynchronous signals are blocked in helpers and stay with the
 * program's own threads; synchronous faults still reach the program's (and the sanitizers') handlers. */
static int grow(int n) {
  if (!pool.hooked) {
    pthread_atfork(NULL, NULL, after_fork_child);
    pool.hooked = 1;
  }
  if (n > MAX_HELPERS) n = MAX_HELPERS;
  while (pool.helpers < n) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t all, old;
    pthread_t t;
    sigfillset(&all);
    for (int f = 0; f < HK_COUNT(faults); f++) sigdelset(&all, faults[f]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int failed = pthread_create(&t, NULL, helper, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) break;
    pthread_detach(t);
    pool.helpers++;
  }
  return pool.helpers;
}

void hk_pool_run(int32_t threads, int64_t count, hk_body body, void *context) {
  int extra = (int)hk_min64(threads, count) - 1;
  if (extra > 0 && !atomic_flag_test_and_set(&pool.taken)) {
    const int have = grow(extra);
    if (extra > have) extra = have;
    pool.current = (job){body, context, count};
    atomic_store(&pool.next, 0);
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.wanted, extra);
    atomic_fetch_add(&pool.generation, 1);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    work();
    atomic_store(&pool.wanted, 0);
    for (int spins = 0; atomic_load(&pool.active) > 0; spins++) {
      if (spins < SPINS) pause_cpu();
      else sched_yield();
    }
    atomic_flag_clear(&pool.taken);
    return;
  }
  for (int64_t i = 0; i < count; i++) body(context, i);
}
