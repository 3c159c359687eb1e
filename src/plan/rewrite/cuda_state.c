/* state on the GPU: a pass joins the state and x in the workspace and writes the new state (src/cuda/passes/state.cu);
 * the inner task sees a longer x without padding. */
#include "plan/gpu/gpu.h"
#include "plan/rewrite/state.h"

/* Rows on 16-byte addresses, as the inner kernels like them. */
static int64_t granule(const hk_task *t) { return 16 / (int64_t)hk_type_bytes(t->geom.x_type); }
static size_t own_bytes(const hk_task *t) { return hk_state_bytes(t, granule(t)); }
static double seconds(const hk_task *t, double inner_s) { return inner_s + 2.5e-6 + 2 * (double)own_bytes(t) / 2.5e12; }

static bool takes(const hk_task *t, char *why) {
  return t->options.stateful || hk_refuse(why, "options.stateful is 0");
}

static int inner(const hk_task *t, int part, hk_task *to) {
  (void)part;
  hk_state_inner(to, granule(t));
  return 1;
}

static hk_status build(hk_plan *plan) {
  const hk_status s = hk_rewrite_alloc_pass(plan, sizeof(hk_cu_state_pass));
  const hk_strides to = hk_state_strides(&plan->task.geom, granule(&plan->task));
  return s ? s : hk_cu_state_build(plan->pass, &plan->task.geom, &to);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  hk_call in = *call;
  char *joined = hk_rewrite_workspace(plan, call);
  hk_plan_cuda_enter();
  in.x = joined;
  const hk_status s = hk_cu_state_run(plan->pass, call->x, call->state_in, joined, call->state_out, call->stream);
  return s ? s : hk_rewrite_run_inner(plan, 0, &in);
}

const hk_rewrite hk_rewrite_cuda_state = {.name = "state",
                                          .summary = "streaming state on the device",
                                          .device = HK_CUDA,
                                          .order = HK_ORDER_STATE,
                                          .takes = takes,
                                          .inner = inner,
                                          .bytes = own_bytes,
                                          .seconds = seconds,
                                          .build = build,
                                          .run = run};
