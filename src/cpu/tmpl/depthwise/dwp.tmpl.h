/* dwp: depthwise convolution of one channel, lanes are neighbours along the last dimension; see hk_dwp_args.
 *
 * Define MR (most vectors per tile) and HK_NAME, include a vocabulary, then this. There is one body for every count of
 * vectors 1..MR and every chain 1..HK_RUN_TAPS, so a remainder costs only its share. Registers: MR accumulators,
 * HK_RUN_TAPS weights, one input. Reads whole vectors of x (the caller guarantees that they exist); writes only the
 * lanes it is told to. */
#include "cpu/tmpl/common/unroll.tmpl.h"
#include "cpu/tmpl/depthwise/dwfuse.tmpl.h"

/* The FMAs of one chain: vectors + taps - 1 loads, vectors * taps products. */
HK_INLINE void dwp_run(const int vectors, const int taps, v_f32 *acc, const float *x, const float *f, int64_t step) {
  v_f32 w[HK_RUN_TAPS];
  HK_UNROLL for (int t = 0; t < taps; t++) w[t] = v_bcast(f + t);
  HK_UNROLL for (int m = 0; m < vectors + taps - 1; m++) {
    v_f32 v = v_load(x);
    if (taps > 1) HK_HOLD(v);
    x += step;
    HK_UNROLL for (int t = 0; t < taps; t++) {
      if (m - t >= 0 && m - t < vectors) acc[m - t] = v_fma(v, w[t], acc[m - t]);
    }
  }
}

#if HK_VW > 1
/* The FMAs of one fan. Neighbours are shifted together from two whole vectors, which is cheaper than loads that cross
 * cache lines; the last vector has no right neighbour and is loaded tap by tap. */
HK_INLINE void dwp_fan(const int vectors, const int taps, v_f32 *acc, const float *x, const float *f) {
  v_f32 w[HK_RUN_TAPS], lo = v_load(x);
  HK_UNROLL for (int t = 0; t < taps; t++) w[t] = v_bcast(f + t);
  HK_UNROLL for (int j = 0; j < vectors; j++) {
    acc[j] = v_fma(lo, w[0], acc[j]);
    if (j < vectors - 1) {
      const v_f32 hi = v_load(x + (j + 1) * HK_VW);
      HK_UNROLL for (int t = 1; t < taps; t++) acc[j] = v_fma(v_shift(lo, hi, t), w[t], acc[j]);
      lo = hi;
    } else {
      HK_UNROLL for (int t = 1; t < taps; t++) acc[j] = v_fma(v_load(x + j * HK_VW + t), w[t], acc[j]);
    }
  }
}
#endif

HK_INLINE void dwp_store(const int vectors, const hk_dwp_args *a, v_f32 *acc, int64_t tile) {
  const bool last = tile == a->tiles - 1;
  const int lanes = last ? a->lanes : HK_VW, last_lanes = last ? a->last_lanes : HK_VW;
  float *y = a->y + tile * a->y_next;
  if (a->fuse.flags) {
    const v_f32 scale = v_set1(a->scale), bias = v_set1(a->bias);
    const float *c = a->c + (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER) ? tile * a->c_next : 0);
    HK_UNROLL for (int j = 0; j < vectors; j++) {
      v_f32 r = v_zero();
      if (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER)) {
        r = v_load_m(c + j * a->c_step, v_tail(j == vectors - 1 ? last_lanes : lanes));
      }
      acc[j] = fuse_vector(&a->fuse, acc[j], scale, bias, r);
    }
  }
  HK_UNROLL for (int j = 0; j < vectors - 1; j++) {
    if (lanes == HK_VW) v_store(y + j * a->y_step, acc[j]);
    else v_store_n(y + j * a->y_step, acc[j], lanes);
  }
  v_store_n(y + (vectors - 1) * a->y_step, acc[vectors - 1], last_lanes);
}

HK_INLINE void dwp_tiles(const int vectors, const hk_dwp_args *a) {
  const hk_dw_run *end = a->runs + a->run_count;
  for (int64_t tile = 0; tile < a->tiles; tile++) {
    v_f32 acc[MR];
    HK_UNROLL for (int j = 0; j < vectors; j++) acc[j] = a->start ? v_load(a->start + j * HK_VW) : v_zero();
    const float *x = a->x + tile * a->x_next, *f = a->f;
    for (const hk_dw_run *r = a->runs; r < end; r++) {
      const float *p = x + r->offset;
      switch (r->taps + r->fan * HK_RUN_TAPS) {
        case 1: dwp_run(vectors, 1, acc, p, f, a->x_step); break;
        case 2: dwp_run(vectors, 2, acc, p, f, a->x_step); break;
        case 3: dwp_run(vectors, 3, acc, p, f, a->x_step); break;
        case 4: dwp_run(vectors, 4, acc, p, f, a->x_step); break;
#if HK_VW > 1
        case 6: dwp_fan(vectors, 2, acc, p, f); break;
        case 7: dwp_fan(vectors, 3, acc, p, f); break;
        case 8: dwp_fan(vectors, 4, acc, p, f); break;
#endif
      }
      f += r->taps;
    }
    dwp_store(vectors, a, acc, tile);
  }
}

#if HK_MASKS_FREE
/* The lanes of a vector whose columns, from `column` on, lie in 0..width-1. */
HK_INLINE v_mask dwp_columns(int64_t column, int64_t width) {
  return (v_mask)(v_tail(width - column) & ~v_tail(-column));
}

/* Stands in for vectors outside x. */
static const float zero_vector[HK_VW] __attribute__((aligned(64)));

/* One run read in place from x; inside: all its vectors exist. Zen 4, planes of 7 to 28 columns: with 8 lanes it is
 * faster to skip vectors outside x, with 16 lanes to read zeros in their place. */
HK_INLINE void dwp_run_masked(const int vectors, const int taps, const bool inside, v_f32 *acc, const hk_dw_run *r,
                              const float *x, const float *f, v_mask lanes, int64_t step) {
  v_f32 w[HK_RUN_TAPS];
  HK_UNROLL for (int t = 0; t < taps; t++) w[t] = v_bcast(f + t);
  HK_UNROLL for (int m = 0; m < vectors + taps - 1; m++) {
    HK_OPAQUE(x);
    const bool in = inside || (m >= r->first && m < r->last);
    if (in || HK_VW > 8) {
      v_f32 v = v_load_m(in ? x : zero_vector, lanes);
      if (taps > 1) HK_HOLD(v);
      HK_UNROLL for (int t = 0; t < taps; t++) {
        if (m - t >= 0 && m - t < vectors) acc[m - t] = v_fma(v, w[t], acc[m - t]);
      }
    }
    x += step;
  }
}

HK_INLINE void dwp_tiles_masked(const int vectors, const hk_dwp_args *a) {
  const hk_dw_run *end = a->runs + a->run_count;
  for (int64_t tile = 0; tile < a->tiles; tile++) {
    v_f32 acc[MR];
    HK_UNROLL for (int j = 0; j < vectors; j++) acc[j] = v_zero();
    const float *f = a->f;
    for (const hk_dw_run *r = a->runs; r < end; f += r->taps, r++) {
      const float *x = a->x + tile * a->x_next + r->offset;
      const v_mask lanes = dwp_columns(r->column + tile * HK_VW, a->width);
      if (r->first <= 0 && r->last >= vectors + r->taps - 1) {
        switch (r->taps) {
          case 1: dwp_run_masked(vectors, 1, true, acc, r, x, f, lanes, a->x_step); break;
          case 2: dwp_run_masked(vectors, 2, true, acc, r, x, f, lanes, a->x_step); break;
          case 3: dwp_run_masked(vectors, 3, true, acc, r, x, f, lanes, a->x_step); break;
          default: dwp_run_masked(vectors, HK_RUN_TAPS, true, acc, r, x, f, lanes, a->x_step); break;
        }
      } else if (r->first < r->last) {
        switch (r->taps) {
          case 1: dwp_run_masked(vectors, 1, false, acc, r, x, f, lanes, a->x_step); break;
          case 2: dwp_run_masked(vectors, 2, false, acc, r, x, f, lanes, a->x_step); break;
          case 3: dwp_run_masked(vectors, 3, false, acc, r, x, f, lanes, a->x_step); break;
          default: dwp_run_masked(vectors, HK_RUN_TAPS, false, acc, r, x, f, lanes, a->x_step); break;
        }
      }
    }
    dwp_store(vectors, a, acc, tile);
  }
}
#else
#define dwp_tiles_masked(n, a) dwp_tiles(n, a)
#endif

#define DWP_TILES(n)                                                            \
  static __attribute__((noinline)) void dwp_tiles_##n(const hk_dwp_args *a) {   \
    if (a->width) dwp_tiles_masked(n, a);                                       \
    else dwp_tiles(n, a);                                                       \
  }
DWP_TILES(1) DWP_TILES(2) DWP_TILES(3) DWP_TILES(4) DWP_TILES(5) DWP_TILES(6) DWP_TILES(7) DWP_TILES(8)
#if MR > 8
DWP_TILES(9) DWP_TILES(10)
#endif
#if MR > 10
DWP_TILES(11) DWP_TILES(12) DWP_TILES(13) DWP_TILES(14)
#endif

#if HK_VW > 1
#include "cpu/tmpl/depthwise/dwline.tmpl.h"
#else
static void line_run(const hk_dwp_args *a) { (void)a; } /* no plan uses it */
#endif

void HK_NAME(const void *args) {
  const hk_dwp_args *a = args;
  if (a->line) {
    line_run(a);
    return;
  }
  switch (a->vectors) {
    case 1: dwp_tiles_1(a); return;
    case 2: dwp_tiles_2(a); return;
    case 3: dwp_tiles_3(a); return;
    case 4: dwp_tiles_4(a); return;
    case 5: dwp_tiles_5(a); return;
    case 6: dwp_tiles_6(a); return;
    case 7: dwp_tiles_7(a); return;
    case 8: dwp_tiles_8(a); return;
#if MR > 8
    case 9: dwp_tiles_9(a); return;
    case 10: dwp_tiles_10(a); return;
#endif
#if MR > 10
    case 11: dwp_tiles_11(a); return;
    case 12: dwp_tiles_12(a); return;
    case 13: dwp_tiles_13(a); return;
    case 14: dwp_tiles_14(a); return;
#endif
  }
}
