/* gate: gated and blended epilogues over the f32 algorithms. The sums of all k channels, scaled and biased, go to the
 * workspace as f32 in y's order; then channel j and its partner j + k/2 meet, run by run, and the result goes to y with
 * the residual. One algorithm of this kind stands for each f32 one and takes its kernels and knobs. Refuses user
 * activations, streaming state, and what its f32 algorithm refuses. */
#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/sums.h"

#define RUN 256 /* values handled at a time, on the stack */

extern const hk_algo hk_algo_igemm, hk_algo_planes, hk_algo_dwc, hk_algo_dwp;

hk_strides hk_sums_strides(const hk_geom *g) {
  const int64_t k = g->k * g->groups;
  const bool last = g->y.channel == 1 && !(g->out[2] > 1 && g->y.at[2] == 1);
  hk_strides s = {0};
  s.channel = last ? 1 : g->pixels;
  s.at[2] = last ? k : 1;
  s.at[1] = s.at[2] * g->out[2];
  s.at[0] = s.at[1] * g->out[1];
  s.outer = g->pixels * k;
  s.group = g->groups > 1 ? s.channel * g->k : 0;
  return s;
}

hk_task hk_sums_task(const hk_task *t) {
  hk_task i = *t;
  const hk_epilogue *e = &t->epi.e;
  i.epi = (hk_epi){.e = {.size = sizeof i.epi.e, .scale = e->scale, .bias = e->bias}, .any = e->scale || e->bias, .simple = true};
  i.geom.y_type = i.problem.y_type = HK_F32;
  i.geom.y_channels = t->geom.k * t->geom.groups;
  i.geom.y = hk_sums_strides(&t->geom);
  i.geom.y_zero = 0;
  return i;
}

size_t hk_sums_bytes(const hk_task *t) {
  return (size_t)hk_round_up(t->geom.gm * t->geom.k * t->geom.groups * (int64_t)sizeof(float), HK_ALIGN);
}

static double pass_seconds(const hk_task *t) {
  const double bytes = (double)hk_sums_bytes(t);
  return 2e-7 + 2.0 * hk_cost_move(bytes, bytes) + 1e-9 * (double)t->geom.gm * (double)t->geom.y_channels;
}

static const hk_around around = {hk_sums_task, hk_sums_bytes, pass_seconds};

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (!t->epi.e.gate) no = "the epilogue has no gate";
  else if (t->epi.e.act == HK_ACT_USER || t->epi.e.act2 == HK_ACT_USER) no = "a user function gates one value at a time";
  else if (g->acc_type != HK_F32) no = "sums are not f32";
  else if (t->options.stateful) no = "streaming state is not handled here";
  if (no) {
    snprintf(why, HK_REASON, "%s", no);
    return false;
  }
  return hk_around_offer(&around, t, d, why);
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  return hk_around_vary(&around, t, base, index, d);
}
static bool check(const hk_task *t, hk_decision *d, char *why) { return hk_around_check(&around, t, d, why); }
static hk_status build(hk_plan *plan) { return hk_around_build(&around, plan, plan->raw_f); }

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const float *sums;
  hk_strides at;
  bool last;
} job;

static void activate(const hk_plan *plan, hk_act act, float a, float b, int64_t k, int64_t step, float *v, int64_t n) {
  const float *slope = act == HK_ACT_PRELU ? (const float *)plan->packed->slopes + k : NULL;
  if (act != HK_ACT_NONE) plan->act->fn(&(hk_act_args){v, n, act, a, b, slope, step});
}

/* n values from t and b, already adjacent, into y at `at` */
static void gate_run(const job *j, const hk_at *at, int64_t n, const float *t, const float *b) {
  const hk_epilogue *e = &j->plan->task.epi.e;
  float top[RUN], low[RUN];
  memcpy(top, t, (size_t)n * sizeof *t);
  memcpy(low, b, (size_t)n * sizeof *b);
  activate(j->plan, e->act, e->a, e->b, at->k, at->along_k, top, n);
  activate(j->plan, e->act2, e->a2, e->b2, at->k + j->plan->task.geom.y_channels, at->along_k, low, n);
  if (e->gate == HK_GATE_GATED)
    for (int64_t i = 0; i < n; i++) top[i] *= low[i];
  else
    for (int64_t i = 0; i < n; i++) top[i] = low[i] * top[i] + (1 - low[i]) * t[i];
  hk_plan_store_finished(j->plan, j->call, at, n, top);
}

/* One row of outputs: all channels, all positions of the last dimension. */
static void gate_row(void *context, int64_t index) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t n = index / (g->out[0] * g->out[1]), p[2] = {index / g->out[1] % g->out[0], index % g->out[1]};
  const int64_t half = g->y_channels, across = half * j->at.channel, lead = 3 - g->rank;
  const float *base = j->sums + n * j->at.outer + p[0] * j->at.at[0] + p[1] * j->at.at[1];
  hk_at at = {.n = n, .along_k = j->last};
  for (int64_t d = lead; d < 2; d++) at.p[d - lead] = p[d];
  const int64_t outer = j->last ? g->out[2] : half, inner = j->last ? half : g->out[2];
  for (int64_t o = 0; o < outer; o++) {
    const float *t = base + o * (j->last ? j->at.at[2] : j->at.channel);
    for (int64_t i = 0; i < inner; i += RUN) {
      at.k = j->last ? i : o;
      at.p[2 - lead] = j->last ? o : i;
      gate_run(j, &at, hk_min64(RUN, inner - i), t + i, t + i + across);
    }
  }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  const hk_plan *inner = plan->own;
  char *sums = hk_around_workspace(plan, call);
  hk_call in = *call;
  in.y = sums;
  in.c = NULL;
  const hk_status s = inner->decision.algo->run(inner, &in);
  if (s) return s;
  job j = {plan, call, (const float *)sums, hk_sums_strides(g), false};
  j.last = j.at.channel == 1 && j.at.at[2] != 1;
  hk_plan_parallel(plan, g->n * g->out[0] * g->out[1], gate_row, &j);
  return HK_OK;
}

#define GATE(which, FAMILY)                                                                                            \
  const hk_algo hk_algo_gate_##which = {.name = "gate_" #which, .inner = &hk_algo_##which, .family = HK_FAMILY_##FAMILY, \
                                        .device = HK_CPU, .offer = offer, .vary = vary, .check = check,                \
                                        .build = build, .run = run, .destroy = hk_around_destroy}
GATE(igemm, IGEMM);
GATE(planes, PGEMM);
GATE(dwc, DWC);
GATE(dwp, DWP);
