/* Cuts the pixels of an output row or plane into tiles for strip, and says what they cost. See strip.h. */
#include "plan/dense/strip.h"

#define LEAST 3             /* pixels with the same taps that are worth tiles of their own */
#define MOST_CLASSES 64     /* along a dimension */
#define MOST_PIXELS 1024    /* of a plane that is cut as one */
#define MOST_TAPS (1 << 18) /* of all spans of a row */
#define MOST_SPANS (HK_TABLE_BYTES / (int64_t)sizeof(hk_strip_span))

hk_strip_range hk_strip_inside(const hk_geom *g, int d, int64_t p) {
  const int64_t first = hk_geom_source(g, d, p, 0), dil = g->dil[d]; /* where tap 0 lies */
  const int64_t from = first < 0 ? hk_ceil_div(-first, dil) : 0;
  const int64_t to = first < g->in[d] ? hk_min64(g->win[d], hk_ceil_div(g->in[d] - first, dil)) : 0;
  return from < to ? (hk_strip_range){(int32_t)from, (int32_t)to} : (hk_strip_range){0, 0};
}

static bool inside(hk_strip_range r, int64_t s) { return s >= r.from && s < r.to; }

/* Neighbours along d that find the same taps inside x. */
typedef struct class {
  int64_t from, to, taps;
} class;

/* Their number; 0: there are too many. */
static int find_classes(const hk_geom *g, int d, class *to) {
  int n = 0;
  for (int64_t p = 0; p < g->out[d]; p++) {
    const hk_strip_range r = hk_strip_inside(g, d, p), before = p ? hk_strip_inside(g, d, p - 1) : r;
    if (p && r.from == before.from && r.to == before.to) {
      to[n - 1].to = p + 1;
      continue;
    }
    if (n == MOST_CLASSES) return 0;
    to[n++] = (class){p, p + 1, r.to - r.from};
  }
  return n;
}

static int64_t tiles_of(const hk_strip_cut *c, int64_t pixels) { return hk_ceil_div(pixels, c->most); }

/* Products, or the loads that feed them, or the latency of few sums; then what a tap, a tile's end and a call take (Zen
 * 4). */
static double tile_cycles(const hk_geom *g, const hk_strip_cut *c, double pixels, double taps, double product) {
  const int64_t wide = c->paired ? 2 : c->vectors, steps = c->paired ? hk_ceil_div(g->c, 2) : g->c;
  const double vectors = (double)wide, sums = pixels * vectors, feed = (wide == 1 ? 0.68 : 0.55) * (pixels + vectors);
  double step = 1.02 * sums * product;
  if (step < feed) step = feed;
  if (step < 4.2) step = 4.2;
  if (c->paired)
    return taps * ((double)steps * step + (steps > 2 ? 2.0 : 3.5)) + 9.0 + (g->k % 8 ? 2.5 * pixels : 0.0) + c->call;
  return taps * ((double)steps * step + 2.0 + 0.8 * pixels) + sums + 8.0 + c->call;
}

/* Taps that some pixel finds inside: ranges of neighbours overlap or touch. */
static hk_strip_range join(hk_strip_range a, hk_strip_range b) {
  if (a.from == a.to) return b;
  if (b.from == b.to) return a;
  return (hk_strip_range){a.from < b.from ? a.from : b.from, a.to > b.to ? a.to : b.to};
}

/* Tiles [from, to) of a row all of whose taps lie inside x: those between the outputs that the first and the last tap
 * reach. */
static void inner_tiles(const hk_geom *g, int64_t tile, int64_t *from, int64_t *to) {
  int64_t first[2], last[2];
  hk_geom_valid(g, 2, 0, &first[0], &last[0]);
  hk_geom_valid(g, 2, g->win[2] - 1, &first[1], &last[1]);
  *from = hk_ceil_div(hk_max64(first[0], first[1]), tile);
  *to = hk_max64(*from, hk_min64(last[0], last[1]) / tile);
}

static int64_t tile_of(const hk_geom *g, const hk_strip_cut *c) {
  return hk_ceil_div(g->out[2], tiles_of(c, g->out[2]));
}

static double row_cycles(const hk_geom *g, const hk_strip_cut *c, double product) {
  double share = 1, cycles = 0;
  for (int d = 0; d < 2; d++) {
    double taps = 0;
    for (int64_t s = 0; s < g->win[d]; s++) {
      int64_t lo, hi;
      hk_geom_valid(g, d, s, &lo, &hi);
      taps += (double)(hi - lo);
    }
    share *= taps / (double)(g->win[d] * g->out[d]);
  }
  const int64_t tiles = tiles_of(c, g->out[2]), tile = tile_of(g, c);
  const double rows = share * (double)(g->win[0] * g->win[1]);
  int64_t from, to;
  inner_tiles(g, tile, &from, &to);
  for (int64_t i = 0; i < tiles;) {
    const int64_t alike = i == from && to > from ? to - from : 1, q = i * tile, count = hk_min64(tile, g->out[2] - q);
    const hk_strip_range kept = join(hk_strip_inside(g, 2, q), hk_strip_inside(g, 2, q + count - 1));
    cycles += (double)alike * tile_cycles(g, c, (double)count, rows * (double)(kept.to - kept.from), product);
    i += alike;
  }
  return (double)g->out[1] * (cycles + (c->paired ? 85.0 : 60.0));
}

typedef struct plane_class {
  class row[MOST_CLASSES], column[MOST_CLASSES];
  int rows, columns;
} plane_class;

static bool plane_classes(const hk_geom *g, plane_class *p) {
  if (g->out[1] == 1 || g->out[1] > MOST_PIXELS || g->out[2] > MOST_PIXELS / g->out[1]) return false;
  p->rows = find_classes(g, 1, p->row);
  p->columns = find_classes(g, 2, p->column);
  return p->rows && p->columns;
}

static int64_t class_pixels(const plane_class *p, int i, int j) {
  return (p->row[i].to - p->row[i].from) * (p->column[j].to - p->column[j].from);
}

static double plane_cycles(const hk_geom *g, const hk_strip_cut *c, double product) {
  plane_class p;
  if (!plane_classes(g, &p)) return -1;
  double cycles = 0;
  int64_t rest = 0;
  hk_strip_range row = {0, 0}, column = {0, 0}; /* taps of the rest */
  for (int i = 0; i < p.rows; i++)
    for (int j = 0; j < p.columns; j++) {
      const int64_t pixels = class_pixels(&p, i, j), tiles = tiles_of(c, pixels);
      const double taps = (double)(p.row[i].taps * p.column[j].taps * g->win[0]);
      if (pixels < LEAST) {
        rest += pixels;
        row = join(row, hk_strip_inside(g, 1, p.row[i].from));
        column = join(column, hk_strip_inside(g, 2, p.column[j].from));
      } else cycles += (double)tiles * (tile_cycles(g, c, (double)pixels / (double)tiles, taps, product) + 20.0);
    }
  const double taps = (double)(g->win[0] * (row.to - row.from) * (column.to - column.from));
  if (rest)
    cycles += (double)tiles_of(c, rest) * (tile_cycles(g, c, (double)hk_min64(rest, c->most), taps, product) + 20.0);
  return cycles;
}

/* Most spans of a row: its inner tiles are one. */
static int64_t row_spans(const hk_geom *g, int64_t tile) {
  int64_t from, to;
  inner_tiles(g, tile, &from, &to);
  return hk_ceil_div(g->out[2], tile) - (to - from) + 1;
}

double hk_strip_cycles(const hk_geom *g, int64_t way, const hk_strip_cut *c, double product) {
  if (way == HK_STRIP_BY_PLANE) return plane_cycles(g, c, product);
  if ((g->lo[2] > 0 || g->hi[2] > 0) && tiles_of(c, g->out[2]) > MOST_TAPS / g->taps) return -1;
  if (row_spans(g, tile_of(g, c)) > MOST_SPANS) return -1;
  return row_cycles(g, c, product);
}

/* ---- spans */

typedef struct place {
  int64_t p, q;
} place;

typedef struct cutter {
  const hk_task *task;
  hk_strip_cut *cut;
  int64_t way, f_tap;
  hk_strip_tap *taps; /* where the next span's go */
} cutter;

/* Which of the pixels find tap r, s inside x; rows of an output row are chosen as it runs. */
static uint32_t tap_mask(const cutter *k, const place *at, int64_t count, int64_t r, int64_t s) {
  const hk_geom *g = &k->task->geom;
  uint32_t mask = 0;
  for (int64_t m = 0; m < count; m++) {
    const bool row = k->way == HK_STRIP_BY_ROWS || inside(hk_strip_inside(g, 1, at[m].p), r);
    if (row && inside(hk_strip_inside(g, 2, at[m].q), s)) mask |= 1u << m;
  }
  return mask;
}

static int64_t make_taps(const cutter *k, const place *at, int64_t count) {
  const hk_geom *g = &k->task->geom;
  hk_strip_tap *to = k->taps;
  for (int64_t a = 0; a < g->win[0]; a++)
    for (int64_t r = 0; r < g->win[1]; r++)
      for (int64_t s = 0; s < g->win[2]; s++) {
        const uint32_t mask = tap_mask(k, at, count, r, s);
        if (!mask) continue;
        *to++ = (hk_strip_tap){
            .x = (int32_t)(a * g->dil[0] * g->x.at[0] + r * g->dil[1] * g->x.at[1] + s * g->dil[2] * g->x.at[2]),
            .f = (int32_t)(((a * g->win[1] + r) * g->win[2] + s) * k->f_tap),
            .mask = mask};
      }
  return to - k->taps;
}

static bool same_taps(const hk_strip_tap *a, const hk_strip_tap *b, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (a[i].x != b[i].x || a[i].f != b[i].f || a[i].mask != b[i].mask) return false;
  return true;
}

/* The step of x from pixel to pixel, where all steps of x and of y are alike and all taps lie inside; else 0. */
static int64_t even_step(const hk_strip_span *s, int64_t taps) {
  for (int64_t t = 0; t < taps; t++)
    if (s->taps[t].mask != (1u << s->pixels) - 1) return 0;
  for (int64_t m = 2; m < s->pixels; m++)
    if (s->x_at[m] != m * s->x_at[1] || s->y_at[m] != m * s->y_at[1]) return 0;
  return s->pixels > 1 ? s->x_at[1] : 1;
}

/* `tiles` tiles, the first of these pixels; they join the span before where only their place differs. */
static void add_span(cutter *k, const place *at, int64_t count, int64_t tiles) {
  const hk_geom *g = &k->task->geom;
  const hk_strides *c = &k->task->epi.c;
  const int64_t kept = make_taps(k, at, count);
  hk_strip_span *s = &k->cut->span[k->cut->count], *before = k->cut->count ? s - 1 : NULL;
  if (k->way == HK_STRIP_BY_ROWS && before && before->pixels == count && same_taps(before->taps, k->taps, kept) &&
      before->taps + kept == k->taps) {
    before->tiles += tiles;
    return;
  }
  *s = (hk_strip_span){.tiles = tiles, .pixels = (int32_t)count, .taps = k->taps};
  s->kept = (int32_t)(kept / g->win[0] / (k->way == HK_STRIP_BY_ROWS ? g->win[1] : 1));
  s->x = at->p * g->stride[1] * g->x.at[1] + at->q * g->stride[2] * g->x.at[2];
  s->y = at->p * g->y.at[1] + at->q * g->y.at[2];
  s->c = at->p * c->at[1] + at->q * c->at[2];
  for (int64_t m = 0; m < count; m++) {
    s->x_at[m] = (at[m].p - at->p) * g->stride[1] * g->x.at[1] + (at[m].q - at->q) * g->stride[2] * g->x.at[2];
    s->y_at[m] = (at[m].p - at->p) * g->y.at[1] + (at[m].q - at->q) * g->y.at[2];
    s->c_at[m] = (at[m].p - at->p) * c->at[1] + (at[m].q - at->q) * c->at[2];
  }
  s->x_step = even_step(s, kept);
  k->taps += kept;
  k->cut->count++;
}

static void cut_row(cutter *k, int64_t from, int64_t to, int64_t tile) {
  const hk_geom *g = &k->task->geom;
  const int64_t tiles = hk_ceil_div(g->out[2], tile);
  for (int64_t i = 0; i < tiles;) {
    place at[HK_STRIP_MOST];
    const int64_t alike = i == from && to > from ? to - from : 1, q = i * tile, count = hk_min64(tile, g->out[2] - q);
    for (int64_t m = 0; m < count; m++) at[m] = (place){0, q + m};
    add_span(k, at, count, alike);
    i += alike;
  }
}

/* Pixels in nearly equal tiles. */
static void add_tiles(cutter *k, const place *at, int64_t count) {
  for (int64_t tiles = tiles_of(k->cut, count); tiles > 0; tiles--) {
    const int64_t pixels = hk_ceil_div(count, tiles);
    add_span(k, at, pixels, 1);
    at += pixels;
    count -= pixels;
  }
}

static void cut_plane(cutter *k, const plane_class *p) {
  place at[MOST_PIXELS], rest[MOST_PIXELS];
  int64_t left = 0;
  for (int i = 0; i < p->rows; i++)
    for (int j = 0; j < p->columns; j++) {
      const bool few = class_pixels(p, i, j) < LEAST;
      int64_t n = 0;
      for (int64_t row = p->row[i].from; row < p->row[i].to; row++)
        for (int64_t q = p->column[j].from; q < p->column[j].to; q++)
          *(few ? &rest[left++] : &at[n++]) = (place){row, q};
      add_tiles(k, at, n);
    }
  add_tiles(k, rest, left);
}

bool hk_strip_cut_make(const hk_task *t, int64_t way, hk_strip_cut *c, int64_t f_tap) {
  const hk_geom *g = &t->geom;
  plane_class p;
  int64_t from = 0, to = 0, spans = 0;
  const int64_t tile = tile_of(g, c);
  if (way == HK_STRIP_BY_PLANE) {
    if (!plane_classes(g, &p)) return false;
    spans = g->out[1] * g->out[2];
  } else {
    inner_tiles(g, tile, &from, &to);
    spans = row_spans(g, tile);
  }
  c->span = hk_alloc((size_t)spans * sizeof *c->span);
  c->taps = hk_alloc((size_t)((spans + 1) * g->taps) * sizeof *c->taps);
  if (!c->span || !c->taps) return false;
  cutter k = {.task = t, .cut = c, .way = way, .f_tap = f_tap, .taps = c->taps};
  if (way == HK_STRIP_BY_PLANE) cut_plane(&k, &p);
  else cut_row(&k, from, to, tile);
  return true;
}
