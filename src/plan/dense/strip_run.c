/* Runs a strip plan: bands of output rows, in them part after part of the channels, so that its weights stay in L1
 * while rows go by. See strip.h. */
#include "plan/dense/strip.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_strip *p;
  int64_t piece;   /* of a row */
  hk_strip_args a; /* what all calls share */
} job;

static void share_args(job *j) {
  const hk_geom *g = &j->plan->task.geom;
  hk_strip_args *a = &j->a;
  a->c = a->scale = a->bias = NULL;
  a->zeros = j->p->zeros;
  a->inputs = g->c;
  a->overlap = j->p->way == HK_STRIP_BY_ROWS && g->groups == 1 && j->p->part_count == 1 && g->y.at[2] == g->k &&
               j->p->vectors * j->p->vw <= 2 * g->k;
  a->scale_one = j->plan->task.epi.e.scale == 1;
  a->fuse = j->p->fuse;
  a->f_next = a->channel_next = 0;
  if (j->p->together == 1) return;
  a->x_next = g->x.group;
  a->y_next = g->y.group;
  a->c_next = j->plan->task.epi.c.group;
  a->f_next = j->p->f_group;
  a->channel_next = g->k;
}

/* Taps of a span that an output row takes; rows of several window planes that lie apart are put together in `room`.
 * high: window rows in the table. */
static const hk_strip_tap *choose_taps(int64_t high, const hk_strip_span *s, hk_strip_range planes, hk_strip_range rows,
                                       hk_strip_tap *room, int64_t *count) {
  const int64_t taken = rows.to - rows.from, deep = planes.to - planes.from;
  const hk_strip_tap *first = s->taps + (planes.from * high + rows.from) * s->kept;
  *count = deep * taken * s->kept;
  if (deep <= 1 || taken == high) return first;
  hk_strip_tap *to = room;
  for (int64_t a = 0; a < deep; a++)
    for (int64_t t = 0; t < taken * s->kept; t++) *to++ = first[a * high * s->kept + t];
  return room;
}

/* One output row, or the job's piece of it, or one plane of a part; x at the first tap of its first output, y and c at
 * the part's channels. */
static void run_spans(job *j, const hk_strip_cut *cut, hk_strip_range planes, hk_strip_range rows, const float *x,
                      float *y, const float *c) {
  const hk_geom *g = &j->plan->task.geom;
  const int64_t high = j->p->way == HK_STRIP_BY_ROWS ? g->win[1] : 1;
  hk_strip_args *a = &j->a;
  hk_strip_tap room[HK_STRIP_TAPS];
  for (const hk_strip_span *s = cut->span; s < cut->span + cut->count; s++) {
    const int64_t x_tile = s->pixels * g->stride[2] * g->x.at[2], y_tile = s->pixels * g->y.at[2],
                  c_tile = s->pixels * j->plan->task.epi.c.at[2];
    int64_t first, last;
    hk_piece(s->tiles, j->piece, j->p->pieces, &first, &last);
    if (first == last) continue;
    a->taps = choose_taps(high, s, planes, rows, room, &a->tap_count);
    a->x = x + s->x + first * x_tile;
    a->y = y + s->y + first * y_tile;
    if (c) a->c = c + s->c + first * c_tile;
    a->x_at = s->x_at;
    a->y_at = s->y_at;
    a->c_at = s->c_at;
    a->x_step = s->x_step;
    a->pixels = s->pixels;
    if (j->p->together > 1) {
      for (; first < last; first++, a->x += x_tile, a->y += y_tile) {
        j->plan->decision.kernel->fn(a);
        if (c) a->c += c_tile;
      }
      continue;
    }
    a->tiles = last - first;
    a->x_next = x_tile;
    a->y_next = y_tile;
    a->c_next = c_tile;
    j->plan->decision.kernel->fn(a);
  }
}

/* Rows [row, last) of an output plane, one part of one group, or several whole groups. */
static void run_block(job *j, int64_t block, int64_t n, int64_t z, int64_t row, int64_t last) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_strip *p = j->p;
  const hk_epilogue *e = &j->plan->task.epi.e;
  const hk_strides *cs = &j->plan->task.epi.c;
  const int64_t group = block / p->part_count * p->together;
  const hk_strip_part *part = &p->part[block % p->part_count];
  const hk_strip_cut *cut = &p->cut[part->cut];
  hk_strip_args *a = &j->a;
  a->f = (const float *)j->plan->packed->f + group * p->f_group + part->f;
  a->tiles = hk_min64(p->together, g->groups - group);
  a->vectors = (int32_t)cut->vectors;
  a->lanes = (int32_t)part->lanes;
  if (e->bias) a->bias = (const float *)j->call->bias + group * g->k + part->first;
  if (e->scale) a->scale = (const float *)j->call->scale + (e->scale == 2 ? group * g->k + part->first : 0);
  const float *x = (const float *)(const void *)j->call->x + n * g->x.outer + group * g->x.group +
                   hk_geom_source(g, 0, z, 0) * g->x.at[0] - g->lo[1] * g->x.at[1] - g->lo[2] * g->x.at[2];
  float *y = (float *)(void *)j->call->y + n * g->y.outer + group * g->y.group + part->first + z * g->y.at[0];
  const float *c = e->residual ? (const float *)(const void *)j->call->c + n * cs->outer + group * cs->group +
                                     part->first + z * cs->at[0]
                               : NULL;
  const hk_strip_range planes = p->plane ? p->plane[z] : hk_strip_inside(g, 0, z);
  if (p->way == HK_STRIP_BY_PLANE) {
    run_spans(j, cut, planes, (hk_strip_range){0, 1}, x, y, c);
    return;
  }
  for (; row < last; row++)
    run_spans(j, cut, planes, p->row ? p->row[row] : hk_strip_inside(g, 1, row), x + row * g->stride[1] * g->x.at[1],
              y + row * g->y.at[1], c ? c + row * cs->at[1] : NULL);
}

static void body(void *context, int64_t i) {
  const hk_shared *h = context;
  const hk_geom *g = &h->plan->task.geom;
  const hk_strip *p = h->plan->own;
  int64_t from, to, item, last;
  hk_piece(p->blocks, i / p->parts, p->shards, &from, &to);
  hk_piece(g->n * g->out[0] * p->bands * p->pieces, i % p->parts, p->parts, &item, &last);
  job j;
  j.plan = h->plan;
  j.call = h->call;
  j.p = p;
  share_args(&j);
  for (; item < last; item++) {
    const int64_t band = item / p->pieces, plane = band / p->bands, row = (band - plane * p->bands) * p->band,
                  n = plane / g->out[0];
    j.piece = item - band * p->pieces;
    for (int64_t block = from; block < to; block++)
      run_block(&j, block, n, plane - n * g->out[0], row, hk_min64(row + p->band, g->out[1]));
  }
}

hk_status hk_strip_run(const hk_plan *plan, const hk_call *call) {
  const hk_strip *p = plan->own;
  hk_shared h = {plan, call};
  hk_plan_parallel(plan, p->shards * p->parts, body, &h);
  return HK_OK;
}

hk_status hk_strip_run_xy(const hk_plan *plan, const char *x, char *y) {
  const hk_call call = {.x = x, .y = y, .scale = plan->packed->scale, .bias = plan->packed->bias};
  hk_shared h = {plan, &call};
  body(&h, 0);
  return HK_OK;
}
