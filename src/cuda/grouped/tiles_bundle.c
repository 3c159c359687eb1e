/* Tiling of the tensor-core kernel for groups of a multiple of 16 channels, 3x3, channels-last (bundle.cuh): a block
 * is `slabs` runs of 16 output channels, whole groups, by 8 rows by `run` columns, one warp per run and 16 columns. */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false
#define SHARED_MOST (200 * 1024)

static bool takes(const hk_geom *g, const hk_strides *s, int64_t per, const int64_t *size) {
  return hk_cu_dw_is_last(g, s, per) && hk_cu_dw_is_whole(s) && hk_cu_dw_is_small(g, s, size);
}

/* Fills in blocks of so many runs and columns; returns the bytes of shared memory. */
static int64_t shape(const hk_geom *g, hk_cu_dw *p, int runs, int columns) {
  const int64_t groups = hk_ceil_div(runs * 16, g->k);
  p->grouped.slabs = runs;
  p->grouped.slab_blocks = (int)hk_ceil_div(p->channels / 16, runs);
  p->grouped.in_slabs = (int)(groups * (g->c / 8));
  p->grouped.tile_length = columns;
  p->grouped.tiles = (int)hk_ceil_div(g->out[2], columns);
  p->grouped.row_tiles = (int)hk_ceil_div(g->out[1], 8);
  p->grouped.slots = p->grouped.depth_slots = 7 * (int)g->stride[1] + 3;
  p->grouped.slot_step = 1;
  p->grouped.patch_length = columns + p->taps_u - 1;
  const int64_t plane = ((int64_t)p->grouped.slots * p->phases * p->grouped.patch_length + 6) / 8 * 8 + 1;
  p->grouped.plane_bytes = (int)plane * 16;
  return plane * 16 * p->grouped.in_slabs + 32 * 16;
}

/* Clocks of one SM per block: copies at 40 bytes per clock, 1.7 per product, 4 per fragment, and waits. Small blocks
 * and blocks that have an SM to themselves wait longer, and so do the patches of stride 2. Fitted to the ResNeXt
 * rows of bench/results/2026-11-16-networks-h200.tsv. */
static double block_clocks(const hk_geom *g, const hk_cu_dw *p, int64_t shared) {
  const int warps = p->grouped.slabs * (p->grouped.tile_length / 16);
  const double work = warps * ((double)g->c / 16 * (144 * 1.7 + p->grouped.slots * 3 * 4.0) + 250),
               fill = (double)shared / 40;
  const double contention =
      (shared > 110 * 1024 ? 1.6 : shared > 72 * 1024 ? 1.2 : 1) * (g->stride[1] == 2 ? 1.25 : 0.85);
  return contention * (warps < 4 ? 1.3 : 1) * (work + fill + 300);
}

bool hk_cu_dw_tile_bundle(const hk_geom *g, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t, char *why) {
  static const char *const names[2][2] = {{"hk_bundle_f16_s1", "hk_bundle_f16_s2"},
                                          {"hk_bundle_bf16_s1", "hk_bundle_bf16_s2"}};
  hk_cu_dw *p = &t->params;
  const int64_t stride = g->stride[2];
  if ((g->x_type != HK_F16 && g->x_type != HK_BF16) || (g->y_type != g->x_type && g->y_type != HK_F32))
    REFUSE("x must be f16 or bf16 and y of that type or f32, they are %s and %s", hk_type_name(g->x_type),
           hk_type_name(g->y_type));
  if (g->groups < 2 || g->c % 16 || g->k % 16 || g->c > 128 || g->k > 128 || g->c % 64 == 0)
    REFUSE("groups must have 16, 32, 48, 80, 96 or 112 channels and 16n filters up to 128, they have %lld and %lld",
           (long long)g->c, (long long)g->k);
  if (g->win[0] != 1 || g->in[0] != 1 || g->out[0] != 1 || g->win[1] != 3 || g->win[2] != 3 || g->stride[1] != stride ||
      stride > 2 || g->dil[1] != 1 || g->dil[2] != 1)
    REFUSE("needs a 2D window of 3x3, stride 1 or 2, dilation 1; it is %lldx%lld", (long long)g->win[1],
           (long long)g->win[2]);
  if (unaligned || !takes(g, &g->x, g->c, g->in) || !takes(g, &g->y, g->k, g->out))
    REFUSE("the channels of x and y must be contiguous and pixels 16-byte aligned");
  const int whole_runs = (int)(g->k / 16);
  int best = 0, columns = 0;
  double least = 0;
  p->grouped.channel_step = 1;
  p->grouped.x_vector = 1;
  for (int runs = whole_runs; runs <= 8; runs += whole_runs)
    for (int run = 16; run <= 64 && runs * run <= 8 * 16; run += 16) {
      if ((knobs.slabs && knobs.slabs != runs) || (knobs.run && knobs.run != run) ||
          (run > 16 && run - 16 >= g->out[2]))
        continue;
      const int64_t shared = shape(g, p, runs, run);
      if (shared > SHARED_MOST) continue;
      const double clocks =
          (double)p->grouped.slab_blocks * p->grouped.tiles * p->grouped.row_tiles * block_clocks(g, p, shared);
      if (!best || clocks < least) best = runs, columns = run, least = clocks;
    }
  if (!best) REFUSE("slabs = %d, run = %d has no block; run must be 16, 32, 48 or 64", knobs.slabs, knobs.run);
  t->shared_bytes = (int)shape(g, p, best, columns);
  p->grouped.div_patch = hk_cu_dw_divisor(p->grouped.patch_length);
  p->grouped.div_phases = hk_cu_dw_divisor(p->phases);
  t->blocks = (int64_t)p->grouped.slab_blocks * p->grouped.tiles * p->grouped.row_tiles * g->n;
  if (t->blocks > INT32_MAX) REFUSE("the problem needs %lld blocks, more than 2^31", (long long)t->blocks);
  p->pack = HK_DW_PACK_BUNDLE;
  t->packed_bytes = (size_t)p->channels / 16 * (size_t)(g->c / 16) * 9 * 32 * 16;
  t->image = g->x_type == HK_BF16 ? "bundle_bf16" : "bundle_f16";
  t->kernel = names[g->x_type == HK_BF16][stride == 2];
  t->aligned = true;
  t->threads = best * (columns / 16) * 32;
  t->knobs = (hk_cu_dw_knobs){columns, best, 0, 0};
  /* a few blocks take as long as two, one after another, on one SM */
  const double few = 2 * 132 * block_clocks(g, p, t->shared_bytes);
  t->seconds = hk_cu_dw_seconds(g, (double)g->n * least > few ? (double)g->n * least : few, 1.3);
  return true;
}
