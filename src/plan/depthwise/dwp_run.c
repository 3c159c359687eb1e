/* Runs a dwp plan: bands outside, channels inside, so that a band's zero border is written once. See dwp.h. */
#include <string.h>

#include "plan/depthwise/dwp_tile.h"

/* One input channel of one image; counted up without divisions, which cost as much as a small plane. */
typedef struct plane {
  int64_t n, group;
  const float *x;
} plane;

static plane plane_at(const hk_dwp_job *j, int64_t index) {
  const hk_geom *g = j->g;
  plane p = {.n = index / g->groups, .group = index % g->groups};
  p.x = (const float *)(const void *)j->call->x + p.group * g->x.group + p.n * g->x.outer;
  return p;
}

static void plane_next(const hk_dwp_job *j, plane *p) {
  p->x += j->g->x.group;
  if (++p->group < j->g->groups) return;
  p->x += j->g->x.outer - p->group * j->g->x.group;
  p->group = 0;
  p->n++;
}

static hk_dwp_site make_site(hk_dwp_job *j, const plane *at, int64_t kk, float *ordered) {
  const hk_geom *g = j->g;
  const hk_epilogue *e = &j->plan->task.epi.e;
  const hk_strides *cs = &j->plan->task.epi.c;
  const int64_t n = at->n, group = at->group, k = group * g->k + kk;
  hk_dwp_site s = {.j = j, .n = n, .k = k, .scale = 1.0f};
  s.y = (float *)(void *)j->call->y + group * g->y.group + n * g->y.outer + kk * g->y.channel;
  if (e->residual) s.c = (const float *)(const void *)j->call->c + group * cs->group + n * cs->outer + kk * cs->channel;
  if (e->scale) s.scale = ((const float *)j->call->scale)[e->scale == 2 ? k : 0];
  if (e->bias) s.bias = ((const float *)j->call->bias)[k];
  if (j->plan->task.f_now) {
    s.f = hk_tap_runs_weights(j->plan, &j->p->chain) + k * g->taps;
  } else {
    const float *f = (const float *)(const void *)j->call->f + group * g->f.group + kk * g->f.outer;
    for (int64_t i = 0; i < g->taps; i++) ordered[i] = f[hk_dw_tap(g, j->p->chain.order[i])];
    s.f = ordered;
  }
  return s;
}

/* What all planes of a band share. */
typedef struct band {
  int64_t z, p, rows, q, cols; /* outputs */
  hk_stage_args stage;         /* but for x and buffer */
  int64_t x_at, buffer_at;     /* of the first row and column inside x */
  int64_t tiles, tail;         /* vectors across, lanes of the last */
} band;

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

static band make_band(const hk_dwp_job *j, int64_t z, int64_t p, int64_t rows, int64_t q, int64_t cols) {
  const hk_geom *g = j->g;
  const hk_dwp *d = j->p;
  band b = {.z = z, .p = p, .rows = rows, .q = q, .cols = cols, .tiles = hk_ceil_div(cols, d->vw)};
  b.tail = cols - (b.tiles - 1) * d->vw;
  const int64_t top = hk_geom_source(g, 1, p, 0), left = hk_geom_source(g, 2, q, 0);
  int64_t row_lead, col_lead;
  const int64_t row = first_inside(g, 1, top, &row_lead), col = first_inside(g, 2, left, &col_lead);
  b.stage = (hk_stage_args){.x_row = g->x.at[1],
                            .x_step = g->x.at[2],
                            .lead = col_lead,
                            .spread = g->in_dil[2],
                            .phases = d->phases,
                            .pitch = d->pitch,
                            .row = d->row * g->in_dil[1]};
  b.stage.rows = count_inside(g, 1, row, top + (rows - 1) * g->stride[1] + (g->win[1] - 1) * g->dil[1] + 1);
  b.stage.cols = count_inside(g, 2, col, left + (cols - 1) * g->stride[2] + (g->win[2] - 1) * g->dil[2] + 1);
  b.x_at = row * g->x.at[1] + col * g->x.at[2];
  b.buffer_at = row_lead * d->row;
  return b;
}

/* Copies what a band reads of a plane into the buffer, whose border is zero already. */
static void stage(const hk_dwp_job *j, const band *b, const float *x, float *buffer) {
  const hk_geom *g = j->g;
  hk_stage_args a = b->stage;
  if (a.rows == 0 || a.cols == 0) return;
  for (int64_t t = 0; t < g->win[0]; t++) {
    const int64_t depth = hk_dw_inside(g, 0, hk_geom_source(g, 0, b->z, t));
    if (depth < 0) continue;
    a.x = x + depth * g->x.at[0] + b->x_at;
    a.buffer = buffer + t * j->p->rows * j->p->row + b->buffer_at;
    j->p->stage(&a);
  }
}

/* One band of planes [from, to). */
static void run_band(hk_dwp_job *j, int64_t index, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  const hk_dwp *d = j->p;
  _Alignas(HK_ALIGN) float memory[HK_DW_BUFFER];
  float ordered[HK_DW_TAPS_NOW];
  const int64_t z = index / d->bands_q / d->bands_p, p = index / d->bands_q % d->bands_p * d->band_p;
  const int64_t q = index % d->bands_q * d->band_q;
  const band b = make_band(j, z, p, hk_min64(d->band_p, g->out[1] - p), q, hk_min64(d->band_q, g->out[2] - q));
  /* the first column inside x is aligned: stores that cross cache lines cost more than such loads */
  float *buffer = memory + (8 - b.stage.lead / d->phases % 8) % 8;
  memset(memory, 0, (size_t)(d->used + 8) * sizeof *memory);
  for (plane at = plane_at(j, from); from < to; from++, plane_next(j, &at)) {
    stage(j, &b, at.x, buffer);
    for (int64_t kk = 0; kk < g->k; kk++) {
      const hk_dwp_site s = make_site(j, &at, kk, ordered);
      if (d->down) {
        hk_dwp_down(&s, buffer, &(hk_dwp_place){.z = z, .p = p, .q = q}, b.rows, b.tiles, b.tail);
        continue;
      }
      for (int64_t r = 0; r < b.rows; r++) hk_dwp_along(&s, buffer + r * g->stride[1] * d->row, z, p + r, q, b.cols);
    }
  }
}

static void run_gather(hk_dwp_job *j, int64_t index, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  const hk_dwp *d = j->p;
  float ordered[HK_DW_TAPS_NOW];
  const int64_t z = index / d->bands_q / d->bands_p, p = index / d->bands_q % d->bands_p * d->band_p;
  const int64_t q = index % d->bands_q * d->band_q, rows = hk_min64(d->band_p, g->out[1] - p);
  for (plane at = plane_at(j, from); from < to; from++, plane_next(j, &at)) {
    for (int64_t kk = 0; kk < g->k; kk++) {
      const hk_dwp_site s = make_site(j, &at, kk, ordered);
      for (int64_t r = 0; r < rows; r++) {
        const int64_t where[3] = {z, p + r, q};
        hk_dwp_gather(&s, at.x, where, hk_min64(d->band_q, g->out[2] - q));
      }
    }
  }
}

/* Outputs [q, end) near the ends of a plane of one row, from a padded copy; a span that no buffer holds is gathered. */
static void edge(const hk_dwp_site *s, const float *x, int64_t q, int64_t end) {
  const hk_dwp *d = s->j->p;
  const int64_t span = (s->j->g->win[2] - 1) * s->j->g->dil[2];
  _Alignas(HK_ALIGN) float buffer[HK_DW_BUFFER];
  const int64_t most = (HK_DW_BUFFER - span) / d->vw * d->vw - d->vw - 16;
  if (span >= HK_DW_BUFFER || most < d->vw) {
    const int64_t p[3] = {0, 0, q};
    hk_dwp_gather(s, x, p, end - q);
    return;
  }
  for (; q < end; q += most) {
    const int64_t count = hk_min64(most, end - q);
    memset(buffer, 0, (size_t)(hk_round_up(count, d->vw) + span + 16) * sizeof *buffer);
    const band b = make_band(s->j, 0, 0, 1, q, count);
    stage(s->j, &b, x, buffer);
    if (d->fold) hk_dwp_folded(s, buffer, q, count);
    else hk_dwp_along(s, buffer, 0, 0, q, count);
  }
}

/* Rows of planes [from, to) that are one line each, all inside x, nothing done to their sums: an image's go in one
 * call. */
static void run_lines(hk_dwp_job *j, int64_t q, int64_t end, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  hk_dwp_args *a = &j->along;
  const int64_t step = a->x_step;
  a->line = j->p->line;
  a->x_step = g->dil[2];
  a->count = end - q;
  a->x_next = g->x.group;
  a->y_next = g->y.group;
  for (; from < to; from += a->tiles) {
    const int64_t n = from / g->groups, group = from % g->groups;
    a->tiles = hk_min64(to - from, g->groups - group);
    a->x = (const float *)(const void *)j->call->x + n * g->x.outer + group * g->x.group + q - g->lo[2];
    a->y = (float *)(void *)j->call->y + n * g->y.outer + group * g->y.group + q;
    a->f = hk_tap_runs_weights(j->plan, &j->p->chain) + group * g->taps;
    j->plan->decision.kernel->fn(a);
  }
  a->line = 0; /* other bands have padded ends, which are tiles */
  a->x_step = step;
}

static void run_direct(hk_dwp_job *j, int64_t index, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  const hk_dwp *d = j->p;
  float ordered[HK_DW_TAPS_NOW];
  const int64_t q = index * d->band_q, end = hk_min64(g->out[2], q + d->band_q);
  const int64_t lo = hk_min64(end, hk_max64(q, d->inner_lo)), hi = hk_max64(lo, hk_min64(end, d->inner_hi));
  if (d->line && lo == q && hi == end && g->k == 1 && j->plan->task.f_now && !d->fuse.flags) {
    run_lines(j, q, end, from, to);
    return;
  }
  /* A residual may be y itself, so with one no output is computed twice. */
  const int64_t tail = (hi - lo) % d->vw;
  const bool twice = tail && hi - lo > d->vw && d->fused && !j->plan->task.epi.e.residual;
  const int64_t inside = twice || d->line ? hi - lo : hi - lo - tail;
  for (plane at = plane_at(j, from); from < to; from++, plane_next(j, &at)) {
    const float *x = at.x + lo - g->lo[2];
    for (int64_t kk = 0; kk < g->k; kk++) {
      const hk_dwp_site s = make_site(j, &at, kk, ordered);
      if (q < lo) edge(&s, at.x, q, lo);
      if (d->line && inside) hk_dwp_line(&s, x, lo, inside);
      else if (d->fold && inside) hk_dwp_folded(&s, x, lo, inside);
      else if (twice) hk_dwp_overlapped(&s, x, lo, inside);
      else if (inside) hk_dwp_along(&s, x, 0, 0, lo, inside);
      if (lo + inside < end) edge(&s, at.x, lo + inside, end);
    }
  }
}

/* ---- masked: x is read in place */

static int16_t clamp16(int64_t v) { return (int16_t)(v < 0 ? 0 : v > INT16_MAX ? INT16_MAX : v); }

/* The runs of the tile whose first output row is p: which vectors lie inside x, and in which column lanes begin. */
static void masked_runs(const hk_dwp_job *j, int64_t z, int64_t p, hk_dw_run *to) {
  const hk_geom *g = j->g;
  const hk_tap_runs *c = &j->p->chain;
  for (int64_t i = 0, tap = 0; i < c->run_count; tap += c->runs[i++].taps) {
    const int64_t t = c->order[tap], s = t % g->win[2], r = t / g->win[2] % g->win[1], a = t / g->win[2] / g->win[1];
    const int64_t depth = hk_geom_source(g, 0, z, a), row = hk_geom_source(g, 1, p, r);
    to[i] = c->runs[i];
    to[i].column = (int32_t)(s * g->dil[2] - g->lo[2]);
    to[i].first = clamp16(hk_ceil_div(-row, g->stride[1]));
    to[i].last = depth < 0 || depth >= g->in[0] ? 0 : clamp16(hk_ceil_div(g->in[1] - row, g->stride[1]));
  }
}

static void run_masked(hk_dwp_job *j, int64_t index, int64_t from, int64_t to) {
  const hk_geom *g = j->g;
  const hk_dwp *d = j->p;
  float ordered[HK_DW_TAPS_NOW];
  hk_dw_run runs[HK_DWP_RUNS];
  hk_dwp_args *a = &j->down;
  const int64_t z = index / d->bands_p, top = index % d->bands_p * d->band_p,
                end = hk_min64(top + d->band_p, g->out[1]);
  for (int64_t p = top, i = 0; p < end; p += d->tile_rows, i++) masked_runs(j, z, p, runs + i * d->chain.run_count);
  a->x_step = g->stride[1] * g->x.at[1];
  a->width = g->in[2];
  a->tiles = hk_ceil_div(g->out[2], d->vw);
  a->lanes = a->last_lanes = (int32_t)(g->out[2] - (a->tiles - 1) * d->vw);
  for (plane at = plane_at(j, from); from < to; from++, plane_next(j, &at)) {
    for (int64_t kk = 0; kk < g->k; kk++) {
      const hk_dwp_site s = make_site(j, &at, kk, ordered);
      const float *x = at.x + hk_geom_source(g, 0, z, 0) * g->x.at[0] - g->lo[1] * g->x.at[1] - g->lo[2];
      a->runs = runs;
      for (int64_t p = top; p < end; p += d->tile_rows, a->runs += d->chain.run_count) {
        const hk_dwp_place w = {.z = z, .p = p, .p_step = 1, .q_next = d->vw};
        a->x = x + p * a->x_step;
        a->vectors = (int32_t)hk_min64(d->tile_rows, end - p);
        hk_dwp_emit(&s, a, &w);
      }
    }
  }
}

static void body(void *context, int64_t i) {
  const hk_shared *h = context;
  const hk_dwp *d = h->plan->own;
  const hk_geom *g = &h->plan->task.geom;
  int64_t from, to, index, last;
  hk_piece(g->n * g->groups, i / d->parts, d->shards, &from, &to);
  hk_piece(d->bands, i % d->parts, d->parts, &index, &last);
  if (from == to || index == last) return;
  hk_dwp_job j = {h->plan, h->call, g, d, {0}, {0}};
  hk_dwp_templates(&j);
  for (; index < last; index++) {
    if (d->source == HK_DWP_DIRECT) run_direct(&j, index, from, to);
    else if (d->source == HK_DWP_BAND) run_band(&j, index, from, to);
    else if (d->source == HK_DWP_MASKED) run_masked(&j, index, from, to);
    else run_gather(&j, index, from, to);
  }
}

hk_status hk_dwp_run(const hk_plan *plan, const hk_call *call) {
  const hk_dwp *p = plan->own;
  hk_shared h = {plan, call};
  hk_plan_parallel(plan, p->shards * p->parts, body, &h);
  return HK_OK;
}
