/* Wisdom: measured in one process and used in the next, quickly; four writers lose nothing; a killed writer leaves a
 * whole file; malformed files are refused whole; wisdom_only; wisdom that the options forbid is passed over; one key
 * per problem and machine; wisdom of an older format is passed over; lines without derived knobs mean what they meant.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/trial.h"
#include "base/base.h"
#include "tune/planner.h"
#include "tune/wisdom.h"

#define PROBLEMS 20
static char folder[] = "/tmp/hankel-wisdom-XXXXXX", file[256];
static float f[65536];

static void problem(int i, char *text) {
  sprintf(text, "1d_n1_c%d_i%d_k%d_w3_p1_%s", 4 + i, 32 + 4 * i, 8 + i, i % 2 ? "last" : "first");
}

static hk_status create(int i, hk_rigor rigor, int wisdom_only, hk_plan **plan) {
  char text[128];
  hk_problem p;
  const hk_weights w = {.size = sizeof w, .f = f};
  const hk_options o = {
      .size = sizeof o, .threads = 1, .rigor = rigor, .wisdom_only = wisdom_only, .time_limit_s = 0.2};
  problem(i, text);
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  return hk_plan_create(plan, &p, NULL, &o, &w);
}

static int used, wrong;
static void on_log(void *context, const char *line) {
  (void)context;
  if (strstr(line, "hankel,create") && strstr(line, ",wisdom,")) used++;
}

#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define DECISION_S 2e-3 /* the checks take their time too */
#else
#define DECISION_S 1e-4
#endif

/* The next process: every plan must come from wisdom, its decision in under 100 us (the best of a few: the machine may
 * be busy; the first call also reads the file). */
static int next_process(void) {
  hk_log_set(on_log, NULL);
  for (int i = 0; i < PROBLEMS; i++) {
    hk_plan *plan = NULL;
    if (create(i, HK_ESTIMATE, 1, &plan)) wrong++;
    double best = 1;
    for (int t = 0; plan && t < 9 && best > DECISION_S / 2; t++) {
      hk_decision d;
      const char *source;
      const hk_weights w = {.size = sizeof w, .f = f};
      const double start = hk_clock();
      if (hk_planner_decide(&plan->task, &w, &d, &source) || strcmp(source, "wisdom")) wrong++;
      if (hk_clock() - start < best) best = hk_clock() - start;
    }
    if (best > DECISION_S) wrong++, fprintf(stderr, "decision %d took %.1f us\n", i, best * 1e6);
    hk_plan_destroy(plan);
  }
  if (used != PROBLEMS) fprintf(stderr, "%d of %d plans came from wisdom\n", used, PROBLEMS);
  return wrong || used != PROBLEMS;
}

static int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void across_processes(const char *self) {
  for (int i = 0; i < PROBLEMS; i++) {
    hk_plan *plan = NULL;
    CHECK_STATUS(HK_OK, "", create(i, i % 3 ? HK_MEASURE : HK_PATIENT, 0, &plan));
    hk_plan_destroy(plan);
  }
  CHECK(hk_wisdom_count() == PROBLEMS, "%lld lines learnt", (long long)hk_wisdom_count());
  CHECK_STATUS(HK_OK, "", hk_wisdom_save(NULL));
  const pid_t child = fork();
  if (child == 0) {
    setenv("HANKEL_VERBOSE", "profile_create", 1);
    execl(self, self, "next", (char *)NULL);
    _exit(9);
  }
  CHECK(status_of(child) == 0, "the next process did not find its wisdom");
}

static void learn_line(int writer, int i) {
  char key[256], decision[64];
  sprintf(key, "%s\tcpu\tavx2\t1\tmath=0\t1d_n%d_c1_i8_k%d_w3_f32_first\tplain+none", HK_VERSION_TEXT, writer + 1,
          i + 1);
  sprintf(decision, "ref writer=%d", writer);
  hk_wisdom_learn(key, decision, 1e-6);
}

static int64_t lines_in(const char *path) {
  hk_wisdom_forget();
  const hk_status s = hk_wisdom_load(path);
  CHECK(s == HK_OK || s == HK_IO, "%s: %s", path, hk_last_error());
  return hk_wisdom_count();
}

static void four_writers(void) {
  char path[300];
  pid_t child[4];
  sprintf(path, "%s/four", folder);
  for (int w = 0; w < 4; w++)
    if ((child[w] = fork()) == 0) {
      hk_wisdom_forget();
      for (int i = 0; i < 25; i++) {
        learn_line(w, i);
        if (hk_wisdom_save(path)) _exit(1);
      }
      _exit(0);
    }
  for (int w = 0; w < 4; w++) CHECK(status_of(child[w]) == 0, "writer %d failed", w);
  CHECK(lines_in(path) == 100, "%lld of 100 lines are left", (long long)hk_wisdom_count());
}

/* A writer says over a pipe which line is safely saved; killed at random, at least those lines are in the file. */
static void killed(void) {
  char path[300];
  uint64_t seed = 11;
  sprintf(path, "%s/killed", folder);
  int next = 0;
  for (int round = 0; round < 50; round++) {
    int ends[2], saved = next - 1, got;
    CHECK(pipe(ends) == 0, "pipe");
    const pid_t child = fork();
    if (child == 0) {
      hk_wisdom_forget();
      for (int i = next;; i++) {
        learn_line(0, i);
        if (hk_wisdom_save(path) || write(ends[1], &i, sizeof i) != sizeof i) _exit(1);
      }
    }
    close(ends[1]);
    usleep((useconds_t)(2000 + (hk_test_integer(&seed, 1000) + 1000) * 5));
    kill(child, SIGKILL);
    while (read(ends[0], &got, sizeof got) == sizeof got) saved = got;
    close(ends[0]);
    waitpid(child, NULL, 0);
    const int64_t lines = lines_in(path);
    CHECK(lines >= saved + 1 && lines <= saved + 2, "round %d: %lld lines, %d saved", round, (long long)lines,
          saved + 1);
    next = (int)lines;
  }
  CHECK(next > 0, "no line was ever saved");
}

static void malformed(void) {
  static const char good[] =
      "hankel-wisdom 2\n0.1.0\tcpu\tavx2\t1\tmath=0\t1d_n1_c1_i8_k1_w3_f32_first\tplain+none\tref\t1.5\nend 1\n";
  static const char *const bad[] = {
      "",
      "hello\n",
      "hankel-wisdom 3\nend 0\n",
      "hankel-wisdom 2\n",
      "hankel-wisdom 2\nend 1\n",
      "hankel-wisdom 2\nend 0\nmore\n",
      "hankel-wisdom 2\n0.1.0\tcpu\nend 1\n",
      "hankel-wisdom 2\n0.1.0\tcpu\tavx2\t1\tm\tnonsense\tplain\tref\t1.5\nend 1\n",
      "hankel-wisdom 2\n0.1.0\tcpu\tavx2\t1\tm\t1d_n1_c1_i8_k1_w3_f32_first\tplain\tref\tnan\nend 1\n",
      "hankel-wisdom 2\n0.1.0\tcpu\tavx2\t-1\tm\t1d_n1_c1_i8_k1_w3_f32_first\tplain\tref\t1\nend 1\n",
      "hankel-wisdom 2\n0.1.0\tcpu\tavx2\t1\tm\t1d_n1_c1_i8_k1_w3_f32_first\tplain\t\t1\nend 1\n"};
  hk_wisdom_forget();
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    CHECK_STATUS(HK_SYNTAX, "nothing of it is used", hk_wisdom_import(bad[i]));
    CHECK(hk_wisdom_count() == 0, "malformed text %zu was half used", i);
  }
  CHECK_STATUS(HK_OK, "", hk_wisdom_import(good));
  CHECK(hk_wisdom_count() == 1, "good text was not used");
  char path[300], text[512];
  size_t length;
  sprintf(path, "%s/foreign", folder);
  FILE *out = fopen(path, "w");
  fputs("not wisdom\n", out);
  fclose(out);
  CHECK_STATUS(HK_SYNTAX, "foreign", hk_wisdom_save(path));
  out = fopen(path, "r");
  CHECK(fgets(text, sizeof text, out) && !strcmp(text, "not wisdom\n"), "a foreign file was overwritten");
  fclose(out);
  CHECK_STATUS(HK_OK, "", hk_wisdom_export(text, sizeof text, &length));
  CHECK(!strcmp(text, good) && length == strlen(good), "export gave \"%s\"", text);
}

/* What planning makes of wisdom that says `decision` for this problem and these options: its source, "refused" with an
 * error, or the decision where it is the one asked for. */
static const char *planned(const char *text, hk_options o, const char *decision, hk_plan **plan) {
  hk_task task;
  hk_problem p;
  char key[HK_WISDOM_KEY];
  const hk_weights w = {.size = sizeof w, .f = f};
  o.size = sizeof o;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  CHECK_STATUS(HK_OK, "", hk_task_make(&task, &p, NULL, &o, &w));
  hk_wisdom_forget();
  hk_wisdom_key(&task, key, sizeof key);
  CHECK_STATUS(HK_OK, "", hk_wisdom_learn(key, decision, 1e-6));
  *plan = NULL;
  return hk_plan_create(plan, &p, NULL, &o, &w) ? "refused" : (*plan)->source;
}

/* Wisdom that the options forbid, or that no validator would let pass, is passed over: the planner chooses. */
static void against_options(void) {
  static const char small[] = "2d_n2_c8_i7x7_k8_w1x1_g2_last", s8[] = "1d_n2_c16_i64_k16_w3_s8:s8:s32_last";
  const struct {
    const char *problem;
    hk_options o;
    const char *decision;
  } row[] = {
      {small, {.threads = 1, .forbid_fallback = 1}, "ref"},
      {small, {.threads = 1, .isa = HK_ISA_SCALAR}, "igemm kernel=hk_igemm_f32_4x24_avx2"},
      {small, {.threads = 1, .isa = HK_ISA_SCALAR}, "igemm kernel=hk_igemm_f32_6x64_avx512"},
      {s8, {.threads = 1, .limit_workspace = 1, .workspace_limit_bytes = 64}, "qgemm"},
      {small, {.threads = 1}, "point way=1 block=4611686022722355196"},
      {small, {.threads = 1}, "igemm bn=9223372036854775807"},
      {small, {.threads = 1}, "igemm bm=0"},
      {small, {.threads = 1}, "cuda_direct"},
      {small, {.threads = 1}, "nonsense"},
  };
  for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
    hk_plan *plan;
    const char *source = planned(row[i].problem, row[i].o, row[i].decision, &plan);
    CHECK(!strcmp(source, "estimate"), "%s for %s: %s", row[i].decision, row[i].problem, source);
    if (plan) CHECK(!row[i].o.limit_workspace || hk_plan_workspace(plan) <= 64, "%s: above the limit", row[i].decision);
    hk_plan_destroy(plan);
    hk_options only = row[i].o;
    only.wisdom_only = 1;
    CHECK(!strcmp(planned(row[i].problem, only, row[i].decision, &plan), "refused"), "%s: used", row[i].decision);
    hk_plan_destroy(plan);
  }
  hk_plan *plan;
  CHECK(!strcmp(planned(small, (hk_options){.threads = 1}, "ref", &plan), "wisdom"), "allowed wisdom was passed over");
  hk_plan_destroy(plan);
  /* a forced decision is refused with a sentence instead */
  hk_problem p;
  const hk_weights w = {.size = sizeof w, .f = f};
  hk_options o = {
      .size = sizeof o, .threads = 1, .isa = HK_ISA_SCALAR, .decision = "igemm kernel=hk_igemm_f32_4x24_avx2"};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, small));
  if (hk_cpu_has(HK_ISA_AVX2))
    CHECK_STATUS(HK_UNSUPPORTED, "above the ISA cap", hk_plan_create(&plan, &p, NULL, &o, &w));
  o = (hk_options){.size = sizeof o, .threads = 1, .forbid_fallback = 1, .decision = "ref"};
  CHECK_STATUS(HK_FALLBACK, "slow path", hk_plan_create(&plan, &p, NULL, &o, &w));
  hk_wisdom_forget();
}

static void key_of(const char *text, const char *epilogue, char *key) {
  hk_problem p;
  hk_epilogue e;
  hk_task task;
  const hk_options o = {.size = sizeof o, .threads = 1};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, epilogue));
  CHECK_STATUS(HK_OK, "", hk_task_make(&task, &p, &e, &o, NULL));
  hk_wisdom_key(&task, key, HK_WISDOM_KEY);
}

/* One key for all problems that address the same elements, another for each kind of machine. */
static void keys(void) {
  char a[HK_WISDOM_KEY], b[HK_WISDOM_KEY];
  key_of("2d_n1_c3_i4x4_k4_w1x1_first", "none", a);
  key_of("2d_n1_c3_i4x4_k4_w1x1_xs=0.5.5.16.4.1_fs=0.5.3.1.5.5_ys=0.5.5.16.4.1", "none", b);
  CHECK(!strcmp(a, b), "two keys of one problem:\n%s\n%s", a, b);
  key_of("1d_n2_c4_i3_k4_w1_g2_xs=0.6.12.3.1_fs=0.4.2.1.1_ys=0.0.6.3.1", "gated:tanh:sigmoid", a);
  key_of("1d_n2_c4_i3_k4_w1_g2_xs=0.6.12.3.1_fs=0.4.2.1.9_ys=0.6.6.3.1", "gated:tanh:sigmoid", b);
  CHECK(!strcmp(a, b), "two keys of one gated problem:\n%s\n%s", a, b);
  hk_machine m = {.size = sizeof m};
  CHECK_STATUS(HK_OK, "", hk_machine_info(&m));
  sprintf(b, "%s, family %d, model %d, stepping %d, caches %lld %lld %lld\t", m.cpu, m.family, m.model, m.stepping,
          (long long)m.l1d_bytes, (long long)m.l2_bytes, (long long)m.l3_bytes);
  CHECK(strstr(a, b) != NULL, "the key \"%s\" lacks \"%s\"", a, b);
#ifdef __x86_64__
  CHECK(m.family > 0, "family %d, model %d, stepping %d", m.family, m.model, m.stepping);
#endif
}

static int passed_over;
static void on_old(void *context, const char *line) {
  (void)context;
  if (strstr(line, "format 1") && strstr(line, "passed over")) passed_over++;
}

/* Wisdom of hankel 0.1: refused where it is named, passed over with a line in the log where it is the user's own file,
 * and replaced by the next save. */
static void old_format(void) {
  static const char old[] =
      "hankel-wisdom 1\n0.1.0\tAMD EPYC\tavx2\t1\tm\t1d_n1_c1_i8_k1_w3_f32_first\tplain\tref\t1\nend 1\n";
  char path[300];
  sprintf(path, "%s/old", folder);
  FILE *out = fopen(path, "w");
  fputs(old, out);
  fclose(out);
  hk_wisdom_forget();
  CHECK_STATUS(HK_SYNTAX, "passed over", hk_wisdom_import(old));
  CHECK_STATUS(HK_SYNTAX, "passed over", hk_wisdom_load(path));
  setenv("HANKEL_WISDOM", path, 1);
  setenv("HANKEL_VERBOSE", "warn", 1);
  hk_log_words();
  hk_log_set(on_old, NULL);
  CHECK_STATUS(HK_OK, "", hk_wisdom_load(NULL));
  CHECK(passed_over == 1 && hk_wisdom_count() == 0, "%d lines in the log, %lld of wisdom", passed_over,
        (long long)hk_wisdom_count());
  learn_line(0, 0);
  CHECK_STATUS(HK_OK, "", hk_wisdom_save(NULL));
  CHECK(lines_in(path) == 1, "%lld lines", (long long)hk_wisdom_count());
  hk_log_set(NULL, NULL);
}

/* The decision without the words of derived knobs, as older lines have it. */
static void without_derived(const hk_plan *plan, const char *decision, char *to) {
  const hk_knob *knobs = plan->decision.algo->knobs;
  strcpy(to, decision);
  for (int i = 0; i < HK_KNOBS && knobs[i].name; i++) {
    char word[64];
    snprintf(word, sizeof word, " %s=", knobs[i].name);
    char *at = knobs[i].kind == HK_GIVEN ? NULL : strstr(to, word);
    if (at) memmove(at, at + 1 + strcspn(at + 1, " "), strlen(at + 1 + strcspn(at + 1, " ")) + 1);
  }
}

static void one_older_line(trial *t, int *shorter) {
  static char key[HK_WISDOM_KEY], first[HK_DECISION_TEXT], older[HK_DECISION_TEXT], second[HK_DECISION_TEXT];
  hk_options o = {.size = sizeof o, .threads = 1};
  hk_plan *plan = NULL;
  hk_task task;
  hk_wisdom_forget();
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &t->problem, &t->epilogue, &o, &t->weights));
  CHECK_STATUS(HK_OK, "", hk_task_make(&task, &t->problem, &t->epilogue, &o, &t->weights));
  if (!plan) return;
  hk_wisdom_key(&task, key, sizeof key);
  hk_plan_decision(plan, first, sizeof first, NULL);
  without_derived(plan, first, older);
  hk_plan_destroy(plan);
  *shorter += strlen(older) < strlen(first);
  o.wisdom_only = 1;
  CHECK_STATUS(HK_OK, "", hk_wisdom_learn(key, older, 1e-6));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &t->problem, &t->epilogue, &o, &t->weights));
  if (!plan) return;
  hk_plan_decision(plan, second, sizeof second, NULL);
  CHECK(!strcmp(first, second), "\"%s\" means \"%s\", was \"%s\"", older, second, first);
  hk_plan_destroy(plan);
  CHECK_STATUS(HK_OK, "", hk_wisdom_learn(key, "dot kernel=hk_dot_f32_2x4_scalar bm=8 bn=1 bk=8 pack=0", 1e-6));
  CHECK_STATUS(HK_NO_WISDOM, "", hk_plan_create(&plan, &t->problem, &t->epilogue, &o, &t->weights));
}

static void older_lines(void) {
  int shorter = 0;
  for (const trial_text *text = trial_list; text->problem; text++) {
    trial t;
    trial_make(&t, text->problem, text->epilogue, 1);
    one_older_line(&t, &shorter);
    trial_free(&t);
  }
  CHECK(shorter > 3, "%d lines had derived knobs", shorter);
}

int main(int argc, char **argv) {
  if (argc > 1) return next_process();
  if (!mkdtemp(folder)) return 1;
  sprintf(file, "%s/deep/er/wisdom", folder);
  setenv("HANKEL_WISDOM", file, 1);
  hk_plan *plan = NULL;
  hk_wisdom_forget();
  CHECK_STATUS(HK_NO_WISDOM, "wisdom", create(0, HK_ESTIMATE, 1, &plan));
  across_processes(argv[0]);
  four_writers();
  killed();
  malformed();
  against_options();
  keys();
  old_format();
  older_lines();
  char command[300];
  sprintf(command, "rm -r %s", folder);
  CHECK(system(command) == 0, "clean-up");
  return hk_test_end();
}
