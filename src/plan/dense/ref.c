/* The reference as an algorithm: computes everything, refuses nothing, needs no workspace. Always a candidate. */
#include "cpu/ref/ref.h"
#include "plan/plan.h"

/* about 4e8 flop/s on a Zen 4 core, a 64-channel 3x3 layer */
#define FLOPS 4e8

static double clamp(double v, double most) { return v < 0 ? 0 : v > most ? most : v; }

/* The area under min(max((t - p*stride)/dil, 0), win) for p in 0..out: pairs of an output and a tap of dimension d that
 * lie before position t. */
static double pairs_before(const hk_geom *g, int d, double t) {
  const double stride = (double)g->stride[d], dil = (double)g->dil[d], win = (double)g->win[d], out = (double)g->out[d];
  const double whole = clamp((t - win * dil) / stride, out), end = clamp(t / stride, out);
  const double high = clamp((t - whole * stride) / dil, win), low = clamp((t - end * stride) / dil, win);
  return whole * win + (end - whole) * (high + low) / 2;
}

/* The share of taps that hk_ref_position visits: those between the ends of x. Windows far larger than x are what only
 * the reference skips without looking. */
static double visited(const hk_task *t) {
  const hk_geom *g = &t->geom;
  double share = 1;
  for (int d = 0; d < 3 && g->gm && !t->options.stateful; d++) {
    const double lo = (double)g->lo[d], all = (double)g->out[d] * (double)g->win[d];
    share *= (pairs_before(g, d, lo + (double)g->in_span[d]) - pairs_before(g, d, lo)) / all;
  }
  return clamp(share, 1);
}

static bool offer(const hk_task *task, hk_decision *d, char *why) {
  (void)why;
  d->workspace_bytes = 0;
  const double flops = task->geom.flops * visited(task),
               outputs = (double)task->geom.gm * (double)task->geom.y_channels;
  d->predicted_s = 1e-6 + (flops + 40.0 * outputs) / FLOPS;
  return true;
}

static hk_status build(hk_plan *plan) { return hk_plan_copy_weights(plan); }

typedef struct job {
  hk_ref_args a;
  int64_t count, chunk;
} job;

static void body(void *context, int64_t i) {
  const job *j = context;
  const int64_t end = hk_min64(j->count, (i + 1) * j->chunk);
  for (int64_t m = i * j->chunk; m < end; m++) hk_ref_position(&j->a, m);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_task *t = &plan->task;
  job j = {.a = {.g = &t->geom,
                 .epi = &t->epi,
                 .x = call->x,
                 .f = call->f,
                 .c = call->c,
                 .y = call->y,
                 .scale = call->scale,
                 .bias = call->bias,
                 .slopes = plan->packed->slopes,
                 .f_zero = plan->packed->f_zero,
                 .stateful = t->options.stateful,
                 .state_in = call->state_in,
                 .user = call->user},
           .count = t->geom.gm};
  /* about four pieces per thread; pieces never change a result */
  j.chunk = hk_max64(1, t->geom.gm / (4 * t->threads));
  hk_plan_parallel(plan, hk_ceil_div(j.count, j.chunk), body, &j);
  if (t->options.stateful && call->state_out) hk_ref_state(&j.a, call->state_out);
  return HK_OK;
}

const hk_algo hk_algo_ref = {.name = "ref",
                             .summary = "the scalar reference: computes everything, defines the result",
                             .family = HK_FAMILY_NONE,
                             .device = HK_CPU,
                             .fallback = true,
                             .skips_padding = true,
                             .offer = offer,
                             .check = offer,
                             .build = build,
                             .run = run};
