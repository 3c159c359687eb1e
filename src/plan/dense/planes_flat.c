/* planes without gathering: a pointwise problem (one tap, stride 1, no padding) whose pixels lie one after another in
 * x, y and the residual. Each job is a run of strips of one image and some sets of channels; the kernel goes from strip
 * to strip itself. The last strip is moved back to end with the image, so that every vector is whole; what it shares
 * with the strip before is computed twice, to the same bits and by the same job. Where a vector of 16 costs two of 8
 * and no more than 8 pixels are left over, one vector of 8 does those. */
#include <stdio.h>

#include "cost/cost.h"
#include "plan/dense/planes.h"

static bool in_line(const hk_geom *g, const hk_strides *s) {
  int64_t step = 1;
  for (int d = 2; d >= 0; step *= g->out[d], d--)
    if (g->out[d] > 1 && s->at[d] != step) return false;
  return true;
}

bool hk_planes_flat(const hk_task *t, int64_t lanes, int64_t most) {
  const hk_geom *g = &t->geom;
  const hk_epi *epi = &t->epi;
  if (g->taps != 1 || !hk_fuse_make(t, false).all || !in_line(g, &g->x) || !in_line(g, &g->y)) return false;
  for (int d = 0; d < 3; d++)
    if (g->stride[d] != 1 || g->in_dil[d] != 1 || g->lo[d] || g->in[d] != g->out[d]) return false;
  if (epi->e.residual && !in_line(g, &epi->c)) return false;
  if (g->pixels % lanes == 0) return true;
  /* a residual may lie where y does: nothing may be computed twice */
  return !epi->e.residual && hk_strip_count(g->pixels, lanes, most) > 1;
}

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const float *packed;
} job;

/* `strips` strips of `vectors` vectors from pixel `at` on. */
static void run_strips(const hk_kernel *kernel, hk_pgemm_args a, int64_t at, int64_t vectors, int64_t strips) {
  if (strips <= 0) return;
  const hk_pgemm_segment seg = {a.seg->b + at, 0, a.seg->count};
  a.seg = &seg;
  a.vectors = vectors;
  a.columns = vectors * hk_isa_lanes(kernel->isa);
  a.strips = strips;
  a.y += at;
  if (a.c) a.c += at;
  kernel->fn(&a);
}

const hk_kernel *hk_planes_rest(const hk_geom *g, const hk_kernel *kernel) {
  const int64_t lanes = hk_isa_lanes(kernel->isa), left = g->pixels % lanes;
  if (lanes != 16 || left == 0 || left > 8 || g->pixels < lanes) return NULL;
  const hk_kernel *rest = hk_kernel_best(HK_FAMILY_PGEMM, HK_ISA_AVX2);
  return rest && rest->mr == kernel->mr ? rest : NULL; /* the weights are packed by tiles of that many channels */
}

bool hk_planes_rest_pays(const hk_geom *g, const hk_kernel *kernel) {
  return hk_planes_rest(g, kernel) && hk_cost_peak(kernel->isa) <= hk_cost_peak(HK_ISA_AVX2) && g->pixels > 64;
}

bool hk_planes_ahead(const hk_geom *g) { return g->pixels * (g->c + g->k) * (int64_t)sizeof(float) > hk_cost_l2(); }

/* Two strips at least, so that the last is never moved back into another job's. */
static int64_t most_chunks(const hk_task *t, const hk_kernel *kernel) {
  const int64_t lanes = hk_isa_lanes(kernel->isa);
  return hk_max64(1, hk_strip_count(t->geom.pixels, lanes, kernel->nr / lanes) / 2);
}

/* A batch-invariant decision serves any batch and any number of threads: pieces of eight strips. */
static int64_t choose_chunks(const hk_task *t, const hk_kernel *kernel) {
  const int64_t most = most_chunks(t, kernel), images = t->geom.n * t->geom.groups;
  if (t->options.batch_invariant) return hk_max64(1, hk_min64(most / 4, 64));
  if (t->threads == 1 && !t->options.parallel_for) return 1;
  return hk_min64(most, hk_ceil_div(8 * t->threads, images));
}

static bool can_keep(const hk_geom *g, const hk_kernel *kernel) { return g->c <= HK_PLANES_PANEL / kernel->nr; }

void hk_planes_flat_derive(const hk_task *t, hk_decision *d) {
  const hk_geom *g = &t->geom;
  int64_t *k = d->knob;
  if (k[HK_PLANES_CHUNKS] < 0) k[HK_PLANES_CHUNKS] = choose_chunks(t, d->kernel);
  if (k[HK_PLANES_AHEAD] < 0) k[HK_PLANES_AHEAD] = hk_planes_ahead(g);
  /* Copies cost vectors of 32 bytes nothing, and the channels of a strip lie a page apart: Zen 4, 256-128_56 91 to 95 %
   * of the peak, 384-64_14 92 to 97. Stores of 64 bytes hold the products up: 64-64_56 99 to 97. */
  if (k[HK_PLANES_KEEP] < 0)
    k[HK_PLANES_KEEP] = hk_isa_lanes(d->kernel->isa) == 8 && can_keep(g, d->kernel) && g->k > 2 * d->kernel->mr;
  if (k[HK_PLANES_REST] < 0) k[HK_PLANES_REST] = hk_planes_rest_pays(g, d->kernel);
}

bool hk_planes_flat_fits(const hk_task *t, const hk_decision *d, char *why) {
  const int64_t *k = d->knob, most = most_chunks(t, d->kernel);
  if (k[HK_PLANES_CHUNKS] < 1 || k[HK_PLANES_CHUNKS] > most) {
    snprintf(why, HK_REASON, "chunks = %lld must be 1..%lld", (long long)k[HK_PLANES_CHUNKS], (long long)most);
    return false;
  }
  if (k[HK_PLANES_KEEP] && !can_keep(&t->geom, d->kernel))
    return hk_refuse(why, "keep = 1: a strip exceeds the buffer");
  return !k[HK_PLANES_REST] || hk_planes_rest(&t->geom, d->kernel) ||
         hk_refuse(why, "rest = 1 needs vectors of 16 and 1 to 8 pixels behind the last whole one");
}

void hk_planes_cut(const hk_geom *g, const hk_decision *d, hk_planes_own *o) {
  o->chunks = d->knob[HK_PLANES_CHUNKS];
  o->ahead = d->knob[HK_PLANES_AHEAD];
  o->keeps = d->knob[HK_PLANES_KEEP];
  o->rest = d->knob[HK_PLANES_REST] ? hk_planes_rest(g, d->kernel) : NULL;
  const int64_t vectors = o->rest ? g->pixels / o->lanes : hk_ceil_div(g->pixels, o->lanes);
  o->cuts = hk_ceil_div(vectors, o->most);
  o->each = vectors / o->cuts;
  o->more = vectors % o->cuts;
}

/* Strips first..end-1 of an image, cut as hk_strip_get does: `more` of one vector more than the rest. */
static void run_chunk(const hk_plan *plan, const hk_pgemm_args *a, int64_t first, int64_t end) {
  const hk_planes_own *o = plan->own;
  const hk_kernel *kernel = plan->decision.kernel;
  const int64_t pixels = plan->task.geom.pixels, each = o->each, more = o->more;
  const bool moved = end == o->cuts && (o->cuts * each + more) * o->lanes > pixels;
  const int64_t last = moved ? end - 1 : end;
  const int64_t turn = hk_max64(first, hk_min64(more, last));
  run_strips(kernel, *a, first * (each + 1) * o->lanes, each + 1, turn - first);
  run_strips(kernel, *a, (turn * each + more) * o->lanes, each, last - turn);
  if (moved) run_strips(kernel, *a, pixels - each * o->lanes, each, 1);
  if (end == o->cuts && o->rest) run_strips(o->rest, *a, pixels - hk_isa_lanes(o->rest->isa), 1, 1);
}

static void body(void *context, int64_t i) {
  const job *j = context;
  const hk_plan *plan = j->plan;
  const hk_planes_own *o = plan->own;
  const hk_geom *g = &plan->task.geom;
  const hk_fuse *fuse = &o->fuse;
  const hk_epi *epi = &plan->task.epi;
  int64_t split = 0, chunk = 0, group = 0, n = 0;
  if (i) { /* spares a single small job the divisions */
    const int64_t image = i / o->splits / o->chunks;
    split = i % o->splits, chunk = i / o->splits % o->chunks, group = image % g->groups, n = image / g->groups;
  }
  const bool one = o->chunks == 1;
  const int64_t first = one ? 0 : chunk * o->cuts / o->chunks, end = one ? o->cuts : (chunk + 1) * o->cuts / o->chunks;
  const hk_pgemm_segment x = {(const float *)j->call->x + n * g->x.outer + group * g->x.group, 0, g->c};
  _Alignas(HK_ALIGN) float scale[HK_PLANES_SET], bias[HK_PLANES_SET], kept[HK_PLANES_PANEL];
  hk_pgemm_args a = {.depth = g->gk,
                     .segments = 1,
                     .b_step = g->x.channel,
                     .seg = &x,
                     .prefetch = o->ahead,
                     .flags = fuse->flags,
                     .beta = fuse->beta,
                     .lo = fuse->lo,
                     .hi = fuse->hi,
                     .scale = scale,
                     .bias = bias,
                     .c_step = epi->c.channel,
                     .y_step = g->y.channel,
                     .kept = o->keeps ? kept : NULL};
  for (int64_t s = split * o->bs; s < hk_min64(o->groups_m, (split + 1) * o->bs); s++) {
    const int64_t m0 = s * o->bm, k = group * g->k + m0;
    a.count = hk_min64(o->bm, g->k - m0);
    a.a = j->packed + k * g->gk;
    a.y = (float *)j->call->y + n * g->y.outer + group * g->y.group + m0 * g->y.channel;
    if (epi->e.residual)
      a.c = (const float *)j->call->c + n * epi->c.outer + group * epi->c.group + m0 * epi->c.channel;
    if (fuse->flags & HK_IGEMM_AFFINE) hk_fuse_affine(plan, j->call, k, a.count, a.count, scale, bias);
    run_chunk(plan, &a, first, end);
  }
}

void hk_planes_run_flat(const hk_plan *plan, const hk_call *call, const float *packed) {
  const hk_geom *g = &plan->task.geom;
  const hk_planes_own *o = plan->own;
  job j = {plan, call, packed};
  hk_plan_parallel(plan, g->n * g->groups * o->chunks * o->splits, body, &j);
}
