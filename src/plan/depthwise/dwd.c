/* Few outputs per row and long windows, as dot products along the window's last dimension (channels-first, its columns
 * adjacent): depthwise convolution, and gradients of depthwise filters, whose c is the batch; any multiplier, stride,
 * padding, other dimensions; y of any type and layout.
 * x and f of f32, or both of f16 or of bf16, no workspace. Refuses dilation of the last dimension or of the input,
 * gates and state. Lanes along the output (dwp) would be idle here: 4 outputs of 4093 taps fill a quarter of one
 * vector. */

#include <string.h>

#include "cost/cost.h"
#include "plan/depthwise/depthwise.h"

#define OUTPUTS 8 /* of a call */

enum { SHARDS, PARTS };

static bool supported(const hk_task *t, const hk_kernel *kernel, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (g->acc_type != HK_F32) no = "sums must be f32";
  else if (g->x_type != kernel->x_type || g->f_type != kernel->f_type) no = "x and f must have the kernel's types";
  else if (g->c != 1 && (g->n != 1 || g->k != 1)) no = "c, or n and k, must be 1 per group";
  else if (g->gm == 0) no = "y is empty";
  else if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1 || g->dil[2] != 1) no = "there is dilation";
  else if (g->x.at[2] != 1) no = "the columns of x must be adjacent";
  else if (!t->f_now && g->f.at[2] != 1) no = "weights at execute are not adjacent";
  else if (t->epi.e.gate || t->options.stateful) no = "epilogue.gate and options.stateful must be 0";
  return !no || hk_refuse(why, no);
}

/* Unaligned loads feed a product each, and the sums of every output are folded at the end; measured on Zen 4. */
static double predict(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  const double vw = (double)d->kernel->nr, vectors = (double)hk_ceil_div(g->win[2], d->kernel->nr);
  const double product = 2.0 * vw / hk_cost_flops(d->kernel->isa);
  const double rows = (double)g->gm * (double)(g->groups * g->k) * (double)(g->c * g->win[0] * g->win[1]);
  /* every call's sums go through the plan's epilogue */
  const double calls =
      (double)(g->n * g->out[0] * g->out[1] * hk_ceil_div(g->out[2], OUTPUTS)) * (double)(g->groups * g->k);
  /* Widening fills slots that loads and sums leave: 4 outputs of 4093 taps take 1.2 cycles per vector (Zen 5, AVX2). */
  const double widen = g->x_type == HK_F32 ? 0.0 : 0.25;
  const double cycles = rows * (vectors * (2.0 * product + widen) + 12.0) + calls * 80.0;
  const hk_work w = {.cycles = cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  return hk_cost_seconds(&hk_cost_here()->dwd, &w, d->knob[SHARDS] * d->knob[PARTS], t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  (void)why;
  d->predicted_s = predict(t, d);
  d->workspace_bytes = 0;
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!supported(t, d->kernel, why)) return false;
  const int64_t planes = g->n * g->groups;
  d->knob[SHARDS] = hk_max64(1, hk_min64(t->threads, planes));
  d->knob[PARTS] =
      t->threads > 1 && planes < 2 * t->threads ? hk_max64(1, hk_min64(t->threads, g->out[0] * g->out[1])) : 1;
  return finish(t, d, why);
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  return supported(t, d->kernel, why) && finish(t, d, why);
}

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  const size_t bytes = hk_type_bytes(g->f_type);
  char *to;
  const hk_status s = hk_plan_pack_room(plan, g->groups * g->k * g->c * g->taps, bytes, NULL, 0, &to);
  if (!to) return s;
  for (int64_t i = 0; i < g->groups * g->k * g->c; i++) {
    const int64_t k = i / g->c, c = i % g->c;
    const int64_t first = k / g->k * g->f.group + k % g->k * g->f.outer + c * g->f.channel;
    for (int64_t t = 0; t < g->taps; t++, to += bytes)
      memcpy(to, (const char *)plan->raw_f + (first + hk_dw_tap(g, t)) * (int64_t)bytes, bytes);
  }
  return HK_OK;
}

/* ---- run */

/* One output row of one output channel. */
typedef struct site {
  const hk_shared *h;
  int64_t n, group, k, z, p; /* k in its group */
} site;

static const char *weights_of(const site *s, int64_t c, int64_t a, int64_t r) {
  const hk_geom *g = &s->h->plan->task.geom;
  const int64_t bytes = (int64_t)hk_type_bytes(g->f_type);
  if (s->h->plan->task.f_now)
    return (const char *)s->h->plan->packed->f +
           (((s->group * g->k + s->k) * g->c + c) * g->taps + (a * g->win[1] + r) * g->win[2]) * bytes;
  return s->h->call->f +
         (s->group * g->f.group + s->k * g->f.outer + c * g->f.channel + a * g->f.at[0] + r * g->f.at[1]) * bytes;
}

/* count outputs from column q on, all of whose window rows read columns [from, to) of the window */
static void dots(const site *s, int64_t q, int64_t count, int64_t from, int64_t to, float *sum) {
  const hk_geom *g = &s->h->plan->task.geom;
  const int64_t bytes = (int64_t)hk_type_bytes(g->x_type);
  const int64_t x = s->n * g->x.outer + s->group * g->x.group + hk_geom_source(g, 2, q, 0) + from;
  hk_dwd_args a = {.sum = sum, .count = to - from, .x_step = g->stride[2], .outputs = (int32_t)count};
  for (int64_t i = 0; i < count; i++) sum[i] = 0;
  if (from >= to) return;
  for (int64_t i = 0; i < g->c * g->win[0] * g->win[1]; i++) {
    const int64_t c = i / g->win[1] / g->win[0], d = i / g->win[1] % g->win[0], r = i % g->win[1];
    const int64_t depth = hk_geom_source(g, 0, s->z, d), row = hk_geom_source(g, 1, s->p, r);
    if (depth < 0 || depth >= g->in[0] || row < 0 || row >= g->in[1]) continue;
    const int64_t at = x + c * g->x.channel + depth * g->x.at[0] + row * g->x.at[1];
    a.x = (const float *)(const void *)(s->h->call->x + at * bytes);
    a.f = (const float *)(const void *)(weights_of(s, c, d, r) + from * bytes);
    s->h->plan->decision.kernel->fn(&a);
    a.add = 1;
  }
}

static void run_row(const site *s) {
  const hk_geom *g = &s->h->plan->task.geom;
  float sum[OUTPUTS];
  for (int64_t q = 0; q < g->out[2];) {
    const int64_t left = hk_geom_source(g, 2, q, 0);
    const int64_t from = hk_max64(0, hk_min64(g->win[2], -left)), to = hk_min64(g->win[2], g->in[2] - left);
    int64_t count = 1; /* outputs that see the same part of the window go together */
    if (from == 0 && to == g->win[2])
      count = hk_min64(hk_min64(OUTPUTS, g->out[2] - q), (g->in[2] - left - g->win[2]) / g->stride[2] + 1);
    dots(s, q, count, from, to, sum);
    hk_at at = {.n = s->n, .k = s->group * g->k + s->k};
    const int64_t p[3] = {s->z, s->p, q};
    for (int d = 0; d < g->rank; d++) at.p[d] = p[d + 3 - g->rank];
    hk_plan_store_row(s->h->plan, s->h->call, &at, count, sum);
    q += count;
  }
}

static void body(void *context, int64_t i) {
  const hk_shared *h = context;
  const hk_geom *g = &h->plan->task.geom;
  const int64_t *knob = h->plan->decision.knob;
  int64_t from, to, first, last;
  hk_piece(g->n * g->groups, i / knob[PARTS], knob[SHARDS], &from, &to);
  hk_piece(g->out[0] * g->out[1], i % knob[PARTS], knob[PARTS], &first, &last);
  for (; from < to; from++)
    for (int64_t k = 0; k < g->k; k++)
      for (int64_t row = first; row < last; row++) {
        const site s = {h, from / g->groups, from % g->groups, k, row / g->out[1], row % g->out[1]};
        run_row(&s);
      }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  hk_shared h = {plan, call};
  hk_plan_parallel(plan, plan->decision.knob[SHARDS] * plan->decision.knob[PARTS], body, &h);
  return HK_OK;
}

const hk_algo hk_algo_dwd = {.name = "dwd",
                             .summary =
                                 "depthwise with few outputs per row and long windows: dot products along the window",
                             .knobs = {HK_KNOB("shards", 1, HK_THREAD_PIECES), HK_KNOB("parts", 1, HK_THREAD_PIECES)},
                             .family = HK_FAMILY_DWD,
                             .device = HK_CPU,
                             .offer = offer,
                             .check = check,
                             .build = build,
                             .run = run};
