/* First use from many threads at once: every lazy start of the library (log words, CPU features, thread count, wisdom
 * files, pool, tables) happens in a race, in a fresh process each time. It must not crash, give a wrong answer or,
 * under SAN=thread, have a data race. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

enum { THREADS = 8, PROCESSES = 12, CALLS = 6 };
static pthread_barrier_t gate;

/* ---- calls, each of which may be the first of the process; true: right */
static bool plan_call(void) {
  float x[64], f[3] = {1, 2, 3}, y[64];
  hk_problem p;
  hk_plan *plan = NULL;
  const hk_options o = {.size = sizeof o, .threads = 2};
  const hk_weights w = {.size = sizeof w, .f = f};
  const hk_args a = {.size = sizeof a, .x = x, .y = y};
  for (int i = 0; i < 64; i++) x[i] = (float)(i % 7);
  if (hk_problem_parse(&p, "1d_c1_i64_k1_w3_p1_f32_last") || hk_plan_create(&plan, &p, NULL, &o, &w)) return false;
  bool right = !hk_plan_execute(plan, &a) && y[0] == 2 * x[0] + 3 * x[1] && y[63] == x[62] + 2 * x[63];
  for (int i = 1; i < 63; i++) right &= y[i] == x[i - 1] + 2 * x[i] + 3 * x[i + 1];
  hk_plan_destroy(plan);
  return right;
}

static bool wisdom_call(void) {
  static const char text[] = "hankel-wisdom 2\n"
                             "0.1.0\tcpu\tavx2\t1\tmath=0\t1d_n1_c1_i8_k1_w3_f32_first\tplain+none\tref\t1.5\nend 1\n";
  char buffer[512];
  size_t length = 0;
  bool right = !hk_wisdom_import(text) && !hk_wisdom_export(buffer, sizeof buffer, &length) && length == strlen(text);
  right &= hk_wisdom_count() == 1 && !hk_wisdom_path(buffer, sizeof buffer, NULL);
  return right && hk_wisdom_import("nonsense") == HK_SYNTAX && *hk_last_error();
}

static void log_line(void *context, const char *line) { (void)context, (void)line; }

static bool log_call(void) {
  hk_log_set(log_line, NULL);
  hk_log_set(NULL, NULL);
  hk_log_set(log_line, NULL);
  return plan_call(); /* which asks whether to log */
}

static bool machine_call(void) {
  hk_machine m = {.size = sizeof m};
  return !hk_machine_info(&m) && m.cores > 0 && m.best_isa != HK_ISA_BEST && hk_isa_name(m.best_isa) != NULL;
}

static void count_usable(void *context, const hk_candidate *c) { *(int *)context += c->refusal == NULL; }

static bool candidates_call(void) {
  hk_problem p;
  int usable = 0;
  const hk_options o = {.size = sizeof o}; /* the default of threads is found, too */
  if (hk_problem_parse(&p, "2d_c16_i9x9_k16_w3x3_p1_bf16_last")) return false;
  return !hk_plan_candidates(&p, NULL, &o, count_usable, &usable) && usable > 0;
}

static bool stream_call(void) {
  float f[2] = {1, 1}, x[4] = {1, 2, 3, 4}, y[4];
  int64_t n = 0;
  hk_chain *chain = NULL;
  hk_stream *stream = NULL;
  const hk_step step = {.size = sizeof step, .kind = HK_STEP_CONV, .x = 1, .k = 1, .window = 2, .f = f};
  const hk_chain_desc d = {.size = sizeof d, .channels = 1, .max_block = 4, .steps = &step, .count = 1};
  if (hk_chain_create(&chain, &d, NULL, 0)) return false;
  bool right = !hk_stream_create(&stream, chain, NULL, 0) && !hk_stream_process(stream, x, 4, y, &n);
  right = right && n == 4 && y[0] == 1 && y[3] == 7;
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
  return right;
}

/* ---- one process */
static void *use(void *context) {
  static bool (*const calls[CALLS])(void) = {plan_call,    wisdom_call,     log_call,
                                             machine_call, candidates_call, stream_call};
  const intptr_t first = (intptr_t)context;
  intptr_t wrong = 0;
  pthread_barrier_wait(&gate);
  for (int i = 0; i < CALLS; i++)
    if (!calls[(first + i) % CALLS]()) wrong |= (intptr_t)1 << (first + i) % CALLS;
  return (void *)wrong;
}

/* Exit status: bit i is set when call i was wrong. `same`: every thread begins with call `first`. */
static void process(int first, bool same) {
  pthread_t t[THREADS];
  intptr_t wrong = 0;
  void *result;
  pthread_barrier_init(&gate, NULL, THREADS);
  for (intptr_t i = 0; i < THREADS; i++)
    if (pthread_create(&t[i], NULL, use, (void *)(same ? first : first + i))) _exit(77);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(t[i], &result);
    wrong |= (intptr_t)result;
  }
  pthread_barrier_destroy(&gate);
  exit((int)wrong);
}

int main(void) {
  setenv("HANKEL_WISDOM", "none", 1);
  for (int i = 0; i < PROCESSES; i++) {
    const pid_t child = fork(); /* nothing of the library ran before */
    if (child == 0) process(i % CALLS, i < CALLS);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d: status %#x", i, (unsigned)status);
  }
  return hk_test_end();
}
