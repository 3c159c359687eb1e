/* The general CUDA kernel as an algorithm: every type, stride, dilation, group and epilogue; slow, and says so. */
#include "plan/gpu/gpu.h"

#include <stdio.h>

static bool offer(const hk_task *task, hk_decision *d, char *why) {
  hk_cu_device here;
  if (!hk_plan_cuda_takes(task, &here, why)) return false;
  if (task->epi.e.cuda_user || task->epi.e.cuda_user2 || task->epi.e.cuda_store)
    return snprintf(why, HK_REASON, "takes no user functions"), false;
  /* one thread per output: an H200 passes 5e11 flops and 2.6e11 bytes per second, and each product of a thread waits
   * 0.2 us for its loads */
  const double worked = task->geom.flops / 5e11, moved = task->geom.bytes / 2.6e11;
  d->workspace_bytes = 0;
  d->predicted_s = 3e-6 + 2e-7 * (double)task->geom.gk + (worked > moved ? worked : moved);
  return true;
}

static hk_status build(hk_plan *plan) {
  hk_cu_direct_state *own = plan->own = hk_alloc_zero(sizeof *own);
  if (!own) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  const hk_status s = hk_cu_direct_build(own, &plan->task.geom, &plan->task.epi);
  return s ? s : hk_plan_cuda_raw(plan);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_cu_weights *w = plan->packed->f;
  const hk_cu_call c = hk_plan_cuda_raw_call(plan, call);
  return hk_cu_direct_run(plan->own, &c, w->slopes.data, w->f_zero.data);
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

const hk_algo hk_algo_cuda_direct = {
    .name = "cuda_direct",
    .summary = "the general device kernel: one thread per output, every problem without C callbacks",
    .family = HK_FAMILY_NONE,
    .device = HK_CUDA,
    .fallback = true,
    .offer = offer,
    .check = offer,
    .build = build,
    .run = run,
    .destroy = destroy};
