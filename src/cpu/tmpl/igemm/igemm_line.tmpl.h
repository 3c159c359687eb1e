/* Register tiles of igemm over rows at a constant stride: row m of segment t is at x + x_seg[t] + m*x_step, y at y +
 * m*y_step. One call runs `tiles` tiles with all their parameters in registers, so no load stalls the start of a tile
 * (Zen 4: 10 cycles of overhead per tile, 20 to 50 with pointer tables). HK_ONE: there is one segment. Complete sums
 * only. */
static void HK_PASTE4(HK_KIND, HK_MR, x, HK_NV)(const line_at *at, const char *x0, float *y, int64_t m0,
                                                int64_t tiles) {
  enum { NR = HK_NV * HK_VW };
  const int64_t x_step = at->x_step, y_step = at->y_step;
#ifdef HK_PREFETCH
  const bool prefetch = at->prefetch;
#endif
  for (; tiles > 0; tiles--, m0 += HK_MR) {
    v_f32 acc[HK_MR][HK_NV];
#ifndef HK_ONE
    v_f32 whole[HK_MR][HK_NV];
    int64_t chunks = 0;
    uint64_t chunk = (uint64_t)at->seg[0] / HK_CHUNK; /* unsigned: a shift */
#endif
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_zero();
    }
#if HK_MUL_FIRST
    bool open = true;
#endif
#ifdef HK_ONE
    const float *f = at->f;
    int64_t c = at->first;
    const char *x[HK_MR];
    x[0] = x0;
    HK_UNROLL for (int m = 1; m < HK_MR; m++) x[m] = x[m - 1] + x_step;
    x0 = x[HK_MR - 1] + x_step;
#include "cpu/tmpl/igemm/igemm_reduce.tmpl.h"
#else
    for (int64_t t = 0; t < at->segments; t++) {
      if (__builtin_expect((uint64_t)at->seg[t] / HK_CHUNK != chunk, 0)) {
        chunk = (uint64_t)at->seg[t] / HK_CHUNK;
#define HK_CHUNK_SUMS HK_NV
#include "cpu/tmpl/common/chunk.tmpl.h"
#undef HK_CHUNK_SUMS
      }
      const float *f = at->f + at->seg[t] * NR;
      int64_t c = at->first;
      const char *x[HK_MR];
      x[0] = x0 + at->x_seg[t] * (int64_t)sizeof(float);
      HK_UNROLL for (int m = 1; m < HK_MR; m++) x[m] = x[m - 1] + x_step;
#include "cpu/tmpl/igemm/igemm_reduce.tmpl.h"
    }
    x0 += HK_MR * x_step;
    if (__builtin_expect(chunks > 0, 0)) {
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_add(whole[m][v], acc[m][v]);
      }
    }
#endif
    const uint32_t flags = at->flags;
    if (__builtin_expect(flags != 0, 0)) {
      const hk_igemm_args *r = at->r;
#define HK_C(m) (r->line->c + (m0 + (m)) * r->line->c_step + r->y_at)
#include "cpu/tmpl/igemm/igemm_finish.tmpl.h"
#undef HK_C
    }
#include "cpu/tmpl/common/store_rows.tmpl.h"
  }
}
