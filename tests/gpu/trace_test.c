/* A decision determines what runs on the device: the text that a plan prints, forced, makes a plan of the same kernel,
 * launch and way to store y, in this process and in another; so does every decision with one of its knobs changed.
 * Needs a CUDA device; exits with 77 without. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan/plan.h"
#include "support/check.h"
#include "support/trial.h"

static const trial_text problems[] = {{"2d_n2_c64_i14x14_k64_w3x3_p1_bf16_last", "bias+relu"},
                                      {"2d_n2_c64_i14x14_k63_w3x3_p1_bf16_last", "bias"},
                                      {"2d_n2_c64_i16x16_k64_w3x3_p1_f16_first", "bias"},
                                      {"2d_n2_c3_i64x64_k64_w16x16_s16_bf16_first", "none"},
                                      {"2d_n2_c64_i14x14_k64_w3x3_p1_g4_bf16_last", "none"},
                                      {"2d_n2_c64_i28x28_k64_w3x3_p1_g64_bf16_last", "none"},
                                      {"1d_n2_c64_i2000_k64_w128_p127:0_g64_bf16_first", "none"},
                                      {"1d_n2_c64_i2000_k64_w128_p127:0_g64_bf16_last", "none"},
                                      {"1d_n2_c64_i2000_k64_w31_p15_g64_f32_first", "bias"},
                                      {"1d_n2_c64_i2000_k64_w4_p3:0_g64_bf16_last", "none"},
                                      {"1d_n2_c64_i2000_k128_w4_p3:0_bf16_last", "gated:tanh:sigmoid"},
                                      {"2d_n2_c3_i64x64_k32_w3x3_s2_p1_f16_last", "relu"}};
static char trace[1 << 14];
static FILE *list;
static int made;

static void listen(void *context, const char *line) {
  (void)context;
  const size_t n = strlen(trace);
  if (!strncmp(line, "hankel,trace,", 13)) snprintf(trace + n, sizeof trace - n, "|%s", line);
}

static hk_status create(const trial *t, const char *decision, char text[HK_DECISION_TEXT]) {
  const hk_options o = {
      .size = sizeof o, .device = HK_CUDA, .decision = decision, .math = HK_MATH_TF32 | HK_MATH_SPLIT_F32};
  hk_plan *plan = NULL;
  trace[0] = 0;
  const hk_status s = hk_plan_create(&plan, &t->problem, &t->epilogue, &o, &t->weights);
  if (!s) hk_plan_decision(plan, text, HK_DECISION_TEXT, NULL);
  hk_plan_destroy(plan);
  return s;
}

/* Knobs may be cut to what the problem needs; what is printed then is complete. */
static bool force(const trial *t, const char *decision) {
  char text[HK_DECISION_TEXT], again[HK_DECISION_TEXT], first[sizeof trace];
  if (create(t, decision, text)) return false;
  memcpy(first, trace, sizeof first);
  CHECK(trace[0] && !strstr(trace, "=-1"), "%s: %s", decision, trace);
  CHECK(!create(t, text, again) && !strcmp(text, again) && !strcmp(first, trace), "%s\n  made %s\n  then %s", decision,
        first, trace);
  fprintf(list, "D\t%s\t%s\n", text, trace);
  made++;
  return true;
}

static void visit_plain(trial *t, const char *decision, void *context) {
  (void)context;
  CHECK(force(t, decision), "%s: %s", decision, hk_last_error());
}

static void visit(trial *t, const char *decision, void *context) {
  visit_plain(t, decision, context);
  for (const char *at = strchr(decision_algorithm(decision), ' '); at; at = strchr(at + 1, ' ')) {
    const char *value = strchr(at, '=') + 1;
    const long long now = atoll(value), values[] = {1, 2, now / 2, now * 2};
    for (int i = 0; i < 4; i++) {
      char text[2 * HK_DECISION_TEXT];
      snprintf(text, sizeof text, "%.*s%lld%s", (int)(value - decision), decision, values[i],
               value + strcspn(value, " "));
      if (values[i] != now) force(t, text);
    }
  }
}

static void compare(const trial *t, const char *decision, const char *expected) {
  char text[HK_DECISION_TEXT];
  CHECK(!create(t, decision, text) && !strcmp(trace, expected), "%s\n  there %s\n  here  %s", decision, expected,
        trace);
}

static int follow(const char *path) {
  static char line[1 << 15];
  FILE *f = fopen(path, "r");
  trial t;
  if (!f || !fgets(line, sizeof line, f)) return 1;
  for (bool more = true; more;) {
    trial_make(&t, problems[atoi(line + 2)].problem, problems[atoi(line + 2)].epilogue, 5);
    while ((more = fgets(line, sizeof line, f) != NULL) && line[0] == 'D') {
      line[strcspn(line, "\n")] = 0;
      char *second = strchr(line + 2, '\t');
      *second++ = 0;
      compare(&t, line + 2, second);
    }
    trial_free(&t);
  }
  fclose(f);
  return hk_test_end();
}

int main(int argc, char **argv) {
  hk_options some = {.size = sizeof some, .device = HK_CUDA, .math = HK_MATH_TF32 | HK_MATH_SPLIT_F32}, all = some;
  char path[] = "/tmp/hankel-trace-XXXXXX";
  hk_gpu gpu = {.size = sizeof gpu};
  all.rigor = HK_PATIENT; /* and the knobs that tuning would try */
  setenv("HANKEL_VERBOSE", "trace", 1);
  hk_log_set(listen, NULL);
  if (hk_gpu_info(&gpu) || !gpu.kernels) return printf("no CUDA device: %s\n", hk_last_error()), 77;
  if (argc > 1) return follow(argv[1]);
  const int fd = mkstemp(path);
  list = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (!list) return 1;
  for (int i = 0; i < HK_COUNT(problems); i++) {
    trial t;
    trial_make(&t, problems[i].problem, problems[i].epilogue, 5);
    fprintf(list, "P\t%d\n", i);
    trial_decisions(&t, &some, visit, NULL);
    trial_decisions(&t, &all, visit_plain, NULL);
    trial_free(&t);
  }
  fclose(list);
  printf("%d decisions\n", made);
  const pid_t child = fork();
  if (child == 0) execl(argv[0], argv[0], path, (char *)NULL), _exit(127);
  int status = 1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the other process: status %d", status);
  unlink(path);
  return hk_test_end();
}
