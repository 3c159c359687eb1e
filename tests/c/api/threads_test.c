/* Threads: any count and the caller's own loop give the same bits; many threads share a plan; a forked child works;
 * the floating-point mode comes back. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "base/base.h"

#define SIZE 8192
static float x[SIZE], f[SIZE];
static const char *const problem_text = "2d_n2_c8_i14x14_k20_w3x3_p1_last";

static void backwards(void *pool, int64_t n, void (*body)(void *, int64_t), void *context) {
  (*(int *)pool)++;
  for (int64_t i = n - 1; i >= 0; i--) body(context, i);
}

static hk_plan *make(hk_options *o) {
  hk_problem p;
  hk_plan *plan = NULL;
  const hk_weights w = {.size = sizeof w, .f = f};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, problem_text));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, NULL, o, &w));
  return plan;
}

static void run(hk_plan *plan, float *y) {
  const hk_args a = {.size = sizeof a, .x = x, .y = y};
  memset(y, 0x7f, SIZE * sizeof *y);
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
}

static void counts(const char *decision) {
  static float one[SIZE], other[SIZE];
  hk_options o = {.size = sizeof o, .threads = 1, .decision = decision};
  hk_plan *plan = make(&o);
  run(plan, one);
  run(plan, other);
  CHECK(!memcmp(one, other, sizeof one), "%s: two executions differ", decision);
  hk_plan_destroy(plan);
  for (int t = 2; t <= 7; t++) {
    o.threads = t;
    plan = make(&o);
    run(plan, other);
    CHECK(!memcmp(one, other, sizeof one), "%s: %d threads give other bits", decision, t);
    hk_plan_destroy(plan);
  }
  int calls = 0;
  o.threads = 3, o.parallel_for = backwards, o.pool = &calls;
  plan = make(&o);
  run(plan, other);
  CHECK(!memcmp(one, other, sizeof one), "%s: the caller's loop gives other bits", decision);
  CHECK(calls > 0, "%s: the caller's loop was not used", decision);
  hk_plan_destroy(plan);
}

static void each(void *context, const hk_candidate *c) {
  (void)context;
  char text[512];
  snprintf(text, sizeof text, "%s", c->decision);
  if (!c->refusal && c->workspace_bytes == 0) counts(text);
}

typedef struct shared {
  hk_plan *plan;
  const float *expected;
  int wrong;
} shared;

static void *user_thread(void *context) {
  shared *s = context;
  float *y = malloc(SIZE * sizeof *y);
  for (int i = 0; i < 50; i++) {
    memset(y, 0x7f, SIZE * sizeof *y);
    const hk_args a = {.size = sizeof a, .x = x, .y = y};
    if (hk_plan_execute(s->plan, &a) || memcmp(y, s->expected, SIZE * sizeof *y))
      __atomic_fetch_add(&s->wrong, 1, __ATOMIC_RELAXED);
  }
  free(y);
  return NULL;
}

static void many_users(void) {
  static float expected[SIZE];
  hk_options o = {.size = sizeof o, .threads = 2};
  shared s = {make(&o), expected, 0};
  run(s.plan, expected);
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, user_thread, &s);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  CHECK(s.wrong == 0, "%d executions from several threads were wrong", s.wrong);
#if !defined(__SANITIZE_THREAD__)
  const pid_t child = fork();
  if (child == 0) {
    static float y[SIZE];
    const hk_args a = {.size = sizeof a, .x = x, .y = y};
    memset(y, 0x7f, sizeof y);
    _exit(hk_plan_execute(s.plan, &a) || memcmp(y, expected, sizeof y) ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the forked child failed");
#endif
  hk_plan_destroy(s.plan);
}

static void denormals(void) {
  hk_problem p;
  const float tiny = 1e-40f;
  float in = tiny, w1 = 1, out = 7;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_c1_i1_k1_w1"));
  const hk_weights w = {.size = sizeof w, .f = &w1};
  for (int flush = 0; flush < 2; flush++) {
    hk_options o = {.size = sizeof o, .threads = 1, .denormals = flush ? HK_DENORMALS_FLUSH : HK_DENORMALS_KEEP};
    hk_plan *plan;
    CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, NULL, &o, &w));
    const hk_args a = {.size = sizeof a, .x = &in, .y = &out};
    const uint64_t before = hk_fp_set(false);
    CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
    const uint64_t after = hk_fp_set(false);
    CHECK(before == after, "the floating-point mode was not restored");
    CHECK(flush ? out == 0 || out == tiny : out == tiny, "denormal became %g", (double)out);
    hk_plan_destroy(plan);
  }
}

/* Helpers leave the program's signals to its own threads, but not their own faults: a handler sees those. */
typedef struct masks {
  pthread_t self;
  int taking, blocking;
} masks;

static void mask_look(void *context, int64_t i) {
  (void)i;
  masks *m = context;
  sigset_t mask;
  if (pthread_equal(m->self, pthread_self())) {
    usleep(20000); /* the helpers take the rest */
    return;
  }
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  if (!sigismember(&mask, SIGINT)) __atomic_fetch_add(&m->taking, 1, __ATOMIC_RELAXED);
  if (sigismember(&mask, SIGSEGV) || sigismember(&mask, SIGFPE)) __atomic_fetch_add(&m->blocking, 1, __ATOMIC_RELAXED);
}

static void helper_signals(void) {
  masks m = {.self = pthread_self()};
  hk_pool_run(3, 6, mask_look, &m);
  CHECK(m.taking == 0, "helpers take SIGINT");
  CHECK(m.blocking == 0, "helpers block their own faults");
}

int main(void) {
  uint64_t seed = 1;
  hk_problem p;
  for (int i = 0; i < SIZE; i++) {
    x[i] = (float)hk_test_integer(&seed, 1000) / 317;
    f[i] = (float)hk_test_integer(&seed, 1000) / 211;
  }
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, problem_text));
  CHECK_STATUS(HK_OK, "", hk_plan_candidates(&p, NULL, NULL, each, NULL));
  many_users();
  denormals();
  helper_signals();
  return hk_test_end();
}
