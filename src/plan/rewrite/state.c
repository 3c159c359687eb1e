/* state: stateful 1D plans over algorithms that know no state. The state and x are copied one behind the other into the
 * workspace, in the order in which x lies; the inner task sees a longer x without padding; the new state is the end of
 * it. Costs a pass over x, which for blocks of a stream lies in the cache. */
#include <string.h>

#include "cost/cost.h"
#include "plan/rewrite/state.h"

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

void hk_state_inner(hk_task *t, int64_t granule) {
  const hk_strides x = hk_state_strides(&t->geom, granule);
  t->options.stateful = 0;
  hk_geom_set_joined(&t->geom, &x);
}

size_t hk_state_bytes(const hk_task *t, int64_t granule) {
  return (size_t)hk_round_up(
      t->geom.n * hk_state_strides(&t->geom, granule).outer * (int64_t)hk_type_bytes(t->geom.x_type), HK_ALIGN);
}

bool hk_state_takes(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  if (!t->options.stateful) return hk_refuse(why, "options.stateful is 0");
  if (g->gk == 0 || g->gm == 0 || g->k == 0) return hk_refuse(why, "x, f or y is empty");
  return true;
}

static int inner(const hk_task *t, int part, hk_task *to) {
  (void)t, (void)part;
  hk_state_inner(to, 1);
  return 1;
}

static size_t own_bytes(const hk_task *t) { return hk_state_bytes(t, 1); }

static double seconds(const hk_task *t, double inner_s) {
  const double bytes = 2.0 * (double)own_bytes(t), channels = (double)t->geom.n * (double)all_channels(&t->geom);
  return inner_s + 1e-7 + hk_cost_move(bytes, bytes) + 0.5e-9 * channels * (double)(t->geom.lo[2] + 4);
}

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
  for (int64_t i = 0; i < count; i++)
    memcpy(to + (size_t)(i * to_step) * bytes, from + (size_t)(i * from_step) * bytes, bytes);
}

/* The past of one channel; zeros (x's zero point) without a state. */
static void stage_past(const job *j, int64_t n, int64_t ch) {
  const hk_geom *g = &j->plan->task.geom;
  const size_t bytes = hk_type_bytes(g->x_type);
  const int64_t past = g->lo[2];
  char *to = j->stage + (size_t)(n * j->to.outer + ch * j->to.channel) * bytes;
  if (!j->call->state_in && !g->x_zero && j->to.at[2] == 1) memset(to, 0, (size_t)past * bytes);
  else if (j->call->state_in)
    copy(to, j->to.at[2], j->call->state_in + (size_t)((n * all_channels(g) + ch) * past) * bytes, 1, past, bytes);
  else
    for (int64_t i = 0; i < past; i++) hk_store_element(g->x_type, to, i * j->to.at[2], g->x_zero);
}

/* One image: its state channel by channel, then x along whatever is adjacent in it. */
static void stage_image(void *context, int64_t n) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const size_t bytes = hk_type_bytes(g->x_type);
  const bool last = channels_last(g);
  if (last && !j->call->state_in && !g->x_zero)
    memset(j->stage + (size_t)(n * j->to.outer) * bytes, 0, (size_t)(g->lo[2] * j->to.at[2]) * bytes);
  else
    for (int64_t ch = 0; ch < all_channels(g); ch++) stage_past(j, n, ch);
  /* the channels of all groups are one axis where their stride is constant */
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
         j->stage + (size_t)(n * j->to.outer + ch * j->to.channel + g->in[2] * j->to.at[2]) * bytes, j->to.at[2],
         g->lo[2], bytes);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  job j = {plan, call, hk_rewrite_workspace(plan, call), hk_state_strides(g, 1)};
  hk_plan_parallel(plan, g->n, stage_image, &j);
  hk_call in = *call;
  in.x = j.stage;
  const hk_status s = hk_rewrite_run_inner(plan, 0, &in);
  for (int64_t n = 0; n < g->n && call->state_out && !s; n++) keep_past(&j, n);
  return s;
}

const hk_rewrite hk_rewrite_state = {
    .name = "state",
    .summary = "streaming state: state and x joined in the workspace, a longer x without padding",
    .device = HK_CPU,
    .order = HK_ORDER_STATE,
    .takes = hk_state_takes,
    .inner = inner,
    .bytes = own_bytes,
    .seconds = seconds,
    .run = run};
