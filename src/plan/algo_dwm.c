/* Depthwise convolution by windows of 3 x 3, stride 1 or 2 in both dimensions, lanes over channels (channels-last), that
 * marches down strips of columns with its sums in registers; see ../cpu/tmpl/dwm.tmpl.h. f32 data, epilogues that kernels
 * fuse, weights at creation, no workspace. Refuses dilation, multipliers, other windows, gates and state: dwc takes them. */
#include <stdio.h>

#include "plan/cost.h"
#include "plan/dw.h"

#define CYCLES 3e9 /* of the cost model */
#define SIDE 3

enum { COLUMNS, ROWS, SHARDS, PARTS };

typedef struct dwm {
  int64_t vw, columns, rows, shards, parts;
  int64_t blocks, strips, bands; /* of all channels; of an output row; bands of `rows` output rows */
  hk_dw_fuse fuse;
} dwm;

/* With few registers a kernel goes by pairs of rows, by tiles of its own; see ../cpu/tmpl/dwmpair.tmpl.h. */
static bool row_wise(const hk_kernel *k) { return k->mr > 12; }

static bool flat(const hk_strides *s, int64_t groups) { return s->group == 1 || groups == 1; }

static bool supported(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  hk_dw_fuse fuse;
  const char *no = NULL;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) no = "needs f32 x and f";
  else if (g->c != 1 || g->k != 1 || g->batch_grouped) no = "is for one input and one output channel a group";
  else if (g->win[0] != 1 || g->win[1] != SIDE || g->win[2] != SIDE) no = "the window is not 3 x 3";
  else if (g->stride[1] != g->stride[2] || g->stride[1] > 2) no = "the stride is not 1 or 2";
  else if (g->dil[1] != 1 || g->dil[2] != 1 || g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) no = "there is dilation";
  else if (g->gm == 0 || g->in[1] < 1 || g->in[2] < 1) no = "x or the result is empty";
  else if (g->lo[0] != 0 || (g->out[0] - 1) * g->stride[0] >= g->in[0]) no = "the depth is padded";
  else if (!flat(&g->x, g->groups) || !flat(&g->y, g->groups)) no = "the channels are not adjacent";
  else if (!t->f_now) no = "the weights must be known at creation";
  else if (t->epi.e.gate || t->options.stateful) no = "the epilogue is gated or the plan stateful";
  else if (!hk_dw_fuse_make(t, &fuse)) no = "the epilogue is not one that kernels fuse";
  else if (t->epi.e.residual && !flat(&t->epi.c, g->groups)) no = "the residual's channels are not adjacent";
  if (no) snprintf(why, HK_REASON, "%s", no);
  return !no;
}

static bool layout(const hk_task *t, const hk_decision *d, dwm *m) {
  const hk_geom *g = &t->geom;
  *m = (dwm){.vw = d->kernel->nr, .columns = d->knob[COLUMNS], .rows = d->knob[ROWS], .shards = d->knob[SHARDS],
             .parts = d->knob[PARTS]};
  if (m->columns < 1 || m->columns > d->kernel->mr || m->rows < 1 || m->rows > g->out[1] || m->shards < 1 ||
      m->shards > 4096 || m->parts < 1 || m->parts > 4096)
    return false;
  m->blocks = hk_ceil_div(g->groups, m->vw);
  m->strips = hk_ceil_div(g->out[2], m->columns);
  m->bands = hk_ceil_div(g->out[1], m->rows);
  return hk_dw_fuse_make(t, &m->fuse);
}

/* Products and what a strip costs to begin; the constants as measured on Zen 4. */
static double predict(const hk_task *t, const hk_decision *d, const dwm *m) {
  const hk_geom *g = &t->geom;
  const double product = 2.0 * (double)m->vw / (hk_cost_peak(d->kernel->isa) / CYCLES), stride = (double)g->stride[1];
  const double marched = (double)hk_min64(m->rows * g->stride[1] + SIDE - g->stride[1], g->in[1]) / (double)m->rows / stride;
  const double begins = row_wise(d->kernel) ? 10.0 : 35.0;
  const double few = row_wise(d->kernel) ? 0.9 : m->columns < 3 && g->stride[1] == 2 ? 1.3 : 1.0;
  const double one = product * (few * SIDE * SIDE * marched + 0.5 * stride) + 0.2;
  const double marches = (double)(g->n * g->out[0] * m->bands * m->strips) * (double)m->blocks;
  const double cycles = marches * ((double)(m->rows * m->columns) * one + begins + 1.5 * (double)m->rows);
  return 4e-8 + hk_cost_spread(0.85 * cycles / CYCLES + 0.25 * hk_cost_move(g->bytes, g->bytes), m->shards * m->parts, t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  dwm m;
  if (!layout(t, d, &m)) {
    snprintf(why, HK_REASON, "a knob is out of range");
    return false;
  }
  d->predicted_s = predict(t, d, &m);
  d->workspace_bytes = 0;
  return true;
}

/* Most columns of a strip. Row-wise all of them, so that x is read as it lies, while the rows of a pair stay in a part of L2. */
static int64_t widest(const hk_geom *g, const hk_kernel *k) {
  const int64_t column = (g->stride[1] + SIDE) * g->stride[2] * g->groups * (int64_t)sizeof(float);
  return row_wise(k) ? hk_max64(16, hk_min64(k->mr, hk_cost_l2() / 4 / column)) : k->mr;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!supported(t, why)) return false;
  const int64_t blocks = hk_ceil_div(g->groups, d->kernel->nr), most = widest(g, d->kernel);
  d->knob[COLUMNS] = hk_ceil_div(g->out[2], hk_ceil_div(g->out[2], most));
  d->knob[ROWS] = g->out[1];
  d->knob[SHARDS] = hk_min64(t->threads, blocks);
  const int64_t strips = g->n * g->out[0] * hk_ceil_div(g->out[2], d->knob[COLUMNS]);
  const int64_t want = t->threads > 1 && blocks < 2 * t->threads ? hk_ceil_div(2 * t->threads, d->knob[SHARDS]) : 1;
  if (want > strips) d->knob[ROWS] = hk_ceil_div(g->out[1], hk_min64(g->out[1], hk_ceil_div(want, strips)));
  d->knob[PARTS] = hk_min64(want, strips * hk_ceil_div(g->out[1], d->knob[ROWS]));
  return finish(t, d, why);
}

static bool check(const hk_task *t, hk_decision *d, char *why) { return supported(t, why) && finish(t, d, why); }

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  *d = *base;
  d->knob[COLUMNS] = base->knob[COLUMNS] - 1 - index;
  return index < 3 && d->knob[COLUMNS] > 1 && finish(t, d, why);
}

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  hk_packed *w = plan->packed;
  dwm *m = plan->own = hk_alloc(sizeof *m);
  if (!m) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!layout(&plan->task, &plan->decision, m)) return hk_fail(HK_UNSUPPORTED, "dwm: a knob is out of range");
  const size_t bytes = (size_t)(m->blocks * SIDE * SIDE * m->vw) * sizeof(float);
  if (hk_plan_shares(plan)) return w->f_bytes == bytes ? HK_OK : hk_fail(HK_UNSUPPORTED, "the packed weights have other blocks");
  w->f_bytes = bytes;
  float *to = w->f = hk_alloc(bytes);
  if (!to) return hk_fail(HK_NO_MEMORY, "no memory for %zu bytes of weights", bytes);
  for (int64_t b = 0; b < m->blocks; b++)
    for (int64_t t = 0; t < SIDE * SIDE; t++)
      for (int64_t k = b * m->vw; k < (b + 1) * m->vw; k++)
        *to++ = k < g->groups ? ((const float *)plan->raw_f)[k * g->f.group + hk_dw_tap(g, t)] : 0.0f;
  return HK_OK;
}

/* ---- run */

/* One strip of one band of one plane; what does not depend on it is set. */
static void march(const hk_shared *h, hk_dwm_args *a, int64_t n, int64_t z, int64_t band, int64_t strip, int64_t channel) {
  const hk_geom *g = &h->plan->task.geom;
  const hk_strides *cs = &h->plan->task.epi.c;
  const dwm *m = h->plan->own;
  const int64_t p = band * m->rows, q = strip * m->columns;
  const int64_t row = p * g->stride[1] - g->lo[1], col = q * g->stride[2] - g->lo[2];
  a->columns = (int32_t)hk_min64(m->columns, g->out[2] - q);
  a->rows = hk_min64(m->rows, g->out[1] - p);
  const int64_t span = (a->columns - 1) * g->stride[2] + SIDE;
  a->row_first = -row;
  a->row_last = g->in[1] - row;
  a->col_first = (int32_t)hk_max64(0, hk_min64(span, -col));
  a->col_last = (int32_t)hk_max64(0, hk_min64(span, g->in[2] - col));
  a->x = (const float *)(const void *)h->call->x + n * g->x.outer + z * g->stride[0] * g->x.at[0] + row * g->x.at[1] +
         col * g->x.at[2] + channel;
  a->y = (float *)(void *)h->call->y + n * g->y.outer + z * g->y.at[0] + p * g->y.at[1] + q * g->y.at[2] + channel;
  if (h->plan->task.epi.e.residual)
    a->c = (const float *)(const void *)h->call->c + n * cs->outer + z * cs->at[0] + p * cs->at[1] + q * cs->at[2] + channel;
  h->plan->decision.kernel->fn(a);
}

static void body(void *context, int64_t i) {
  const hk_shared *h = context;
  const hk_geom *g = &h->plan->task.geom;
  const hk_epilogue *e = &h->plan->task.epi.e;
  const dwm *m = h->plan->own;
  int64_t from, to, item, last;
  hk_piece(m->blocks, i / m->parts, m->shards, &from, &to);
  hk_piece(g->n * g->out[0] * m->bands * m->strips, i % m->parts, m->parts, &item, &last);
  if (from == to) return;
  const int64_t channel = from * m->vw;
  hk_dwm_args a = {.f = (const float *)h->plan->packed->f + channel * SIDE * SIDE, .blocks = to - from,
                   .last_lanes = (int32_t)(to == m->blocks ? g->groups - (to - 1) * m->vw : m->vw),
                   .x_row = g->x.at[1], .x_col = g->x.at[2], .y_row = g->y.at[1], .y_col = g->y.at[2],
                   .c_row = h->plan->task.epi.c.at[1], .c_col = h->plan->task.epi.c.at[2],
                   .stride = (int32_t)g->stride[1], .scale_one = e->scale == 1, .fuse = m->fuse};
  if (e->scale) a.scale = (const float *)h->call->scale + (e->scale == 2 ? channel : 0);
  if (e->bias) a.bias = (const float *)h->call->bias + channel;
  for (; item < last; item++) {
    const int64_t strip = item % m->strips, band = item / m->strips % m->bands, plane = item / m->strips / m->bands;
    march(h, &a, plane / g->out[0], plane % g->out[0], band, strip, channel);
  }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const dwm *m = plan->own;
  hk_shared h = {plan, call};
  hk_plan_parallel(plan, m->shards * m->parts, body, &h);
  return HK_OK;
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

const hk_algo hk_algo_dwm = {
    .name = "dwm", .knobs = {"columns", "rows", "shards", "parts"}, .family = HK_FAMILY_DWM, .device = HK_CPU,
    .offer = offer, .vary = vary, .check = check, .build = build, .run = run, .destroy = destroy};
