/* `hankel tune --audit`: times every candidate of a problem, in interleaved rounds, and prints how far the cost model's
 * choice is from the best, or every candidate (--candidates): the record that the cost model is fitted to and judged by
 * (bench/timings). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

enum { MOST = 192, ROUNDS = 15, FEWEST = 3 };
typedef struct audit {
  double hopeless; /* times the best prediction: not timed */
  char *decision[MOST];
  double predicted[MOST];
  double took[MOST]; /* seconds; 0: not timed */
  int count;
} audit;

static void note(void *context, const hk_candidate *c) {
  audit *a = context;
  if (c->refusal || a->count == MOST || (a->count && c->predicted_s > a->hopeless * a->predicted[0])) return;
  a->decision[a->count] = strdup(c->decision);
  a->predicted[a->count++] = c->predicted_s;
}

/* What timing holds: a plan for each candidate; NULL: too slow for more than one call. */
typedef struct bank {
  hk_plan *plan[MOST];
  int reps[MOST];
  double time[MOST][ROUNDS];
  cli_site site;
} bank;

static hk_status plans_make(bank *b, const audit *a, const cli_item *item, const hk_epilogue *e,
                            const hk_options *options, cli_operands *m) {
  const hk_weights w = cli_operands_weights(m);
  int widest = 0; /* the plan whose workspace serves all */
  hk_status s = HK_OK;
  for (int i = 0; i < a->count && !s; i++) {
    hk_options forced = *options;
    forced.decision = a->decision[i];
    s = hk_plan_create(&b->plan[i], &item->problem, e, &forced, &w);
    if (!s && hk_plan_workspace(b->plan[i]) > hk_plan_workspace(b->plan[widest])) widest = i;
  }
  if (!s && a->count) s = cli_operands_workspace(m, b->plan[widest]);
  if (s || !a->count) return s;
  const hk_args args = cli_operands_args(m, b->plan[widest]);
  return cli_site_make(&b->site, options->device, 0, &item->problem, e, &args);
}

/* Times each candidate once or twice, keeps that time, and drops those out of reach of the fastest. */
static void first_look(bank *b, audit *a) {
  const int most = b->site.device == HK_CUDA ? 200 : 5000; /* on CUDA each call is a recorded launch */
  double fastest = 0;
  for (int i = 0; i < a->count; i++) {
    const double cold = cli_site_time(&b->site, b->plan[i], 1);
    const double warm = cold > 0.02 ? cold : cli_site_time(&b->site, b->plan[i], 1);
    const int many = (int)(2e-4 / (warm + 1e-9));
    a->took[i] = warm;
    b->reps[i] = many < b->site.sets ? b->site.sets : many > most ? most : many;
    if (warm > 5e-3) b->reps[i] = 1;
    if (fastest == 0 || warm < fastest) fastest = warm;
    if (i && warm > 4 * fastest) hk_plan_destroy(b->plan[i]), b->plan[i] = NULL;
  }
}

/* Fills a->took: the median of the rounds or, for a record, the fastest. */
static hk_status audit_time(const bench_audit_options *o, audit *a, const cli_item *item, const hk_epilogue *e,
                            const hk_options *options, cli_operands *m) {
  bank *b = calloc(1, sizeof *b);
  if (!b) return HK_NO_MEMORY;
  hk_status s = plans_make(b, a, item, e, options, m);
  if (!s) first_look(b, a);
  const double start = cli_now();
  int rounds = 0;
  for (; !s && rounds < ROUNDS && (rounds < FEWEST || cli_now() - start < o->seconds); rounds++)
    for (int i = 0; i < a->count; i++)
      if (b->plan[i]) b->time[i][rounds] = cli_site_time(&b->site, b->plan[i], b->reps[i]);
  for (int i = 0; i < a->count; i++) {
    if (!b->plan[i] || s) continue;
    a->took[i] = cli_spread_of(b->time[i], rounds).median;
    if (o->all) a->took[i] = b->time[i][0]; /* sorted */
  }
  for (int i = 0; i < a->count; i++) hk_plan_destroy(b->plan[i]);
  if (!s) cli_site_free(&b->site);
  free(b);
  return s;
}

/* A record says what its times depend on. The problem is printed before its first candidate only. */
void bench_audit_head(const bench_audit_options *o, const hk_epilogue *e, const hk_options *options) {
  static const char *const isas[] = {"best", "scalar", "neon", "avx2", "avx512", "amx"};
  if (o->csv) puts("problem,ratio,predicted_us,estimate_us,best_us,estimate,best");
  if (!o->all) return;
  hk_machine m = {.size = sizeof m};
  hk_gpu gpu = {.size = sizeof gpu};
  const bool cuda = options->device == HK_CUDA;
  const hk_status s = cuda ? hk_gpu_info(&gpu) : hk_machine_info(&m);
  char *epilogue = cli_epilogue_text(e);
  printf("# machine: %s; isa: %s; threads: %d; epilogue: %s; time: %s\n",
         s      ? "?"
         : cuda ? gpu.name
                : m.cpu,
         cuda ? "cuda" : isas[options->isa ? options->isa : m.best_isa], options->threads, epilogue ? epilogue : "?",
         cli_own_time ? "thread" : "wall");
  puts("problem,decision,predicted_us,us");
  free(epilogue);
}

static void print_all(const audit *a, const char *problem) {
  for (int i = 0; i < a->count; i++)
    printf("%s,%s,%.4g,%.4g\n", i ? "" : problem, a->decision[i], 1e6 * a->predicted[i], 1e6 * a->took[i]);
  fflush(stdout);
}

static void print_ratio(const audit *a, const char *problem, int best, bool csv) {
  const char *gap = csv ? "," : "\t";
  cli_progress_end();
  printf("%s%s%.3f%s%.2f%s%.2f%s%.2f%s%s%s%s\n", problem, gap, a->took[0] / a->took[best], gap, 1e6 * a->predicted[0],
         gap, 1e6 * a->took[0], gap, 1e6 * a->took[best], gap, a->decision[0], gap, a->decision[best]);
}

int bench_audit_one(const bench_audit_options *o, const cli_item *item, const hk_epilogue *e, const hk_options *options,
                    double *log_ratio) {
  audit a = {.hopeless = o->all ? 8 : 30}; /* a record stays small */
  cli_operands memory;
  char *text = cli_problem_text(&item->problem);
  hk_status s = hk_plan_candidates(&item->problem, e, options, note, &a);
  if (!s) s = cli_operands_make(&memory, &item->problem, e, 1);
  if (!s) {
    s = audit_time(o, &a, item, e, options, &memory);
    cli_operands_free(&memory);
  }
  const int code = s ? cli_refused(s, text ? text : "?") : CLI_OK;
  int best = 0;
  for (int i = 1; i < a.count && !code; i++)
    if (a.took[i] > 0 && a.took[i] < a.took[best]) best = i;
  if (!code && a.count) {
    *log_ratio = log(a.took[0] / a.took[best]);
    if (o->all) print_all(&a, text);
    else if (o->csv || *log_ratio > log(1.15)) print_ratio(&a, text, best, o->csv);
  }
  for (int i = 0; i < a.count; i++) free(a.decision[i]);
  free(text);
  return code;
}
