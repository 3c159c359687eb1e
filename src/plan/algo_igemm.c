/* Implicit GEMM: tiles of MR output pixels x NR output channels; the rows of the im2col matrix are addressed through
 * offsets, one a pixel and tap, and never built. f32 data, any strides, any type of y. Refuses input dilation, gates,
 * state and weights that come at execute. Packed f: [group][k block][tap][c][NR], channels past k are zero. */
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

#define MAX_MR 8
#define MAX_NR 32
#define SEGMENTS 32 /* taps whose offsets are kept on the stack at a time */

static bool refuse(char *why, const char *text) {
  snprintf(why, HK_REASON, "%s", text);
  return false;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) return refuse(why, "needs f32 x and f, and no f64 y");
  if (!t->f_now) return refuse(why, "needs the weights at creation");
  for (int i = 0; i < 3; i++)
    if (g->in_dil[i] != 1) return refuse(why, "input dilation is not 1");
  if (t->epi.e.gate) return refuse(why, "the epilogue is gated");
  if (t->options.stateful) return refuse(why, "the plan is stateful");
  const double width = d->kernel->isa == HK_ISA_SCALAR ? 1 : 8;
  const double padded = (double)g->groups * (double)hk_round_up(g->gm, d->kernel->mr) *
                        (double)hk_round_up(g->gn, d->kernel->nr) * (double)g->gk * 2;
  d->predicted_s = 1e-6 + padded / (width * 6e9);
  return true;
}

static int64_t blocks(const hk_plan *plan) { return hk_ceil_div(plan->task.geom.k, plan->decision.kernel->nr); }

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  const int64_t nr = plan->decision.kernel->nr, nb = blocks(plan);
  if (hk_plan_shares(plan)) return HK_OK;
  plan->packed->f_bytes = (size_t)(g->groups * nb * g->gk * nr) * sizeof(float);
  float *to = plan->packed->f = hk_alloc(plan->packed->f_bytes);
  if (!to) return hk_fail(HK_NO_MEMORY, "no memory for %zu bytes of packed weights", plan->packed->f_bytes);
  const float *f = plan->raw_f;
  for (int64_t group = 0; group < g->groups; group++)
    for (int64_t b = 0; b < nb; b++)
      for (int64_t tap = 0; tap < g->taps; tap++) {
        const int64_t s = tap % g->win[2], r = tap / g->win[2] % g->win[1], u = tap / g->win[2] / g->win[1];
        const float *at = f + group * g->f.group + u * g->f.at[0] + r * g->f.at[1] + s * g->f.at[2];
        for (int64_t c = 0; c < g->c; c++)
          for (int64_t j = 0; j < nr; j++) {
            const int64_t k = b * nr + j;
            *to++ = k < g->k ? at[k * g->f.outer + c * g->f.channel] : 0;
          }
      }
  return HK_OK;
}

typedef struct pixel { int64_t n, p[3]; } pixel;

static pixel pixel_of(const hk_geom *g, int64_t m) {
  const int64_t row = m / g->out[2], plane = row / g->out[1];
  return (pixel){plane / g->out[0], {plane % g->out[0], row % g->out[1], m % g->out[2]}};
}

static int64_t row_offset(const hk_geom *g, const pixel *at, int64_t tap) {
  const int64_t s[3] = {tap / g->win[2] / g->win[1], tap / g->win[2] % g->win[1], tap % g->win[2]};
  int64_t o = at->n * g->x.outer;
  for (int d = 0; d < 3; d++) {
    const int64_t i = at->p[d] * g->stride[d] + s[d] * g->dil[d] - g->lo[d];
    if (i < 0 || i >= g->in[d]) return HK_ROW_SKIP;
    o += i * g->x.at[d];
  }
  return o;
}

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
} job;

static void store_tile(const job *j, int64_t group, int64_t block, const pixel *at, int rows, float *out) {
  const hk_geom *g = &j->plan->task.geom;
  const int32_t nr = j->plan->decision.kernel->nr;
  const int64_t k0 = block * nr, count = hk_min64(nr, g->k - k0);
  for (int m = 0; m < rows; m++) {
    hk_at a = {.n = at[m].n, .k = group * g->k + k0, .along_k = 1};
    for (int d = 0; d < g->rank; d++) a.p[d] = at[m].p[d + 3 - g->rank];
    hk_plan_store_row(j->plan, j->call, &a, count, out + m * nr);
  }
}

/* One strip of MR pixels of one group, all its channels. */
static void strip(void *context, int64_t index) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const hk_kernel *kernel = j->plan->decision.kernel;
  const int32_t mr = kernel->mr, nr = kernel->nr;
  const int64_t strips = hk_ceil_div(g->gm, mr), group = index / strips, m0 = index % strips * mr;
  const int rows = (int)hk_min64(mr, g->gm - m0);
  int64_t offset[SEGMENTS * MAX_MR];
  float out[MAX_MR * MAX_NR];
  pixel at[MAX_MR];
  for (int m = 0; m < rows; m++) at[m] = pixel_of(g, m0 + m);
  hk_igemm_args a = {.x = (const float *)j->call->x + group * g->x.group, .offset = offset, .out = out,
                     .channels = g->c, .c_stride = g->x.channel};
  const float *packed = (const float *)j->plan->packed->f + group * blocks(j->plan) * g->gk * nr;
  for (int64_t b = 0; b < blocks(j->plan); b++, packed += g->gk * nr) {
    for (int64_t t0 = 0; t0 < g->taps; t0 += SEGMENTS) {
      a.segments = hk_min64(SEGMENTS, g->taps - t0);
      for (int64_t t = 0; t < a.segments; t++)
        for (int m = 0; m < mr; m++) offset[t * mr + m] = m < rows ? row_offset(g, &at[m], t0 + t) : HK_ROW_SKIP;
      a.f = packed + t0 * g->c * nr;
      a.accumulate = t0 > 0;
      kernel->fn(&a);
    }
    store_tile(j, group, b, at, rows, out);
  }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  job j = {plan, call};
  hk_plan_parallel(plan, g->groups * hk_ceil_div(g->gm, plan->decision.kernel->mr), strip, &j);
  return HK_OK;
}

const hk_algo hk_algo_igemm = {.name = "igemm", .family = HK_FAMILY_IGEMM, .device = HK_CPU, .offer = offer,
                               .build = build, .run = run};
