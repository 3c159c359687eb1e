/* Boxes of the reduction: which elements of x and f they hold, packing them, and the segments of a tap. */
#include <string.h>

#include "plan/gradient/outer.h"

/* Nearly equal parts of at most `most`. */
static int64_t even_part(int64_t all, int64_t most) { return hk_ceil_div(all, hk_ceil_div(all, hk_max64(most, 1))); }

hk_outer_boxes hk_outer_boxes_make(const hk_geom *g, int64_t block) {
  const int64_t all[4] = {g->c, g->win[0], g->win[1], g->win[2]};
  int64_t left = block, lines = HK_OUTER_LINES;
  hk_outer_boxes b = {.count = 1};
  for (int d = 3; d >= 0; d--) {
    b.size[d] = even_part(all[d], d < 3 ? hk_min64(left, lines) : left);
    if (d < 3) lines /= b.size[d];
    left = b.size[d] < all[d] ? 1 : left / b.size[d];
    b.parts[d] = hk_ceil_div(all[d], b.size[d]);
    b.count *= b.parts[d];
  }
  return b;
}

hk_outer_box hk_outer_box_get(const hk_geom *g, const hk_outer_boxes *o, int64_t index) {
  const int64_t all[4] = {g->c, g->win[0], g->win[1], g->win[2]};
  hk_outer_box b;
  for (int d = 3; d >= 0; d--) {
    b.from[d] = index % o->parts[d] * o->size[d];
    b.to[d] = hk_min64(all[d], b.from[d] + o->size[d]);
    index /= o->parts[d];
  }
  return b;
}

int64_t hk_outer_chunks(int64_t base, int64_t most, int32_t threads) {
  int64_t best = 1;
  double least = 0;
  for (int64_t c = 1; c <= hk_min64(most, 4 * (int64_t)threads) && threads > 1; c++) {
    /* the rounds of all threads, and a little for the chunks themselves */
    const double rounds = (double)hk_ceil_div(base * c, threads) / (double)(base * c) * (1.0 + 0.01 * (double)c);
    if (c > 1 && rounds >= least) continue;
    best = c;
    least = rounds;
  }
  return best;
}

typedef struct range {
  int64_t from, to;
} range;

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

/* Elements of dimension d of x that window positions s.from..s.to-1 read for any output. */
static range source_range(const hk_geom *g, int d, range s) {
  const int64_t low = hk_geom_source(g, d, 0, s.from), high = hk_geom_source(g, d, g->out[d] - 1, s.to - 1);
  const range r = {ceil_div(hk_max64(low, 0), g->in_dil[d]),
                   floor_div(hk_min64(high, g->in_span[d] - 1), g->in_dil[d]) + 1};
  return r.from < r.to ? r : (range){0, 0};
}

/* Merged, the padding of the last dimension is packed as zeros. */
static range packed_range(const hk_geom *g, int d, range s, bool merged) {
  if (d != 2 || !merged) return source_range(g, d, s);
  return (range){hk_geom_source(g, 2, 0, s.from), hk_geom_source(g, 2, g->out[2] - 1, s.to - 1) + 1};
}

/* Floats between packed positions: those a multiple of 256 bytes apart would alias in the same sets of L1. And the most
 * that up to so many channels take. */
static int64_t pitch_of(int64_t channels, bool merged) {
  return !merged && channels % 64 == 0 ? channels + 16 : channels;
}
static int64_t pitch_most(int64_t channels, bool merged) { return merged ? channels : channels + 16; }

/* How far apart the planes or lines of x are that a result of one position there reads. */
static int64_t packed_every(const hk_geom *g, int d) { return g->out[d] == 1 && g->in_dil[d] == 1 ? g->dil[d] : 1; }

int64_t hk_outer_floats_x(const hk_geom *g, const int64_t box[4], bool merged, int64_t channels) {
  int64_t floats = box[0] * pitch_most(channels, merged);
  for (int d = 0; d < 3; d++) {
    const int64_t every = d < 2 ? packed_every(g, d) : 1;
    const int64_t reach = ((box[d + 1] - 1) * g->dil[d] + (g->out[d] - 1) * g->stride[d]) / every;
    floats *= d == 2 && merged ? reach + 1 : hk_min64(g->in[d], reach / g->in_dil[d] + 1);
  }
  return hk_round_up(floats, HK_ALIGN / (int64_t)sizeof(float));
}

int64_t hk_outer_floats_f(const int64_t box[4], int64_t channels) {
  return hk_round_up(box[0] * box[1] * box[2] * box[3] * pitch_most(channels, false),
                     HK_ALIGN / (int64_t)sizeof(float));
}

/* A matrix of `rows` positions and `columns` channels, of any strides and float type, to adjacent f32. */
typedef struct matrix {
  const char *from;
  int64_t row, column, rows, columns;
  hk_type type;
} matrix;

enum { TILE_ROWS = 128, TILE_COLUMNS = 16 };

/* 16-bit elements whose positions are adjacent: converted along them, then transposed. */
static void pack_converted(const matrix *m, const hk_kernel *convert, const hk_kernel *transpose, int64_t pitch,
                           float *to) {
  float tile[TILE_COLUMNS * TILE_ROWS];
  const int64_t bytes = (int64_t)hk_type_bytes(m->type);
  for (int64_t c = 0; c < m->columns; c += TILE_COLUMNS)
    for (int64_t r = 0; r < m->rows; r += TILE_ROWS) {
      const int64_t columns = hk_min64(TILE_COLUMNS, m->columns - c), rows = hk_min64(TILE_ROWS, m->rows - r);
      for (int64_t i = 0; i < columns; i++)
        convert->fn(&(hk_convert_args){m->from + ((c + i) * m->column + r) * bytes, tile + i * TILE_ROWS, rows});
      transpose->fn(&(hk_transpose_args){tile, to + r * pitch + c, TILE_ROWS, pitch, columns, rows});
    }
}

static void pack(const hk_plan *plan, const matrix *m, int64_t pitch, float *to) {
  const hk_isa isa = plan->decision.kernel->isa;
  const hk_kernel *convert = m->type == HK_F32 ? NULL : hk_kernel_convert(m->type, HK_F32, isa);
  if (convert && m->column != 1 && m->row == 1) {
    pack_converted(m, convert, hk_kernel_best(HK_FAMILY_TRANSPOSE, isa), pitch, to);
    return;
  }
  if (m->type == HK_F32 && m->column != 1 && m->row == 1) {
    hk_kernel_best(HK_FAMILY_TRANSPOSE, isa)
        ->fn(&(hk_transpose_args){(const float *)(const void *)m->from, to, m->column, pitch, m->columns, m->rows});
    return;
  }
  hk_kernel_best(HK_FAMILY_SPREAD, isa)
      ->fn(&(hk_spread_args){.matrix = (void *)(uintptr_t)m->from,
                             .rows = to,
                             .height = m->rows,
                             .width = m->columns,
                             .row = m->row,
                             .column = m->column,
                             .step = pitch,
                             .type = m->type});
}

static hk_outer_view in_place(const void *base, const hk_strides *s, hk_outer_channels ch) {
  return (hk_outer_view){
      (const float *)base + ch.first * ch.step, {0}, {s->channel, s->at[0], s->at[1], s->at[2]}, {1, 1}};
}

/* What is packed: the indices of a view, those that lie in the tensor along its last dimension, and the tensor. */
typedef struct source {
  range at[4], inside;
  int64_t every[2];
  const hk_strides *s;
  const char *base;
  hk_type type;
  bool merged;
} source;

static hk_outer_view pack_view(const hk_plan *plan, const source *q, hk_outer_channels ch, float *to) {
  const int64_t bytes = (int64_t)hk_type_bytes(q->type), width = q->at[3].to - q->at[3].from;
  const int64_t before = q->inside.from - q->at[3].from, inside = q->inside.to - q->inside.from;
  const int64_t pitch = pitch_of(ch.count, q->merged);
  hk_outer_view v = {.base = to, .step[3] = pitch};
  for (int d = 0; d < 4; d++) v.first[d] = q->at[d].from;
  for (int d = 0; d < 2; d++) v.every[d] = q->every[d];
  v.step[2] = pitch * width;
  v.step[1] = v.step[2] * hk_ceil_div(q->at[2].to - q->at[2].from, q->every[1]);
  v.step[0] = v.step[1] * hk_ceil_div(q->at[1].to - q->at[1].from, q->every[0]);
  /* lines that follow each other in the tensor as they do here are packed as one */
  const int64_t lines = q->at[2].to - q->at[2].from;
  const bool joined = inside == width && q->every[1] == 1 && q->s->at[1] == width * q->s->at[2];
  const int64_t together = joined ? hk_max64(lines, 1) : 1, next = joined ? together : q->every[1];
  for (int64_t c = q->at[0].from; c < q->at[0].to; c++)
    for (int64_t i0 = q->at[1].from; i0 < q->at[1].to; i0 += q->every[0])
      for (int64_t i1 = q->at[2].from; i1 < q->at[2].to; i1 += next, to += together * width * pitch) {
        const int64_t at =
            c * q->s->channel + i0 * q->s->at[0] + i1 * q->s->at[1] + q->inside.from * q->s->at[2] + ch.first * ch.step;
        const matrix m = {q->base + at * bytes, q->s->at[2], ch.step, together * inside, ch.count, q->type};
        memset(to, 0, (size_t)(before * pitch) * sizeof *to);
        if (inside > 0) pack(plan, &m, pitch, to + before * pitch);
        memset(to + (before + inside) * pitch, 0, (size_t)((width - before - inside) * pitch) * sizeof *to);
      }
  return v;
}

hk_outer_view hk_outer_view_x(const hk_plan *plan, const hk_outer_box *b, const void *x, hk_outer_channels n,
                              bool merged, float *to) {
  const hk_geom *g = &plan->task.geom;
  if (!to) return in_place(x, &g->x, n);
  source q = {.at[0] = {b->from[0], b->to[0]}, .s = &g->x, .base = x, .type = g->x_type, .merged = merged};
  for (int d = 0; d < 3; d++) q.at[d + 1] = packed_range(g, d, (range){b->from[d + 1], b->to[d + 1]}, merged);
  for (int d = 0; d < 2; d++) {
    q.every[d] = packed_every(g, d);
    const int64_t low = hk_geom_source(g, d, 0, b->from[d + 1]); /* the first that lies in x, of those that are read */
    if (q.every[d] > 1) q.at[d + 1].from = hk_max64(low, low + ceil_div(-low, q.every[d]) * q.every[d]);
  }
  q.inside = (range){hk_min64(hk_max64(q.at[3].from, 0), q.at[3].to), hk_min64(q.at[3].to, g->in[2])};
  if (q.inside.to < q.inside.from) q.inside.to = q.inside.from;
  return pack_view(plan, &q, n, to);
}

hk_outer_view hk_outer_view_f(const hk_plan *plan, const hk_outer_box *b, const void *f, hk_outer_channels k,
                              float *to) {
  const hk_geom *g = &plan->task.geom;
  if (!to) return in_place(f, &g->f, k);
  source q = {.s = &g->f, .base = f, .type = g->f_type, .every = {1, 1}};
  for (int d = 0; d < 4; d++) q.at[d] = (range){b->from[d], b->to[d]};
  q.inside = q.at[3];
  return pack_view(plan, &q, k, to);
}

/* The element of dimension d that window position s reads for output p, or -1. */
static int64_t source_of(const hk_geom *g, int d, int64_t p, int64_t s) {
  const int64_t i = hk_geom_source(g, d, p, s);
  return i < 0 || i >= g->in_span[d] || i % g->in_dil[d] ? -1 : i / g->in_dil[d];
}

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* Positions first, first + step, ... (count of them) of the last dimension within s that output p finds in x. */
typedef struct progression {
  int64_t first, step, count;
} progression;

static progression last_positions(const hk_geom *g, int64_t p, range s) {
  const int64_t step = g->in_dil[2] / gcd(g->in_dil[2], g->dil[2]), start = hk_geom_source(g, 2, p, 0);
  int64_t from = hk_max64(s.from, ceil_div(-start, g->dil[2]));
  const int64_t to = hk_min64(s.to, floor_div(g->in_span[2] - 1 - start, g->dil[2]) + 1);
  for (int64_t i = 0; i < step && from < to && source_of(g, 2, p, from) < 0; i++) from++;
  if (from >= to || source_of(g, 2, p, from) < 0) return (progression){0, step, 0};
  return (progression){from, step, hk_ceil_div(to - from, step)};
}

void hk_outer_positions(const hk_geom *g, int64_t p, int64_t first, int64_t last, int64_t *from, int64_t *to) {
  const progression q = last_positions(g, p, (range){first, last});
  *from = q.first;
  *to = q.first + q.count;
}

static void add_line(hk_outer_lines *l, const float *x, const float *f, int64_t count) {
  if (l->count == 1 && l->line[0].count == 1 && count == 1) { /* single positions: any constant distance will do */
    l->x_step = x - l->line[0].x;
    l->f_step = f - l->line[0].f;
  }
  if (l->count) {
    const int64_t last = l->count - 1, n = l->line[last].count;
    if (x == l->line[last].x + n * l->x_step && f == l->line[last].f + n * l->f_step) {
      l->line[last].count += count;
      return;
    }
  }
  l->line[l->count].x = x;
  l->line[l->count].f = f;
  l->line[l->count++].count = count;
}

void hk_outer_lines_make(const hk_geom *g, const hk_outer_box *b, const int64_t p[3], bool merged,
                         const hk_outer_view *x, const hk_outer_view *f, hk_outer_lines *l) {
  progression q = {b->from[3], 1, b->to[3] - b->from[3]};
  if (!merged) q = last_positions(g, p[2], (range){b->from[3], b->to[3]});
  l->count = 0;
  l->x_step = x->step[3] * (q.step * g->dil[2] / g->in_dil[2]);
  l->f_step = f->step[3] * q.step;
  if (!q.count) return;
  const int64_t i2 = merged ? hk_geom_source(g, 2, 0, q.first) : source_of(g, 2, p[2], q.first);
  for (int64_t c = b->from[0]; c < b->to[0]; c++)
    for (int64_t s0 = b->from[1]; s0 < b->to[1]; s0++)
      for (int64_t s1 = b->from[2]; s1 < b->to[2]; s1++) {
        const int64_t i0 = source_of(g, 0, p[0], s0), i1 = source_of(g, 1, p[1], s1);
        if (i0 >= 0 && i1 >= 0) add_line(l, hk_outer_at(x, c, i0, i1, i2), hk_outer_at(f, c, s0, s1, q.first), q.count);
      }
}
