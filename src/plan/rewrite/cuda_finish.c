/* finish: gates and user functions over the CUDA kernels that fuse neither. The inner algorithm leaves the sums of all k channels,
 * scaled and biased, in the workspace as f32 in y's order; a second kernel (src/cuda/staged.cuh, compiled with the caller's
 * functions where there are any) does the rest. One algorithm of this kind stands for each inner one and takes its knobs. Refuses
 * epilogues without gate or function, sums that are not f32, state, and what its inner algorithm refuses. */
#include <stdio.h>

#include "plan/gpu/gpu.h"
#include "plan/dense/sums.h"

extern const hk_algo hk_algo_cuda_slide, hk_algo_cuda_plane, hk_algo_cuda_row, hk_algo_cuda_roll, hk_algo_cuda_toeplitz,
    hk_algo_cuda_dw_last, hk_algo_cuda_dw_first, hk_algo_cuda_grouped, hk_algo_cuda_stem, hk_algo_wgmma, hk_algo_wgmma_relaid,
    hk_algo_cuda_direct;

/* y's type counts as f32's: 4 bytes written, read again, and y */
static double pass_seconds(const hk_task *t) { return 2.5e-6 + 2.5 * (double)hk_sums_bytes(t) / 2.5e12; }

static const hk_around around = {hk_sums_task, hk_sums_bytes, pass_seconds};

static bool takes(const hk_task *t, char *why) {
  const hk_epilogue *e = &t->epi.e;
  const char *no = NULL;
  if (!e->gate && !e->cuda_user && !e->cuda_user2 && !e->cuda_store) no = "the epilogue has neither gate nor user function";
  else if (e->user || e->user2 || e->store) no = "a C callback cannot run on the device: give its CUDA source instead";
  else if (t->geom.acc_type != HK_F32) no = "sums are not f32";
  else if (t->options.stateful) no = "knows no state";
  else if (t->geom.gm == 0 || t->geom.y_channels == 0) no = "y is empty";
  if (no) snprintf(why, HK_REASON, "%s", no);
  return !no;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) { return takes(t, why) && hk_around_offer(&around, t, d, why); }
static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  return hk_around_vary(&around, t, base, index, d);
}
static bool check(const hk_task *t, hk_decision *d, char *why) { return takes(t, why) && hk_around_check(&around, t, d, why); }

static void destroy(hk_plan *plan) {
  if (plan->pass) hk_cu_direct_free(plan->pass);
  hk_around_destroy(plan);
}

static hk_status build(hk_plan *plan) {
  const hk_status s = hk_around_build_pass(&around, plan, sizeof(hk_cu_direct_state));
  const hk_strides sums = hk_sums_strides(&plan->task.geom);
  return s ? s : hk_cu_staged_build(plan->pass, &plan->task.geom, &plan->task.epi, &sums);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_plan *inner = plan->own;
  const hk_cu_weights *w = plan->packed->f;
  hk_call in = *call;
  in.y = hk_around_workspace(plan, call);
  in.c = NULL;
  const hk_status s = inner->decision.algo->run(inner, &in);
  hk_cu_call rest = hk_plan_cuda_call(plan, call);
  rest.x = in.y;
  return s ? s : hk_cu_direct_run(plan->pass, &rest, w->slopes.data, NULL);
}

#define FINISH(which, slow)                                                                                                   \
  const hk_algo hk_algo_finish_##which = {.name = "finish_" #which, .inner = &hk_algo_##which, .family = HK_FAMILY_NONE,        \
                                          .device = HK_CUDA, .fallback = slow, .offer = offer, .vary = vary, .check = check,  \
                                          .build = build, .run = run, .destroy = destroy}
FINISH(cuda_slide, false);
FINISH(cuda_plane, false);
FINISH(cuda_row, false);
FINISH(cuda_roll, false);
FINISH(cuda_toeplitz, false);
FINISH(cuda_dw_last, false);
FINISH(cuda_dw_first, false);
FINISH(cuda_grouped, false);
FINISH(cuda_stem, false);
FINISH(wgmma, false);
FINISH(wgmma_relaid, false);
FINISH(cuda_direct, true);
