/* integers: int8 problems with so few products per sum that f32 holds every partial sum exactly, through f32
 * algorithms: depthwise and grouped layers, for which dots and qgemm have too few channels. x without its zero point is
 * converted once per call into the workspace, dense in the order it comes in, f once at creation; the sums come back as
 * f32 integers in y's order and are requantised as qgemm does it. Exact, because 2^24 bounds gk times the largest
 * product.
 */
#include <math.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/tiles.h"
#include "plan/rewrite/widen.h"

#define EXACT (INT64_C(1) << 24)
enum { CHUNK = 64 }; /* sums that are requantised at a time: so many rows of so many */

static int64_t largest(hk_type t, int32_t zero) {
  const int64_t lo = t == HK_U8 ? 0 : -128, hi = t == HK_U8 ? 255 : 127;
  return hk_max64(hi - zero, zero - lo);
}

/* All channels of a pixel are adjacent. */
static bool is_last(const hk_strides *s, int64_t groups, int64_t channels) {
  return (channels == 1 || s->channel == 1) && (groups == 1 || s->group == channels);
}

static int64_t x_values(const hk_geom *g) { return g->n * g->groups * g->c * g->in[0] * g->in[1] * g->in[2]; }
static int64_t y_values(const hk_geom *g) { return g->groups * g->k * g->gm; }
static int64_t f_values(const hk_geom *g) { return g->groups * g->k * g->gk; }
static size_t rounded(int64_t floats) { return (size_t)hk_round_up(floats * (int64_t)sizeof(float), HK_ALIGN); }

static bool takes(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  if (g->acc_type != HK_S32) return hk_refuse(why, "x and f must be int8");
  if (!hk_type_is_int8(g->y_type) || !t->epi.simple || t->epi.e.residual)
    return hk_refuse(why, "y must be s8 or u8, the epilogue scale, bias and clamp at most");
  if (t->options.stateful) return hk_refuse(why, "options.stateful is 1: state goes before integers");
  if (g->batch_grouped) return hk_refuse(why, "batch_groups must be 1");
  if (g->gk == 0 || g->gm == 0 || g->k == 0 || x_values(g) == 0) return hk_refuse(why, "x, f or y is empty");
  /* zero points of f may come per channel, after the choice */
  if (g->gk > EXACT / 255 / largest(g->x_type, g->x_zero))
    return hk_refuse(why, "sums of so many products may exceed 2^24, which f32 holds exactly");
  if (f_values(g) * (int64_t)sizeof(float) > HK_TABLE_BYTES) return hk_refuse(why, "f has more than 2^22 weights");
  if (!is_last(&g->x, g->groups, g->c) && g->x.at[2] != 1 && g->in[2] != 1)
    return hk_refuse(why, "neither the channels nor the columns of x are adjacent");
  if (!is_last(&g->y, g->groups, g->k) && g->y.at[2] != 1 && g->out[2] != 1)
    return hk_refuse(why, "neither the channels nor the columns of y are adjacent");
  if (!hk_kernel_best(HK_FAMILY_REQUANT, t->isa)) return hk_refuse(why, "there is no requant kernel below AVX2");
  return true;
}

static int inner(const hk_task *t, int part, hk_task *to) {
  const hk_geom *g = &t->geom;
  const hk_strides x = hk_widen_dense(is_last(&g->x, g->groups, g->c), g->groups, g->c, g->in);
  const hk_strides y = hk_widen_dense(is_last(&g->y, g->groups, g->k), g->groups, g->k, g->out);
  (void)part;
  to->geom.acc_type = HK_F32;
  to->geom.x_zero = to->geom.f_zero = to->geom.y_zero = 0;
  hk_geom_set_types(&to->geom, HK_F32, HK_F32, HK_F32);
  hk_geom_set_layout(&to->geom, &x, &y);
  to->geom.f = (hk_strides){.group = g->k * g->gk, .outer = g->gk, .channel = g->taps, .at = {0, g->win[2], 1}};
  to->geom.f.at[0] = g->win[1] * g->win[2];
  to->epi = (hk_epi){.e = {.size = sizeof to->epi.e}, .c = y, .simple = true};
  to->options.math = HK_MATH_STRICT; /* others are not exact */
  return 1;
}

static size_t own_bytes(const hk_task *t) {
  return rounded(x_values(&t->geom)) + rounded(y_values(&t->geom)) + (t->f_now ? 0 : rounded(f_values(&t->geom)));
}

/* x is read once, sums are written and read again; in cycles per value. */
static double seconds(const hk_task *t, double inner_s) {
  const double x = (double)x_values(&t->geom), y = (double)y_values(&t->geom), threads = (double)t->threads;
  const double moved = hk_cost_move(5 * x, 5 * x) + hk_cost_move(5 * y, 5 * y);
  const hk_work w = {.cycles = (0.7 * x + 1.2 * y) / threads, .moved = moved / threads};
  const hk_cost_family f = {.cycle = 1, .wait = 1, .call = 4e-7};
  return inner_s + hk_cost_seconds(&f, &w, 1, 1);
}

/* ---- x and f */
static void unpack(const hk_kernel *k, hk_type type, int32_t zero, const char *from, float *to, int64_t count) {
  k->fn(&(hk_unpack8_args){from, to, count, zero, type == HK_S8});
}

/* f without its zero points, dense: [group][k][c][tap]. */
static void filter_to(const hk_plan *plan, const char *f, float *to) {
  const hk_geom *g = &plan->task.geom;
  const int32_t *zeros = plan->packed->f_zero;
  for (int64_t i = 0; i < g->groups * g->k * g->c; i++) {
    const int64_t c = i % g->c, k = i / g->c, zero = zeros ? zeros[k] : g->f_zero;
    const char *from = f + k / g->k * g->f.group + k % g->k * g->f.outer + c * g->f.channel;
    for (int64_t t = 0; t < g->taps; t++) {
      const int64_t s2 = t % g->win[2], s1 = t / g->win[2] % g->win[1], s0 = t / g->win[2] / g->win[1];
      const char v = from[s0 * g->f.at[0] + s1 * g->f.at[1] + s2 * g->f.at[2]];
      *to++ = (float)((g->f_type == HK_S8 ? (int8_t)v : (uint8_t)v) - zero);
    }
  }
}

static hk_status filter(const hk_plan *plan, const void **f, void **made) {
  const int64_t elements = f_values(&plan->task.geom);
  float *to = *made = hk_alloc((size_t)elements * sizeof *to);
  if (!to) return hk_fail(HK_NO_MEMORY, "no memory for %lld converted weights", (long long)elements);
  filter_to(plan, *f, to);
  *f = to;
  return HK_OK;
}

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_kernel *kernel;
  hk_strides inner; /* of x, then of y */
  float *at;
} job;

/* One line of one image: all columns, all channels. */
static void unpack_line(void *context, int64_t i) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t p1 = i % g->in[1], p0 = i / g->in[1] % g->in[0], n = i / g->in[1] / g->in[0];
  const char *x = j->call->x + n * g->x.outer + p0 * g->x.at[0] + p1 * g->x.at[1];
  float *to = j->at + n * j->inner.outer + p0 * j->inner.at[0] + p1 * j->inner.at[1];
  const int64_t channels = g->groups * g->c, whole = g->x.at[2] == channels ? g->in[2] : 1;
  for (int64_t w = 0; w < g->in[2]; w += whole)
    unpack(j->kernel, g->x_type, g->x_zero, x + w * g->x.at[2], to + w * channels, whole * channels);
}

/* Lines of a plane that follow each other are one. */
static int64_t joined(const hk_strides *s, const int64_t size[3]) {
  return size[1] == 1 || s->at[1] == size[2] ? size[1] : 1;
}

/* One channel of one image, at one place of the outer dimension. */
static void unpack_plane(void *context, int64_t i) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t c = i % g->c, group = i / g->c % g->groups, p0 = i / g->c / g->groups % g->in[0],
                n = i / g->c / g->groups / g->in[0], lines = joined(&g->x, g->in);
  const char *x = j->call->x + n * g->x.outer + p0 * g->x.at[0] + group * g->x.group + c * g->x.channel;
  float *to = j->at + n * j->inner.outer + p0 * j->inner.at[0] + group * j->inner.group + c * j->inner.channel;
  for (int64_t p1 = 0; p1 < g->in[1]; p1 += lines)
    unpack(j->kernel, g->x_type, g->x_zero, x + p1 * g->x.at[1], to + p1 * j->inner.at[1], lines * g->in[2]);
}

/* ---- y */
/* What some channels' sums become: bias and scale by column, rows of y. */
typedef struct piece {
  int64_t count, columns; /* at most CHUNK rows of at most CHUNK */
  int32_t bias[CHUNK];
  float scale[CHUNK];
  uint8_t *y[CHUNK];
} piece;

/* Sums `step` apart from row to row. */
static void requantise(const job *j, const piece *p, const float *sums, int64_t step) {
  const hk_plan *plan = j->plan;
  int32_t whole[CHUNK * CHUNK];
  for (int64_t m = 0; m < p->count; m++)
    for (int64_t i = 0; i < p->columns; i++) whole[m * CHUNK + i] = (int32_t)sums[m * step + i];
  hk_requant_args a = {.sums = whole, .bias = p->bias, .scale = p->scale, .width = CHUNK, .count = p->count};
  a.columns = p->columns, a.y_type = plan->task.geom.y_type, a.zero = plan->task.geom.y_zero, a.y = p->y;
  hk_tiles_bounds(&plan->task.epi.e, &a.lo, &a.hi);
  j->kernel->fn(&a);
}

static int32_t bias_of(const job *j, int64_t k) {
  return j->plan->task.epi.e.bias ? ((const int32_t *)j->call->bias)[k] : 0;
}

static float scale_of(const job *j, int64_t k) {
  const int32_t scale = j->plan->task.epi.e.scale;
  return scale == 0 ? 1.0f : ((const float *)j->call->scale)[scale == 2 ? k : 0];
}

/* The pixels of a line, whose channels are adjacent. */
static void requantise_line(void *context, int64_t i) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t p1 = i % g->out[1], p0 = i / g->out[1] % g->out[0], n = i / g->out[1] / g->out[0];
  const float *sums = j->at + n * j->inner.outer + p0 * j->inner.at[0] + p1 * j->inner.at[1];
  uint8_t *y = (uint8_t *)j->call->y + n * g->y.outer + p0 * g->y.at[0] + p1 * g->y.at[1];
  const int64_t channels = g->groups * g->k;
  for (int64_t k = 0; k < channels; k += CHUNK) {
    piece p = {.columns = hk_min64(CHUNK, channels - k)};
    for (int64_t c = 0; c < p.columns; c++) p.bias[c] = bias_of(j, k + c), p.scale[c] = scale_of(j, k + c);
    for (int64_t q = 0; q < g->out[2]; q += CHUNK) {
      p.count = hk_min64(CHUNK, g->out[2] - q);
      for (int64_t m = 0; m < p.count; m++) p.y[m] = y + (q + m) * g->y.at[2] + k;
      requantise(j, &p, sums + q * channels + k, channels);
    }
  }
}

/* One channel of one image, at one place of the outer dimension: adjacent columns, CHUNK of them to a row. */
static void requantise_plane(void *context, int64_t i) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t k = i % g->k, group = i / g->k % g->groups, p0 = i / g->k / g->groups % g->out[0],
                n = i / g->k / g->groups / g->out[0], lines = joined(&g->y, g->out), length = lines * g->out[2];
  piece p;
  for (int64_t c = 0; c < CHUNK; c++)
    p.bias[c] = bias_of(j, group * g->k + k), p.scale[c] = scale_of(j, group * g->k + k);
  for (int64_t p1 = 0; p1 < g->out[1]; p1 += lines) {
    const float *sums = j->at + n * j->inner.outer + p0 * j->inner.at[0] + p1 * j->inner.at[1] +
                        group * j->inner.group + k * j->inner.channel;
    uint8_t *y = (uint8_t *)j->call->y + n * g->y.outer + p0 * g->y.at[0] + p1 * g->y.at[1] + group * g->y.group +
                 k * g->y.channel;
    for (int64_t q = 0; q < length;) {
      p.columns = hk_min64(CHUNK, length - q), p.count = hk_min64(CHUNK, (length - q) / p.columns);
      for (int64_t m = 0; m < p.count; m++) p.y[m] = y + q + m * CHUNK;
      requantise(j, &p, sums + q, CHUNK);
      q += p.count * p.columns;
    }
  }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  const hk_geom *in = &plan->inner[0]->task.geom;
  float *x = (float *)(void *)hk_rewrite_workspace(plan, call), *y = x + rounded(x_values(g)) / sizeof *x;
  job j = {plan, call, hk_kernel_best(HK_FAMILY_UNPACK8, plan->task.isa), in->x, x};
  const bool x_last = is_last(&g->x, g->groups, g->c), y_last = is_last(&g->y, g->groups, g->k);
  hk_plan_parallel(plan, g->n * g->in[0] * (x_last ? g->in[1] : g->groups * g->c), x_last ? unpack_line : unpack_plane,
                   &j);
  hk_call c = *call;
  c.x = (const char *)x;
  c.y = (char *)y;
  if (!plan->task.f_now) {
    float *f = y + rounded(y_values(g)) / sizeof *y;
    filter_to(plan, call->f, f);
    c.f = (const char *)f;
  }
  const hk_status s = hk_rewrite_run_inner(plan, 0, &c);
  if (s) return s;
  j = (job){plan, call, hk_kernel_best(HK_FAMILY_REQUANT, plan->task.isa), in->y, y};
  hk_plan_parallel(plan, g->n * g->out[0] * (y_last ? g->out[1] : g->groups * g->k),
                   y_last ? requantise_line : requantise_plane, &j);
  return HK_OK;
}

const hk_rewrite hk_rewrite_integers = {.name = "integers",
                                        .summary = "int8 with few products per sum through f32, exactly: x and sums in "
                                                   "the workspace",
                                        .device = HK_CPU,
                                        .order = HK_ORDER_CONVERT,
                                        .takes = takes,
                                        .inner = inner,
                                        .bytes = own_bytes,
                                        .seconds = seconds,
                                        .filter = filter,
                                        .run = run};
