/* Implicit GEMM on the tensor cores of Hopper GPUs, pixels by the copy engine: see docs/cuda.md. Offers the tile that
 * the cost model of src/cuda/rows.c likes best; every other tile is a variation. */
#include "plan/cuda.h"

#include <stdio.h>

enum { BM, BN, STAGES, CM, CN, SPLIT };

static void fill(const hk_task *t, const hk_cu_row *r, int processors, hk_decision *d) {
  const int64_t knob[] = {hk_cu_row_bm(r), r->bn, r->stages, r->cm, r->cn, r->split};
  for (int i = 0; i < HK_COUNT(knob); ++i) d->knob[i] = knob[i];
  d->predicted_s = hk_cu_row_seconds(r, &t->geom, processors);
  d->workspace_bytes = t->f_now ? 0 : hk_cu_igemm_filter_bytes(r, &t->geom);
}

static const hk_cu_row *find(const hk_task *t, const hk_decision *d) {
  for (int i = 0; i < hk_cu_row_count; ++i) {
    const hk_cu_row *r = &hk_cu_rows[i];
    if (r->type == t->geom.x_type && hk_cu_row_bm(r) == d->knob[BM] && r->bn == d->knob[BN] && r->stages == d->knob[STAGES] &&
        r->cm == d->knob[CM] && r->cn == d->knob[CN] && r->split == d->knob[SPLIT])
      return r;
  }
  return NULL;
}

static bool takes(const hk_task *t, hk_cu_device *here, char *why) {
  hk_cu_map map;
  if (!hk_plan_cuda_takes(t, here, why)) return false;
  if (here->major != 9) return snprintf(why, HK_REASON, "%s is no Hopper GPU", here->name), false;
  if (t->options.unaligned) return snprintf(why, HK_REASON, "options.unaligned: the copy engine needs 16-byte aligned x"), false;
  if (t->geom.x_type == HK_F32 && !(t->options.math & HK_MATH_TF32))
    return snprintf(why, HK_REASON, "f32 operands would be rounded to tf32, which options.math does not allow"), false;
  if (t->epi.e.cuda_user || t->epi.e.cuda_user2 || t->epi.e.cuda_store)
    return snprintf(why, HK_REASON, "takes no user functions"), false;
  return hk_cu_map_make(&t->geom, &map, why);
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  hk_cu_device here;
  if (!takes(t, &here, why)) return false;
  const hk_cu_row *best = NULL;
  double least = 0;
  snprintf(why, HK_REASON, "no kernel for %s by %s", hk_type_name(t->geom.x_type), hk_type_name(t->geom.f_type));
  for (int i = 0; i < hk_cu_row_count; ++i) {
    const hk_cu_row *r = &hk_cu_rows[i];
    if (r->type != t->geom.x_type || !hk_cu_row_takes(r, &t->geom, &t->epi, why)) continue;
    const double s = hk_cu_row_seconds(r, &t->geom, here.processors);
    if (!best || s < least) best = r, least = s;
  }
  if (best) fill(t, best, here.processors, d);
  return best != NULL;
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  hk_cu_device here;
  char why[HK_REASON];
  if (hk_cu_here(&here)) return false;
  const hk_cu_row *chosen = find(t, base);
  for (int i = 0; i < hk_cu_row_count; ++i) {
    const hk_cu_row *r = &hk_cu_rows[i];
    if (r == chosen || r->type != t->geom.x_type || !hk_cu_row_takes(r, &t->geom, &t->epi, why) || index-- > 0) continue;
    *d = *base;
    fill(t, r, here.processors, d);
    return true;
  }
  return false;
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  const hk_cu_row *r = find(t, d);
  hk_cu_device here;
  if (!r) return snprintf(why, HK_REASON, "no such tile for %s", hk_type_name(t->geom.x_type)), false;
  if (!takes(t, &here, why) || !hk_cu_row_takes(r, &t->geom, &t->epi, why)) return false;
  fill(t, r, here.processors, d);
  return true;
}

/* Raw filters on the device (a copy when they came from the host), then the packing kernel. */
static hk_status pack(hk_plan *plan, hk_cu_igemm_state *own, hk_cu_weights *w) {
  const hk_geom *g = &plan->task.geom;
  hk_cu_buffer raw = {0};
  int64_t shift = 0;
  hk_status s = hk_cu_buffer_make(&w->f, NULL, hk_cu_igemm_filter_bytes(own->row, g));
  if (!s) s = hk_cu_filters_make(&raw, g, plan->raw_f, &shift);
  if (!s) s = hk_cu_igemm_pack(own, (const char *)raw.data + shift * (int64_t)hk_type_bytes(g->f_type), w->f.data, NULL);
  if (!s) s = hk_cu_check(hk_cu()->ctx_sync(), "packing filters");
  hk_cu_buffer_free(&raw);
  plan->packed->f_bytes = w->f.bytes;
  return s;
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  const hk_cu_row *row = find(t, &plan->decision);
  hk_cu_weights *w;
  hk_cu_igemm_state *own = plan->own = hk_alloc_zero(sizeof *own);
  if (!own) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!row) return hk_fail(HK_UNSUPPORTED, "no such wgmma tile");
  hk_status s = hk_cu_igemm_build(own, row, &t->geom, &t->epi);
  if (!s) s = hk_plan_cuda_weights(plan, &w);
  if (!s && t->f_now && !hk_plan_shares(plan)) s = pack(plan, own, w);
  /* tf32 keeps 11 of f32's 24 bits of each operand: two roundings of 2^-11 against eps = 2^-23 */
  if (t->geom.x_type == HK_F32) plan->error_factor = 8192;
  return s;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_cu_igemm_state *own = plan->own;
  const hk_cu_weights *w = plan->packed->f;
  hk_cu_call c = hk_plan_cuda_call(plan, call);
  if (plan->task.f_now) {
    c.f = w->f.data;
  } else {
    const hk_status s = hk_cu_igemm_pack(own, call->f, call->workspace, call->stream);
    if (s) return s;
    c.f = call->workspace;
  }
  return hk_cu_igemm_run(own, &c, w->slopes.data);
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

const hk_algo hk_algo_wgmma = {.name = "wgmma", .knobs = {"bm", "bn", "stages", "cm", "cn", "split"},
                               .family = HK_FAMILY_NONE, .device = HK_CUDA, .offer = offer, .vary = vary, .check = check,
                               .build = build, .run = run, .destroy = destroy};
