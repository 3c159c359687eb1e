/* Host side of the kernels on tiles of shared memory (tile.cuh), wide and back, and of the gradient in registers. */
#include <stdio.h>
#include <string.h>

#include "cuda/causal/causal.h"

enum { CHANNELS = 32, PITCH = 33, FEW_HALO = 8, TILES_MOST = 16 };
enum { GRAD_FIRST = 3, GRAD_ROUND = 32, GRAD_ROUNDS = 2, WALK_LEAST = 32, WALK_MOST = 256 }; /* grad.cu */

static int vector_of(const hk_causal_desc *d) { return 16 / (int)hk_type_bytes(d->x_type); }

static bool is_full(const hk_causal_desc *d) {
  return (d->act != HK_ACT_NONE && d->act != HK_ACT_SILU) || d->has_pre || d->has_post || d->has_residual;
}

/* How tiles of a tensor are moved; x: the way of x, and its address and strides, by which rows are skewed. */
typedef struct lie {
  const void *at;
  hk_cu_causal_view s;
  hk_type type;
} lie;

static bool alike(const lie *x, const lie *t, int vector) {
  const int64_t mask = vector - 1;
  const int64_t a = (int64_t)((uintptr_t)x->at / hk_type_bytes(x->type));
  const int64_t b = (int64_t)((uintptr_t)t->at / hk_type_bytes(t->type));
  return ((a ^ b) & mask) == 0 && ((x->s.outer ^ t->s.outer) & mask) == 0 &&
         ((x->s.channel ^ t->s.channel) & mask) == 0;
}

static int way_of(const hk_causal_desc *d, const lie *x, const lie *t) {
  const int vector = vector_of(d);
  const bool same = t->type == x->type, skewed = x->s.time == 1;
  if (t->s.time == 1 && skewed && same && alike(x, t, vector)) return HK_CU_TIME_VECTORS;
  if (t->s.channel == 1 && !skewed && same && d->c % vector == 0 && (uintptr_t)t->at % 16 == 0 &&
      t->s.outer % vector == 0 && t->s.time % vector == 0)
    return HK_CU_CHANNEL_VECTORS;
  const int64_t time = t->s.time < 0 ? -t->s.time : t->s.time;
  const int64_t channel = t->s.channel < 0 ? -t->s.channel : t->s.channel;
  return time < channel ? HK_CU_TIME_SINGLE : HK_CU_CHANNEL_SINGLE;
}

/* Gates are moved one value at a time. */
static int single_of(const hk_cu_causal_view *s) {
  return (s->time < 0 ? -s->time : s->time) < (s->channel < 0 ? -s->channel : s->channel) ? HK_CU_TIME_SINGLE
                                                                                          : HK_CU_CHANNEL_SINGLE;
}

/* Ways, units of `chunk` tokens and groups of channels. */
static void place(const hk_causal_desc *d, int64_t chunk, hk_cu_causal_call *c) {
  const int vector = vector_of(d);
  const lie x = {c->x, c->xs, d->x_type}, y = {c->dy ? c->dy : c->y, c->ys, d->y_type};
  const lie dx = {c->dx, c->dxs, d->x_type};
  c->x_way = way_of(d, &x, &x), c->y_way = way_of(d, &x, &y), c->dx_way = way_of(d, &x, &dx);
  c->pre_way = single_of(&c->pres), c->post_way = single_of(&c->posts), c->residual_way = single_of(&c->residuals);
  const bool skewed = c->x_way == HK_CU_TIME_VECTORS;
  const bool even = (uintptr_t)c->x % 16 == 0 && c->xs.outer % vector == 0 && c->xs.channel % vector == 0;
  hk_cu_causal_set_units(c, chunk, c->length + (skewed && !even ? vector - 1 : 0), skewed ? 2 : 1);
  c->groups = (int)hk_ceil_div(c->c, CHANNELS);
  c->by_groups = hk_cu_divisor_make(c->groups);
}

static hk_status launch(hk_cu_kernel kernel, int shared_bytes, void *stream, hk_cu_causal_call *c) {
  const int64_t blocks = (int64_t)c->units * c->groups;
  if (blocks > INT32_MAX)
    return hk_fail(HK_UNSUPPORTED, "n * c * length is too large for one launch: split the sequences or channels");
  return blocks ? hk_cu_kernel_run(kernel, blocks, HK_CU_TILE_THREADS, 1, shared_bytes, stream, c) : HK_OK;
}

static hk_status launch_threads(hk_cu_kernel kernel, int64_t threads, void *stream, hk_cu_causal_call *c) {
  if (threads > INT32_MAX - HK_CU_CAUSAL_THREADS)
    return hk_fail(HK_UNSUPPORTED, "n * c * length is too large for one launch: split the sequences or channels");
  return threads ? hk_cu_kernel_run(kernel, hk_ceil_div(threads, HK_CU_CAUSAL_THREADS), HK_CU_CAUSAL_THREADS, 1, 0,
                                    stream, c)
                 : HK_OK;
}

/* ---- forward */

static int wide_halo(const hk_causal_desc *d) { return d->window <= 8 ? FEW_HALO : (int)hk_round_up(d->window, 16); }
static int wide_bytes(const hk_causal_desc *d) {
  return ((HK_CU_TILE_ROWS + wide_halo(d)) * PITCH + (int)d->window * CHANNELS) * 4;
}

hk_status hk_cu_causal_find_wide(hk_cu_causal *k, const hk_causal_desc *d) {
  char variant[32];
  snprintf(variant, sizeof variant, "%d%s", d->window <= 4 ? 4 : d->window <= 8 ? 8 : 256, is_full(d) ? "_full" : "");
  return hk_cu_causal_find("wide", d->x_type, variant, wide_bytes(d), &k->kernel[0]);
}

hk_status hk_cu_causal_run_wide(const hk_cu_causal *k, const hk_causal_desc *d, void *stream, hk_cu_causal_call *c) {
  /* Only a sequence's first unit may read its state, which it overwrites: it reaches as far as the window does. */
  const int64_t chunk = hk_round_up(hk_max64(d->window - 1 + vector_of(d), 1), HK_CU_TILE_ROWS);
  c->halo = wide_halo(d);
  place(d, chunk, c);
  return launch(k->kernel[0], wide_bytes(d), stream, c);
}

/* ---- gradient */

static bool is_few(const hk_causal_desc *d) { return d->window >= 2 && d->window <= 4; }
/* Whether grad.cu may take it, and the binary logarithms of its channels per thread. */
static bool has_grad(const hk_causal_desc *d) { return d->window >= 2 && d->window <= 8 && d->y_type == d->x_type; }
static int grad_widths(const hk_causal_desc *d) { return d->window <= 4 ? 3 : 2; }
static int back_halo(const hk_causal_desc *d) { return is_few(d) ? FEW_HALO : (int)hk_round_up(d->window, 16); }
static int back_bytes(const hk_causal_desc *d) {
  const int halo = back_halo(d), tiles = (3 * halo + 2 * HK_CU_TILE_ROWS) * PITCH;
  const int few = 4 * CHANNELS + 16 * PITCH + 5 * HK_CU_TILE_THREADS;
  return (tiles + (is_few(d) ? few : (int)d->window * CHANNELS)) * 4;
}

/* Kernels in registers, and tokens of a thread that walks: as many as leave about two full waves of threads. */
static hk_status find_grad(hk_cu_causal *k, const hk_causal_desc *d) {
  const int64_t runs = d->packing == HK_CAUSAL_OFFSETS ? 1 : d->n;
  const int64_t threads = runs * d->length * hk_ceil_div(d->c, 1 << (grad_widths(d) - 1)) / WALK_LEAST;
  hk_status s = HK_OK;
  for (int i = 0; i <= GRAD_FIRST && !s; ++i) {
    char variant[32];
    if (i >= grad_widths(d) && i < GRAD_FIRST) continue;
    if (i == GRAD_FIRST) snprintf(variant, sizeof variant, "%dfirst", (int)d->window);
    else snprintf(variant, sizeof variant, "%dx%d", (int)d->window, 1 << i);
    s = hk_cu_causal_find("grad", d->x_type, variant, 0, &k->grad[i]);
  }
  k->grad_tokens = WALK_LEAST;
  while (k->grad_tokens < WALK_MOST && threads * WALK_LEAST / k->grad_tokens > (int64_t)k->processors * 1024)
    k->grad_tokens *= 2;
  return s;
}

hk_status hk_cu_causal_find_back(hk_cu_causal *k, const hk_causal_desc *d) {
  char variant[32];
  const size_t length = strlen(k->name);
  const int64_t runs = d->packing == HK_CAUSAL_OFFSETS ? 1 : d->n;
  int64_t work = runs * hk_ceil_div(d->length, HK_CU_TILE_ROWS) * hk_ceil_div(d->c, CHANNELS);
  snprintf(variant, sizeof variant, is_few(d) ? "%d" : "any", (int)d->window);
  hk_status s = hk_cu_causal_find("back", d->x_type, variant, back_bytes(d), &k->back);
  if (!s) s = hk_cu_causal_find("back", d->x_type, "sum", 0, &k->sum);
  if (!s && has_grad(d)) s = find_grad(k, d);
  /* Tiles of a block: as many as leave about six rounds of three blocks per processor. */
  k->back_rows = HK_CU_TILE_ROWS;
  for (work /= 18 * (int64_t)k->processors; is_few(d) && work > 1 && k->back_rows < TILES_MOST * HK_CU_TILE_ROWS;
       work /= 2)
    k->back_rows *= 2;
  snprintf(k->name + length, sizeof k->name - length, "; gradient: %s %s", has_grad(d) ? "grad or back" : "back",
           variant);
  return s;
}

/* Units of each way to compute the gradient; y lies as dy. */
static void set_grad_first(const hk_causal_desc *d, hk_cu_causal_call *c) {
  const int round = GRAD_ROUND * vector_of(d);
  hk_cu_causal_set_units(c, GRAD_ROUNDS * round, hk_max64(c->length + vector_of(d) - 1 - round, 1), 2);
  c->by_groups = hk_cu_divisor_make(c->c);
}
static void set_grad_last(const hk_cu_causal *k, int width, hk_cu_causal_call *c) {
  hk_cu_causal_set_units(c, k->grad_tokens, c->length, 1);
  c->groups = c->c >> width, c->by_groups = hk_cu_divisor_make(c->groups);
}

size_t hk_cu_causal_workspace(const hk_cu_causal *k, const hk_causal_desc *d) {
  hk_cu_causal_call c = k->call;
  if (!d->gradient || !d->c) return 0;
  hk_cu_causal_set_units(&c, k->back_rows, c.length + vector_of(d) - 1, 2);
  int64_t units = c.units;
  if (has_grad(d)) {
    set_grad_first(d, &c), units = hk_max64(units, c.units);
    set_grad_last(k, 0, &c), units = hk_max64(units, c.units);
  }
  return (size_t)units * (size_t)(d->window + 1) * (size_t)d->c * sizeof(float);
}

static hk_status check_workspace(const hk_cu_causal *k, const hk_causal_desc *d, const hk_causal_args *a) {
  const size_t need = hk_cu_causal_workspace(k, d);
  if (need && !a->workspace) return hk_fail(HK_INVALID, "args.workspace is NULL: the gradient needs %zu bytes", need);
  if ((uintptr_t)a->workspace % 64) return hk_fail(HK_INVALID, "args.workspace must be aligned to 64 bytes");
  if (a->workspace_bytes < need)
    return hk_fail(HK_INVALID, "args.workspace_bytes = %zu must be at least %zu", a->workspace_bytes, need);
  return HK_OK;
}

static bool fits(const hk_causal_desc *d, const void *p, const hk_cu_causal_view *s, int width) {
  return !p || ((uintptr_t)p % (hk_type_bytes(d->x_type) * (size_t)width) == 0 && s->outer % width == 0 &&
                s->time % width == 0);
}
static bool fits_all(const hk_causal_desc *d, const hk_cu_causal_call *c, int width) {
  return c->c % width == 0 && fits(d, c->x, &c->xs, width) && fits(d, c->dy, &c->ys, width) &&
         fits(d, c->dx, &c->dxs, width);
}

/* In registers where all lie alike, in tiles else. */
static hk_status run_grad(const hk_cu_causal *k, const hk_causal_desc *d, void *stream, hk_cu_causal_call *c) {
  const bool plain = has_grad(d) && !c->dstate_in && !c->dstate_out;
  place(d, k->back_rows, c);
  if (plain && c->x_way == HK_CU_TIME_VECTORS && c->y_way == c->x_way && (!c->dx || c->dx_way == c->x_way)) {
    set_grad_first(d, c);
    return launch_threads(k->grad[GRAD_FIRST], (int64_t)c->units * c->c * 32, stream, c);
  }
  if (plain && c->xs.channel == 1 && c->ys.channel == 1 && (!c->dx || c->dxs.channel == 1)) {
    int width = 0;
    while (width + 1 < grad_widths(d) && fits_all(d, c, 2 << width)) ++width;
    set_grad_last(k, width, c);
    c->f_access = HK_CU_SCALAR;
    return launch_threads(k->grad[width], (int64_t)c->units * c->groups, stream, c);
  }
  return launch(k->back, back_bytes(d), stream, c);
}

hk_status hk_cu_causal_grad(const hk_cu_causal *k, const hk_causal_desc *d, const hk_causal_args *a,
                            const hk_causal_grads *g) {
  hk_cu_causal_call c = k->call;
  hk_status s = check_workspace(k, d, a);
  if (s || !c.c) return s;
  hk_cu_causal_set_args(d, a, &c);
  c.dy = g->dy, c.dx = g->dx, c.df = g->df, c.dbias = g->dbias, c.partial = a->workspace;
  c.dstate_out = g->dstate_out, c.dstate_in = g->dstate_in, c.dxs = hk_cu_causal_view_of(g->dx_at, d, false);
  c.halo = back_halo(d), c.after = c.halo;
  s = run_grad(k, d, a->stream, &c);
  const int64_t threads = (int64_t)c.c * (c.window + 1);
  if (s || (!g->df && !g->dbias)) return s;
  if (threads > INT32_MAX - HK_CU_CAUSAL_THREADS)
    return hk_fail(HK_UNSUPPORTED, "c * (window+1) is too large for one launch: split the channels");
  return hk_cu_kernel_run(k->sum, hk_ceil_div(threads, HK_CU_CAUSAL_THREADS), HK_CU_CAUSAL_THREADS, 1, 0, a->stream,
                          &c);
}
