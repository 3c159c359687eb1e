/* Register tiles of pgemm over one strip of pixels and one segment. One call runs `tiles` tiles, weights of the first
 * at `tile`, results from y on, so no load stalls the start of a tile (see igemm_line.tmpl.h). HK_COPIES: pixels are
 * also copied to at->kept, where the following tiles read them contiguously, from one page instead of one page per
 * channel. Complete sums only. */
static void HK_PASTE4(HK_KIND, HK_MR, x, HK_NV)(const strip_at *at, const float *tile, float *y, int64_t m0,
                                                int64_t tiles) {
  enum { NR = HK_NV * HK_VW };
  const int64_t y_step = at->y_step, depth = at->depth * HK_MR;
#ifdef HK_COPIES
  const int64_t b_step = at->from_step;
#else
  const int64_t b_step = at->b_step;
#endif
  for (; tiles > 0; tiles--, m0 += HK_MR, tile += depth) {
    v_f32 acc[HK_MR][HK_NV];
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_zero();
    }
    const float *a = tile + at->start * HK_MR;
    int64_t i = at->count;
#ifdef HK_COPIES
    const float *b = at->from;
    float *kept = at->kept;
    if (__builtin_expect(at->prefetch, 0)) {
      HK_ROLLED for (; i > 0; i--, a += HK_MR, b += b_step, kept += NR) {
#define HK_COPY kept
#define HK_NEXT NR
#include "cpu/tmpl/planes/pgemm_step.tmpl.h"
#undef HK_NEXT
      }
    } else {
      HK_ROLLED for (; i > 0; i--, a += HK_MR, b += b_step, kept += NR) {
#include "cpu/tmpl/planes/pgemm_step.tmpl.h"
#undef HK_COPY
      }
    }
#else
    const float *b = at->b;
#if HK_MUL_FIRST
    {
#define HK_FIRST
#include "cpu/tmpl/planes/pgemm_step.tmpl.h"
#undef HK_FIRST
      i--, a += HK_MR, b += b_step;
    }
#endif
    HK_ROLLED for (; i > 0; i--, a += HK_MR, b += b_step) {
#include "cpu/tmpl/planes/pgemm_step.tmpl.h"
    }
#endif
    const uint32_t flags = at->flags;
    if (__builtin_expect(flags != 0, 0)) {
      const hk_pgemm_args *r = at->r;
      const int64_t pixel = at->pixel;
#include "cpu/tmpl/planes/pgemm_finish.tmpl.h"
    }
#include "cpu/tmpl/common/store_rows.tmpl.h"
  }
}
