/* One register tile of outer: HK_MR rows x HK_NV vectors. Registers: HK_MR*HK_NV accumulators, HK_NV of b, one
 * broadcast of a, and the mask of a last, partial vector. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_outer_args *r, int64_t m0) {
  v_f32 acc[HK_MR][HK_NV];
  HK_UNROLL for (int m = 0; m < HK_MR; m++) {
    HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_zero();
  }
  const int64_t a_step = r->a_step, b_step = r->b_step, last = r->columns - (HK_NV - 1) * HK_VW;
  const v_mask mask = v_tail(last);
  for (int64_t t = 0; t < r->segments; t++) {
    const float *a = r->seg[t].a + r->a_at + m0, *b = r->seg[t].b + r->b_at;
    int64_t i = r->seg[t].count;
#if !HK_MASKS_FREE
    if (last == HK_VW) {
      HK_ROLLED for (; i > 0; i--, a += a_step, b += b_step) {
#define HK_LAST(p) v_load(p)
#include "cpu/tmpl/gradient/outer_step.tmpl.h"
#undef HK_LAST
      }
      continue;
    }
#endif
    HK_ROLLED for (; i > 0; i--, a += a_step, b += b_step) {
#define HK_LAST(p) v_load_m(p, mask)
#include "cpu/tmpl/gradient/outer_step.tmpl.h"
#undef HK_LAST
    }
  }
  const int64_t out_step = r->out_step;
  float *out = r->out + m0 * out_step;
  if (r->add) {
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      const float *from = out + m * out_step;
      HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) acc[m][v] = v_add(v_load(from + v * HK_VW), acc[m][v]);
      acc[m][HK_NV - 1] = v_add(v_load_n(from + (HK_NV - 1) * HK_VW, last), acc[m][HK_NV - 1]);
    }
  }
  HK_UNROLL for (int m = 0; m < HK_MR; m++, out += out_step) {
    HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) v_store(out + v * HK_VW, acc[m][v]);
    v_store_n(out + (HK_NV - 1) * HK_VW, acc[m][HK_NV - 1], last);
  }
}
