/* `hankel demo`: one problem of each kind of user (an inference engine, a real-time audio plug-in, a GPU-style fused
 * block, a tuner of depthwise kernels), computed, compared with the scalar reference, timed, and shown as a table.
 * Takes a few seconds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct scene {
  const char *who, *problem, *epilogue;
  bool callback, print; /* callback: one thread, as in an audio callback */
} scene;

static const scene scenes[] = {
    {"image inference", "2d_n1_c64_i56x56_k64_w3x3_p1_f32_last", "bias+relu", false, false},
    {"real-time audio", "1d_n1_c16_i64_k16_w3_p16:0_d8_g4_f32_first", "bias+tanh", true, false},
    {"fused bf16 block", "2d_n1_c64_i28x28_k128_w3x3_p1_bf16:bf16:bf16_last", "bias+silu+sum:1", false, false},
    {"depthwise tuning", "1d_n2_c512_i1024_k512_w4_p3:0_g512_f32_last", "none", false, true},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

static hk_status plan_make(hk_plan **plan, const scene *s, const hk_problem *p, const hk_epilogue *e,
                           const cli_operands *memory, const char *decision) {
  hk_options options = {.size = sizeof options, .threads = s->callback ? 1 : 0, .decision = decision};
  hk_weights w = cli_operands_weights(memory);
  return hk_plan_create(plan, p, e, &options, &w);
}

/* The result as doubles. */
static hk_status compute(hk_plan *plan, cli_operands *memory, const hk_problem *p, double *out) {
  hk_status s = cli_operands_workspace(memory, plan);
  hk_args args = cli_operands_args(memory, plan);
  if (!s) s = hk_plan_execute(plan, &args);
  return s ? s : hk_convert(p->y_type, memory->block[2], HK_F64, out, memory->extent[2].elements);
}

static cli_spread time_of(const hk_plan *plan, const cli_operands *memory) {
  double samples[101];
  hk_args args = cli_operands_args(memory, plan);
  int count = 0;
  for (double start = cli_now(); count < 101 && (count < 5 || cli_now() - start < 0.4); count++) {
    int calls = 0;
    double from = cli_now();
    do hk_plan_execute(plan, &args), calls++;
    while (cli_now() - from < 1e-3);
    samples[count] = (cli_now() - from) / calls;
  }
  return cli_spread_of(samples, count);
}

static double tolerance(const hk_problem *p) { return p->y_type == HK_BF16 ? 0x1p-7 : 1e-5; }

/* ||y - ref|| / ||ref|| */
static double distance(const double *a, const double *b, int64_t count) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < count; i++) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return sqrt(difference / (size > 0 ? size : 1));
}

static bool scene_compute(const scene *s, const hk_problem *p, const hk_epilogue *e, cli_operands *memory, cli_table *t,
                          char **story) {
  size_t count = (size_t)memory->extent[2].elements;
  double *ours = malloc(sizeof *ours * count), *theirs = malloc(sizeof *ours * count), flops = 0, bytes = 0;
  hk_plan *plan = NULL, *ref = NULL;
  hk_status status = ours && theirs ? plan_make(&plan, s, p, e, memory, NULL) : HK_NO_MEMORY;
  if (!status) status = plan_make(&ref, s, p, e, memory, "ref");
  if (!status) status = compute(ref, memory, p, theirs);
  if (!status) status = compute(plan, memory, p, ours);
  bool ok = !status;
  if (ok) {
    double off = distance(ours, theirs, (int64_t)count);
    cli_spread time = time_of(plan, memory);
    hk_problem_work(p, &flops, &bytes);
    ok = off <= tolerance(p);
    cli_table_add(t, 0, strdup(s->who));
    cli_table_add(t, 1, cli_problem_text(p));
    cli_table_add(t, 2, strdup(s->epilogue));
    cli_table_add(t, 3, cli_text("%.1f", 1e6 * time.median));
    cli_table_add(t, 4, cli_text("%.1f", 1e-9 * flops / time.median));
    cli_table_add(t, 5, cli_text("%.1e", off));
    cli_table_add(t, 6, strdup(ok ? "ok" : "WRONG"));
    cli_table_add(t, 7, cli_decision_text(plan));
    if (s->print) *story = cli_story_text(plan);
  } else cli_refused(status, s->problem);
  hk_plan_destroy(plan);
  hk_plan_destroy(ref);
  free(ours);
  free(theirs);
  return ok;
}

static bool scene_run(const scene *s, cli_table *t, char **story) {
  cli_item item;
  hk_epilogue e = {.size = sizeof e};
  cli_operands memory;
  hk_status status = cli_item_parse(&item, s->problem, false);
  if (!status && strcmp(s->epilogue, "none")) status = hk_epilogue_parse(&e, s->epilogue);
  if (!status) status = cli_operands_make(&memory, &item.problem, &e, 7);
  if (status) {
    cli_refused(status, s->problem);
    return false;
  }
  bool ok = scene_compute(s, &item.problem, &e, &memory, t, story);
  cli_operands_free(&memory);
  return ok;
}

int cli_demo(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {NULL};
  static const char *const head[] = {"user", "problem", "epilogue", "us", "GFLOP/s", "error", "", "decision"};
  int words = 0, code;
  if (!cli_options_read(verb, tables, argc, argv, NULL, &words, &code)) return code;
  hk_machine m = {.size = sizeof m};
  hk_status status = hk_machine_info(&m);
  if (status) return cli_refused(status, "the machine");
  printf("hankel %s on %s, %d cores, %s\n\n", hk_version(), m.cpu, m.cores, hk_isa_name(m.best_isa));
  cli_table t = {.columns = 8};
  char *story = NULL;
  bool ok = true;
  for (int i = 0; i < 8; i++) cli_table_add(&t, i, strdup(head[i]));
  for (int i = 0; i < SCENES; i++) {
    cli_progress(i, SCENES, scenes[i].who);
    ok &= scene_run(&scenes[i], &t, &story);
  }
  cli_progress_end();
  cli_table_print(&t, stdout);
  cli_table_free(&t);
  printf("\nerror: the norm of the difference from the scalar reference, over the reference's norm.\n");
  if (story) printf("\nThe last plan in full (hankel plan PROBLEM --why shows what else was considered):\n\n%s", story);
  free(story);
  return ok ? CLI_OK : CLI_FAILED;
}
