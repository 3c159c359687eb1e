/* Filter gradients on the tensor cores of Hopper GPUs (src/cuda/gradient, docs/cuda.md): problems whose contiguous
 * dimensions are the batch of x and the output channels of f, as those of channels-last activations are in the problem
 * that hk_problem_grad_filter makes. The reduction, over images and positions of the window, is cut into slices. Offers
 * the tile and the slices that the estimate ranks first; other tiles, and other slices of the best, are variations. */
#include <stdio.h>
#include <string.h>

#include "cuda/gradient/outer.h"
#include "plan/gpu/gpu.h"

enum { BM, BN, CM, CN, STRIP, SLICES }; /* knobs; slices, which the problem and the tile determine, is derived */

#define REFUSE(...) return snprintf(why, HK_REASON, __VA_ARGS__), false

typedef struct own_state {
  hk_cu_outer_state outer;
} own_state;

static bool takes(const hk_task *t, hk_cu_device *here, hk_cu_outer_shape *s, char *why) {
  if (!hk_plan_cuda_takes(t, here, why)) return false;
  if (t->options.unaligned) REFUSE("options.unaligned is 1: TMA needs x and f at multiples of 16 bytes");
  if (t->geom.acc_type != HK_F32) REFUSE("sums are not f32");
  return hk_cu_outer_shape_make(&t->geom, &t->epi, s, why);
}

static const hk_cu_outer_row *find(const hk_task *t, const hk_decision *d) {
  for (int i = 0; i < hk_cu_outer_row_count; ++i) {
    const hk_cu_outer_row *r = &hk_cu_outer_rows[i];
    if (r->type == t->geom.x_type && hk_cu_outer_row_m(r) == d->knob[BM] && hk_cu_outer_row_n(r) == d->knob[BN] &&
        r->cm == d->knob[CM] && r->cn == d->knob[CN] && r->strip == d->knob[STRIP])
      return r;
  }
  return NULL;
}

static size_t room(const hk_task *t) {
  return t->options.limit_workspace ? t->options.workspace_limit_bytes : SIZE_MAX;
}

static void fill(const hk_cu_outer_row *r, const hk_cu_outer_shape *s, int64_t slices, int processors, hk_decision *d) {
  d->knob[BM] = hk_cu_outer_row_m(r), d->knob[BN] = hk_cu_outer_row_n(r);
  d->knob[CM] = r->cm, d->knob[CN] = r->cn, d->knob[STRIP] = r->strip, d->knob[SLICES] = slices;
  d->predicted_s = hk_cu_outer_seconds(r, s, slices, processors);
  d->workspace_bytes = hk_cu_outer_bytes(s, slices);
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  hk_cu_device here;
  hk_cu_outer_shape s;
  bool any = false;
  if (!takes(t, &here, &s, why)) return false;
  snprintf(why, HK_REASON, "no tile for %s", hk_type_name(t->geom.x_type));
  for (int i = 0; i < hk_cu_outer_row_count; ++i) {
    const hk_cu_outer_row *r = &hk_cu_outer_rows[i];
    if (r->type != t->geom.x_type || !hk_cu_outer_row_takes(r, &s, why)) continue;
    /* a limit that no number of slices meets is refused for all algorithms in one place */
    const int64_t slices = hk_max64(1, hk_cu_outer_slices(r, &s, room(t)));
    hk_decision one = *d;
    fill(r, &s, slices, here.processors, &one);
    if (!any || one.predicted_s < d->predicted_s) *d = one;
    any = true;
  }
  return any;
}

/* Slices of the index-th variation of a tile: its best, half and twice as many, one. */
static int64_t other_slices(int64_t best, int index) {
  return index == 0 ? best : index == 1 ? hk_max64(1, best / 2) : index == 2 ? best * 2 : 1;
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  hk_cu_device here;
  hk_cu_outer_shape s;
  char why[HK_REASON];
  if (!takes(t, &here, &s, why)) return false;
  for (int i = 0; i < hk_cu_outer_row_count; ++i) {
    const hk_cu_outer_row *r = &hk_cu_outer_rows[i];
    if (r->type != t->geom.x_type || !hk_cu_outer_row_takes(r, &s, why)) continue;
    const int64_t best = hk_max64(1, hk_cu_outer_slices(r, &s, room(t)));
    for (int j = 0; j < 4; ++j) {
      const int64_t slices = other_slices(best, j);
      hk_decision one = *base;
      fill(r, &s, slices, here.processors, &one);
      if (!memcmp(one.knob, base->knob, sizeof one.knob) || (j && slices == best) || (j == 3 && best / 2 <= 1) ||
          slices > hk_cu_outer_blocks(r, &s))
        continue;
      if (one.workspace_bytes > room(t) || index-- > 0) continue;
      *d = one;
      return true;
    }
  }
  return false;
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  const hk_cu_outer_row *r = find(t, d);
  hk_cu_device here;
  hk_cu_outer_shape s;
  if (!r) REFUSE("no such tile for %s", hk_type_name(t->geom.x_type));
  if (!takes(t, &here, &s, why) || !hk_cu_outer_row_takes(r, &s, why)) return false;
  int64_t slices = d->knob[SLICES];
  if (slices == HK_KNOB_AUTO) slices = hk_max64(1, hk_cu_outer_slices(r, &s, room(t)));
  if (slices > hk_cu_outer_blocks(r, &s))
    REFUSE("slices = %lld must not exceed the %lld blocks of %d pixels", (long long)slices,
           (long long)hk_cu_outer_blocks(r, &s), r->px);
  if ((double)hk_cu_outer_units(r, &s) * (double)slices > 0x1p30) REFUSE("more than 2^30 tiles and slices");
  fill(r, &s, slices, here.processors, d);
  return true;
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  const hk_cu_outer_row *row = find(t, &plan->decision);
  hk_cu_weights *w;
  hk_cu_outer_shape shape;
  char why[HK_REASON];
  own_state *own = plan->own = hk_alloc_zero(sizeof *own);
  if (!own) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!row || !hk_cu_outer_shape_make(&t->geom, &t->epi, &shape, why))
    return hk_fail(HK_UNSUPPORTED, "no such wgmma_outer tile for this problem");
  /* a batch-invariant decision was made for one image */
  plan->decision.workspace_bytes = hk_cu_outer_bytes(&shape, plan->decision.knob[SLICES]);
  hk_status s = hk_cu_outer_build(&own->outer, row, &t->geom, &t->epi, plan->decision.knob[SLICES]);
  if (!s) s = hk_plan_cuda_weights(plan, &w);
  if (!s && t->f_now && !hk_plan_shares(plan)) {
    s = hk_cu_filters_make(&w->f, &t->geom, plan->raw_f, &w->f_shift);
    plan->packed->f_bytes = w->f.bytes;
  }
  return s;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const own_state *own = plan->own;
  const hk_cu_weights *w = plan->packed->f;
  hk_cu_call c = hk_plan_cuda_call(plan, call);
  if (plan->task.f_now) c.f = (const char *)w->f.data + w->f_shift * (int64_t)hk_type_bytes(plan->task.geom.f_type);
  return hk_cu_outer_run(&own->outer, &c, w->slopes.data);
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const own_state *own = plan->own;
  const hk_cu_outer *p = &own->outer.params;
  hk_text_add(t, " kernel=%s blocks=%lld join=%d rows=%d columns=%d k_blocks=%d", own->outer.row->name,
              (long long)own->outer.blocks, p->join, p->rows, p->columns, p->k_blocks);
  hk_text_add(t, " x_load=%d f_load=%d added=%d teams=%d pairs=%d quads=%d again=%d", p->x_load, p->f_load,
              own->outer.added, p->teams, p->pairs, p->quads, p->again);
}

const hk_algo hk_algo_wgmma_outer = {
    .name = "wgmma_outer",
    .summary = "filter gradients on Hopper tensor cores: channels of dy by channels of x, summed over pixels",
    .knobs = {HK_KNOB("bm", 1, 512), HK_KNOB("bn", 1, 1024), HK_KNOB("cm", 1, 16), HK_KNOB("cn", 1, 16),
              HK_KNOB("strip", 0, 1), HK_KNOB_ORDER("slices", 1, 1 << 20)},
    .family = HK_FAMILY_NONE,
    .device = HK_CUDA,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = run,
    .destroy = destroy,
    .trace = trace};
