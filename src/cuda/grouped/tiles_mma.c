/* Tilings of the grouped tensor-core kernels, walk and roll (grouped.cuh). */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>
#include <string.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false
#define SHARED_MOST (200 * 1024)
#define MOST_RUNS (1 << 16) /* of 8 output channels, checked one by one */

static bool half_type(hk_type t) { return t == HK_F16 || t == HK_BF16; }

static int first_slab(const hk_geom *g, int64_t kb) { return (int)(kb * 8 / g->k * g->c / 8); }
static int last_slab(const hk_geom *g, int64_t kb) {
  const int64_t k = hk_min64(kb * 8 + 7, g->k * g->groups - 1);
  return (int)(((k / g->k + 1) * g->c - 1) / 8);
}

/* Runs of 8 output channels after which their input slabs repeat: 64 groups are whole runs of outputs and of inputs. */
static int64_t period(const hk_geom *g, const hk_cu_dw *p, int64_t slabs) {
  return hk_min64(hk_ceil_div(p->channels, 8), 8 * g->k * slabs);
}

static void mma_slabs(const hk_geom *g, hk_cu_dw *p, int slabs) {
  const int runs = (int)hk_ceil_div(p->channels, 8);
  p->grouped.slabs = slabs;
  p->grouped.slab_blocks = (int)hk_ceil_div(runs, slabs);
  p->grouped.in_slabs = p->reach;
  for (int64_t kb = 0; kb < period(g, p, slabs); kb++) {
    const int need = first_slab(g, kb) - first_slab(g, kb / slabs * slabs) + p->reach;
    if (need > p->grouped.in_slabs) p->grouped.in_slabs = need;
  }
}

static void mma_rows(const hk_geom *g, hk_cu_dw *p, int rows) {
  p->grouped.tile_rows = rows;
  p->grouped.depth_slots =
      rows == 1 ? (int)g->win[1] : (int)((rows - 1) * g->stride[1] + (g->win[1] - 1) * g->dil[1] + 1);
  p->grouped.slot_rows = rows == 1 ? 0 : (int)g->stride[1];
  p->grouped.slot_taps = rows == 1 ? 1 : (int)g->dil[1];
  p->grouped.slot_step = rows == 1 ? (int)g->dil[1] : 1;
  p->grouped.slots = p->grouped.depth_slots * (int)g->win[0];
}

static int64_t mma_shared(const hk_geom *g, hk_cu_dw *p, bool roll) {
  const int chunks = roll ? p->grouped.tile_length / 16 : p->grouped.tile_rows * (p->grouped.tile_length / 64);
  p->grouped.teams = (int)hk_max64(1, hk_min64(8 / p->grouped.slabs, chunks));
  p->grouped.patch_length = (int)hk_min64(p->grouped.tile_length, p->class_length) + p->taps_u - 1;
  const int64_t pixels = (int64_t)p->grouped.slots * p->phases * p->grouped.patch_length;
  const int64_t plane = (pixels + 6) / 8 * 8 + 1;
  const int64_t table =
      (int64_t)p->grouped.slabs * g->win[0] * g->win[1] * p->phases * p->taps_u * p->reach * (p->compact ? 16 : 128);
  /* ldmatrix reads whole fragments past the last pixel; those values reach no stored result */
  const int64_t patch = plane * 16 * p->grouped.in_slabs + 80 * 16;
  p->grouped.stage_pitch = (p->grouped.slabs | 1) * 32;
  p->grouped.stage_bytes = (roll ? 128 : 64) * p->grouped.stage_pitch;
  if (patch > SHARED_MOST || table > SHARED_MOST) return SHARED_MOST + 1;
  p->grouped.plane_bytes = (int)plane * 16;
  p->grouped.table_at = (int)patch;
  p->grouped.stage_at = (int)((patch + table + 15) / 16 * 16);
  return p->grouped.stage_at + (int64_t)p->grouped.teams * p->grouped.stage_bytes;
}

/* Chooses rows and slabs so that several blocks share an SM; false when nothing fits. */
static bool mma_fit(const hk_geom *g, hk_cu_dw *p, bool roll, hk_cu_dw_knobs knobs) {
  static const int limits[] = {76 * 1024, 113 * 1024, SHARED_MOST};
  const int runs = (int)hk_ceil_div(p->channels, 8);
  for (int l = 0; l < 3; l++) {
    int best = 0, best_rows = 0;
    double least = 0;
    for (int slabs = 8; slabs >= 1; slabs--) {
      /* roll: two slabs and four teams beat wider blocks on an H200 (bench/results/2026-11-15-depthwise-h200.md) */
      if (knobs.slabs ? slabs != knobs.slabs : roll && slabs > 2) continue;
      mma_slabs(g, p, slabs);
      for (int rows = roll ? 8 : (int)hk_min64(8, g->out[1]); rows >= 1; rows = roll ? 0 : rows / 2) {
        if (knobs.rows && !roll && rows != knobs.rows) continue;
        mma_rows(g, p, rows);
        if (mma_shared(g, p, roll) > limits[l]) continue;
        const double waste = (double)p->grouped.slab_blocks * slabs / runs,
                     again = (double)p->grouped.depth_slots / rows / (double)g->stride[1];
        const double cost = waste * (1 + (again < (double)g->win[1] ? again : (double)g->win[1])) * (1 + 0.3 / slabs) *
                            (1 + (double)(p->grouped.in_slabs - slabs > 0 ? p->grouped.in_slabs - slabs : 0) / slabs);
        if (!best || cost < least) best = slabs, best_rows = rows, least = cost;
      }
    }
    if (!best) continue;
    mma_slabs(g, p, best);
    mma_rows(g, p, best_rows);
    return true;
  }
  return false;
}

bool hk_cu_dw_is_last(const hk_geom *g, const hk_strides *s, int64_t per) {
  return (per == 1 || s->channel == 1) && (g->groups == 1 || s->group == per);
}
bool hk_cu_dw_is_whole(const hk_strides *s) {
  return s->offset % 8 == 0 && s->outer % 8 == 0 && s->at[0] % 8 == 0 && s->at[1] % 8 == 0 && s->at[2] % 8 == 0;
}

bool hk_cu_dw_is_small(const hk_geom *g, const hk_strides *s, const int64_t *size) {
  double far = 0;
  for (int d = 0; d < 3; d++)
    far += (double)hk_max64(s->at[d], -s->at[d]) * (double)(size[d] + 2 * g->win[d] * g->dil[d]);
  return far < 2e9;
}

static double mma_seconds(const hk_geom *g, const hk_cu_dw_tiling *t, bool roll) {
  const hk_cu_dw *p = &t->params;
  const int size = (int)g->win[2];
  /* 1.7 clocks per product, 4 per fragment; walk loads 4 per pair of taps unless they slide. The rest is fitted to
   * bench/results/2026-11-15-depthwise-h200.md */
  const double warps = (double)t->blocks * p->grouped.slabs,
               rows = (double)(g->win[0] * g->win[1]) * p->phases * p->reach;
  double clocks;
  if (roll) {
    clocks = warps * (p->grouped.tile_length / 16) *
             (8.0 * size * (size + 1) / 2 * 1.7 + (8.0 + size) * size * 2 * 0.5 + 250);
  } else {
    const double pairs = (p->taps_u + 1) / 2, slide = hk_ceil_div(p->taps_u, 8);
    const double load = hk_min64(p->taps_u, 8) / 2.0 * 16 + (slide - 1) * 8, mma = pairs * 4 * 1.7;
    clocks = warps * p->grouped.tile_rows * (p->grouped.tile_length / 64) * rows *
             ((p->compact ? 3.5 : 2.2) * (load > mma ? load : mma) + 30);
  }
  const double slabs_read = (double)p->grouped.in_slabs / p->grouped.slabs,
               rows_read = (double)p->grouped.slots / p->grouped.tile_rows / (double)g->stride[1];
  /* element by element: estimated, not measured for channels-first */
  const double factor = 1.15 + 0.1 * (rows_read > 1 ? rows_read - 1 : 0) + 0.1 * (slabs_read - 1) +
                        (p->grouped.x_vector ? 0 : 6) + (p->grouped.y_vector ? 0 : 3);
  return hk_cu_dw_seconds(g, clocks, factor);
}

/* Which tensors are read or written 8 channels at a time. */
static void mma_vectors(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw *p) {
  p->grouped.x_vector =
      !unaligned && g->c * g->groups % 8 == 0 && hk_cu_dw_is_last(g, &g->x, g->c) && hk_cu_dw_is_whole(&g->x);
  p->grouped.y_vector = !unaligned && g->y_type == g->x_type && p->channels % 8 == 0 &&
                        hk_cu_dw_is_last(g, &g->y, g->k) && hk_cu_dw_is_whole(&g->y);
  p->grouped.c_vector =
      e->e.residual && p->grouped.y_vector && hk_cu_dw_is_last(g, &e->c, g->k) && hk_cu_dw_is_whole(&e->c);
}

bool hk_cu_dw_tile_mma(const hk_geom *g, const hk_epi *e, bool unaligned, bool roll, hk_cu_dw_knobs knobs,
                       hk_cu_dw_tiling *t, char *why) {
  static const char *const names[2][4] = {
      {"hk_grouped_f16_walk", "hk_grouped_f16_roll3", "hk_grouped_f16_roll5", "hk_grouped_f16_roll7"},
      {"hk_grouped_bf16_walk", "hk_grouped_bf16_roll3", "hk_grouped_bf16_roll5", "hk_grouped_bf16_roll7"}};
  hk_cu_dw *p = &t->params;
  if (!half_type(g->x_type)) REFUSE("x must be f16 or bf16, it is %s", hk_type_name(g->x_type));
  if (!hk_cu_dw_is_small(g, &g->x, g->in) || !hk_cu_dw_is_small(g, &g->y, g->out))
    REFUSE("an image of x or y spans more than 2^31 elements");
  const int64_t step = g->c * g->groups == 1 ? 1 : g->c == 1 ? g->x.group : g->x.channel;
  if ((g->c > 1 && g->groups > 1 && g->x.group != g->c * step) || step < 1 || step > INT32_MAX)
    REFUSE("the channels of x must have one positive stride over all groups, it is %lld", (long long)step);
  p->grouped.channel_step = (int)step;
  if (g->c > 256) REFUSE("groups may have at most 256 input channels, they have %lld", (long long)g->c);
  const int size = (int)g->win[2];
  if (roll && (g->win[0] != 1 || g->win[1] != size || (size != 3 && size != 5 && size != 7) || g->stride[1] != 1 ||
               g->stride[2] != 1 || g->dil[1] != 1 || g->dil[2] != 1))
    REFUSE("needs a window of 3x3, 5x5 or 7x7, stride and dilation 1; it is %lldx%d", (long long)g->win[1], size);
  if (period(g, p, 8) > MOST_RUNS)
    REFUSE("y may have at most %d channels, or groups at most %d; they have %d and %lld", 8 * MOST_RUNS, MOST_RUNS / 64,
           p->channels, (long long)g->k);
  p->reach = 1;
  for (int64_t kb = 0; kb < period(g, p, 1); kb++) {
    const int reach = last_slab(g, kb) - first_slab(g, kb) + 1;
    if (reach > p->reach) p->reach = reach;
  }
  if (roll && p->reach > 1)
    REFUSE("8 output channels may read at most 8 input channels, they read %d; way = 1 takes them", 8 * p->reach);
  p->compact = g->c == 1 && g->k == 1;
  p->grouped.leaks = g->c % 8 != 0 || g->k % 8 != 0;
  mma_vectors(g, e, unaligned, p);
  const int unit = roll ? 16 : 64, most = knobs.run ? knobs.run : g->out[1] == 1 ? 256 : roll ? 64 : 128;
  if (most % unit) REFUSE("run = %d must be a multiple of %d", most, unit);
  p->grouped.tile_length = (int)hk_min64(hk_ceil_div(p->class_length, unit) * unit, most);
  if (!mma_fit(g, p, roll, knobs))
    REFUSE("the window (%lldx%lldx%lld) exceeds shared memory", (long long)g->win[0], (long long)g->win[1],
           (long long)g->win[2]);
  t->shared_bytes = (int)mma_shared(g, p, roll);
  p->grouped.div_patch = hk_cu_dw_divisor(p->grouped.patch_length);
  p->grouped.div_phases = hk_cu_dw_divisor(p->phases);
  p->grouped.tiles = (int)hk_ceil_div(p->class_length, p->grouped.tile_length);
  p->grouped.row_tiles = (int)hk_ceil_div(g->out[1], p->grouped.tile_rows);
  t->knobs = (hk_cu_dw_knobs){p->grouped.tile_length, p->grouped.slabs, p->grouped.tile_rows,
                              roll ? HK_GROUPED_ROLL : HK_GROUPED_WALK};
  p->pack = HK_DW_PACK_TABLE;
  /* 8 more runs than there are: no choice of slabs reads past them */
  p->table_runs = (p->channels + 7) / 8 + 8;
  t->packed_bytes = (size_t)p->table_runs * (size_t)p->taps * (size_t)p->reach * (p->compact ? 16 : 128);
  t->image = g->x_type == HK_BF16 ? "grouped_bf16" : "grouped_f16";
  t->kernel = names[g->x_type == HK_BF16][roll ? (size - 1) / 2 : 0];
  t->aligned = p->grouped.x_vector || p->grouped.y_vector;
  t->threads = p->grouped.slabs * p->grouped.teams * 32;
  t->blocks = (int64_t)p->grouped.slab_blocks * p->grouped.tiles * p->classes * p->grouped.row_tiles * g->out[0] * g->n;
  if (t->blocks > INT32_MAX) REFUSE("the problem needs %lld blocks, more than 2^31", (long long)t->blocks);
  t->seconds = mma_seconds(g, t, roll);
  return true;
}
