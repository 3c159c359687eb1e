/* state: stateful 1D plans over the algorithms that know no state. The state and x are laid one behind the other in the
 * workspace, in the order in which x lies; the inner algorithm sees a longer x without padding; the new state is the end of
 * it. Costs a pass over x, which for blocks of a stream lies in the cache. One algorithm of this kind stands for
 * each inner one and takes its kernels and knobs. Refuses what its inner algorithm refuses. */
#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/rewrite/state.h"

extern const hk_algo hk_algo_dwp, hk_algo_dwc, hk_algo_grouped, hk_algo_igemm, hk_algo_planes, hk_algo_small, hk_algo_qgemm,
    hk_algo_dgemm;

static int64_t all_channels(const hk_geom *g) { return g->c * g->groups; }
static int64_t length(const hk_geom *g) { return g->lo[2] + g->in[2]; }
static bool channels_last(const hk_geom *g) {
  return (g->c > 1 ? g->x.channel : g->x.group) == 1 && !(g->in[2] > 1 && g->x.at[2] == 1);
}

hk_strides hk_state_strides(const hk_geom *g, int64_t granule) {
  const bool last = channels_last(g);
  const int64_t row = last ? length(g) : hk_round_up(length(g), granule);
  hk_strides s = {.outer = all_channels(g) * row};
  s.channel = last ? 1 : row;
  s.at[2] = last ? all_channels(g) : 1;
  s.at[0] = s.at[1] = s.outer;
  s.group = g->c * s.channel;
  return s;
}

hk_task hk_state_task(const hk_task *t, int64_t granule) {
  hk_task i = *t;
  i.options.stateful = 0;
  i.geom.x = hk_state_strides(&t->geom, granule);
  i.geom.in[2] = i.geom.in_span[2] = length(&t->geom);
  i.geom.lo[2] = 0;
  return i;
}

size_t hk_state_bytes(const hk_task *t, int64_t granule) {
  return (size_t)hk_round_up(t->geom.n * hk_state_strides(&t->geom, granule).outer * (int64_t)hk_type_bytes(t->geom.x_type), HK_ALIGN);
}

bool hk_state_takes(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (!t->options.stateful) no = "the plan has no state";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "nothing to multiply";
  if (no) snprintf(why, HK_REASON, "%s", no);
  return !no;
}

static hk_task inner_task(const hk_task *t) { return hk_state_task(t, 1); }
static size_t own_bytes(const hk_task *t) { return hk_state_bytes(t, 1); }

static double pass_seconds(const hk_task *t) {
  const double bytes = 2.0 * (double)own_bytes(t);
  return 1e-7 + hk_cost_move(bytes, bytes) + 0.5e-9 * (double)t->geom.n * (double)all_channels(&t->geom) * (double)(t->geom.lo[2] + 4);
}

static const hk_around around = {inner_task, own_bytes, pass_seconds};

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  return hk_state_takes(t, why) && hk_around_offer(&around, t, d, why);
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  return hk_around_vary(&around, t, base, index, d);
}
static bool check(const hk_task *t, hk_decision *d, char *why) {
  if (t->options.stateful) return hk_around_check(&around, t, d, why);
  snprintf(why, HK_REASON, "the plan has no state");
  return false;
}
static hk_status build(hk_plan *plan) { return hk_around_build(&around, plan, plan->raw_f); }

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  char *stage;
  hk_strides to;
} job;

/* count elements from one strided place to another */
static void copy(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, size_t bytes) {
  if (to_step == 1 && from_step == 1) {
    memcpy(to, from, (size_t)count * bytes);
    return;
  }
  if (bytes == sizeof(float)) { /* the common case, without a call an element */
    float v;
    for (int64_t i = 0; i < count; i++) {
      memcpy(&v, from + (size_t)(i * from_step) * sizeof v, sizeof v);
      memcpy(to + (size_t)(i * to_step) * sizeof v, &v, sizeof v);
    }
    return;
  }
  for (int64_t i = 0; i < count; i++) memcpy(to + (size_t)(i * to_step) * bytes, from + (size_t)(i * from_step) * bytes, bytes);
}

/* The past of one channel; zeros (x's zero point) without a state. */
static void stage_past(const job *j, int64_t n, int64_t ch) {
  const hk_geom *g = &j->plan->task.geom;
  const size_t bytes = hk_type_bytes(g->x_type);
  const int64_t past = g->lo[2];
  char *to = j->stage + (size_t)(n * j->to.outer + ch * j->to.channel) * bytes;
  if (!j->call->state_in && !g->x_zero && j->to.at[2] == 1) memset(to, 0, (size_t)past * bytes);
  else if (j->call->state_in) copy(to, j->to.at[2], j->call->state_in + (size_t)((n * all_channels(g) + ch) * past) * bytes, 1, past, bytes);
  else
    for (int64_t i = 0; i < past; i++) hk_store_element(g->x_type, to, i * j->to.at[2], g->x_zero);
}

/* One image: its state channel by channel, then x along whatever is adjacent in it. */
static void stage_image(void *context, int64_t n) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const size_t bytes = hk_type_bytes(g->x_type);
  const bool last = channels_last(g);
  if (last && !j->call->state_in && !g->x_zero) memset(j->stage + (size_t)(n * j->to.outer) * bytes, 0, (size_t)(g->lo[2] * j->to.at[2]) * bytes);
  else
    for (int64_t ch = 0; ch < all_channels(g); ch++) stage_past(j, n, ch);
  /* the channels of all groups are one axis where they lie evenly */
  const int64_t step = g->c > 1 ? g->x.channel : g->x.group;
  const bool even = g->groups == 1 || g->x.group == g->c * step;
  const int64_t parts = even ? 1 : g->groups, channels = even ? all_channels(g) : g->c;
  for (int64_t part = 0; part < parts; part++) {
    const char *from = j->call->x + (n * g->x.outer + part * g->x.group) * (int64_t)bytes;
    char *to = j->stage + (size_t)(n * j->to.outer + part * j->to.group + g->lo[2] * j->to.at[2]) * bytes;
    const int64_t outer = last ? g->in[2] : channels, inner = last ? channels : g->in[2];
    for (int64_t o = 0; o < outer; o++)
      copy(to + (size_t)(o * (last ? j->to.at[2] : j->to.channel)) * bytes, 1,
           from + o * (last ? g->x.at[2] : step) * (int64_t)bytes, last ? step : g->x.at[2], inner, bytes);
  }
}

/* The state after the block: the end of every staged channel. */
static void keep_past(const job *j, int64_t n) {
  const hk_geom *g = &j->plan->task.geom;
  const size_t bytes = hk_type_bytes(g->x_type);
  for (int64_t ch = 0; ch < all_channels(g); ch++)
    copy(j->call->state_out + (size_t)((n * all_channels(g) + ch) * g->lo[2]) * bytes, 1,
         j->stage + (size_t)(n * j->to.outer + ch * j->to.channel + g->in[2] * j->to.at[2]) * bytes, j->to.at[2], g->lo[2], bytes);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  const hk_plan *inner = plan->own;
  job j = {plan, call, hk_around_workspace(plan, call), hk_state_strides(g, 1)};
  hk_plan_parallel(plan, g->n, stage_image, &j);
  hk_call in = *call;
  in.x = j.stage;
  in.state_in = NULL;
  in.state_out = NULL;
  const hk_status s = inner->decision.algo->run(inner, &in);
  for (int64_t n = 0; n < g->n && call->state_out && !s; n++) keep_past(&j, n);
  return s;
}

#define STATE(which, FAMILY)                                                                                             \
  const hk_algo hk_algo_state_##which = {.name = "state_" #which, .inner = &hk_algo_##which, .family = HK_FAMILY_##FAMILY, \
                                         .device = HK_CPU, .offer = offer, .vary = vary, .check = check,                 \
                                         .build = build, .run = run, .destroy = hk_around_destroy}
STATE(dwp, DWP);
STATE(dwc, DWC);
STATE(grouped, NONE);
STATE(igemm, IGEMM);
STATE(planes, PGEMM);
STATE(small, SMALL);
STATE(qgemm, QGEMM);
STATE(dgemm, DGEMM);
