/* dwm with 16 registers: two output rows at a time, in tiles of up to four columns of one block, so that a vector of x
 * is loaded once for both rows and all columns that read it. At stride 1 that takes 0.46 loads per product (0.78 row by
 * row); at stride 2, where the rows share little, each row reads its own x with the same weights. The products of one
 * sum are a dependency chain of 4-cycle FMAs, and the reorder window barely reaches past the tile, so eight other
 * products separate two of the same sum (Zen 4, x in L1: 4.5 cycles per vector at stride 1, which is the FMA peak, and
 * 5.0 at stride 2; row by row 6.6 and 8.0). Registers: eight accumulators, six weights and an input; or three weights
 * and five inputs. Included by dwm.tmpl.h. */

enum {
  PAIR_L1 = 28 << 10, /* bytes of x that stay in L1 between two pairs of rows */
  PAIR_LINES = 4,     /* blocks per group, in whole cache lines */
};

/* What lies outside x for a pair of rows: columns before and after it, rows above and below. */
enum { PAIR_NO_FIRST = 1, PAIR_NO_LAST = 2, PAIR_NO_TOP = 4, PAIR_NO_LOW = 8 };

HK_INLINE v_f32 pair_load(const float *p) {
  v_f32 v = v_load(p);
  HK_HOLD(v);
  return v;
}

/* Stride 1: adds a row of x to the accumulators of the upper row with weights wt and of the lower row with wl; NULL
 * skips one. */
HK_INLINE void pair_add_1(const int columns, const float *x, int64_t col, uint32_t lacks, const v_f32 *wt,
                          const v_f32 *wl, v_f32 *top, v_f32 *low) {
  HK_UNROLL for (int m = 0; m < columns + 2; m++) {
    if (m > 0 && m % 3 == 0) {
      x += 3 * col;
      HK_OPAQUE(x);
    }
    if ((m == 0 && (lacks & PAIR_NO_FIRST)) || (m == columns + 1 && (lacks & PAIR_NO_LAST))) continue;
    const v_f32 v = pair_load(x + m % 3 * col);
    HK_UNROLL for (int t = 0; t < DWM_WINDOW; t++) {
      const int j = m - t;
      if (j < 0 || j >= columns) continue;
      if (wt) row_product(wt[t], v, &top[j]);
      if (wl) row_product(wl[t], v, &low[j]);
    }
  }
}

/* The rows of x that a pair reads; all but the first and the last lie inside x. */
HK_INLINE void pair_rows_1(const int columns, const float *x, int64_t col, int64_t row, uint32_t lacks, const float *f,
                           v_f32 *top, v_f32 *low) {
  v_f32 w[DWM_WINDOW * DWM_WINDOW];
  HK_UNROLL for (int r = 0; r <= DWM_WINDOW; r++) {
    const v_f32 *wt = r < DWM_WINDOW ? w + r * DWM_WINDOW : NULL, *wl = r > 0 ? w + (r - 1) * DWM_WINDOW : NULL;
    if (wt)
      HK_UNROLL for (int t = 0; t < DWM_WINDOW; t++)
        w[r * DWM_WINDOW + t] = pair_load(f + (r * DWM_WINDOW + t) * HK_VW);
    if (r > 0) {
      x += row;
      HK_OPAQUE(x);
    }
    if ((r == 0 && (lacks & PAIR_NO_TOP)) || (r == DWM_WINDOW && (lacks & PAIR_NO_LOW))) continue;
    pair_add_1(columns, x, col, lacks, wt, wl, top, low);
  }
}

/* Stride 2: adds row x to the accumulators of the upper row and row z to those of the lower, with the same weights. The
 * middle and last product of a column come one and two columns after its first; the vector is held until then. */
HK_INLINE void pair_add_2(const int columns, const bool has_top, const bool has_low, const float *x, const float *z,
                          int64_t col, uint32_t lacks, const v_f32 *w, v_f32 *top, v_f32 *low) {
  v_f32 v = v_zero(), u = v_zero();
  HK_UNROLL for (int j = 0; j < columns + 2; j++, x += 2 * col, z += 2 * col) {
    HK_OPAQUE(x);
    HK_OPAQUE(z);
    const v_f32 v_before = v, u_before = u;
    const bool has = (j > 0 || !(lacks & PAIR_NO_FIRST)) && (j < columns || (j == columns && !(lacks & PAIR_NO_LAST)));
    if (has) {
      if (has_top) v = pair_load(x);
      if (has_low) u = pair_load(z);
      if (has_top && j < columns) row_product(w[0], v, &top[j]);
      if (has_low && j < columns) row_product(w[0], u, &low[j]);
    }
    if (j >= 1 && j <= columns) {
      if (has_top) row_product(w[1], v_load(x - col), &top[j - 1]);
      if (has_low) row_product(w[1], v_load(z - col), &low[j - 1]);
    }
    if (j >= 2 && (j <= columns || !(lacks & PAIR_NO_LAST))) {
      if (has_top) row_product(w[2], v_before, &top[j - 2]);
      if (has_low) row_product(w[2], u_before, &low[j - 2]);
    }
  }
}

HK_INLINE void pair_rows_2(const int columns, const float *x, int64_t col, int64_t row, uint32_t lacks, const float *f,
                           v_f32 *top, v_f32 *low) {
  const float *z = x + 2 * row;
  HK_UNROLL for (int r = 0; r < DWM_WINDOW; r++, f += DWM_WINDOW * HK_VW) {
    if (r > 0) {
      x += row;
      z += row;
      HK_OPAQUE(x);
      HK_OPAQUE(z);
    }
    const v_f32 w[DWM_WINDOW] = {pair_load(f), pair_load(f + HK_VW), pair_load(f + 2 * HK_VW)};
    if (r == 0 && (lacks & PAIR_NO_TOP)) pair_add_2(columns, false, true, x, z, col, lacks, w, top, low);
    else if (r == 2 && (lacks & PAIR_NO_LOW)) pair_add_2(columns, true, false, x, z, col, lacks, w, top, low);
    else pair_add_2(columns, true, true, x, z, col, lacks, w, top, low);
  }
}

/* The epilogue: 1 without a residual, 2 with or without. */
HK_INLINE void pair_fuse(const int columns, const int fused, const hk_dwm_args *a, int64_t p, int32_t q,
                         int64_t channel, v_f32 *top, v_f32 *low) {
  if (fused == 1) {
    row_clamp(columns, a, channel, top);
    row_clamp(columns, a, channel, low);
    return;
  }
  const dwm_part b = {.channel = channel, .lanes = HK_VW};
  const float *c = a->c ? a->c + p * a->c_row + q * a->c_col + channel : a->c;
  row_fuse(columns, a, &b, c, top);
  row_fuse(columns, a, &b, c ? c + a->c_row : c, low);
}

HK_INLINE void pair_store(const int columns, float *y, int64_t col, int64_t row, const v_f32 *top, const v_f32 *low) {
  HK_UNROLL for (int j = 0; j < columns; j++, y += col) {
    HK_OPAQUE(y);
    v_store(y, top[j]);
    v_store(y + row, low[j]);
  }
}

/* Output rows p and p + 1 in tiles from column q to `end`, for blocks from..to-1; fused as in pair_fuse. A macro for
 * the reason given at row_near_. */
#define PAIR_TILES(COLUMNS, STRIDE, FUSED)                                                                             \
  static __attribute__((noinline)) void pair_tiles_##COLUMNS##_##STRIDE##_##FUSED(                                     \
      const hk_dwm_args *a, int64_t p, int32_t q, int32_t end, int64_t from, int64_t to, uint32_t rows) {              \
    const int64_t x_col = a->x_col, x_row = a->x_row, y_col = a->y_col, y_row = a->y_row;                              \
    for (; q + COLUMNS <= end; q += COLUMNS) {                                                                         \
      const int32_t m = q * STRIDE, last = m + (COLUMNS - 1) * STRIDE + DWM_WINDOW - 1;                                \
      const uint32_t lacks = rows | (m < a->col_first ? PAIR_NO_FIRST : 0) | (last >= a->col_last ? PAIR_NO_LAST : 0); \
      const float *x = a->x + p * STRIDE * x_row + m * x_col + from * HK_VW;                                           \
      const float *f = a->f + from * DWM_WINDOW * DWM_WINDOW * HK_VW;                                                  \
      float *y = a->y + p * y_row + q * y_col + from * HK_VW;                                                          \
      for (int64_t b = from; b < to; b++, x += HK_VW, y += HK_VW, f += DWM_WINDOW * DWM_WINDOW * HK_VW) {              \
        v_f32 top[COLUMNS], low[COLUMNS];                                                                              \
        HK_UNROLL for (int j = 0; j < COLUMNS; j++) top[j] = low[j] = v_zero();                                        \
        if (STRIDE == 1) pair_rows_1(COLUMNS, x, x_col, x_row, lacks, f, top, low);                                    \
        else pair_rows_2(COLUMNS, x, x_col, x_row, lacks, f, top, low);                                                \
        if (FUSED) pair_fuse(COLUMNS, FUSED, a, p, q, b * HK_VW, top, low);                                            \
        pair_store(COLUMNS, y, y_col, y_row, top, low);                                                                \
      }                                                                                                                \
    }                                                                                                                  \
  }
/* The same for a strip that row_add accepts: columns in fours, or threes where a single one would remain. */
#define PAIR_STRIP(STRIDE, FUSED)                                                                                      \
  PAIR_TILES(1, STRIDE, FUSED) PAIR_TILES(2, STRIDE, FUSED) PAIR_TILES(3, STRIDE, FUSED) PAIR_TILES(4, STRIDE, FUSED)  \
  static void pair_strip_##STRIDE##_##FUSED(const hk_dwm_args *a, int64_t p, int64_t from, int64_t to,                 \
                                            uint32_t rows) {                                                           \
    const int32_t n = a->columns, some = n % 4 ? n / 4 - 3 + n % 4 : n / 4;                                            \
    const int32_t fours = some > 0 ? 4 * some : 0, threes = fours + (n - fours) / 3 * 3;                               \
    const int32_t twos = threes + (n - threes) / 2 * 2;                                                                \
    if (fours > 0) pair_tiles_4_##STRIDE##_##FUSED(a, p, 0, fours, from, to, rows);                                    \
    if (threes > fours) pair_tiles_3_##STRIDE##_##FUSED(a, p, fours, threes, from, to, rows);                          \
    if (twos > threes) pair_tiles_2_##STRIDE##_##FUSED(a, p, threes, twos, from, to, rows);                            \
    if (n > twos) pair_tiles_1_##STRIDE##_##FUSED(a, p, twos, n, from, to, rows);                                      \
  }
PAIR_STRIP(1, 0) PAIR_STRIP(1, 1) PAIR_STRIP(1, 2)
PAIR_STRIP(2, 0) PAIR_STRIP(2, 1) PAIR_STRIP(2, 2)
#undef PAIR_STRIP
#undef PAIR_TILES

/* Blocks from..to-1 of such a strip. A row without a partner, or whose middle rows lie outside x, is computed alone. */
static void pair_blocks(const hk_dwm_args *a, int64_t from, int64_t to) {
  static void (*const strip[2][3])(const hk_dwm_args *, int64_t, int64_t, int64_t, uint32_t) = {
      {pair_strip_1_0, pair_strip_1_1, pair_strip_1_2}, {pair_strip_2_0, pair_strip_2_1, pair_strip_2_2}};
  const int fused = !a->fuse.flags ? 0 : a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER) ? 2 : 1;
  for (int64_t p = 0, n; p < a->rows; p += n) {
    const int64_t row = p * a->stride, last = row + a->stride + DWM_WINDOW - 1;
    n = p + 1 < a->rows && dwm_inside(a, row + 1) && dwm_inside(a, last - 1) ? 2 : 1;
    const uint32_t lacks = (dwm_inside(a, row) ? 0 : PAIR_NO_TOP) | (dwm_inside(a, last) ? 0 : PAIR_NO_LOW);
    if (n == 1) row_strip(a, p, from, to);
    else strip[a->stride - 1][fused](a, p, from, to, lacks);
  }
}

/* Returns how many blocks walk down a strip together: those whose rows of x stay in L1; or all of them where that would
 * be few, since x then comes from L2 twice but contiguously (Zen 4, 192 channels of 28 columns: 5.5 cycles per vector,
 * 6.0 in groups of 8). */
HK_INLINE int64_t pair_group(const hk_dwm_args *a) {
  const int64_t pixels = (a->stride + a->window) * ((a->columns - 1) * a->stride + a->window);
  const int64_t fit = PAIR_L1 / (pixels * HK_VW * (int64_t)sizeof(float)) / PAIR_LINES * PAIR_LINES;
  return fit < 2 * PAIR_LINES ? a->blocks : fit;
}

void HK_NAME(const void *args) {
  const hk_dwm_args *a = args;
  const bool near =
      a->window == DWM_WINDOW && a->col_first <= 1 && a->col_last >= (a->columns - 1) * a->stride + DWM_WINDOW - 1;
  const int64_t whole = !near ? 0 : a->last_lanes == HK_VW ? a->blocks : a->blocks - 1, group = pair_group(a);
  for (int64_t from = 0; from < whole; from += group) pair_blocks(a, from, from + group < whole ? from + group : whole);
  wide_blocks(a, whole, group);
}
