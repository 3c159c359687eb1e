/* Tiling of the tensor-core kernel that walks down 3x3 images with TMA (octet.cuh): groups of 1, 2, 4, 8 channels,
 * as many filters, channels-last. A block is `slabs` runs of 8 channels, one or more warps each, by `rows` output
 * rows by `run` columns. */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>

#define PROCESSORS 132
#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false
#define SHARED_ALL (227 * 1024)

/* Whether TMA can access a tensor: contiguous channels, other strides positive multiples of 16 bytes below 2^40. */
static bool takes(const hk_geom *g, const hk_strides *s, const int64_t *size) {
  const int64_t all[] = {s->at[2] * (size[2] > 1), s->at[1] * (size[1] > 1), s->outer * (g->n > 1)};
  if (!hk_cu_dw_is_last(g, s, g->c) || !hk_cu_dw_is_whole(s) || !hk_cu_dw_is_small(g, s, size)) return false;
  for (int i = 0; i < HK_COUNT(all); i++)
    if (all[i] < 0 || all[i] >= (int64_t)1 << 38 ||
        (all[i] == 0 && (i == 0   ? size[2] > 1
                         : i == 1 ? size[1] > 1
                                  : g->n > 1)))
      return false;
  return true;
}

/* Shared memory of a block with so many slabs and columns, and the offsets of its parts. */
static int shared_of(const hk_geom *g, hk_cu_dw *p, int slabs, int columns) {
  const int stride = (int)g->stride[2], align = slabs % 2 ? 128 : 1024;
  p->octet.slabs = slabs;
  p->octet.slab_blocks = (int)hk_ceil_div(p->channels, 8 * slabs);
  p->octet.teams = (int)hk_max64(1, hk_min64(HK_OCTET_THREADS / 32 / slabs, (columns + 15) / 16));
  p->octet.swizzle_shift = slabs == 4 ? 1 : slabs == 2 ? 2 : 0;
  p->octet.swizzle_mask = slabs % 2 ? 0 : slabs - 1;
  p->octet.tile_length = columns;
  p->octet.tiles = (int)hk_ceil_div(g->out[2], columns);
  p->octet.patch_length = (columns - 1) * stride + 3;
  p->octet.plane_bytes = (int)hk_round_up(p->octet.patch_length * slabs * 16, align);
  p->octet.stage_bytes = (int)hk_round_up(2 * columns * slabs * 16, align);
  /* the rows of a step, and the prefetched rows of the next two */
  p->octet.slots = 3 + stride + 4 * stride;
  if (p->octet.slots * p->octet.plane_bytes + 2 * p->octet.stage_bytes > SHARED_ALL / 2 - 2048)
    p->octet.slots = 3 + stride + 2 * stride;
  p->octet.stage_at = p->octet.slots * p->octet.plane_bytes;
  p->octet.table_at = p->octet.stage_at + 2 * p->octet.stage_bytes;
  return p->octet.table_at + p->octet.slots * 8;
}

/* Blocks per SM: by shared memory and by 72 registers per thread. */
static int resident(const hk_cu_dw *p, int shared) {
  const int64_t room = SHARED_ALL / (shared + 1024), warps = 27 / (p->octet.slabs * p->octet.teams);
  return (int)hk_max64(1, hk_min64(hk_min64(room, warps), 16));
}

/* Clocks of all blocks of `rows` output rows. Two rows of 8 columns of 8 channels take 13, a step 30 more per warp.
 * TMA's time per pixel is proportional to its slabs plus a constant, larger without swizzle (measured: 48, 80, 144
 * bytes). A block waits 2000 for its first rows; whole waves of blocks count for a half. */
static double clocks_of(const hk_geom *g, const hk_cu_dw *p, int shared, int rows) {
  const double blocks = (double)g->n * p->octet.slab_blocks * p->octet.tiles * (double)hk_ceil_div(g->out[1], rows),
               steps = (double)hk_ceil_div(rows, 2);
  const int held = resident(p, shared);
  const double work = steps * p->octet.slabs * (p->octet.tile_length / 8.0 * 13 + 30.0 * p->octet.teams);
  const double pixels =
      ((2 * steps - 1) * (double)g->stride[1] + 3) * p->octet.patch_length + 2 * steps * p->octet.tile_length;
  const double copies = pixels * (p->octet.slabs % 2 ? 7 + 0.7 * p->octet.slabs : 1.5 + 0.7 * p->octet.slabs);
  const double block = (work > copies ? work : copies) + 2000.0 / held;
  const double waves = blocks / (PROCESSORS * (double)held), whole = (double)(int64_t)(waves + 0.999);
  return block * PROCESSORS * held * (0.5 * whole + 0.5 * (waves > 1 ? waves : 1));
}

/* The strip that takes the least time: an even number of rows. */
static int rows_of(const hk_geom *g, const hk_cu_dw *p, int shared) {
  int best = 0;
  for (int strips = 1; strips <= 32 && strips <= g->out[1]; strips++) {
    const int rows = (int)hk_round_up(hk_ceil_div(g->out[1], strips), 2);
    if (!best || clocks_of(g, p, shared, rows) < clocks_of(g, p, shared, best)) best = rows;
  }
  return best;
}

static bool shape_of(const hk_geom *g, hk_cu_dw *p, hk_cu_dw_knobs knobs, int *slabs, int *columns, int *rows) {
  static const int counts[] = {9, 8, 7, 5, 4, 3, 2, 1};
  double least = 0;
  *slabs = 0;
  for (int i = 0; i < HK_COUNT(counts); i++)
    for (int tiles = 1; tiles <= 4096 && tiles * 8 < g->out[2] + 8; tiles++) {
      const int run = (int)hk_round_up(hk_ceil_div(g->out[2], tiles), 8);
      if ((knobs.slabs && knobs.slabs != counts[i]) || (knobs.run && knobs.run != run) ||
          ((run - 1) * g->stride[2] + 3) > 256)
        continue;
      const int shared = shared_of(g, p, counts[i], run), strip = knobs.rows ? knobs.rows : rows_of(g, p, shared);
      if (shared > SHARED_ALL - 1024) continue;
      /* columns that two tiles read cost bytes */
      const double again = (double)p->octet.tiles * p->octet.patch_length / (double)(g->out[2] * g->stride[2]) - 1;
      const double cost = clocks_of(g, p, shared, strip) * (1 + 0.5 * again);
      if (!*slabs || cost < least) *slabs = counts[i], *columns = run, *rows = strip, least = cost;
      if (tiles > 64) break;
    }
  return *slabs;
}

bool hk_cu_dw_tile_octet(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                         char *why) {
  static const char *const names[2][2][2] = {
      {{"hk_octet_f16_s1", "hk_octet_f16_s1_epi"}, {"hk_octet_f16_s2", "hk_octet_f16_s2_epi"}},
      {{"hk_octet_bf16_s1", "hk_octet_bf16_s1_epi"}, {"hk_octet_bf16_s2", "hk_octet_bf16_s2_epi"}}};
  hk_cu_dw *p = &t->params;
  const int64_t stride = g->stride[2];
  if ((g->x_type != HK_F16 && g->x_type != HK_BF16) || g->y_type != g->x_type)
    REFUSE("x and y must both be f16 or both bf16, they are %s and %s", hk_type_name(g->x_type),
           hk_type_name(g->y_type));
  if (g->c != g->k || g->c > 8 || 8 % g->c || p->channels % 8)
    REFUSE("groups must have 1, 2, 4 or 8 channels, as many filters, and 8n in all; they have %lld and %lld, %d in all",
           (long long)g->c, (long long)g->k, p->channels);
  if (!hk_cu_is_flat(g, 0) || g->win[1] != 3 || g->win[2] != 3 || g->stride[1] != stride || stride > 2 ||
      g->dil[1] != 1 || g->dil[2] != 1)
    REFUSE("needs a 2D window of 3x3, stride 1 or 2, dilation 1; it is %lldx%lld", (long long)g->win[1],
           (long long)g->win[2]);
  p->octet.leaks = g->c < 8;
  if (p->octet.leaks && e->e.residual)
    REFUSE(
        "groups of %lld channels do not support a residual: recomputing NaN needs it after y may have overwritten it",
        (long long)g->c);
  if (unaligned || !takes(g, &g->x, g->in) || !takes(g, &g->y, g->out) ||
      (e->e.residual && !(hk_cu_dw_is_last(g, &e->c, g->k) && hk_cu_dw_is_whole(&e->c))))
    REFUSE("the channels of x and y must be contiguous and pixels 16-byte aligned");
  if (knobs.rows < 0 || knobs.rows % 2) REFUSE("rows = %d must be even", knobs.rows);
  int slabs, columns, rows;
  if (!shape_of(g, p, knobs, &slabs, &columns, &rows))
    REFUSE("slabs = %d, run = %d has no block; slabs must be 1 to 5 or 7 to 9, run a multiple of 8", knobs.slabs,
           knobs.run);
  t->shared_bytes = shared_of(g, p, slabs, columns);
  p->octet.tile_rows = rows;
  p->octet.row_tiles = (int)hk_ceil_div(g->out[1], rows);
  t->blocks = (int64_t)p->octet.slab_blocks * p->octet.tiles * p->octet.row_tiles * g->n;
  if (t->blocks > INT32_MAX) REFUSE("the problem needs %lld blocks, more than 2^31", (long long)t->blocks);
  p->reach = 1;
  p->pack = HK_DW_PACK_TABLE;
  p->table_runs = p->channels / 8;
  t->packed_bytes = (size_t)p->table_runs * 9 * 128;
  t->image = g->x_type == HK_BF16 ? "octet_bf16" : "octet_f16";
  t->kernel = names[g->x_type == HK_BF16][stride == 2][e->any];
  t->aligned = t->mapped = true;
  t->threads = slabs * p->octet.teams * 32;
  t->knobs = (hk_cu_dw_knobs){columns, slabs, rows, 0};
  /* fitted to the ResNeXt rows of bench/results/2026-11-15-depthwise-h200.md; one channel per group is faster on the
   * FMA units */
  t->seconds = hk_cu_dw_seconds(g, clocks_of(g, p, t->shared_bytes, rows), 1.15) * (g->c == 1 ? 1 : 0.8);
  return true;
}
