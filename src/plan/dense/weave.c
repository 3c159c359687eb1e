/* weave: dense convolution of few channels (channels-last), several pixels per vector. Where igemm would leave most
 * lanes of a vector empty, a vector here holds the outputs of as many neighbouring pixels as fit; each input channel is
 * spread over the lanes that need it by a permutation. Lines are read in place, through masks at their ends; no
 * workspace. Any window of at most 64 rows, stride, padding, filter dilation. Refuses groups, input dilation, channels
 * of x or y that are not adjacent or pixels that are not, epilogues a kernel does not finish, and weights that come at
 * execute. */

#include <stdio.h>

#include "cost/cost.h"
#include "plan/dense/dense.h"

#define MOST_ROWS 64 /* window rows */
/* knobs, all derived: whether an image is one line; pieces of the lines; pieces of a line */
enum { FLAT, SHARDS, PARTS };

typedef struct own {
  hk_fuse fuse;
  int64_t pixels;                 /* of a vector */
  int64_t lines, width, out;      /* output lines; pixels of a line of x and of y */
  int64_t vectors, parts, shards; /* of a line; knobs */
  bool flat;                      /* knob */
  const int32_t *index;           /* [channel][lane], behind this struct */
} own;

static bool in_line(const hk_strides *s, const int64_t size[3], int64_t channels) {
  int64_t step = channels;
  for (int d = 2; d >= 0; step *= size[d], d--)
    if (size[d] > 1 && s->at[d] != step) return false;
  return true;
}

static bool is_flat(const hk_task *t) {
  const hk_geom *g = &t->geom;
  for (int d = 0; d < 3; d++)
    if (g->stride[d] != 1 || g->lo[d] || g->in[d] != g->out[d]) return false;
  return g->taps == 1 && in_line(&g->x, g->in, g->c) && in_line(&g->y, g->out, g->k) &&
         (!t->epi.e.residual || in_line(&t->epi.c, g->out, g->k));
}

/* Pixels whose outputs, and whose inputs under one tap, fit a vector. */
static int64_t pixels_of(const hk_geom *g, int64_t lanes) {
  return hk_min64(lanes / g->k, (lanes / g->c - 1) / g->stride[2] + 1);
}

static bool adjacent(const hk_strides *s, int64_t channels, int64_t pixels) {
  return (channels == 1 || s->channel == 1) && (pixels == 1 || s->at[2] == channels);
}

static bool applies(const hk_task *t, const hk_kernel *k, char *why) {
  const hk_geom *g = &t->geom;
  const int64_t lanes = hk_isa_lanes(k->isa);
  const char *no = NULL;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) no = "x and f must be f32";
  else if (k->isa > t->isa) no = "the ISA of the kernel is above the cap";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "x, f or y is empty";
  else if (g->groups > 1) no = "there are groups";
  else if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) no = "there is input dilation";
  else if (2 * g->k > lanes || g->c > lanes || pixels_of(g, lanes) < 2) no = "a vector does not hold two pixels";
  else if (!adjacent(&g->x, g->c, g->in[2]) || !adjacent(&g->y, g->k, g->out[2]))
    no = "channels or pixels are not adjacent";
  else if (t->epi.e.residual && !adjacent(&t->epi.c, g->k, g->out[2]))
    no = "the residual's channels or pixels are not adjacent";
  else if (!hk_fuse_make(t, true).all) no = "the kernel does not finish this epilogue";
  else if (!t->f_now) no = "the weights must be known at creation";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (g->win[0] * g->win[1] > MOST_ROWS) no = "the window has more than 64 rows";
  return !no || hk_refuse(why, no);
}

/* Pixels of a line, lines, and vectors of a line. */
static int64_t line_of(const hk_geom *g, bool flat) { return flat ? g->pixels : g->out[2]; }
static int64_t lines_of(const hk_geom *g, bool flat) { return g->gm / line_of(g, flat); }
static int64_t vectors_of(const hk_geom *g, const hk_kernel *k, bool flat) {
  return hk_ceil_div(line_of(g, flat), pixels_of(g, hk_isa_lanes(k->isa)));
}

/* A batch-invariant decision serves any number of threads. */
static int64_t jobs_wanted(const hk_task *t) {
  if (t->options.batch_invariant) return 16;
  return t->threads == 1 && !t->options.parallel_for ? 1 : 8 * (int64_t)t->threads;
}

static void derive(const hk_task *t, hk_decision *d) {
  const int64_t jobs = jobs_wanted(t);
  int64_t *k = d->knob;
  if (k[FLAT] < 0) k[FLAT] = is_flat(t);
  if (k[SHARDS] < 0) k[SHARDS] = hk_min64(hk_min64(lines_of(&t->geom, k[FLAT]), jobs), HK_THREAD_PIECES);
  if (k[PARTS] < 0) k[PARTS] = hk_max64(1, hk_min64(jobs / k[SHARDS], vectors_of(&t->geom, d->kernel, k[FLAT]) / 16));
}

static bool derived_fit(const hk_task *t, const hk_decision *d, char *why) {
  const int64_t *k = d->knob, lines = lines_of(&t->geom, k[FLAT]), vectors = vectors_of(&t->geom, d->kernel, k[FLAT]);
  if (k[FLAT] && !is_flat(t)) return hk_refuse(why, "flat = 1 needs one tap, stride 1, no padding, images of one line");
  if (k[SHARDS] <= lines && k[PARTS] <= vectors) return true;
  snprintf(why, HK_REASON, "needs shards <= %lld lines and parts <= %lld vectors of a line", (long long)lines,
           (long long)vectors);
  return false;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!applies(t, d->kernel, why)) return false;
  derive(t, d);
  if (!derived_fit(t, d, why)) return false;
  const int64_t lanes = hk_isa_lanes(d->kernel->isa), pixels = pixels_of(g, lanes);
  const double out = (double)line_of(g, d->knob[FLAT]);
  const double lines = (double)g->gm / out, vectors = (double)hk_ceil_div((int64_t)out, pixels);
  /* a product and its permutation: 1.6 cycles of 3.7e9 a second on Zen 4 (3, 5 and 8 channels of 28 x 28) */
  const double each = hk_cost_flops(d->kernel->isa) > 32 ? 0.7 : 1.15;
  const double cycles = lines * (vectors * (3 + (double)g->taps * (1.2 + each * (double)g->c)) + 20 +
                                 6.0 * (double)(g->win[0] * g->win[1]));
  const hk_work w = {.cycles = cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  d->predicted_s = hk_cost_seconds(&hk_cost_here()->weave, &w, (int64_t)lines, t->threads);
  d->workspace_bytes = 0;
  return true;
}

/* f[s][window row][c][lane] */
static void pack(const hk_geom *g, int64_t lanes, int64_t pixels, const float *f, float *to) {
  for (int64_t s = 0; s < g->win[2]; s++)
    for (int64_t row = 0; row < g->win[0] * g->win[1]; row++)
      for (int64_t c = 0; c < g->c; c++)
        for (int64_t l = 0; l < lanes; l++) {
          const int64_t at = row / g->win[1] * g->f.at[0] + row % g->win[1] * g->f.at[1] + s * g->f.at[2];
          *to++ = l < pixels * g->k ? f[at + c * g->f.channel + l % g->k * g->f.outer] : 0.0f;
        }
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  const hk_geom *g = &t->geom;
  const int64_t lanes = hk_isa_lanes(plan->decision.kernel->isa);
  own *o = hk_alloc_zero(sizeof *o + (size_t)(g->c * lanes) * sizeof(int32_t));
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  plan->own = o;
  int32_t *index = (int32_t *)(void *)(o + 1);
  o->index = index;
  o->fuse = hk_fuse_make(t, true);
  o->pixels = pixels_of(g, lanes);
  o->flat = plan->decision.knob[FLAT];
  o->out = line_of(g, o->flat);
  o->width = o->flat ? g->pixels : g->in[2];
  o->lines = lines_of(g, o->flat);
  o->vectors = vectors_of(g, plan->decision.kernel, o->flat);
  o->shards = plan->decision.knob[SHARDS];
  o->parts = plan->decision.knob[PARTS];
  for (int64_t c = 0; c < g->c; c++)
    for (int64_t l = 0; l < lanes; l++)
      index[c * lanes + l] = l < o->pixels * g->k ? (int32_t)(l / g->k * g->stride[2] * g->c + c) : 0;
  float *to;
  const hk_status s = hk_plan_pack_room(plan, g->gk * lanes, sizeof *to, &o->pixels, 1, &to);
  if (to) pack(g, lanes, o->pixels, plan->raw_f, to);
  return s;
}

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
} job;

/* The lines of x under output line p of image n, for the window rows that lie in x; returns how many. */
static int64_t window_rows(const hk_geom *g, const float *x, const int64_t p[2], const float **rows, int64_t *f_row) {
  int64_t n = 0;
  for (int64_t a = 0; a < g->win[0]; a++) {
    const int64_t i0 = hk_geom_source(g, 0, p[0], a);
    if (i0 < 0 || i0 >= g->in[0]) continue;
    for (int64_t b = 0; b < g->win[1]; b++) {
      const int64_t i1 = hk_geom_source(g, 1, p[1], b);
      if (i1 < 0 || i1 >= g->in[1]) continue;
      rows[n] = x + i0 * g->x.at[0] + i1 * g->x.at[1];
      f_row[n++] = a * g->win[1] + b;
    }
  }
  return n;
}

static void repeat(float *v, int64_t channels, int64_t count, int64_t lanes) {
  for (int64_t l = channels; l < lanes; l++) v[l] = l < count ? v[l - channels] : 0.0f;
}

static void body(void *context, int64_t i) {
  const job *j = context;
  const hk_plan *plan = j->plan;
  const own *o = plan->own;
  const hk_geom *g = &plan->task.geom;
  const hk_strides *cs = &plan->task.epi.c;
  const int64_t part = i % o->parts, shard = i / o->parts, lanes = hk_isa_lanes(plan->decision.kernel->isa);
  const float *rows[MOST_ROWS];
  int64_t f_row[MOST_ROWS];
  _Alignas(HK_ALIGN) float scale[16], bias[16];
  hk_weave_args a = {.x = rows,
                     .f_row = f_row,
                     .f = plan->packed->f,
                     .index = o->index,
                     .taps = g->win[2],
                     .channels = g->c,
                     .f_rows = g->win[0] * g->win[1],
                     .start = -g->lo[2] * g->c,
                     .tap_step = g->dil[2] * g->c,
                     .x_step = o->pixels * g->stride[2] * g->c,
                     .width = o->width * g->c,
                     .y_lanes = o->pixels * g->k,
                     .outputs = o->out * g->k,
                     .first = part * o->vectors / o->parts,
                     .end = (part + 1) * o->vectors / o->parts,
                     .flags = o->fuse.flags,
                     .beta = o->fuse.beta,
                     .lo = o->fuse.lo,
                     .hi = o->fuse.hi,
                     .scale = scale,
                     .bias = bias};
  if (a.flags & HK_IGEMM_AFFINE) {
    hk_fuse_affine(plan, j->call, 0, g->k, g->k, scale, bias);
    repeat(scale, g->k, a.y_lanes, lanes);
    repeat(bias, g->k, a.y_lanes, lanes);
  }
  const int64_t first = shard * o->lines / o->shards, end = (shard + 1) * o->lines / o->shards;
  const int64_t size0 = o->flat ? 1 : g->out[0], size1 = o->flat ? 1 : g->out[1], plane = first / size1;
  int64_t p[2] = {plane % size0, first % size1}, n = plane / size0;
  for (int64_t line = first; line < end; line++) {
    const int64_t to = n * g->y.outer + p[0] * g->y.at[0] + p[1] * g->y.at[1];
    a.y = (float *)(void *)j->call->y + to;
    if (j->call->c) a.c = (const float *)(const void *)j->call->c + n * cs->outer + p[0] * cs->at[0] + p[1] * cs->at[1];
    a.rows = window_rows(g, (const float *)(const void *)j->call->x + n * g->x.outer, p, rows, f_row);
    plan->decision.kernel->fn(&a);
    if (++p[1] < size1) continue;
    p[1] = 0;
    if (++p[0] < size0) continue;
    p[0] = 0;
    n++;
  }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const own *o = plan->own;
  job j = {plan, call};
  hk_plan_parallel(plan, o->shards * o->parts, body, &j);
  return HK_OK;
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const own *o = plan->own;
  hk_text_add(t, " pixels=%lld flat=%d lines=%lld vectors=%lld shards=%lld parts=%lld", (long long)o->pixels, o->flat,
              (long long)o->lines, (long long)o->vectors, (long long)o->shards, (long long)o->parts);
}

const hk_algo hk_algo_weave = {.name = "weave",
                               .summary = "few channels, channels-last: several pixels share a vector",
                               .knobs = {HK_KNOB_DERIVED("flat", 0, 1), HK_KNOB_DERIVED("shards", 1, HK_THREAD_PIECES),
                                         HK_KNOB_DERIVED("parts", 1, HK_THREAD_PIECES)},
                               .family = HK_FAMILY_WEAVE,
                               .device = HK_CPU,
                               .offer = offer,
                               .check = offer,
                               .build = build,
                               .run = run,
                               .destroy = destroy,
                               .trace = trace};
