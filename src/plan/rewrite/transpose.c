/* relay: channels-first tensors through the channels-last algorithms. x is turned into channels-last in the workspace,
 * the inner algorithm writes y channels-last there too, with the whole epilogue done, and y is turned back (igemm and
 * dot turn their finished blocks themselves). Worth it where each element takes part in many products. One algorithm of this kind
 * stands for each inner one and takes its kernels and knobs. Refuses other types than f32, batch groups, residuals, gates, user functions and streaming state. */
#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/igemm.h"
#include "plan/transform/winograd.h"

extern const hk_algo hk_algo_igemm, hk_algo_dot, hk_algo_strip, hk_algo_winograd2, hk_algo_winograd4;

static bool adjacent(const hk_strides *s, const int64_t size[3]) {
  int64_t step = 1;
  for (int d = 2; d >= 0; step *= size[d], d--)
    if (size[d] > 1 && s->at[d] != step) return false;
  return true;
}

static bool applies(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const hk_epilogue *e = &t->epi.e;
  const char *no = NULL;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->y_type != HK_F32) no = "x, f and y must be f32";
  else if (g->batch_grouped) no = "batch groups are not relaid";
  else if (g->c < 2 || g->x.channel == 1) no = "the channels of x are adjacent already";
  else if (!adjacent(&g->x, g->in)) no = "the pixels of x are not adjacent";
  else if (!adjacent(&g->y, g->out)) no = "the pixels of y are not adjacent";
  else if (e->residual || e->gate || e->user || e->user2 || e->store) no = "residuals, gates and user functions stay where y lies";
  else if (t->options.stateful) no = "streaming state lies channel by channel";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0 || g->in[0] * g->in[1] * g->in[2] == 0) no = "nothing to multiply";
  if (no) snprintf(why, HK_REASON, "%s", no);
  return !no;
}

/* From pixel to pixel. Pixels that lie a multiple of 1 KiB apart would crowd a few sets of L1 while they are turned and while
 * a tile walks along several (Zen 4, 1024 to 256 channels of 14 x 14). */
static int64_t step_of(int64_t channels) { return channels % 256 ? channels : channels + 16; }

/* [n][at..][group][channel] */
static hk_strides last(int64_t channels, int64_t groups, const int64_t size[3]) {
  hk_strides s = {.channel = 1, .group = channels};
  s.at[2] = step_of(channels * groups);
  s.at[1] = s.at[2] * size[2];
  s.at[0] = s.at[1] * size[1];
  s.outer = s.at[0] * size[0];
  return s;
}

/* igemm and dot turn their blocks themselves while they are hot. */
static bool inner_turns(const hk_task *t, const hk_algo *inner) { return (inner == &hk_algo_igemm || inner == &hk_algo_dot) && hk_igemm_turns(t); }

static hk_task inner_task(const hk_task *t, const hk_algo *inner) {
  hk_task i = *t;
  i.geom.x = last(t->geom.c, t->geom.groups, t->geom.in);
  if (!inner_turns(t, inner)) i.geom.y = last(t->geom.k, t->geom.groups, t->geom.out);
  return i;
}

static size_t rounded(int64_t floats) { return (size_t)hk_round_up(floats * (int64_t)sizeof(float), HK_ALIGN); }
static size_t x_bytes(const hk_geom *g) { return rounded(g->n * step_of(g->groups * g->c) * g->in[0] * g->in[1] * g->in[2]); }
static size_t y_bytes(const hk_task *t, const hk_algo *inner) {
  return inner_turns(t, inner) ? 0 : rounded(step_of(t->geom.groups * t->geom.k) * t->geom.gm);
}
static size_t turned_bytes(const hk_task *t, const hk_algo *inner) { return x_bytes(&t->geom) + y_bytes(t, inner); }

static void account(const hk_task *t, hk_decision *d) {
  const hk_geom *g = &t->geom;
  const double bytes = (double)(x_bytes(g) + rounded(g->groups * g->k * g->gm));
  d->workspace_bytes = (size_t)hk_round_up((int64_t)d->workspace_bytes, HK_ALIGN) + turned_bytes(t, d->algo->inner);
  /* about half a cycle an element turned (Zen 4, 128 channels of 28 x 28), and its bytes; both ways around strip 256 channels of
   * 28 x 28 took 40 us, of 56 x 56, which no L2 holds, 150 to 200 */
  const double each = d->algo->inner != &hk_algo_strip ? 0.5 : bytes > 3.0 * (double)hk_cost_l2() ? 0.6 : 0.3;
  d->predicted_s += 2e-7 + (bytes / 4 * each / 3e9 + 0.2 * hk_cost_move(2 * bytes, 2 * bytes)) / (double)t->threads;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  if (!applies(t, why)) return false;
  const hk_task i = inner_task(t, d->algo->inner);
  if (!d->algo->inner->offer(&i, d, why)) return false;
  account(t, d);
  return true;
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  const hk_algo *inner = base->algo->inner;
  const hk_task i = inner_task(t, inner);
  if (!inner->vary || !inner->vary(&i, base, index, d)) return false;
  account(t, d);
  return true;
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  if (!applies(t, why)) return false;
  const hk_task i = inner_task(t, d->algo->inner);
  const hk_algo *self = d->algo;
  d->algo = self->inner;
  const bool takes = hk_decision_check(&i, d, why);
  d->algo = self;
  if (takes) account(t, d);
  return takes;
}

static hk_status build(hk_plan *plan) {
  const hk_task i = inner_task(&plan->task, plan->decision.algo->inner);
  hk_decision d = plan->decision;
  d.algo = plan->decision.algo->inner;
  d.workspace_bytes -= turned_bytes(&plan->task, d.algo);
  hk_packed *mine = plan->packed;
  hk_weights w = {.size = sizeof w, .scale = mine->scale, .bias = mine->bias, .slopes = mine->slopes};
  const hk_plan like = {.packed = mine, .f_shift = plan->f_shift};
  /* the build adds the offset of f again */
  if (plan->task.f_now && !hk_plan_shares(plan)) w.f = (const float *)plan->raw_f - i.geom.f.offset;
  hk_plan *inner = NULL;
  const hk_status s = hk_plan_build(&inner, &i, &d, &w, hk_plan_shares(plan) ? &like : NULL);
  plan->own = inner;
  if (s) return s;
  atomic_fetch_add(&inner->packed->refs, 1);
  hk_packed_release(mine);
  plan->packed = inner->packed; /* one set of weights, which plans made alike share */
  plan->f_shift = inner->f_shift;
  return HK_OK;
}

static void destroy(hk_plan *plan) { hk_plan_destroy(plan->own); }

enum { CHUNK = 64 }; /* pixels a piece of work turns */

typedef struct job {
  const hk_geom *g;
  const hk_kernel *turn;
  const float *from;
  float *to;
  bool back;
  int64_t chunks, pixels, channels, groups; /* groups a step of their channels apart are turned as one */
} job;

static void turn_piece(void *context, int64_t i) {
  const job *j = context;
  const hk_geom *g = j->g;
  const int64_t chunk = i % j->chunks, group = i / j->chunks % j->groups, n = i / j->chunks / j->groups;
  const int64_t m = chunk * CHUNK, count = hk_min64(CHUNK, j->pixels - m), all = step_of(j->channels * j->groups);
  const int64_t flat = (n * j->pixels + m) * all + group * j->channels;
  const hk_strides *s = j->back ? &g->y : &g->x;
  const int64_t plane = n * s->outer + group * s->group + m;
  hk_turn_args a = {.from = j->from + plane, .to = j->to + flat, .from_step = s->channel, .to_step = all, .rows = j->channels, .columns = count};
  if (j->back) a = (hk_turn_args){.from = j->from + flat, .to = j->to + plane, .from_step = all, .to_step = s->channel, .rows = count, .columns = j->channels};
  j->turn->fn(&a);
}

static void turn_all(const hk_plan *plan, bool back, const float *from, float *to) {
  const hk_geom *g = &plan->task.geom;
  job j = {.g = g, .turn = hk_kernel_best(HK_FAMILY_TURN, plan->task.isa), .from = from, .to = to, .back = back, .channels = back ? g->k : g->c, .groups = g->groups};
  const hk_strides *s = back ? &g->y : &g->x;
  if (s->group == j.channels * s->channel) {
    j.channels *= j.groups;
    j.groups = 1;
  }
  j.pixels = back ? g->pixels : g->in[0] * g->in[1] * g->in[2];
  j.chunks = hk_ceil_div(j.pixels, CHUNK);
  hk_plan_parallel(plan, j.chunks * j.groups * g->n, turn_piece, &j);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_plan *inner = plan->own;
  const hk_geom *g = &plan->task.geom;
  char *x = call->workspace + hk_round_up((int64_t)inner->decision.workspace_bytes, HK_ALIGN), *y = x + x_bytes(g);
  turn_all(plan, false, (const float *)call->x, (float *)(void *)x);
  hk_call in = *call;
  const bool back = !inner_turns(&plan->task, inner->decision.algo);
  in.x = x;
  if (back) in.y = y;
  if (plan->task.f_now) in.f = NULL;
  const hk_status s = inner->decision.algo->run(inner, &in);
  if (!s && back) turn_all(plan, true, (const float *)(void *)y, (float *)call->y);
  return s;
}

#define RELAY(which, rows, factor, over)                                                                                   \
  const hk_algo hk_algo_relay_##which = {.name = "relay_" #which, .inner = &hk_algo_##which, .family = HK_FAMILY_##rows,   \
                                         .device = HK_CPU, .error_factor = factor, .skips_padding = over, .offer = offer,     \
                                         .vary = vary, .check = check, .build = build, .run = run, .destroy = destroy}
RELAY(igemm, IGEMM, 0, true);
RELAY(dot, DOT, 0, true);
RELAY(strip, STRIP, 0, false);
RELAY(winograd2, IGEMM, HK_WINOGRAD2_ERROR, false);
RELAY(winograd4, IGEMM, HK_WINOGRAD4_ERROR, false);
