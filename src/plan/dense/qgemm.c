/* qgemm: int8 convolution, exact. x is staged once per call into the workspace as s16 with its zero point taken off,
 * pixels x channels padded to pairs; f is packed as s16 likewise, so that taps in the padding are zeros and every
 * product fits; tiles sum pairs in s32. The epilogue is computed in double, as the reference does, so that ties round
 * alike. Any strides, groups, padding, dilation of both and y; refuses floats, gates and streaming state. Packed f:
 * [group][panel of NR][tap][pair][NR][2]. Workspace: [zero row][x][f, when it comes at execute]. */
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/tiles.h"

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

/* The requant kernel stores to y, where the ISA has one. */
static bool requantises(const hk_task *t) {
  const hk_geom *g = &t->geom;
  return t->epi.simple && !t->epi.e.residual && hk_type_is_int8(g->y_type) && (g->y.channel == 1 || g->k == 1);
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (g->acc_type != HK_S32) no = "x and f must be int8";
  else if (t->epi.e.gate) no = "a gate needs both halves of a channel pair in one tile";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0 || g->in[0] * g->in[1] * g->in[2] == 0) no = "x, f or y is empty";
  if (no) return hk_refuse(why, no);
  const double work = 4.0 * (double)g->groups * (double)hk_round_up(g->gm, d->kernel->mr) *
                      (double)(panels_of(g, d->kernel) * d->kernel->nr) * (double)(pairs_of(g) * g->taps);
  d->workspace_bytes = zero_bytes(g) + x_bytes(g) + (t->f_now ? 0 : f_bytes(g, d->kernel));
  const double pixels = (double)g->groups * (double)g->gm;
  const bool vectors = requantises(t) && hk_kernel_best(HK_FAMILY_REQUANT, t->isa);
  const hk_work w = {.products = work / hk_cost_peak(d->kernel->isa),
                     .cycles = 8 * hk_cost_here()->tap * pixels * (double)g->taps,         /* where each tap lies */
                     .rows = (vectors ? 1 : 4) * pixels * (double)panels_of(g, d->kernel), /* in double precision */
                     .values = (vectors ? 4 : 40) * (double)g->gm * (double)g->y_channels,
                     .moved = (double)x_bytes(g) / 4e9};
  d->predicted_s = hk_cost_seconds(&hk_cost_here()->qgemm, &w, g->gm, t->threads);
  return true;
}

/* ---- weights */
static void pack(const hk_plan *plan, const void *f, void *packed) {
  int16_t *to = packed;
  const hk_geom *g = &plan->task.geom;
  const int64_t nr = plan->decision.kernel->nr, pairs = pairs_of(g), panels = panels_of(g, plan->decision.kernel);
  for (int64_t row = 0; row < g->groups * panels * g->taps; row++) {
    const int64_t tap = row % g->taps, k0 = row / g->taps % panels * nr, group = row / g->taps / panels;
    const int64_t s = tap % g->win[2], r = tap / g->win[2] % g->win[1], u = tap / g->win[2] / g->win[1];
    const int64_t columns = hk_min64(nr, g->k - k0);
    const int64_t from = group * g->f.group + k0 * g->f.outer + u * g->f.at[0] + r * g->f.at[1] + s * g->f.at[2];
    const int32_t *zeros = plan->packed->f_zero ? plan->packed->f_zero + group * g->k + k0 : NULL;
    memset(to, 0, (size_t)(pairs * nr * 2) * sizeof *to);
    for (int64_t c = 0; c < g->c; c++, to += c % 2 ? 0 : 2 * nr)
      for (int64_t k = 0; k < columns; k++)
        to[2 * k + c % 2] = (int16_t)((int32_t)hk_load_element(g->f_type, f, from + k * g->f.outer + c * g->f.channel) -
                                      (zeros ? zeros[k] : g->f_zero));
    if (g->c % 2) to += 2 * nr;
  }
}

static hk_status build(hk_plan *plan) {
  return hk_tiles_pack(plan, f_bytes(&plan->task.geom, plan->decision.kernel), pack);
}

/* ---- x into the workspace */
typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const int16_t *zero, *f;
  int16_t *x;
  const hk_kernel *requant; /* or NULL */
} job;

/* A pixel's channels less the zero point; adjacent ones by the compiler's vectors. */
static void stage_pixel(const hk_geom *g, const int8_t *from, int16_t *to) {
  const int16_t zero = (int16_t)g->x_zero;
  const uint8_t *u = (const uint8_t *)from;
  const int64_t step = g->x.channel;
  if (step == 1 && g->x_type == HK_U8)
    for (int64_t c = 0; c < g->c; c++) to[c] = (int16_t)(u[c] - zero);
  else if (step == 1)
    for (int64_t c = 0; c < g->c; c++) to[c] = (int16_t)(from[c] - zero);
  else
    for (int64_t c = 0; c < g->c; c++) to[c] = (int16_t)((g->x_type == HK_U8 ? u[c * step] : from[c * step]) - zero);
}

static void stage_row(void *context, int64_t index) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t row = index % (g->in[0] * g->in[1]), image = index / (g->in[0] * g->in[1]);
  const int64_t group = image / g->n, n = image % g->n, width = 2 * pairs_of(g);
  const int8_t *base = (const int8_t *)j->call->x + group * g->x.group + n * g->x.outer + row / g->in[1] * g->x.at[0] +
                       row % g->in[1] * g->x.at[1];
  int16_t *to = j->x + index * g->in[2] * width;
  for (int64_t w = 0; w < g->in[2]; w++, to += width) {
    stage_pixel(g, base + w * g->x.at[2], to);
    if (width > g->c) to[g->c] = 0;
  }
}

/* ---- epilogue of a run of sums along k */
/* Scale and clamp only, into s8 or u8: what quantised networks ask for. Adding and taking away 1.5*2^52 rounds half to
 * even; the sum is bounded first, so that it stays exact. */
static void finish_plain(const job *j, const hk_at *at, int64_t count, const int32_t *sums, int64_t y0) {
  const hk_plan *plan = j->plan;
  const hk_geom *g = &plan->task.geom;
  const hk_epilogue *e = &plan->task.epi.e;
  const int32_t *bias = e->bias ? (const int32_t *)j->call->bias + at->k : NULL;
  const float *scale = e->scale ? (const float *)j->call->scale + (e->scale == 2 ? at->k : 0) : NULL;
  const bool is_signed = g->y_type == HK_S8;
  double lo, hi;
  hk_tiles_bounds(e, &lo, &hi);
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

static void finish_row(const job *j, const hk_at *at, int64_t count, const int32_t *sums) {
  const hk_epi *epi = &j->plan->task.epi;
  const int32_t *bias = j->call->bias;
  const float *scale = j->call->scale;
  double v[MAX_NR];
  if (epi->simple && !epi->e.residual && hk_type_is_int8(j->plan->task.geom.y_type)) {
    finish_plain(j, at, count, sums, hk_at_place(&j->plan->task.geom, &j->plan->task.geom.y, at));
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    v[i] = (int32_t)((uint32_t)sums[i] + (epi->e.bias ? (uint32_t)bias[at->k + i] : 0));
    if (epi->e.scale) v[i] *= scale[epi->e.scale == 2 ? at->k + i : 0];
  }
  hk_tiles_finish(j->plan, j->call, at, count, v);
}

/* Rows of sums by the requant kernel, where there is one; false where the epilogue or y needs finish_row. */
static bool requantise(const job *j, const hk_pixel *at, int rows, int64_t k, int64_t columns, const int32_t *out) {
  const hk_plan *plan = j->plan;
  const hk_geom *g = &plan->task.geom;
  const hk_epilogue *e = &plan->task.epi.e;
  if (!j->requant || !requantises(&plan->task)) return false;
  static const int32_t none[MAX_NR];
  float scale[MAX_NR];
  uint8_t *y[MAX_MR];
  for (int64_t i = 0; e->scale != 2 && i < columns; i++) scale[i] = e->scale ? *(const float *)j->call->scale : 1.0f;
  for (int m = 0; m < rows; m++) {
    const hk_at where = hk_pixel_at(g, &at[m], k);
    y[m] = (uint8_t *)j->call->y + hk_at_place(g, &g->y, &where);
  }
  hk_requant_args a = {.sums = out, .width = plan->decision.kernel->nr, .count = rows, .columns = columns, .y = y};
  a.bias = e->bias ? (const int32_t *)j->call->bias + k : none;
  a.scale = e->scale == 2 ? (const float *)j->call->scale + k : scale;
  a.y_type = g->y_type, a.zero = g->y_zero;
  hk_tiles_bounds(e, &a.lo, &a.hi);
  j->requant->fn(&a);
  return true;
}

/* ---- tiles */
/* x as it lies in the workspace, without its group: [n][at..][pair] */
static hk_strides staged(const hk_geom *g) {
  hk_strides s = {.channel = 1, .at = {0, 0, 2 * pairs_of(g)}};
  s.at[1] = s.at[2] * g->in[2];
  s.at[0] = s.at[1] * g->in[1];
  s.outer = s.at[0] * g->in[0];
  s.group = s.outer * g->n;
  return s;
}

static void strip(const job *j, int64_t group, int64_t m0) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_kernel *kernel = j->plan->decision.kernel;
  const int32_t mr = kernel->mr, nr = kernel->nr;
  const int rows = (int)hk_min64(mr, g->gm - m0);
  const hk_strides xs = staged(g);
  const int16_t *x = j->x + group * xs.group;
  int64_t o;
  const int16_t *row[SEGMENTS * MAX_MR];
  int32_t out[MAX_MR * MAX_NR];
  hk_pixel at[MAX_MR];
  for (int m = 0; m < rows; m++) at[m] = hk_pixel_of(g, m0 + m);
  const int64_t tap_size = pairs_of(g) * 2 * nr;
  for (int64_t p = 0; p < panels_of(g, kernel); p++) {
    hk_qgemm_args a = {.row = row, .out = out, .pairs = pairs_of(g)};
    const int16_t *f = j->f + (group * panels_of(g, kernel) + p) * g->taps * tap_size;
    for (int64_t t0 = 0; t0 < g->taps; t0 += SEGMENTS) {
      a.segments = hk_min64(SEGMENTS, g->taps - t0);
      if (p == 0 || g->taps > SEGMENTS)
        for (int64_t t = 0; t < a.segments; t++)
          for (int m = 0; m < mr; m++)
            row[t * mr + m] = m < rows && hk_pixel_source(g, &at[m], t0 + t, &xs, &o) ? x + o : j->zero;
      a.f = f + t0 * tap_size;
      a.accumulate = t0 > 0;
      kernel->fn(&a);
    }
    const int64_t k = group * g->k + p * nr, columns = hk_min64(nr, g->k - p * nr);
    if (requantise(j, at, rows, k, columns, out)) continue;
    for (int m = 0; m < rows; m++) {
      const hk_at where = hk_pixel_at(g, &at[m], k);
      finish_row(j, &where, columns, out + m * nr);
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
  job j = {.plan = plan,
           .call = call,
           .zero = (const int16_t *)w,
           .x = (int16_t *)(w + zero_bytes(g)),
           .requant = hk_kernel_best(HK_FAMILY_REQUANT, plan->decision.isa),
           .f = plan->packed->f};
  memset(w, 0, zero_bytes(g));
  hk_plan_parallel(plan, g->groups * g->n * g->in[0] * g->in[1], stage_row, &j);
  if (!plan->task.f_now) {
    pack(plan, call->f, w + zero_bytes(g) + x_bytes(g));
    j.f = (const int16_t *)(w + zero_bytes(g) + x_bytes(g));
  }
  hk_plan_parallel(plan, g->groups * jobs_a_group(plan), tiles, &j);
  return HK_OK;
}

const hk_algo hk_algo_qgemm = {.name = "qgemm",
                               .summary = "int8, exact: x staged as s16 pairs, sums in s32",
                               .family = HK_FAMILY_QGEMM,
                               .device = HK_CPU,
                               .offer = offer,
                               .check = offer,
                               .build = build,
                               .run = run};
