/* Tiling of the few-channel kernel (stem.cuh). */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false

static int64_t shape(const hk_geom *g, hk_cu_dw *p, int rows, int64_t columns) {
  p->stem.tile_rows = rows;
  p->stem.tile_length = (int)columns;
  p->stem.slots = (int)((rows - 1) * g->stride[1] + (g->win[1] - 1) * g->dil[1] + 1);
  p->stem.patch_pixels = (int)((columns - 1) * g->stride[2] + g->win[2]);
  /* 7 elements before the first, one after the last pair */
  const int64_t row = ((int64_t)p->stem.patch_pixels * p->pixel + p->lead + 9) * 2;
  const int64_t patch = (row + 15) / 16 * 16 * p->stem.slots, table = p->k_steps * (2048 + 32);
  if (patch + table > 200 * 1024) return patch + table;
  p->stem.patch_pitch = (int)((row + 15) / 16 * 16);
  p->stem.table_at = (int)patch;
  return patch + table;
}

/* Warps that share `tiles` tiles in pairs with the fewest idle. */
static int warps_of(int tiles) {
  int best = 8;
  for (int w = 7; w >= 4; w--)
    if (hk_ceil_div(tiles, 2 * w) * w < hk_ceil_div(tiles, 2 * best) * best) best = w;
  return best;
}

static bool stem_accepts(const hk_geom *g, char *why) {
  if (g->x_type != HK_F16 && g->x_type != HK_BF16) REFUSE("x must be f16 or bf16, it is %s", hk_type_name(g->x_type));
  if (g->groups != 1 || g->c > 8)
    REFUSE("needs 1 group of at most 8 input channels, not %lld of %lld", (long long)g->groups, (long long)g->c);
  if (!hk_cu_is_flat(g, 0)) REFUSE("the problem must have one or two dimensions");
  if (g->dil[2] != 1) REFUSE("dilation of the width must be 1, it is %lld", (long long)g->dil[2]);
  if (g->x.at[1] < 0 || g->x.at[2] < 0 || g->x.channel < 0 ||
      (double)g->in[1] * (double)g->x.at[1] + (double)g->in[2] * (double)g->x.at[2] + 8.0 * (double)g->x.channel > 2e9)
    REFUSE("an image of x or y spans more than 2^31 elements");
  if (g->y.at[1] < 0 || g->y.at[2] < 0 ||
      (double)g->out[1] * (double)g->y.at[1] + (double)g->out[2] * (double)g->y.at[2] > 2e9)
    REFUSE("an image of y spans more than 2^31 elements");
  return true;
}

/* Whether x is copied in vectors along rows (1) or planes (2) or by elements (0), and y stored in vectors. Returns
 * whether y is channels-first. */
static bool stem_vectors(const hk_geom *g, bool unaligned, hk_cu_dw *p) {
  p->stem.x_vector = !unaligned && p->pixel == g->c && (g->c == 1 || g->x.channel == 1) && g->x.at[2] == g->c &&
                     g->x.at[1] % 8 == 0 && g->x.outer % 8 == 0 && g->x.offset % 8 == 0;
  if (!unaligned && !p->stem.x_vector && g->x.at[2] == 1 && g->x.at[1] % 8 == 0 && g->x.channel % 8 == 0 &&
      g->x.outer % 8 == 0 && g->x.offset % 8 == 0)
    p->stem.x_vector = 2;
  const bool transposed = g->y.at[2] == 1 && g->y.channel != 1;
  const int run = transposed ? 4 : 8;
  p->stem.y_vector = !unaligned && g->y_type == g->x_type && (transposed ? g->out[2] : p->channels) % run == 0 &&
                     (transposed || g->y.channel == 1) && g->y.offset % run == 0 && g->y.outer % run == 0 &&
                     g->y.at[1] % run == 0 && (transposed ? g->y.channel : g->y.at[2]) % run == 0;
  return transposed;
}

bool hk_cu_dw_tile_stem(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                        char *why) {
  static const char *const names[2][2] = {{"hk_stem_f16", "hk_stem_f16_transposed"},
                                          {"hk_stem_bf16", "hk_stem_bf16_transposed"}};
  hk_cu_dw *p = &t->params;
  if (!stem_accepts(g, why)) return false;
  p->phases = 1;
  p->taps_u = (int)g->win[2];
  p->pixel = (int)(g->c + (g->c * g->stride[2]) % 2);
  p->lead = (int)(hk_max64(g->lo[2], -g->lo[2]) * p->pixel % 2);
  p->row_pairs = (int)hk_ceil_div(g->win[2] * p->pixel + p->lead, 2);
  if (g->win[1] * p->row_pairs > 1 << 20)
    REFUSE("the window (%lldx%lld) exceeds shared memory", (long long)g->win[1], (long long)g->win[2]);
  p->k_steps = (int)hk_ceil_div(g->win[1] * p->row_pairs, 8);
  const int64_t across = hk_ceil_div(g->out[2], 16) * 16, blocks = hk_ceil_div(across, 128);
  const int64_t columns = hk_ceil_div(across / 16, blocks) * 16;
  int rows = knobs.rows ? knobs.rows : (int)hk_min64(8, g->out[1]);
  if (g->out[1] == 1 && columns < 128) rows = 1;
  while (rows > 1 && shape(g, p, rows, columns) > 76 * 1024) rows = (rows + 1) / 2;
  if (shape(g, p, rows, columns) > 200 * 1024)
    REFUSE("the window (%lldx%lld) exceeds shared memory", (long long)g->win[1], (long long)g->win[2]);
  p->stem.slab_blocks = (int)hk_ceil_div(p->channels, 64);
  p->stem.tiles = (int)hk_ceil_div(g->out[2], columns);
  p->stem.row_tiles = (int)hk_ceil_div(g->out[1], rows);
  const bool transposed = stem_vectors(g, unaligned, p);
  p->turned = transposed;
  p->stem.row_pieces = (int)hk_ceil_div(p->stem.patch_pixels + 7, 8);
  p->stem.div_patch = hk_cu_dw_divisor(p->stem.x_vector == 1 ? p->stem.patch_pitch / 16
                                       : p->stem.x_vector    ? p->stem.row_pieces
                                                             : p->stem.patch_pixels);
  (void)e;
  p->pack = HK_DW_PACK_STEM;
  t->packed_bytes = (size_t)p->stem.slab_blocks * (size_t)p->k_steps * 2048;
  t->knobs = (hk_cu_dw_knobs){0, 0, rows, 0};
  t->image = g->x_type == HK_BF16 ? "stem_bf16" : "stem_f16";
  t->kernel = names[g->x_type == HK_BF16][transposed];
  t->aligned = p->stem.y_vector || p->stem.x_vector;
  t->threads = 32 * warps_of((int)(columns / 16) * rows);
  t->shared_bytes = (int)shape(g, p, rows, columns);
  t->blocks = (int64_t)p->stem.slab_blocks * p->stem.tiles * p->stem.row_tiles * g->n;
  if (t->blocks > INT32_MAX) REFUSE("the problem needs %lld blocks, more than 2^31", (long long)t->blocks);
  /* 16 products and 24 clocks of shared memory per step for 32 outputs by 64 channels */
  const double steps = (double)t->blocks * rows * (double)(columns / 16) / 2 * p->k_steps;
  t->seconds = hk_cu_dw_seconds(g, steps * 50, p->stem.y_vector ? (p->stem.x_vector ? 1.2 : 1.6) : 50);
  return true;
}
