/* finish: gates and user functions over the CUDA kernels that fuse neither. The inner plan leaves the sums of all k
 * channels, scaled and biased, in the workspace as f32 in y's order; a second kernel (src/cuda/passes/staged.cuh,
 * compiled with the caller's functions where there are any) does the rest. */
#include "plan/gpu/gpu.h"
#include "plan/rewrite/sums.h"

/* y's type counts as f32's: 4 bytes written, read again, and y */
static double seconds(const hk_task *t, double inner_s) {
  return inner_s + 2.5e-6 + 2.5 * (double)hk_sums_bytes(t) / 2.5e12;
}

static bool takes(const hk_task *t, char *why) {
  const hk_epilogue *e = &t->epi.e;
  if (!e->gate && !e->cuda_user && !e->cuda_user2 && !e->cuda_store)
    return hk_refuse(why, "the epilogue has neither gate nor user function");
  if (e->user || e->user2 || e->store)
    return hk_refuse(why, "a C callback cannot run on the device: give its CUDA source instead");
  if (t->geom.acc_type != HK_F32) return hk_refuse(why, "sums are f64 or s32; finish takes f32 sums only");
  if (t->options.stateful) return hk_refuse(why, "options.stateful is 1: state goes before finish");
  if (t->geom.gm == 0 || t->geom.y_channels == 0) return hk_refuse(why, "y is empty");
  return true;
}

static hk_status build(hk_plan *plan) {
  const hk_status s = hk_rewrite_alloc_pass(plan, sizeof(hk_cu_direct_state));
  const hk_strides sums = hk_sums_strides(&plan->task.geom);
  return s ? s : hk_cu_staged_build(plan->pass, &plan->task.geom, &plan->task.epi, &sums);
}

static void destroy(hk_plan *plan) { hk_cu_direct_free(plan->pass); }

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_cu_weights *w = plan->packed->f;
  hk_call in = *call;
  in.y = hk_rewrite_workspace(plan, call);
  in.c = NULL;
  const hk_status s = hk_rewrite_run_inner(plan, 0, &in);
  hk_cu_call rest = hk_plan_cuda_call(plan, call);
  rest.x = in.y;
  return s ? s : hk_cu_direct_run(plan->pass, &rest, w->slopes.data, NULL);
}

const hk_rewrite hk_rewrite_cuda_finish = {.name = "finish",
                                           .summary = "gates and user functions over device kernels that fuse neither",
                                           .device = HK_CUDA,
                                           .order = HK_ORDER_GATE,
                                           .takes = takes,
                                           .inner = hk_sums_inner,
                                           .bytes = hk_sums_bytes,
                                           .seconds = seconds,
                                           .build = build,
                                           .run = run,
                                           .destroy = destroy};
