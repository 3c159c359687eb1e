/* Tiling of the row kernel: contiguous rows, directly from global memory (row.cu). */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false

bool hk_cu_dw_tile_row(const hk_geom *g, const hk_epi *e, hk_cu_dw_tiling *t, char *why) {
  static const char *const names[4][2] = {{"hk_dw_row_f32", "hk_dw_row_f32_epi"},
                                          {"", ""},
                                          {"hk_dw_row_f16", "hk_dw_row_f16_epi"},
                                          {"hk_dw_row_bf16", "hk_dw_row_bf16_epi"}};
  hk_cu_dw *p = &t->params;
  if (g->c != 1) REFUSE("groups must have 1 input channel, they have %lld", (long long)g->c);
  if (g->stride[2] != 1 || g->dil[2] != 1)
    REFUSE("stride and dilation along rows must be 1, they are %lld and %lld", (long long)g->stride[2],
           (long long)g->dil[2]);
  if (g->x.at[2] != 1 || g->y.at[2] != 1 || g->y_type != g->x_type)
    REFUSE("rows of x and y must be contiguous and of one type; their strides are %lld and %lld", (long long)g->x.at[2],
           (long long)g->y.at[2]);
  const int per = g->x_type == HK_F32 ? 4 : 8;
  /* a row starts up to per - 1 outputs before its first one, at a 16-byte address */
  const int64_t row_groups = hk_ceil_div(g->out[2] + per - 1, 2 * per),
                lines = g->n * p->channels * g->out[0] * g->out[1];
  if (lines * row_groups > INT32_MAX / 2)
    REFUSE("the problem has %lld runs of outputs, more than 2^30", (long long)(lines * row_groups));
  p->last.row_groups = (int)row_groups;
  p->last.groups = (int)(lines * row_groups);
  p->last.div_row_groups = hk_cu_dw_divisor(row_groups);
  p->pack = HK_DW_PACK_CHANNELS;
  t->packed_bytes = (size_t)p->taps * (size_t)p->channels * 4;
  t->image = "dw_row";
  t->kernel = names[g->x_type][e->any];
  t->threads = 256;
  t->blocks = hk_ceil_div(p->last.groups, 256);
  /* clocks per warp, fitted to bench/results/2026-11-15-depthwise-h200.md */
  const double warps = (double)p->last.groups / 32, rows = (double)(g->win[0] * g->win[1]);
  const double clocks = per == 8 ? 50 + rows * (62 + 7.8 * p->taps_u) : 40 + rows * (45 + 5.5 * p->taps_u);
  t->seconds = hk_cu_dw_seconds(g, warps * clocks, 1.15);
  return true;
}
