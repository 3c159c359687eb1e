/* Pixels of a block in the order of the taps they use. Near the borders of x some taps fall into the padding; a
 * register tile leaves such a tap out only if all its pixels do without it. So the pixels are grouped by column, then
 * by line, wherever the set of taps changes, and tiles never cross a group. */
#include "plan/dense/dense.h"

#define MOST_WINDOW 4096 /* along a dimension whose taps are looked at one by one */
#define LEAST 3          /* pixels of a group worth its own tiles: a tile of two waits for the weights */

/* Where, along d, the set of taps inside x changes: cut[0] = 0 .. cut[count] = out. Returns count, or 1 and *exact
 * false when there are more places than HK_CUTS, or too many taps to look at. */
static int32_t find_cuts(const hk_geom *g, int d, int64_t cut[HK_CUTS + 1], bool *exact) {
  int32_t n = 1;
  cut[0] = 0;
  cut[1] = g->out[d];
  if (!hk_geom_leaves(g, d)) return 1;
  if (g->win[d] > MOST_WINDOW) *exact = false;
  if (g->win[d] > MOST_WINDOW) return 1;
  for (int64_t from = 0; from < g->out[d];) {
    int64_t next = g->out[d];
    for (int64_t s = 0; s < g->win[d]; s++) {
      int64_t lo, hi;
      hk_geom_valid(g, d, s, &lo, &hi);
      if (lo > from && lo < next) next = lo;
      if (hi > from && hi < next) next = hi;
    }
    if (next == g->out[d]) break;
    if (n == HK_CUTS) {
      n = 1;
      *exact = false;
      break;
    }
    cut[n++] = from = next;
  }
  cut[n] = g->out[d];
  return n;
}

hk_cuts hk_cuts_make(const hk_geom *g, bool every) {
  hk_cuts c = {.least = every ? 1 : LEAST};
  if (hk_grid_count(g) > 1 || g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) return c;
  c.exact = true;
  c.columns = find_cuts(g, 2, c.column, &c.exact);
  c.lines = find_cuts(g, 1, c.line, &c.exact);
  c.planes = find_cuts(g, 0, c.plane, &c.exact);
  if (c.columns == 1 && c.lines == 1 && c.planes == 1) c.columns = 0;
  return c;
}

static int32_t class_of(const int64_t *cut, int64_t p) {
  int32_t i = 0;
  while (p >= cut[i + 1]) i++;
  return i;
}

/* Drops the ends of groups that are too small: they join the next one. */
static int32_t join(int32_t *end, int32_t groups, int32_t least) {
  int32_t n = 0, from = 0;
  for (int32_t i = 0; i < groups; i++) {
    if (i + 1 < groups && (end[i] - from < least || end[groups - 1] - end[i] < least)) continue;
    end[n++] = from = end[i];
  }
  return n;
}

int32_t hk_block_group(const hk_cuts *c, hk_block *b, int32_t *end) {
  hk_run run[HK_BLOCK_MAX];
  int32_t runs = 0, groups = 0, m = 0;
  for (int32_t h = 0; h < c->columns; h++) {
    int32_t class = -1;
    for (int32_t i = 0; i < b->runs; i++) {
      hk_run r = b->run[i];
      const int64_t last = r.p[2] + r.count, lo = hk_max64(r.p[2], c->column[h]), hi = hk_min64(last, c->column[h + 1]);
      if (lo >= hi) continue;
      const int32_t now = class_of(c->plane, r.p[0]) * c->lines + class_of(c->line, r.p[1]);
      if (m && class != now) end[groups++] = m;
      class = now;
      r.p[2] = lo;
      r.count = (int32_t)(hi - lo);
      r.m = m;
      m += r.count;
      run[runs++] = r;
    }
  }
  end[groups++] = m;
  b->runs = runs;
  for (int32_t i = 0; i < runs; i++) b->run[i] = run[i];
  return join(end, groups, c->least);
}
