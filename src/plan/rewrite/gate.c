/* gate: gated and blended epilogues over algorithms that know none. The sums of all k channels, scaled and biased, go
 * to the workspace in y's order; then channel j and its partner j + k/2 meet, run by run, and the result goes to y with
 * the residual. Sums of f64 and int8 problems are f64, and so is what follows them, as in the reference. */
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/tiles.h"
#include "plan/rewrite/sums.h"

#define RUN 256 /* values handled at a time, on the stack */

static bool takes(const hk_task *t, char *why) {
  const hk_epilogue *e = &t->epi.e;
  if (!e->gate) return hk_refuse(why, "the epilogue has no gate");
  if (e->act == HK_ACT_USER || e->act2 == HK_ACT_USER)
    return hk_refuse(why, "a gate with act = user calls the function one value at a time, as only ref does");
  if (t->options.stateful) return hk_refuse(why, "options.stateful is 1: state goes before gate");
  if (t->geom.gm == 0 || t->geom.y_channels == 0) return hk_refuse(why, "y is empty");
  return true;
}

/* f64 activations call libm once per value, f32 ones are vectors. */
static double seconds(const hk_task *t, double inner_s) {
  const double bytes = (double)hk_sums_bytes(t), values = (double)t->geom.gm * (double)t->geom.y_channels;
  const bool wide = hk_sums_type(&t->geom) == HK_F64;
  return inner_s + 2e-7 + 2.0 * hk_cost_move(bytes, bytes) + (wide ? 30e-9 : 1e-9) * values;
}

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const char *sums;
  hk_strides at;
  bool last;
} job;

/* The slope of PRELU is that of channel k. */
static void activate(const hk_plan *plan, int64_t k, hk_act_args a) {
  if (a.act == HK_ACT_PRELU) a.slope = (const float *)plan->packed->slopes + k;
  plan->act->fn(&a);
}

/* n values from t and b, already adjacent, into y at `at` */
static void gate_run(const job *j, const hk_at *at, int64_t n, const float *t, const float *b) {
  const hk_epilogue *e = &j->plan->task.epi.e;
  float top[RUN], low[RUN];
  const int64_t half = j->plan->task.geom.y_channels;
  activate(j->plan, at->k, (hk_act_args){t, top, n, e->act, e->a, e->b, .slope_step = at->along_k});
  activate(j->plan, at->k + half, (hk_act_args){b, low, n, e->act2, e->a2, e->b2, .slope_step = at->along_k});
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
  const float *base = (const float *)(const void *)j->sums + n * j->at.outer + p[0] * j->at.at[0] + p[1] * j->at.at[1];
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

/* The same in double, position by position along the channels. */
static void gate_row_f64(void *context, int64_t index) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const hk_epilogue *e = &j->plan->task.epi.e;
  const int64_t n = index / (g->out[0] * g->out[1]), p[2] = {index / g->out[1] % g->out[0], index % g->out[1]};
  const double *base =
      (const double *)(const void *)j->sums + n * j->at.outer + p[0] * j->at.at[0] + p[1] * j->at.at[1];
  double v[RUN];
  for (int64_t q = 0; q < g->out[2]; q++)
    for (int64_t k = 0; k < g->y_channels; k += RUN) {
      const int64_t count = hk_min64(RUN, g->y_channels - k);
      const double *top = base + q * j->at.at[2] + k * j->at.channel, *low = top + g->y_channels * j->at.channel;
      for (int64_t i = 0; i < count; i++) {
        const double s = top[i * j->at.channel], t = hk_tiles_act(j->plan, e->act, e->a, e->b, k + i, s);
        const double b = hk_tiles_act(j->plan, e->act2, e->a2, e->b2, k + i + g->y_channels, low[i * j->at.channel]);
        v[i] = e->gate == HK_GATE_GATED ? t * b : b * t + (1 - b) * s;
      }
      const hk_at at = hk_pixel_at(g, &(hk_pixel){n, {p[0], p[1], q}}, k);
      hk_tiles_store(j->plan, j->call, &at, count, v);
    }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  char *sums = hk_rewrite_workspace(plan, call);
  hk_call in = *call;
  in.y = sums;
  in.c = NULL;
  const hk_status s = hk_rewrite_run_inner(plan, 0, &in);
  if (s) return s;
  job j = {plan, call, sums, hk_sums_strides(g), false};
  j.last = j.at.channel == 1 && j.at.at[2] != 1;
  hk_plan_parallel(plan, g->n * g->out[0] * g->out[1], hk_sums_type(g) == HK_F64 ? gate_row_f64 : gate_row, &j);
  return HK_OK;
}

const hk_rewrite hk_rewrite_gate = {.name = "gate",
                                    .summary =
                                        "gated epilogues: the sums of all channels in the workspace, then the gate",
                                    .device = HK_CPU,
                                    .order = HK_ORDER_GATE,
                                    .takes = takes,
                                    .inner = hk_sums_inner,
                                    .bytes = hk_sums_bytes,
                                    .seconds = seconds,
                                    .run = run};
