/* The rows of x under a block of dots, by pointer: as dense/rows.c makes them, of elements of any size, and with a row
 * of x_zero in the padding. */
#include <string.h>

#include "plan/dense/dots.h"

/* Rows of one run under one tap; true when any of them lies in x. */
static bool run_rows(const hk_geom *g, const hk_dots_own *o, const hk_run *r, int64_t inc, const char *line, int64_t s2,
                     const char **to) {
  const int64_t bytes = o->bytes;
  int64_t i = 0, lo = 0, hi = 0;
  if (line) hk_run_span(g, r, inc, s2, &lo, &hi, &i);
  for (int64_t j = 0; j < lo; j++) to[j] = o->zeros;
  for (int64_t j = hi; j < r->count; j++) to[j] = o->zeros;
  if (lo == hi) return false;
  const int64_t step = inc * g->x.at[2] * bytes;
  const char *x = line + (i + lo * inc) * g->x.at[2] * bytes;
  for (int64_t j = lo; j < hi; j++, x += step) to[j] = x;
  return true;
}

/* Row i of a window that may stick out of its line, completed with x_zero in scratch; NULL when it lies outside. */
static const char *window_row(const hk_geom *g, int64_t bytes, const char *line, int64_t i, char **scratch) {
  const int64_t each = g->c * bytes, length = g->win[2] * each;
  const int64_t lo = hk_min64(hk_max64(-i, 0), g->win[2]), hi = hk_max64(lo, hk_min64(g->in[2] - i, g->win[2]));
  if (lo == hi) return NULL;
  char *s = *scratch;
  *scratch += length;
  memset(s, g->x_zero, (size_t)length);
  memcpy(s + lo * each, line + (i + lo) * each, (size_t)((hi - lo) * each));
  return s;
}

/* Window rows of one run: those that stick out of the line go through scratch, the others lie at one distance. */
static bool run_windows(const hk_geom *g, const hk_run *r, int64_t bytes, const char *line, const char *zeros,
                        char **scratch, const char **to) {
  const int64_t i = hk_geom_source(g, 2, r->p[2], 0), inc = g->stride[2], count = r->count;
  const int64_t lo = line ? hk_min64(count, hk_max64(0, hk_ceil_div(-i, inc))) : count;
  const int64_t inside = line ? hk_ceil_div(g->in[2] - g->win[2] + 1 - i, inc) : 0;
  const int64_t hi = hk_max64(lo, hk_min64(count, inside));
  bool any = lo < hi;
  for (int64_t j = lo ? 0 : hi; j < count; j = j + 1 == lo ? hi : j + 1) {
    const char *row = line ? window_row(g, bytes, line, i + j * inc, scratch) : NULL;
    any |= row != NULL;
    to[j] = row ? row : zeros;
  }
  const int64_t step = inc * g->c * bytes;
  const char *x = line ? line + (i + lo * inc) * g->c * bytes : NULL;
  for (int64_t j = lo; j < hi; j++, x += step) to[j] = x;
  return any;
}

void hk_dots_rows_make(const hk_geom *g, const hk_dots_own *o, const hk_block *b, const char *x, int64_t t0, int64_t t1,
                       hk_dots_rows *rows) {
  const int64_t inc = hk_index_step(g, b), last = o->merged ? 1 : g->win[2];
  char *scratch = rows->scratch;
  rows->kept = 0;
  for (int64_t t = t0; t < t1; t++) {
    const char **to = rows->table + rows->kept * rows->step;
    bool any = rows->all;
    for (int32_t i = 0; i < b->runs; i++) {
      const hk_run *r = &b->run[i];
      int64_t at;
      const bool inside = hk_line_offset(g, r, t / last / g->win[1], t / last % g->win[1], &at);
      const char *line = inside ? x + at * o->bytes : NULL;
      any |= o->merged ? run_windows(g, r, o->bytes, line, o->zeros, &scratch, to + r->m)
                       : run_rows(g, o, r, inc, line, t % last, to + r->m);
    }
    if (any) rows->tap[rows->kept++] = t;
  }
}
