/* One register tile of igemm: HK_MR rows of pixels x HK_NV vectors of output channels.
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
  const int64_t channels = r->channels, end = r->x_at + channels;
#ifdef HK_AHEAD
  const bool ahead = r->ahead;
#endif
  const hk_igemm_line *line = r->line;
  const float *const *rows = line ? NULL : r->rows + m0;
  bool open = !(flags & HK_IGEMM_RESUME);
  for (int64_t t = 0; t < r->segments; t++) {
    const float *x[HK_MR];
    if (line) {
      x[0] = line->x + line->x_seg[t] + m0 * line->x_step + end;
      HK_UNROLL for (int m = 1; m < HK_MR; m++) x[m] = x[m - 1] + line->x_step;
    } else {
      uintptr_t live = 0;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        live |= (uintptr_t)rows[m] ^ (uintptr_t)r->zeros;
        x[m] = rows[m] + end;
      }
      rows += r->row_step;
      if (!live) continue;
    }
    const float *f = r->f + r->seg[t] * NR;
    int64_t c = -channels;
    if (open) {
#define HK_OPEN
#include "igemm_step.tmpl.h"
#undef HK_OPEN
      open = false, c++, f += NR;
    }
#ifdef HK_AHEAD
    if (__builtin_expect(ahead, 0)) {
      HK_ROLLED for (; c < 0; c++, f += NR) {
#define HK_NEXT (8 * NR)
#include "igemm_step.tmpl.h"
#undef HK_NEXT
      }
      continue;
    }
#endif
    HK_ROLLED for (; c < 0; c++, f += NR) {
#include "igemm_step.tmpl.h"
    }
  }
  if (flags & HK_IGEMM_SUSPEND) {
    float *to = r->partial + m0 * NR;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(to + m * NR + v * HK_VW, acc[m][v]);
    }
    return;
  }
  if (flags & HK_IGEMM_AFFINE) {
    HK_UNROLL for (int v = 0; v < HK_NV; v++) {
      const v_f32 scale = v_load(r->scale + v * HK_VW), bias = v_load(r->bias + v * HK_VW);
      HK_UNROLL for (int m = 0; m < HK_MR; m++) acc[m][v] = v_fma(acc[m][v], scale, bias);
    }
  }
  const int64_t last = r->columns - (HK_NV - 1) * HK_VW;
  if (flags & HK_IGEMM_BEFORE) {
    const v_f32 beta = v_set1(r->beta);
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      const float *c = line ? line->c + (m0 + m) * line->c_step + r->y_at : r->c[m0 + m] + r->y_at;
      HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) acc[m][v] = v_fma(beta, v_load(c + v * HK_VW), acc[m][v]);
      acc[m][HK_NV - 1] = v_fma(beta, v_load_n(c + (HK_NV - 1) * HK_VW, last), acc[m][HK_NV - 1]);
    }
  }
  if (flags & HK_IGEMM_CLAMP) {
    const v_f32 lo = v_set1(r->lo), hi = v_set1(r->hi);
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_min(hi, v_max(lo, acc[m][v]));
    }
  }
  if (flags & HK_IGEMM_AFTER) {
    const v_f32 beta = v_set1(r->beta);
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      const float *c = line ? line->c + (m0 + m) * line->c_step + r->y_at : r->c[m0 + m] + r->y_at;
      HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) acc[m][v] = v_fma(beta, v_load(c + v * HK_VW), acc[m][v]);
      acc[m][HK_NV - 1] = v_fma(beta, v_load_n(c + (HK_NV - 1) * HK_VW, last), acc[m][HK_NV - 1]);
    }
  }
  /* all read before any store: after one the compiler would read the arguments again */
  float *y[HK_MR];
  if (line) {
    const int64_t y_step = line->y_step;
    y[0] = line->y + m0 * y_step + r->y_at;
    HK_UNROLL for (int m = 1; m < HK_MR; m++) y[m] = y[m - 1] + y_step;
  } else {
    HK_UNROLL for (int m = 0; m < HK_MR; m++) y[m] = r->y[m0 + m] + r->y_at;
  }
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
