/* dwp where the window is `line` taps, adjacent or x_step apart, and a row of x is read in place: see hk_dwp_args.
 * Included by dwp.tmpl.h.
 *
 * Short windows are bound by loads that cross cache lines. The weights stay in registers and each output vector is
 * summed and stored in one go. With 16 lanes, neighbours are built by shifting two whole vectors together (valignd):
 * for all taps up to four, for every second tap of more (Zen 4, 64 rows of 1024: 4 taps take 5.6 us by shifts and 7.7
 * us by loads; 7 taps take 8.5 us by both, 10.3 us and 12.9 us by one alone). The last vector is moved back to end with
 * the row, so its first outputs are computed twice, with the same bits; not with a residual, which may be y itself.
 * Taps further apart are loaded separately. Registers: the weights, two inputs, a sum, a shifted input. */
#define LINE_MOST HK_LINE_TAPS(HK_VREGS)
#define LINE_UNROLL 2 /* vectors per iteration */

HK_INLINE bool line_shifts(const int taps, const int t) {
  return HK_VW == 16 && t < HK_VW && (taps <= 4 || t % 2 == 0);
}

HK_INLINE void line_store(const bool any, const hk_dwp_args *a, const float *c, float *y, v_f32 v, int64_t lanes) {
  if (any) {
    v_f32 r = v_zero();
    if (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER)) r = v_load_n(c, lanes);
    v = fuse_vector(&a->fuse, v, v_set1(a->scale), v_set1(a->bias), r);
  }
  if (lanes == HK_VW) v_store(y, v);
  else v_store_n(y, v, lanes);
}

/* One output vector by loads. */
HK_INLINE v_f32 line_sum(const int taps, const bool whole, const v_f32 *w, const float *x, int64_t apart,
                         int64_t lanes) {
  v_f32 sum = v_mul(whole ? v_load(x) : v_load_n(x, lanes), w[0]);
  HK_UNROLL for (int t = 1; t < taps; t++)
    sum = v_fma(whole ? v_load(x + t * apart) : v_load_n(x + t * apart, lanes), w[t], sum);
  return sum;
}

/* One output vector by shifts: lo is the vector at its first tap, hi the next. */
HK_INLINE v_f32 line_sum_shifted(const int taps, const v_f32 *w, const float *x, v_f32 lo, v_f32 hi) {
  v_f32 sum = v_mul(lo, w[0]);
  HK_UNROLL for (int t = 1; t < taps; t++)
    sum = v_fma(line_shifts(taps, t) ? v_shift(lo, hi, t) : v_load(x + t), w[t], sum);
  return sum;
}

HK_INLINE void line_row(const int taps, const bool near, const bool any, const hk_dwp_args *a, const float *x,
                        const float *f, const float *c, float *y) {
  const bool residual = any && (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER));
  const int64_t count = a->count, apart = near ? 1 : a->x_step;
  int64_t left = count;
  v_f32 w[LINE_MOST];
  HK_UNROLL for (int t = 0; t < taps; t++) {
    w[t] = v_bcast(f + t);
    HK_HOLD(w[t]);
  }
  if (near && line_shifts(taps, 2) && left >= (LINE_UNROLL + 1) * HK_VW) {
    v_f32 lo = v_load(x);
    HK_ROLLED for (; left >= (LINE_UNROLL + 1) * HK_VW; left -= LINE_UNROLL * HK_VW) {
      HK_UNROLL for (int u = 0; u < LINE_UNROLL; u++, x += HK_VW, y += HK_VW) {
        v_f32 hi = v_load(x + HK_VW);
        HK_HOLD(hi);
        line_store(any, a, c, y, line_sum_shifted(taps, w, x, lo, hi), HK_VW);
        if (residual) c += HK_VW;
        lo = hi;
      }
    }
  }
  HK_ROLLED for (; left >= HK_VW; left -= HK_VW, x += HK_VW, y += HK_VW) {
    line_store(any, a, c, y, line_sum(taps, true, w, x, apart, HK_VW), HK_VW);
    if (residual) c += HK_VW;
  }
  if (left && count > HK_VW && !residual) {
    line_store(any, a, c, y - (HK_VW - left), line_sum(taps, true, w, x - (HK_VW - left), apart, HK_VW), HK_VW);
  } else if (left) {
    line_store(any, a, c, y, line_sum(taps, false, w, x, apart, left), left);
  }
}

HK_INLINE void line_rows(const int taps, const bool near, const bool any, const hk_dwp_args *a) {
  if (taps > LINE_MOST) return; /* no plan uses it */
  const float *x = a->x, *f = a->f, *c = a->c;
  float *y = a->y;
  for (int64_t row = a->tiles; row > 0; row--, x += a->x_next, y += a->y_next, f += taps) {
    line_row(taps, near, any, a, x, f, c, y);
    if (any && c) c += a->y_next;
  }
}

#define LINE_ROW(n)                                                                                          \
  static __attribute__((noinline)) void line_row_##n(const hk_dwp_args *a) { line_rows(n, true, false, a); } \
  static __attribute__((noinline)) void line_any_##n(const hk_dwp_args *a) { line_rows(n, true, true, a); }
#define LINE_APART(n)                                                                                        \
  static __attribute__((noinline)) void apart_row_##n(const hk_dwp_args *a) { line_rows(n, false, false, a); } \
  static __attribute__((noinline)) void apart_any_##n(const hk_dwp_args *a) { line_rows(n, false, true, a); }
LINE_APART(2) LINE_APART(3) LINE_APART(4) LINE_APART(5) LINE_APART(6) LINE_APART(7) LINE_APART(8)
LINE_ROW(1) LINE_ROW(2) LINE_ROW(3) LINE_ROW(4) LINE_ROW(5) LINE_ROW(6) LINE_ROW(7) LINE_ROW(8) LINE_ROW(9) LINE_ROW(10)
#if HK_VREGS >= 32
LINE_ROW(11) LINE_ROW(12) LINE_ROW(13) LINE_ROW(14) LINE_ROW(15) LINE_ROW(16) LINE_ROW(17)
LINE_ROW(18) LINE_ROW(19) LINE_ROW(20) LINE_ROW(21) LINE_ROW(22) LINE_ROW(23) LINE_ROW(24)
#define LINE_MORE(way)                                                                                                 \
  way##11, way##12, way##13, way##14, way##15, way##16, way##17, way##18, way##19, way##20, way##21, way##22, way##23, \
      way##24
#else
#define LINE_MORE(way)
#endif
#define LINE_ALL(way) {way##1, way##2, way##3, way##4, way##5, way##6, way##7, way##8, way##9, way##10, LINE_MORE(way)}

static void line_run(const hk_dwp_args *a) {
  static void (*const row[2][LINE_MOST])(const hk_dwp_args *) = {LINE_ALL(line_row_), LINE_ALL(line_any_)};
  static void (*const apart[2][HK_LINE_APART])(const hk_dwp_args *) = {
      {line_row_1, apart_row_2, apart_row_3, apart_row_4, apart_row_5, apart_row_6, apart_row_7, apart_row_8},
      {line_any_1, apart_any_2, apart_any_3, apart_any_4, apart_any_5, apart_any_6, apart_any_7, apart_any_8}};
  if (a->x_step == 1) row[a->fuse.flags != 0][a->line - 1](a);
  else apart[a->fuse.flags != 0][a->line - 1](a);
}
