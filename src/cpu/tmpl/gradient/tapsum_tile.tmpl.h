/* One register tile of tapsum: HK_MR taps x HK_NV vectors of channels (tile_), or x HK_NV output channels per group
 * (group_). Registers: HK_MR*HK_NV accumulators, HK_NV of dy; of groups also HK_NV indices, x, dy and two masks, for
 * which HK_GROUP_ROWS leaves room: larger tiles of groups go tap by tap. x is read by the products. A tap is a pointer
 * of its own; all of them share one index. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_tapsum_args *r, int64_t t0) {
  v_f32 acc[HK_MR][HK_NV];
  HK_UNROLL for (int m = 0; m < HK_MR; m++) {
    HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_zero();
  }
  const int64_t x_step = r->x_step, dy_step = r->dy_step, last = r->lanes - (HK_NV - 1) * HK_VW;
  const v_mask mask = v_tail(last);
  for (int64_t s = 0; s < r->segments; s++) {
    const float *dy = r->seg[s].dy, *x[HK_MR];
    HK_UNROLL for (int m = 0; m < HK_MR; m++) x[m] = r->seg[s].x + r->tap[t0 + m].x;
    int64_t i = r->seg[s].count, at = 0;
    if (last == HK_VW) {
      HK_ROLLED for (; i > 0; i--, at += x_step, dy += dy_step) {
#define HK_LAST(p) v_load(p)
#include "cpu/tmpl/gradient/tapsum_step.tmpl.h"
#undef HK_LAST
      }
    } else {
      HK_ROLLED for (; i > 0; i--, at += x_step, dy += dy_step) {
#define HK_LAST(p) v_load_m(p, mask)
#include "cpu/tmpl/gradient/tapsum_step.tmpl.h"
#undef HK_LAST
      }
    }
  }
  HK_UNROLL for (int m = 0; m < HK_MR; m++) {
    float *out = r->out + r->tap[t0 + m].out;
    HK_UNROLL for (int v = 0; v < HK_NV - 1; v++)
      v_store(out + v * HK_VW, v_add(v_load(out + v * HK_VW), acc[m][v]));
    out += (HK_NV - 1) * HK_VW;
    v_store_n(out, v_add(v_load_n(out, last), acc[m][HK_NV - 1]), last);
  }
}

#if HK_MR <= HK_GROUP_ROWS(HK_NV)
static void HK_PASTE4(group_, HK_MR, x, HK_NV)(const hk_tapsum_args *r, int64_t t0) {
  v_f32 acc[HK_MR][HK_NV];
  v_i32 index[HK_NV];
  HK_UNROLL for (int v = 0; v < HK_NV; v++) index[v] = v_load_i32(r->index + v * HK_VW);
  HK_UNROLL for (int m = 0; m < HK_MR; m++) {
    HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_zero();
  }
  const int64_t x_step = r->x_step, dy_step = r->dy_step, lanes = r->lanes;
  const v_mask mask = v_tail(lanes), dy_mask = v_tail(r->dy_lanes);
  for (int64_t s = 0; s < r->segments; s++) {
    const float *dy = r->seg[s].dy, *x[HK_MR];
    HK_UNROLL for (int m = 0; m < HK_MR; m++) x[m] = r->seg[s].x + r->tap[t0 + m].x;
    int64_t i = r->seg[s].count, at = 0;
    HK_ROLLED for (; i > 0; i--, at += x_step, dy += dy_step) {
      const v_f32 all = v_load_m(dy, dy_mask);
      v_f32 p[HK_NV];
      HK_UNROLL for (int v = 0; v < HK_NV; v++) p[v] = v_permute(all, index[v]);
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        const v_f32 w = v_load_m(x[m] + at, mask);
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_fma(w, p[v], acc[m][v]);
      }
    }
  }
  HK_UNROLL for (int m = 0; m < HK_MR; m++) {
    float *out = r->out + r->tap[t0 + m].out;
    HK_UNROLL for (int v = 0; v < HK_NV; v++, out += r->out_step)
      v_store_n(out, v_add(v_load_n(out, lanes), acc[m][v]), lanes);
  }
}
#else
static void HK_PASTE4(group_, HK_MR, x, HK_NV)(const hk_tapsum_args *r, int64_t t0) {
  for (int64_t m = 0; m < HK_MR; m++) HK_PASTE4(group_, 1, x, HK_NV)(r, t0 + m);
}
#endif
