/* `hankel demo`: one problem of each kind of user (an inference engine, a real-time audio plug-in, a GPU-style fused
 * block, a tuner of depthwise kernels), computed, compared with the scalar reference, timed, and shown as a table.
 * Takes a few seconds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char *device_name;
static const cli_option table[] = {{"device", CLI_TEXT, &device_name, "NAME", "cpu (default) or cuda"}, {0}};

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
static const scene gpu_scenes[] = {
    {"image inference", "2d_n16_c64_i56x56_k64_w3x3_p1_bf16_last", "bias+relu", false, false},
    {"odd channels", "2d_n4_c67_i33x33_k129_w3x3_p1_f16_last", "bias+silu", false, false},
    {"depthwise", "1d_n2_c512_i4096_k512_w4_p3:0_g512_bf16_last", "none", false, false},
    {"fused residual", "2d_n8_c256_i28x28_k256_w3x3_p1_bf16_last", "bias+silu+sum:1", false, true},
};
enum { SCENES = sizeof scenes / sizeof *scenes, GPU_SCENES = sizeof gpu_scenes / sizeof *gpu_scenes };

static hk_status plan_make(hk_plan **plan, const scene *s, const hk_problem *p, const hk_epilogue *e,
                           const cli_operands *memory, hk_device device, const char *decision) {
  hk_options options = {.size = sizeof options, .threads = s->callback ? 1 : 0, .device = device, .decision = decision};
  hk_weights w = cli_operands_weights(memory);
  return hk_plan_create(plan, p, e, &options, &w);
}

/* The result as doubles. */
static hk_status compute(hk_plan *plan, hk_device device, cli_operands *memory, const hk_problem *p,
                         const hk_epilogue *e, double *out) {
  const hk_options where = {.size = sizeof where, .device = device};
  hk_status s = cli_operands_workspace(memory, plan);
  hk_args args = cli_operands_args(memory, plan);
  if (!s) s = cli_execute(&where, plan, p, e, &args);
  return s ? s : hk_convert(p->y_type, memory->block[2], HK_F64, out, memory->extent[2].elements);
}

static cli_spread time_of(const hk_plan *plan, hk_device device, const hk_problem *p, const hk_epilogue *e,
                          const cli_operands *memory) {
  double samples[101];
  const hk_args args = cli_operands_args(memory, plan);
  cli_site site;
  int count = 0;
  if (cli_site_make(&site, device, 0, p, e, &args)) return (cli_spread){0};
  const double once = cli_site_time(&site, plan, 1);
  const int calls = once < 1e-3 ? (int)(1e-3 / (once + 1e-7)) : 1, most = device == HK_CUDA ? 100 : 100000;
  for (double start = cli_now(); count < 101 && (count < 5 || cli_now() - start < 0.4); count++)
    samples[count] = cli_site_time(&site, plan, calls < 1 ? 1 : calls > most ? most : calls);
  cli_site_free(&site);
  return cli_spread_of(samples, count);
}

static double tolerance(const hk_problem *p) {
  return p->y_type == HK_BF16 ? 0x1p-7 : p->y_type == HK_F16 ? 0x1p-9 : 1e-5;
}

/* ||y - ref|| / ||ref|| */
static double distance(const double *a, const double *b, int64_t count) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < count; i++) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return sqrt(difference / (size > 0 ? size : 1));
}

static bool scene_compute(const scene *s, hk_device device, const hk_problem *p, const hk_epilogue *e,
                          cli_operands *memory, cli_table *t, char **story) {
  size_t count = (size_t)memory->extent[2].elements;
  double *ours = malloc(sizeof *ours * count), *theirs = malloc(sizeof *ours * count), flops = 0, bytes = 0;
  hk_plan *plan = NULL, *ref = NULL;
  hk_status status = ours && theirs ? plan_make(&plan, s, p, e, memory, device, NULL) : HK_NO_MEMORY;
  if (!status) status = plan_make(&ref, s, p, e, memory, HK_CPU, "ref");
  if (!status) status = compute(ref, HK_CPU, memory, p, e, theirs);
  if (!status) status = compute(plan, device, memory, p, e, ours);
  bool ok = !status;
  if (ok) {
    double off = distance(ours, theirs, (int64_t)count);
    cli_spread time = time_of(plan, device, p, e, memory);
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

static bool scene_run(const scene *s, hk_device device, cli_table *t, char **story) {
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
  bool ok = scene_compute(s, device, &item.problem, &e, &memory, t, story);
  cli_operands_free(&memory);
  return ok;
}

int cli_demo(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, NULL};
  static const char *const head[] = {"user", "problem", "epilogue", "us", "GFLOP/s", "error", "", "decision"};
  int words = 0, code;
  if (!cli_options_read(verb, tables, argc, argv, NULL, &words, &code)) return code;
  const bool cuda = device_name && !strcmp(device_name, "cuda");
  if (device_name && !cuda && strcmp(device_name, "cpu")) {
    cli_error("--device: '%s' is neither cpu nor cuda", device_name);
    return CLI_USAGE;
  }
  hk_machine m = {.size = sizeof m};
  hk_gpu gpu = {.size = sizeof gpu};
  hk_status status = cuda ? hk_gpu_info(&gpu) : hk_machine_info(&m);
  if (status) return cli_refused(status, cuda ? "the device" : "the machine");
  if (cuda) printf("hankel %s on %s, %d multiprocessors\n\n", hk_version(), gpu.name, gpu.processors);
  else printf("hankel %s on %s, %d cores, %s\n\n", hk_version(), m.cpu, m.cores, hk_isa_name(m.best_isa));
  cli_table t = {.columns = 8};
  char *story = NULL;
  bool ok = true;
  for (int i = 0; i < 8; i++) cli_table_add(&t, i, strdup(head[i]));
  const scene *all = cuda ? gpu_scenes : scenes;
  const int count = cuda ? GPU_SCENES : SCENES;
  for (int i = 0; i < count; i++) {
    cli_progress(i, count, all[i].who);
    ok &= scene_run(&all[i], cuda ? HK_CUDA : HK_CPU, &t, &story);
  }
  cli_progress_end();
  cli_table_print(&t, stdout);
  cli_table_free(&t);
  printf("\nerror: the norm of the difference from the scalar reference, over the reference's norm.\n");
  if (story) printf("\nThe last plan in full (hankel plan PROBLEM --why shows what else was considered):\n\n%s", story);
  free(story);
  return ok ? CLI_OK : CLI_FAILED;
}
