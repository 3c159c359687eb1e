/* point: windows of one tap over few channels per group, dense or grouped, in the layout they come in: the calls of
 * small models, whose kernels take tens of nanoseconds, so that a call is one kernel with everything but two pointers
 * known at creation. f32; weights at creation; bias and clamp in the kernel. No workspace. Refuses other windows,
 * padding, strides, scale, residual, gates, state and positions without a constant stride. See hk_point_args for the
 * ways.
 */

#include "cost/cost.h"
#include "plan/depthwise/depthwise.h"

enum { WAY, BLOCK, PARTS, ROUNDS, SQUARES }; /* the last two derived: forms of WOVEN and PLANES, see hk_point_args */

typedef struct own {
  hk_point_shape shape;
  int64_t images, count, unit; /* calls a task makes; pixels, positions or groups of each; where it may be cut */
  int64_t x_image, y_image, x_unit, y_unit;
  int64_t parts;
  int32_t *index;
  float *bias;             /* WOVEN: repeated over the phases; NULL: there is none, or it comes at execute */
  const float *known_bias; /* as the kernel reads it; NULL as above */
} own;

/* True when positions, and the images of a batch of n, lie at one distance from each other, which goes to *step: 1 for
 * a single position; 0 where all of them are the same element. */
static bool even_step(const hk_strides *s, const int64_t size[3], int64_t n, int64_t *step) {
  const int64_t sizes[4] = {n, size[0], size[1], size[2]}, steps[4] = {s->outer, s->at[0], s->at[1], s->at[2]};
  int64_t count = 1;
  *step = 1;
  for (int d = 3; d >= 0; d--) {
    if (sizes[d] == 1) continue;
    if (count == 1) *step = steps[d];
    else if (steps[d] != *step * count) return false;
    count *= sizes[d];
  }
  return true;
}

static bool one_tap(const hk_geom *g) {
  for (int d = 0; d < 3; d++)
    if (g->win[d] != 1 || g->stride[d] != 1 || g->lo[d] || g->in_dil[d] != 1 || g->in[d] != g->out[d]) return false;
  return true;
}

static bool supported(const hk_task *t, hk_dw_fuse *fuse, char *why) {
  const hk_geom *g = &t->geom;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) return hk_refuse(why, "x and f must be f32");
  if (g->c < 1 || g->k < 1 || g->gm == 0) return hk_refuse(why, "y is empty");
  if (!one_tap(g)) return hk_refuse(why, "needs a window of one tap, stride 1, no padding");
  if (!t->f_now) return hk_refuse(why, "needs the weights at creation");
  if (g->batch_grouped) return hk_refuse(why, "batch_groups must be 1");
  if (t->epi.e.gate || t->options.stateful) return hk_refuse(why, "epilogue.gate and options.stateful must be 0");
  if (!hk_dw_fuse_make(t, fuse) || t->epi.e.scale || t->epi.e.residual)
    return hk_refuse(why, "the epilogue is more than bias and clamp");
  return true;
}

static bool flat(const hk_strides *s, int64_t groups, int64_t channels) {
  return (s->channel == 1 || channels == 1) && (s->group == channels || groups == 1);
}

/* True when channels go on evenly from group to group: *step from one to the next. */
static bool channel_step(const hk_strides *s, int64_t groups, int64_t channels, int64_t *step) {
  *step = groups > 1 && channels == 1 ? s->group : channels == 1 ? 1 : s->channel;
  return groups == 1 || channels == 1 || s->group == channels * s->channel;
}

static int32_t registers(const hk_kernel *k) { return k->isa == HK_ISA_AVX2 ? 16 : 32; }

/* Phases until a block of so many groups begins with group 0 again. */
static int64_t phases_of(const hk_geom *g, int64_t block) { return g->groups / hk_gcd(g->groups, block); }

static bool block_fits(const hk_geom *g, const hk_kernel *k, int64_t block) {
  const int64_t phases = block > 0 ? phases_of(g, block) : 0;
  return block > 0 && block * hk_max64(g->c, g->k) <= k->nr && phases <= HK_POINT_PHASES &&
         g->c <= HK_POINT_WOVEN_INPUTS && phases * g->c <= HK_POINT_WEIGHTS(registers(k));
}

/* Whole vectors of groups make up a pixel: see HK_POINT_ROUNDS. */
static bool rounds_fit(const hk_geom *g, const hk_kernel *k, int64_t block) {
  return g->c == g->k && block * g->c == k->nr && g->groups % block == 0 && g->c <= HK_POINT_ROUND(registers(k));
}

/* The largest block whose weights fit the registers, or one for rounds; 0: there is none. */
static int64_t widest_block(const hk_geom *g, const hk_kernel *k) {
  const int64_t whole = k->nr / hk_max64(1, g->c);
  if (whole > 0 && !block_fits(g, k, whole) && rounds_fit(g, k, whole)) return whole;
  for (int64_t block = k->nr / hk_max64(1, hk_max64(g->c, g->k)); block > 0; block--)
    if (block_fits(g, k, block)) return block;
  return 0;
}

static bool lines_lie(const hk_geom *g, int64_t *x_step, int64_t *y_step) {
  return even_step(&g->x, g->in, g->n, x_step) && even_step(&g->y, g->out, g->n, y_step) &&
         flat(&g->x, g->groups, g->c) && flat(&g->y, g->groups, g->k);
}

static bool lay_lines(const hk_geom *g, const hk_kernel *k, own *o) {
  const bool ok = lines_lie(g, &o->shape.x_step, &o->shape.y_step) && g->k <= k->nr;
  o->images = 1;
  o->count = g->gm;
  o->unit = 1;
  o->x_unit = o->shape.x_step;
  o->y_unit = o->shape.y_step;
  return ok;
}

static bool lay_woven(const hk_geom *g, const hk_kernel *k, int64_t block, bool rounds, own *o) {
  int64_t x_step, y_step;
  const bool one = g->gm == 1;
  if (!lines_lie(g, &x_step, &y_step)) return false;
  const bool dense = one || (x_step == g->c * g->groups && y_step == g->k * g->groups);
  o->shape.block = (int32_t)block;
  o->images = 1;
  if (rounds) {
    o->shape.way = HK_POINT_ROUNDS;
    o->shape.x_step = o->x_unit = o->y_unit = g->c * g->groups;
    o->count = g->gm;
    o->unit = 1;
    return dense && block > 0 && rounds_fit(g, k, block);
  }
  if (!block_fits(g, k, block)) return false;
  o->shape.phases = (int32_t)phases_of(g, block);
  o->shape.vector_groups = (int32_t)hk_ceil_div(k->nr, hk_min64(g->c, g->k));
  o->count = g->gm * g->groups;
  o->unit = block * o->shape.phases;
  o->x_unit = o->unit * g->c;
  o->y_unit = o->unit * g->k;
  return dense;
}

static bool can_square(const hk_geom *g, const hk_kernel *k, bool fused) {
  return g->c == g->k && g->c <= HK_POINT_SQUARE(registers(k)) && !fused;
}

static bool lay_planes(const hk_geom *g, const hk_kernel *k, bool squares, own *o) {
  int64_t x_step, y_step;
  const bool even = channel_step(&g->x, g->groups, g->c, &o->shape.x_step) &&
                    channel_step(&g->y, g->groups, g->k, &o->shape.y_step) && even_step(&g->x, g->in, 1, &x_step) &&
                    even_step(&g->y, g->out, 1, &y_step);
  if (squares) o->shape.way = HK_POINT_SQUARES;
  o->images = g->n;
  o->count = g->pixels;
  o->unit = o->x_unit = o->y_unit = k->nr;
  o->x_image = g->x.outer;
  o->y_image = g->y.outer;
  return even && x_step == 1 && y_step == 1 && (!squares || can_square(g, k, o->shape.fused));
}

static void derive(const hk_task *t, hk_decision *d) {
  const hk_geom *g = &t->geom;
  int64_t *k = d->knob;
  hk_dw_fuse fuse = {0};
  if (k[ROUNDS] < 0)
    k[ROUNDS] = k[WAY] == HK_POINT_WOVEN && k[BLOCK] > 0 && !block_fits(g, d->kernel, k[BLOCK]) &&
                rounds_fit(g, d->kernel, k[BLOCK]);
  if (k[SQUARES] < 0)
    k[SQUARES] = k[WAY] == HK_POINT_PLANES && hk_dw_fuse_make(t, &fuse) && can_square(g, d->kernel, fuse.flags != 0);
}

static bool layout(const hk_task *t, const hk_decision *d, own *o, char *why) {
  const hk_geom *g = &t->geom;
  hk_dw_fuse fuse;
  if (!supported(t, &fuse, why)) return false;
  if (g->c > d->kernel->mr) return hk_refuse(why, "a group has more inputs than the kernel's registers");
  *o = (own){.shape = {.way = (int32_t)d->knob[WAY],
                       .fused = fuse.flags != 0,
                       .inputs = (int32_t)g->c,
                       .outputs = (int32_t)g->k,
                       .groups = g->groups,
                       .lo = fuse.lo,
                       .hi = fuse.hi},
             .parts = d->knob[PARTS]};
  if (g->k > 4096) return hk_refuse(why, "a group has more than 4096 outputs");
  if ((d->knob[ROUNDS] && d->knob[WAY] != HK_POINT_WOVEN) || (d->knob[SQUARES] && d->knob[WAY] != HK_POINT_PLANES))
    return hk_refuse(why, "rounds = 1 needs way = 1, squares = 1 needs way = 2");
  const bool fits = d->knob[WAY] == HK_POINT_LINES    ? lay_lines(g, d->kernel, o)
                    : d->knob[WAY] == HK_POINT_WOVEN  ? lay_woven(g, d->kernel, d->knob[BLOCK], d->knob[ROUNDS], o)
                    : d->knob[WAY] == HK_POINT_PLANES ? lay_planes(g, d->kernel, d->knob[SQUARES], o)
                                                      : false;
  return fits ||
         hk_refuse(why, "channels or positions have no constant stride for this way, or do not fit its vectors");
}

/* cycles, measured on Zen 4: a permutation and its product share a unit, a broadcast rides along */
static double predict(const hk_task *t, const hk_decision *d, const own *o) {
  const hk_geom *g = &t->geom;
  const double vw = (double)d->kernel->nr, peak = hk_cost_flops(d->kernel->isa),
               width = vw <= 8 && peak > 32 ? 32 : peak;
  const double product = 2.0 * vw / width, inputs = (double)g->c, outputs = (double)g->k, groups = (double)g->groups;
  const double calls = (double)o->images, count = (double)o->count;
  double cycles;
  switch (d->knob[WAY]) {
  case HK_POINT_LINES: cycles = groups * (5.0 + inputs + count * (inputs * product + 0.6)); break;
  case HK_POINT_WOVEN:
    if (o->shape.way == HK_POINT_ROUNDS) {
      const double rounds = groups / (double)o->shape.block;
      cycles = rounds * (10.0 + 2.0 * inputs + count * (inputs * 1.45 * product + 2.0));
      break;
    }
    cycles = 20.0 + count / (double)o->shape.block * (inputs * 1.45 * product + 1.0);
    break;
  /* rows by half vectors where whole ones could be: 12 to 18 % (2 groups of 8 to 16 channels of 14 x 14) */
  default:
    cycles = (vw <= 8 && d->kernel->isa == HK_ISA_AVX512 ? 1.12 : 1.0) * calls * groups *
             (double)hk_ceil_div(o->count, d->kernel->nr) * (1.0 + outputs * (inputs * product + 0.2));
  }
  /* rows a multiple of 4 KiB apart share a set of L1, to whose lines half vectors come back (AVX2, 2 groups of 8
   * channels of 1024: 6 us for 3.6) */
  const int64_t off = o->shape.x_step * 4 & 4095;
  if (d->knob[WAY] == HK_POINT_PLANES && vw <= 8 && g->c + g->k > 8 && (off < 64 || off > 4032)) cycles *= 1.7;
  const hk_work w = {.cycles = cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  return hk_cost_seconds(&hk_cost_here()->point, &w, o->parts, t->threads);
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  own o;
  derive(t, d);
  if (!layout(t, d, &o, why)) return false;
  d->predicted_s = predict(t, d, &o);
  d->workspace_bytes = 0;
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  /* 40 us of products are worth waking a thread for */
  const double work = g->flops / hk_cost_peak(d->kernel->isa) / 4e-5;
  d->knob[PARTS] = work < 1 ? 1 : work < t->threads ? (int64_t)work : t->threads;
  bool any = false;
  hk_decision best = *d;
  for (int64_t way = HK_POINT_LINES; way <= HK_POINT_PLANES; way++) {
    hk_decision one = *d;
    one.knob[WAY] = way;
    one.knob[BLOCK] = way == HK_POINT_WOVEN ? widest_block(g, d->kernel) : 0;
    if (!check(t, &one, why) || (any && one.predicted_s >= best.predicted_s)) continue;
    best = one;
    any = true;
  }
  *d = best;
  return any;
}

/* The other ways. */
static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  *d = *base;
  d->knob[WAY] = (base->knob[WAY] + 1 + index) % 3;
  d->knob[BLOCK] = d->knob[WAY] == HK_POINT_WOVEN ? widest_block(&t->geom, d->kernel) : 0;
  if (index > 1) return false;
  return check(t, d, why) || vary(t, base, index + 1, d);
}

/* ---- build */

static void pack(const hk_geom *g, const own *o, int64_t vw, const float *f, float *to) {
  const hk_point_shape *h = &o->shape;
  const int64_t rows = h->way == HK_POINT_WOVEN    ? h->phases
                       : h->way == HK_POINT_ROUNDS ? g->groups / h->block
                                                   : g->groups;
  if (h->way == HK_POINT_PLANES || h->way == HK_POINT_SQUARES) {
    for (int64_t k = 0; k < g->groups * g->k; k++)
      for (int64_t i = 0; i < g->c; i++) *to++ = f[k / g->k * g->f.group + k % g->k * g->f.outer + i * g->f.channel];
    return;
  }
  const int64_t block = h->way == HK_POINT_LINES ? 1 : h->block;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < g->c; i++)
      for (int64_t l = 0; l < vw; l++)
        *to++ = l < block * g->k
                    ? f[(r * block + l / g->k) % g->groups * g->f.group + l % g->k * g->f.outer + i * g->f.channel]
                    : 0.0f;
}

static int64_t packed_floats(const hk_geom *g, const own *o, int64_t vw) {
  switch (o->shape.way) {
  case HK_POINT_LINES: return g->groups * g->c * vw;
  case HK_POINT_WOVEN: return o->shape.phases * g->c * vw;
  case HK_POINT_ROUNDS: return g->groups / o->shape.block * g->c * vw;
  default: return g->groups * g->k * g->c;
  }
}

static void repeat_bias(const hk_geom *g, const hk_point_shape *h, int64_t vw, const float *bias, float *to) {
  for (int64_t r = 0; r < h->phases; r++)
    for (int64_t l = 0; l < vw; l++)
      *to++ = l < h->block * g->k ? bias[(r * h->block * g->k + l) % (g->groups * g->k)] : 0.0f;
}

static void make_index(const hk_geom *g, const hk_point_shape *h, int64_t vw, int32_t *to) {
  for (int64_t i = 0; i < g->c; i++)
    for (int64_t l = 0; l < vw; l++) *to++ = l < h->block * g->k ? (int32_t)(l / g->k * g->c + i) : 0;
}

static void destroy(hk_plan *plan) {
  own *o = plan->own;
  if (o) {
    hk_free(o->index);
    hk_free(o->bias);
  }
  hk_free(o);
}

static hk_status build_woven(hk_plan *plan, own *o, int64_t vw) {
  const hk_geom *g = &plan->task.geom;
  o->index = hk_alloc((size_t)(g->c * vw) * sizeof *o->index);
  const bool repeats = plan->packed->bias && o->shape.way == HK_POINT_WOVEN;
  o->bias = repeats ? hk_alloc((size_t)(o->shape.phases * vw) * sizeof *o->bias) : NULL;
  if (!o->index || (repeats && !o->bias)) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  make_index(g, &o->shape, vw, o->index);
  if (o->bias) repeat_bias(g, &o->shape, vw, plan->packed->bias, o->bias);
  o->shape.index = o->index;
  return HK_OK;
}

/* ---- run */

typedef struct shared {
  const hk_plan *plan;
  const hk_call *call;
  const float *bias;
} shared;

static void body(void *context, int64_t i) {
  const shared *h = context;
  const own *o = h->plan->own;
  int64_t from, to;
  hk_piece(hk_ceil_div(o->count, o->unit), i, o->parts, &from, &to);
  if (from == to) return;
  hk_point_args a = {.shape = &o->shape, .bias = h->bias, .count = hk_min64(to * o->unit, o->count) - from * o->unit};
  for (int64_t n = 0; n < o->images; n++) {
    a.x = (const float *)(const void *)h->call->x + n * o->x_image + from * o->x_unit;
    a.y = (float *)(void *)h->call->y + n * o->y_image + from * o->y_unit;
    h->plan->decision.kernel->fn(&a);
  }
}

/* one part, one image, bias known */
static hk_status run_xy(const hk_plan *plan, const char *x, char *y) {
  const own *o = plan->own;
  const hk_point_args a = {.shape = &o->shape,
                           .x = (const float *)(const void *)x,
                           .bias = o->known_bias,
                           .y = (float *)(void *)y,
                           .count = o->count};
  plan->decision.kernel->fn(&a);
  return HK_OK;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const own *o = plan->own;
  float repeated[HK_POINT_PHASES * 16];
  shared h = {plan, call, plan->task.epi.e.bias ? call->bias : NULL};
  if (h.bias && o->shape.way == HK_POINT_WOVEN) {
    if (!o->bias) repeat_bias(&plan->task.geom, &o->shape, plan->decision.kernel->nr, call->bias, repeated);
    h.bias = o->bias ? o->bias : repeated;
  }
  hk_plan_parallel(plan, o->parts, body, &h);
  return HK_OK;
}

/* ---- build, and the table */

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  hk_packed *w = plan->packed;
  const int64_t vw = plan->decision.kernel->nr;
  char why[HK_REASON];
  own *o = plan->own = hk_alloc_zero(sizeof *o);
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!layout(&plan->task, &plan->decision, o, why)) return hk_fail(HK_UNSUPPORTED, "point: %s", why);
  float *to;
  /* SQUARES reads what PLANES packs */
  const int64_t layout[] = {o->shape.way == HK_POINT_SQUARES ? HK_POINT_PLANES : o->shape.way, o->shape.block};
  hk_status s = hk_plan_pack_room(plan, packed_floats(g, o, vw), sizeof *to, layout, HK_COUNT(layout), &to);
  if (s) return s;
  if (to) pack(g, o, vw, plan->raw_f, to);
  o->shape.f = w->f;
  s = o->shape.way == HK_POINT_WOVEN || o->shape.way == HK_POINT_ROUNDS ? build_woven(plan, o, vw) : HK_OK;
  if (plan->task.epi.e.bias) o->known_bias = o->bias ? o->bias : w->bias;
  if (o->parts == 1 && o->images == 1) plan->short_way.run_xy = run_xy;
  return s;
}

static void trace(const hk_plan *plan, hk_text *t) {
  static const char *const ways[] = {"lines", "woven", "planes", "squares", "rounds"};
  const own *o = plan->own;
  hk_text_add(t, " way=%s block=%d phases=%d images=%lld count=%lld parts=%lld", ways[o->shape.way], o->shape.block,
              o->shape.phases, (long long)o->images, (long long)o->count, (long long)o->parts);
}

const hk_algo hk_algo_point = {
    .name = "point",
    .summary = "1x1 over few channels, any layout: one kernel call with everything but two pointers known at creation",
    .knobs = {HK_KNOB("way", 0, 2), HK_KNOB("block", 0, 64), HK_KNOB("parts", 1, HK_THREAD_PIECES),
              HK_KNOB_ORDER("rounds", 0, 1), HK_KNOB_DERIVED("squares", 0, 1)},
    .family = HK_FAMILY_POINT,
    .device = HK_CPU,
    .offer = offer,
    .vary = vary,
    .check = check,
    .build = build,
    .run = run,
    .destroy = destroy,
    .trace = trace};
