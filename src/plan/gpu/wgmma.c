/* Implicit GEMM on the tensor cores of Hopper GPUs, pixels by TMA: see docs/cuda.md. Two algorithms: wgmma reads x in
 * place; wgmma_relaid first copies x channels-last (or window by window, gather.c) into the workspace, for every x that
 * TMA's im2col mode cannot address. Both join narrow groups (join.c). Each offers the tile that the cost model of
 * src/cuda/igemm/rows.c predicts fastest; every other tile is a variation. */
#include "plan/gpu/gpu.h"

#include <stdio.h>

extern const hk_algo hk_algo_wgmma, hk_algo_wgmma_relaid;
/* knobs; those from FINISH on are derived:
 *   finish  hk_cu_finish, which the rest of the decision determines
 *   step    pixels from tile to tile; bm but for strips
 *   join    groups that are treated as one
 *   gather  wgmma_relaid: x is copied window by window, not pixel by pixel */
enum { BM, BN, STAGES, CM, CN, SPLIT, PARTS, TURNS, FINISH, STEP, JOIN, GATHER };

typedef struct own_state {
  hk_cu_igemm_state igemm;
  hk_cu_transpose_state transpose;
  hk_cu_gather_state gather;
  hk_cu_direct_state recompute;
  size_t x_bytes;      /* of the transposed x at the start of the workspace */
  size_t packed_bytes; /* of filters, before the raw ones that hk_recompute_nan reads */
  bool relaid, gathered, joined;
} own_state;

/* What the kernel sees: the task's geometry with its groups joined, or that of the transposed x. */
typedef struct sight {
  hk_geom from, g; /* joined; and laid out */
  hk_cu_filters filters;
  size_t x_bytes;
  int64_t join;
  bool relaid, gathered, joined;
} sight;

#define REFUSE(...) return snprintf(why, HK_REASON, __VA_ARGS__), false

static bool y_unaligned(const hk_task *t) { return t->options.unaligned || t->y_unaligned; }

/* Takes over join and gather of the decision, or chooses them where they are HK_KNOB_AUTO. */
static bool look(const hk_task *t, const hk_decision *d, sight *s, char *why) {
  const int64_t most = hk_cu_join_count(&t->geom, &t->epi, y_unaligned(t));
  hk_cu_map map;
  s->join = d->knob[JOIN] == HK_KNOB_AUTO ? most : d->knob[JOIN];
  if (s->join != 1 && s->join != most) REFUSE("join = %lld must be 1 or %lld", (long long)s->join, (long long)most);
  const int64_t joined = s->join;
  s->g = s->from = hk_cu_join(&t->geom, joined);
  s->filters = (hk_cu_filters){.groups = t->geom.groups, .channels = s->from.c};
  s->x_bytes = 0;
  s->joined = joined > 1;
  s->relaid = d->algo == &hk_algo_wgmma_relaid;
  /* filters laid out window by window know nothing of joined groups */
  const bool gathers = s->relaid && !s->joined && hk_cu_gather_takes(&s->from);
  s->gathered = d->knob[GATHER] == HK_KNOB_AUTO ? gathers : d->knob[GATHER];
  if (s->gathered && !gathers)
    REFUSE("gather = 1 needs wgmma_relaid, join = 1, one group, windows that do not overlap and few channels");
  if (!s->relaid) return hk_cu_map_make(&s->g, &map, why);
  if (s->gathered) {
    s->g = hk_cu_gather_geom(&s->from);
    s->filters = hk_cu_gather_filters(&s->from);
    s->x_bytes = (size_t)(s->g.x.outer * s->g.n) * hk_type_bytes(s->g.x_type);
    if (!hk_cu_map_make(&s->g, &map, why)) return false;
  } else {
    if (!hk_cu_transpose_takes(&s->from, &s->g, &s->x_bytes, why)) return false;
    s->filters = hk_cu_transpose_filters(&s->from);
    s->filters.groups = t->geom.groups;
  }
  s->x_bytes = (size_t)hk_round_up((int64_t)s->x_bytes, 128);
  return true;
}

static void fill(const hk_task *t, const sight *s, const hk_cu_row *r, int processors, hk_decision *d) {
  const hk_cu_finish finish = hk_cu_igemm_finish(r, &s->g, &t->epi, y_unaligned(t));
  const int64_t knob[] = {hk_cu_row_bm(r), r->bn, r->stages, r->cm, r->cn, r->split, r->parts, r->wgs < r->nc, finish};
  for (int i = 0; i < HK_COUNT(knob); ++i) d->knob[i] = knob[i];
  if (d->knob[STEP] == HK_KNOB_AUTO) d->knob[STEP] = hk_cu_igemm_step(r, &s->g, finish, processors);
  d->knob[JOIN] = s->join;
  d->knob[GATHER] = s->gathered;
  /* the pass over x: a launch, and x read and written at about 4.5 TB/s, value by value at a third of that; the pass
   * over y */
  d->predicted_s = hk_cu_row_seconds(r, &s->g, &t->epi, processors) +
                   (s->relaid ? 2e-6 + 2 * (double)s->x_bytes / (s->gathered ? 1.5e12 : 4.5e12) : 0);
  /* filters given at execute are packed each time: 185 us in all for 6.4 MB whose values are far apart, where tiles
   * take 50 */
  const bool runs = s->from.f.channel == 1 || s->from.f.outer == 1;
  if (!t->f_now) d->predicted_s += 2e-6 + (double)hk_cu_igemm_filter_bytes(r, &s->g) / (runs ? 1e12 : 5e10);
  if (s->joined)
    d->predicted_s += 4e-6 + (double)(t->geom.gm * t->geom.y_channels) * (double)hk_type_bytes(t->geom.y_type) / 3e12;
  d->workspace_bytes = s->x_bytes + (t->f_now ? 0 : hk_cu_igemm_filter_bytes(r, &s->g));
}

static const hk_cu_row *find(const hk_task *t, const hk_decision *d) {
  for (int i = 0; i < hk_cu_row_count; ++i) {
    const hk_cu_row *r = &hk_cu_rows[i];
    if (r->type == t->geom.x_type && hk_cu_row_bm(r) == d->knob[BM] && r->bn == d->knob[BN] &&
        r->stages == d->knob[STAGES] && r->cm == d->knob[CM] && r->cn == d->knob[CN] && r->split == d->knob[SPLIT] &&
        r->parts == d->knob[PARTS] && (r->wgs < r->nc) == (d->knob[TURNS] != 0))
      return r;
  }
  return NULL;
}

/* f32 goes to the tensor cores rounded to tf32 or split into two parts; options.math must allow which. */
static bool row_takes(const hk_task *t, const sight *s, const hk_cu_row *r, char *why) {
  if (r->type != t->geom.x_type) REFUSE("no kernel for %s", hk_type_name(t->geom.x_type));
  if (r->type == HK_F32 && !(t->options.math & (r->parts == 2 ? HK_MATH_SPLIT_F32 : HK_MATH_TF32)))
    REFUSE("f32 operands would be %s, which options.math does not allow",
           r->parts == 2 ? "split into tf32 parts" : "rounded to tf32");
  if (hk_cu_igemm_filter_bytes(r, &s->g) >> 33) REFUSE("packed filters would take more than 8 GB");
  return hk_cu_row_takes(r, &s->g, &t->epi, why);
}

/* Whether finish and step, where they are given, are those of the row. */
static bool finish_fits(const hk_task *t, const sight *s, const hk_cu_row *r, const hk_decision *d, char *why) {
  const hk_cu_finish finish = hk_cu_igemm_finish(r, &s->g, &t->epi, y_unaligned(t));
  const int64_t bm = hk_cu_row_bm(r), step = d->knob[STEP];
  if (d->knob[FINISH] != HK_KNOB_AUTO && d->knob[FINISH] != (int64_t)finish)
    REFUSE("finish = %lld must be %d for this y and epilogue", (long long)d->knob[FINISH], (int)finish);
  if (step == HK_KNOB_AUTO || step == bm) return true;
  if (finish != HK_FINISH_STRIP || step % 8 || step > bm || s->g.gm / step > 1 << 30)
    REFUSE("step = %lld must be bm = %lld, or with finish = 4 a smaller multiple of 8", (long long)step, (long long)bm);
  return true;
}

static bool takes(const hk_task *t, const hk_decision *d, hk_cu_device *here, sight *s, char *why) {
  if (!hk_plan_cuda_takes(t, here, why)) return false;
  if (t->geom.x_type != t->geom.f_type) REFUSE("x and f differ in type");
  if (t->geom.acc_type != HK_F32) REFUSE("sums are not f32");
  if (t->options.unaligned && d->algo == &hk_algo_wgmma)
    REFUSE("options.unaligned is 1: TMA needs x at a multiple of 16 bytes");
  return look(t, d, s, why);
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  hk_cu_device here;
  sight s;
  if (!takes(t, d, &here, &s, why)) return false;
  const hk_cu_row *best = NULL;
  double least = 0;
  snprintf(why, HK_REASON, "no kernel for %s", hk_type_name(t->geom.x_type));
  for (int i = 0; i < hk_cu_row_count; ++i) {
    const hk_cu_row *r = &hk_cu_rows[i];
    if (r->type != t->geom.x_type || !row_takes(t, &s, r, why)) continue;
    const double seconds = hk_cu_row_seconds(r, &s.g, &t->epi, here.processors);
    if (!best || seconds < least) best = r, least = seconds;
  }
  if (best) fill(t, &s, best, here.processors, d);
  return best != NULL;
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  hk_cu_device here;
  sight s;
  char why[HK_REASON];
  if (!takes(t, base, &here, &s, why)) return false;
  const hk_cu_row *chosen = find(t, base);
  for (int i = 0; i < hk_cu_row_count; ++i) {
    const hk_cu_row *r = &hk_cu_rows[i];
    if (r == chosen || !row_takes(t, &s, r, why) || index-- > 0) continue;
    *d = *base;
    fill(t, &s, r, here.processors, d);
    return true;
  }
  if (!s.gathered || index > 0) return false;
  *d = *base;
  d->knob[GATHER] = 0; /* pixel by pixel */
  return offer(t, d, why);
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  const hk_cu_row *r = find(t, d);
  hk_cu_device here;
  sight s;
  if (!r) REFUSE("no such tile for %s", hk_type_name(t->geom.x_type));
  if (!takes(t, d, &here, &s, why) || !row_takes(t, &s, r, why) || !finish_fits(t, &s, r, d, why)) return false;
  fill(t, &s, r, here.processors, d);
  return true;
}

/* A plan that launches nothing but the product, filters packed before, may run beside those of the other parts of y. */
static int chain_of(const hk_plan *plan, const sight *s) {
  const hk_task *t = &plan->task;
  if (!t->part_of || s->relaid || s->joined) return HK_CU_CHAIN_NONE;
  return t->part_of == 1 ? HK_CU_CHAIN_FIRST : HK_CU_CHAIN_NEXT;
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  const hk_cu_row *row = find(t, &plan->decision);
  hk_cu_weights *w;
  sight sight;
  char why[HK_REASON];
  own_state *own = plan->own = hk_alloc_zero(sizeof *own);
  if (!own) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!row || !look(t, &plan->decision, &sight, why))
    return hk_fail(HK_UNSUPPORTED, "no such wgmma tile for this problem");
  own->relaid = sight.relaid, own->gathered = sight.gathered, own->joined = sight.joined;
  own->x_bytes = sight.x_bytes;
  own->packed_bytes = hk_cu_igemm_filter_bytes(row, &sight.g);
  /* a batch-invariant decision was made for one image */
  plan->decision.workspace_bytes = sight.x_bytes + (t->f_now ? 0 : hk_cu_igemm_filter_bytes(row, &sight.g));
  const hk_cu_igemm_way way = {y_unaligned(t), (int)plan->decision.knob[STEP], chain_of(plan, &sight)};
  hk_status s = hk_cu_igemm_build(&own->igemm, row, &sight.g, &t->epi, &sight.filters, way);
  if (!s && own->gathered) s = hk_cu_gather_build(&own->gather, &sight.from);
  else if (!s && own->relaid) s = hk_cu_transpose_build(&own->transpose, &sight.from);
  if (!s && own->joined) s = hk_cu_recompute_build(&own->recompute, &t->geom, &t->epi);
  if (!s) s = hk_plan_cuda_weights(plan, &w);
  if (!s && t->f_now && !hk_plan_shares(plan))
    s = hk_plan_cuda_pack(plan, &own->igemm, own->packed_bytes, own->joined, w);
  if (!s) s = hk_plan_cuda_keep_order(plan, &own->igemm);
  /* tf32 keeps 11 of f32's 24 bits of each operand: two roundings of 2^-11 against eps = 2^-23. Split f32 loses the
   * product of the low parts, 2^-22, and what the tensor cores cut off when they add. */
  if (t->geom.x_type == HK_F32) plan->error_factor = row->parts == 2 ? 4 : 8192;
  /* The tensor cores add e4m3 products in about 14 bits until the sums go into f32: 2^-9 of sum |x||f| for any gk.
   * (With 2^-11 one of 182,730 random problems exceeded the bound of the norm, 1.7 times.) */
  if (t->geom.x_type == HK_F8E4M3)
    plan->error_factor = t->geom.gk < 16384 ? 16384.0 / (double)hk_max64(t->geom.gk, 1) : 1;
  return s;
}

static hk_status prepare(const hk_plan *plan, const hk_call *call) {
  const own_state *own = plan->own;
  hk_plan_cuda_enter();
  return hk_cu_igemm_pack(&own->igemm, call->f, call->workspace + own->x_bytes, call->stream);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const own_state *own = plan->own;
  const hk_cu_weights *w = plan->packed->f;
  hk_cu_call c = hk_plan_cuda_call(plan, call);
  hk_status s = HK_OK;
  if (own->joined &&
      (uintptr_t)call->y % 16) /* hk_recompute_nan reads 16 bytes at a time, whatever the product stores */
    return hk_fail(HK_INVALID, "y: %p is not 16-byte aligned; hk_options.unaligned plans for that", (void *)call->y);
  if (own->relaid) {
    s = own->gathered ? hk_cu_gather_run(&own->gather, call->x, call->workspace, call->stream)
                      : hk_cu_transpose_run(&own->transpose, call->x, call->workspace, call->stream);
    c.x = call->workspace;
  }
  if (plan->task.f_now) {
    c.f = w->f.data;
  } else if (!s) {
    c.f = call->workspace + own->x_bytes;
    if (!call->prepared) s = prepare(plan, call);
  }
  if (!s) s = hk_cu_igemm_run(&own->igemm, &c, w->slopes.data);
  if (s || !own->joined) return s;
  c.x = call->x;
  c.f = call->f;
  if (plan->task.f_now)
    c.f = (const char *)w->f.data + own->packed_bytes + w->f_shift * (int64_t)hk_type_bytes(plan->task.geom.f_type);
  return hk_cu_direct_run(&own->recompute, &c, w->slopes.data, NULL);
}

static void destroy(hk_plan *plan) {
  own_state *own = plan->own;
  if (own) hk_cu_igemm_free(&own->igemm);
  hk_free(own);
}

static void trace(const hk_plan *plan, hk_text *t) {
  const own_state *own = plan->own;
  const hk_cu_igemm *p = &own->igemm.params.product;
  hk_text_add(t, " kernel=%s blocks=%lld step=%d relaid=%d gathered=%d joined=%d", own->igemm.row->name,
              (long long)own->igemm.blocks, own->igemm.params.step, own->relaid, own->gathered, own->joined);
  hk_text_add(t, " wide=%d slab=%d transposed=%d strip=%d slim=%d tall=%d late=%d vector=%d", p->wide, p->slab,
              p->transposed, p->strip, p->slim, p->tall, p->late, p->vector);
}

#define KNOBS                                                                                                          \
  {                                                                                                                    \
    HK_KNOB("bm", 1, 512), HK_KNOB("bn", 1, 512), HK_KNOB("stages", 1, 64), HK_KNOB("cm", 1, 16),                      \
        HK_KNOB("cn", 1, 16), HK_KNOB("split", 0, 64), HK_KNOB("parts", 0, 64), HK_KNOB("turns", 0, 1),                \
        HK_KNOB_DERIVED("finish", 0, HK_FINISH_TALL), HK_KNOB_DERIVED("step", 1, 512), HK_KNOB_ORDER("join", 1, 64),   \
        HK_KNOB_ORDER("gather", 0, 1)                                                                                  \
  }
const hk_algo hk_algo_wgmma = {.name = "wgmma",
                               .summary = "implicit GEMM on Hopper tensor cores, x in place by TMA im2col",
                               .knobs = KNOBS,
                               .family = HK_FAMILY_NONE,
                               .device = HK_CUDA,
                               .folds = true,
                               .prepare = prepare,
                               .offer = offer,
                               .vary = vary,
                               .check = check,
                               .build = build,
                               .run = run,
                               .destroy = destroy,
                               .trace = trace};
const hk_algo hk_algo_wgmma_relaid = {
    .name = "wgmma_relaid",
    .summary = "wgmma after a pass that copies x channels-last, padded or gathered, into the workspace",
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
