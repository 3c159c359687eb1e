/* dgemm: f64 convolution by tiles of MR pixels x NR output channels, rows of x addressed in place. Any strides, groups,
 * padding, dilation of both, and y; no workspace unless f comes at execute. Refuses other types of x and f, gates and
 * streaming state. Packed f: [group][panel of NR][tap][c][NR], channels past k are zero. */
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/tiles.h"

#define MAX_MR 8
#define MAX_NR 32
#define SEGMENTS 32 /* taps whose row pointers are kept on the stack at a time */
#define STRIPS 8    /* strips of MR pixels a job */

static int64_t panels_of(const hk_geom *g, const hk_kernel *k) { return hk_ceil_div(g->k, k->nr); }
static size_t f_bytes(const hk_geom *g, const hk_kernel *k) {
  return (size_t)(g->groups * panels_of(g, k) * g->gk * k->nr) * sizeof(double);
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (g->x_type != HK_F64 || g->f_type != HK_F64) no = "x and f must be f64";
  else if (t->epi.e.gate) no = "a gate needs both halves of a channel pair in one tile";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "x, f or y is empty";
  if (no) return hk_refuse(why, no);
  const double work = 2.0 * (double)g->groups * (double)hk_round_up(g->gm, d->kernel->mr) *
                      (double)(panels_of(g, d->kernel) * d->kernel->nr) * (double)g->gk;
  d->workspace_bytes = t->f_now ? 0 : f_bytes(g, d->kernel);
  const double pixels = (double)g->groups * (double)g->gm;
  const hk_work w = {.products = work / hk_cost_peak(d->kernel->isa),
                     .cycles = 8 * hk_cost_here()->tap * pixels * (double)g->taps, /* where each tap lies */
                     .rows = 4 * pixels * (double)panels_of(g, d->kernel),
                     .values = 40 * (double)g->gm * (double)g->y_channels};
  d->predicted_s = hk_cost_seconds(&hk_cost_here()->dgemm, &w, g->gm, t->threads);
  return true;
}

static void pack(const hk_plan *plan, const void *from, void *packed) {
  const double *f = from;
  double *to = packed;
  const hk_geom *g = &plan->task.geom;
  const int64_t nr = plan->decision.kernel->nr, panels = panels_of(g, plan->decision.kernel);
  for (int64_t b = 0; b < g->groups * panels * g->taps; b++) {
    const int64_t tap = b % g->taps, k0 = b / g->taps % panels * nr, group = b / g->taps / panels;
    const int64_t s = tap % g->win[2], r = tap / g->win[2] % g->win[1], u = tap / g->win[2] / g->win[1];
    const double *at = f + group * g->f.group + u * g->f.at[0] + r * g->f.at[1] + s * g->f.at[2];
    for (int64_t c = 0; c < g->c; c++)
      for (int64_t j = 0; j < nr; j++) *to++ = k0 + j < g->k ? at[(k0 + j) * g->f.outer + c * g->f.channel] : 0;
  }
}

static hk_status build(hk_plan *plan) {
  return hk_tiles_pack(plan, f_bytes(&plan->task.geom, plan->decision.kernel), pack);
}

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const double *f;
} job;

static void finish(const job *j, const hk_pixel *at, int64_t k, int64_t count, double *v) {
  const hk_epilogue *e = &j->plan->task.epi.e;
  const double *scale = j->call->scale, *bias = j->call->bias;
  for (int64_t i = 0; i < count; i++) {
    if (e->scale) v[i] *= scale[e->scale == 2 ? k + i : 0];
    if (e->bias) v[i] += bias[k + i];
  }
  const hk_at where = hk_pixel_at(&j->plan->task.geom, at, k);
  hk_tiles_finish(j->plan, j->call, &where, count, v);
}

static void strip(const job *j, int64_t group, int64_t m0) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_kernel *kernel = j->plan->decision.kernel;
  const int32_t mr = kernel->mr, nr = kernel->nr;
  const int rows = (int)hk_min64(mr, g->gm - m0);
  const double *x = (const double *)j->call->x + group * g->x.group, *row[SEGMENTS * MAX_MR];
  double out[MAX_MR * MAX_NR];
  hk_pixel at[MAX_MR];
  int64_t o;
  for (int m = 0; m < rows; m++) at[m] = hk_pixel_of(g, m0 + m);
  for (int64_t p = 0; p < panels_of(g, kernel); p++) {
    hk_dgemm_args a = {.row = row, .out = out, .channels = g->c, .step = g->x.channel};
    const double *f = j->f + (group * panels_of(g, kernel) + p) * g->gk * nr;
    for (int64_t t0 = 0; t0 < g->taps; t0 += SEGMENTS) {
      a.segments = hk_min64(SEGMENTS, g->taps - t0);
      if (p == 0 || g->taps > SEGMENTS)
        for (int64_t t = 0; t < a.segments; t++)
          for (int m = 0; m < mr; m++)
            row[t * mr + m] = m < rows && hk_pixel_source(g, &at[m], t0 + t, &g->x, &o) ? x + o : NULL;
      a.f = f + t0 * g->c * nr;
      a.accumulate = t0 > 0;
      kernel->fn(&a);
    }
    for (int m = 0; m < rows; m++) finish(j, &at[m], group * g->k + p * nr, hk_min64(nr, g->k - p * nr), out + m * nr);
  }
}

static int64_t jobs_a_group(const hk_plan *plan) {
  return hk_ceil_div(plan->task.geom.gm, (int64_t)plan->decision.kernel->mr * STRIPS);
}

static void tiles(void *context, int64_t index) {
  const job *j = context;
  const int64_t mr = j->plan->decision.kernel->mr, per = jobs_a_group(j->plan), m0 = index % per * mr * STRIPS;
  for (int64_t m = m0; m < hk_min64(m0 + mr * STRIPS, j->plan->task.geom.gm); m += mr) strip(j, index / per, m);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  job j = {plan, call, plan->packed->f};
  if (!plan->task.f_now) {
    pack(plan, call->f, call->workspace);
    j.f = (const double *)call->workspace;
  }
  hk_plan_parallel(plan, plan->task.geom.groups * jobs_a_group(plan), tiles, &j);
  return HK_OK;
}

const hk_algo hk_algo_dgemm = {.name = "dgemm",
                               .summary = "f64 tiles over rows of x in place",
                               .family = HK_FAMILY_DGEMM,
                               .device = HK_CPU,
                               .offer = offer,
                               .check = offer,
                               .build = build,
                               .run = run};
