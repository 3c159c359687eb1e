/* dwm with 16 registers: windows of 5x5 and 7x7, and the 3x3 cases that dwmpair.tmpl.h leaves. Two output rows at a
 * time, in tiles of up to four columns of one block. Each row reads its own x with the same row of weights, which stays
 * in registers; two products of a sum are at least eight products apart, as in dwmpair.tmpl.h. Handles any padding and
 * partial vectors. Registers: eight accumulators, five or seven weights, one input. Included by dwm.tmpl.h. */

/* A pair of rows of a tile. For the upper (0) and lower (1) row: the window rows whose x lies inside, and the
 * columns. */
typedef struct wide_part {
  const float *x, *f;
  int64_t row, col; /* strides of x */
  int32_t from[2], to[2];
  int32_t first, last; /* columns inside x, relative to the first that the tile reads */
  v_mask mask;
} wide_part;

/* Adds row x to the accumulators of the upper row and row z to those of the lower. */
HK_INLINE void wide_add(const int columns, const int stride, const int window, const bool cut, const bool has_top,
                        const bool has_low, const float *x, const float *z, const wide_part *b, const v_f32 *w,
                        v_f32 *top, v_f32 *low) {
  HK_UNROLL for (int m = 0; m < (columns - 1) * stride + window; m++, x += b->col, z += b->col) {
    HK_OPAQUE(x);
    HK_OPAQUE(z);
    if (m < b->first || m >= b->last) continue;
    HK_UNROLL for (int i = 0; i < 2; i++) {
      if (!(i ? has_low : has_top)) continue;
      v_f32 v = cut ? v_load_m(i ? z : x, b->mask) : v_load(i ? z : x);
      HK_HOLD(v);
      HK_UNROLL for (int t = 0; t < window; t++) {
        const int j = (m - t) / stride;
        if (m < t || (m - t) % stride || j >= columns) continue;
        row_product(w[t], v, i ? &low[j] : &top[j]);
      }
    }
  }
}

HK_INLINE void wide_rows(const int columns, const int stride, const int window, const bool cut, const wide_part *b,
                         v_f32 *top, v_f32 *low) {
  const float *x = b->x, *z = x + stride * b->row, *f = b->f;
  ROW_LOOP for (int r = 0; r < window; r++, x += b->row, z += b->row, f += window * HK_VW) {
    const bool has_top = r >= b->from[0] && r < b->to[0], has_low = r >= b->from[1] && r < b->to[1];
    v_f32 w[7];
    HK_UNROLL for (int t = 0; t < window; t++) {
      w[t] = v_load(f + t * HK_VW);
      HK_HOLD(w[t]);
    }
    if (has_top && has_low) wide_add(columns, stride, window, cut, true, true, x, z, b, w, top, low);
    else if (has_top) wide_add(columns, stride, window, cut, true, false, x, z, b, w, top, low);
    else if (has_low) wide_add(columns, stride, window, cut, false, true, x, z, b, w, top, low);
  }
}

/* The epilogue of a row with a residual or a partial vector. Not inlined: it would be most of a tile's code. */
static __attribute__((noinline)) void wide_fuse(const hk_dwm_args *a, int64_t p, int32_t q, int64_t channel,
                                                int32_t lanes, int columns, v_f32 *acc) {
  const dwm_part b = {.channel = channel, .lanes = lanes};
  const float *c = a->c ? a->c + p * a->c_row + q * a->c_col + channel : a->c;
  if (columns == 4) row_fuse(4, a, &b, c, acc);
  else if (columns == 3) row_fuse(3, a, &b, c, acc);
  else row_fuse(1, a, &b, c, acc);
}

HK_INLINE void wide_finish(const int columns, const bool cut, const hk_dwm_args *a, int64_t p, int32_t q,
                           int64_t channel, v_f32 *acc) {
  const int32_t lanes = cut ? a->last_lanes : HK_VW;
  if (!cut && a->fuse.flags && !(a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER))) {
    row_clamp(columns, a, channel, acc);
  } else if (a->fuse.flags) {
    v_f32 t[4];
    HK_UNROLL for (int j = 0; j < columns; j++) t[j] = acc[j];
    wide_fuse(a, p, q, channel, lanes, columns, t);
    HK_UNROLL for (int j = 0; j < columns; j++) acc[j] = t[j];
  }
  float *y = a->y + p * a->y_row + q * a->y_col + channel;
  HK_UNROLL for (int j = 0; j < columns; j++, y += a->y_col) {
    if (cut) v_store_n(y, acc[j], lanes);
    else v_store(y, acc[j]);
  }
}

/* The window rows of output row p that lie inside x. */
HK_INLINE void wide_inside(const hk_dwm_args *a, int64_t p, int i, wide_part *b) {
  const int64_t first = a->row_first - p * a->stride, last = a->row_last - p * a->stride;
  b->from[i] = p >= a->rows ? a->window : (int32_t)(first < 0 ? 0 : first < a->window ? first : a->window);
  b->to[i] = p >= a->rows ? 0 : (int32_t)(last < 0 ? 0 : last < a->window ? last : a->window);
}

/* Output rows p and, if there is one, p + 1 in tiles from column q to `end`, for blocks from..to-1. A macro for the
 * reason given at row_near_. */
#define WIDE_TILES(COLUMNS, STRIDE, WINDOW, CUT)                                                                       \
  static __attribute__((noinline)) void wide_tiles_##COLUMNS##_##STRIDE##_##WINDOW##_##CUT(                            \
      const hk_dwm_args *a, int64_t p, int32_t q, int32_t end, int64_t from, int64_t to) {                             \
    wide_part b = {.row = a->x_row, .col = a->x_col, .mask = v_tail(a->last_lanes)};                                   \
    wide_inside(a, p, 0, &b);                                                                                          \
    wide_inside(a, p + 1, 1, &b);                                                                                      \
    for (; q + COLUMNS <= end; q += COLUMNS) {                                                                         \
      const int32_t m = q * STRIDE, span = (COLUMNS - 1) * STRIDE + WINDOW;                                            \
      b.first = a->col_first > m ? a->col_first - m : 0;                                                               \
      b.last = a->col_last - m < span ? a->col_last - m : span;                                                        \
      b.x = a->x + p * STRIDE * a->x_row + m * a->x_col + from * HK_VW;                                                \
      b.f = a->f + from * WINDOW * WINDOW * HK_VW;                                                                     \
      for (int64_t i = from; i < to; i++, b.x += HK_VW, b.f += WINDOW * WINDOW * HK_VW) {                              \
        v_f32 top[COLUMNS], low[COLUMNS];                                                                              \
        HK_UNROLL for (int j = 0; j < COLUMNS; j++) top[j] = low[j] = v_zero();                                        \
        wide_rows(COLUMNS, STRIDE, WINDOW, CUT, &b, top, low);                                                         \
        wide_finish(COLUMNS, CUT, a, p, q, i * HK_VW, top);                                                            \
        if (p + 1 < a->rows) wide_finish(COLUMNS, CUT, a, p + 1, q, i * HK_VW, low);                                   \
      }                                                                                                                \
    }                                                                                                                  \
  }
/* A strip: columns in fours, or threes where a single one would remain; a partial block in fours and ones. */
#define WIDE_STRIP(STRIDE, WINDOW)                                                                                     \
  WIDE_TILES(1, STRIDE, WINDOW, 0) WIDE_TILES(3, STRIDE, WINDOW, 0) WIDE_TILES(4, STRIDE, WINDOW, 0)                   \
  WIDE_TILES(1, STRIDE, WINDOW, 1) WIDE_TILES(4, STRIDE, WINDOW, 1)                                                    \
  static void wide_strip_##STRIDE##_##WINDOW(const hk_dwm_args *a, int64_t from, int64_t to) {                         \
    const int32_t n = a->columns, some = n % 4 ? n / 4 - 3 + n % 4 : n / 4;                                            \
    const int32_t fours = some > 0 ? 4 * some : 0, threes = fours + (n - fours) / 3 * 3;                               \
    for (int64_t p = 0; p < a->rows; p += 2) {                                                                         \
      if (fours > 0) wide_tiles_4_##STRIDE##_##WINDOW##_0(a, p, 0, fours, from, to);                                   \
      if (threes > fours) wide_tiles_3_##STRIDE##_##WINDOW##_0(a, p, fours, threes, from, to);                         \
      if (n > threes) wide_tiles_1_##STRIDE##_##WINDOW##_0(a, p, threes, n, from, to);                                 \
    }                                                                                                                  \
  }                                                                                                                    \
  static void wide_cut_##STRIDE##_##WINDOW(const hk_dwm_args *a) {                                                     \
    const int32_t n = a->columns, fours = n / 4 * 4;                                                                   \
    for (int64_t p = 0; p < a->rows; p += 2) {                                                                         \
      wide_tiles_4_##STRIDE##_##WINDOW##_1(a, p, 0, fours, a->blocks - 1, a->blocks);                                  \
      wide_tiles_1_##STRIDE##_##WINDOW##_1(a, p, fours, n, a->blocks - 1, a->blocks);                                  \
    }                                                                                                                  \
  }
WIDE_STRIP(1, 3) WIDE_STRIP(1, 5) WIDE_STRIP(1, 7)
WIDE_STRIP(2, 3) WIDE_STRIP(2, 5) WIDE_STRIP(2, 7)
#undef WIDE_STRIP
#undef WIDE_TILES

/* Whole blocks from `from` on, in groups, then the partial one. */
static void wide_blocks(const hk_dwm_args *a, int64_t from, int64_t group) {
  static void (*const strip[2][3])(const hk_dwm_args *, int64_t, int64_t) = {
      {wide_strip_1_3, wide_strip_1_5, wide_strip_1_7}, {wide_strip_2_3, wide_strip_2_5, wide_strip_2_7}};
  static void (*const cut[2][3])(const hk_dwm_args *) = {{wide_cut_1_3, wide_cut_1_5, wide_cut_1_7},
                                                         {wide_cut_2_3, wide_cut_2_5, wide_cut_2_7}};
  const int64_t whole = a->last_lanes == HK_VW ? a->blocks : a->blocks - 1;
  const int stride = a->stride - 1, window = (a->window - DWM_WINDOW) / 2;
  for (; from < whole; from += group) strip[stride][window](a, from, from + group < whole ? from + group : whole);
  if (whole < a->blocks) cut[stride][window](a);
}
