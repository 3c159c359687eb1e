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
