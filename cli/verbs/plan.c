/* `hankel plan PROBLEM`: what would run. Prints the library's story and the symbol table; --why adds every candidate
 * with its prediction or the reason it was refused; --json the same for programs. The plan is made with random weights,
 * because packing needs some; --late-weights plans for weights that come at execute. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool why, as_json, late, deconv;
static const char *picture;
static const cli_option table[] = {{"why", CLI_FLAG, &why, NULL, "list every candidate, and why the refused were"},
                                   {"json", CLI_FLAG, &as_json, NULL, "print JSON"},
                                   {"picture", CLI_TEXT, &picture, "FILE", "draw how x, f and y tiles map, as SVG"},
                                   {"deconv", CLI_FLAG, &deconv, NULL, "PROBLEM is benchdnn text of a deconvolution"},
                                   {"late-weights", CLI_FLAG, &late, NULL, "plan for weights given at execute"},
                                   {0}};

/* Candidates refused for one reason. */
typedef struct refusal {
  char *why, *who;
} refusal;

typedef struct lister {
  cli_json *json;
  cli_table *rows;
  refusal *refused;
  int reasons;
} lister;

static void refusal_note(lister *l, const hk_candidate *c) {
  int i = 0;
  while (i < l->reasons && strcmp(l->refused[i].why, c->refusal)) i++;
  if (i == l->reasons) {
    refusal *more = realloc(l->refused, sizeof *more * (size_t)(i + 1));
    if (!more) return;
    l->refused = more;
    l->refused[l->reasons++] = (refusal){strdup(c->refusal), strdup(c->decision)};
    return;
  }
  char *longer = cli_text("%s, %s", l->refused[i].who, c->decision);
  if (!longer) return;
  free(l->refused[i].who);
  l->refused[i].who = longer;
}

/* One line per reason: what does not apply to the problem takes most algorithms out at once. */
static void refusals_print(lister *l) {
  if (l->reasons) puts("\nrefused");
  for (int i = 0; i < l->reasons; i++) {
    printf("  %s: %s\n", l->refused[i].who, l->refused[i].why);
    free(l->refused[i].why);
    free(l->refused[i].who);
  }
  free(l->refused);
}

static void candidate_note(void *context, const hk_candidate *c) {
  lister *l = context;
  if (l->json) {
    cli_json_open(l->json, NULL, '{');
    cli_json_text(l->json, "decision", c->decision);
    cli_json_text(l->json, "refusal", c->refusal);
    cli_json_number(l->json, "predicted_s", c->predicted_s);
    cli_json_integer(l->json, "workspace_bytes", (int64_t)c->workspace_bytes);
    cli_json_close(l->json, '}');
    return;
  }
  if (c->refusal) {
    refusal_note(l, c);
    return;
  }
  cli_table_add(l->rows, 0, c->predicted_s > 0 ? cli_text("%.3g", 1e6 * c->predicted_s) : strdup("-"));
  cli_table_add(l->rows, 1, cli_text("%zu", c->workspace_bytes));
  cli_table_add(l->rows, 2, strdup(c->decision));
}

static void floors_gpu(const hk_problem *p, uint32_t math, double *flops_s, double *bytes_s) {
  hk_gpu gpu = {.size = sizeof gpu};
  double flops = 0, bytes = 0;
  hk_problem_work(p, &flops, &bytes);
  const double peak = cli_gpu_peak(p, math), bandwidth = hk_gpu_info(&gpu) ? 0 : gpu.bytes_per_s;
  *flops_s = peak > 0 ? flops / peak : 0;
  *bytes_s = bandwidth > 0 ? bytes / bandwidth : 0;
}

/* The two lower bounds on this machine: arithmetic at the peak of the plan's threads, bytes at the bandwidth
 * (roofline). Those of the CPU are the planner's own, below which it predicts nothing. */
static void floors(const hk_plan *plan, const hk_problem *p, const hk_options *options, double *flops_s,
                   double *bytes_s) {
  const char *name;
  double value;
  *flops_s = *bytes_s = 0;
  if (options->device == HK_CUDA) floors_gpu(p, options->math, flops_s, bytes_s);
  for (int i = 0; options->device == HK_CPU && !hk_plan_symbol(plan, i, &name, &value); i++) {
    if (!strcmp(name, "floor_flops_s")) *flops_s = value;
    if (!strcmp(name, "floor_bytes_s")) *bytes_s = value;
  }
}

static hk_status print_json(const hk_plan *plan, const cli_item *item, const hk_epilogue *e,
                            const hk_options *options) {
  cli_json j = {.file = stdout};
  char *problem = cli_problem_text(&item->problem), *epilogue = cli_epilogue_text(e),
       *decision = cli_decision_text(plan);
  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "problem", problem);
  cli_json_text(&j, "epilogue", epilogue);
  cli_json_text(&j, "decision", decision);
  cli_json_integer(&j, "workspace_bytes", (int64_t)hk_plan_workspace(plan));
  cli_json_number(&j, "error_factor", hk_plan_error_factor(plan));
  cli_json_open(&j, "symbols", '{');
  const char *name;
  double value;
  for (int i = 0; !hk_plan_symbol(plan, i, &name, &value); i++) cli_json_number(&j, name, value);
  cli_json_close(&j, '}');
  hk_status s = HK_OK;
  if (why) {
    double flops_s, bytes_s;
    floors(plan, &item->problem, options, &flops_s, &bytes_s);
    cli_json_number(&j, "floor_flops_s", flops_s);
    cli_json_number(&j, "floor_bytes_s", bytes_s);
    lister l = {.json = &j};
    cli_json_open(&j, "candidates", '[');
    s = hk_plan_candidates(&item->problem, e, options, candidate_note, &l);
    cli_json_close(&j, ']');
  }
  cli_json_close(&j, '}');
  free(problem);
  free(epilogue);
  free(decision);
  return s;
}

static hk_status print_words(const hk_plan *plan, const cli_item *item, const hk_epilogue *e,
                             const hk_options *options) {
  char *story = cli_story_text(plan);
  if (story) printf("%s%s", story, *story && story[strlen(story) - 1] != '\n' ? "\n" : "");
  free(story);
  const char *name;
  double value;
  puts("\nsymbols");
  for (int i = 0; !hk_plan_symbol(plan, i, &name, &value); i++) printf("  %-18s %.10g\n", name, value);
  if (!why) return HK_OK;
  double flops_s, bytes_s;
  floors(plan, &item->problem, options, &flops_s, &bytes_s);
  printf("\nfloors\n  arithmetic at the nominal peak  %.4g us\n  bytes at the nominal bandwidth  %.4g us\n",
         1e6 * flops_s, 1e6 * bytes_s);
  static const char *const head[] = {"predicted us", "workspace", "usable"};
  cli_table rows = {.columns = 3};
  for (int i = 0; i < 3; i++) cli_table_add(&rows, i, strdup(head[i]));
  lister l = {.rows = &rows};
  hk_status s = hk_plan_candidates(&item->problem, e, options, candidate_note, &l);
  putchar('\n');
  cli_table_print(&rows, stdout);
  cli_table_free(&rows);
  refusals_print(&l);
  return s;
}

int cli_plan(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, cli_plan_table, NULL};
  const char *word[1];
  int words = 1, code;
  cli_item item;
  hk_options options;
  hk_epilogue e;
  if (!cli_options_read(verb, tables, argc, argv, word, &words, &code)) return code;
  if (words != 1) {
    cli_error("a problem is needed; usage: hankel %s", verb->usage);
    return CLI_USAGE;
  }
  hk_status s = cli_item_parse(&item, word[0], deconv);
  if (s) return cli_refused(s, word[0]);
  if ((code = cli_planning_options(&options)) || (code = cli_planning_epilogue(&e))) return code;
  /* y of a dense problem has half the channels under a gate */
  for (int layout = 0; e.gate && layout < 2; layout++) {
    hk_problem d = item.problem;
    if (hk_problem_dense(&d, (hk_layout)layout) || memcmp(&d.y, &item.problem.y, sizeof d.y)) continue;
    if ((s = hk_problem_dense_y(&item.problem, (hk_layout)layout, d.k / 2))) return cli_refused(s, word[0]);
    break;
  }
  /* Any weights have the same plan. */
  cli_operands memory = {0};
  if ((s = cli_operands_make(&memory, &item.problem, &e, 1))) return cli_refused(s, word[0]);
  hk_weights w = cli_operands_weights(&memory);
  if (late) w.f = w.scale = w.bias = NULL;
  hk_plan *plan = NULL;
  s = hk_plan_create(&plan, &item.problem, &e, &options, &w);
  if (!s) s = as_json ? print_json(plan, &item, &e, &options) : print_words(plan, &item, &e, &options);
  code = s ? cli_refused(s, word[0]) : CLI_OK;
  if (!code && picture) code = cli_picture(&item.problem, plan, picture);
  hk_plan_destroy(plan);
  cli_operands_free(&memory);
  return code;
}
