/* Implicit GEMM on the tensor cores of Hopper GPUs over a channels-first x in place: output channels are the rows of a
 * tile, pixels its columns (docs/cuda.md). Two algorithms of one host side: wgmma_planes fetches the pixels of each tap
 * (src/cuda/igemm/planes.cuh), wgmma_halo each pixel once per tile, kept for all taps (halo.cuh). Both offer the tile
 * that the estimate ranks first; every other tile is a variation. */
#include <stdio.h>

#include "cuda/igemm/halo.h"
#include "plan/gpu/gpu.h"

extern const hk_algo hk_algo_wgmma_halo;
enum { BM, BN, STAGES, TURNS }; /* knobs; STAGES, which the tile determines, is derived */

#define REFUSE(...) return snprintf(why, HK_REASON, __VA_ARGS__), false

/* What the two differ in. planes uses only p and stages of hk_cu_halo. */
typedef struct form {
  const hk_cu_planes_row *rows;
  const int *count;
  bool (*make)(const hk_geom *g, const hk_epi *e, hk_cu_halo *h, char *why);
  bool (*fit)(const hk_cu_planes_row *r, const hk_geom *g, hk_cu_halo *h, char *why);
  double (*seconds)(const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e, const hk_cu_halo *h, int processors);
  hk_status (*build)(hk_cu_first_state *s, const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e);
  hk_status (*run)(const hk_cu_first_state *s, const hk_cu_call *call, const void *slopes);
} form;

static bool planes_make(const hk_geom *g, const hk_epi *e, hk_cu_halo *h, char *why) {
  return hk_cu_planes_make(g, e, false, &h->p, why);
}
static bool planes_fit(const hk_cu_planes_row *r, const hk_geom *g, hk_cu_halo *h, char *why) {
  (void)g, (void)why;
  h->stages = r->stages;
  return true;
}
static double planes_seconds(const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e, const hk_cu_halo *h,
                             int processors) {
  return hk_cu_planes_seconds(r, g, e, &h->p, processors);
}
static hk_status planes_build(hk_cu_first_state *s, const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e) {
  return hk_cu_planes_build(s, r, g, e, false);
}

static const form planes = {hk_cu_planes_rows, &hk_cu_planes_row_count, planes_make, planes_fit, planes_seconds,
                            planes_build,      hk_cu_planes_run},
                  halo = {hk_cu_halo_rows,    &hk_cu_halo_row_count, hk_cu_halo_make, hk_cu_halo_fit,
                          hk_cu_halo_seconds, hk_cu_halo_build,      hk_cu_halo_run};

static const form *form_of(const hk_decision *d) { return d->algo == &hk_algo_wgmma_halo ? &halo : &planes; }

static bool takes(const hk_task *t, const form *f, hk_cu_device *here, hk_cu_halo *h, char *why) {
  if (!hk_plan_cuda_takes(t, here, why)) return false;
  if (t->options.unaligned || t->y_unaligned)
    REFUSE("options.unaligned is 1, or a phase of y is not aligned: TMA needs multiples of 16 bytes");
  return f->make(&t->geom, &t->epi, h, why);
}

/* Fits h to the tile. */
static bool row_takes(const hk_task *t, const form *f, const hk_cu_planes_row *r, hk_cu_halo *h, char *why) {
  if (r->type != t->geom.x_type) REFUSE("no kernel for %s", hk_type_name(t->geom.x_type));
  if (hk_cu_planes_filter_bytes(r, &t->geom) >> 33) REFUSE("packed filters would take more than 8 GB");
  if ((double)t->geom.n * ((double)h->p.flat / r->bn + 1) * (double)t->geom.groups * ((double)t->geom.k / r->bm + 1) >
      1 << 30)
    REFUSE("more than 2^30 tiles");
  return f->fit(r, &t->geom, h, why);
}

static void fill(const hk_task *t, const hk_cu_planes_row *r, const hk_cu_halo *h, int processors, hk_decision *d) {
  d->knob[BM] = r->bm, d->knob[BN] = r->bn, d->knob[STAGES] = h->stages, d->knob[TURNS] = r->wgs < r->nc;
  d->predicted_s = form_of(d)->seconds(r, &t->geom, &t->epi, h, processors);
  d->workspace_bytes = t->f_now ? 0 : hk_cu_planes_filter_bytes(r, &t->geom);
}

static const hk_cu_planes_row *find(const hk_task *t, const hk_decision *d) {
  const form *f = form_of(d);
  for (int i = 0; i < *f->count; ++i) {
    const hk_cu_planes_row *r = &f->rows[i];
    if (r->type == t->geom.x_type && r->bm == d->knob[BM] && r->bn == d->knob[BN] &&
        (r->wgs < r->nc) == (d->knob[TURNS] != 0))
      return r;
  }
  return NULL;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const form *f = form_of(d);
  hk_cu_device here;
  hk_cu_halo h;
  hk_decision best;
  bool any = false;
  if (!takes(t, f, &here, &h, why)) return false;
  for (int i = 0; i < *f->count; ++i) {
    hk_decision one = *d;
    if (!row_takes(t, f, &f->rows[i], &h, why)) continue;
    fill(t, &f->rows[i], &h, here.processors, &one);
    if (!any || one.predicted_s < best.predicted_s) best = one;
    any = true;
  }
  if (any) *d = best;
  return any;
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  const form *f = form_of(base);
  hk_cu_device here;
  hk_cu_halo h;
  char why[HK_REASON];
  const hk_cu_planes_row *chosen = find(t, base);
  if (!takes(t, f, &here, &h, why)) return false;
  for (int i = 0; i < *f->count; ++i) {
    const hk_cu_planes_row *r = &f->rows[i];
    if (r == chosen || !row_takes(t, f, r, &h, why) || index-- > 0) continue;
    *d = *base;
    fill(t, r, &h, here.processors, d);
    return true;
  }
  return false;
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  const form *f = form_of(d);
  const hk_cu_planes_row *r = find(t, d);
  hk_cu_device here;
  hk_cu_halo h;
  if (!r) REFUSE("no such tile for %s", hk_type_name(t->geom.x_type));
  if (!takes(t, f, &here, &h, why) || !row_takes(t, f, r, &h, why)) return false;
  if (d->knob[STAGES] != HK_KNOB_AUTO && d->knob[STAGES] != h.stages)
    REFUSE("stages = %lld must be %d for this tile", (long long)d->knob[STAGES], h.stages);
  fill(t, r, &h, here.processors, d);
  return true;
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  const hk_cu_planes_row *row = find(t, &plan->decision);
  hk_cu_weights *w;
  hk_cu_first_state *own = plan->own = hk_alloc_zero(sizeof *own);
  if (!own) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!row) return hk_fail(HK_UNSUPPORTED, "no such %s tile for this problem", plan->decision.algo->name);
  hk_status s = form_of(&plan->decision)->build(own, row, &t->geom, &t->epi);
  if (!s) s = hk_plan_cuda_weights(plan, &w);
  if (!s && t->f_now && !hk_plan_shares(plan))
    s = hk_plan_cuda_pack(plan, &own->filters, hk_cu_planes_filter_bytes(row, &t->geom), false, w);
  return s ? s : hk_plan_cuda_keep_order(plan, &own->filters);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_cu_first_state *own = plan->own;
  const hk_cu_weights *w = plan->packed->f;
  hk_cu_call c = hk_plan_cuda_call(plan, call);
  hk_status s = HK_OK;
  c.f = plan->task.f_now ? w->f.data : call->workspace;
  if (!plan->task.f_now) s = hk_cu_igemm_pack(&own->filters, call->f, call->workspace, call->stream);
  return s ? s : form_of(&plan->decision)->run(own, &c, w->slopes.data);
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_cu_first_state *own = plan->own;
  const hk_cu_halo *h = &own->params;
  hk_text_add(t, " kernel=%s blocks=%lld phases=%d whole=%d lost=%d stages=%d slots=%d unit=%d apart=%d",
              own->row->name, (long long)own->blocks, h->p.phases, h->p.whole, h->p.lost, h->stages, h->slots, h->unit,
              h->apart);
}

#define KNOBS                                                                                                          \
  { HK_KNOB("bm", 1, 512), HK_KNOB("bn", 1, 512), HK_KNOB_DERIVED("stages", 1, 64), HK_KNOB("turns", 0, 1) }
const hk_algo hk_algo_wgmma_planes = {
    .name = "wgmma_planes",
    .summary = "tensor cores over channels-first x: output channels are rows of a tile, pixels its columns",
    .knobs = KNOBS,
    .family = HK_FAMILY_NONE,
    .device = HK_CUDA,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = run,
    .destroy = destroy,
    .trace = trace};
const hk_algo hk_algo_wgmma_halo = {
    .name = "wgmma_halo",
    .summary = "tensor cores over channels-first x: a block of pixels and halo in shared memory serves all taps",
    .knobs = KNOBS,
    .family = HK_FAMILY_NONE,
    .device = HK_CUDA,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = run,
    .destroy = destroy,
    .trace = trace};
