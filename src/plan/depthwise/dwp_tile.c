/* Tiles of a dwp plan; see dwp_tile.h. */
#include "plan/depthwise/dwp_tile.h"

#define SCRATCH 6144 /* floats of sums that wait for hk_plan_store_row */

void hk_dwp_templates(hk_dwp_job *j) {
  const hk_dwp *p = j->p;
  const hk_strides *cs = &j->plan->task.epi.c;
  const int64_t row = j->g->stride[1] * p->row;
  j->along = (hk_dwp_args){.runs = p->chain.runs,
                           .run_count = p->chain.run_count,
                           .lanes = (int32_t)p->vw,
                           .fuse = p->fuse,
                           .x_step = p->spread * p->vw,
                           .y_step = p->spread * p->vw,
                           .c_step = p->spread * p->vw};
  if (p->fold) j->along.x_step = j->along.y_step = p->fold;
  j->down = j->along;
  j->down.x_step = p->spread * row;
  j->down.y_step = p->spread * j->g->y.at[1];
  j->down.c_step = p->spread * cs->at[1];
  j->down.x_next = j->down.y_next = j->down.c_next = p->vw;
}

static void store_row(const hk_dwp_site *s, const hk_dwp_place *w, int64_t v, int64_t q, int64_t count, float *row) {
  hk_at at = {.n = s->n, .k = s->k};
  const int64_t p[3] = {w->z, w->p + v * w->p_step, q};
  for (int d = 0; d < s->j->g->rank; d++) at.p[d] = p[d + 3 - s->j->g->rank];
  hk_plan_store_row(s->j->plan, s->j->call, &at, count, row);
}

/* The epilogue is not one that kernels fuse: sums go to a scratch, then row by row through the plan's epilogue. */
static void emit_rows(const hk_dwp_site *s, const hk_dwp_args *all, const hk_dwp_place *w) {
  const int64_t vw = s->j->p->vw;
  const bool whole = w->p_step || w->q_step == vw;
  const int64_t most = whole ? hk_max64(1, SCRATCH / (all->vectors * vw)) : 1;
  float scratch[SCRATCH];
  hk_dwp_args a = *all;
  a.fuse.flags = 0;
  a.y = scratch;
  a.lanes = a.last_lanes = (int32_t)vw;
  for (int64_t i = 0; i < all->tiles; i += most) {
    a.tiles = hk_min64(most, all->tiles - i);
    a.x = all->x + i * a.x_next;
    a.y_step = w->p_step ? a.tiles * vw : vw;
    a.y_next = w->p_step ? vw : a.vectors * vw;
    s->j->plan->decision.kernel->fn(&a);
    const int64_t q = w->q + i * w->q_next, lanes = w->p_step ? all->lanes : all->last_lanes;
    const int64_t short_by = i + a.tiles == all->tiles ? vw - lanes : 0;
    if (!w->p_step && w->q_step == vw) {
      store_row(s, w, 0, q, a.tiles * a.vectors * vw - short_by, scratch);
      continue;
    }
    for (int64_t v = 0; v < a.vectors; v++) {
      const bool cut = w->p_step || v == a.vectors - 1;
      store_row(s, w, v, q + v * w->q_step, (w->p_step ? a.tiles : 1) * vw - (cut ? short_by : 0),
                scratch + v * a.y_step);
    }
  }
}

void hk_dwp_emit(const hk_dwp_site *s, hk_dwp_args *a, const hk_dwp_place *w) {
  const hk_geom *g = s->j->g;
  a->f = s->f;
  if (!s->j->p->fused) {
    emit_rows(s, a, w);
    return;
  }
  a->scale = s->scale;
  a->bias = s->bias;
  a->y = s->y + w->z * g->y.at[0] + w->p * g->y.at[1] + w->q;
  if (s->c) {
    const hk_strides *cs = &s->j->plan->task.epi.c;
    a->c = s->c + w->z * cs->at[0] + w->p * cs->at[1] + w->q;
  }
  s->j->plan->decision.kernel->fn(a);
}

void hk_dwp_along(const hk_dwp_site *s, const float *x, int64_t z, int64_t p, int64_t q, int64_t count) {
  const hk_dwp *d = s->j->p;
  hk_dwp_args *a = &s->j->along;
  const int64_t vw = d->vw, all = hk_ceil_div(count, vw), spread = hk_min64(d->spread, all);
  for (int64_t first = 0; first < spread; first++) {
    const int64_t vectors = hk_ceil_div(all - first, spread), tiles = hk_ceil_div(vectors, d->mr);
    const int64_t each = hk_ceil_div(vectors, tiles);
    a->x_next = a->y_next = a->c_next = each * d->spread * vw;
    for (int64_t v = 0; v < vectors;) {
      const int64_t whole = (vectors - v) / each, at = (first + v * spread) * vw;
      a->vectors = (int32_t)(whole ? each : vectors - v);
      a->tiles = whole ? whole : 1;
      a->x = x + at;
      v += a->tiles * a->vectors;
      a->last_lanes = (int32_t)(first + (v - 1) * spread == all - 1 ? count - (all - 1) * vw : vw);
      const hk_dwp_place w = {.z = z, .p = p, .q = q + at, .q_step = d->spread * vw, .q_next = a->x_next};
      hk_dwp_emit(s, a, &w);
    }
  }
}

void hk_dwp_overlapped(const hk_dwp_site *s, const float *x, int64_t q, int64_t count) {
  const hk_dwp *d = s->j->p;
  hk_dwp_args *a = &s->j->along;
  const int64_t vw = d->vw, all = hk_ceil_div(count, vw), tiles = hk_max64(hk_ceil_div(all, d->mr), 2);
  const int64_t width = hk_ceil_div(all, tiles) * vw;
  if (d->spread > 1 || width > count) {
    hk_dwp_along(s, x, 0, 0, q, count / vw * vw);
    hk_dwp_along(s, x + count - vw, 0, 0, q + count - vw, vw);
    return;
  }
  a->x_next = a->y_next = a->c_next = width;
  a->vectors = (int32_t)(width / vw);
  a->last_lanes = (int32_t)vw;
  a->tiles = (count - 1) / width;
  a->x = x;
  hk_dwp_place w = {.q = q, .q_step = vw, .q_next = width};
  hk_dwp_emit(s, a, &w);
  a->tiles = 1;
  a->x = x + count - width;
  w.q = q + count - width;
  hk_dwp_emit(s, a, &w);
}

void hk_dwp_line(const hk_dwp_site *s, const float *x, int64_t q, int64_t count) {
  hk_dwp_args *a = &s->j->along;
  const hk_dwp_place w = {.q = q};
  const int64_t step = a->x_step;
  a->line = s->j->p->line;
  a->x_step = s->j->g->dil[2];
  a->count = count;
  a->tiles = 1;
  a->x = x;
  hk_dwp_emit(s, a, &w);
  a->line = 0; /* the padded ends are tiles */
  a->x_step = step;
}

/* One call: `tiles` tiles, `next` outputs apart, of so many rows of a fold from output `at` on. */
static void fold_call(const hk_dwp_site *s, const float *x, int64_t q, int64_t at, int64_t rows, int64_t tiles,
                      int64_t next) {
  hk_dwp_args *a = &s->j->along;
  a->x_next = a->y_next = next;
  a->last_lanes = (int32_t)s->j->p->vw;
  a->vectors = (int32_t)rows;
  a->tiles = tiles;
  a->x = x + at;
  const hk_dwp_place w = {.q = q + at};
  hk_dwp_emit(s, a, &w);
}

/* Rows of a fold in columns [from, to), at least a vector of them; a call walks along whichever is longer. */
static void fold_columns(const hk_dwp_site *s, const float *x, int64_t q, int64_t from, int64_t to, int64_t rows) {
  const hk_dwp *d = s->j->p;
  const int64_t vw = d->vw, each = hk_ceil_div(rows, hk_ceil_div(rows, d->mr)), whole = rows / each * each;
  if (rows / each >= (to - from) / vw) {
    for (int64_t column = from; column < to; column += vw) {
      const int64_t at = hk_min64(column, to - vw); /* the last vector ends with the last column */
      fold_call(s, x, q, at, each, rows / each, each * d->fold);
      if (whole < rows) fold_call(s, x, q, at + whole * d->fold, rows - whole, 1, 0);
    }
    return;
  }
  for (int64_t row = 0; row < rows; row += each) {
    const int64_t now = hk_min64(each, rows - row), tiles = (to - from) / vw;
    fold_call(s, x, q, row * d->fold + from, now, tiles, vw);
    if (from + tiles * vw < to) fold_call(s, x, q, row * d->fold + to - vw, now, 1, 0);
  }
}

void hk_dwp_folded(const hk_dwp_site *s, const float *x, int64_t q, int64_t count) {
  const hk_dwp *d = s->j->p;
  const int64_t vw = d->vw, rows = count / d->fold, more = count % d->fold; /* the first columns have a row more */
  if (rows) fold_columns(s, x, q, more < vw ? 0 : hk_min64(more, d->fold - vw), d->fold, rows);
  if (more >= vw) {
    fold_columns(s, x, q, 0, more, rows + 1);
  } else if (more) { /* too few for a vector: it ends with the last output */
    hk_dwp_args *a = &s->j->along;
    const int64_t at = hk_max64(0, count - vw);
    a->vectors = 1;
    a->tiles = 1;
    a->last_lanes = (int32_t)hk_min64(vw, count);
    a->x = x + at;
    const hk_dwp_place w = {.q = q + at};
    hk_dwp_emit(s, a, &w);
  }
}

void hk_dwp_down(const hk_dwp_site *s, const float *x, const hk_dwp_place *band, int64_t rows, int64_t tiles,
                 int64_t tail) {
  const hk_dwp *d = s->j->p;
  hk_dwp_args *a = &s->j->down;
  const int64_t spread = hk_min64(d->spread, rows), row = s->j->g->stride[1] * d->row;
  a->tiles = tiles;
  a->lanes = a->last_lanes = (int32_t)tail;
  for (int64_t first = 0; first < spread; first++) {
    const int64_t vectors = spread == 1 ? rows : hk_ceil_div(rows - first, spread);
    const int64_t each = vectors <= d->mr ? vectors : hk_ceil_div(vectors, hk_ceil_div(vectors, d->mr));
    for (int64_t v = 0; v < vectors; v += each) {
      const int64_t at = first + v * spread;
      a->vectors = (int32_t)hk_min64(each, vectors - v);
      a->x = x + at * row;
      const hk_dwp_place w = {.z = band->z, .p = band->p + at, .p_step = d->spread, .q = band->q, .q_next = d->vw};
      hk_dwp_emit(s, a, &w);
    }
  }
}
