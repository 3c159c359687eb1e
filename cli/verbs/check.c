/* `hankel check`: every decision the planner would consider, for given or random problems, against the reference. The
 * work is done in child processes (--jobs), so that a crash is one failed problem with its line, not the end of the
 * run. Ends with a line `N passed, N failed, N skipped`. Large problems are checked on fewer images or lines, and on a
 * sample of their outputs (--reduce). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check/check.h"

static struct {
  const char *batch, *layout, *types, *with, *family;
  int64_t random, from, seed, jobs;
  double reduce, seconds;
  bool deconv, stats, in_process, list;
} o = {.seed = 1, .jobs = 1, .reduce = CHECK_REDUCE, .random = -1};

static const cli_option table[] = {
    {"batch", CLI_TEXT, &o.batch, "FILE", "problems, one per line, or a .tsv of shapes"},
    {"deconv", CLI_FLAG, &o.deconv, NULL, "the problems are benchdnn text of deconvolutions"},
    {"layout", CLI_TEXT, &o.layout, "WORD", "of a .tsv: last (default) or first"},
    {"types", CLI_TEXT, &o.types, "LIST", "of a .tsv: e.g. f32,bf16 (default f32); column: its last column"},
    {"random", CLI_INTEGER, &o.random, "N", "N random problems"},
    {"from", CLI_INTEGER, &o.from, "I", "of --random: the first I problems are left out"},
    {"seconds", CLI_REAL, &o.seconds, "S", "of --random: stop after S seconds, though fewer than N are checked"},
    {"family", CLI_TEXT, &o.family, "WORD",
     "of --random: depthwise (and grouped) problems only, small ones (12,000 elements), grad: gradients, transposed: "
     "those with input dilation, or narrow: bf16 and int8"},
    {"seed", CLI_INTEGER, &o.seed, "S", "of the random problems, or of the data (default 1)"},
    {"jobs", CLI_INTEGER, &o.jobs, "N", "processes to use (default 1)"},
    {"with", CLI_TEXT, &o.with, "LIST",
     "late, state, user, user2, store, c_strides, in_place, f_zeros, nonfinite, flush, like, wisdom, hostile, alive"},
    {"reduce", CLI_REAL, &o.reduce, "GFLOP",
     "larger problems: fewer images, a sample of outputs (default 0.02; 0: never)"},
    {"stats", CLI_FLAG, &o.stats, NULL, "what the problems covered"},
    {"list", CLI_FLAG, &o.list, NULL, "print the problems, check nothing"},
    {"in-process", CLI_FLAG, &o.in_process, NULL, "no child processes (for debuggers)"},
    {0}};

/* A random problem takes milliseconds: one that takes a minute hangs. */
enum { JOBS = 64, REASONS = 12, PATIENCE_S = 600, RANDOM_PATIENCE_S = 60, EXIT_DEVICE_LOST = 4 };
typedef struct tally {
  int64_t passed, failed, skipped, decisions, reduced, sampled;
  int64_t traits[CHECK_TRAITS];
  int64_t reason_count[REASONS];
  char reason[REASONS][240];
} tally;
typedef struct job { /* shared with the parent: what a child was doing when it died */
  int64_t at;        /* index of the problem at hand, or `total` at the end */
  tally sum;
  char line[4096];
} job;

static cli_items items;
static hk_epilogue epilogue;
static hk_options options;
static unsigned with;
static int64_t total;
static double started;
static check_drawn drawn;
static job *jobs;

/* ---- cases */
static double work_of(const hk_problem *p) {
  double flops = 0, bytes = 0;
  return hk_problem_work(p, &flops, &bytes) ? 0 : flops;
}

/* A view of the same tensors with fewer images; where one image is still far too large, with fewer of its lines. */
static bool reduce(hk_problem *p) {
  double flops = work_of(p), limit = 1e9 * o.reduce;
  if (o.reduce <= 0 || flops <= limit) return false;
  int64_t groups = p->batch_groups > 1 ? p->batch_groups : 1, n = (int64_t)((double)p->n * limit / flops);
  n = n / groups * groups;
  if (n < groups) n = groups;
  bool less = n < p->n;
  p->n = n;
  int64_t reach = p->dilation[0] * (p->window[0] - 1) + 1;
  while (work_of(p) > 20 * limit && p->in[0] > 2 * reach) {
    p->in[0] = (p->in[0] + 1) / 2;
    less = true;
  }
  return less;
}

/* y of a dense problem under a gate is dense for half the channels; other strides are taken as they are. */
static void gate_settle(hk_problem *p) {
  for (int layout = 0; epilogue.gate && layout < 2; layout++) {
    hk_problem d = *p;
    if (hk_problem_dense(&d, (hk_layout)layout) || memcmp(&d.y, &p->y, sizeof d.y)) continue;
    hk_problem_dense_y(p, (hk_layout)layout, p->k / 2);
    return;
  }
}

static void case_make(check_case *t, hk_options *made, int64_t index, tally *sum) {
  *made = options;
  if (o.random >= 0) {
    check_random(t, made, drawn, cli_random_mix((uint64_t)o.seed, (uint64_t)(o.from + index)));
    t->reduce = work_of(&t->p) > 1e9 * CHECK_REDUCE ? 0 : CHECK_REDUCE; /* drawn problems run whole */
    return;
  }
  *t = (check_case){
      .p = items.at[index].problem, .e = epilogue, .with = with, .seed = (uint64_t)o.seed, .reduce = o.reduce};
  if (options.stateful) t->with |= WITH_STATE;
  if (options.denormals == HK_DENORMALS_FLUSH) t->with |= WITH_FLUSH;
  gate_settle(&t->p);
  sum->reduced += reduce(&t->p);
  check_case_settle(t);
}

/* ---- one child */
/* One write, so that lines of several children do not mix. */
static void failure_print(void *context, const char *line) {
  const job *j = context;
  char *text = o.random < 0
                   ? cli_text("%s\n", line)
                   : cli_text("%s (problem %lld of seed %lld)\n", line, (long long)(o.from + j->at), (long long)o.seed);
  if (text && write(STDOUT_FILENO, text, strlen(text)) < 0) cli_error("stdout could not be written");
  free(text);
}

static void before_note(void *context, const char *line) {
  job *j = context;
  snprintf(j->line, sizeof j->line, "%s", line);
}

static void reason_note(tally *sum, const char *reason, int64_t count) {
  int i = 0;
  while (i < REASONS - 1 && sum->reason_count[i] && strcmp(sum->reason[i], reason)) i++;
  snprintf(sum->reason[i], sizeof sum->reason[i], "%s", reason);
  sum->reason_count[i] += count;
}

/* The line printed while a random problem is still being drawn, which plans a draft of it. */
static void index_before(job *j, int64_t index) {
  char *rest = check_options_text(&options, false);
  snprintf(j->line, sizeof j->line, "hankel check --random 1 --from %lld --seed %lld%s%s%s",
           (long long)(o.from + index), (long long)o.seed, o.family ? " --family " : "", o.family ? o.family : "",
           rest ? rest : "");
  free(rest);
}

static void index_run(job *j, int64_t index, int64_t step) {
  check_case t;
  hk_options made;
  check_report report = {.failure = failure_print, .before = before_note, .context = j, .products = 0.5e9 * o.reduce};
  if (o.random >= 0) {
    report.products = report.products > 1e6 ? 1e6 : report.products;
    report.work = 2e7;
    index_before(j, index);
  }
  alarm(o.random >= 0 ? RANDOM_PATIENCE_S : PATIENCE_S);
  case_make(&t, &made, index, &j->sum);
  check_stats_note(j->sum.traits, &t, &made);
  switch (check_run(&t, &made, &report)) {
  case CHECK_PASSED: j->sum.passed++; break;
  case CHECK_FAILED: j->sum.failed++; break;
  default: j->sum.skipped++; reason_note(&j->sum, report.reason, 1);
  }
  alarm(0);
  j->sum.decisions += report.decisions;
  j->sum.sampled += report.sampled;
  if (!report.device_lost || o.in_process) return;
  j->at += step;
  _exit(EXIT_DEVICE_LOST);
}

static void child_run(job *j, int64_t step) {
  for (; j->at < total; j->at += step) {
    if (o.seconds > 0 && cli_now() - started > o.seconds) j->at = total;
    else index_run(j, j->at, step);
  }
}

static pid_t child_start(int which, int64_t step) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid) return pid;
  child_run(&jobs[which], step);
#ifdef HK_COVERAGE
  exit(0); /* writes the counts */
#endif
  _exit(0);
}

/* ---- the parent */
/* A child that died was working on jobs[which].at: that problem failed, and a new child continues with the next. */
static void death_note(int which, int status, int64_t step) {
  job *j = &jobs[which];
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && j->at >= total) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DEVICE_LOST) return; /* counted; go on to the next */
  char *text = cli_text("%s  # died: %s", j->line,
                        WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "the process ended itself");
  cli_progress_end();
  failure_print(j, text ? text : j->line);
  free(text);
  j->sum.failed++;
  j->at += step;
}

static int64_t done_count(int count) {
  int64_t done = 0;
  for (int i = 0; i < count; i++) done += jobs[i].sum.passed + jobs[i].sum.failed + jobs[i].sum.skipped;
  return done;
}

static bool children_run(int count) {
  pid_t pid[JOBS];
  int alive = 0;
  useconds_t nap = 500;
  for (int i = 0; i < count; i++) {
    jobs[i].at = i;
    pid[i] = i < total ? child_start(i, count) : 0;
    if (pid[i] < 0) return false;
    alive += pid[i] > 0;
  }
  while (alive > 0) {
    bool news = false;
    for (int i = 0; i < count; i++) {
      int status;
      if (pid[i] <= 0 || waitpid(pid[i], &status, WNOHANG) != pid[i]) continue;
      news = true;
      death_note(i, status, count);
      pid[i] = jobs[i].at < total ? child_start(i, count) : 0;
      if (pid[i] <= 0) alive--;
    }
    cli_progress(done_count(count), total, "checked");
    if (!news) usleep(nap = nap < 50000 ? nap * 2 : nap);
  }
  cli_progress_end();
  return true;
}

static tally tally_all(int count) {
  tally sum = {0};
  for (int i = 0; i < count; i++) {
    const tally *t = &jobs[i].sum;
    sum.passed += t->passed;
    sum.failed += t->failed;
    sum.skipped += t->skipped;
    sum.decisions += t->decisions;
    sum.reduced += t->reduced;
    sum.sampled += t->sampled;
    for (int k = 0; k < CHECK_TRAITS; k++) sum.traits[k] += t->traits[k];
    for (int k = 0; k < REASONS; k++)
      if (t->reason_count[k]) reason_note(&sum, t->reason[k], t->reason_count[k]);
  }
  return sum;
}

static int report(double seconds, int count) {
  tally sum = tally_all(count);
  for (int i = 0; i < REASONS; i++)
    if (sum.reason_count[i]) cli_note("%lld skipped: %s", (long long)sum.reason_count[i], sum.reason[i]);
  if (sum.reduced) cli_note("%lld large problems ran on a smaller batch or fewer lines", (long long)sum.reduced);
  if (sum.sampled) cli_note("%lld large problems were compared on a sample of outputs", (long long)sum.sampled);
  if (o.stats) check_stats_print(sum.traits, total, stdout);
#ifdef HK_COVERAGE
  if (o.stats) cli_note("lines reached: scripts/coverage.sh writes them to %s/lines.txt", HK_COVERAGE);
#endif
  cli_note("%lld decisions executed, seed %lld, %.1f s", (long long)sum.decisions, (long long)o.seed, seconds);
  printf("%lld passed, %lld failed, %lld skipped\n", (long long)sum.passed, (long long)sum.failed,
         (long long)sum.skipped);
  if (sum.failed) return CLI_FAILED;
  return sum.skipped && !sum.passed ? CLI_UNSUPPORTED : CLI_OK;
}

static int list_print(void) {
  for (int64_t i = 0; i < total; i++) {
    check_case t;
    hk_options made;
    tally unused = {0};
    case_make(&t, &made, i, &unused);
    char *line = check_line(&t, &made, NULL);
    puts(line ? line : "?");
    free(line);
  }
  return CLI_OK;
}

static int problems_read(const cli_verb *verb, int words, const char *word) {
  hk_layout layout;
  int code = cli_layout_read(o.layout, &layout);
  if (code) return code;
  if (words + (o.batch != NULL) + (o.random >= 0) != 1) {
    cli_error("one of PROBLEM, --batch and --random is needed; usage: hankel %s", verb->usage);
    return CLI_USAGE;
  }
  static const char *const of_batch[] = {"layout", "types", NULL}, *const of_random[] = {"from", "seconds", NULL};
  static const char *const of_given[] = {"grad", NULL};
  if (o.random >= 0 && (code = cli_options_refuse(of_given, "--random; --family grad draws gradients"))) return code;
  if (!o.batch && (code = cli_options_refuse(of_batch, words ? "a PROBLEM given as text" : "--random"))) return code;
  if (o.random < 0 && (code = cli_options_refuse(of_random, "problems that are given; --random draws them")))
    return code;
  static const char *const families[DRAW_KINDS] = {[DRAW_DEPTHWISE] = "depthwise",
                                                   [DRAW_SMALL] = "small",
                                                   [DRAW_GRADIENT] = "grad",
                                                   [DRAW_TRANSPOSED] = "transposed",
                                                   [DRAW_NARROW] = "narrow"};
  for (int i = 0; o.family && i < DRAW_KINDS; i++)
    if (families[i] && !strcmp(o.family, families[i])) drawn = (check_drawn)i;
  if (o.family && (o.random < 0 || drawn == DRAW_ANY)) {
    cli_error("--family: '%s' is not depthwise, small, grad, transposed or narrow, of --random", o.family);
    return CLI_USAGE;
  }
  if (o.with && !check_with_read(o.with, &with)) {
    cli_error("--with: '%s' holds a word that is not known; hankel check --help lists them", o.with);
    return CLI_USAGE;
  }
  if (o.random >= 0) total = o.random;
  else if (o.batch) code = cli_items_read(&items, o.batch, o.deconv, layout, o.types);
  else {
    items = (cli_items){.count = 1, .room = 1, .at = calloc(1, sizeof(cli_item))};
    hk_status s = items.at ? cli_item_parse(items.at, word, o.deconv) : HK_NO_MEMORY;
    code = s ? cli_refused(s, word) : CLI_OK;
  }
  if (o.random < 0) total = items.count;
  return code;
}

static int device_probe(void) {
  hk_gpu gpu = {.size = sizeof gpu};
  const hk_status s = hk_gpu_info(&gpu);
  return s ? cli_refused(s, "--device cuda") : CLI_OK;
}

/* Returns whether there is a device to check. Asked in a process of its own: one that has opened CUDA can no longer
 * fork. */
static int device_needed(void) {
  if (options.device != HK_CUDA || o.list) return CLI_OK;
  if (o.in_process) return device_probe();
  const pid_t pid = fork();
  if (pid == 0) _exit(device_probe());
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
    cli_error("--device cuda: the process that looks for a device ended without an answer");
    return CLI_FAILED;
  }
  return WEXITSTATUS(status);
}

int cli_check(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, cli_plan_table, NULL};
  const char *word[1] = {NULL};
  int words = 1, code;
  if (!cli_options_read(verb, tables, argc, argv, word, &words, &code)) return code;
  if ((code = cli_planning_options(&options)) || (code = cli_planning_epilogue(&epilogue))) return code;
  if ((code = problems_read(verb, words, word[0]))) {
    cli_items_free(&items);
    return code;
  }
  if (o.from < 0) {
    cli_error("--from: %lld is below 0", (long long)o.from);
    return CLI_USAGE;
  }
  if (!(o.seconds >= 0)) {
    cli_error("--seconds: %g is not 0 or more", o.seconds);
    return CLI_USAGE;
  }
  if (!(o.reduce >= 0)) {
    cli_error("--reduce: %g is not 0 or more", o.reduce);
    return CLI_USAGE;
  }
  if (o.jobs < 1 || o.jobs > JOBS) {
    cli_error("--jobs: %lld is not between 1 and %d", (long long)o.jobs, JOBS);
    return CLI_USAGE;
  }
  if ((code = device_needed())) {
    cli_items_free(&items);
    return code;
  }
  int count = o.in_process ? 1 : (int)o.jobs;
  jobs = mmap(NULL, sizeof *jobs * (size_t)count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (jobs == MAP_FAILED) {
    cli_error("no shared memory for %d processes", count);
    return CLI_FAILED;
  }
  started = cli_now();
  if (o.list) code = list_print();
  else {
    if (o.in_process) child_run(jobs, 1);
    else if (!children_run(count)) cli_error("no process could be started");
    code = report(cli_now() - started, count);
  }
  munmap(jobs, sizeof *jobs * (size_t)count);
  cli_items_free(&items);
  return code;
}
