/* `hankel tune`: measures candidates and keeps the results as wisdom, saved after every problem, so that an
 * interruption loses at most the current problem. --audit measures every candidate of every problem and reports how far
 * the cost model's choice is from the best. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

static struct {
  const char *batch, *layout, *types, *name, *file;
  int64_t random, seed;
  bool deconv, again, audit;
  bench_audit_options report;
} o = {.seed = 1, .report = {.seconds = 0.3}};

static const cli_option table[] = {
    {"batch", CLI_TEXT, &o.batch, "FILE", "problems, one per line, or a .tsv of shapes"},
    {"layout", CLI_TEXT, &o.layout, "WORD", "of a .tsv: last (default) or first"},
    {"types", CLI_TEXT, &o.types, "LIST", "of a .tsv: e.g. f32,bf16 (default f32); column: its last column"},
    {"only", CLI_TEXT, &o.name, "TEXT", "of a batch: problems whose name holds TEXT"},
    {"random", CLI_INTEGER, &o.random, "N", "N random problems"},
    {"seed", CLI_INTEGER, &o.seed, "S", "of the random problems (default 1)"},
    {"deconv", CLI_FLAG, &o.deconv, NULL, "the problems are benchdnn text of deconvolutions"},
    {"again", CLI_FLAG, &o.again, NULL, "measure what wisdom already knows, too"},
    {"save", CLI_TEXT, &o.file, "FILE", "keep wisdom there (default: the user's file)"},
    {"audit", CLI_FLAG, &o.audit, NULL, "how far the cost model's choice is from the best; learns nothing"},
    {"own-time", CLI_FLAG, &cli_own_time, NULL,
     "with --audit: the thread's own time, not the wall's (one thread, busy machine)"},
    {"csv", CLI_FLAG, &o.report.csv, NULL, "with --audit: one line per problem"},
    {"candidates", CLI_FLAG, &o.report.all, NULL, "with --audit: one line per candidate, with its fastest time"},
    {"seconds", CLI_REAL, &o.report.seconds, "S", "with --audit: time spent on the rounds of a problem (default 0.3)"},
    {0}};

/* ---- random problems of the ordinary kind: f32, dense layouts, up to a few million multiply-adds */
static void draw(cli_item *item, uint64_t *state) {
  static const int64_t windows[] = {1, 1, 3, 3, 3, 5, 7};
  do {
    hk_conv_desc d = {.size = sizeof d, .rank = 1 + (int)cli_random_below(state, 3)};
    d.layout = (hk_layout)cli_random_below(state, 2);
    d.n = 1 + cli_random_below(state, 3);
    const int64_t per = 1 + cli_random_below(state, 64), out = 1 + cli_random_below(state, 64);
    static const int64_t group_counts[] = {1, 1, 1, 2, 4, 8, 32};
    d.groups = group_counts[cli_random_below(state, 7)];
    const bool depthwise = cli_random_below(state, 5) == 0;
    d.c = (depthwise ? 1 : per) * d.groups, d.k = (depthwise ? 1 : out) * d.groups;
    for (int i = 0; i < d.rank; i++) {
      d.in[i] = 1 + cli_random_below(state, d.rank == 1 ? 2000 : d.rank == 2 ? 60 : 16);
      d.window[i] = windows[cli_random_below(state, 7)];
      d.stride[i] = 1 + (cli_random_below(state, 4) == 0);
      d.dilation[i] = 1 + (cli_random_below(state, 5) == 0 ? cli_random_below(state, 4) : 0);
      d.pad_lo[i] = d.pad_hi[i] = cli_random_below(state, 2) * d.dilation[i] * (d.window[i] / 2);
    }
    memset(item, 0, sizeof *item);
    double flops = 0;
    if (hk_problem_conv(&item->problem, &d) || hk_problem_work(&item->problem, &flops, NULL) || flops > 4e8 ||
        flops < 1)
      continue;
    return;
  } while (1);
}

/* ---- tuning */
static int64_t skipped; /* problems that wisdom knew */

static bool is_known(const hk_plan *plan) {
  char *story = cli_story_text(plan);
  const bool known = story && strstr(story, "  (wisdom)\n");
  free(story);
  return known;
}

static int tune_one(const cli_item *item, const hk_epilogue *e, const hk_options *options) {
  cli_operands memory;
  char *text = cli_problem_text(&item->problem);
  hk_status s = cli_operands_make(&memory, &item->problem, e, 1);
  if (s) {
    const int code = cli_refused(s, text ? text : "?");
    free(text);
    return code;
  }
  const hk_weights w = cli_operands_weights(&memory);
  hk_plan *plan = NULL;
  const double start = cli_now();
  s = hk_plan_create(&plan, &item->problem, e, options, &w);
  if (!s) s = hk_wisdom_save(o.file);
  int code = CLI_OK;
  if (s) {
    code = cli_refused(s, text);
  } else {
    char *decision = cli_decision_text(plan);
    const bool known = is_known(plan);
    skipped += known;
    cli_progress_end();
    printf("%s\t%s\t", text, decision ? decision : "?");
    if (known) puts("known");
    else printf("%.2f s\n", cli_now() - start);
    fflush(stdout);
    free(decision);
  }
  hk_plan_destroy(plan);
  cli_operands_free(&memory);
  free(text);
  return code;
}

static int each(cli_items *items, const hk_epilogue *e, const hk_options *options) {
  int code = CLI_OK, used = 0, misses = 0;
  double sum = 0, worst = 0;
  if (o.audit) bench_audit_head(&o.report, e, options);
  for (int64_t i = 0; i < items->count; i++) {
    if (o.name && !strstr(items->at[i].name, o.name)) continue;
    double log_ratio = 0;
    cli_progress(i, items->count, items->at[i].name);
    hk_options own = *options;
    if (!strcmp(items->at[i].types, "tf32")) own.math |= HK_MATH_TF32;
    const int one =
        o.audit ? bench_audit_one(&o.report, &items->at[i], e, &own, &log_ratio) : tune_one(&items->at[i], e, &own);
    if (one && !code) code = one;
    if (one) continue;
    sum += log_ratio, used++;
    misses += log_ratio > log(1.15);
    if (log_ratio > worst) worst = log_ratio;
  }
  cli_progress_end();
  if (o.audit && used)
    cli_note("estimate over best, geometric mean of %d: %.3f, worst %.2f, %d beyond 1.15", used, exp(sum / used),
             exp(worst), misses);
  if (skipped)
    cli_note("%lld of %d problems were known and not measured; --again measures them", (long long)skipped, used);
  return code;
}

static int items_make(cli_items *items, const char *word, hk_layout layout) {
  if (o.batch) return cli_items_read(items, o.batch, o.deconv, layout, o.types);
  const int64_t count = o.random > 0 ? o.random : 1;
  uint64_t state = cli_random_mix(0x7475, (uint64_t)o.seed);
  *items = (cli_items){.count = count, .room = count, .at = calloc((size_t)count, sizeof(cli_item))};
  if (!items->at) return CLI_FAILED;
  if (o.random > 0) {
    for (int64_t i = 0; i < count; i++) draw(&items->at[i], &state);
    return CLI_OK;
  }
  const hk_status s = cli_item_parse(items->at, word, o.deconv);
  return s ? cli_refused(s, word) : CLI_OK;
}

int cli_tune(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, cli_plan_table, NULL};
  const char *word[1] = {NULL};
  int words = 1, code;
  hk_options options;
  hk_epilogue e;
  hk_layout layout;
  cli_items items = {0};
  if (!cli_options_read(verb, tables, argc, argv, word, &words, &code)) return code;
  if ((code = cli_planning_options(&options)) || (code = cli_planning_epilogue(&e)) ||
      (code = cli_layout_read(o.layout, &layout)))
    return code;
  if (words + (o.batch != NULL) + (o.random != 0) != 1 || o.random < 0 || o.random > 1000000) {
    cli_error("one of PROBLEM, --batch and --random; usage: hankel %s", verb->usage);
    return CLI_USAGE;
  }
  static const char *const of_batch[] = {"layout", "types", "only", NULL};
  if (!o.batch && (code = cli_options_refuse(of_batch, words ? "a PROBLEM given as text" : "--random"))) return code;
  static const char *const of_audit[] = {"csv", "own-time", "candidates", "seconds", NULL}, *const of_random[] = {
                                                                                                "seed", NULL};
  if (!o.audit && (code = cli_options_refuse(of_audit, "tune without --audit"))) return code;
  if (!o.random && (code = cli_options_refuse(of_random, "problems that are given; it is of --random"))) return code;
  static const char *const of_choice[] = {"decision", NULL};
  if ((code = cli_options_refuse(of_choice, "tune: it measures every candidate; hankel bench times one decision")))
    return code;
  if (options.rigor == HK_ESTIMATE && !o.audit) options.rigor = HK_PATIENT;
  if (o.again || o.audit) hk_wisdom_forget();
  if (!(code = items_make(&items, word[0], layout)) && !(code = cli_items_only(&items, o.name)))
    code = each(&items, &e, &options);
  cli_items_free(&items);
  return code;
}
