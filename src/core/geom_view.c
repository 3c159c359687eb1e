/* Geometries made from another: what a rewrite leaves for the algorithm inside it. Every derived field is counted
 * again, so that a view is as consistent as what hk_geom_make returns. */
#include "core/core.h"

static double all_inputs(const hk_geom *g) {
  return (double)g->groups * (double)g->n * (double)g->c * (double)g->in[0] * (double)g->in[1] * (double)g->in[2];
}

static void count(hk_geom *g) {
  g->taps = g->win[0] * g->win[1] * g->win[2];
  g->pixels = g->out[0] * g->out[1] * g->out[2];
  g->gm = g->n * g->pixels;
  g->gn = g->k;
  g->gk = g->c * g->taps;
  g->flops = 2.0 * (double)g->groups * (double)g->gm * (double)g->gn * (double)g->gk;
  g->bytes = all_inputs(g) * (double)hk_type_bytes(g->x_type) +
             (double)g->groups * (double)g->k * (double)g->gk * (double)hk_type_bytes(g->f_type) +
             (double)g->gm * (double)g->y_channels * (double)hk_type_bytes(g->y_type);
}

void hk_geom_set_layout(hk_geom *g, const hk_strides *x, const hk_strides *y) {
  if (x) g->x = *x;
  if (y) g->y = *y;
}

void hk_geom_set_types(hk_geom *g, hk_type x, hk_type f, hk_type y) {
  g->x_type = x, g->f_type = f, g->y_type = y;
  if (!hk_type_is_int8(y)) g->y_zero = 0;
  count(g);
}

void hk_geom_set_ungated(hk_geom *g, const hk_strides *y) {
  g->y_channels = g->k * g->groups;
  g->y = *y;
  count(g);
}

void hk_geom_set_joined(hk_geom *g, const hk_strides *x) {
  g->in[2] += g->lo[2];
  g->in_span[2] = g->in[2];
  g->lo[2] = 0;
  g->x = *x;
  count(g);
}

void hk_geom_set_slice(hk_geom *g, int64_t images, int64_t groups, int d, int64_t rows) {
  g->n = images;
  g->groups = groups;
  g->y_channels = g->k * groups;
  if (d >= 0) {
    g->in[d] = g->in_span[d] = hk_geom_source(g, d, rows - 1, g->win[d] - 1) + g->lo[d] + 1;
    g->out[d] = rows;
    g->lo[d] = g->hi[d] = 0;
  }
  count(g);
}

static void interleave(hk_strides *s, int64_t rows) {
  s->at[1] = s->at[2];
  s->at[2] *= rows;
}

void hk_geom_set_phase(hk_geom *g, int64_t rows, int64_t in, int64_t out) {
  const int64_t d = g->dil[2];
  if (g->rank < 2) g->rank = 2;
  interleave(&g->x, d);
  interleave(&g->y, d);
  g->in[1] = g->in_span[1] = g->out[1] = rows;
  g->in[2] = g->in_span[2] = in;
  g->out[2] = out;
  g->lo[2] /= d;
  g->hi[2] = (out - 1) + (g->win[2] - 1) - g->lo[2] - (in - 1);
  /* Those of a window, a result and an x of one row meant nothing. */
  g->dil[2] = g->dil[1] = g->stride[1] = g->in_dil[1] = 1;
  g->hi[1] = 0;
  count(g);
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

int64_t hk_geom_phases(const hk_geom *g, int d) {
  return hk_min64(g->in_dil[d] / gcd(g->in_dil[d], g->stride[d]), hk_max64(g->out[d], 1));
}

/* Tap s of output first + every*t lies at (first + every*t)*stride + s*dil - lo of the dilated x, which must be a
 * multiple of in_dil: since every*stride is one, the taps that are have one remainder modulo step = in_dil /
 * gcd(in_dil, dil), or there is none. Divided by in_dil, the place is t*stride' + j*dil' - lo' for tap + step*j. */
hk_polyphase hk_geom_phase(const hk_geom *g, int d, int64_t first) {
  const int64_t by = g->in_dil[d], every = by / gcd(by, g->stride[d]), step = by / gcd(by, g->dil[d]);
  hk_polyphase p = {.first = first,
                    .every = every,
                    .out = g->out[d] > first ? hk_ceil_div(g->out[d] - first, every) : 0,
                    .step = step,
                    .stride = every * g->stride[d] / by,
                    .dil = step * g->dil[d] / by};
  while (p.tap < hk_min64(step, g->win[d]) && hk_geom_source(g, d, first, p.tap) % by) p.tap++;
  if (p.tap == hk_min64(step, g->win[d])) return p;
  p.win = hk_ceil_div(g->win[d] - p.tap, step);
  p.lo = -hk_geom_source(g, d, first, p.tap) / by;
  return p;
}

void hk_geom_set_polyphase(hk_geom *g, const hk_polyphase phase[3]) {
  for (int d = 0; d < 3; d++) {
    const hk_polyphase *p = &phase[d];
    g->in_span[d] = g->in[d];
    g->in_dil[d] = 1;
    g->out[d] = p->out, g->win[d] = p->win;
    g->stride[d] = p->stride, g->dil[d] = p->dil, g->lo[d] = p->lo;
    g->hi[d] = hk_geom_source(g, d, p->out - 1, p->win - 1) - (g->in[d] - 1);
    g->f.at[d] *= p->step;
    g->y.at[d] *= p->every;
  }
  count(g);
}

hk_polyphase hk_geom_merged(const hk_geom *g, int d) {
  hk_polyphase all = {0};
  int64_t first = INT64_MAX, last = INT64_MIN; /* places of x, from that of the output */
  for (int64_t i = 0; i < hk_geom_phases(g, d); i++) {
    const hk_polyphase p = hk_geom_phase(g, d, i);
    if (!i) all = p;
    if (!p.win) continue;
    first = hk_min64(first, -p.lo), last = hk_max64(last, p.win - 1 - p.lo);
    if (p.win > 1) all.dil = p.dil;
  }
  all.tap = 0, all.step = 1;
  all.lo = -first, all.win = first > last ? 0 : last - first + 1;
  return all;
}

void hk_geom_set_subpixel(hk_geom *g, const hk_polyphase merged[3]) {
  const int64_t k = g->k, row = g->y.at[1];
  hk_geom_set_polyphase(g, merged);
  g->k *= merged[1].every * merged[2].every;
  g->y_channels = g->k;
  g->fold = merged[1].every > 1 ? merged[2].every * k : 0;
  g->fold_step = row;
  g->f = (hk_strides){.channel = 1};
  g->f.at[2] = g->c, g->f.at[1] = g->f.at[2] * g->win[2], g->f.at[0] = g->f.at[1] * g->win[1];
  g->f.outer = g->f.at[0] * g->win[0];
  count(g);
}
