/* The options that every planning verb takes (threads, ISA, workspace, math, epilogue, ...), and their translation to
 * hk_options and hk_epilogue. Refuses words it does not know, naming the ones it does. */
#include <string.h>

#include "cli.h"

cli_planning cli_plan_options = {.workspace = INT64_MIN}; /* not given */

const cli_option cli_plan_table[] = {
    {"threads", CLI_INTEGER, &cli_plan_options.threads, "N", "threads to use (0: all this process may use)"},
    {"isa", CLI_TEXT, &cli_plan_options.isa, "NAME", "cap: scalar, neon, avx2, avx512, amx"},
    {"device", CLI_TEXT, &cli_plan_options.device, "NAME", "cpu (default) or cuda"},
    {"grad", CLI_TEXT, &cli_plan_options.grad, "WORD", "input or filter: the problem of this gradient in its place"},
    {"epilogue", CLI_TEXT, &cli_plan_options.epilogue, "TEXT", "e.g. scale+bias+silu+sum:0.5"},
    {"decision", CLI_TEXT, &cli_plan_options.decision, "TEXT", "use this decision, as a plan prints it, or fail"},
    {"workspace", CLI_INTEGER, &cli_plan_options.workspace, "BYTES", "no more workspace than this"},
    {"rigor", CLI_TEXT, &cli_plan_options.rigor, "WORD", "estimate (default), measure or patient"},
    {"time-limit", CLI_REAL, &cli_plan_options.time_limit, "SECONDS", "for measure and patient"},
    {"math", CLI_TEXT, &cli_plan_options.math, "LIST", "beyond strict: fast, tf32, split; joined by commas"},
    {"batch-invariant", CLI_FLAG, &cli_plan_options.batch_invariant, NULL, "the same bits whatever the batch"},
    {"forbid-fallback", CLI_FLAG, &cli_plan_options.forbid_fallback, NULL, "a slow path is an error"},
    {"wisdom-only", CLI_FLAG, &cli_plan_options.wisdom_only, NULL, "no wisdom is an error"},
    {"flush-denormals", CLI_FLAG, &cli_plan_options.flush_denormals, NULL, "denormals are zero during execute"},
    {"exact-denormals", CLI_FLAG, &cli_plan_options.exact_denormals, NULL,
     "no kernel that counts bf16 denormals as zero"},
    {"unaligned", CLI_FLAG, &cli_plan_options.unaligned, NULL, "CUDA: x, y and c at any element address"},
    {"stateful", CLI_FLAG, &cli_plan_options.stateful, NULL, "1D: the past comes from a state, not from padding"},
    {0}};

static int word_index(const char *option, const char *text, const char *const *words) {
  for (int i = 0; words[i]; i++)
    if (!strcmp(text, words[i])) return i;
  cli_error("--%s: '%s' is not known; hankel plan --help lists the words", option, text);
  return -1;
}

static int math_read(const char *list, uint32_t *bits) {
  static const char *const words[] = {"strict", "fast", "tf32", "split", NULL};
  char copy[64];
  if (strlen(list) >= sizeof copy) {
    cli_error("--math: '%s' is not understood", list);
    return CLI_USAGE;
  }
  strcpy(copy, list);
  for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
    int i = word_index("math", word, words);
    if (i < 0) return CLI_USAGE;
    if (i > 0) *bits |= 1u << (i - 1);
  }
  return CLI_OK;
}

int cli_planning_options(hk_options *o) {
  static const char *const isas[] = {"best", "scalar", "neon", "avx2", "avx512", "amx", NULL};
  static const char *const devices[] = {"cpu", "cuda", NULL};
  static const char *const rigors[] = {"estimate", "measure", "patient", NULL};
  const cli_planning *c = &cli_plan_options;
  int isa = c->isa ? word_index("isa", c->isa, isas) : 0;
  int device = c->device ? word_index("device", c->device, devices) : 0;
  int rigor = c->rigor ? word_index("rigor", c->rigor, rigors) : 0;
  *o = (hk_options){.size = sizeof *o};
  if (isa < 0 || device < 0 || rigor < 0 || (c->math && math_read(c->math, &o->math))) return CLI_USAGE;
  if (c->threads < 0 || c->threads > 4096) {
    cli_error("--threads: %lld is not between 0 and 4096", (long long)c->threads);
    return CLI_USAGE;
  }
  if (c->workspace < 0 && c->workspace != INT64_MIN) {
    cli_error("--workspace: %lld is below 0 bytes", (long long)c->workspace);
    return CLI_USAGE;
  }
  o->threads = (int32_t)c->threads;
  o->isa = (hk_isa)isa;
  o->device = (hk_device)device;
  o->rigor = (hk_rigor)rigor;
  o->time_limit_s = c->time_limit;
  o->limit_workspace = c->workspace >= 0;
  o->workspace_limit_bytes = c->workspace >= 0 ? (size_t)c->workspace : 0;
  o->batch_invariant = c->batch_invariant;
  o->forbid_fallback = c->forbid_fallback;
  o->wisdom_only = c->wisdom_only;
  if (c->flush_denormals && c->exact_denormals) {
    cli_error("--flush-denormals and --exact-denormals exclude each other");
    return CLI_USAGE;
  }
  o->denormals = c->flush_denormals ? HK_DENORMALS_FLUSH : c->exact_denormals ? HK_DENORMALS_EXACT : HK_DENORMALS_KEEP;
  o->unaligned = c->unaligned;
  o->stateful = c->stateful;
  o->decision = c->decision;
  return CLI_OK;
}

hk_status cli_planning_gradient(hk_problem *p) {
  static const char *const words[] = {"input", "filter", NULL};
  if (!cli_plan_options.grad) return HK_OK;
  const int which = word_index("grad", cli_plan_options.grad, words);
  hk_problem grad = {.size = sizeof grad};
  if (which < 0) return HK_SYNTAX;
  const hk_status s = which ? hk_problem_grad_filter(p, &grad) : hk_problem_grad_input(p, &grad);
  if (!s) *p = grad;
  return s;
}

int cli_planning_epilogue(hk_epilogue *e) {
  *e = (hk_epilogue){.size = sizeof *e};
  if (!cli_plan_options.epilogue || !*cli_plan_options.epilogue) return CLI_OK;
  hk_status status = hk_epilogue_parse(e, cli_plan_options.epilogue);
  return status ? cli_refused(status, "--epilogue") : CLI_OK;
}

/* The f of a filter's gradient is dy, which no plan knows before. */
hk_weights cli_operands_weights(const cli_operands *o) {
  const bool late = cli_plan_options.grad && !strcmp(cli_plan_options.grad, "filter");
  return (hk_weights){
      .size = sizeof(hk_weights), .f = late ? NULL : o->f, .scale = o->scale, .bias = o->bias, .slopes = o->slopes};
}
