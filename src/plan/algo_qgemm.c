/* qgemm: int8 convolution, exact. x is staged once a call into the workspace as s16 with its zero point taken off, pixels
 * x channels padded to pairs; f is packed as s16 likewise, so that taps in the padding are zeros and every product fits;
 * tiles sum pairs in s32. The epilogue is computed in double, as the reference does, so that ties round alike.
 * Any strides, groups, padding, dilation and y; refuses floats, input dilation, gates and streaming state.
 * Packed f: [group][panel of NR][tap][pair][NR][2]. Workspace: [zero row][x][f, when it comes at execute]. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/cost.h"
#include "plan/plan.h"

#define MAX_MR 8
#define MAX_NR 64
#define SEGMENTS 32 /* taps whose row pointers are kept on the stack at a time */
#define STRIPS 8    /* strips of MR pixels a job */

static int64_t pairs_of(const hk_geom *g) { return hk_ceil_div(g->c, 2); }
static int64_t panels_of(const hk_geom *g, const hk_kernel *k) { return hk_ceil_div(g->k, k->nr); }
static size_t rounded(int64_t elements) { return (size_t)hk_round_up(elements * 2, HK_ALIGN); }
static size_t zero_bytes(const hk_geom *g) { return rounded(2 * pairs_of(g)); }
static size_t x_bytes(const hk_geom *g) {
  return rounded(g->groups * g->n * g->in[0] * g->in[1] * g->in[2] * 2 * pairs_of(g));
}
static size_t f_bytes(const hk_geom *g, const hk_kernel *k) {
  return rounded(g->groups * panels_of(g, k) * g->taps * pairs_of(g) * 2 * k->nr);
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (g->acc_type != HK_S32) no = "x and f must be int8";
  else if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) no = "input dilation is not 1";
  else if (t->epi.e.gate) no = "a gate pairs channels of different panels";
  else if (t->options.stateful) no = "streaming state is not staged";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0 || g->in[0] * g->in[1] * g->in[2] == 0) no = "nothing to multiply";
  if (no) {
    snprintf(why, HK_REASON, "%s", no);
    return false;
  }
  const double work = 4.0 * (double)g->groups * (double)hk_round_up(g->gm, d->kernel->mr) *
                      (double)(panels_of(g, d->kernel) * d->kernel->nr) * (double)(pairs_of(g) * g->taps);
  d->workspace_bytes = zero_bytes(g) + x_bytes(g) + (t->f_now ? 0 : f_bytes(g, d->kernel));
  d->predicted_s = 1e-6 + work / (0.7 * hk_cost_peak(d->kernel->isa)) / t->threads + (double)x_bytes(g) / 4e9 +
                   4e-9 * (double)g->gm * (double)g->y_channels / t->threads;
  return true;
}

/* ---- weights */
static void pack(const hk_plan *plan, const char *f, int16_t *to) {
  const hk_geom *g = &plan->task.geom;
  const int64_t nr = plan->decision.kernel->nr, pairs = pairs_of(g), panels = panels_of(g, plan->decision.kernel);
  for (int64_t i = 0; i < g->groups * panels * g->taps * pairs * nr * 2; i++, to++) {
    const int64_t c = i / (2 * nr) % pairs * 2 + i % 2, k = i / (2 * nr) / pairs / g->taps % panels * nr + i / 2 % nr;
    const int64_t tap = i / (2 * nr) / pairs % g->taps, group = i / (2 * nr) / pairs / g->taps / panels;
    if (c >= g->c || k >= g->k) {
      *to = 0;
      continue;
    }
    const int64_t s = tap % g->win[2], r = tap / g->win[2] % g->win[1], u = tap / g->win[2] / g->win[1];
    const int32_t zero = plan->packed->f_zero ? plan->packed->f_zero[group * g->k + k] : g->f_zero;
    *to = (int16_t)((int32_t)hk_load_element(g->f_type, f, group * g->f.group + k * g->f.outer + c * g->f.channel +
                                                               u * g->f.at[0] + r * g->f.at[1] + s * g->f.at[2]) - zero);
  }
}

static hk_status build(hk_plan *plan) {
  if (!plan->task.f_now || hk_plan_shares(plan)) return HK_OK;
  plan->packed->f_bytes = f_bytes(&plan->task.geom, plan->decision.kernel);
  plan->packed->f = hk_alloc(plan->packed->f_bytes);
  if (!plan->packed->f) return hk_fail(HK_NO_MEMORY, "no memory for %zu bytes of weights", plan->packed->f_bytes);
  pack(plan, plan->raw_f, plan->packed->f);
  return HK_OK;
}

/* ---- x into the workspace */
typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const int16_t *zero, *f;
  int16_t *x;
} job;

static void stage_row(void *context, int64_t index) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t row = index % (g->in[0] * g->in[1]), image = index / (g->in[0] * g->in[1]);
  const int64_t group = image / g->n, n = image % g->n, width = 2 * pairs_of(g);
  const int8_t *base = (const int8_t *)j->call->x + group * g->x.group + n * g->x.outer + row / g->in[1] * g->x.at[0] +
                       row % g->in[1] * g->x.at[1];
  int16_t *to = j->x + index * g->in[2] * width;
  for (int64_t w = 0; w < g->in[2]; w++, to += width) {
    const int8_t *src = base + w * g->x.at[2];
    if (g->x_type == HK_U8)
      for (int64_t c = 0; c < g->c; c++) to[c] = (int16_t)((uint8_t)src[c * g->x.channel] - g->x_zero);
    else
      for (int64_t c = 0; c < g->c; c++) to[c] = (int16_t)(src[c * g->x.channel] - g->x_zero);
    if (width > g->c) to[g->c] = 0;
  }
}

/* ---- epilogue of a run of sums along k */
static double finish_one(const hk_plan *plan, const hk_call *call, hk_at *at, int64_t c_at, double v) {
  const hk_epilogue *e = &plan->task.epi.e;
  const double c = e->residual ? e->beta * hk_load_element(plan->task.geom.y_type, call->c, c_at) : 0;
  if (e->residual == HK_RESIDUAL_BEFORE) v += c;
  if (e->act == HK_ACT_USER) {
    float f = (float)v;
    e->user(call->user, at, 1, &f);
    v = f;
  } else {
    v = hk_act_eval(e->act, e->a, e->b, e->act == HK_ACT_PRELU ? ((const float *)plan->packed->slopes)[at->k] : 0, v);
  }
  if (e->residual == HK_RESIDUAL_AFTER) v += c;
  if (e->user2) {
    float f = (float)v;
    e->user2(call->user, at, 1, &f);
    v = f;
  }
  return v;
}

static int64_t place(const hk_geom *g, const hk_strides *s, const hk_at *at) {
  int64_t o = hk_geom_y_channel(g, s, at->k) + at->n * s->outer;
  for (int d = 0; d < g->rank; d++) o += at->p[d] * s->at[d + 3 - g->rank];
  return o;
}

/* Scale and clamp only, into s8 or u8: what quantised networks ask for. Adding and taking away 1.5*2^52 rounds half to
 * even; the sum is bounded first, so that it stays exact. */
static void finish_plain(const job *j, const hk_at *at, int64_t count, const int32_t *sums, int64_t y0) {
  const hk_plan *plan = j->plan;
  const hk_geom *g = &plan->task.geom;
  const hk_epilogue *e = &plan->task.epi.e;
  const int32_t *bias = e->bias ? (const int32_t *)j->call->bias + at->k : NULL;
  const float *scale = e->scale ? (const float *)j->call->scale + (e->scale == 2 ? at->k : 0) : NULL;
  const bool unset = e->act == HK_ACT_HARDTANH && e->a == 0 && e->b == 0, is_signed = g->y_type == HK_S8;
  const double lo = e->act == HK_ACT_NONE ? -INFINITY : e->act == HK_ACT_RELU ? 0 : unset ? -1 : e->a;
  const double hi = e->act == HK_ACT_NONE || e->act == HK_ACT_RELU ? INFINITY : unset ? 1 : e->b;
  const double magic = 6755399441055744.0, low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
  uint8_t *y = (uint8_t *)j->call->y + y0;
  for (int64_t i = 0; i < count; i++) {
    double v = (int32_t)((uint32_t)sums[i] + (bias ? (uint32_t)bias[i] : 0));
    if (scale) v *= scale[e->scale == 2 ? i : 0];
    if (v != v) v = -(double)g->y_zero; /* a NaN scale: stored as 0 */
    v = v < lo ? lo : v > hi ? hi : v;
    v += g->y_zero;
    v = v < low ? low : v > high ? high : v;
    y[i * g->y.channel] = (uint8_t)(int)((v + magic) - magic);
  }
}

static void finish_row(const job *j, hk_at at, int64_t count, const int32_t *sums) {
  const hk_plan *plan = j->plan;
  const hk_geom *g = &plan->task.geom;
  const hk_epi *epi = &plan->task.epi;
  const int32_t *bias = j->call->bias;
  const float *scale = j->call->scale;
  const int64_t y0 = place(g, &g->y, &at), c0 = place(g, &epi->c, &at);
  if (epi->simple && !epi->e.residual && hk_type_is_int8(g->y_type)) {
    finish_plain(j, &at, count, sums, y0);
    return;
  }
  for (int64_t i = 0; i < count; i++, at.k++) {
    double v = (int32_t)((uint32_t)sums[i] + (epi->e.bias ? (uint32_t)bias[at.k] : 0));
    if (epi->e.scale) v *= scale[epi->e.scale == 2 ? at.k : 0];
    if (epi->any) v = finish_one(plan, j->call, &at, c0 + i * epi->c.channel, v);
    const float f = (float)v;
    if (epi->e.store) epi->e.store(j->call->user, &at, 1, &f);
    else hk_store_element(g->y_type, j->call->y, y0 + i * g->y.channel, v + g->y_zero);
  }
}

/* ---- tiles */
typedef struct pixel { int64_t n, p[3]; } pixel;

static pixel pixel_of(const hk_geom *g, int64_t m) {
  const int64_t row = m / g->out[2], plane = row / g->out[1];
  return (pixel){plane / g->out[0], {plane % g->out[0], row % g->out[1], m % g->out[2]}};
}

static const int16_t *row_of(const job *j, int64_t group, const pixel *at, int64_t tap) {
  const hk_geom *g = &j->plan->task.geom;
  const int64_t s[3] = {tap / g->win[2] / g->win[1], tap / g->win[2] % g->win[1], tap % g->win[2]};
  int64_t o = group * g->n + at->n;
  for (int d = 0; d < 3; d++) {
    const int64_t i = at->p[d] * g->stride[d] + s[d] * g->dil[d] - g->lo[d];
    if (i < 0 || i >= g->in[d]) return j->zero;
    o = o * g->in[d] + i;
  }
  return j->x + o * 2 * pairs_of(g);
}

static void strip(const job *j, int64_t group, int64_t m0) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_kernel *kernel = j->plan->decision.kernel;
  const int32_t mr = kernel->mr, nr = kernel->nr;
  const int rows = (int)hk_min64(mr, g->gm - m0), lead = 3 - g->rank;
  const int16_t *row[SEGMENTS * MAX_MR];
  int32_t out[MAX_MR * MAX_NR];
  pixel at[MAX_MR];
  for (int m = 0; m < rows; m++) at[m] = pixel_of(g, m0 + m);
  const int64_t tap_size = pairs_of(g) * 2 * nr;
  for (int64_t p = 0; p < panels_of(g, kernel); p++) {
    hk_qgemm_args a = {.row = row, .out = out, .pairs = pairs_of(g)};
    const int16_t *f = j->f + (group * panels_of(g, kernel) + p) * g->taps * tap_size;
    for (int64_t t0 = 0; t0 < g->taps; t0 += SEGMENTS) {
      a.segments = hk_min64(SEGMENTS, g->taps - t0);
      if (p == 0 || g->taps > SEGMENTS)
        for (int64_t t = 0; t < a.segments; t++)
          for (int m = 0; m < mr; m++) row[t * mr + m] = m < rows ? row_of(j, group, &at[m], t0 + t) : j->zero;
      a.f = f + t0 * tap_size;
      a.accumulate = t0 > 0;
      kernel->fn(&a);
    }
    for (int m = 0; m < rows; m++) {
      hk_at where = {.n = at[m].n, .k = group * g->k + p * nr, .along_k = 1};
      for (int d = lead; d < 3; d++) where.p[d - lead] = at[m].p[d];
      finish_row(j, where, hk_min64(nr, g->k - p * nr), out + m * nr);
    }
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
  const hk_geom *g = &plan->task.geom;
  char *w = call->workspace;
  job j = {.plan = plan, .call = call, .zero = (const int16_t *)w, .x = (int16_t *)(w + zero_bytes(g)), .f = plan->packed->f};
  memset(w, 0, zero_bytes(g));
  hk_plan_parallel(plan, g->groups * g->n * g->in[0] * g->in[1], stage_row, &j);
  if (!plan->task.f_now) {
    pack(plan, call->f, (int16_t *)(w + zero_bytes(g) + x_bytes(g)));
    j.f = (const int16_t *)(w + zero_bytes(g) + x_bytes(g));
  }
  hk_plan_parallel(plan, g->groups * jobs_a_group(plan), tiles, &j);
  return HK_OK;
}

const hk_algo hk_algo_qgemm = {.name = "qgemm", .family = HK_FAMILY_QGEMM, .device = HK_CPU, .offer = offer,
                               .build = build, .run = run};
