/* One register tile of pgemm: HK_MR output channels x HK_NV vectors of pixels, starting at `pixel`. Registers:
 * HK_MR*HK_NV accumulators, HK_NV of pixels, one broadcast weight. Weights: a[(seg + i)*HK_MR + m] of this tile. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_pgemm_args *r, int64_t m0, int64_t pixel) {
  enum { NR = HK_NV * HK_VW };
  v_f32 acc[HK_MR][HK_NV];
  const uint32_t flags = r->flags;
  if (flags & HK_IGEMM_RESUME) {
    const float *from = r->partial + m0 * NR;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_load(from + m * NR + v * HK_VW);
    }
  } else {
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_zero();
    }
  }
  const int64_t b_step = r->b_step;
  const bool prefetch = m0 == 0 && r->prefetch;
  const float *tile = r->a + m0 * r->depth;
  bool open = !(flags & HK_IGEMM_RESUME);
  for (int64_t t = 0; t < r->segments; t++) {
    const float *a = tile + r->seg[t].at * HK_MR;
    const float *b = r->seg[t].b + pixel;
    int64_t i = r->seg[t].count;
    if (open && i > 0) {
#define HK_FIRST
#define HK_NEXT NR
#include "cpu/tmpl/planes/pgemm_step.tmpl.h"
#undef HK_NEXT
#undef HK_FIRST
      open = false, i--, a += HK_MR, b += b_step;
    }
    if (__builtin_expect(prefetch, 0)) { /* the first tile of a strip prefetches the next strip */
      HK_ROLLED for (; i > 0; i--, a += HK_MR, b += b_step) {
#define HK_NEXT NR
#include "cpu/tmpl/planes/pgemm_step.tmpl.h"
#undef HK_NEXT
      }
    } else {
      HK_ROLLED for (; i > 0; i--, a += HK_MR, b += b_step) {
#include "cpu/tmpl/planes/pgemm_step.tmpl.h"
      }
    }
  }
  if (flags & HK_IGEMM_SUSPEND) {
    float *to = r->partial + m0 * NR;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(to + m * NR + v * HK_VW, acc[m][v]);
    }
    return;
  }
#include "cpu/tmpl/planes/pgemm_finish.tmpl.h"
  /* Read before the first store: a store may alias the arguments, so the compiler would reload them. */
  const int64_t y_step = r->y_step;
  float *y = r->y + m0 * y_step + pixel;
  if (last == HK_VW) {
    HK_UNROLL for (int m = 0; m < HK_MR; m++, y += y_step) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(y + v * HK_VW, acc[m][v]);
    }
    return;
  }
  HK_UNROLL for (int m = 0; m < HK_MR; m++, y += y_step) {
    HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) v_store(y + v * HK_VW, acc[m][v]);
    v_store_n(y + (HK_NV - 1) * HK_VW, acc[m][HK_NV - 1], last);
  }
}
#define HK_KIND strip_
#include "cpu/tmpl/planes/pgemm_strip.tmpl.h"
#undef HK_KIND
#define HK_KIND keep_
#define HK_COPIES
#include "cpu/tmpl/planes/pgemm_strip.tmpl.h"
#undef HK_COPIES
#undef HK_KIND
