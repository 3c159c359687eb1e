/* The loops of tapsum. Positions whose windows find the same taps inside x go to the kernel together, so padding is
 * neither read nor multiplied: taps that lie inside x are a range of each dimension of y. */
#include "plan/gradient/tapsum.h"

#include <string.h>

#include "plan/depthwise/depthwise.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_tapsum *o;
  float *sums;
} job;

/* Window positions from..to-1 of a dimension, all of which find outputs first..last-1 in x. */
typedef struct run {
  int64_t from, to, first, last;
} run;

static int64_t ceil_at(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : 0; }

/* The run that starts at position s of dimension d and ends at `end` at the latest. */
static run run_at(const hk_geom *g, int d, int64_t s, int64_t end) {
  run r = {s, s, 0, 0};
  for (; r.to < end; r.to++) {
    const int64_t at = hk_geom_source(g, d, 0, r.to);
    const int64_t first = hk_min64(g->out[d], ceil_at(-at, g->stride[d]));
    const int64_t last = hk_max64(first, hk_min64(g->out[d], ceil_at(g->in[d] - at, g->stride[d])));
    if (r.to > s && (first != r.first || last != r.last)) break;
    r.first = first;
    r.last = last;
  }
  return r;
}

/* What the kernel calls of one box share. */
typedef struct place {
  const job *j;
  const hk_outer_box *box;
  hk_outer_view x, f;
  int64_t group, groups; /* of the chunk */
  float *sums;
} place;

static int64_t list_lines(const place *at, const run r[3], hk_tapsum_segment *seg) {
  const hk_geom *g = &at->j->plan->task.geom;
  int64_t count = 0;
  for (int64_t c = at->box->from[0]; c < at->box->to[0]; c++)
    for (int64_t s0 = r[0].from; s0 < r[0].to; s0++)
      for (int64_t s1 = r[1].from; s1 < r[1].to; s1++)
        seg[count++] = (hk_tapsum_segment){hk_outer_at(&at->x, c, hk_geom_source(g, 0, r[0].first, s0),
                                                       hk_geom_source(g, 1, r[1].first, s1),
                                                       hk_geom_source(g, 2, r[2].first, r[2].from)),
                                           hk_outer_at(&at->f, c, s0, s1, r[2].from), r[2].to - r[2].from};
  return count;
}

/* Taps as offsets from the first. */
static int64_t list_taps(const place *at, const run r[3], hk_tapsum_tap *tap) {
  const hk_geom *g = &at->j->plan->task.geom;
  int64_t count = 0;
  for (int64_t p0 = r[0].first; p0 < r[0].last; p0++)
    for (int64_t p1 = r[1].first; p1 < r[1].last; p1++)
      for (int64_t p2 = r[2].first; p2 < r[2].last; p2++)
        tap[count++] = (hk_tapsum_tap){(p0 - r[0].first) * g->stride[0] * at->x.step[1] +
                                           (p1 - r[1].first) * g->stride[1] * at->x.step[2] +
                                           (p2 - r[2].first) * g->stride[2] * at->x.step[3],
                                       ((p0 * g->out[1] + p1) * g->out[2] + p2) * g->k * at->j->o->channels};
  return count;
}

/* Lane l of a panel reads output channel j of its group: dy[index[j*VW + l]]. */
static void make_index(const hk_geom *g, int64_t vw, int64_t lanes, int64_t j0, int64_t count, int32_t *index) {
  for (int64_t j = 0; j < count; j++)
    for (int64_t l = 0; l < vw; l++) index[j * vw + l] = (int32_t)(l < lanes ? l / g->n * g->k + j0 + j : 0);
}

enum { MOST_VECTORS = 4, MOST_LANES = 16 };

/* Moves the segments on to the next panel. */
static void shift(hk_tapsum_segment *seg, int64_t count, int64_t x, int64_t dy) {
  for (int64_t i = 0; i < count; i++) seg[i].x += x, seg[i].dy += dy;
}

static void run_panels(const place *at, hk_tapsum_args *a, hk_tapsum_segment *seg, int32_t *index) {
  const hk_tapsum *o = at->j->o;
  const hk_geom *g = &at->j->plan->task.geom;
  const hk_kernel *kernel = at->j->plan->decision.kernel;
  const int64_t vw = hk_isa_lanes(kernel->isa);
  a->seg = seg;
  for (int64_t i = 0; i < at->groups; i += o->panel) {
    const int64_t groups = hk_min64(o->panel, at->groups - i);
    float *out = at->sums + (at->group + i) * g->n;
    a->lanes = groups * g->n;
    a->dy_lanes = groups * g->k;
    if (o->depthwise) {
      a->vectors = hk_ceil_div(a->lanes, vw);
      a->out = out;
      kernel->fn(a);
    } else {
      for (int64_t j = 0; j < g->k; j += a->vectors) {
        a->vectors = hk_tile_rows(g->k - j, o->vectors);
        make_index(g, vw, a->lanes, j, a->vectors, index);
        a->out = out + j * o->channels;
        kernel->fn(a);
      }
    }
    shift(seg, a->segments, groups * g->n, groups * g->k);
  }
}

static void run_same(const place *at, const run r[3]) {
  const hk_geom *g = &at->j->plan->task.geom;
  hk_tapsum_segment seg[HK_OUTER_LINES];
  hk_tapsum_tap tap[HK_TAPSUM_TAPS];
  int32_t index[MOST_VECTORS * MOST_LANES];
  hk_tapsum_args a = {.tap = tap,
                      .index = index,
                      .taps = list_taps(at, r, tap),
                      .x_step = g->dil[2] * at->x.step[3],
                      .dy_step = at->f.step[3],
                      .out_step = at->j->o->channels,
                      .grouped = !at->j->o->depthwise};
  if (!a.taps) return;
  a.segments = list_lines(at, r, seg);
  run_panels(at, &a, seg, index);
}

static void run_box(const job *j, int64_t chunk, const hk_outer_box *b, float *sums, float *scratch) {
  const hk_tapsum *o = j->o;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t group = chunk * o->chunk, groups = hk_min64(o->chunk, g->groups - group);
  const hk_outer_channels n = {group * g->n, groups * g->n, o->x_step}, k = {group * g->k, groups * g->k, o->f_step};
  const place at = {.j = j,
                    .box = b,
                    .x = hk_outer_view_x(j->plan, b, j->call->x, n, false, o->pack_x ? scratch : NULL),
                    .f = hk_outer_view_f(j->plan, b, j->call->f, k, o->pack_f ? scratch + o->x_floats : NULL),
                    .group = group,
                    .groups = groups,
                    .sums = sums};
  run r[3];
  for (int64_t s0 = b->from[1]; s0 < b->to[1]; s0 = r[0].to) {
    r[0] = run_at(g, 0, s0, b->to[1]);
    for (int64_t s1 = b->from[2]; s1 < b->to[2]; s1 = r[1].to) {
      r[1] = run_at(g, 1, s1, b->to[2]);
      for (int64_t s2 = b->from[3]; s2 < b->to[3]; s2 = r[2].to) {
        r[2] = run_at(g, 2, s2, b->to[3]);
        run_same(&at, r);
      }
    }
  }
}

static void clear(const job *j, int64_t chunk, float *sums) {
  const hk_geom *g = &j->plan->task.geom;
  const int64_t from = chunk * j->o->chunk, groups = hk_min64(j->o->chunk, g->groups - from);
  for (int64_t i = 0; i < g->pixels * g->k; i++)
    memset(sums + i * j->o->channels + from * g->n, 0, (size_t)(groups * g->n) * sizeof *sums);
}

static void body(void *context, int64_t slot) {
  const job *j = context;
  const hk_tapsum *o = j->o;
  const hk_geom *g = &j->plan->task.geom;
  float *scratch = (float *)(void *)(j->call->workspace + o->sums_bytes + (size_t)slot * o->slot_bytes);
  int64_t from, to, first, last;
  for (hk_piece(o->jobs, slot, o->slots, &from, &to); from < to; from++) {
    const int64_t chunk = from % o->chunks, slice = from / o->chunks;
    float *sums = j->sums + slice * g->pixels * g->k * o->channels;
    clear(j, chunk, sums);
    hk_piece(o->boxes.count, slice, o->slices, &first, &last);
    for (int64_t i = first; i < last; i++) {
      const hk_outer_box b = hk_outer_box_get(g, &o->boxes, i);
      run_box(j, chunk, &b, sums, scratch);
    }
  }
}

hk_status hk_tapsum_run(const hk_plan *plan, const hk_call *call) {
  const hk_tapsum *o = plan->own;
  job j = {plan, call, o, (float *)(void *)call->workspace};
  hk_plan_parallel(plan, o->slots, body, &j);
  hk_tapsum_store(plan, call, j.sums);
  return HK_OK;
}
