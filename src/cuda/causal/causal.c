/* Host side of the causal depthwise Conv1D: chooses the kernel of a description, and maps its threads to the problem
 * in each call, where the alignment of the pointers is known. */
#include "cuda/causal/causal.h"

#include <stdio.h>
#include <string.h>

enum { STEP_MOST = 8, RUN = 8, SEGMENT_BYTES = 512 }; /* tokens of a step; outputs per round in general.cu; first.cuh */

hk_cu_causal_view hk_cu_causal_view_of(hk_causal_strides s, const hk_causal_desc *d, bool state) {
  /* A stride that is never used may be anything: 1 makes a single channel or token contiguous. */
  const int64_t tokens = state ? d->state_length : d->length;
  return (hk_cu_causal_view){d->packing == HK_CAUSAL_OFFSETS && !state ? 0 : s.outer, d->c == 1 ? 1 : s.channel,
                             tokens == 1 ? 1 : s.time};
}

static bool is_full(const hk_causal_desc *d) {
  return d->y_type != d->x_type || (d->act != HK_ACT_NONE && d->act != HK_ACT_SILU) || d->has_pre || d->has_post ||
         d->has_residual || d->packing == HK_CAUSAL_IDS;
}
static bool is_alike(const hk_causal_desc *d) {
  return d->f_type == d->x_type && d->y_type == d->x_type && (!d->state_length || d->state_type == d->x_type);
}

/* Whether every row of tokens of x lies to vectors of `width` elements as that of y does, if their first ones do. */
static bool alike(const hk_cu_causal_call *c, int width) {
  return (c->xs.channel - c->ys.channel) % width == 0 && (c->xs.outer - c->ys.outer) % width == 0;
}

static hk_cu_causal_kind choose(const hk_causal_desc *d, const hk_cu_causal_call *c) {
  const int64_t longest = d->packing == HK_CAUSAL_OFFSETS ? d->longest : d->length;
  const bool tiles = d->dilation == 1 && d->packing != HK_CAUSAL_IDS && longest > STEP_MOST;
  const int vector = 16 / (int)hk_type_bytes(d->x_type);
  if (d->window < 2 || d->window > 8 || d->dilation != 1) return tiles ? HK_CU_CAUSAL_WIDE : HK_CU_CAUSAL_GENERAL;
  const bool last = c->xs.channel == 1 && c->ys.channel == 1 && (!d->has_pre || c->pres.channel == 1) &&
                    (!d->has_post || c->posts.channel == 1) && (!d->has_residual || c->residuals.channel == 1);
  const bool first = c->xs.time == 1 && c->ys.time == 1;
  if (longest <= STEP_MOST && d->packing != HK_CAUSAL_IDS)
    return d->window <= 4 ? HK_CU_CAUSAL_STEP : HK_CU_CAUSAL_GENERAL;
  if (first && tiles && !alike(c, vector)) return HK_CU_CAUSAL_WIDE;
  return first ? HK_CU_CAUSAL_FIRST : last ? HK_CU_CAUSAL_LAST : tiles ? HK_CU_CAUSAL_WIDE : HK_CU_CAUSAL_GENERAL;
}

static void fill(hk_cu_causal_call *c, const hk_causal_desc *d) {
  memset(c, 0, sizeof *c);
  c->xs = hk_cu_causal_view_of(d->x, d, false), c->ys = hk_cu_causal_view_of(d->y, d, false);
  c->pres = hk_cu_causal_view_of(d->pre, d, false), c->posts = hk_cu_causal_view_of(d->post, d, false);
  c->residuals = hk_cu_causal_view_of(d->residual, d, false), c->states = hk_cu_causal_view_of(d->state, d, true);
  c->f_channel = d->f_channel, c->f_tap = d->f_tap, c->skip = d->skip, c->has_skip = d->has_skip != 0;
  c->n = (int)d->n, c->c = (int)d->c, c->length = (int)d->length, c->window = (int)d->window;
  c->dilation = (int)d->dilation, c->state_length = (int)d->state_length, c->ring = d->ring != 0;
  c->f_type = (int)d->f_type, c->y_type = (int)d->y_type, c->state_type = (int)d->state_type;
  c->packing = (int)d->packing, c->act = (int)d->act, c->a = d->a, c->b = d->b;
  if (d->act == HK_ACT_HARDTANH && d->a == 0 && d->b == 0) c->a = -1, c->b = 1;
}

static hk_status check_sizes(const hk_causal_desc *d) {
  const int64_t most = INT32_MAX / 2;
  const struct {
    const char *name;
    int64_t value;
  } all[] = {{"n", d->n},
             {"c", d->c},
             {"length", d->length},
             {"state_length", d->state_length},
             {"dilation*(window-1)", d->dilation * (d->window - 1)}};
  for (int i = 0; i < HK_COUNT(all); ++i)
    if (all[i].value > most)
      return hk_fail(HK_UNSUPPORTED, "desc.%s = %lld: CUDA supports at most %lld", all[i].name, (long long)all[i].value,
                     (long long)most);
  if (d->in_place) return hk_fail(HK_UNSUPPORTED, "desc.in_place is not supported on CUDA: give y memory of its own");
  if (d->gradient && d->dilation != 1)
    return hk_fail(HK_UNSUPPORTED, "desc.gradient on CUDA supports dilation 1, it is %lld", (long long)d->dilation);
  if (d->gradient && d->packing == HK_CAUSAL_IDS)
    return hk_fail(HK_UNSUPPORTED, "desc.gradient on CUDA does not support packing by ids: pack by offsets");
  return HK_OK;
}

/* Vectors per lane of a segment of first.cuh. Where rows of y are not aligned alike, 2: the ends that stick out of the
 * last whole segment go to it. */
static int vectors_of(const hk_cu_causal *k, const hk_causal_desc *d) {
  const int vector = 16 / (int)hk_type_bytes(d->x_type);
  if (k->call.ys.channel % vector || k->call.ys.outer % vector) return 2;
  const int64_t longest = d->packing == HK_CAUSAL_OFFSETS ? d->longest : d->length;
  return is_full(d) || d->window > 4 || longest * (int64_t)hk_type_bytes(d->x_type) < 4 * SEGMENT_BYTES ? 2 : 4;
}

hk_status hk_cu_causal_find(const char *family, hk_type type, const char *variant, int shared_bytes,
                            hk_cu_kernel *kernel) {
  char image[48], name[64];
  const char *t = type == HK_F32 ? "f32" : type == HK_F16 ? "f16" : "bf16";
  snprintf(image, sizeof image, "causal_%s_%s", family, t);
  snprintf(name, sizeof name, "hk_causal_%s_%s_%s", family, t, variant);
  return hk_cu_kernel_find(image, name, shared_bytes, kernel);
}

static hk_status find_all(hk_cu_causal *k, const hk_causal_desc *d) {
  const int w = (int)d->window, most = (d->x_type == HK_F32 ? 3 : 4) - (w > 4);
  const char *full = is_full(d) ? "_full" : "", *mixed = is_alike(d) ? "" : "_mixed";
  char variant[32];
  hk_status s = HK_OK;
  if (k->kind == HK_CU_CAUSAL_GENERAL) return hk_cu_causal_find("general", d->x_type, "any", 0, &k->kernel[0]);
  if (k->kind == HK_CU_CAUSAL_WIDE) return hk_cu_causal_find_wide(k, d);
  k->widths = k->kind == HK_CU_CAUSAL_LAST ? most : k->kind == HK_CU_CAUSAL_FIRST ? 1 : is_alike(d) ? 3 : 2;
  for (int i = 0; i < k->widths && !s; ++i) {
    if (k->kind == HK_CU_CAUSAL_LAST) snprintf(variant, sizeof variant, "%dx%d%s", w, 1 << i, full);
    else if (k->kind == HK_CU_CAUSAL_STEP) snprintf(variant, sizeof variant, "%dx%d%s", w, 1 << i, mixed);
    else snprintf(variant, sizeof variant, "%dx%d%s", w, vectors_of(k, d), full);
    s = hk_cu_causal_find(k->kind == HK_CU_CAUSAL_LAST   ? "last"
                          : k->kind == HK_CU_CAUSAL_STEP ? "step"
                                                         : "first",
                          d->x_type, variant, 0, &k->kernel[i]);
  }
  return s;
}

hk_status hk_cu_causal_make(hk_cu_causal *k, const hk_causal_desc *d) {
  static const char *const names[] = {"general", "wide", "last", "first", "step"};
  hk_cu_device here;
  char why[HK_CU_REASON];
  memset(k, 0, sizeof *k);
  hk_status s = check_sizes(d);
  if (!s) s = hk_cu_here(&here);
  if (s) return s;
  if (!hk_cu_has_code(&here, why)) return hk_fail(HK_UNSUPPORTED, "device: %s", why);
  k->processors = here.processors;
  fill(&k->call, d);
  k->kind = choose(d, &k->call);
  if (k->kind == HK_CU_CAUSAL_FIRST) k->call.chunk = SEGMENT_BYTES / (int)hk_type_bytes(d->x_type) * vectors_of(k, d);
  snprintf(k->name, sizeof k->name, "cuda %s w%d", names[k->kind], (int)d->window);
  s = find_all(k, d);
  return s || !d->gradient ? s : hk_cu_causal_find_back(k, d);
}

void hk_cu_causal_print(const hk_cu_causal *k, char *buffer, size_t size) { snprintf(buffer, size, "%s", k->name); }

static bool fits(const void *p, size_t bytes, int64_t a, int64_t b, int width) {
  const size_t vector = bytes * (size_t)width;
  return (uintptr_t)p % (vector < 16 ? vector : 16) == 0 && a % width == 0 && b % width == 0;
}

/* Whether each thread can read `width` channels of all tensors of a call at once. */
static bool takes(const hk_causal_desc *d, const hk_cu_causal_call *c, int width) {
  const size_t x = hk_type_bytes(d->x_type), y = hk_type_bytes(d->y_type);
  return c->c % width == 0 && fits(c->x, x, c->xs.outer, c->xs.time, width) &&
         fits(c->y, y, c->ys.outer, c->ys.time, width) &&
         (!c->pre || fits(c->pre, x, c->pres.outer, c->pres.time, width)) &&
         (!c->post || fits(c->post, x, c->posts.outer, c->posts.time, width)) &&
         (!c->residual || fits(c->residual, x, c->residuals.outer, c->residuals.time, width));
}

static void set_access(const hk_causal_desc *d, hk_cu_causal_call *c, int width) {
  const size_t f = hk_type_bytes(d->f_type), state = hk_type_bytes(d->state_type);
  const bool run = c->f_tap == 1 && c->f_channel == c->window;
  c->f_access = !fits(c->f, f, 0, 0, width)                  ? HK_CU_SCALAR
                : run                                        ? HK_CU_RUN
                : c->f_channel == 1 && c->f_tap % width == 0 ? HK_CU_VECTOR
                                                             : HK_CU_SCALAR;
  const hk_cu_causal_view s = c->states;
  const bool aligned = fits(c->state_in, state, s.outer, 0, width) && fits(c->state_out, state, s.outer, 0, width);
  c->state_access = !aligned                                      ? HK_CU_SCALAR
                    : s.time == 1 && s.channel == c->state_length ? HK_CU_RUN
                    : s.channel == 1 && s.time % width == 0       ? HK_CU_VECTOR
                                                                  : HK_CU_SCALAR;
  c->x_access = c->xs.channel == 1 && fits(c->x, hk_type_bytes(d->x_type), c->xs.outer, c->xs.time, width);
  c->y_access = c->ys.channel == 1 && fits(c->y, hk_type_bytes(d->y_type), c->ys.outer, c->ys.time, width);
}

void hk_cu_causal_set_args(const hk_causal_desc *d, const hk_causal_args *a, hk_cu_causal_call *c) {
  c->x = a->x, c->f = a->f, c->y = a->y;
  c->bias = d->has_bias ? a->bias : NULL;
  c->pre = d->has_pre ? a->pre : NULL;
  c->post = d->has_post ? a->post : NULL;
  c->residual = d->has_residual ? a->residual : NULL;
  c->state_in = d->state_length ? a->state_in : NULL, c->state_out = d->state_length ? a->state_out : NULL;
  c->slots_in = a->slots_in, c->slots_out = a->slots_out, c->has_state = a->has_state;
  c->positions = a->positions, c->accepted = a->accepted, c->offsets = a->offsets, c->ids = a->ids;
}

void hk_cu_causal_set_units(hk_cu_causal_call *c, int64_t chunk, int64_t tokens, int spare) {
  c->chunk = (int)chunk, c->spare = spare;
  c->chunks = (int)hk_max64(hk_ceil_div(tokens, chunk), 1);
  c->units = c->packing == HK_CU_OFFSETS ? (int)(c->length / chunk) + spare * c->n : c->n * c->chunks;
  c->by_chunks = hk_cu_divisor_make(c->chunks), c->by_units = hk_cu_divisor_make(hk_max64(c->units, 1));
}

/* Tokens per thread where a thread walks along time: as many as leave the device about two full waves of threads, at
 * most 64; each unit reads window-1 tokens again. */
static int64_t walk_tokens(const hk_cu_causal *k, const hk_cu_causal_call *c) {
  const int64_t tokens = (int64_t)(c->packing == HK_CU_OFFSETS ? 1 : c->n) * c->length * c->groups;
  return hk_max64(8, hk_min64(64, tokens / ((int64_t)k->processors * 1024) / 4 * 4));
}

static hk_status launch(const hk_cu_causal *k, int width, int64_t threads, void *stream, hk_cu_causal_call *c) {
  if (threads > INT32_MAX - HK_CU_CAUSAL_THREADS)
    return hk_fail(HK_UNSUPPORTED, "n * c * length is too large for one launch: split the sequences or channels");
  return hk_cu_kernel_run(k->kernel[width], hk_ceil_div(threads, HK_CU_CAUSAL_THREADS), HK_CU_CAUSAL_THREADS, 1, 0,
                          stream, c);
}

static hk_status run_first(const hk_cu_causal *k, const hk_causal_desc *d, void *stream, hk_cu_causal_call *c) {
  const int vector = 16 / (int)hk_type_bytes(d->x_type);
  const bool aligned = (uintptr_t)c->y % (hk_type_bytes(d->y_type) * (size_t)vector) == 0 &&
                       c->ys.outer % vector == 0 && c->ys.channel % vector == 0;
  const int round = SEGMENT_BYTES / 16 * vector;
  /* With 2 vectors per lane the last segment of a row takes 32 vectors more. */
  const int64_t tokens = c->length + (aligned ? 0 : vector - 1) - (c->chunk == 2 * round ? round : 0);
  hk_cu_causal_set_units(c, c->chunk, hk_max64(tokens, 1), 2);
  c->by_groups = hk_cu_divisor_make(c->c);
  return launch(k, 0, (int64_t)c->units * c->c * 32, stream, c);
}

hk_status hk_cu_causal_run(const hk_cu_causal *k, const hk_causal_desc *d, const hk_causal_args *a) {
  hk_cu_causal_call c = k->call;
  int width = 0;
  if (!c.n || !c.c) return HK_OK;
  hk_cu_causal_set_args(d, a, &c);
  if (k->kind == HK_CU_CAUSAL_FIRST) return run_first(k, d, a->stream, &c);
  if (k->kind == HK_CU_CAUSAL_WIDE) return hk_cu_causal_run_wide(k, d, a->stream, &c);
  if (k->kind == HK_CU_CAUSAL_LAST)
    while (width + 1 < k->widths && takes(d, &c, 2 << width)) ++width;
  if (k->kind == HK_CU_CAUSAL_STEP)
    while (width + 1 < k->widths && c.c % (2 << width) == 0) ++width;
  c.groups = c.c >> width;
  c.by_groups = hk_cu_divisor_make(c.groups);
  set_access(d, &c, 1 << width);
  if (k->kind == HK_CU_CAUSAL_STEP) return launch(k, width, (int64_t)c.n * c.groups, a->stream, &c);
  int64_t chunk = walk_tokens(k, &c);
  if (k->kind == HK_CU_CAUSAL_GENERAL) { /* whole rounds, and all of the history within the first unit */
    const int64_t round = (int64_t)RUN * c.dilation;
    chunk = hk_ceil_div(hk_max64(chunk, (int64_t)c.dilation * (c.window - 1)), round) * round;
  }
  hk_cu_causal_set_units(&c, chunk, c.length, 1);
  return launch(k, width, (int64_t)c.units * c.groups, a->stream, &c);
}
