/* Tilings of the tapsum kernels that multiply by FMA: tile.cuh, lane.cuh, line.cuh. */
#include <stdio.h>

#include "cuda/gradient/tapsum.h"

#define SMS 132 /* of the device that slices are made for, whatever the device */
#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

static double products(const hk_geom *g) { return (double)(g->gm * g->k * g->groups) * (double)g->gk; }

static double moved(const hk_geom *g) { return g->bytes / 4e12; }

bool hk_cu_tapsum_tile_general(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why) {
  enum { TILE = 64 };
  hk_cu_tapsum *p = &t->params;
  const int64_t columns = g->pixels * g->n, m = hk_ceil_div(g->k, TILE), n = hk_ceil_div(columns, TILE);
  (void)why;
  p->units = (int)(g->c * g->taps);
  p->m_tiles = (int)m, p->n_tiles = (int)n;
  p->f_rows = g->f.outer == 1 && g->k > 1;
  p->x_rows = g->x.outer == 1 && g->n > 1;
  if (!*slices) *slices = hk_cu_tapsum_slices(g, hk_ceil_div(4 * SMS, m * n * g->groups), hk_max64(1, p->units / 128));
  p->slices = (int)*slices;
  t->image = "tapsum";
  snprintf(t->kernel, sizeof t->kernel, "hk_tapsum_tile");
  t->blocks = m * n * g->groups * *slices, t->threads = 256;
  const double busy = (double)(m * n * g->groups * TILE * TILE) * (double)g->gk / 6e12;
  t->fit = 2, t->busy = busy, t->moved = moved(g);
  return true;
}

/* ---- lane */

/* Elements between channels of x, or of f, over all groups; 0: uneven. */
static int64_t channel_step(int64_t groups, int64_t group, int64_t count, int64_t outer) {
  if (count == 1) return groups == 1 ? 1 : group;
  return groups == 1 || group == outer * count ? outer : 0;
}

typedef struct lane_shape {
  int v, kt, st, dil, u;
} lane_shape;

/* One of the rows of lane_rows.cuh. */
static lane_shape lane_choose(const hk_geom *g, bool unaligned) {
  const bool depthwise = g->n == 1 && g->k == 1, wide = g->x_type != HK_F32;
  const bool pairs = depthwise && wide && g->groups % 2 == 0 && g->x.group == 1 && g->f.group == 1 && !unaligned &&
                     hk_cu_tapsum_whole(g, &g->x, g->in, 2) && hk_cu_tapsum_whole(g, &g->f, g->win, 2) &&
                     g->x.offset % 8 == 0 && g->f.offset % 8 == 0;
  const int64_t s = g->out[2];
  const int dil = g->stride[2] == 1 && g->dil[2] <= 2 ? (int)g->dil[2] : 0;
  if (g->k > 1) return (lane_shape){1, g->k > 4 ? 8 : 4, 3, dil == 1, dil == 1 ? 4 : 2};
  if (!pairs && (wide || !dil)) return (lane_shape){1, 1, s <= 4 ? 4 : 7, 0, 4};
  if (!dil) return (lane_shape){2, 1, 4, 0, 4};
  int st = s <= 3 ? 3 : s <= 5 ? 5 : 7;
  if (dil == 1 && s == 4) st = 4;
  return (lane_shape){pairs ? 2 : 1, 1, st, dil, dil == 1 ? 8 : 4};
}

/* Units of a row: segments where rows alone are too few for the slices. */
static void lane_units(const hk_geom *g, int u, int64_t slices, hk_cu_tapsum *p) {
  const int64_t most = hk_max64(1, g->win[2] / (8 * u)), wanted = hk_ceil_div(8 * slices, p->rows);
  const int64_t segments = p->rows >= 4 * slices ? 1 : hk_min64(wanted, most);
  p->segment = (int)hk_round_up(hk_ceil_div(g->win[2], segments), u);
  p->segments = (int)hk_ceil_div(g->win[2], p->segment);
  p->by_segments = hk_cu_divisor_make(p->segments);
  p->units = p->rows * p->segments;
}

bool hk_cu_tapsum_tile_lane(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why) {
  hk_cu_tapsum *p = &t->params;
  const char *type = hk_cu_tapsum_type(g);
  const lane_shape a = lane_choose(g, t->unaligned);
  if (!type) REFUSE("x and f must have the same type");
  if (g->in_dil[0] * g->in_dil[1] * g->in_dil[2] != 1) REFUSE("input dilation must be 1");
  if (g->n > 1 && g->n * g->groups < 8) REFUSE("x has fewer than 8 channels in all groups");
  const int64_t threads = hk_ceil_div(g->groups * g->n, a.v);
  p->chunks = (int)hk_ceil_div(threads, 64);
  p->lanes = (int)hk_ceil_div(threads, p->chunks);
  p->p2_tiles = (int)hk_ceil_div(g->out[2], a.st), p->k_tiles = (int)hk_ceil_div(g->k, a.kt);
  const int64_t jobs = g->out[0] * g->out[1] * p->p2_tiles * p->k_tiles;
  if (jobs > INT32_MAX / 1024) REFUSE("y has too many positions");
  p->jobs = (int)jobs;
  p->job_blocks = (int)hk_ceil_div(jobs, hk_max64(1, 384 / p->lanes));
  p->jobs_block = (int)hk_ceil_div(jobs, p->job_blocks);
  p->subs = (int)hk_max64(1, 256 / (p->lanes * p->jobs_block));
  t->threads = p->lanes * p->jobs_block * p->subs;
  const int64_t across = (int64_t)p->chunks * p->job_blocks;
  const int64_t wanted = *slices ? *slices : hk_ceil_div(SMS * hk_max64(1, 768 / t->threads), across) * p->subs;
  lane_units(g, a.u, wanted, p);
  if (!*slices) *slices = hk_cu_tapsum_slices(g, wanted, p->units);
  p->slices = (int)*slices;
  static const char *const images[] = {"tapsum_f32", "tapsum_f16", "tapsum_bf16"};
  t->image = images[g->x_type == HK_F32 ? 0 : g->x_type == HK_F16 ? 1 : 2];
  snprintf(t->kernel, sizeof t->kernel, "hk_tapsum_lane_%s_%d_%d_%d_%d", type, a.v, a.kt, a.st, a.dil);
  t->blocks = across * hk_ceil_div(*slices, p->subs);
  t->x_align = t->f_align = a.v == 2 ? 4 : 0;
  const double products_of_u = (double)a.u * a.kt * a.st;
  const double loads = (double)a.u * a.kt + (a.dil ? (double)(a.u - 1) * a.dil + a.st : (double)a.u * a.st);
  const double rate = 1.75e12 * products_of_u / loads * (a.v == 2 ? 1.0 : 0.8);
  const double padded = (double)(jobs * a.kt * a.st) / (double)(g->pixels * g->k);
  const bool adjacent = channel_step(g->groups, g->x.group, g->n, g->x.outer) == 1;
  t->fit = (int)hk_max64(1, 768 / t->threads);
  t->busy = products(g) * padded / rate * (adjacent || a.kt > 1 ? 1 : 5), t->moved = moved(g);
  return true;
}

/* ---- line */

/* Bytes that rows of a tensor can be loaded by: its rows and their lengths are multiples. */
static int vector_of(const hk_geom *g, const hk_strides *s, const int64_t *size, int64_t outers) {
  const int64_t bytes = (int64_t)hk_type_bytes(g->x_type);
  int64_t all = size[2] | s->offset | 16 / bytes;
  if (g->groups > 1) all |= s->group;
  if (outers > 1) all |= s->outer;
  if (g->c > 1) all |= s->channel;
  for (int d = 0; d < 2; d++)
    if (size[d] > 1) all |= s->at[d];
  return (int)((all & -all) * bytes);
}

/* Down rows: strips so that few warps have more to do than others. */
static void walk_down(const hk_geom *g, int rt, int64_t room, int64_t warps, hk_cu_tapsum *p) {
  double best = 0;
  p->segments = (int)hk_ceil_div(g->win[2], 8), p->steps = (int)g->in[1];
  for (int64_t strips = 1; strips == 1 || g->in[1] / strips >= 2 * rt; strips++) {
    const int64_t band = hk_ceil_div(g->in[1], strips);
    const int64_t all = warps * hk_ceil_div(g->c * g->win[0] * p->segments * strips, 32);
    const double cost = (double)(hk_ceil_div(all, SMS * 4) * (4 * band + rt + 3));
    if (strips > 1 && (cost >= best || all > 4 * room)) continue;
    best = cost, p->band = (int)band;
  }
}

/* What a lane walks; then slices of 32 units or more. */
static void walk_units(const hk_geom *g, int rt, int64_t room, int64_t warps, hk_cu_tapsum *p, int64_t *slices) {
  walk_down(g, rt, room, warps, p);
  p->by_segments = hk_cu_divisor_make(p->segments);
  p->strips = (int)hk_ceil_div(p->steps, p->band);
  p->by_strips = hk_cu_divisor_make(p->strips);
  p->units = (int)(g->c * g->win[0] * p->segments * p->strips);
  const int64_t each = hk_max64(1, warps * hk_ceil_div(p->units, 32) / (6 * room)); /* per lane */
  if (!*slices) *slices = hk_cu_tapsum_slices(g, hk_ceil_div(p->units, 32 * each), p->units);
}

/* Windows of fewer rows take longer by it than by line.cuh. */
static bool walks(const hk_geom *g) {
  return g->out[1] >= 5 && g->stride[1] * g->stride[2] * g->dil[1] * g->dil[2] == 1 && g->x.at[2] == 1 &&
         g->f.at[2] == 1 && g->c * g->win[0] * (g->win[2] / 8 + 1) * g->in[1] < INT32_MAX / 2;
}

/* walk.cuh: the rest of a tiling of line. */
static void tile_walk(const hk_geom *g, int rt, int st, int64_t *slices, hk_cu_tapsum_tiling *t) {
  hk_cu_tapsum *p = &t->params;
  const int64_t warps = (int64_t)p->pairs * p->jobs;
  p->x_vector = vector_of(g, &g->x, g->in, g->n);
  p->f_vector = vector_of(g, &g->f, g->win, g->k);
  t->fit = rt == 7 ? 3 : 4;
  walk_units(g, rt, SMS * 4 * t->fit, warps, p, slices);
  p->slices = (int)*slices;
  t->blocks = hk_ceil_div(warps * *slices, 4);
  const double loads = (double)(16 / p->x_vector + 16 / p->f_vector);
  const double rows = (double)p->units * p->band * (double)warps / 32;
  const double each = 8.0 * rt * st + 6.0 * rt + 14 * st + 1250 + 80 * loads + 16.0 * (rt + 4) / p->band;
  t->busy = rows * each * 1.15 / (SMS * 4) / 1.7e9, t->moved = moved(g) * (g->n > 1 || g->k > 1 ? 2 : 1);
}

bool hk_cu_tapsum_tile_line(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why) {
  hk_cu_tapsum *p = &t->params;
  const char *type = hk_cu_tapsum_type(g);
  if (!type) REFUSE("x and f must have the same type");
  if (g->in_dil[0] * g->in_dil[1] * g->in_dil[2] != 1) REFUSE("input dilation must be 1");
  const int64_t r = g->out[1], s = g->out[2];
  const int rt = r == 1 ? 1 : r <= 3 && s <= 3 ? 3 : r <= 5 && s <= 5 ? 5 : 7;
  const int st = rt > 1 ? rt : s <= 4 ? 4 : 8;
  p->p1_tiles = (int)hk_ceil_div(r, rt), p->p2_tiles = (int)hk_ceil_div(s, st);
  const int64_t jobs = g->out[0] * p->p1_tiles * p->p2_tiles, pairs = g->groups * g->n * g->k;
  if (jobs > INT32_MAX / 1024) REFUSE("y has too many positions");
  static const char *const images[] = {"tapsum_f32", "tapsum_f16", "tapsum_bf16"};
  t->image = images[g->x_type == HK_F32 ? 0 : g->x_type == HK_F16 ? 1 : 2];
  snprintf(t->kernel, sizeof t->kernel, "hk_tapsum_%s_%s_%d_%d", walks(g) ? "walk" : "line", type, rt, st);
  p->jobs = (int)jobs, p->pairs = (int)pairs, t->threads = 128;
  if (walks(g)) return tile_walk(g, rt, st, slices, t), true;
  p->segments = (int)hk_ceil_div(g->win[2], 4);
  p->by_segments = hk_cu_divisor_make(p->segments);
  p->units = p->rows * p->segments;
  if (!*slices) *slices = hk_cu_tapsum_slices(g, hk_ceil_div(SMS * 64, pairs * jobs), hk_max64(1, p->units / 128));
  p->slices = (int)*slices;
  t->blocks = hk_ceil_div(pairs * jobs * *slices, 4);
  const bool slides = g->stride[2] == 1 && g->dil[2] == 1;
  const double padded = (double)(jobs * rt * st) / (double)g->pixels;
  const double loads = (double)(4 + rt * (slides ? 3 + st : 4 * st)) / (double)(4 * rt * st);
  const double each = (0.28 + 0.75 * loads) * 1e-12 * (g->x.at[2] == 1 && g->f.at[2] == 1 ? 1 : 3);
  t->fit = 4, t->busy = products(g) * padded * each, t->moved = moved(g);
  return true;
}
