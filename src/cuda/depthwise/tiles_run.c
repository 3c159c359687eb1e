/* Tiling of the kernel for rows with 3 or 4 taps (run.cu): depthwise 1D, channels-last, f16 and bf16, a multiple of
 * 8 channels. Only used where the knob `run` requests it, as a patient plan may: it is 1.25x as fast as dw_last,
 * which other channel counts need, and one channel more would then cost 2.3x. */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false

bool hk_cu_dw_tile_run(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                       char *why) {
  static const char *const names[2][2][2] = {
      {{"hk_dw_run_f16_3", "hk_dw_run_f16_3_epi"}, {"hk_dw_run_f16_4", "hk_dw_run_f16_4_epi"}},
      {{"hk_dw_run_bf16_3", "hk_dw_run_bf16_3_epi"}, {"hk_dw_run_bf16_4", "hk_dw_run_bf16_4_epi"}}};
  hk_cu_dw *p = &t->params;
  const int64_t taps = g->win[2];
  if ((g->x_type != HK_F16 && g->x_type != HK_BF16) || g->y_type != g->x_type)
    REFUSE("x and y must both be f16 or both bf16, they are %s and %s", hk_type_name(g->x_type),
           hk_type_name(g->y_type));
  if (!hk_cu_is_flat(g, 0) || !hk_cu_is_flat(g, 1) || (taps != 3 && taps != 4) || g->stride[2] != 1 || g->dil[2] != 1)
    REFUSE("needs a 1D window of 3 or 4 taps, stride and dilation 1; it has %lld taps", (long long)taps);
  if (unaligned || g->c != 1 || g->k != 1 || g->groups % 8 || !hk_cu_dw_pairs(&g->x, 8) || !hk_cu_dw_pairs(&g->y, 8) ||
      (e->e.residual && !hk_cu_dw_pairs(&e->c, 8)))
    REFUSE("channels must be contiguous, 16-byte aligned and a multiple of 8; there are %lld", (long long)g->groups);
  if (knobs.run != 12 && knobs.run != 24 && knobs.run != 48) REFUSE("run = %d must be 12, 24 or 48", knobs.run);
  const int64_t runs = g->groups / 8;
  /* adjacent threads: the fewest idle */
  double least = 0;
  for (int lanes = 64; lanes >= 16; lanes -= 8) {
    const double idle = (double)(hk_ceil_div(runs, lanes) * 128) / (128 / lanes) / (double)runs;
    if (!p->last.lanes || idle < 0.97 * least) p->last.lanes = lanes, least = idle;
  }
  if (runs <= 16) p->last.lanes = (int)runs, least = 128.0 / (double)(128 / p->last.lanes * p->last.lanes);
  p->last.teams = 128 / p->last.lanes;
  p->channel_blocks = (int)hk_ceil_div(runs, p->last.lanes);
  p->last.steps = knobs.run;
  const int64_t row_groups = hk_ceil_div(g->out[2], p->last.steps), groups = g->n * row_groups;
  if (groups > INT32_MAX / 2) REFUSE("the problem has %lld runs of outputs, more than 2^30", (long long)groups);
  p->last.row_groups = (int)row_groups, p->last.groups = (int)groups;
  p->last.div_row_groups = hk_cu_dw_divisor(row_groups);
  p->pack = HK_DW_PACK_TAPS;
  t->packed_bytes = (size_t)p->taps * (size_t)p->padded * 4;
  t->image = "dw_run";
  t->kernel = names[g->x_type == HK_BF16][taps == 4][e->any];
  t->knobs = (hk_cu_dw_knobs){p->last.steps, 0, 0, HK_LAST_RUN};
  t->aligned = true;
  t->threads = p->last.lanes * p->last.teams;
  t->blocks = hk_ceil_div(groups, p->last.teams) * p->channel_blocks;
  /* 80 instructions per pixel of 8 channels */
  t->seconds =
      hk_cu_dw_seconds(g, (double)groups * (p->last.steps + 5) * (double)runs * least / 32 * 80 / 4 * 1.3, 1.15);
  return true;
}
