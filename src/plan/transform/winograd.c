/* winograd2, winograd4: F(2x2, 3x3) and F(4x4, 3x3) for windows of 3 x 3, F(2, 3) and F(4, 3) for windows of 3 along a
 * line, stride 1, no dilation, over adjacent channels. 2.25 and 4 (a line: 1.5 and 2) times fewer multiplications than
 * direct; allowed by HK_MATH_FAST_ALGORITHMS only. The error of a sum stays (where the sums of a tile are alike in
 * size, hence 16 channels or more) under error_factor * gk * eps * sum |x||f| (tests/c/cpu/winograd_test.c measures
 * it). Needs workspace (one slot per thread), and the weights at creation. The products of the transformed domain run
 * on igemm's kernels. */
#include <string.h>

#include "cost/cost.h"
#include "plan/transform/winograd.h"

/* The window is 3 long and no more than that, line by line. */
static bool is_line(const hk_geom *g) {
  return g->win[1] == 1 && g->win[2] == 3 && g->in[1] == g->out[1] && g->lo[1] == 0;
}

/* Some output has two of its three taps along d outside x: its sum is small beside those of its tile, and their error
 * is not. */
static bool sticks_out(const hk_geom *g, int d) {
  return g->lo[d] > 1 || g->out[d] + 1 - g->lo[d] > g->in[d] || g->in[d] < 2;
}

static int64_t points_of(const hk_geom *g, int64_t m) { return is_line(g) ? m + 2 : (m + 2) * (m + 2); }

static bool applies(const hk_task *t, const hk_kernel *k, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (!(t->options.math & HK_MATH_FAST_ALGORITHMS)) no = "options.math must allow fast algorithms";
  else if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) no = "x and f must be f32";
  else if (k->isa > t->isa) no = "the ISA of the kernel is above the cap";
  else if (!t->f_now) no = "the weights must be known at creation";
  else if (g->win[0] != 1 || (g->win[1] != 3 && !is_line(g)) || g->win[2] != 3 || g->in[0] != 1 || g->out[0] != 1 ||
           g->lo[0])
    no = "the window is neither 3 x 3 nor 3 along a line";
  else if (g->stride[1] != 1 || g->stride[2] != 1) no = "the stride is not 1";
  else if (g->dil[1] != 1 || g->dil[2] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) no = "there is dilation";
  else if (sticks_out(g, 2) || (!is_line(g) && sticks_out(g, 1)))
    no = "padding of more than 1: the error of sums with few taps inside x would stand out";
  else if (g->x.channel != 1 && g->c > 1) no = "the channels of x must be adjacent";
  else if (g->c < 16)
    no = "fewer than 16 channels: the transforms cost more than they save, and their error stands out";
  else if (g->c > HK_TABLE_BYTES / (int64_t)sizeof(float))
    no = "a row of zeros for the padding would take more than 16 MiB";
  else if (t->epi.e.gate) no = "a gate needs both halves of a channel pair in one tile";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "x, f or y is empty";
  return !no || hk_refuse(why, no);
}

static hk_panels panels_make(const hk_geom *g, const hk_kernel *k, int64_t points) {
  hk_geom wide = *g;
  wide.taps = points;
  return hk_panels_make(&wide, k, g->c);
}

size_t hk_winograd_slot_bytes(const hk_geom *g, const hk_panels *p, int64_t bt) {
  const int64_t width = hk_ceil_div(p->vectors, p->count) * p->lanes;
  return (size_t)(p->taps * (hk_winograd_step(bt, g->c) + hk_winograd_step(bt, width))) * sizeof(float);
}

static int64_t tile_count(const hk_geom *g, int64_t m) {
  return g->n * hk_ceil_div(g->out[1], is_line(g) ? 1 : m) * hk_ceil_div(g->out[2], m);
}

static int64_t slot_count(const hk_task *t, int64_t m, int64_t bt) {
  return hk_min64(t->threads, t->geom.groups * hk_ceil_div(tile_count(&t->geom, m), bt));
}

static double predict(const hk_task *t, const hk_decision *d, int64_t m) {
  const hk_geom *g = &t->geom;
  const int64_t bt = d->knob[HK_WINOGRAD_BT], count = points_of(g, m);
  const hk_panels p = panels_make(g, d->kernel, count);
  const double points = (double)count;
  const double tiles = (double)(tile_count(g, m) * g->groups), kp = (double)(p.vectors * p.lanes);
  const double cp = (double)hk_round_up(g->c, p.lanes);
  /* blocks that leave a tile of rows partly empty cost as much as full ones */
  const double rows = (double)hk_round_up(hk_min64(bt, tile_count(g, m)), 2) / (double)hk_min64(bt, tile_count(g, m));
  hk_work w = {.products = 2.0 * tiles * rows * points * (double)g->c * kp / hk_cost_peak(d->kernel->isa)};
  /* per vector of a tile: loads, stores and about as many additions; measured 5 and 4 cycles a point */
  w.cycles = tiles * points * (5.0 * cp + 4.0 * kp) / (double)p.lanes;
  /* register tiles of the products, each begun and stored */
  w.cycles += tiles / 6 * points * (double)p.count * 60;
  const double u = (double)(p.group_size * g->groups) * sizeof(float);
  w.moved = hk_cost_move(u * (double)hk_ceil_div(tile_count(g, m), bt), u);
  return hk_cost_seconds(&hk_cost_here()->winograd, &w, slot_count(t, m, bt), t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, int64_t m, char *why) {
  const hk_geom *g = &t->geom;
  const int64_t bt = d->knob[HK_WINOGRAD_BT];
  (void)why;
  const hk_panels p = panels_make(g, d->kernel, points_of(g, m));
  d->workspace_bytes = (size_t)slot_count(t, m, bt) * hk_winograd_slot_bytes(g, &p, bt);
  d->predicted_s = predict(t, d, m);
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, int64_t m, char *why) {
  const hk_geom *g = &t->geom;
  if (!applies(t, d->kernel, why)) return false;
  /* many tiles read the weights once; a block of v stays in reach of L2 */
  const int64_t tiles = tile_count(g, m);
  const int64_t most = hk_min64(96, hk_max64(24, hk_cost_l2() / (points_of(g, m) * g->c * (int64_t)sizeof(float))));
  const int64_t blocks = hk_round_up(hk_ceil_div(tiles, most), hk_min64(t->threads, tiles));
  d->knob[HK_WINOGRAD_BT] = hk_ceil_div(tiles, blocks);
  return finish(t, d, m, why);
}

/* u = G g G^T in double, rounded once; of a line u = G g */
static void transform_filter(const double g[9], int64_t m, bool line, float *u, int64_t step) {
  static const double g2[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
  static const double g4[6][3] = {{1 / 4.0, 0, 0},
                                  {-1 / 6.0, -1 / 6.0, -1 / 6.0},
                                  {-1 / 6.0, 1 / 6.0, -1 / 6.0},
                                  {1 / 24.0, 1 / 12.0, 1 / 6.0},
                                  {1 / 24.0, -1 / 12.0, 1 / 6.0},
                                  {0, 0, 1}};
  const double(*q)[3] = m == 2 ? g2 : g4;
  const int64_t t = m + 2;
  for (int64_t j = 0; line && j < t; j++) u[j * step] = (float)(q[j][0] * g[0] + q[j][1] * g[1] + q[j][2] * g[2]);
  for (int64_t i = 0; !line && i < t; i++)
    for (int64_t j = 0; j < t; j++) {
      double sum = 0;
      for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) sum += q[i][r] * g[r * 3 + s] * q[j][s];
      u[(i * t + j) * step] = (float)sum;
    }
}

/* packed as hk_panels says, tap = point of the transformed domain */
static void pack(const hk_geom *g, const hk_winograd_own *o, const float *f, float *to) {
  memset(to, 0, (size_t)(o->panels.group_size * g->groups) * sizeof *to);
  for (int64_t i = 0; i < g->groups * o->panels.count; i++) {
    const hk_panel p = hk_panels_get(&o->panels, i % o->panels.count);
    const int64_t group = i / o->panels.count, width = p.vectors * o->panels.lanes;
    float *panel = to + hk_panels_at(&o->panels, group, &p);
    for (int64_t k = 0; k < p.columns; k++)
      for (int64_t c = 0; c < g->c; c++) {
        const float *from = f + group * g->f.group + (p.first + k) * g->f.outer + c * g->f.channel;
        double w[9];
        for (int r = 0; r < g->taps; r++) w[r] = from[r / 3 * g->f.at[1] + r % 3 * g->f.at[2]];
        transform_filter(w, o->m, o->line, panel + c * width + k, g->c * width);
      }
  }
}

static const hk_kernel *find(hk_family family, hk_isa isa, int64_t side) {
  for (int32_t i = 0; i < hk_kernel_count; i++)
    if (hk_kernels[i].family == family && hk_kernels[i].isa == isa && hk_kernels[i].mr == side) return &hk_kernels[i];
  return NULL;
}

static hk_status build(hk_plan *plan, int64_t m) {
  const hk_geom *g = &plan->task.geom;
  hk_winograd_own *o = hk_alloc_zero(sizeof *o);
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  plan->own = o;
  o->m = m, o->t = m + 2, o->bt = plan->decision.knob[HK_WINOGRAD_BT];
  o->line = is_line(g);
  o->m_high = o->line ? 1 : m;
  o->points = points_of(g, m);
  o->rows = hk_ceil_div(g->out[1], o->m_high), o->cols = hk_ceil_div(g->out[2], m);
  o->tiles = tile_count(g, m);
  o->blocks = g->groups * hk_ceil_div(o->tiles, o->bt);
  o->slots = slot_count(&plan->task, m, o->bt);
  o->panels = panels_make(g, plan->decision.kernel, o->points);
  o->fuse = hk_fuse_make(&plan->task, true);
  o->in = find(HK_FAMILY_WINOIN, plan->decision.kernel->isa, o->t);
  o->out = find(HK_FAMILY_WINOOUT, plan->decision.kernel->isa, m);
  o->slot_bytes = hk_winograd_slot_bytes(g, &o->panels, o->bt);
  o->zeros = hk_alloc_zero((size_t)g->c * sizeof(float));
  if (!o->zeros) return hk_fail(HK_NO_MEMORY, "no memory for a row of zeros");
  float *to;
  const int64_t layout[] = {o->panels.count, o->points};
  const hk_status s =
      hk_plan_pack_room(plan, o->panels.group_size * g->groups, sizeof *to, layout, HK_COUNT(layout), &to);
  if (to) pack(g, o, plan->raw_f, to);
  return s;
}

static void destroy(hk_plan *plan) {
  hk_winograd_own *o = plan->own;
  if (o) hk_free(o->zeros);
  hk_free(o);
}

static bool offer_2(const hk_task *t, hk_decision *d, char *why) { return offer(t, d, 2, why); }
static bool offer_4(const hk_task *t, hk_decision *d, char *why) { return offer(t, d, 4, why); }
static bool check_2(const hk_task *t, hk_decision *d, char *why) {
  return applies(t, d->kernel, why) && finish(t, d, 2, why);
}
static bool check_4(const hk_task *t, hk_decision *d, char *why) {
  return applies(t, d->kernel, why) && finish(t, d, 4, why);
}
static hk_status build_2(hk_plan *plan) { return build(plan, 2); }
static hk_status build_4(hk_plan *plan) { return build(plan, 4); }

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_winograd_own *o = plan->own;
  hk_text_add(t, " in=%s out=%s line=%d points=%lld blocks=%lld panels=%lld fused=%d", o->in->name, o->out->name,
              o->line, (long long)o->points, (long long)o->blocks, (long long)o->panels.count, o->fuse.all);
}

const hk_algo hk_algo_winograd2 = {.name = "winograd2",
                                   .summary = "3x3 by F(2x2, 3x3), a line of 3 by F(2, 3) (HK_MATH_FAST_ALGORITHMS)",
                                   .fewer_products = true,
                                   .knobs = {HK_KNOB("bt", 1, 256)},
                                   .family = HK_FAMILY_IGEMM,
                                   .device = HK_CPU,
                                   .error_factor = HK_WINOGRAD2_ERROR,
                                   .offer = offer_2,
                                   .check = check_2,
                                   .build = build_2,
                                   .run = hk_winograd_run,
                                   .destroy = destroy,
                                   .trace = trace};
const hk_algo hk_algo_winograd4 = {.name = "winograd4",
                                   .summary = "3x3 by F(4x4, 3x3), a line of 3 by F(4, 3) (HK_MATH_FAST_ALGORITHMS)",
                                   .fewer_products = true,
                                   .knobs = {HK_KNOB("bt", 1, 256)},
                                   .family = HK_FAMILY_IGEMM,
                                   .device = HK_CPU,
                                   .error_factor = HK_WINOGRAD4_ERROR,
                                   .offer = offer_4,
                                   .check = check_4,
                                   .build = build_4,
                                   .run = hk_winograd_run,
                                   .destroy = destroy,
                                   .trace = trace};
