/* strip: grouped and dense convolution of few channels per group that lie next to each other (channels-last), as
 * products of a few pixels and one to four vectors of a group's outputs. Any rank, window of at most 512 taps, stride,
 * padding and filter dilation, any number of outputs per group. f32; weights at creation; scale, bias, clamp and
 * residual in the kernel. No workspace. Refuses input dilation, gates, state, other epilogues, groups of the batch,
 * channels that are not adjacent. See strip.h. */

#include "cost/cost.h"
#include "plan/dense/strip.h"

#define MOST_INPUTS 256 /* of a group: more are for igemm, which cuts them into blocks */
#define MOST_PARTS 64   /* of a group */

static bool adjacent(const hk_strides *s, int64_t channels) { return s->channel == 1 || channels == 1; }

static bool reaches_far(const hk_geom *g) {
  int64_t reach = 0;
  for (int i = 0; i < 3; i++) {
    int64_t span;
    if (!hk_mul_checked(g->win[i] * g->dil[i], g->x.at[i] < 0 ? -g->x.at[i] : g->x.at[i], &span) || span > INT32_MAX)
      return true;
    reach += span;
  }
  return reach > INT32_MAX;
}

static bool supported(const hk_task *t, hk_dw_fuse *fuse, char *why) {
  const hk_geom *g = &t->geom;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) return hk_refuse(why, "x and f must be f32");
  if (g->c < 1 || g->k < 1 || g->gm == 0) return hk_refuse(why, "y is empty");
  if (g->batch_grouped) return hk_refuse(why, "batch_groups must be 1");
  if (!adjacent(&g->x, g->c) || !adjacent(&g->y, g->k))
    return hk_refuse(why, "the channels of x and y must be adjacent");
  if (g->c > MOST_INPUTS) return hk_refuse(why, "a group has more than 256 inputs");
  if (g->c == 1) return hk_refuse(why, "a group has one input");
  if (g->taps > HK_STRIP_TAPS) return hk_refuse(why, "the window has more than 512 taps");
  if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) return hk_refuse(why, "input dilation must be 1");
  if (!t->f_now) return hk_refuse(why, "needs the weights at creation");
  if (t->epi.e.gate || t->options.stateful) return hk_refuse(why, "epilogue.gate and options.stateful must be 0");
  if (!hk_dw_fuse_make(t, fuse)) return hk_refuse(why, "the epilogue is not one that kernels fuse");
  if (t->epi.e.residual && !adjacent(&t->epi.c, g->k))
    return hk_refuse(why, "the channels of the residual must be adjacent");
  return !reaches_far(g) || hk_refuse(why, "the window spans too much memory");
}

/* ---- sizes */

static int32_t registers(hk_isa isa) { return isa >= HK_ISA_AVX512 || isa == HK_ISA_NEON ? 32 : 16; }

static int64_t part_count(int64_t vectors, int32_t held) {
  const int64_t most = held >= 32 ? 4 : 3, best = held >= 32 ? 4 : 2;
  return hk_max64(hk_ceil_div(vectors, most), vectors / best);
}

static int64_t tap_weights(const hk_geom *g, const hk_strip *p, const hk_strip_cut *cut) {
  return cut->paired ? hk_round_up(g->c, 2) * p->vw : cut->vectors * p->vw * g->c;
}

static bool layout(const hk_task *t, const hk_decision *d, hk_strip *p, char *why) {
  const hk_geom *g = &t->geom;
  const int64_t *knob = d->knob;
  const int32_t held = registers(d->kernel->isa);
  *p = (hk_strip){.vw = hk_isa_lanes(d->kernel->isa)};
  const bool paired = d->kernel->nr == p->vw && p->vw > 1;
  if (!supported(t, &p->fuse, why)) return false;
  p->vectors = hk_ceil_div(g->k, p->vw);
  if (paired && p->vectors > 1) return hk_refuse(why, "pairs of inputs are for one vector of outputs");
  p->part_count = part_count(p->vectors, held);
  if (p->part_count > MOST_PARTS) return hk_refuse(why, "a group has too many outputs");
  p->together = knob[HK_STRIP_GROUPS];
  if (p->together > g->groups) return hk_refuse(why, "groups is at most the problem's groups");
  const int64_t each = p->vectors / p->part_count;
  p->cuts = p->vectors % p->part_count ? 2 : 1;
  for (int i = 0; i < p->cuts; i++) {
    const int64_t vectors = each + (p->cuts == 2 && i == 0);
    p->cut[i] = (hk_strip_cut){
        .vectors = vectors, .paired = paired, .most = paired ? HK_STRIP_PAIR_ROWS : HK_STRIP_ROWS(held, vectors)};
    if (p->together > 1) p->cut[i].call = 25.0 / (double)p->together;
  }
  p->blocks = p->part_count * hk_ceil_div(g->groups, p->together);
  p->f_group = paired ? g->taps * tap_weights(g, p, p->cut) : p->vectors * p->vw * g->gk;
  if (p->f_group > INT32_MAX) return hk_refuse(why, "a group has too many weights");
  p->way = knob[HK_STRIP_CUT];
  p->band = knob[HK_STRIP_BAND];
  p->shards = knob[HK_STRIP_SHARDS];
  p->parts = knob[HK_STRIP_PARTS];
  if (p->band > g->out[1]) return hk_refuse(why, "band is at most the output's rows");
  if (p->way == HK_STRIP_BY_PLANE && p->band < g->out[1]) return hk_refuse(why, "cut=1 has one band");
  p->bands = hk_ceil_div(g->out[1], p->band);
  p->pieces = p->way == HK_STRIP_BY_ROWS ? hk_ceil_div(p->parts, g->n * g->out[0] * p->bands) : 1;
  return true;
}

/* ---- decisions */

/* Seconds; less than 0: the pixels cannot be cut this way. */
static double predict(const hk_task *t, const hk_decision *d, const hk_strip *p) {
  const hk_geom *g = &t->geom;
  const double product = 2.0 * (double)p->vw / hk_cost_flops(d->kernel->isa);
  const double planes = (double)g->n * (double)g->out[0] * (double)g->groups;
  const int64_t larger = p->cuts == 2 ? p->vectors % p->part_count : p->part_count;
  const double each = hk_strip_cycles(g, p->way, &p->cut[0], product);
  if (each < 0) return each;
  double cycles = (double)larger * each;
  if (p->cuts == 2) cycles += (double)(p->part_count - larger) * hk_strip_cycles(g, p->way, &p->cut[1], product);
  /* dense: igemm's blocks keep more in L1 (Zen 4, AVX2: 32-16 and 16-96 of 112 x 112, 1 x 1, 7 %; 64-64 of 224 x 224, 6
   * %) */
  if (g->groups == 1) cycles *= g->taps == 1 ? 1.1 : g->c > 32 ? 1.05 : 1.0;
  /* more pixels than ways of L1, all of them in one set (512 channels of 28 x 28, stride 2: 357 us for 265) */
  if (p->way == HK_STRIP_BY_PLANE && g->x.at[2] * g->stride[2] * 4 % 4096 == 0)
    cycles *= p->vectors == 1 && p->cut[0].most > 8 ? 1.25 : g->stride[2] > 1 ? 1.06 : 1.0;
  if (p->together > 1) cycles *= 0.9;
  const hk_work w = {.cycles = planes * cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  return hk_cost_seconds(&hk_cost_here()->strip, &w, p->shards * p->parts, t->threads);
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  hk_strip p;
  if (!layout(t, d, &p, why)) return false;
  d->predicted_s = predict(t, d, &p);
  d->workspace_bytes = 0;
  return d->predicted_s >= 0 || hk_refuse(why, "the plane is too large for cut=1, or padded rows for cut=0");
}

/* The rows that a band reads stay in L2 while the parts of a group go over them; those of all groups where they share
 * lines. */
static int64_t choose_band(const hk_geom *g) {
  const int64_t wide = g->c * 4 % HK_ALIGN ? g->c * g->groups : g->c;
  const int64_t row = 4 * g->in[2] * wide, over = (g->win[1] - 1) * g->dil[1];
  const int64_t band = hk_max64(1, (hk_cost_l2() / 2 - over * row) / hk_max64(1, g->stride[1] * row));
  return hk_ceil_div(g->out[1], hk_ceil_div(g->out[1], band));
}

/* Groups that go tile by tile use whole lines of x and y once, wherever pixels lie; their weights come from L2. Few do
 * not pay for a call a tile. */
static int64_t choose_groups(const hk_geom *g, int64_t shards) {
  if (g->groups < 4) return 1;
  const int64_t weights = 4 * g->gk * hk_round_up(g->k, 16);
  return hk_max64(1, hk_min64(hk_ceil_div(g->groups, shards), hk_cost_l2() / 2 / weights));
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  hk_dw_fuse fuse;
  if (!supported(t, &fuse, why)) return false;
  hk_decision plane = *d;
  d->knob[HK_STRIP_CUT] = HK_STRIP_BY_ROWS;
  d->knob[HK_STRIP_BAND] = choose_band(g);
  const int64_t blocks =
      g->groups * part_count(hk_ceil_div(g->k, hk_isa_lanes(d->kernel->isa)), registers(d->kernel->isa));
  d->knob[HK_STRIP_SHARDS] = hk_min64(t->threads, blocks);
  d->knob[HK_STRIP_GROUPS] = plane.knob[HK_STRIP_GROUPS] =
      blocks == g->groups ? choose_groups(g, d->knob[HK_STRIP_SHARDS]) : 1;
  d->knob[HK_STRIP_PARTS] = 1;
  if (t->threads > 1 && blocks < 4 * t->threads) {
    const int64_t want = hk_ceil_div(4 * t->threads, d->knob[HK_STRIP_SHARDS]);
    d->knob[HK_STRIP_BAND] = hk_max64(1, hk_min64(d->knob[HK_STRIP_BAND], g->n * g->out[0] * g->out[1] / want));
    const int64_t bands = g->n * g->out[0] * hk_ceil_div(g->out[1], d->knob[HK_STRIP_BAND]);
    d->knob[HK_STRIP_PARTS] = hk_min64(want, bands * hk_max64(1, g->out[2] / 64));
  }
  const int64_t planes = g->n * g->out[0];
  plane.knob[HK_STRIP_CUT] = HK_STRIP_BY_PLANE;
  plane.knob[HK_STRIP_BAND] = g->out[1];
  plane.knob[HK_STRIP_SHARDS] = d->knob[HK_STRIP_SHARDS];
  plane.knob[HK_STRIP_PARTS] = hk_min64(d->knob[HK_STRIP_PARTS], planes);
  const bool rows = check(t, d, why);
  if (check(t, &plane, why) && (!rows || plane.predicted_s < d->predicted_s)) *d = plane;
  return rows || d->knob[HK_STRIP_CUT] == HK_STRIP_BY_PLANE;
}

/* The other way, smaller bands, a group after the other: those of them that there are. */
static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  for (int i = 0; i < 3; i++) {
    *d = *base;
    int64_t *knob = d->knob;
    if (i == 0) {
      knob[HK_STRIP_CUT] = !knob[HK_STRIP_CUT];
      knob[HK_STRIP_BAND] = knob[HK_STRIP_CUT] ? t->geom.out[1] : choose_band(&t->geom);
    } else {
      const int which = i == 1 ? HK_STRIP_BAND : HK_STRIP_GROUPS;
      if (knob[which] == 1) continue;
      knob[which] = i == 1 ? hk_max64(1, knob[which] / 4) : 1;
    }
    if (check(t, d, why) && index-- == 0) return true;
  }
  return false;
}

/* ---- build */

/* For each output along d the part of the window inside x; of very many the run asks one by one. False when memory is
 * out. */
static bool make_ranges(const hk_geom *g, int d, hk_strip_range **to) {
  if (g->out[d] > HK_STRIP_RANGES) return true;
  *to = hk_alloc((size_t)g->out[d] * sizeof **to);
  for (int64_t p = 0; *to && p < g->out[d]; p++) (*to)[p] = hk_strip_inside(g, d, p);
  return *to != NULL;
}

static bool make_parts(const hk_geom *g, hk_strip *p) {
  p->part = hk_alloc((size_t)p->part_count * sizeof *p->part);
  if (!p->part) return false;
  const int64_t larger = p->vectors % p->part_count;
  for (int64_t i = 0, first = 0; i < p->part_count; i++) {
    const int32_t cut = p->cuts == 2 && i >= larger;
    const int64_t width = p->cut[cut].vectors * p->vw;
    p->part[i] =
        (hk_strip_part){.first = first, .lanes = hk_min64(width, g->k - first), .f = first * g->gk, .cut = cut};
    first += width;
  }
  return true;
}

static void pack(const hk_geom *g, const hk_strip *p, const float *f, float *to) {
  for (int64_t group = 0; group < g->groups; group++)
    for (int64_t i = 0; i < p->part_count; i++) {
      const hk_strip_part *part = &p->part[i];
      const int64_t width = p->cut[part->cut].vectors * p->vw;
      for (int64_t t = 0; t < g->taps; t++)
        for (int64_t c = 0; c < g->c; c++) {
          const float *from = f + group * g->f.group + part->first * g->f.outer + c * g->f.channel + hk_dw_tap(g, t);
          for (int64_t l = 0; l < width; l++) *to++ = l < part->lanes ? from[l * g->f.outer] : 0.0f;
        }
    }
}

/* Lane by lane what hk_strip_args says of pairs. */
static void pack_pairs(const hk_geom *g, const hk_strip *p, const float *f, float *to) {
  for (int64_t group = 0; group < g->groups; group++)
    for (int64_t t = 0; t < g->taps; t++)
      for (int64_t c = 0; c < g->c; c += 2)
        for (int64_t l = 0; l < 2 * p->vw; l++) {
          const int64_t input = c + l % 2, pair = l % p->vw / 2, output = pair / 2 * 4 + l / p->vw * 2 + pair % 2;
          const bool exists = input < g->c && output < g->k;
          *to++ = exists ? f[group * g->f.group + output * g->f.outer + input * g->f.channel + hk_dw_tap(g, t)] : 0.0f;
        }
}

static void destroy(hk_plan *plan) {
  hk_strip *p = plan->own;
  if (p) {
    for (int i = 0; i < p->cuts; i++) {
      hk_free(p->cut[i].span);
      hk_free(p->cut[i].taps);
    }
    hk_free(p->part);
    hk_free(p->plane);
    hk_free(p->row);
    hk_free(p->zeros);
  }
  hk_free(p);
}

static hk_status pack_all(hk_plan *plan, const hk_strip *p) {
  float *to;
  const int64_t layout[] = {p->part_count, p->cut[0].vectors, p->cut[0].paired};
  const hk_status s =
      hk_plan_pack_room(plan, p->f_group * plan->task.geom.groups, sizeof *to, layout, HK_COUNT(layout), &to);
  if (to) (p->cut[0].paired ? pack_pairs : pack)(&plan->task.geom, p, plan->raw_f, to);
  return s;
}

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  const hk_epilogue *e = &plan->task.epi.e;
  char why[HK_REASON];
  hk_strip *p = plan->own = hk_alloc_zero(sizeof *p);
  if (!p) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!layout(&plan->task, &plan->decision, p, why)) return hk_fail(HK_UNSUPPORTED, "strip: %s", why);
  bool made = make_parts(g, p) && make_ranges(g, 0, &p->plane) && make_ranges(g, 1, &p->row) &&
              (p->zeros = hk_alloc_zero((size_t)g->c * sizeof(float)));
  for (int i = 0; i < p->cuts && made; i++)
    made = hk_strip_cut_make(&plan->task, p->way, &p->cut[i], tap_weights(g, p, &p->cut[i]));
  if (!made) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  const bool known = (!e->bias || plan->packed->bias) && (!e->scale || plan->packed->scale);
  if (p->shards * p->parts == 1 && !e->residual && known) plan->short_way.run_xy = hk_strip_run_xy;
  return pack_all(plan, p);
}

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_strip *p = plan->own;
  hk_text_add(t, " cuts=%d paired=%d blocks=%lld bands=%lld pieces=%lld", p->cuts, p->cut[0].paired,
              (long long)p->blocks, (long long)p->bands, (long long)p->pieces);
  for (int i = 0; i < p->cuts; i++)
    hk_text_add(t, " vectors=%lld most=%lld spans=%lld", (long long)p->cut[i].vectors, (long long)p->cut[i].most,
                (long long)p->cut[i].count);
}

const hk_algo hk_algo_strip = {.name = "strip",
                               .summary =
                                   "few adjacent channels per group: a few pixels by one to four vectors of outputs",
                               .knobs = {HK_KNOB("cut", 0, 1), HK_KNOB_OF("band", ROWS), HK_KNOB_OF("groups", GROUPS),
                                         HK_KNOB("shards", 1, HK_THREAD_PIECES), HK_KNOB("parts", 1, HK_THREAD_PIECES)},
                               .family = HK_FAMILY_STRIP,
                               .device = HK_CPU,
                               .offer = offer,
                               .vary = vary,
                               .check = check,
                               .build = build,
                               .run = hk_strip_run,
                               .destroy = destroy,
                               .trace = trace};
