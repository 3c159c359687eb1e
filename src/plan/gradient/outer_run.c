/* The loops of outer: a job is one slice of one chunk of rows and columns of one group; it visits its boxes in order. A
 * slot is a contiguous range of jobs with room for packed boxes of its own. */
#include "plan/depthwise/depthwise.h"
#include "plan/gradient/outer.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_outer *o;
  float *sums;
} job;

/* A chunk of the result: rows and columns of one group and slice. */
typedef struct chunk {
  int64_t group, slice;
  hk_outer_channels rows, columns;
} chunk;

static hk_outer_channels piece_of(int64_t index, int64_t size, int64_t all) {
  return (hk_outer_channels){index * size, hk_min64(size, all - index * size), 0};
}

/* Jobs of one slice are neighbours: they share what they read. */
static chunk chunk_get(const hk_outer *o, const hk_geom *g, int64_t index) {
  const int64_t row = index % o->row_chunks, column = index / o->row_chunks % o->column_chunks;
  const int64_t rest = index / o->row_chunks / o->column_chunks;
  return (chunk){rest % g->groups, rest / g->groups, piece_of(row, o->br, o->rows),
                 piece_of(column, o->bc, o->columns)};
}

/* Where the chunk's sums of a tap begin, and the distance of its rows; room: of the slot. */
static float *sums_at(const job *j, const chunk *c, int64_t tap, const int64_t p[3], float *room, int64_t *step) {
  const hk_outer *o = j->o;
  if (o->local) {
    *step = c->columns.count;
    return room + tap * c->rows.count * c->columns.count;
  }
  const hk_geom *g = &j->plan->task.geom;
  if (o->direct) {
    const int64_t row = o->along_k ? g->y.outer : g->y.channel;
    *step = row;
    return (float *)(void *)j->call->y + c->group * g->y.group + p[0] * g->y.at[0] + p[1] * g->y.at[1] +
           p[2] * g->y.at[2] + c->rows.first * row + c->columns.first;
  }
  *step = o->columns;
  return j->sums + (((c->slice * g->groups + c->group) * o->taps + tap) * o->rows + c->rows.first) * o->columns +
         c->columns.first;
}

static void run_tap(const job *j, const chunk *c, const hk_outer_lines *l, hk_outer_args *a) {
  const hk_kernel *kernel = j->plan->decision.kernel;
  const int64_t lanes = hk_isa_lanes(kernel->isa), most = kernel->nr / lanes;
  hk_outer_segment seg[HK_OUTER_LINES];
  const bool along_k = j->o->along_k;
  for (int64_t i = 0; i < l->count; i++)
    seg[i] = along_k ? (hk_outer_segment){l->line[i].x, l->line[i].f, l->line[i].count}
                     : (hk_outer_segment){l->line[i].f, l->line[i].x, l->line[i].count};
  a->seg = seg;
  a->segments = l->count;
  a->a_step = along_k ? l->x_step : l->f_step;
  a->b_step = along_k ? l->f_step : l->x_step;
  a->rows = c->rows.count;
  float *out = a->out;
  int64_t left = hk_ceil_div(c->columns.count, lanes);
  for (int64_t v = 0, vectors; left > 0; v += vectors, left -= vectors) {
    vectors = hk_tile_rows(left, most);
    a->vectors = vectors;
    a->columns = hk_min64(vectors * lanes, c->columns.count - v * lanes);
    a->b_at = v * lanes;
    a->out = out + v * lanes;
    kernel->fn(a);
  }
}

/* The views of a box, kept while neighbouring jobs read the same. */
typedef struct operand {
  int64_t group, box, first; /* of the channels */
  hk_outer_view v;
} operand;
typedef struct operands {
  operand x, f;
  float *room;
} operands;

static bool renew(operand *a, int64_t group, int64_t box, int64_t first) {
  if (a->group == group && a->box == box && a->first == first) return false;
  *a = (operand){group, box, first, {0}};
  return true;
}

static void run_box(const job *j, const chunk *c, int64_t box, bool first, operands *keep) {
  const hk_outer *o = j->o;
  const hk_geom *g = &j->plan->task.geom;
  const hk_outer_box at = hk_outer_box_get(g, &o->boxes, box), *b = &at;
  const int64_t xb = (int64_t)hk_type_bytes(g->x_type), fb = (int64_t)hk_type_bytes(g->f_type);
  hk_outer_channels k = o->along_k ? c->columns : c->rows, n = o->along_k ? c->rows : c->columns;
  if (o->merged) n = (hk_outer_channels){0, g->n, 0};
  k.step = g->f.outer;
  n.step = g->x.outer;
  if (renew(&keep->x, c->group, box, n.first))
    keep->x.v = hk_outer_view_x(j->plan, b, j->call->x + c->group * g->x.group * xb, n, o->merged,
                                o->pack_x ? keep->room : NULL);
  if (renew(&keep->f, c->group, box, k.first))
    keep->f.v = hk_outer_view_f(j->plan, b, j->call->f + c->group * g->f.group * fb, k,
                                o->pack_f ? keep->room + o->x_floats : NULL);
  const int64_t last = o->merged ? 1 : g->out[2];
  hk_outer_lines l;
  for (int64_t tap = 0; tap < o->taps; tap++) {
    const int64_t p[3] = {tap / last / g->out[1], tap / last % g->out[1], tap % last};
    hk_outer_args a = {.add = !first};
    hk_outer_lines_make(g, b, p, o->merged, &keep->x.v, &keep->f.v, &l);
    if (!l.count && !first) continue;
    a.out = sums_at(j, c, tap, p, keep->room + o->x_floats + o->f_floats, &a.out_step);
    run_tap(j, c, &l, &a);
  }
}

static void store_local(const job *j, const chunk *c, const float *room) {
  const hk_outer *o = j->o;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t columns = c->columns.count;
  hk_outer_sums s = {.from = room,
                     .tap_step = c->rows.count * columns,
                     .n_step = o->along_k ? columns : 1,
                     .k_step = o->along_k ? 1 : columns,
                     .group = c->group,
                     .n = o->along_k ? c->rows : c->columns,
                     .k = o->along_k ? c->columns : c->rows};
  if (o->merged) s.n = (hk_outer_channels){0, g->n, 0};
  hk_outer_store_part(j->plan, j->call, &s);
}

static void body(void *context, int64_t slot) {
  const job *j = context;
  const hk_outer *o = j->o;
  float *room = (float *)(void *)(j->call->workspace + o->sums_bytes + (size_t)slot * o->slot_bytes);
  operands keep = {{.group = -1}, {.group = -1}, room};
  int64_t from, to, first, last;
  for (hk_piece(o->jobs, slot, o->slots, &from, &to); from < to; from++) {
    const chunk c = chunk_get(o, &j->plan->task.geom, from);
    hk_piece(o->boxes.count, c.slice, o->slices, &first, &last);
    for (int64_t i = first; i < last; i++) run_box(j, &c, i, i == first, &keep);
    if (o->local) store_local(j, &c, room + o->x_floats + o->f_floats);
  }
}

hk_status hk_outer_run(const hk_plan *plan, const hk_call *call) {
  const hk_outer *o = plan->own;
  job j = {plan, call, o, (float *)(void *)call->workspace};
  hk_plan_parallel(plan, o->slots, body, &j);
  if (!o->direct && !o->local) hk_outer_store(plan, call, j.sums);
  return HK_OK;
}
