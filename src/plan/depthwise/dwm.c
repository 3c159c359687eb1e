/* Depthwise convolution by windows of 3 x 3, with AVX2 also 5 x 5 and 7 x 7, stride 1 or 2 in both dimensions, lanes
 * over channels (channels-last), that marches down strips of columns with its sums in registers; see
 * ../cpu/tmpl/dwm.tmpl.h. With dilation d every d-th row (column) of y sees every d-th of x: each such phase is a
 * problem without dilation. f32 data, epilogues that kernels fuse, weights at creation, no workspace. Refuses dilation
 * with a stride, multipliers, other windows, gates and state: dwc takes them. */
#include <stdio.h>

#include "cost/cost.h"
#include "plan/depthwise/depthwise.h"

#define SIDE 3 /* of the window; 5 and 7 too where kernels go by pairs of rows */

enum { COLUMNS, ROWS, SHARDS, PARTS };

typedef struct dwm {
  int64_t vw, columns, rows, shards, parts;
  int64_t blocks, strips, bands; /* of all channels; of a phase's output row; bands of `rows` output rows of it */
  int64_t phases[2];             /* of rows, of columns */
  hk_dw_fuse fuse;
} dwm;

/* With few registers a kernel goes by pairs of rows, by tiles of its own; see ../cpu/tmpl/dwmpair.tmpl.h. */
static bool row_wise(const hk_kernel *k) { return k->mr > 12; }

static bool supported(const hk_task *t, const hk_kernel *k, char *why) {
  const hk_geom *g = &t->geom;
  hk_dw_fuse fuse;
  const char *no = NULL;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) no = "x and f must be f32";
  else if (g->c != 1 || g->k != 1 || g->batch_grouped) no = "c and k must be 1 per group";
  else if (g->win[0] != 1 || g->win[1] != g->win[2] || (g->win[2] != SIDE && g->win[2] != 5 && g->win[2] != 7))
    no = "the window is not 3 x 3, 5 x 5 or 7 x 7";
  else if (g->win[2] != SIDE && !row_wise(k)) no = "this kernel's window is 3 x 3";
  else if (g->stride[1] != g->stride[2] || g->stride[1] > 2) no = "the stride is not 1 or 2";
  else if (g->stride[1] != 1 && (g->dil[1] != 1 || g->dil[2] != 1)) no = "there is dilation and a stride";
  else if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) no = "there is input dilation";
  else if (g->gm == 0 || g->in[1] < 1 || g->in[2] < 1) no = "x or the result is empty";
  else if (g->lo[0] != 0 || (g->out[0] - 1) * g->stride[0] >= g->in[0]) no = "the depth is padded";
  else if (!hk_dw_flat(&g->x, g->groups) || !hk_dw_flat(&g->y, g->groups))
    no = "the channels of x and y must be adjacent";
  else if (!t->f_now) no = "the weights must be known at creation";
  else if (t->epi.e.gate || t->options.stateful) no = "epilogue.gate and options.stateful must be 0";
  else if (!hk_dw_fuse_make(t, &fuse)) no = "the epilogue is not one that kernels fuse";
  else if (t->epi.e.residual && !hk_dw_flat(&t->epi.c, g->groups)) no = "the channels of the residual must be adjacent";
  return !no || hk_refuse(why, no);
}

/* Rows (axis 1) or columns (2) of y that the first phase has. */
static int64_t phase_out(const hk_geom *g, int axis) { return hk_ceil_div(g->out[axis], g->dil[axis]); }

static bool layout(const hk_task *t, const hk_decision *d, dwm *m) {
  const hk_geom *g = &t->geom;
  *m = (dwm){.vw = d->kernel->nr,
             .columns = d->knob[COLUMNS],
             .rows = d->knob[ROWS],
             .shards = d->knob[SHARDS],
             .parts = d->knob[PARTS]};
  if (m->columns > d->kernel->mr || m->rows > phase_out(g, 1)) return false;
  m->blocks = hk_ceil_div(g->groups, m->vw);
  m->strips = hk_ceil_div(phase_out(g, 2), m->columns);
  m->bands = hk_ceil_div(phase_out(g, 1), m->rows);
  for (int i = 0; i < 2; i++) m->phases[i] = hk_min64(g->dil[1 + i], g->out[1 + i]);
  return hk_dw_fuse_make(t, &m->fuse);
}

static int64_t marches(const hk_geom *g, const dwm *m) {
  return g->n * g->out[0] * m->phases[0] * m->phases[1] * m->bands * m->strips;
}

/* The part of the products along an axis whose x lies inside; kernels skip the others. */
static double inside(const hk_geom *g, int axis) {
  int64_t n = 0;
  for (int64_t t = 0; t < g->win[axis]; t++) {
    const int64_t at = g->lo[axis] - t * g->dil[axis], s = g->stride[axis]; /* output q sees x[q*s - at] */
    const int64_t first = at > 0 ? hk_ceil_div(at, s) : 0,
                  past = hk_min64(g->out[axis], at + g->in[axis] > 0 ? hk_ceil_div(at + g->in[axis], s) : 0);
    n += hk_max64(0, past - first);
  }
  return (double)n / (double)(g->win[axis] * g->out[axis]);
}

/* Products and what a strip costs to begin; the constants as measured on Zen 4. */
static double predict(const hk_task *t, const hk_decision *d, const dwm *m) {
  const hk_geom *g = &t->geom;
  const double product = 2.0 * (double)m->vw / hk_cost_flops(d->kernel->isa), stride = (double)g->stride[1];
  const int64_t in = hk_ceil_div(g->in[1], g->dil[1]);
  const double marched =
      (double)hk_min64(m->rows * g->stride[1] + g->win[1] - g->stride[1], in) / (double)m->rows / stride;
  const bool half = row_wise(d->kernel); /* of the registers: fewer sums at a time, more loads */
  const double begins = half ? 4.0 + 40.0 / (double)m->blocks : 35.0;
  const double few = half && (m->columns < 3 || m->rows < 2)         ? 1.5
                     : g->stride[1] == 2 && (half || m->columns < 3) ? 1.3
                     : half                                          ? 1.15
                                                                     : 1.0;
  /* wider windows ask for each column whether it lies inside */
  const bool wide = g->win[2] != SIDE;
  const double taps = (double)(g->win[1] * g->win[2]) * (half ? inside(g, 1) : marched) * (wide ? 1.0 : inside(g, 2));
  const double one = product * (few * taps + 0.5 * stride) + 0.2;
  const double blocks = (double)m->blocks + (half && g->groups % m->vw ? 1.0 : 0.0); /* masks take longer */
  const double cycles =
      (double)marches(g, m) * blocks * ((double)(m->rows * m->columns) * one + begins + 1.5 * (double)m->rows);
  const hk_work w = {.cycles = cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  return hk_cost_seconds(&hk_cost_here()->dwm, &w, m->shards * m->parts, t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  dwm m;
  if (!layout(t, d, &m)) {
    snprintf(why, HK_REASON,
             "columns is at most the kernel's %d, rows at most the output rows of a dilation phase, %lld",
             (int)d->kernel->mr, (long long)phase_out(&t->geom, 1));
    return false;
  }
  d->predicted_s = predict(t, d, &m);
  d->workspace_bytes = 0;
  return true;
}

/* Most columns of a strip. Row-wise all of them, so that x is read as it lies, while the rows of a pair stay in a part
 * of L2. */
static int64_t widest(const hk_geom *g, const hk_kernel *k) {
  const int64_t column = (g->stride[1] + g->win[1]) * g->stride[2] * g->groups * (int64_t)sizeof(float);
  return row_wise(k) ? hk_max64(16, hk_min64(k->mr, hk_cost_l2() / 4 / column)) : k->mr;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!supported(t, d->kernel, why)) return false;
  const int64_t blocks = hk_ceil_div(g->groups, d->kernel->nr), most = widest(g, d->kernel);
  const int64_t rows = phase_out(g, 1), columns = phase_out(g, 2);
  d->knob[COLUMNS] = hk_ceil_div(columns, hk_ceil_div(columns, most));
  d->knob[ROWS] = rows;
  d->knob[SHARDS] = hk_min64(t->threads, blocks);
  const int64_t phases = hk_min64(g->dil[1], g->out[1]) * hk_min64(g->dil[2], g->out[2]);
  const int64_t strips = g->n * g->out[0] * phases * hk_ceil_div(columns, d->knob[COLUMNS]);
  const int64_t want = t->threads > 1 && blocks < 2 * t->threads ? hk_ceil_div(2 * t->threads, d->knob[SHARDS]) : 1;
  if (want > strips) d->knob[ROWS] = hk_ceil_div(rows, hk_min64(rows, hk_ceil_div(want, strips)));
  d->knob[PARTS] = hk_min64(want, strips * hk_ceil_div(rows, d->knob[ROWS]));
  return finish(t, d, why);
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  return supported(t, d->kernel, why) && finish(t, d, why);
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  *d = *base;
  d->knob[COLUMNS] = base->knob[COLUMNS] - 1 - index;
  return index < 3 && d->knob[COLUMNS] > 1 && finish(t, d, why);
}

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  dwm *m = plan->own = hk_alloc(sizeof *m);
  if (!m) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!layout(&plan->task, &plan->decision, m)) return hk_fail(HK_UNSUPPORTED, "dwm: a knob is out of range");
  float *to;
  const hk_status s = hk_plan_pack_room(plan, m->blocks * g->win[1] * g->win[2] * m->vw, sizeof *to, NULL, 0, &to);
  if (!to) return s;
  for (int64_t b = 0; b < m->blocks; b++)
    for (int64_t t = 0; t < g->win[1] * g->win[2]; t++)
      for (int64_t k = b * m->vw; k < (b + 1) * m->vw; k++)
        *to++ = k < g->groups ? ((const float *)plan->raw_f)[k * g->f.group + hk_dw_tap(g, t)] : 0.0f;
  return HK_OK;
}

/* ---- run */

/* Rows or columns that a phase of an axis finds in x: `from`, `from` + dilation, ..; its first output sees the one
 * `at`, which may lie before them. */
typedef struct lattice {
  int64_t from, at, in, out;
} lattice;

static lattice lattice_make(const hk_geom *g, int axis, int64_t phase) {
  const int64_t d = g->dil[axis], first = phase - g->lo[axis], from = (first % d + d) % d;
  return (lattice){from, (first - from) / d, hk_max64(0, hk_ceil_div(g->in[axis] - from, d)),
                   hk_ceil_div(g->out[axis] - phase, d)};
}

/* One strip of one band of one phase of one plane; what does not depend on it is set. */
static void march(const hk_shared *h, hk_dwm_args *a, int64_t plane, int64_t phase, int64_t band, int64_t strip,
                  int64_t channel) {
  const hk_geom *g = &h->plan->task.geom;
  const hk_strides *cs = &h->plan->task.epi.c;
  const dwm *m = h->plan->own;
  const int64_t n = plane / g->out[0], z = plane % g->out[0], i = phase / m->phases[1], j = phase % m->phases[1];
  const lattice r = lattice_make(g, 1, i), s = lattice_make(g, 2, j);
  const int64_t p = band * m->rows, q = strip * m->columns;
  if (p >= r.out || q >= s.out) return;
  const int64_t row = p * g->stride[1] + r.at, col = q * g->stride[2] + s.at;
  a->columns = (int32_t)hk_min64(m->columns, s.out - q);
  a->rows = hk_min64(m->rows, r.out - p);
  const int64_t span = (a->columns - 1) * g->stride[2] + g->win[2];
  a->row_first = -row;
  a->row_last = r.in - row;
  a->col_first = (int32_t)hk_max64(0, hk_min64(span, -col));
  a->col_last = (int32_t)hk_max64(0, hk_min64(span, s.in - col));
  a->x = (const float *)(const void *)h->call->x + n * g->x.outer + z * g->stride[0] * g->x.at[0] +
         r.from * g->x.at[1] + s.from * g->x.at[2] + row * a->x_row + col * a->x_col + channel;
  a->y = (float *)(void *)h->call->y + n * g->y.outer + z * g->y.at[0] + i * g->y.at[1] + j * g->y.at[2] +
         p * a->y_row + q * a->y_col + channel;
  if (h->plan->task.epi.e.residual)
    a->c = (const float *)(const void *)h->call->c + n * cs->outer + z * cs->at[0] + i * cs->at[1] + j * cs->at[2] +
           p * a->c_row + q * a->c_col + channel;
  h->plan->decision.kernel->fn(a);
}

static void body(void *context, int64_t i) {
  const hk_shared *h = context;
  const hk_geom *g = &h->plan->task.geom;
  const hk_epilogue *e = &h->plan->task.epi.e;
  const dwm *m = h->plan->own;
  int64_t from, to, item, last;
  hk_piece(m->blocks, i / m->parts, m->shards, &from, &to);
  hk_piece(marches(g, m), i % m->parts, m->parts, &item, &last);
  if (from == to) return;
  const int64_t channel = from * m->vw;
  hk_dwm_args a = {.f = (const float *)h->plan->packed->f + channel * g->win[1] * g->win[2],
                   .blocks = to - from,
                   .last_lanes = (int32_t)(to == m->blocks ? g->groups - (to - 1) * m->vw : m->vw),
                   .x_row = g->dil[1] * g->x.at[1],
                   .x_col = g->dil[2] * g->x.at[2],
                   .y_row = g->dil[1] * g->y.at[1],
                   .y_col = g->dil[2] * g->y.at[2],
                   .c_row = g->dil[1] * h->plan->task.epi.c.at[1],
                   .c_col = g->dil[2] * h->plan->task.epi.c.at[2],
                   .window = (int32_t)g->win[2],
                   .stride = (int32_t)g->stride[1],
                   .scale_one = e->scale == 1,
                   .fuse = m->fuse};
  if (e->scale) a.scale = (const float *)h->call->scale + (e->scale == 2 ? channel : 0);
  if (e->bias) a.bias = (const float *)h->call->bias + channel;
  for (; item < last; item++) {
    const int64_t strip = item % m->strips, band = item / m->strips % m->bands, phases = m->phases[0] * m->phases[1];
    const int64_t phase = item / m->strips / m->bands % phases;
    march(h, &a, item / m->strips / m->bands / phases, phase, band, strip, channel);
  }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const dwm *m = plan->own;
  hk_shared h = {plan, call};
  hk_plan_parallel(plan, m->shards * m->parts, body, &h);
  return HK_OK;
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const dwm *m = plan->own;
  hk_text_add(t, " columns=%lld rows=%lld strips=%lld bands=%lld shards=%lld parts=%lld", (long long)m->columns,
              (long long)m->rows, (long long)m->strips, (long long)m->bands, (long long)m->shards, (long long)m->parts);
}

const hk_algo hk_algo_dwm = {.name = "dwm",
                             .summary = "depthwise 3x3, with AVX2 also 5x5 and 7x7, channels-last: walks down strips "
                                        "of columns with its sums in registers",
                             .knobs = {HK_KNOB_OF("columns", COLUMNS), HK_KNOB_OF("rows", ROWS),
                                       HK_KNOB("shards", 1, HK_THREAD_PIECES), HK_KNOB("parts", 1, HK_THREAD_PIECES)},
                             .family = HK_FAMILY_DWM,
                             .device = HK_CPU,
                             .offer = offer,
                             .vary = vary,
                             .check = check,
                             .build = build,
                             .run = run,
                             .destroy = destroy,
                             .trace = trace};
