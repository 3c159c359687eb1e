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
  hk_text_add(&t, "memory     packed weights %zu bytes, workspace %zu bytes\n", plan->packed->f_bytes,
              plan->decision.workspace_bytes);
  if (plan->task.options.device == HK_CUDA) hk_text_add(&t, "device     cuda\n");
  else hk_text_add(&t, "threads    %d, isa %s\n", plan->task.threads, hk_isa_name(plan->task.isa));
  if (plan->error_factor == 0) hk_text_add(&t, "accuracy   exact on integers\n");
  else hk_text_add(&t, "accuracy   within %g*gk*eps*max|x|*sum|f|\n", plan->error_factor);
  hk_text_add(&t, "predicted  %.3g s\n", plan->decision.predicted_s);
  if (length) *length = t.length;
  return HK_OK;
}

hk_status hk_plan_symbol(const hk_plan *plan, int32_t index, const char **name, double *value) {
  if (!plan || !name || !value || index < 0)
    return hk_fail(HK_INVALID, "plan, name and value must not be NULL, index >= 0");
  const hk_geom *g = &plan->task.geom;
  const hk_decision *d = &plan->decision;
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
               {"packed_bytes", (double)plan->packed->f_bytes}};
  if (index < HK_COUNT(fixed)) {
    *name = fixed[index].name, *value = fixed[index].value;
    return HK_OK;
  }
  const int32_t i = index - HK_COUNT(fixed);
  const hk_knob *knobs = d->algo->knobs;
  for (int32_t j = 0; j <= i; j++)
    if (j >= HK_KNOBS || !knobs[j].name) return hk_fail(HK_INVALID, "index = %d is past the last symbol", index);
  *name = knobs[i].name, *value = (double)d->knob[i];
  return HK_OK;
}

void hk_plan_log_exec(const hk_plan *plan, double seconds) {
  char problem[1024], epilogue[256], decision[HK_DECISION_TEXT];
  hk_text t = {decision, sizeof decision, 0};
  problem_text(plan, problem, sizeof problem, epilogue, sizeof epilogue);
  hk_decision_print(&t, &plan->decision);
  const bool cuda = plan->task.options.device == HK_CUDA; /* there the time is that of the launch */
  hk_log(HK_LOG_EXEC, "hankel,exec,%s,%s,%s,%s,%.6g ms,hankel bench '%s' --epilogue '%s' --decision '%s'%s",
         cuda ? "cuda" : "cpu", problem, epilogue, decision, seconds * 1e3, problem, epilogue, decision,
         cuda ? " --device cuda" : "");
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
