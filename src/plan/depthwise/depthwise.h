/* What the depthwise and grouped algorithms share: chains of taps, packed weights in the order of the chains, the
 * fused epilogue, the split of the work. */
#ifndef HK_PLAN_DW_H
#define HK_PLAN_DW_H
#include "plan/plan.h"

/* floats on the stack of a task: the padded band or edge of a plane */
#define HK_DW_BUFFER 16384
/* most taps whose weights are put in order on the stack when they are given at execute */
#define HK_DW_TAPS_NOW 4096

typedef struct hk_tap_runs {
  hk_dw_run *runs;
  int32_t *order; /* order[i]: which tap is the i-th weight of the runs */
  int32_t *place; /* place[order[i]] = i */
  int64_t run_count, taps;
} hk_tap_runs;
/* Joins taps whose offsets (32-bit) lie `step` apart (0: neighbours, as fans), at most HK_RUN_TAPS a run; false when
 * memory is out. */
bool hk_tap_runs_make(hk_tap_runs *c, const int64_t *offset, int64_t taps, int64_t step);
void hk_tap_runs_free(hk_tap_runs *c);

/* Packs [channel][taps * lanes] of weights behind the chain's order; a shared pack must have the same order. */
hk_status hk_tap_runs_pack(hk_plan *plan, const hk_tap_runs *c);
const float *hk_tap_runs_weights(const hk_plan *plan, const hk_tap_runs *c);
/* Element offset of tap t from the first tap, in f. */
static inline int64_t hk_dw_tap(const hk_geom *g, int64_t t) {
  const int64_t s = t % g->win[2], r = t / g->win[2] % g->win[1], a = t / g->win[2] / g->win[1];
  return a * g->f.at[0] + r * g->f.at[1] + s * g->f.at[2];
}

/* True when the epilogue is one that kernels fuse and y is f32; else rows go through hk_plan_store_row. */
bool hk_dw_fuse_make(const hk_task *task, hk_dw_fuse *fuse);
/* Channels of a depthwise tensor are neighbours. */
static inline bool hk_dw_flat(const hk_strides *s, int64_t groups) { return s->group == 1 || groups == 1; }
/* Why no algorithm of fewer products along one line takes the task, as far as they all agree; NULL where it may. */
const char *hk_dw_line_refuses(const hk_task *task, int64_t least_taps, int64_t most_taps);
/* Index into x of coordinate i (with padding taken off, input dilation on) of dimension d; -1 outside. */
static inline int64_t hk_dw_inside(const hk_geom *g, int d, int64_t i) {
  if (i < 0 || i >= g->in_span[d]) return -1;
  return g->in_dil[d] == 1 ? i : i % g->in_dil[d] ? -1 : i / g->in_dil[d];
}
/* Runs of a line of taps of which every `apart`-th chain, HK_RUN_TAPS a run: taps % apart chains have one tap more than
 * the others. */
static inline int64_t hk_tap_run_count(int64_t taps, int64_t apart) {
  if (apart >= taps) return taps;
  const int64_t each = taps / apart, more = taps % apart;
  return more * hk_ceil_div(each + 1, HK_RUN_TAPS) + (apart - more) * hk_ceil_div(each, HK_RUN_TAPS);
}
static inline int64_t hk_gcd(int64_t a, int64_t b) {
  while (b) {
    const int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}
/* Piece i of count equal pieces of 0..total: [*from, *to). */
static inline void hk_piece(int64_t total, int64_t i, int64_t count, int64_t *from, int64_t *to) {
  if (count == 1) { /* a division takes longer than the smallest problems */
    *from = 0;
    *to = total;
    return;
  }
  const int64_t each = total / count, more = total % count;
  *from = i * each + hk_min64(i, more);
  *to = *from + each + (i < more);
}
#endif
