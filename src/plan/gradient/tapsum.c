/* tapsum: gradients of depthwise and grouped filters (tapsum.h). Every tap keeps its accumulators in registers while
 * the kernel runs along x and dy; lanes are channels of x, over all groups. Any rank, stride, padding, dilation and
 * layout of up to a vector of channels per group; f32, f16 and bf16. Channels that are adjacent are read in place,
 * others are packed box by box. Refuses input dilation, gates, state, and groups at uneven distances. */
#include "plan/gradient/tapsum.h"

#include "cost/cost.h"

#define SLICES 16    /* most slices */
#define MAX_POINTS 4 /* positions of y per position of the window, at most */

static bool float_type(hk_type t) { return t == HK_F32 || t == HK_F16 || t == HK_BF16; }

/* The stride of channels where it is the same over all groups; 0: it is not. */
static int64_t even_step(int64_t groups, int64_t group, int64_t count, int64_t step) {
  if (count == 1) return groups == 1 ? 1 : group;
  return groups == 1 || group == count * step ? step : 0;
}

static bool supported(const hk_task *t, const hk_kernel *kernel, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (!float_type(g->x_type) || !float_type(g->f_type) || g->acc_type != HK_F32)
    no = "x and f must be f32, f16 or bf16";
  else if (g->groups == 1) no = "groups must be above 1";
  else if (t->epi.e.gate || t->options.stateful) no = "epilogue.gate and options.stateful must be 0";
  else if (t->options.batch_invariant) no = "batch_invariant must be 0: whether n channels fit a vector depends on n";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "x, f or y is empty";
  else if (g->taps * MAX_POINTS < g->pixels) no = "y has more than 4 positions per position of the window";
  else if (g->pixels > HK_TAPSUM_TAPS) no = "y has more than 1024 positions";
  else if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) no = "input dilation must be 1";
  else if (g->n * g->k > 1 && hk_max64(g->n, g->k) > hk_isa_lanes(kernel->isa))
    no = "n and k per group must fit a vector";
  else if (!even_step(g->groups, g->x.group, g->n, g->x.outer) || !even_step(g->groups, g->f.group, g->k, g->f.outer))
    no = "channels of x and f must have one stride over all groups";
  return !no || hk_refuse(why, no);
}

static hk_tapsum make(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  const int64_t vw = hk_isa_lanes(d->kernel->isa);
  hk_tapsum o = {.depthwise = g->n * g->k == 1,
                 .channels = g->groups * g->n,
                 .x_step = even_step(g->groups, g->x.group, g->n, g->x.outer),
                 .f_step = even_step(g->groups, g->f.group, g->k, g->f.outer),
                 .vectors = d->knob[HK_TAPSUM_VECTORS]};
  o.panel = o.depthwise ? o.vectors * vw : vw / hk_max64(g->n, g->k);
  o.chunk = hk_min64(hk_round_up(d->knob[HK_TAPSUM_BC], o.panel), g->groups);
  o.boxes = hk_outer_boxes_make(g, d->knob[HK_TAPSUM_BLOCK]);
  o.slices = hk_min64(d->knob[HK_TAPSUM_SLICES], o.boxes.count);
  o.chunks = hk_ceil_div(g->groups, o.chunk);
  o.jobs = o.slices * o.chunks;
  o.slots = hk_min64(t->threads, o.jobs);
  o.pack_x = o.x_step != 1 || g->x_type != HK_F32;
  o.pack_f = o.f_step != 1 || g->f_type != HK_F32;
  if (o.pack_x) o.x_floats = hk_outer_floats_x(g, o.boxes.size, false, o.chunk * g->n);
  if (o.pack_f) o.f_floats = hk_outer_floats_f(o.boxes.size, o.chunk * g->k);
  o.sums_bytes = (size_t)hk_round_up(o.slices * g->pixels * g->k * o.channels * (int64_t)sizeof(float), HK_ALIGN);
  o.slot_bytes = (size_t)(o.x_floats + o.f_floats) * sizeof(float);
  return o;
}

/* Most taps of a register tile of so many vectors. */
static int64_t tile_taps(const hk_kernel *k, int64_t vectors) {
  return hk_min64(9, k->mr * k->nr / hk_isa_lanes(k->isa) / vectors);
}

/* Runs of positions of dimension d that find the same taps. */
static double runs_of(const hk_geom *g, int d) {
  return hk_geom_leaves(g, d) ? 1.0 + (double)hk_min64(g->win[d], g->out[d]) : 1.0;
}

/* Products load x from memory each; positions near the padding go in segments and calls of their own. */
static double predict(const hk_task *t, const hk_decision *d, const hk_tapsum *o) {
  const hk_geom *g = &t->geom;
  const int64_t vw = hk_isa_lanes(d->kernel->isa);
  const double product = 2.0 * (double)vw / hk_cost_flops(d->kernel->isa), gk = (double)g->gk;
  const double vectors =
      o->depthwise ? (double)hk_ceil_div(g->groups, vw) : (double)(hk_ceil_div(g->groups, o->panel) * g->k);
  const double wide =
      o->depthwise ? (double)hk_min64(o->vectors, hk_ceil_div(g->groups, vw)) : (double)hk_min64(g->k, o->vectors);
  const double taps = (double)g->pixels, tiles = (double)hk_ceil_div(g->pixels, tile_taps(d->kernel, (int64_t)wide));
  const double calls = vectors / wide * tiles, runs = runs_of(g, 2), boxes = (double)o->boxes.count;
  hk_work w = {.cycles = vectors * gk * (taps * product * (o->depthwise ? 1.1 : 1.05) + tiles)};
  w.cycles += calls * (double)(g->c * g->win[0] * g->win[1]) * runs * 12.0;
  w.cycles += calls * (boxes + runs_of(g, 1) * runs_of(g, 0)) * runs * (40.0 + 4.0 * wide * taps / tiles);
  w.cycles += boxes * (double)o->chunks * 0.4 * (double)(o->x_floats + o->f_floats);
  w.cycles += taps * (double)(g->k * o->channels) * (2.0 + (double)o->slices);
  if (!hk_outer_store_is_plain(t)) hk_work_store(&w, t, true, taps * (double)o->channels);
  w.moved = hk_cost_move(g->bytes, g->bytes);
  return hk_cost_seconds(&hk_cost_here()->tapsum, &w, o->jobs, t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  if (d->knob[HK_TAPSUM_VECTORS] > d->kernel->nr / hk_isa_lanes(d->kernel->isa))
    return hk_refuse(why, "the kernel has fewer vectors per tile");
  const hk_tapsum o = make(t, d);
  d->workspace_bytes = o.sums_bytes + (size_t)o.slots * o.slot_bytes;
  d->predicted_s = predict(t, d, &o);
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!supported(t, d->kernel, why)) return false;
  int64_t vectors = d->kernel->nr / hk_isa_lanes(d->kernel->isa);
  /* all taps of a small window in one tile: dy is loaded once */
  while (g->n * g->k == 1 && vectors > 1 && tile_taps(d->kernel, vectors) < hk_min64(g->pixels, 9)) vectors--;
  d->knob[HK_TAPSUM_VECTORS] = vectors;
  /* x and dy of a box in a quarter of L2 */
  const int64_t bc = hk_min64(g->groups, hk_max64(1, 256 / hk_max64(g->n, g->k)));
  d->knob[HK_TAPSUM_BC] = bc;
  d->knob[HK_TAPSUM_BLOCK] =
      hk_max64(64, hk_min64(4096, hk_cost_l2() / 4 / (int64_t)sizeof(float) / (bc * (g->n + g->k))));
  d->knob[HK_TAPSUM_SLICES] = 1;
  const hk_tapsum o = make(t, d);
  const int64_t outputs = g->pixels * g->k * o.channels, inputs = g->groups * (g->n + g->k) * g->gk;
  const int64_t room = hk_max64(1, hk_min64(inputs / 8, (int64_t)1 << 20) / outputs);
  d->knob[HK_TAPSUM_SLICES] = hk_max64(1, hk_min64(hk_min64(SLICES, o.boxes.count / 2), room));
  const int64_t chunks =
      hk_outer_chunks(d->knob[HK_TAPSUM_SLICES] * hk_ceil_div(g->groups, bc), hk_ceil_div(bc, o.panel), t->threads);
  d->knob[HK_TAPSUM_BC] = hk_ceil_div(bc, chunks);
  return finish(t, d, why);
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  (void)t;
  *d = *base;
  if (index > 2) return false;
  if (index == 2) d->knob[HK_TAPSUM_VECTORS] = hk_max64(1, base->knob[HK_TAPSUM_VECTORS] / 2);
  else d->knob[HK_TAPSUM_BLOCK] = hk_max64(16, base->knob[HK_TAPSUM_BLOCK] * (index ? 4 : 1) / (index ? 1 : 4));
  return true;
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  return supported(t, d->kernel, why) && finish(t, d, why);
}

static hk_status build(hk_plan *plan) {
  hk_tapsum *o = hk_alloc_zero(sizeof *o);
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  plan->own = o;
  *o = make(&plan->task, &plan->decision);
  return plan->task.f_now ? hk_plan_copy_weights(plan) : HK_OK;
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_tapsum *o = plan->own;
  hk_text_add(t, " panel=%lld boxes=%lld jobs=%lld packs=%d%d depthwise=%d", (long long)o->panel,
              (long long)o->boxes.count, (long long)o->jobs, o->pack_x, o->pack_f, o->depthwise);
}

const hk_algo hk_algo_tapsum = {.name = "tapsum",
                                .summary = "gradients of depthwise and grouped filters: accumulators per tap",
                                .knobs = {HK_KNOB("block", 1, HK_KNOB_MOST), HK_KNOB("slices", 1, 4096),
                                          HK_KNOB_OF("bc", GROUPS), HK_KNOB("vectors", 1, 4)},
                                .family = HK_FAMILY_TAPSUM,
                                .device = HK_CPU,
                                .skips_padding = true,
                                .offer = offer,
                                .vary = vary,
                                .check = check,
                                .build = build,
                                .run = hk_tapsum_run,
                                .destroy = destroy,
                                .trace = trace};
