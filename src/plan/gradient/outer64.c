/* outer64: gradients of filters in f64, by the tiles of dgemm: MR channels n of x by NR output channels k, summed over
 * the images and positions of the window. x is read in place, whatever its strides; f is packed, a box of positions of
 * one panel of NR channels at a time. Boxes are outer's and are summed in their order, so the bits depend on the knob
 * `block` alone. Any rank, stride, padding, dilation, groups and layout; refuses input dilation, gates and state.
 * Sums of a chunk: [tile of n][position of y][MR][NR]; packed f: [line][position][NR], zeros beyond the last k. */
#include <string.h>

#include "cost/cost.h"
#include "plan/dense/tiles.h"
#include "plan/depthwise/depthwise.h"
#include "plan/gradient/outer.h"

#define MAX_POINTS 4 /* positions of y per position of the window, at most */

enum { BLOCK, BR }; /* knobs: positions of a box, channels n of a chunk */

typedef struct shape {
  hk_outer_boxes boxes;
  int64_t panels, chunk, chunks, jobs, slots; /* chunk: tiles of n */
  int64_t f_doubles, sums_doubles;            /* of a slot */
} shape;

static shape shape_make(const hk_task *t, const hk_decision *d) {
  const hk_geom *g = &t->geom;
  const int64_t mr = d->kernel->mr, nr = d->kernel->nr, tiles = hk_ceil_div(g->n, mr);
  shape s = {.boxes = hk_outer_boxes_make(g, d->knob[BLOCK]), .panels = hk_ceil_div(g->k, nr)};
  s.chunk = hk_min64(tiles, hk_ceil_div(d->knob[BR], mr));
  s.chunks = hk_ceil_div(tiles, s.chunk);
  s.jobs = g->groups * s.panels * s.chunks;
  s.slots = hk_min64(t->threads, s.jobs);
  s.f_doubles = hk_round_up(s.boxes.size[0] * s.boxes.size[1] * s.boxes.size[2] * s.boxes.size[3] * nr, 8);
  s.sums_doubles = hk_round_up(s.chunk * g->pixels * mr * nr, 8);
  return s;
}

static bool supported(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (g->x_type != HK_F64 || g->f_type != HK_F64) no = "x and f must be f64";
  else if (t->epi.e.gate) no = "a gate needs both halves of a channel pair in one tile";
  else if (t->options.stateful) no = "options.stateful must be 0";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0) no = "x, f or y is empty";
  else if (g->taps * MAX_POINTS < g->pixels) no = "y has more than 4 positions per position of the window";
  else if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) no = "input dilation must be 1";
  return !no || hk_refuse(why, no);
}

static bool finish(const hk_task *t, hk_decision *d) {
  const hk_geom *g = &t->geom;
  const shape s = shape_make(t, d);
  const double nr = (double)d->kernel->nr, tiles = (double)hk_ceil_div(g->n, d->kernel->mr);
  const double panels = (double)(g->groups * s.panels),
               lines = (double)(g->c * g->win[0] * g->win[1] * s.boxes.parts[3]);
  const hk_work w = {.products = 2.0 * panels * tiles * d->kernel->mr * nr * (double)g->gk * (double)g->pixels /
                                 hk_cost_peak(d->kernel->isa),
                     .cycles =
                         panels * (tiles * (double)g->pixels * lines * 20.0 + 2.0 * nr * (double)(g->gk * s.chunks)),
                     .rows = 4 * (double)g->gm * panels,
                     .values = 40 * (double)g->gm * (double)g->y_channels};
  d->workspace_bytes = (size_t)s.slots * (size_t)(s.f_doubles + s.sums_doubles) * sizeof(double);
  d->predicted_s = hk_cost_seconds(&hk_cost_here()->dgemm, &w, s.jobs, t->threads);
  return true;
}

/* A panel of a box in an eighth of L2; chunks so that every thread has a job. */
static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!supported(t, why)) return false;
  const int64_t tiles = hk_ceil_div(g->n, d->kernel->mr), base = g->groups * hk_ceil_div(g->k, d->kernel->nr);
  d->knob[BLOCK] = hk_max64(64, hk_cost_l2() / 8 / (16 * (int64_t)sizeof(double)));
  d->knob[BR] = hk_ceil_div(tiles, hk_outer_chunks(base, tiles, t->threads)) * d->kernel->mr;
  return finish(t, d);
}

static bool check(const hk_task *t, hk_decision *d, char *why) { return supported(t, why) && finish(t, d); }

static hk_status build(hk_plan *plan) { return plan->task.f_now ? hk_plan_copy_weights(plan) : HK_OK; }

/* What a job computes, and its room. */
typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  shape s;
  int64_t group, k, first, tiles; /* output channels from k on; tiles of n */
  double *f, *sums;
} job;

static void pack(const job *j, const hk_outer_box *b) {
  const hk_geom *g = &j->plan->task.geom;
  const int64_t nr = j->plan->decision.kernel->nr, count = hk_min64(nr, g->k - j->k);
  const double *f = (const double *)(const void *)j->call->f + j->group * g->f.group + j->k * g->f.outer;
  double *to = j->f;
  for (int64_t c = b->from[0]; c < b->to[0]; c++)
    for (int64_t s0 = b->from[1]; s0 < b->to[1]; s0++)
      for (int64_t s1 = b->from[2]; s1 < b->to[2]; s1++)
        for (int64_t s2 = b->from[3]; s2 < b->to[3]; s2++, to += nr) {
          const double *from = f + c * g->f.channel + s0 * g->f.at[0] + s1 * g->f.at[1] + s2 * g->f.at[2];
          for (int64_t i = 0; i < nr; i++) to[i] = i < count ? from[i * g->f.outer] : 0;
        }
}

/* One position of y and one tile of n: the lines of the box that lie in x. */
static void run_lines(const job *j, const hk_outer_box *b, const int64_t p[3], int64_t n, double *sums) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_kernel *kernel = j->plan->decision.kernel;
  const double *row[16], *x = (const double *)(const void *)j->call->x + j->group * g->x.group + n * g->x.outer;
  int64_t from, to;
  hk_outer_positions(g, p[2], b->from[3], b->to[3], &from, &to);
  if (from >= to) return;
  hk_dgemm_args a = {.row = row, .out = sums, .segments = 1, .channels = to - from, .accumulate = 1};
  a.step = g->dil[2] * g->x.at[2];
  const double *f = j->f + (from - b->from[3]) * kernel->nr;
  for (int64_t c = b->from[0]; c < b->to[0]; c++)
    for (int64_t s0 = b->from[1]; s0 < b->to[1]; s0++)
      for (int64_t s1 = b->from[2]; s1 < b->to[2]; s1++, f += (b->to[3] - b->from[3]) * kernel->nr) {
        const int64_t i0 = hk_geom_source(g, 0, p[0], s0), i1 = hk_geom_source(g, 1, p[1], s1);
        if (i0 < 0 || i0 >= g->in[0] || i1 < 0 || i1 >= g->in[1]) continue;
        const double *line =
            x + c * g->x.channel + i0 * g->x.at[0] + i1 * g->x.at[1] + hk_geom_source(g, 2, p[2], from) * g->x.at[2];
        for (int64_t m = 0; m < kernel->mr; m++) row[m] = n + m < g->n ? line + m * g->x.outer : NULL;
        a.f = f;
        kernel->fn(&a);
      }
}

static void store(const job *j) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_kernel *kernel = j->plan->decision.kernel;
  const hk_epilogue *e = &j->plan->task.epi.e;
  const double *scale = j->call->scale, *bias = j->call->bias;
  const int64_t k = j->group * g->k + j->k, count = hk_min64(kernel->nr, g->k - j->k);
  for (int64_t i = 0; i < j->tiles * g->pixels * kernel->mr; i++) {
    const int64_t m = i % kernel->mr, pixel = i / kernel->mr % g->pixels, tile = i / kernel->mr / g->pixels;
    hk_pixel at = hk_pixel_of(g, pixel);
    double *v = j->sums + i * kernel->nr;
    at.n = (j->first + tile) * kernel->mr + m;
    if (at.n >= g->n) continue;
    for (int64_t l = 0; l < count; l++) {
      if (e->scale) v[l] *= scale[e->scale == 2 ? k + l : 0];
      if (e->bias) v[l] += bias[k + l];
    }
    const hk_at where = hk_pixel_at(g, &at, k);
    hk_tiles_finish(j->plan, j->call, &where, count, v);
  }
}

static void run_job(const job *j) {
  const hk_geom *g = &j->plan->task.geom;
  const int64_t mr = j->plan->decision.kernel->mr, size = mr * j->plan->decision.kernel->nr;
  memset(j->sums, 0, (size_t)(j->tiles * g->pixels * size) * sizeof *j->sums);
  for (int64_t i = 0; i < j->s.boxes.count; i++) {
    const hk_outer_box b = hk_outer_box_get(g, &j->s.boxes, i);
    pack(j, &b);
    for (int64_t t = 0; t < j->tiles * g->pixels; t++) {
      const hk_pixel at = hk_pixel_of(g, t % g->pixels);
      run_lines(j, &b, at.p, (j->first + t / g->pixels) * mr, j->sums + t * size);
    }
  }
  store(j);
}

static void body(void *context, int64_t slot) {
  job j = *(const job *)context;
  const hk_geom *g = &j.plan->task.geom;
  const int64_t all = hk_ceil_div(g->n, j.plan->decision.kernel->mr);
  int64_t from, to;
  j.f = (double *)(void *)j.call->workspace + slot * (j.s.f_doubles + j.s.sums_doubles);
  j.sums = j.f + j.s.f_doubles;
  for (hk_piece(j.s.jobs, slot, j.s.slots, &from, &to); from < to; from++) {
    j.first = from % j.s.chunks * j.s.chunk;
    j.tiles = hk_min64(j.s.chunk, all - j.first);
    j.k = from / j.s.chunks % j.s.panels * j.plan->decision.kernel->nr;
    j.group = from / j.s.chunks / j.s.panels;
    run_job(&j);
  }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  job j = {.plan = plan, .call = call, .s = shape_make(&plan->task, &plan->decision)};
  hk_plan_parallel(plan, j.s.slots, body, &j);
  return HK_OK;
}

const hk_algo hk_algo_outer64 = {.name = "outer64",
                                 .summary = "gradients of filters in f64: dgemm's tiles over pixels",
                                 .knobs = {HK_KNOB("block", 1, HK_KNOB_MOST), HK_KNOB("br", 1, HK_KNOB_MOST)},
                                 .family = HK_FAMILY_DGEMM,
                                 .device = HK_CPU,
                                 .skips_padding = true,
                                 .offer = offer,
                                 .check = check,
                                 .build = build,
                                 .run = run};
