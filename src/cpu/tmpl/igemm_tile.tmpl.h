/* One register tile of igemm by tables: HK_MR rows of pixels x HK_NV vectors of output channels.
 * Registers: HK_MR*HK_NV sums, HK_NV of f, one broadcast of x. Packed f: f[(seg[t] + c)*NR + j], NR = HK_NV*HK_VW. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_igemm_args *r, int64_t m0) {
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
  const int64_t first = -r->channels * (int64_t)sizeof(float), end = r->x_at + r->channels;
#ifdef HK_AHEAD
  const bool ahead = r->ahead;
#endif
#if HK_OPENS
  bool open = !(flags & HK_IGEMM_RESUME);
#endif
  const float *const *rows = r->rows + m0;
  for (int64_t t = 0; t < r->segments; t++, rows += r->row_step) {
    const char *x[HK_MR];
    uintptr_t live = 0;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      live |= (uintptr_t)rows[m] ^ (uintptr_t)r->zeros;
      x[m] = (const char *)(rows[m] + end);
    }
    if (!live) continue;
    const float *f = r->f + r->seg[t] * NR;
    int64_t c = first;
#include "igemm_reduce.tmpl.h"
  }
  if (flags & HK_IGEMM_SUSPEND) {
    float *to = r->partial + m0 * NR;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(to + m * NR + v * HK_VW, acc[m][v]);
    }
    return;
  }
#define HK_C(m) (r->c[m0 + (m)] + r->y_at)
#include "igemm_finish.tmpl.h"
#undef HK_C
  /* all read before any store: after one the compiler would read the arguments again */
  float *y[HK_MR];
  HK_UNROLL for (int m = 0; m < HK_MR; m++) y[m] = r->y[m0 + m] + r->y_at;
  if (last == HK_VW) {
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(y[m] + v * HK_VW, acc[m][v]);
    }
    return;
  }
  HK_UNROLL for (int m = 0; m < HK_MR; m++) {
    HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) v_store(y[m] + v * HK_VW, acc[m][v]);
    v_store_n(y[m] + (HK_NV - 1) * HK_VW, acc[m][HK_NV - 1], last);
  }
}
#define HK_KIND line_
#include "igemm_line.tmpl.h"
#undef HK_KIND
#define HK_KIND one_
#define HK_ONE
#include "igemm_line.tmpl.h"
#undef HK_ONE
#undef HK_KIND
