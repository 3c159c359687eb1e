/* The least time of a problem on a machine: what `hankel plan --why` prints, and no prediction goes below. */
#include <math.h>

#include "cost/cost.h"

static double rate_above(double working_set) {
  const hk_cost_machine *m = hk_cost_here();
  if (working_set <= (double)hk_cost_l1()) return 2 * m->l1;
  if (working_set <= (double)hk_cost_l2()) return m->l1;
  return working_set <= (double)hk_cost_l3() ? m->l2 : m->l3;
}

/* Positions of x that some output reads, along a dimension, in those that there are. */
static double share_read(const hk_geom *g, int d) {
  const double reads = (double)g->out[d] * (double)g->win[d] / ((double)g->in[d] * (double)g->in_dil[d]);
  return reads < 1 ? reads : 1;
}

/* Taps that meet x at all: of weights that never do nothing is read. */
static double share_used(const hk_geom *g, int d) {
  int64_t used = 0, lo, hi;
  if (g->win[d] > 64 || g->in_dil[d] > 1) return 0; /* not worth counting: none, so that the floor stays one */
  for (int64_t s = 0; s < g->win[d]; s++) {
    hk_geom_valid(g, d, s, &lo, &hi);
    used += lo < hi;
  }
  return (double)used / (double)g->win[d];
}

static double bytes_read(const hk_geom *g) {
  const double images = (double)g->n * (double)(g->batch_grouped ? g->groups : 1);
  double x = images * (double)g->c * (double)(g->batch_grouped ? 1 : g->groups) * (double)hk_type_bytes(g->x_type);
  double f = (double)g->groups * (double)g->k * (double)g->gk * (double)hk_type_bytes(g->f_type);
  for (int d = 0; d < 3; d++) x *= (double)g->in[d] * share_read(g, d), f *= share_used(g, d);
  return x + f + (double)g->gm * (double)g->y_channels * (double)hk_type_bytes(g->y_type);
}

hk_cost_floors hk_cost_floors_of(const hk_geom *g, hk_isa isa, int32_t threads) {
  const double zeros = (double)g->in_dil[0] * (double)g->in_dil[1] * (double)g->in_dil[2], all = (double)threads;
  const double peak = hk_cost_peak(isa) * hk_cost_rate(g, isa) / (g->acc_type == HK_F64 ? 2 : 1);
  if (g->gm == 0 || g->gk == 0 || g->flops == 0) return (hk_cost_floors){0, 0};
  const double share = zeros > 1 ? 1 / zeros : hk_geom_inside(g), bytes = bytes_read(g);
  return (hk_cost_floors){g->flops * share / peak / all, bytes / (rate_above(bytes / all) * hk_cost_clock()) / all};
}

double hk_cost_above(hk_cost_floors f, bool direct, double seconds) {
  const double least = fmax(direct ? f.flops_s : 0, f.bytes_s);
  return fmax(seconds, least + seconds / 64);
}
