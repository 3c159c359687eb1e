/* Joins narrow groups: j groups of c channels and k filters become one of j*c channels and j*k filters, whose
 * filters are zero between groups. The tensor cores then work in full blocks, at j times the necessary products;
 * with 16 channels per group 3 of 4 products are wasted, where one block per group would waste 15 of 16. Zero times
 * an Inf or NaN of another group is NaN, so every NaN of y is recomputed afterwards (hk_recompute_nan). That is
 * impossible where y may overwrite its residual. */
#include "cuda/cuda.h"

enum { MOST = 16 };

/* Products of all groups in units of a 64 x 64 block: channels in 128-byte runs, those of a single group in halves
 * of them; filters in tiles of at least 64. */
static double work(const hk_geom *g, int64_t count) {
  const int64_t run = 128 / (int64_t)hk_type_bytes(g->x_type), piece = count < g->groups ? run : run / 2;
  return (double)(g->groups / count) * (double)hk_round_up(g->c * count, piece) / (double)run *
         (double)hk_max64(64, hk_round_up(g->k * count, 16)) / 64;
}

int64_t hk_cu_join_count(const hk_geom *g, const hk_epi *e, bool unaligned) {
  const bool whole = g->c * (int64_t)hk_type_bytes(g->x_type) % 128 == 0;
  int64_t best = 1;
  if (g->groups < 2 || g->batch_grouped || g->c < 4 || g->k < 2 || g->x.group != g->c * g->x.channel) return 1;
  if (e->e.residual || !hk_cu_recompute_takes(g, e, unaligned)) return 1;
  for (int64_t count = 2; count <= hk_min64(g->groups, MOST); ++count)
    if (g->groups % count == 0 && (whole ? work(g, count) < work(g, best) : work(g, count) <= work(g, best)))
      best = count;
  return best;
}

hk_geom hk_cu_join(const hk_geom *g, int64_t count) {
  hk_geom to = *g;
  to.groups /= count;
  to.c *= count, to.k *= count;
  to.x.group *= count, to.y.group *= count;
  to.gn = to.k, to.gk = to.c * to.taps;
  return to;
}
