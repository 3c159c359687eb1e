/* Blocks of output pixels and the rows of x beneath them: the whole of padding, stride and dilation, expressed as
 * pointers. A tap that falls outside x for one pixel reads a row of zeros; outside for all, it is left out. */
#include <string.h>

#include "plan/dense/dense.h"

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* outputs p and p + phases use the same taps */
static int64_t phases(const hk_geom *g, int d) {
  if (g->in_dil[d] == 1) return 1;
  return hk_min64(g->in_dil[d] / gcd(g->in_dil[d], g->stride[d]), hk_max64(g->out[d], 1));
}

int64_t hk_grid_count(const hk_geom *g) { return phases(g, 0) * phases(g, 1) * phases(g, 2); }

hk_grid hk_grid_get(const hk_geom *g, int64_t index) {
  hk_grid r = {.pixels = g->n};
  for (int d = 2; d >= 0; d--) {
    r.step[d] = phases(g, d);
    r.count[d] = g->out[d];
    if (r.step[d] > 1) {
      r.first[d] = index % r.step[d];
      index /= r.step[d];
      r.count[d] = hk_ceil_div(g->out[d] - r.first[d], r.step[d]);
    }
    r.pixels *= r.count[d];
  }
  return r;
}

/* The sub-grids along a dimension are of two lengths: many[0] of length[0], which come first, then many[1] that are one
 * shorter. */
typedef struct lengths {
  int64_t many[2], length[2];
} lengths;

static lengths lengths_of(const hk_geom *g, int d) {
  const int64_t step = phases(g, d), each = g->out[d] / step, more = g->out[d] % step;
  if (!more) return (lengths){{step, 0}, {each, 0}};
  return (lengths){{more, step - more}, {each + 1, each}};
}

/* Pieces of the grids whose dimensions before d hold `pixels` together. */
static int64_t pieces_from(const lengths l[3], int d, int64_t pixels, int64_t unit) {
  if (d == 3) return hk_ceil_div(pixels, unit);
  int64_t sum = 0;
  for (int i = 0; i < 2; i++)
    if (l[d].many[i]) sum += l[d].many[i] * pieces_from(l, d + 1, pixels * l[d].length[i], unit);
  return sum;
}

int64_t hk_grid_pieces(const hk_geom *g, int64_t unit) {
  const lengths l[3] = {lengths_of(g, 0), lengths_of(g, 1), lengths_of(g, 2)};
  return pieces_from(l, 0, g->n, unit);
}

hk_grid hk_grid_find(const hk_geom *g, int64_t unit, int64_t *index) {
  if (g->in_dil[0] == 1 && g->in_dil[1] == 1 && g->in_dil[2] == 1) return hk_grid_get(g, 0);
  const lengths l[3] = {lengths_of(g, 0), lengths_of(g, 1), lengths_of(g, 2)};
  int64_t pixels = g->n, grid = 0;
  for (int d = 0; d < 3; d++) {
    int64_t each = pieces_from(l, d + 1, pixels * l[d].length[0], unit), first = 0;
    int i = 0;
    if (*index >= l[d].many[0] * each) {
      *index -= l[d].many[0] * each;
      first = l[d].many[0];
      i = 1;
      each = pieces_from(l, d + 1, pixels * l[d].length[1], unit);
    }
    grid = grid * (l[d].many[0] + l[d].many[1]) + first + *index / each;
    *index %= each;
    pixels *= l[d].length[i];
  }
  return hk_grid_get(g, grid);
}

void hk_block_make(hk_block *b, const hk_grid *grid, int64_t m0, int64_t count) {
  b->grid = grid;
  b->count = (int32_t)count;
  b->runs = 0;
  const int64_t line = m0 / grid->count[2], plane = line / grid->count[1];
  int64_t q = m0 - line * grid->count[2], at1 = line - plane * grid->count[1], n = plane / grid->count[0];
  int64_t at0 = plane - n * grid->count[0];
  for (int64_t m = 0; m < count; q = 0) {
    hk_run *r = &b->run[b->runs++];
    r->n = n;
    r->p[0] = grid->first[0] + grid->step[0] * at0;
    r->p[1] = grid->first[1] + grid->step[1] * at1;
    r->p[2] = grid->first[2] + grid->step[2] * q;
    r->m = (int32_t)m;
    r->count = (int32_t)hk_min64(count - m, grid->count[2] - q);
    m += r->count;
    if (++at1 < grid->count[1]) continue;
    at1 = 0;
    if (++at0 < grid->count[0]) continue;
    at0 = 0;
    n++;
  }
}

/* Index into x along d for output p and tap s; false when it falls between the elements of a dilated input. May lie
 * outside 0..in-1. */
static bool tap_index(const hk_geom *g, int d, int64_t p, int64_t s, int64_t *index) {
  const int64_t i = hk_geom_source(g, d, p, s);
  *index = i;
  if (g->in_dil[d] == 1) return true; /* spares most problems the division */
  *index = i / g->in_dil[d];
  return i % g->in_dil[d] == 0;
}

bool hk_line_offset(const hk_geom *g, const hk_run *r, int64_t s0, int64_t s1, int64_t *offset) {
  int64_t i0, i1;
  if (!tap_index(g, 0, r->p[0], s0, &i0) || i0 < 0 || i0 >= g->in[0]) return false;
  if (!tap_index(g, 1, r->p[1], s1, &i1) || i1 < 0 || i1 >= g->in[1]) return false;
  *offset = r->n * g->x.outer + i0 * g->x.at[0] + i1 * g->x.at[1];
  return true;
}

static int64_t clip(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

int64_t hk_index_step(const hk_geom *g, const hk_block *b) {
  return hk_max64(1, b->grid->step[2] * g->stride[2] / g->in_dil[2]);
}

/* Runs that lie inside or outside as a whole, nearly all of them, are spared the divisions. */
void hk_run_span(const hk_geom *g, const hk_run *r, int64_t inc, int64_t s2, int64_t *lo, int64_t *hi, int64_t *index) {
  *lo = *hi = 0;
  if (!tap_index(g, 2, r->p[2], s2, index)) return;
  const int64_t first = *index, last = first + (r->count - 1) * inc;
  if (last < 0 || first >= g->in[2]) return;
  *lo = first >= 0 ? 0 : clip(hk_ceil_div(-first, inc), 0, r->count);
  *hi = last < g->in[2] ? r->count : clip(hk_ceil_div(g->in[2] - first, inc), *lo, r->count);
}

/* Rows of one run under one tap; true when any of them lies in x. */
static inline bool run_rows(const hk_geom *g, const hk_run *r, int64_t inc, const float *line, int64_t s2,
                            const float *zeros, const float **to) {
  int64_t i = 0, lo = 0, hi = 0;
  if (line) hk_run_span(g, r, inc, s2, &lo, &hi, &i);
  for (int64_t j = 0; j < lo; j++) to[j] = zeros;
  for (int64_t j = hi; j < r->count; j++) to[j] = zeros;
  if (lo == hi) return false;
  const float *x = line + (i + lo * inc) * g->x.at[2];
  const int64_t step = inc * g->x.at[2];
  for (int64_t j = lo; j < hi; j++, x += step) to[j] = x;
  return true;
}

int64_t hk_rows_make(const hk_geom *g, const hk_block *b, const float *x, int64_t t0, int64_t t1, hk_rows *rows) {
  const int64_t inc = hk_index_step(g, b);
  int64_t kept = 0, s2 = t0 % g->win[2], s1 = t0 / g->win[2] % g->win[1], s0 = t0 / g->win[2] / g->win[1];
  for (int64_t t = t0; t < t1; t++) {
    const float **to = rows->table + kept * rows->step;
    bool any = false;
    for (int32_t i = 0; i < b->runs; i++) {
      const hk_run *r = &b->run[i];
      int64_t line;
      const bool inside = hk_line_offset(g, r, s0, s1, &line);
      any |= run_rows(g, r, inc, inside ? x + line : NULL, s2, rows->zeros, to + r->m);
    }
    if (any) rows->tap[kept++] = t;
    if (++s2 < g->win[2]) continue;
    s2 = 0;
    if (++s1 < g->win[1]) continue;
    s1 = 0;
    s0++;
  }
  return kept;
}

bool hk_rows_mergeable(const hk_geom *g) {
  return g->in_dil[2] == 1 && (g->dil[2] == 1 || g->win[2] == 1) && g->x.at[2] == g->c && g->win[2] > 1;
}

/* One window row that sticks out of x, completed with zeros in scratch; NULL when it lies outside altogether. */
static const float *window_in_scratch(const hk_geom *g, const float *line, int64_t i, float **scratch) {
  const int64_t length = g->win[2] * g->c, lo = clip(-i, 0, g->win[2]), hi = clip(g->in[2] - i, lo, g->win[2]);
  if (lo == hi) return NULL;
  float *s = *scratch;
  *scratch += length;
  memset(s, 0, (size_t)length * sizeof *s);
  memcpy(s + lo * g->c, line + (i + lo) * g->c, (size_t)((hi - lo) * g->c) * sizeof *s);
  return s;
}

/* Window rows of one run: first those that stick out to the left, then the whole ones, then the right. */
static bool run_windows(const hk_geom *g, const hk_run *r, const float *line, const float *zeros, float **scratch,
                        const float **to) {
  bool any = false;
  int64_t lo = r->count, hi = r->count;
  const int64_t i = hk_geom_source(g, 2, r->p[2], 0), inc = g->stride[2];
  if (line) {
    lo = clip(hk_ceil_div(-i, inc), 0, r->count);
    hi = clip(hk_ceil_div(g->in[2] - g->win[2] + 1 - i, inc), lo, r->count);
  }
  for (int64_t j = lo == 0 ? hi : 0; j < r->count; j = j + 1 == lo ? hi : j + 1) {
    const float *s = line ? window_in_scratch(g, line, i + j * inc, scratch) : NULL;
    any |= s != NULL;
    to[j] = s ? s : zeros;
  }
  if (lo == hi) return any;
  const float *x = line + (i + lo * inc) * g->c;
  for (int64_t j = lo; j < hi; j++, x += inc * g->c) to[j] = x;
  return true;
}

int64_t hk_rows_make_merged(const hk_geom *g, const hk_block *b, const float *x, int64_t t0, int64_t t1, float *scratch,
                            hk_rows *rows) {
  int64_t kept = 0;
  for (int64_t t = t0; t < t1; t++) {
    const float **to = rows->table + kept * rows->step;
    bool any = false;
    for (int32_t i = 0; i < b->runs; i++) {
      const hk_run *r = &b->run[i];
      int64_t line;
      const bool inside = hk_line_offset(g, r, t / g->win[1], t % g->win[1], &line);
      any |= run_windows(g, r, inside ? x + line : NULL, rows->zeros, &scratch, to + r->m);
    }
    if (any) rows->tap[kept++] = t;
  }
  return kept;
}

/* Appends a piece; neighbouring zeros, and lines that continue each other, become one. */
static int64_t add_piece(hk_gather_piece *piece, int64_t n, hk_gather_piece p, int64_t step) {
  if (p.count == 0) return n;
  hk_gather_piece *last = n ? &piece[n - 1] : NULL;
  if (last && last->zero == p.zero && (p.zero || p.from == last->from + last->count * step)) {
    last->count += p.count;
    return n;
  }
  piece[n] = p;
  return n + 1;
}

int64_t hk_pieces_make(const hk_geom *g, const hk_block *b, int64_t tap, int64_t width, hk_gather_piece *piece,
                       int64_t *step) {
  const int64_t s2 = tap % g->win[2], s1 = tap / g->win[2] % g->win[1], s0 = tap / g->win[2] / g->win[1];
  const int64_t inc = hk_index_step(g, b);
  int64_t n = 0;
  bool any = false;
  *step = inc * g->x.at[2];
  for (int32_t i = 0; i < b->runs; i++) {
    const hk_run *r = &b->run[i];
    int64_t line = 0, index = 0, lo = 0, hi = 0;
    if (hk_line_offset(g, r, s0, s1, &line)) hk_run_span(g, r, inc, s2, &lo, &hi, &index);
    if (lo == hi) lo = hi = 0;
    n = add_piece(piece, n, (hk_gather_piece){.at = r->m, .count = (int32_t)lo, .zero = true}, *step);
    if (lo < hi) {
      any = true;
      n = add_piece(piece, n,
                    (hk_gather_piece){.from = line + (index + lo * inc) * g->x.at[2],
                                      .at = r->m + (int32_t)lo,
                                      .count = (int32_t)(hi - lo)},
                    *step);
    }
    n = add_piece(piece, n, (hk_gather_piece){.at = r->m + (int32_t)hi, .count = r->count - (int32_t)hi, .zero = true},
                  *step);
  }
  n = add_piece(piece, n, (hk_gather_piece){.at = b->count, .count = (int32_t)(width - b->count), .zero = true}, *step);
  return any ? n : 0;
}
