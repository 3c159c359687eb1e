/* A decision determines what runs: its text, executed in another process, on what looks like another machine (other
 * caches, other peaks, another number of threads, another ISA cap), gives the same trace of kernels and loops. And the
 * text is complete: a plan prints the decision that was forced on it, word for word, whichever of its knobs was set to
 * something else.
 *
 * The problems are those of trial_list and some hundreds that `hankel check --random --list` draws. The first process
 * writes every decision and its trace to a file; the others read it (argv[1]) and compare. */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cost/cost.h"
#include "plan/plan.h"
#include "support/check.h"
#include "support/trial.h"

/* ---- the other machine */

static bool other; /* process */
double __real_hk_cost_peak(hk_isa isa);
int64_t __real_hk_cost_l1(void), __real_hk_cost_l2(void), __real_hk_cost_l3(void);
bool __real_hk_cost_ahead(void);
double __wrap_hk_cost_peak(hk_isa isa);
int64_t __wrap_hk_cost_l1(void), __wrap_hk_cost_l2(void), __wrap_hk_cost_l3(void);
bool __wrap_hk_cost_ahead(void);

double __wrap_hk_cost_peak(hk_isa isa) {
  const double peak = __real_hk_cost_peak(isa);
  return !other || isa < HK_ISA_AVX512 ? peak : peak > __real_hk_cost_peak(HK_ISA_AVX2) ? peak / 2 : peak * 2;
}
int64_t __wrap_hk_cost_l1(void) { return other ? __real_hk_cost_l1() / 4 : __real_hk_cost_l1(); }
int64_t __wrap_hk_cost_l2(void) { return other ? __real_hk_cost_l2() / 64 : __real_hk_cost_l2(); }
int64_t __wrap_hk_cost_l3(void) { return other ? __real_hk_cost_l3() / 4096 : __real_hk_cost_l3(); }
bool __wrap_hk_cost_ahead(void) { return other != __real_hk_cost_ahead(); }

/* ---- traces */

static char trace[1 << 14];

static void listen(void *context, const char *line) {
  (void)context;
  const size_t n = strlen(trace);
  if (!strncmp(line, "hankel,trace,", 13)) snprintf(trace + n, sizeof trace - n, "|%s", line);
}

/* Creates the plan, whose trace is then in `trace`; its decision goes to text. */
static hk_status create(const trial *t, const char *decision, char text[HK_DECISION_TEXT]) {
  const hk_options o = {.size = sizeof o, .decision = decision, .math = HK_MATH_FAST_ALGORITHMS};
  hk_plan *plan = NULL;
  trace[0] = 0;
  const hk_status s = hk_plan_create(&plan, &t->problem, &t->epilogue, &o, &t->weights);
  if (!s) hk_plan_decision(plan, text, HK_DECISION_TEXT, NULL);
  hk_plan_destroy(plan);
  return s;
}

/* ---- the first process */

static FILE *list;
static int written, varied, budget;

/* Forces a decision; a plan that is made must print it, and goes on the list. */
static bool force(const trial *t, const char *decision) {
  char text[HK_DECISION_TEXT];
  if (create(t, decision, text)) return false;
  CHECK(!strcmp(text, decision), "forced %s, made %s", decision, text);
  CHECK(trace[0] != 0 && !strstr(trace, "=-1"), "%s: %s", decision, trace);
  fprintf(list, "D\t%s\t%s\n", decision, trace);
  written++;
  return true;
}

static const hk_algo *algo_of(const char *decision) {
  decision = decision_algorithm(decision);
  for (int i = 0; hk_algos[i]; i++) {
    const size_t n = strlen(hk_algos[i]->name);
    if (!strncmp(hk_algos[i]->name, decision, n) && (decision[n] == ' ' || !decision[n])) return hk_algos[i];
  }
  return NULL;
}

static void vary(const trial *t, const char *decision, const char *knob) {
  char word[64], text[2 * HK_DECISION_TEXT];
  snprintf(word, sizeof word, " %s=", knob);
  const char *at = strstr(decision, word), *value = at ? at + strlen(word) : NULL;
  CHECK(at != NULL, "%s does not name %s", decision, knob);
  if (!at) return;
  const long long now = atoll(value), values[] = {0, 1, 2, now / 2, now * 2, now + 1};
  for (int i = 0; i < 6; i++) {
    if (values[i] == now || values[i] < 0) continue;
    snprintf(text, sizeof text, "%.*s%s%lld%s", (int)(at - decision), decision, word, values[i],
             value + strcspn(value, " "));
    varied += force(t, text);
  }
}

static void visit(trial *t, const char *decision, void *context) {
  (void)context;
  const hk_algo *a = algo_of(decision);
  if (budget-- <= 0) return;
  CHECK(a && force(t, decision), "%s: %s", decision, hk_last_error());
  for (int i = 0; a && i < HK_KNOBS && a->knobs[i].name; i++) vary(t, decision, a->knobs[i].name);
}

static void problem(const char *text, const char *epilogue, int most) {
  static int count;
  const hk_options fast = {
      .size = sizeof fast, .math = HK_MATH_FAST_ALGORITHMS, .isa = count++ % 2 ? HK_ISA_AVX2 : HK_ISA_BEST};
  trial t;
  trial_make(&t, text, epilogue, 5);
  fprintf(list, "P\t%s\t%s\n", text, epilogue);
  budget = most;
  trial_decisions(&t, &fast, visit, NULL);
  trial_free(&t);
}

/* Lines are "hankel check 'PROBLEM' --epilogue 'TEXT' ...". */
static int random_problems(void) {
  const char *bin = getenv("HANKEL_BIN");
  char command[4096], line[4096];
  int count = 0;
  snprintf(command, sizeof command, "HANKEL_VERBOSE=error '%s' check --random 300 --seed 17 --family small --list",
           bin ? bin : "");
  FILE *f = bin ? popen(command, "r") : NULL;
  while (f && fgets(line, sizeof line, f)) {
    char *text = strchr(line, '\''), *end = text ? strchr(text + 1, '\'') : NULL;
    if (!end) continue;
    *end = 0;
    char *epilogue = strstr(end + 1, "--epilogue '"), *stop = epilogue ? strchr(epilogue + 12, '\'') : NULL;
    if (stop) *stop = 0;
    if (stop && strstr(epilogue, "prelu")) continue; /* a trial has no slopes for a gate */
    problem(text + 1, stop ? epilogue + 12 : "none", 3);
    count++;
  }
  if (f) pclose(f);
  return count;
}

/* ---- the other processes */

static int same, refused;

/* A decision that the ISA cap of this process excludes is passed over. */
static void compare(const trial *t, const char *decision, const char *expected) {
  char text[HK_DECISION_TEXT];
  if (create(t, decision, text)) {
    refused++;
    CHECK(strstr(hk_last_error(), "ISA cap") != NULL, "%s: %s", decision, hk_last_error());
    return;
  }
  same++;
  CHECK(!strcmp(trace, expected), "%s\n  there %s\n  here  %s", decision, expected, trace);
}

static int follow(const char *path) {
  static char line[1 << 15];
  FILE *f = fopen(path, "r");
  trial t;
  bool any = false;
  if (!f) return 1;
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    char *first = line + 2, *second = strchr(first, '\t');
    *second++ = 0;
    if (line[0] == 'D') {
      compare(&t, first, second);
      continue;
    }
    if (any) trial_free(&t);
    trial_make(&t, first, second, 5);
    any = true;
  }
  if (any) trial_free(&t);
  fclose(f);
  printf("%d the same, %d above the ISA cap\n", same, refused);
  CHECK(same > 0, "nothing was compared");
  return hk_test_end();
}

static void run_other(char *self, char *path, const char *threads, const char *isa) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("HANKEL_NUM_THREADS", threads, 1);
    if (isa) setenv("HANKEL_MAX_ISA", isa, 1);
    execl(self, self, path, (char *)NULL);
    _exit(127);
  }
  int status = 1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "threads %s, isa %s: status %d", threads,
        isa ? isa : "best", status);
}

int main(int argc, char **argv) {
  char path[] = "/tmp/hankel-trace-XXXXXX";
  setenv("HANKEL_VERBOSE", "trace", 1);
  hk_log_set(listen, NULL);
  other = argc > 1;
  if (other) return follow(argv[1]);
  const int fd = mkstemp(path);
  list = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (!list) return 1;
  for (const trial_text *t = trial_list; t->problem; t++) problem(t->problem, t->epilogue, 1000);
  const int drawn = random_problems();
  fclose(list);
  printf("%d random problems, %d decisions, %d of them varied\n", drawn, written, varied);
  CHECK(written > 500 && varied > 300, "%d decisions, %d varied", written, varied);
  run_other(argv[0], path, "7", NULL);
  run_other(argv[0], path, "1", "avx2");
  unlink(path);
  return hk_test_end();
}
