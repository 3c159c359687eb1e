/* Plans for people: the decision, the story, the symbol table, and the log line of an execution. */
#include <string.h>

#include "plan/plan.h"

hk_status hk_plan_decision(const hk_plan *plan, char *buffer, size_t size, size_t *length) {
  if (!plan) return hk_fail(HK_INVALID, "plan is NULL");
  hk_text t = {buffer, size, 0};
  hk_decision_print(&t, &plan->decision);
  if (length) *length = t.length;
  return HK_OK;
}

size_t hk_plan_workspace(const hk_plan *plan) { return plan ? plan->decision.workspace_bytes : 0; }
double hk_plan_error_factor(const hk_plan *plan) { return plan ? plan->error_factor : 0; }

static void problem_text(const hk_plan *plan, char *p, size_t size, char *e, size_t e_size) {
  hk_problem_print(&plan->task.problem, p, size, NULL);
  hk_epilogue_print(&plan->task.epi.e, e, e_size, NULL);
}

/* The bf16 dot-product instructions do, whatever the floating-point mode is. */
static bool flushes_denormals(const hk_decision *d) {
  return d->kernel && d->kernel->family == HK_FAMILY_DOTS && d->kernel->x_type == HK_BF16;
}

hk_status hk_plan_print(const hk_plan *plan, char *buffer, size_t size, size_t *length) {
  if (!plan) return hk_fail(HK_INVALID, "plan is NULL");
  const hk_geom *g = &plan->task.geom;
  char problem[1024], epilogue[256];
  hk_text t = {buffer, size, 0};
  problem_text(plan, problem, sizeof problem, epilogue, sizeof epilogue);
  hk_text_add(&t, "problem    %s\n", problem);
  hk_text_add(&t, "epilogue   %s\n", epilogue);
  hk_text_add(&t, "decision   ");
  hk_decision_print(&t, &plan->decision);
  hk_text_add(&t, "  (%s)\n", plan->source);
  hk_text_add(&t, "gemm       gm=%lld gn=%lld gk=%lld groups=%lld\n", (long long)g->gm, (long long)g->gn,
              (long long)g->gk, (long long)g->groups);
  hk_text_add(&t, "output     %lldx%lldx%lldx%lld\n", (long long)g->y_channels, (long long)g->out[0],
              (long long)g->out[1], (long long)g->out[2]);
  hk_text_add(&t, "work       %.6g flop, %.6g bytes at least\n", g->flops, g->bytes);
  hk_text_add(&t, "memory     packed weights %zu bytes, workspace %zu bytes\n", hk_packed_bytes(plan->packed),
              plan->decision.workspace_bytes);
  if (plan->task.options.device == HK_CUDA) hk_text_add(&t, "device     cuda\n");
  else hk_text_add(&t, "threads    %d, isa %s\n", plan->task.threads, hk_isa_name(plan->task.isa));
  if (plan->error_factor == 0) hk_text_add(&t, "accuracy   exact on integers\n");
  else hk_text_add(&t, "accuracy   within %g*gk*eps*max|x|*sum|f|\n", plan->error_factor);
  if (flushes_denormals(&plan->decision))
    hk_text_add(&t, "denormals  are zero in bf16 products, whatever the mode; options.denormals = exact avoids them\n");
  hk_text_add(&t, "predicted  %.3g s\n", plan->decision.predicted_s);
  if (length) *length = t.length;
  return HK_OK;
}

hk_status hk_plan_symbol(const hk_plan *plan, int32_t index, const char **name, double *value) {
  if (!plan || !name || !value || index < 0)
    return hk_fail(HK_INVALID, "plan, name and value must not be NULL, index >= 0");
  const hk_geom *g = &plan->task.geom;
  const hk_decision *d = &plan->decision;
  const bool cuda = plan->task.options.device == HK_CUDA; /* whose floors are not known here */
  const hk_cost_floors floors =
      cuda ? (hk_cost_floors){0, 0} : hk_cost_floors_of(g, plan->task.isa, plan->task.threads);
  const struct {
    const char *name;
    double value;
  } fixed[] = {{"N", (double)g->n},
               {"C", (double)g->c * (g->batch_grouped ? 1 : (double)g->groups)},
               {"K", (double)g->k * (double)g->groups},
               {"GROUPS", (double)g->groups},
               {"D", (double)g->in[0]},
               {"H", (double)g->in[1]},
               {"W", (double)g->in[2]},
               {"DF", (double)g->win[0]},
               {"HF", (double)g->win[1]},
               {"WF", (double)g->win[2]},
               {"D_OUT", (double)g->out[0]},
               {"H_OUT", (double)g->out[1]},
               {"W_OUT", (double)g->out[2]},
               {"gm", (double)g->gm},
               {"gn", (double)g->gn},
               {"gk", (double)g->gk},
               {"flops", g->flops},
               {"bytes", g->bytes},
               {"MR", d->kernel ? d->kernel->mr : 1},
               {"NR", d->kernel ? d->kernel->nr : 1},
               {"threads", plan->task.threads},
               {"workspace_bytes", (double)d->workspace_bytes},
               {"packed_bytes", (double)hk_packed_bytes(plan->packed)},
               {"floor_flops_s", floors.flops_s},
               {"floor_bytes_s", floors.bytes_s}};
  const int32_t count = HK_COUNT(fixed) - (cuda ? 2 : 0);
  if (index < count) {
    *name = fixed[index].name, *value = fixed[index].value;
    return HK_OK;
  }
  const int32_t i = index - count;
  const hk_knob *knobs = d->algo->knobs;
  for (int32_t j = 0; j <= i; j++)
    if (j >= HK_KNOBS || !knobs[j].name) return hk_fail(HK_INVALID, "index = %d is past the last symbol", index);
  *name = knobs[i].name, *value = (double)d->knob[i];
  return HK_OK;
}

/* No option of the command says these. */
static const char *not_in_commands(const hk_task *task) {
  const hk_epilogue *e = &task->epi.e;
  if (e->act == HK_ACT_USER || e->act2 == HK_ACT_USER || e->user2 || e->store || e->cuda_user2 || e->cuda_store)
    return "functions of the caller";
  if (e->c_strided) return "strides of the residual";
  return task->f_zero_per_k ? "zero points per channel" : NULL;
}

static void print_math(hk_text *t, uint32_t math) {
  static const char *const words[] = {"fast", "tf32", "split"};
  const char *before = " --math ";
  for (unsigned i = 0; i < HK_COUNT(words); i++)
    if (math >> i & 1) hk_text_add(t, "%s%s", before, words[i]), before = ",";
}

void hk_task_print_command(hk_text *t, const hk_task *task, const char *verb, const char *decision) {
  const hk_options *o = &task->options;
  char problem[1024], epilogue[256];
  const char *missing = not_in_commands(task);
  if (missing) {
    hk_text_add(t, "no command: it has no option for %s", missing);
    return;
  }
  hk_problem_print(&task->problem, problem, sizeof problem, NULL);
  hk_epilogue_print(&task->epi.e, epilogue, sizeof epilogue, NULL);
  hk_text_add(t, "hankel %s '%s' --epilogue '%s'", verb, problem, epilogue);
  if (o->device == HK_CUDA) hk_text_add(t, " --device cuda%s", o->unaligned ? " --unaligned" : "");
  else hk_text_add(t, " --threads %d --isa %s", task->threads, hk_isa_name(task->isa));
  print_math(t, o->math);
  if (o->limit_workspace) hk_text_add(t, " --workspace %zu", o->workspace_limit_bytes);
  if (o->batch_invariant) hk_text_add(t, " --batch-invariant");
  if (o->forbid_fallback) hk_text_add(t, " --forbid-fallback");
  if (o->denormals == HK_DENORMALS_FLUSH) hk_text_add(t, " --flush-denormals");
  if (o->denormals == HK_DENORMALS_EXACT) hk_text_add(t, " --exact-denormals");
  if (o->stateful) hk_text_add(t, " --stateful");
  if (!task->f_now) hk_text_add(t, " --late-weights");
  if (decision) hk_text_add(t, " --decision '%s'", decision);
  else hk_text_add(t, " --why");
}

void hk_plan_log_exec(const hk_plan *plan, double seconds) {
  char problem[1024], epilogue[256], decision[HK_DECISION_TEXT], command[HK_COMMAND_TEXT];
  hk_text t = {decision, sizeof decision, 0}, c = {command, sizeof command, 0};
  problem_text(plan, problem, sizeof problem, epilogue, sizeof epilogue);
  hk_decision_print(&t, &plan->decision);
  hk_task_print_command(&c, &plan->task, "bench", decision);
  const bool cuda = plan->task.options.device == HK_CUDA; /* there the time is that of the launch */
  hk_log(HK_LOG_EXEC, "hankel,exec,%s,%s,%s,%s,%.6g ms,%s", cuda ? "cuda" : "cpu", problem, epilogue, decision,
         seconds * 1e3, command);
}

static const char *kernel_name(const hk_kernel *k) { return k ? k->name : "none"; }

/* Of a path each rewrite's plan and each inner plan has a line of its own, the innermost first. */
void hk_plan_log_trace(const hk_plan *plan) {
  char problem[1024], epilogue[256], text[1024];
  if (!hk_log_on(HK_LOG_TRACE)) return;
  const hk_decision *d = &plan->decision;
  hk_text t = {text, sizeof text, 0};
  problem_text(plan, problem, sizeof problem, epilogue, sizeof epilogue);
  hk_decision_print(&t, d);
  hk_text_add(&t, ",act=%s map=%s narrow=%s wide=%s", kernel_name(plan->act), kernel_name(plan->map),
              kernel_name(plan->narrow), kernel_name(plan->wide));
  if (!d->depth && d->algo->trace) d->algo->trace(plan, &t);
  hk_log(HK_LOG_TRACE, "hankel,trace,%s,%s,%s", problem, epilogue, text);
}
