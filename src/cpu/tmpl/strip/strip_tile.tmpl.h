/* Tiles of strip: HK_MR pixels x HK_NV vectors of output channels, `tiles` of them in sequence. Registers: HK_MR*HK_NV
 * accumulators, HK_NV of f, one broadcast of x; HK_MR pointers to pixels. By pairs: 2*HK_MR accumulators and two of f;
 * a broadcast of two inputs serves two products, where a broadcast of one would need as many loads as products. */
#ifdef HK_PAIRS
#include "cpu/tmpl/strip/strip_line.tmpl.h"
#endif
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_strip_args *a) {
#ifdef HK_PAIRS
  if (a->x_step && a->lanes == HK_VW) {
    HK_PASTE4(line_, HK_MR, x, HK_NV)(a);
    return;
  }
  enum { SUMS = 2, STEP = 2 };
#else
  enum { SUMS = HK_NV, STEP = 1 };
#endif
  enum { NR = SUMS * HK_VW };
  const int64_t inputs = a->inputs, *x_at = a->x_at, *y_at = a->y_at, last = a->lanes - (HK_NV - 1) * HK_VW;
  const hk_strip_tap *taps = a->taps, *end = taps + a->tap_count;
  const float *from = a->x, *weights = a->f, *c = a->c, *zeros = a->zeros;
  float *y = a->y;
  int64_t channel = 0;
  for (int64_t tile = a->tiles; tile > 0; tile--, from += a->x_next, y += a->y_next, weights += a->f_next) {
    v_f32 acc[HK_MR][SUMS], whole[HK_MR][SUMS];
    int64_t chunks = 0, chunk_end = HK_CHUNK / STEP * NR;
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < SUMS; v++) acc[m][v] = v_zero();
    }
    HK_ROLLED for (const hk_strip_tap *t = taps; t < end; t++) {
      if (__builtin_expect(t->f >= chunk_end, 0)) {
        do chunk_end += HK_CHUNK / STEP * NR;
        while (t->f >= chunk_end);
#define HK_CHUNK_SUMS SUMS
#include "cpu/tmpl/common/chunk.tmpl.h"
#undef HK_CHUNK_SUMS
      }
      const float *x[HK_MR], *f = weights + t->f;
      const uint32_t mask = t->mask;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) x[m] = from + t->x + x_at[m];
      if (mask != (1u << HK_MR) - 1) {
        HK_UNROLL for (int m = 0; m < HK_MR; m++) x[m] = mask >> m & 1 ? x[m] : zeros;
      }
      HK_ROLLED for (int64_t i = 0; i + STEP <= inputs; i += STEP, f += NR) {
        v_f32 b[SUMS];
        HK_UNROLL for (int v = 0; v < SUMS; v++) {
          b[v] = v_load(f + v * HK_VW);
#if HK_MR > 1
          HK_PIN(b[v]);
#endif
        }
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
#ifdef HK_PAIRS
          v_f32 s = v_bcast_pair(x[m] + i);
          HK_PIN(s);
#else
          const v_f32 s = v_bcast(x[m] + i);
#endif
          HK_UNROLL for (int v = 0; v < SUMS; v++) acc[m][v] = v_fma(s, b[v], acc[m][v]);
        }
      }
#ifdef HK_PAIRS
      if (inputs % 2) {
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
          const v_f32 s = v_bcast_half_pair(x[m] + inputs - 1);
          HK_UNROLL for (int v = 0; v < SUMS; v++) acc[m][v] = v_fma(s, v_load(f + v * HK_VW), acc[m][v]);
        }
      }
#endif
    }
    if (__builtin_expect(chunks > 0, 0)) {
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < SUMS; v++) acc[m][v] = v_add(whole[m][v], acc[m][v]);
      }
    }
#ifdef HK_PAIRS
    HK_UNROLL for (int m = 0; m < HK_MR; m++) acc[m][0] = v_add_pairs(acc[m][0], acc[m][1]);
#endif
    if (a->fuse.flags) {
      const v_mask mask = v_tail(last);
      HK_UNROLL for (int v = 0; v < HK_NV; v++) {
        const int64_t at = v * HK_VW, of = channel + at;
        const bool whole = v < HK_NV - 1;
        v_f32 scale = v_set1(1.0f), bias = v_zero();
        if (a->scale)
          scale = a->scale_one ? v_bcast(a->scale) : whole ? v_load(a->scale + of) : v_load_m(a->scale + of, mask);
        if (a->bias) bias = whole ? v_load(a->bias + of) : v_load_m(a->bias + of, mask);
        HK_UNROLL for (int m = 0; m < HK_MR; m++) {
          v_f32 r = v_zero();
          if (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER))
            r = whole ? v_load(c + a->c_at[m] + at) : v_load_m(c + a->c_at[m] + at, mask);
          acc[m][v] = fuse_vector(&a->fuse, acc[m][v], scale, bias, r);
        }
      }
      if (c) c += a->c_next;
      channel += a->channel_next;
    }
    if (last == HK_VW) {
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(y + y_at[m] + v * HK_VW, acc[m][v]);
      }
    } else {
      const bool over = a->overlap;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) v_store(y + y_at[m] + v * HK_VW, acc[m][v]);
        float *to = y + y_at[m] + (HK_NV - 1) * HK_VW;
        if (over && m < HK_MR - 1) v_store(to, acc[m][HK_NV - 1]);
        else v_store_n(to, acc[m][HK_NV - 1], last);
      }
    }
  }
}
