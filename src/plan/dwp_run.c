/* Runs a dwp plan: bands outside, channels inside, so that a band's zero border is written once. See dwp.h. */
#include <string.h>

#include "plan/dwp.h"

#define SCRATCH 6144 /* floats of sums that wait for hk_plan_store_row */
#define GATHER_TAPS 128

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_geom *g;
  const hk_dwp *p;
  int64_t planes;
} job;

/* One output channel of one image. */
typedef struct site {
  const job *j;
  int64_t n, k; /* k over all groups */
  float *y;
  const float *c, *f;
  float scale, bias;
} site;

/* Where a call's vectors lie: vector v of tile i at row p + v*p_step, column q + v*q_step + i*q_next. */
typedef struct place {
  int64_t z, p, p_step, q, q_step, q_next;
} place;

/* One input channel of one image; counted up without divisions, which cost as much as a small plane. */
typedef struct plane {
  int64_t n, group;
  const float *x;
} plane;

static plane plane_at(const job *j, int64_t index) {
  const hk_geom *g = j->g;
  plane p = {.n = index / g->groups, .group = index % g->groups};
  p.x = (const float *)(const void *)j->call->x + p.group * g->x.group + p.n * g->x.outer;
  return p;
}

static void plane_next(const job *j, plane *p) {
  p->x += j->g->x.group;
  if (++p->group < j->g->groups) return;
  p->x += j->g->x.outer - p->group * j->g->x.group;
  p->group = 0;
  p->n++;
}

static site make_site(const job *j, const plane *at, int64_t kk, float *ordered) {
  const hk_geom *g = j->g;
  const hk_epilogue *e = &j->plan->task.epi.e;
  const hk_strides *cs = &j->plan->task.epi.c;
  const int64_t n = at->n, group = at->group, k = group * g->k + kk;
  site s = {.j = j, .n = n, .k = k, .scale = 1.0f};
  s.y = (float *)(void *)j->call->y + group * g->y.group + n * g->y.outer + kk * g->y.channel;
  if (e->residual) s.c = (const float *)(const void *)j->call->c + group * cs->group + n * cs->outer + kk * cs->channel;
  if (e->scale) s.scale = ((const float *)j->call->scale)[e->scale == 2 ? k : 0];
  if (e->bias) s.bias = ((const float *)j->call->bias)[k];
  if (j->plan->task.f_now) {
    s.f = hk_chain_weights(j->plan, &j->p->chain) + k * g->taps;
  } else {
    const float *f = (const float *)(const void *)j->call->f + group * g->f.group + kk * g->f.outer;
    for (int64_t i = 0; i < g->taps; i++) ordered[i] = f[hk_dw_tap(g, j->p->chain.order[i])];
    s.f = ordered;
  }
  return s;
}

static void store_row(const site *s, const place *w, int64_t v, int64_t q, int64_t count, float *row) {
  hk_at at = {.n = s->n, .k = s->k};
  const int64_t p[3] = {w->z, w->p + v * w->p_step, q};
  for (int d = 0; d < s->j->g->rank; d++) at.p[d] = p[d + 3 - s->j->g->rank];
  hk_plan_store_row(s->j->plan, s->j->call, &at, count, row);
}

/* The epilogue is not one that kernels fuse: sums go to a scratch, then row by row through the plan's epilogue. */
static void emit_rows(const site *s, hk_dwp_args *a, const place *w) {
  const int64_t vw = s->j->p->vw, tiles = a->tiles, lanes = a->lanes, last_lanes = a->last_lanes;
  const bool whole = w->p_step || w->q_step == vw;
  const int64_t most = whole ? hk_max64(1, SCRATCH / (a->vectors * vw)) : 1;
  const float *x = a->x;
  float scratch[SCRATCH];
  a->fuse.flags = 0;
  a->y = scratch;
  for (int64_t i = 0; i < tiles; i += most) {
    a->tiles = hk_min64(most, tiles - i);
    const bool last = i + a->tiles == tiles;
    a->x = x + i * a->x_next;
    a->lanes = (int32_t)vw;
    a->last_lanes = (int32_t)vw;
    a->y_step = w->p_step ? a->tiles * vw : vw;
    a->y_next = w->p_step ? vw : a->vectors * vw;
    s->j->plan->decision.kernel->fn(a);
    const int64_t q = w->q + i * w->q_next, short_by = last ? vw - (w->p_step ? lanes : last_lanes) : 0;
    if (!w->p_step && w->q_step == vw) {
      store_row(s, w, 0, q, a->tiles * a->vectors * vw - short_by, scratch);
      continue;
    }
    for (int64_t v = 0; v < a->vectors; v++) {
      const bool cut = w->p_step || v == a->vectors - 1;
      store_row(s, w, v, q + v * w->q_step, (w->p_step ? a->tiles : 1) * vw - (cut ? short_by : 0), scratch + v * a->y_step);
    }
  }
  a->y = NULL;
}

static void emit(const site *s, hk_dwp_args *a, const place *w) {
  const hk_geom *g = s->j->g;
  const hk_strides *cs = &s->j->plan->task.epi.c;
  a->f = s->f;
  if (!s->j->p->fused) {
    emit_rows(s, a, w);
    return;
  }
  a->fuse = s->j->p->fuse;
  a->scale = s->scale;
  a->bias = s->bias;
  a->y = s->y + w->z * g->y.at[0] + w->p * g->y.at[1] + w->q;
  a->y_step = w->p_step * g->y.at[1] + w->q_step;
  a->y_next = w->q_next;
  if (s->c) {
    a->c = s->c + w->z * cs->at[0] + w->p * cs->at[1] + w->q;
    a->c_step = w->p_step * cs->at[1] + w->q_step;
    a->c_next = w->q_next;
  }
  s->j->plan->decision.kernel->fn(a);
}

/* Tiles of vectors along one row: count outputs from column q on, read from x. */
static void along(const site *s, const float *x, int64_t z, int64_t p, int64_t q, int64_t count) {
  const hk_dwp *d = s->j->p;
  const int64_t vw = d->vw, all = hk_ceil_div(count, vw), spread = hk_min64(d->spread, all);
  for (int64_t first = 0; first < spread; first++) {
    const int64_t vectors = hk_ceil_div(all - first, spread), tiles = hk_ceil_div(vectors, d->mr);
    const int64_t each = hk_ceil_div(vectors, tiles);
    for (int64_t v = 0; v < vectors;) {
      const int64_t whole = (vectors - v) / each;
      hk_dwp_args a = {.runs = d->chain.runs, .run_count = d->chain.run_count, .x_step = d->spread * vw,
                       .x_next = each * d->spread * vw, .vectors = (int32_t)(whole ? each : vectors - v),
                       .tiles = whole ? whole : 1, .lanes = (int32_t)vw, .last_lanes = (int32_t)vw};
      const int64_t at = (first + v * spread) * vw;
      a.x = x + at;
      v += a.tiles * a.vectors;
      if (first + (v - 1) * spread == all - 1) a.last_lanes = (int32_t)(count - (all - 1) * vw);
      const place w = {.z = z, .p = p, .q = q + at, .q_step = d->spread * vw, .q_next = a.x_next};
      emit(s, &a, &w);
    }
  }
}

/* Tiles of vectors down the rows of a band, column after column. */
static void down(const site *s, const float *x, int64_t z, int64_t p, int64_t rows, int64_t q, int64_t cols) {
  const hk_dwp *d = s->j->p;
  const int64_t vw = d->vw, spread = hk_min64(d->spread, rows), row = s->j->g->stride[1] * d->row;
  const int64_t tail = cols - (hk_ceil_div(cols, vw) - 1) * vw;
  for (int64_t first = 0; first < spread; first++) {
    const int64_t vectors = hk_ceil_div(rows - first, spread), tiles = hk_ceil_div(vectors, d->mr);
    const int64_t each = hk_ceil_div(vectors, tiles);
    for (int64_t v = 0; v < vectors; v += each) {
      hk_dwp_args a = {.runs = d->chain.runs, .run_count = d->chain.run_count, .x_step = d->spread * row, .x_next = vw,
                       .vectors = (int32_t)hk_min64(each, vectors - v), .tiles = hk_ceil_div(cols, vw),
                       .lanes = (int32_t)tail, .last_lanes = (int32_t)tail};
      const int64_t at = first + v * spread;
      a.x = x + at * row;
      const place w = {.z = z, .p = p + at, .p_step = d->spread, .q = q, .q_next = vw};
      emit(s, &a, &w);
    }
  }
}

/* The first index of x at or after coordinate i of dimension d, and its coordinate relative to i */
static int64_t first_inside(const hk_geom *g, int d, int64_t i, int64_t *lead) {
  const int64_t x = i <= 0 ? 0 : hk_ceil_div(i, g->in_dil[d]);
  *lead = x * g->in_dil[d] - i;
  return x;
}

/* How many indices of x from `first` on lie before coordinate `end` */
static int64_t count_inside(const hk_geom *g, int d, int64_t first, int64_t end) {
  const int64_t stop = end <= 0 ? 0 : hk_min64(g->in[d], hk_ceil_div(end, g->in_dil[d]));
  return hk_max64(0, stop - first);
}

/* Copies what the outputs rows x cols at (z, p, q) read of a plane into the buffer, whose border is zero already. */
static void stage(const job *j, const float *x, float *buffer, int64_t z, int64_t p, int64_t rows, int64_t q, int64_t cols) {
  const hk_geom *g = j->g;
  const hk_dwp *d = j->p;
  const int64_t top = p * g->stride[1] - g->lo[1], left = q * g->stride[2] - g->lo[2];
  int64_t row_lead, col_lead;
  const int64_t row = first_inside(g, 1, top, &row_lead), col = first_inside(g, 2, left, &col_lead);
  hk_stage_args a = {.x_row = g->x.at[1], .x_step = g->x.at[2], .lead = col_lead, .spread = g->in_dil[2],
                     .phases = d->phases, .pitch = d->pitch, .row = d->row * g->in_dil[1]};
  a.rows = count_inside(g, 1, row, top + (rows - 1) * g->stride[1] + (g->win[1] - 1) * g->dil[1] + 1);
  a.cols = count_inside(g, 2, col, left + (cols - 1) * g->stride[2] + (g->win[2] - 1) * g->dil[2] + 1);
  if (a.rows == 0 || a.cols == 0) return;
  for (int64_t t = 0; t < g->win[0]; t++) {
    const int64_t depth = hk_dw_inside(g, 0, z * g->stride[0] + t * g->dil[0] - g->lo[0]);
    if (depth < 0) continue;
    a.x = x + depth * g->x.at[0] + row * g->x.at[1] + col * g->x.at[2];
    a.buffer = buffer + (t * d->rows + row_lead) * d->row;
    d->stage(&a);
  }
}

/* One band of planes [from, to). */
static void run_band(const job *j, int64_t band, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  const hk_dwp *d = j->p;
  _Alignas(HK_ALIGN) float buffer[HK_DW_BUFFER];
  float ordered[HK_DW_TAPS_NOW];
  const int64_t z = band / d->bands_q / d->bands_p, p = band / d->bands_q % d->bands_p * d->band_p;
  const int64_t q = band % d->bands_q * d->band_q;
  const int64_t rows = hk_min64(d->band_p, g->out[1] - p), cols = hk_min64(d->band_q, g->out[2] - q);
  memset(buffer, 0, (size_t)d->used * sizeof *buffer);
  for (plane at = plane_at(j, from); from < to; from++, plane_next(j, &at)) {
    stage(j, at.x, buffer, z, p, rows, q, cols);
    for (int64_t kk = 0; kk < g->k; kk++) {
      const site s = make_site(j, &at, kk, ordered);
      if (d->down) {
        down(&s, buffer, z, p, rows, q, cols);
        continue;
      }
      for (int64_t r = 0; r < rows; r++) along(&s, buffer + r * g->stride[1] * d->row, z, p + r, q, cols);
    }
  }
}

/* What `taps` taps from `tap` on read for `count` outputs from column q on: one row of `width` floats a tap. */
static void gather(const job *j, const float *x, float *to, int64_t tap, int64_t taps, const int64_t p[3], int64_t count,
                   int64_t width) {
  const hk_geom *g = j->g;
  for (int64_t t = tap; t < tap + taps; t++, to += width) {
    const int64_t s = t % g->win[2], r = t / g->win[2] % g->win[1], a = t / g->win[2] / g->win[1];
    const int64_t depth = hk_dw_inside(g, 0, p[0] * g->stride[0] + a * g->dil[0] - g->lo[0]);
    const int64_t row = hk_dw_inside(g, 1, p[1] * g->stride[1] + r * g->dil[1] - g->lo[1]);
    memset(to, 0, (size_t)width * sizeof *to);
    if (depth < 0 || row < 0) continue;
    const float *from = x + depth * g->x.at[0] + row * g->x.at[1];
    for (int64_t i = 0; i < count; i++) {
      const int64_t col = hk_dw_inside(g, 2, (p[2] + i) * g->stride[2] + s * g->dil[2] - g->lo[2]);
      if (col >= 0) to[i] = from[col * g->x.at[2]];
    }
  }
}

/* `count` outputs of a row from column p[2] on, tap by tap; sums wait in a tile between batches of taps. weights in
 * the order of the chain. */
static void gather_row(const site *s, const float *x, const int64_t p[3], int64_t count) {
  const job *j = s->j;
  const hk_dwp *d = j->p;
  const int64_t taps = j->g->taps, most = d->mr * d->vw, batch = hk_min64(GATHER_TAPS, HK_DW_BUFFER / most);
  _Alignas(HK_ALIGN) float buffer[HK_DW_BUFFER], sums[16 * 16], weights[GATHER_TAPS];
  hk_dw_run runs[GATHER_TAPS];
  for (int64_t done = 0; done < count; done += most) {
    const int64_t n = hk_min64(most, count - done), vectors = hk_ceil_div(n, d->vw), width = vectors * d->vw;
    const int64_t at[3] = {p[0], p[1], p[2] + done};
    for (int64_t t = 0; t < taps; t += batch) {
      const int64_t now = hk_min64(batch, taps - t);
      gather(j, x, buffer, t, now, at, n, width);
      for (int64_t i = 0; i < now; i++) runs[i] = (hk_dw_run){.offset = (int32_t)(i * width), .taps = 1, .last = INT16_MAX};
      for (int64_t i = 0; i < taps; i++) {
        const int64_t tap = j->p->chain.order[i] - t;
        if (tap >= 0 && tap < now) weights[tap] = s->f[i];
      }
      hk_dwp_args a = {.x = buffer, .start = t ? sums : NULL, .runs = runs, .run_count = now, .tiles = 1, .x_step = d->vw,
                       .vectors = (int32_t)vectors, .lanes = (int32_t)d->vw, .last_lanes = (int32_t)d->vw};
      site part = *s;
      part.f = weights;
      if (t + now < taps) {
        a.f = weights;
        a.y = sums;
        a.y_step = d->vw;
        j->plan->decision.kernel->fn(&a);
        continue;
      }
      a.last_lanes = (int32_t)(n - (vectors - 1) * d->vw);
      const place w = {.z = at[0], .p = at[1], .q = at[2], .q_step = d->vw};
      emit(&part, &a, &w);
    }
  }
}

static void run_gather(const job *j, int64_t band, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  const hk_dwp *d = j->p;
  float ordered[HK_DW_TAPS_NOW];
  const int64_t z = band / d->bands_q / d->bands_p, p = band / d->bands_q % d->bands_p * d->band_p;
  const int64_t q = band % d->bands_q * d->band_q, rows = hk_min64(d->band_p, g->out[1] - p);
  for (plane at = plane_at(j, from); from < to; from++, plane_next(j, &at)) {
    for (int64_t kk = 0; kk < g->k; kk++) {
      const site s = make_site(j, &at, kk, ordered);
      for (int64_t r = 0; r < rows; r++) {
        const int64_t where[3] = {z, p + r, q};
        gather_row(&s, at.x, where, hk_min64(d->band_q, g->out[2] - q));
      }
    }
  }
}

/* Outputs [q, end) near the ends of a plane of one row, from a padded copy; a span that no buffer holds is gathered. */
static void edge(const site *s, const float *x, int64_t q, int64_t end) {
  const hk_dwp *d = s->j->p;
  const int64_t span = (s->j->g->win[2] - 1) * s->j->g->dil[2];
  _Alignas(HK_ALIGN) float buffer[HK_DW_BUFFER];
  const int64_t most = (HK_DW_BUFFER - span) / d->vw * d->vw - d->vw - 16;
  if (q < end && (span >= HK_DW_BUFFER || most < d->vw)) {
    const int64_t p[3] = {0, 0, q};
    gather_row(s, x, p, end - q);
    return;
  }
  for (; q < end; q += most) {
    const int64_t count = hk_min64(most, end - q);
    memset(buffer, 0, (size_t)(hk_round_up(count, d->vw) + span + 16) * sizeof *buffer);
    stage(s->j, x, buffer, 0, 0, 1, q, count);
    along(s, buffer, 0, 0, q, count);
  }
}

/* count outputs from column q on, more than a vector of them, read from x: the last tile is moved back to end with the
 * last output, so that every vector is whole. */
static void overlapped(const site *s, const float *x, int64_t q, int64_t count) {
  const hk_dwp *d = s->j->p;
  const int64_t vw = d->vw, all = hk_ceil_div(count, vw), tiles = hk_max64(hk_ceil_div(all, d->mr), 2);
  const int64_t width = hk_ceil_div(all, tiles) * vw;
  if (d->spread > 1 || width > count) {
    along(s, x, 0, 0, q, count / vw * vw);
    along(s, x + count - vw, 0, 0, q + count - vw, vw);
    return;
  }
  hk_dwp_args a = {.runs = d->chain.runs, .run_count = d->chain.run_count, .x_step = vw, .x_next = width,
                   .vectors = (int32_t)(width / vw), .lanes = (int32_t)vw, .last_lanes = (int32_t)vw};
  place w = {.q = q, .q_step = vw, .q_next = width};
  a.x = x;
  a.tiles = (count - 1) / width;
  emit(s, &a, &w);
  a.x = x + count - width;
  a.tiles = 1;
  w.q = q + count - width;
  emit(s, &a, &w);
}

static void run_direct(const job *j, int64_t band, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  const hk_dwp *d = j->p;
  float ordered[HK_DW_TAPS_NOW];
  const int64_t q = band * d->band_q, end = hk_min64(g->out[2], q + d->band_q);
  const int64_t lo = hk_min64(end, hk_max64(q, d->inner_lo)), hi = hk_max64(lo, hk_min64(end, d->inner_hi));
  /* A residual may be y itself, so with one no output is computed twice. */
  const int64_t tail = (hi - lo) % d->vw;
  const bool twice = tail && hi - lo > d->vw && d->fused && !j->plan->task.epi.e.residual;
  const int64_t inside = twice ? hi - lo : hi - lo - tail;
  for (plane at = plane_at(j, from); from < to; from++, plane_next(j, &at)) {
    const float *x = at.x + lo - g->lo[2];
    for (int64_t kk = 0; kk < g->k; kk++) {
      const site s = make_site(j, &at, kk, ordered);
      if (q < lo) edge(&s, at.x, q, lo);
      if (twice) overlapped(&s, x, lo, inside);
      else if (inside) along(&s, x, 0, 0, lo, inside);
      if (lo + inside < end) edge(&s, at.x, lo + inside, end);
    }
  }
}

static void body(void *context, int64_t i) {
  const job *j = context;
  const hk_dwp *d = j->p;
  int64_t from, to, band, last;
  hk_piece(j->planes, i / d->parts, d->shards, &from, &to);
  hk_piece(d->bands, i % d->parts, d->parts, &band, &last);
  if (from == to) return;
  for (; band < last; band++) {
    if (d->source == HK_DWP_DIRECT) run_direct(j, band, from, to);
    else if (d->source == HK_DWP_BAND) run_band(j, band, from, to);
    else run_gather(j, band, from, to);
  }
}

hk_status hk_dwp_run(const hk_plan *plan, const hk_call *call) {
  const hk_dwp *p = plan->own;
  job j = {plan, call, &plan->task.geom, p, plan->task.geom.n * plan->task.geom.groups};
  hk_plan_parallel(plan, p->shards * p->parts, body, &j);
  return HK_OK;
}
