/* Implicit GEMM on the tensor cores of Hopper GPUs over a channels-first x in place (src/cuda/igemm/planes.cuh,
 * docs/cuda.md): output channels are the rows of a tile, pixels its columns. Offers the tile that the estimate ranks *
 * first; every other tile is a variation. */
#include <stdio.h>

#include "cuda/igemm/planes.h"
#include "plan/gpu/gpu.h"

enum { BM, BN, STAGES, TURNS };

#define REFUSE(...) return snprintf(why, HK_REASON, __VA_ARGS__), false

static bool takes(const hk_task *t, hk_cu_device *here, hk_cu_planes *p, char *why) {
  if (!hk_plan_cuda_takes(t, here, why)) return false;
  if (t->options.unaligned) REFUSE("options.unaligned is 1: TMA needs x at a multiple of 16 bytes");
  return hk_cu_planes_make(&t->geom, &t->epi, false, p, why);
}

static bool row_takes(const hk_task *t, const hk_cu_planes_row *r, const hk_cu_planes *p, char *why) {
  if (r->type != t->geom.x_type) REFUSE("no kernel for %s", hk_type_name(t->geom.x_type));
  if (hk_cu_planes_filter_bytes(r, &t->geom) >> 33) REFUSE("packed filters would take more than 8 GB");
  if ((double)t->geom.n * ((double)p->flat / r->bn + 1) * (double)t->geom.groups * ((double)t->geom.k / r->bm + 1) >
      1 << 30)
    REFUSE("more than 2^30 tiles");
  return true;
}

static void fill(const hk_task *t, const hk_cu_planes_row *r, const hk_cu_planes *p, int processors, hk_decision *d) {
  d->knob[BM] = r->bm, d->knob[BN] = r->bn, d->knob[STAGES] = r->stages, d->knob[TURNS] = r->wgs < r->nc;
  d->predicted_s = hk_cu_planes_seconds(r, &t->geom, &t->epi, p, processors);
  d->workspace_bytes = t->f_now ? 0 : hk_cu_planes_filter_bytes(r, &t->geom);
}

static const hk_cu_planes_row *find(const hk_task *t, const hk_decision *d) {
  for (int i = 0; i < hk_cu_planes_row_count; ++i) {
    const hk_cu_planes_row *r = &hk_cu_planes_rows[i];
    if (r->type == t->geom.x_type && r->bm == d->knob[BM] && r->bn == d->knob[BN] && r->stages == d->knob[STAGES] &&
        (r->wgs < r->nc) == (d->knob[TURNS] != 0))
      return r;
  }
  return NULL;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  hk_cu_device here;
  hk_cu_planes p;
  const hk_cu_planes_row *best = NULL;
  double least = 0;
  if (!takes(t, &here, &p, why)) return false;
  for (int i = 0; i < hk_cu_planes_row_count; ++i) {
    const hk_cu_planes_row *r = &hk_cu_planes_rows[i];
    if (!row_takes(t, r, &p, why)) continue;
    const double seconds = hk_cu_planes_seconds(r, &t->geom, &t->epi, &p, here.processors);
    if (!best || seconds < least) best = r, least = seconds;
  }
  if (best) fill(t, best, &p, here.processors, d);
  return best != NULL;
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  hk_cu_device here;
  hk_cu_planes p;
  char why[HK_REASON];
  const hk_cu_planes_row *chosen = find(t, base);
  if (!takes(t, &here, &p, why)) return false;
  for (int i = 0; i < hk_cu_planes_row_count; ++i) {
    const hk_cu_planes_row *r = &hk_cu_planes_rows[i];
    if (r == chosen || !row_takes(t, r, &p, why) || index-- > 0) continue;
    *d = *base;
    fill(t, r, &p, here.processors, d);
    return true;
  }
  return false;
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  const hk_cu_planes_row *r = find(t, d);
  hk_cu_device here;
  hk_cu_planes p;
  if (!r) REFUSE("no such tile for %s", hk_type_name(t->geom.x_type));
  if (!takes(t, &here, &p, why) || !row_takes(t, r, &p, why)) return false;
  fill(t, r, &p, here.processors, d);
  return true;
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  const hk_cu_planes_row *row = find(t, &plan->decision);
  hk_cu_weights *w;
  hk_cu_planes_state *own = plan->own = hk_alloc_zero(sizeof *own);
  if (!own) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!row) return hk_fail(HK_UNSUPPORTED, "no such wgmma_planes tile for this problem");
  hk_status s = hk_cu_planes_build(own, row, &t->geom, &t->epi, t->options.unaligned);
  if (!s) s = hk_plan_cuda_weights(plan, &w);
  if (!s && t->f_now && !hk_plan_shares(plan))
    s = hk_plan_cuda_pack(plan, &own->filters, hk_cu_planes_filter_bytes(row, &t->geom), false, w);
  return s ? s : hk_plan_cuda_keep_order(plan, &own->filters);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_cu_planes_state *own = plan->own;
  const hk_cu_weights *w = plan->packed->f;
  hk_cu_call c = hk_plan_cuda_call(plan, call);
  hk_status s = HK_OK;
  c.f = plan->task.f_now ? w->f.data : call->workspace;
  if (!plan->task.f_now) s = hk_cu_igemm_pack(&own->filters, call->f, call->workspace, call->stream);
  return s ? s : hk_cu_planes_run(own, &c, w->slopes.data);
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

const hk_algo hk_algo_wgmma_planes = {
    .name = "wgmma_planes",
    .summary = "tensor cores over channels-first x: output channels are rows of a tile, pixels its columns",
    .knobs = {HK_KNOB("bm", 1, 512), HK_KNOB("bn", 1, 512), HK_KNOB("stages", 1, 64), HK_KNOB("turns", 0, 1)},
    .family = HK_FAMILY_NONE,
    .device = HK_CUDA,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = run,
    .destroy = destroy};
