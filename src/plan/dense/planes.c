/* planes: dense convolution with vectors along pixels (channels-first). Strips of output pixels are gathered from x tap
 * by tap into a panel that stays in L2 (padding, stride and dilation end there; a piece of the im2col matrix at a time,
 * never the matrix), and multiplied by broadcast weights packed by tiles of output channels. Any strides of x, f and y;
 * best where pixels are adjacent. Pointwise strips that lie in x as they are wanted are not gathered (flat,
 * planes_flat.c). Refuses other types than f32, gates and streaming state.
 *
 * Loops: (group, strip, bs sets of bm channels) are the jobs; in a job sets of channels, then pieces of the reduction,
 * whose sums are carried exactly: bits depend on no knob. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/planes.h"

int64_t hk_strip_count(int64_t pixels, int64_t lanes, int64_t most) {
  return hk_ceil_div(hk_ceil_div(pixels, lanes), most);
}

hk_strip hk_strip_get(int64_t pixels, int64_t lanes, int64_t most, int64_t index) {
  const int64_t vectors = hk_ceil_div(pixels, lanes), count = hk_ceil_div(vectors, most);
  const int64_t each = vectors / count, more = vectors % count;
  hk_strip s = {.first = (index * each + hk_min64(index, more)) * lanes, .vectors = each + (index < more)};
  s.columns = hk_min64(s.vectors * lanes, pixels - s.first);
  return s;
}

void hk_planes_pack(const hk_geom *g, const float *f, const hk_planes_piece *piece, float *to) {
  const int64_t end = piece->m0 + piece->count;
  for (int64_t m = piece->m0; m < end;) {
    const int64_t rows = hk_tile_rows(end - m, piece->mr);
    for (int64_t r = piece->r0; r < piece->r1; r++) {
      const int64_t tap = r / g->c, c = r % g->c;
      const int64_t s2 = tap % g->win[2], s1 = tap / g->win[2] % g->win[1], s0 = tap / g->win[2] / g->win[1];
      const float *from = f + c * g->f.channel + s0 * g->f.at[0] + s1 * g->f.at[1] + s2 * g->f.at[2];
      for (int64_t i = 0; i < rows; i++) *to++ = from[(m + i) * g->f.outer];
    }
    m += rows;
  }
}

typedef struct pack_job {
  const hk_plan *plan;
  const float *f;
  float *to;
} pack_job;

static void pack_body(void *context, int64_t i) {
  const pack_job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t bm = j->plan->decision.knob[HK_PLANES_BM], sets = hk_ceil_div(g->k, bm);
  const int64_t group = i / sets, m0 = i % sets * bm;
  const hk_planes_piece piece = {m0, hk_min64(bm, g->k - m0), j->plan->decision.kernel->mr, 0, g->gk};
  hk_planes_pack(g, j->f + group * g->f.group, &piece, j->to + (group * g->k + m0) * g->gk);
}

void hk_planes_pack_all(const hk_plan *plan, const float *f, float *to) {
  const hk_geom *g = &plan->task.geom;
  pack_job j = {plan, f, to};
  hk_plan_parallel(plan, g->groups * hk_ceil_div(g->k, plan->decision.knob[HK_PLANES_BM]), pack_body, &j);
}

static size_t packed_bytes(const hk_geom *g) { return (size_t)(g->groups * g->k * g->gk) * sizeof(float); }

static int64_t most_channels(const hk_kernel *k, bool flat) {
  return flat ? HK_PLANES_SET : hk_min64(HK_PLANES_SET, HK_PLANES_PARTIAL / k->nr);
}

static bool applies(const hk_task *t, const hk_kernel *k, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) no = "x and f must be f32";
  else if (k->isa > t->isa) no = "the ISA of the kernel is above the cap";
  else if (t->epi.e.gate) no = "a gate needs both halves of a channel pair in one tile";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "x, f or y is empty";
  return !no || hk_refuse(why, no);
}

/* Most strips gathered at once. Sums that wait for the next piece of the reduction have room for one strip: the whole
 * of it must be gathered at once. */
static int64_t most_strips(const hk_task *t, const hk_decision *d) {
  const int64_t nr = d->kernel->nr;
  if (d->knob[HK_PLANES_FLAT] || d->knob[HK_PLANES_PACK] == HK_PACK_BLOCK || !hk_fuse_make(t, false).all ||
      t->geom.taps > HK_PLANES_SEGMENTS)
    return 1;
  return hk_max64(1, hk_min64(HK_BLOCK_MAX / nr, HK_PLANES_PANEL / nr / t->geom.gk));
}

/* What a list of pieces costs is shared by the strips gathered at once. Zen 4, 4 channels of 64 x 64 to 320: a panel of
 * all of L1 costs narrow strips 6 %, 3 channels of 224 x 224 to 64 with wide ones gain 5. */
static int64_t choose_wide(const hk_task *t, const hk_decision *d) {
  const int64_t nr = d->kernel->nr, room = (nr >= 64 ? hk_cost_l1() : hk_cost_l1() / 2) / (int64_t)sizeof(float);
  return t->geom.taps == 1 ? 1 : hk_max64(1, hk_min64(most_strips(t, d), room / nr / t->geom.gk));
}

static void derive(const hk_task *t, hk_decision *d) {
  int64_t *k = d->knob;
  if (k[HK_PLANES_WIDE] < 0) k[HK_PLANES_WIDE] = choose_wide(t, d);
  if (k[HK_PLANES_FLAT]) hk_planes_flat_derive(t, d);
  for (int i = HK_PLANES_CHUNKS; i <= HK_PLANES_REST; i++)
    if (k[i] < 0) k[i] = 0;
}

static bool derived_fit(const hk_task *t, const hk_decision *d, char *why) {
  const int64_t *k = d->knob, most = most_strips(t, d);
  if (k[HK_PLANES_WIDE] > most) {
    snprintf(why, HK_REASON, "wide = %lld must be 1..%lld", (long long)k[HK_PLANES_WIDE], (long long)most);
    return false;
  }
  if (k[HK_PLANES_FLAT]) return hk_planes_flat_fits(t, d, why);
  return !(k[HK_PLANES_CHUNKS] || k[HK_PLANES_AHEAD] || k[HK_PLANES_KEEP] || k[HK_PLANES_REST]) ||
         hk_refuse(why, "chunks, ahead, keep and rest need flat = 1");
}

/* Rows of outputs that the kernel does not store: where y's pixels are apart each run of a strip that lies in one row
 * of y, or each pixel; else those of strips that cross from one image to the next. */
static void count_stores(const hk_task *t, const hk_decision *d, hk_work *w) {
  const hk_geom *g = &t->geom;
  const bool apart = hk_grid_count(g) > 1, stored = hk_fuse_make(t, false).all && g->y.at[2] == 1 && !apart;
  const double outputs = (double)g->gm * (double)(g->groups * g->k), strips = (double)g->gm / d->kernel->nr;
  const double borders = g->pixels % d->kernel->nr && !d->knob[HK_PLANES_FLAT] ? (double)(g->n - 1) : 0;
  const double crossing = fmin(1, borders / fmax(1, strips)), rows = (double)(g->gm / hk_max64(1, g->out[2]));
  if (stored && crossing == 0) return;
  hk_work all = {0};
  hk_work_store(&all, t, false, apart && g->in_dil[2] > 1 ? outputs : (rows + strips) * (double)(g->groups * g->k));
  w->rows = all.rows * (stored ? crossing : 1);
  w->values = all.values * (stored ? crossing : 1);
}

static double predict(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  const int64_t lanes = hk_isa_lanes(d->kernel->isa), sets = hk_ceil_div(g->k, d->knob[HK_PLANES_BM]);
  double live = 1; /* share of taps that input dilation leaves */
  for (int i = 0; i < 3; i++) live /= (double)g->in_dil[i];
  const bool flat = d->knob[HK_PLANES_FLAT];
  double vectors =
      (double)g->groups * (double)hk_grid_count(g) * (double)hk_ceil_div(hk_ceil_div(g->gm, hk_grid_count(g)), lanes);
  /* a tile of one short vector takes two thirds of a long one's time: its six sums wait for each other */
  if (flat && d->knob[HK_PLANES_REST]) vectors = (double)(g->groups * g->n) * ((double)(g->pixels / lanes) + 0.67);
  const double rows = (double)g->gk * live;
  const double peak = hk_cost_peak(d->kernel->isa);
  const bool kept = flat && t->isa == HK_ISA_AVX2 && g->c * d->kernel->nr * (int64_t)sizeof(float) <= hk_cost_l1();
  hk_work w = {.products = vectors * rows * (double)(g->k * lanes) * 2.0 / peak};
  if (flat && g->k <= 2)
    w.products *=
        1.6; /* few sums wait for each other (4 groups of 32 and 64 channels to one and two, 14 x 14, 7 x 7) */
  /* gathering a vector: a copy, two loads and a shuffle, or an element at a time */
  const int64_t step = g->stride[2] * g->x.at[2];
  double each = step == 1 ? 2.5 : step == 2 ? 5 : 2.0 * (double)lanes;
  /* and each piece of a row, of which a strip of a narrow image has several (129 channels of 28 x 28) */
  if (g->out[2] < d->kernel->nr) each += 3.0 * (double)lanes / (double)hk_max64(g->out[2], 1);
  const bool one = g->gk <= HK_PLANES_PANEL / d->kernel->nr;
  if (!flat) w.cycles = vectors * rows * each * (double)(one ? 1 : sets);
  count_stores(t, d, &w);
  /* the weights are read again for every strip */
  const int64_t of_group = hk_ceil_div(hk_ceil_div(g->gm, hk_grid_count(g)), d->kernel->nr);
  const double strips = (double)(g->groups * hk_grid_count(g) * of_group);
  /* setting a strip up; each tap of it is a list of pieces to gather (3 channels of 224 x 224: 70 ns a tap) */
  w.cycles +=
      flat ? 30 * strips : (300 + 150 * (double)g->taps) * strips / (double)hk_min64(of_group, d->knob[HK_PLANES_WIDE]);
  w.moved = hk_cost_move((double)packed_bytes(g) / (double)g->groups * strips, (double)packed_bytes(g));
  const int64_t jobs = (int64_t)hk_max64(1, (int64_t)(vectors / (double)(d->kernel->nr / lanes))) *
                       hk_ceil_div(sets, d->knob[HK_PLANES_BS]);
  if (!t->f_now && d->knob[HK_PLANES_PACK] == HK_PACK_WHOLE)
    w.seconds += hk_cost_move(2.0 * (double)packed_bytes(g), 1e8) * 4;
  if (d->knob[HK_PLANES_PACK] == HK_PACK_BLOCK) w.products *= 1.6, w.cycles *= 1.6;
  /* pixels that are prefetched and kept: half of the waiting (Zen 4, 32 channels of 112 x 112 to 16: 126 us,
   * grouped 141) */
  w.moved += (kept && hk_planes_ahead(g) ? 0.5 : 1) * hk_cost_move(g->bytes, g->bytes);
  return hk_cost_seconds(flat ? &hk_cost_here()->flat : &hk_cost_here()->planes, &w, jobs, t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  const int64_t *k = d->knob, lanes = hk_isa_lanes(d->kernel->isa);
  if (k[HK_PLANES_FLAT] && (k[HK_PLANES_PACK] != HK_PACK_WHOLE || !hk_planes_flat(t, lanes, d->kernel->nr / lanes))) {
    snprintf(why, HK_REASON, "flat = 1 needs one tap, stride 1, no padding, pixels in one line and packed weights");
    return false;
  }
  const int64_t most = most_channels(d->kernel, k[HK_PLANES_FLAT]);
  if (k[HK_PLANES_BM] > most || (k[HK_PLANES_PACK] == HK_PACK_BLOCK && t->f_now)) {
    snprintf(why, HK_REASON, "needs bm <= %lld, pack %s", (long long)most, t->f_now ? "0" : "0 or 1");
    return false;
  }
  derive(t, d);
  if (!derived_fit(t, d, why)) return false;
  d->workspace_bytes = !t->f_now && k[HK_PLANES_PACK] == HK_PACK_WHOLE ? packed_bytes(g) : 0;
  d->predicted_s = predict(t, d);
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!applies(t, d->kernel, why)) return false;
  d->knob[HK_PLANES_PACK] = HK_PACK_WHOLE;
  if (!t->f_now && t->options.limit_workspace && packed_bytes(g) > t->options.workspace_limit_bytes)
    d->knob[HK_PLANES_PACK] = HK_PACK_BLOCK;
  const int64_t lanes = hk_isa_lanes(d->kernel->isa);
  d->knob[HK_PLANES_FLAT] = d->knob[HK_PLANES_PACK] == HK_PACK_WHOLE && hk_planes_flat(t, lanes, d->kernel->nr / lanes);
  const int64_t most = most_channels(d->kernel, d->knob[HK_PLANES_FLAT]), sets = hk_ceil_div(g->k, most);
  d->knob[HK_PLANES_BM] = hk_min64(most, hk_ceil_div(g->k, sets));
  const int64_t strips = g->groups * hk_strip_count(g->gm, lanes, d->kernel->nr / lanes);
  /* few strips: the sets of channels are spread over the threads too */
  d->knob[HK_PLANES_BS] = sets;
  if (t->threads > 1 && strips < 8 * t->threads) {
    d->knob[HK_PLANES_BM] = hk_min64(d->knob[HK_PLANES_BM], hk_max64(d->kernel->mr, g->k / 4));
    d->knob[HK_PLANES_BS] = 1;
  }
  return finish(t, d, why);
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  *d = *base;
  if (index == 0) d->knob[HK_PLANES_BM] = hk_max64(1, base->knob[HK_PLANES_BM] / 2);
  else if (index == 1) d->knob[HK_PLANES_BM] = hk_max64(1, base->knob[HK_PLANES_BM] / 4);
  else if (index == 2 && base->knob[HK_PLANES_FLAT]) d->knob[HK_PLANES_FLAT] = 0;
  else if (index == 2 + (base->knob[HK_PLANES_FLAT] != 0) && !t->f_now)
    d->knob[HK_PLANES_PACK] = HK_PACK_BLOCK, d->knob[HK_PLANES_FLAT] = 0;
  else if (index == 2 + (base->knob[HK_PLANES_FLAT] != 0) + !t->f_now) {
    derive(t, d);
    if (base->knob[HK_PLANES_FLAT]) d->knob[HK_PLANES_AHEAD] = !d->knob[HK_PLANES_AHEAD];
    else if (d->knob[HK_PLANES_WIDE] > 1) d->knob[HK_PLANES_WIDE] = 1;
    else return false;
  } else return false;
  if (!d->knob[HK_PLANES_FLAT])
    d->knob[HK_PLANES_BM] = hk_min64(d->knob[HK_PLANES_BM], most_channels(d->kernel, false));
  return finish(t, d, why);
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  return applies(t, d->kernel, why) && finish(t, d, why);
}

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  const int64_t *k = plan->decision.knob;
  hk_planes_own *o = hk_alloc_zero(sizeof *o);
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  plan->own = o;
  o->fuse = hk_fuse_make(&plan->task, false);
  o->gather = hk_kernel_best(HK_FAMILY_GATHER, plan->decision.kernel->isa);
  o->lanes = hk_isa_lanes(plan->decision.kernel->isa);
  o->most = plan->decision.kernel->nr / o->lanes;
  o->bm = k[HK_PLANES_BM];
  o->groups_m = hk_ceil_div(g->k, o->bm);
  o->bs = k[HK_PLANES_BS];
  o->splits = hk_ceil_div(o->groups_m, o->bs);
  o->wide = k[HK_PLANES_WIDE];
  if (k[HK_PLANES_FLAT]) hk_planes_cut(g, &plan->decision, o);
  o->strips = hk_grid_pieces(g, o->lanes * o->most * o->wide);
  float *to;
  const hk_status s = hk_plan_pack_room(plan, g->groups * g->k * g->gk, sizeof *to, &o->bm, 1, &to);
  if (to) hk_planes_pack_all(plan, plan->raw_f, to);
  return s;
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_planes_own *o = plan->own;
  hk_text_add(t, " gather=%s bm=%lld splits=%lld strips=%lld wide=%lld chunks=%lld", o->gather->name, (long long)o->bm,
              (long long)o->splits, (long long)o->strips, (long long)o->wide, (long long)o->chunks);
  hk_text_add(t, " cuts=%lld ahead=%d keeps=%d rest=%s fused=%d", (long long)o->cuts, o->ahead, o->keeps,
              o->rest ? o->rest->name : "none", o->fuse.all);
}

const hk_algo hk_algo_planes = {
    .name = "planes",
    .summary = "dense over adjacent pixels (channels-first): strips of pixels gathered tap by tap into L2",
    .knobs = {HK_KNOB_OF("bm", K), HK_KNOB_OF("bs", K), HK_KNOB("pack", 0, HK_PACK_BLOCK), HK_KNOB("flat", 0, 1),
              HK_KNOB_DERIVED("wide", 1, HK_BLOCK_MAX), HK_KNOB_DERIVED("chunks", 0, HK_THREAD_PIECES),
              HK_KNOB_DERIVED("ahead", 0, 1), HK_KNOB_DERIVED("keep", 0, 1), HK_KNOB_DERIVED("rest", 0, 1)},
    .family = HK_FAMILY_PGEMM,
    .device = HK_CPU,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = hk_planes_run,
    .destroy = destroy,
    .trace = trace};
