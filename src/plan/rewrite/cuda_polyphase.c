/* polyphase on the GPU: see polyphase.c. The launches of the parts overlap where their algorithm allows it
 * (HK_CU_CHAIN_*); outputs without taps are stored by one launch per set (src/cuda/passes/fill.c). */
#include "plan/gpu/gpu.h"
#include "plan/rewrite/polyphase.h"

typedef struct gap {
  hk_cu_fill_state fill;
  int64_t y, c; /* where it starts, in bytes */
} gap;

typedef struct pass {
  hk_phases phases;
  int gaps;
  gap gap[3 * HK_PARTS];
} pass;

static hk_status build_gap(const hk_task *t, const hk_polyphase p[3], gap *to) {
  const int64_t bytes = (int64_t)hk_type_bytes(t->geom.y_type);
  hk_task view = *t;
  to->y = bytes * hk_phases_place(&t->geom.y, p);
  to->c = t->epi.e.residual ? bytes * hk_phases_place(&t->epi.c, p) : 0;
  hk_geom_set_polyphase(&view.geom, p);
  for (int d = 0; d < 3; d++) view.epi.c.at[d] *= p[d].every;
  return hk_cu_fill_build(&to->fill, &view.geom, &view.epi, t->options.unaligned || (to->y | to->c) % 16);
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  hk_polyphase p[3];
  hk_status s = hk_rewrite_alloc_pass(plan, sizeof(pass));
  pass *own = plan->pass;
  if (s) return s;
  hk_phases_make(&t->geom, &own->phases);
  for (; !s && hk_phases_gap(&own->phases, &t->geom, own->gaps, p); own->gaps++)
    s = build_gap(t, p, &own->gap[own->gaps]);
  return s;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const pass *own = plan->pass;
  hk_status s = HK_OK;
  /* scale, bias and slopes on the device belong to the packed weights of any part */
  const hk_plan *part = plan->inner[0];
  while (part->decision.depth) part = part->inner[0];
  for (int i = 0; i < own->gaps && !s; i++) {
    hk_call view = *call;
    view.y += own->gap[i].y;
    if (view.c) view.c += own->gap[i].c;
    hk_cu_call c = hk_plan_cuda_call(part, &view);
    s = hk_cu_fill_run(&own->gap[i].fill, &c, ((const hk_cu_weights *)part->packed->f)->slopes.data, i > 0);
  }
  return s ? s : hk_polyphase_run_parts(plan, &own->phases, call);
}

/* Each part is a launch, which those of a chain hide but for a microsecond. Outputs without taps take their bytes. */
static double seconds(const hk_task *t, double inner_s) {
  hk_phases phases;
  hk_phases_make(&t->geom, &phases);
  const double launches = phases.parts - 1, all = phases.count[0] * phases.count[1] * phases.count[2];
  const double y = (double)(t->geom.gm * t->geom.k * t->geom.groups) * (double)hk_type_bytes(t->geom.y_type);
  return inner_s - 1.5e-6 * launches + (hk_phases_gaps(&phases) ? 2e-6 + y * (1 - phases.parts / all) / 3.4e12 : 0);
}

const hk_rewrite hk_rewrite_cuda_polyphase = {.name = "polyphase",
                                              .summary = "input dilation as one dense convolution per phase of y",
                                              .device = HK_CUDA,
                                              .order = HK_ORDER_PHASE,
                                              .takes = hk_polyphase_takes,
                                              .inner = hk_polyphase_inner,
                                              .filter_at = hk_polyphase_filter_at,
                                              .copies = hk_polyphase_copies,
                                              .seconds = seconds,
                                              .build = build,
                                              .run = run};
