/* Gradients of narrow filters on the GPU as an algorithm: the kernels of src/cuda/gradient. Made for depthwise and
 * grouped filters and few channels of x, whose window is larger than their result; by its general kernel every other
 * such problem too. Partial sums are cut by the shape alone. Refuses gates, user functions, state, batch_invariant. */
#include <stdio.h>
#include <string.h>

#include "cuda/gradient/tapsum.h"
#include "plan/gpu/gpu.h"

enum { WAY, SLICES }; /* knobs */

static bool supported(const hk_task *t, char *why) {
  hk_cu_device here;
  if (!hk_plan_cuda_takes(t, &here, why)) return false;
  if (!t->options.batch_invariant) return true;
  return hk_refuse(why, "batch_invariant must be 0: the slices of the sum depend on n");
}

/* By the knobs; slices 0: chosen here, within the workspace limit. */
static bool tile(const hk_task *t, const hk_decision *d, hk_cu_tapsum_tiling *tiling, char *why) {
  const hk_cu_tapsum_knobs knobs = {(hk_cu_tapsum_way)d->knob[WAY], d->knob[SLICES]};
  const size_t room = t->options.limit_workspace ? t->options.workspace_limit_bytes : SIZE_MAX;
  return hk_cu_tapsum_tile(&t->geom, &t->epi, t->options.unaligned, knobs, room, tiling, why);
}

static bool choose(const hk_task *t, hk_decision *d, char *why) {
  hk_cu_tapsum_tiling tiling;
  if (!tile(t, d, &tiling, why)) return false;
  d->knob[SLICES] = tiling.params.slices;
  d->predicted_s = tiling.seconds;
  d->workspace_bytes = tiling.sums_bytes;
  return true;
}

static bool check(const hk_task *t, hk_decision *d, char *why) { return supported(t, why) && choose(t, d, why); }

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  if (!supported(t, why)) return false;
  hk_decision best = *d;
  bool found = false;
  for (int way = HK_TAPSUM_WAYS; way >= 1; way--) { /* the last, which takes everything, says why not */
    d->knob[WAY] = way, d->knob[SLICES] = 0;
    if (!choose(t, d, why) || (found && d->predicted_s >= best.predicted_s)) continue;
    best = *d;
    found = true;
  }
  *d = best;
  return found;
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  for (int way = 1; way <= HK_TAPSUM_WAYS; way++) {
    *d = *base;
    d->knob[WAY] = way, d->knob[SLICES] = 0;
    if (way == base->knob[WAY] || !choose(t, d, why) || index-- > 0) continue;
    return true;
  }
  const int64_t slices[] = {base->knob[SLICES] * 2, base->knob[SLICES] / 2, 1};
  for (int i = 0; i < (slices[1] > 1 ? 3 : 2); i++) {
    *d = *base;
    d->knob[SLICES] = slices[i];
    if (slices[i] < 1 || slices[i] == base->knob[SLICES] || !choose(t, d, why) || index-- > 0) continue;
    return true;
  }
  return false;
}

static hk_status build(hk_plan *plan) {
  char why[HK_REASON];
  hk_cu_tapsum_state *own = plan->own = hk_alloc_zero(sizeof *own);
  if (!own) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!tile(&plan->task, &plan->decision, &own->tiling, why)) return hk_fail(HK_UNSUPPORTED, "cuda_tapsum: %s", why);
  const hk_status s = hk_cu_tapsum_build(own);
  return s ? s : hk_plan_cuda_raw(plan);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_cu_weights *w = plan->packed->f;
  const hk_cu_call c = hk_plan_cuda_raw_call(plan, call);
  return hk_cu_tapsum_run(plan->own, &c, w->slopes.data);
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_cu_tapsum_tiling *o = &((const hk_cu_tapsum_state *)plan->own)->tiling;
  hk_text_add(t, " kernel=%s blocks=%lld threads=%d shared=%d units=%d", o->kernel, (long long)o->blocks, o->threads,
              o->shared_bytes, o->params.units);
}

const hk_algo hk_algo_cuda_tapsum = {.name = "cuda_tapsum",
                                     .summary = "gradients of filters on the device: depthwise, grouped, few channels, "
                                                "and by a general kernel any other",
                                     .knobs = {HK_KNOB("way", 1, HK_TAPSUM_WAYS), HK_KNOB("slices", 1, 1 << 24)},
                                     .family = HK_FAMILY_NONE,
                                     .device = HK_CUDA,
                                     .offer = offer,
                                     .vary = vary,
                                     .check = check,
                                     .build = build,
                                     .run = run,
                                     .destroy = destroy,
                                     .trace = trace};
