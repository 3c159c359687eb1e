/* Stateful 1D plans on the GPU: a pass joins the state and x in the workspace and writes the new state (src/cuda/state.cu), then the
 * inner algorithm sees a longer x without padding. One algorithm of this kind stands for each inner one and takes its knobs. */
#include <stdio.h>

#include "plan/gpu/gpu.h"
#include "plan/rewrite/state.h"

extern const hk_algo hk_algo_cuda_row, hk_algo_cuda_toeplitz, hk_algo_cuda_dw_last, hk_algo_cuda_dw_first, hk_algo_cuda_grouped,
    hk_algo_cuda_stem, hk_algo_wgmma, hk_algo_wgmma_relaid, hk_algo_cuda_direct;

/* Rows on 16-byte addresses, as the inner kernels like them. */
static int64_t granule(const hk_task *t) { return 16 / (int64_t)hk_type_bytes(t->geom.x_type); }
static hk_task inner_task(const hk_task *t) { return hk_state_task(t, granule(t)); }
static size_t own_bytes(const hk_task *t) { return hk_state_bytes(t, granule(t)); }
static double pass_seconds(const hk_task *t) { return 2.5e-6 + 2 * (double)own_bytes(t) / 2.5e12; }

static const hk_around around = {inner_task, own_bytes, pass_seconds};

static bool stateful(const hk_task *t, char *why) {
  if (!t->options.stateful) snprintf(why, HK_REASON, "the plan has no state");
  return t->options.stateful;
}
static bool offer(const hk_task *t, hk_decision *d, char *why) { return stateful(t, why) && hk_around_offer(&around, t, d, why); }
static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  return hk_around_vary(&around, t, base, index, d);
}
static bool check(const hk_task *t, hk_decision *d, char *why) { return stateful(t, why) && hk_around_check(&around, t, d, why); }

static hk_status build(hk_plan *plan) {
  const hk_status s = hk_around_build_pass(&around, plan, sizeof(hk_cu_state_pass));
  const hk_strides to = hk_state_strides(&plan->task.geom, granule(&plan->task));
  return s ? s : hk_cu_state_build(plan->pass, &plan->task.geom, &to);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_plan *inner = plan->own;
  hk_call in = *call;
  char *joined = hk_around_workspace(plan, call);
  hk_plan_cuda_enter();
  in.x = joined;
  in.state_in = NULL;
  in.state_out = NULL;
  const hk_status s = hk_cu_state_run(plan->pass, call->x, call->state_in, joined, call->state_out, call->stream);
  return s ? s : inner->decision.algo->run(inner, &in);
}

#define STATE(which, slow)                                                                                                  \
  const hk_algo hk_algo_state_##which = {.name = "state_" #which, .inner = &hk_algo_##which, .family = HK_FAMILY_NONE,        \
                                         .device = HK_CUDA, .fallback = slow, .offer = offer, .vary = vary, .check = check, \
                                         .build = build, .run = run, .destroy = hk_around_destroy}
STATE(cuda_row, false);
STATE(cuda_toeplitz, false);
STATE(cuda_dw_last, false);
STATE(cuda_dw_first, false);
STATE(cuda_grouped, false);
STATE(cuda_stem, false);
STATE(wgmma, false);
STATE(wgmma_relaid, false);
STATE(cuda_direct, true);
