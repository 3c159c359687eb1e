/* slice: bf16, f16 and f8 through f32 algorithms, a few images or output rows at a time. What a slice reads of x is
 * widened into a buffer that the cache holds, the algorithm computes its y in f32 there with the whole epilogue, and
 * that is rounded once into y: the workspace does not grow with x, and no copy of x passes through memory. The rows of
 * a slice see the padding of their dimension as zeros in the buffer. All slices are of one size, so one inner plan
 * serves them: where the size does not divide the output, the last one begins early, and stores its own part alone.
 * The size depends on the problem alone: neither threads nor the machine show in the bits.
 * Refuses what names positions (user functions), grouped batches, and weights that are not finite over padding. */

#include "cost/cost.h"
#include "plan/rewrite/slice.h"
#include "plan/rewrite/widen.h"

/* Bytes of x and y of a slice in f32: of an image that is not cut, or of rows whose products cover the conversion; of
 * rows of depthwise problems, or several images; of planes with windows of their own, which are read once. Zen 5 with 1
 * MiB of L2, bench/results/2026-11-19-half-zen5.md. */
#define IMAGE_BYTES ((int64_t)1 << 20)
#define ROWS_BYTES ((int64_t)512 << 10)
#define PLANES_BYTES ((int64_t)256 << 10)
/* Rows that share so little of what they read are not cut: a slice then is an image. */
#define MOST_READ 3
/* Fewest taps for which fft and karatsuba may pay. */
#define LINE_TAPS 8

/* Up to `most` of total, so that all slices together take the least: each costs `more` quarters of one beyond what it
 * has, and what the last one has in common with the one before is computed twice. */
static int64_t fit(int64_t total, int64_t most, int64_t more) {
  if (most >= total) return total;
  int64_t best = most;
  const int64_t least = hk_ceil_div(total, most);
  for (int64_t count = least; count <= hk_min64(4 * least, least + 64); count++) {
    const int64_t r = hk_ceil_div(total, count);
    if (hk_ceil_div(total, r) * (4 * r + more) < hk_ceil_div(total, best) * (4 * best + more)) best = r;
  }
  return best;
}

static bool last(const hk_strides *s, int64_t groups, int64_t channels, int64_t columns) {
  if (columns > 1 && s->at[2] == 1) return false;
  return channels > 1 ? s->channel == 1 : groups > 1 && s->group == 1;
}

static int64_t rows_read(const hk_geom *g, int d, int64_t rows) {
  return (rows - 1) * g->stride[d] + (g->win[d] - 1) * g->dil[d] + 1;
}

static int64_t volume(const int64_t at[3]) { return at[0] * at[1] * at[2]; }

/* Rows of dense problems may fill L2, but for weights that lie there: 96 to 160 channels of 75 x 75 take 1.06 times as
 * long with 1 MiB as with 256 KiB, 256 to 256 of 56 x 56, whose weights stream, 1.03 times as long with 256 KiB. */
static int64_t rows_bytes(const hk_geom *g) {
  const int64_t weights = g->groups * g->k * g->gk * (int64_t)sizeof(float);
  if (g->c == 1) return ROWS_BYTES;
  return weights > IMAGE_BYTES / 4 && weights < IMAGE_BYTES ? ROWS_BYTES / 2 : IMAGE_BYTES;
}

/* The rows of the outermost dimension that there is in y, or 0: an image is not cut. */
static int64_t choose_rows(const hk_geom *g, int64_t groups, int *dimension) {
  const int d = *dimension = g->out[0] > 1 ? 0 : g->out[1] > 1 ? 1 : 2;
  const int64_t x_row = groups * g->c * volume(g->in) / g->in[d];
  const int64_t y_row = groups * g->k * volume(g->out) / g->out[d];
  const int64_t row = x_row * g->stride[d] + y_row, floats = rows_bytes(g) / (int64_t)sizeof(float);
  const int64_t halo = x_row * (rows_read(g, d, 1) - g->stride[d]);
  const int64_t rows = fit(g->out[d], hk_max64(1, (floats - halo) / row), g->c == 1 ? 4 : 1);
  return g->in_dil[d] == 1 && rows_read(g, d, rows) <= MOST_READ * g->stride[d] * rows ? rows : 0;
}

/* Planes one after the other, each with a window of its own: some of them, so that nothing is read twice. */
static bool by_groups(const hk_geom *g) {
  return g->groups > 1 && g->c == 1 && g->taps > 1 && (g->in[2] == 1 || g->x.at[2] == 1) &&
         !last(&g->x, g->groups, g->c, g->in[2]) && !last(&g->y, g->groups, g->k, g->out[2]);
}

hk_slice hk_slice_make(const hk_geom *g) {
  hk_slice s = {.images = 1, .groups = g->groups, .d = -1, .blocks = 1, .in = {g->in[0], g->in[1], g->in[2]}};
  const int64_t plane = (g->c * volume(g->in) + g->k * volume(g->out)) * (int64_t)sizeof(float);
  const int64_t image = g->groups * plane;
  for (int d = 0; d < 3; d++) s.out[d] = g->out[d];
  s.planes = by_groups(g);
  if (s.planes) s.groups = fit(g->groups, hk_max64(1, PLANES_BYTES / plane), 1);
  const int64_t rows = s.groups * plane > IMAGE_BYTES ? choose_rows(g, s.groups, &s.d) : 0;
  if (rows && rows < g->out[s.d]) {
    s.rows = s.out[s.d] = rows;
    s.in[s.d] = rows_read(g, s.d, rows);
    s.blocks = hk_ceil_div(g->out[s.d], rows);
  } else {
    s.d = -1;
    if (!s.planes) s.images = fit(g->n, hk_max64(1, ROWS_BYTES / image), 1);
  }
  s.bands = hk_ceil_div(g->groups, s.groups);
  s.count = hk_ceil_div(g->n, s.images) * s.bands * s.blocks;
  s.x = hk_widen_dense(last(&g->x, g->groups, g->c, g->in[2]), s.groups, g->c, s.in);
  s.y = hk_widen_dense(last(&g->y, g->groups, g->k, g->out[2]), s.groups, g->k, s.out);
  s.f = (hk_strides){.group = g->k * g->taps, .outer = g->taps, .channel = 1};
  s.f.at[0] = g->win[1] * g->win[2], s.f.at[1] = g->win[2], s.f.at[2] = 1;
  s.f_values = s.planes ? s.groups * s.f.group : 0;
  s.x_values = s.images * s.x.outer;
  s.y_values = s.images * s.y.outer;
  return s;
}

int64_t hk_slice_workers(const hk_task *t, const hk_slice *s) {
  return t->threads > 1 && 2 * s->count > t->threads ? hk_min64(t->threads, s->count) : 1;
}

static int64_t copies(const hk_task *t) {
  const hk_slice s = hk_slice_make(&t->geom);
  return hk_slice_workers(t, &s);
}

static bool is_float(hk_type t) { return t == HK_F32 || hk_widen_narrow(t); }

static bool takes(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const hk_epilogue *e = &t->epi.e;
  if (!hk_widen_narrow(g->x_type) && !hk_widen_narrow(g->f_type))
    return hk_refuse(why, "neither x nor f is f16, bf16 or f8e4m3");
  if (g->acc_type != HK_F32) return hk_refuse(why, "sums are f64; slice takes f32 sums only");
  if (!is_float(g->y_type)) return hk_refuse(why, "y must be f32, f16, bf16 or f8e4m3");
  if (t->options.stateful || e->gate) return hk_refuse(why, "state and gate go before slice");
  if (e->act == HK_ACT_USER || e->user2 || e->store)
    return hk_refuse(why, "functions of the epilogue are told positions, which a slice does not know");
  if (g->batch_grouped) return hk_refuse(why, "batch_groups must be 1");
  if (t->padded_nonfinite) return hk_refuse(why, "weights hold Inf or NaN, and a slice pads with zeros");
  if (g->gk == 0 || g->gm == 0 || g->k == 0 || g->n * g->groups * g->c * volume(g->in) == 0)
    return hk_refuse(why, "x, f or y is empty");
  if (by_groups(g) && g->taps >= LINE_TAPS && (t->options.math & HK_MATH_FAST_ALGORITHMS))
    return hk_refuse(why, "fft and karatsuba transform weights at creation, and slices of planes widen them in a call");
  if (e->act == HK_ACT_PRELU && by_groups(g))
    return hk_refuse(why, "slopes are those of all channels, a slice has some of them");
  return true;
}

static int inner(const hk_task *t, int part, hk_task *to) {
  const hk_slice s = hk_slice_make(&t->geom);
  (void)part;
  hk_geom_set_types(&to->geom, HK_F32, HK_F32, HK_F32);
  hk_geom_set_layout(&to->geom, &s.x, &s.y);
  hk_geom_set_slice(&to->geom, s.images, s.groups, s.d, s.rows);
  if (s.planes) {
    to->f_now = false;
    to->geom.f = s.f;
  }
  to->epi.c = s.y;
  if (hk_slice_workers(t, &s) > 1) {
    to->threads = 1;
    to->options.parallel_for = NULL;
  }
  return 1;
}

static int64_t rounded(int64_t floats) { return hk_round_up(floats * (int64_t)sizeof(float), HK_ALIGN); }

static size_t own_bytes(const hk_task *t) {
  const hk_slice s = hk_slice_make(&t->geom);
  const int64_t own = rounded(s.x_values) + rounded(s.y_values) + rounded(s.f_values);
  return (s.planes ? 0 : hk_widen_filter_bytes(t)) + (size_t)(hk_slice_workers(t, &s) * own);
}

/* What is read and written of x and y comes from where they lie, and through the buffer. A tensor whose rows are
 * adjacent neither along the channels nor along the columns is converted element by element. */
static double seconds(const hk_task *t, double inner_s) {
  const hk_geom *g = &t->geom;
  const hk_slice s = hk_slice_make(g);
  const double x = (double)s.x_values, y = (double)s.y_values, all = (double)s.count;
  const double narrow = x * (double)hk_type_bytes(g->x_type) + y * (double)hk_type_bytes(g->y_type);
  const double wide = (double)sizeof(float) * (x + y), threads = (double)t->threads,
               at_once = (double)hk_slice_workers(t, &s);
  const bool x_even = g->x.at[2] == 1 || s.x.channel == 1, y_even = g->y.at[2] == 1 || s.y.channel == 1;
  const hk_work w = {.cycles = x * (x_even ? 1.0 : 100.0) + y * (y_even ? 2.0 : 100.0),
                     .moved = hk_cost_move(narrow, all * narrow) + hk_cost_move(wide, wide)};
  const double pass = hk_cost_seconds(&hk_cost_here()->convert, &w, 1, 1);
  if (at_once > 1) return (inner_s + pass) * (double)hk_ceil_div(s.count, (int64_t)at_once) + hk_cost_here()->wake;
  return all * (inner_s + pass / threads + (threads > 1 ? 2 * hk_cost_here()->wake : 0));
}

const hk_rewrite hk_rewrite_slice = {.name = "slice",
                                     .summary = "bf16, f16 and f8 through f32: images or rows of x and y at a time, "
                                                "converted in buffers that the cache holds",
                                     .device = HK_CPU,
                                     .order = HK_ORDER_CONVERT,
                                     .takes = takes,
                                     .inner = inner,
                                     .bytes = own_bytes,
                                     .copies = copies,
                                     .seconds = seconds,
                                     .filter = hk_widen_filter,
                                     .build = hk_slice_build,
                                     .run = hk_slice_run};
