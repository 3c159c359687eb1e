/* Implicit GEMM on the scalar units of the GPU (src/cuda/simt): strict f32, f64, int8 and mixed types, and everything
 * that tensor cores cannot address, gradients of filters included. Reads x and f in place; a reduction that is long for
 * its few outputs is cut into slices, whose partial sums are the workspace. Refuses gates and user functions, which the
 * rewrite finish adds. */
#include <stdio.h>

#include "cuda/simt/simt.h"
#include "plan/gpu/gpu.h"

/* knobs: the tile; slices of the reduction; neighbouring rows differ in the image (images), neighbouring products in
 * the tap (taps), neighbouring threads load rows of x and columns of f (across: 1, 2) */
enum { BM, BN, SLICES, IMAGES, TAPS, ACROSS };

static size_t room(const hk_task *t) {
  return t->options.limit_workspace ? t->options.workspace_limit_bytes : SIZE_MAX;
}

static void fill(const hk_task *t, const hk_cu_simt_tile *tile, int processors, hk_decision *d) {
  const hk_cu_simt_order o = hk_cu_simt_order_of(&t->geom);
  d->knob[BM] = tile->bm, d->knob[BN] = tile->bn;
  if (d->knob[SLICES] == HK_KNOB_AUTO) d->knob[SLICES] = hk_cu_simt_slices(tile, &t->geom, room(t));
  if (d->knob[IMAGES] == HK_KNOB_AUTO) d->knob[IMAGES] = o.images_inner;
  if (d->knob[TAPS] == HK_KNOB_AUTO) d->knob[TAPS] = o.taps_inner;
  if (d->knob[ACROSS] == HK_KNOB_AUTO) d->knob[ACROSS] = o.x_rows + 2 * o.f_columns;
  d->workspace_bytes = hk_cu_simt_partial_bytes(tile, &t->geom, (int)d->knob[SLICES]);
  d->predicted_s = hk_cu_simt_seconds(tile, &t->geom, (int)d->knob[SLICES], processors);
}

static const hk_cu_simt_tile *find(const hk_task *t, const hk_decision *d) {
  for (int i = 0; i < hk_cu_simt_tile_count; ++i) {
    const hk_cu_simt_tile *tile = &hk_cu_simt_tiles[i];
    if (hk_cu_simt_tile_takes(tile, &t->geom) && tile->bm == d->knob[BM] && tile->bn == d->knob[BN]) return tile;
  }
  return NULL;
}

static bool takes(const hk_task *t, hk_cu_device *here, char *why) {
  return hk_plan_cuda_takes(t, here, why) && hk_cu_simt_takes(&t->geom, &t->epi, why);
}

static void offer_tile(const hk_task *t, const hk_cu_simt_tile *tile, int processors, hk_decision *d) {
  d->knob[SLICES] = d->knob[IMAGES] = d->knob[TAPS] = d->knob[ACROSS] = HK_KNOB_AUTO;
  fill(t, tile, processors, d);
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  hk_cu_device here;
  bool any = false;
  if (!takes(t, &here, why)) return false;
  for (int i = 0; i < hk_cu_simt_tile_count; ++i) {
    hk_decision one = *d;
    if (!hk_cu_simt_tile_takes(&hk_cu_simt_tiles[i], &t->geom)) continue;
    offer_tile(t, &hk_cu_simt_tiles[i], here.processors, &one);
    if (any && one.predicted_s >= d->predicted_s) continue;
    *d = one;
    any = true;
  }
  return any || (snprintf(why, HK_REASON, "no tile for sums of %s", hk_type_name(t->geom.acc_type)), false);
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  hk_cu_device here;
  char why[HK_REASON];
  const hk_cu_simt_tile *chosen = find(t, base);
  if (!takes(t, &here, why)) return false;
  for (int i = 0; i < hk_cu_simt_tile_count; ++i) {
    const hk_cu_simt_tile *tile = &hk_cu_simt_tiles[i];
    if (tile == chosen || !hk_cu_simt_tile_takes(tile, &t->geom) || index-- > 0) continue;
    *d = *base;
    offer_tile(t, tile, here.processors, d);
    return true;
  }
  if (index > 2 || !chosen) return false;
  *d = *base; /* half and twice the slices, the other loads */
  const int64_t slices = base->knob[SLICES];
  if (index < 2) d->knob[SLICES] = index ? slices * 2 : slices / 2;
  else d->knob[ACROSS] ^= 3;
  if (d->knob[SLICES] < 1 || d->knob[SLICES] > hk_cu_simt_steps(&t->geom)) return false;
  fill(t, chosen, here.processors, d);
  return true;
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  hk_cu_device here;
  if (!takes(t, &here, why)) return false;
  const hk_cu_simt_tile *tile = find(t, d);
  if (!tile)
    return snprintf(why, HK_REASON, "bm = %lld, bn = %lld is no tile for these types", (long long)d->knob[BM],
                    (long long)d->knob[BN]),
           false;
  const int64_t steps = hk_cu_simt_steps(&t->geom);
  if (d->knob[SLICES] > steps)
    return snprintf(why, HK_REASON, "slices = %lld must be at most the %lld steps of a sum", (long long)d->knob[SLICES],
                    (long long)steps),
           false;
  fill(t, tile, here.processors, d);
  return true;
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  const int64_t *knob = plan->decision.knob;
  const hk_cu_simt_order order = {knob[IMAGES], knob[TAPS], knob[ACROSS] & 1, knob[ACROSS] >> 1};
  const hk_cu_simt_tile *tile = find(t, &plan->decision);
  hk_cu_simt_state *own = plan->own = hk_alloc_zero(sizeof *own);
  if (!own) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!tile) return hk_fail(HK_UNSUPPORTED, "no such cuda_simt tile for this problem");
  const hk_status s = hk_cu_simt_build(own, tile, &t->geom, &t->epi, order, (int)knob[SLICES]);
  return s ? s : hk_plan_cuda_raw(plan);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_cu_weights *w = plan->packed->f;
  const hk_cu_call c = hk_plan_cuda_raw_call(plan, call);
  return hk_cu_simt_run(plan->own, &c, w->slopes.data, w->f_zero.data);
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_cu_simt_state *own = plan->own;
  hk_text_add(t, " kernel=%s blocks=%lld steps=%d slices=%d", own->tile->name, (long long)own->blocks,
              own->params.steps, own->params.slices);
}

const hk_algo hk_algo_cuda_simt = {
    .name = "cuda_simt",
    .summary = "implicit GEMM on the scalar units: strict f32, f64, int8, mixed types, any strides",
    .knobs = {HK_KNOB("bm", 1, 256), HK_KNOB("bn", 1, 256), HK_KNOB_ORDER("slices", 1, HK_THREAD_PIECES),
              HK_KNOB_ORDER("images", 0, 1), HK_KNOB_ORDER("taps", 0, 1), HK_KNOB_DERIVED("across", 0, 3)},
    .family = HK_FAMILY_NONE,
    .device = HK_CUDA,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = run,
    .destroy = destroy,
    .trace = trace};
