/* dwm with 16 registers, one output row at a time: odd rows, and rows beside wide padding. The nine products of a sum
 * are a dependency chain of 4-cycle FMAs and the reorder window barely reaches past the sums at hand, so a tile has
 * twelve sums, from several blocks where it has few columns. Registers: twelve accumulators, 3 weights, one input.
 * Included by dwm.tmpl.h. */

enum { ROW_SUMS = 12 };

#ifdef __clang__
#define ROW_LOOP _Pragma("clang loop unroll(disable)")
#else
#define ROW_LOOP _Pragma("GCC unroll 1")
#endif

/* Some columns of a strip, starting at a block; columns first..last-1 of their window lie inside x. */
typedef struct dwm_part {
  const float *x, *f, *c;
  float *y;
  int64_t channel;
  int32_t lanes, first, last;
} dwm_part;

/* Adds a product to an accumulator in place; gcc would otherwise move it between registers and spill it. */
HK_INLINE void row_product(v_f32 w, v_f32 v, v_f32 *acc) {
  *acc = v_fma(w, v, *acc);
  HK_HOLD(*acc);
}

/* The third weight of a row is a memory operand of each FMA: twelve accumulators, two weights and an input leave no
 * register. */
HK_INLINE v_f32 row_third(const float *f) {
  HK_OPAQUE(f);
  return v_load(f + 2 * HK_VW);
}

/* Adds a row of x with its row of weights. Expects all lanes, and all columns but the first and the last, inside x. The
 * pointer to x advances every fourth column. */
HK_INLINE void row_add(const int columns, const int stride, const hk_dwm_args *a, bool has_first, bool has_last,
                       const float *x, const float *f, v_f32 *acc) {
  int64_t col = a->x_col, col3 = 3 * col;
  HK_OPAQUE(col3);
  const v_f32 w0 = v_load(f), w1 = v_load(f + HK_VW);
  if (has_first) row_product(w0, v_load(x), &acc[0]);
  if (stride == 2) row_product(w1, v_load(x + col), &acc[0]);
  HK_UNROLL for (int j = 1; j < columns + 2 - stride; j++) {
    const int m = j * stride % 4;
    if (m == 0) {
      x += 4 * col;
      HK_OPAQUE(x);
    }
    v_f32 v = v_load(x + (m == 3 ? col3 : m * col));
    HK_HOLD(v);
    if (j < columns) row_product(w0, v, &acc[j]);
    if (stride == 2) {
      row_product(row_third(f), v, &acc[j - 1]);
      row_product(w1, v_load(x + (m == 2 ? col3 : col)), &acc[j]);
    } else {
      row_product(w1, v, &acc[j - 1]);
      if (j > 1) row_product(row_third(f), v, &acc[j - 2]);
    }
  }
  const int last = ((columns - 1) * stride + 2) % 4;
  if (has_last) row_product(row_third(f), v_load(x + (last == 3 ? col3 : (last ? last : 4) * col)), &acc[columns - 1]);
}

HK_INLINE v_f32 row_residual(const float *c, bool whole, v_mask m) { return whole ? v_load(c) : v_load_m(c, m); }

/* fuse_vector of each column; flags are tested once for all. */
HK_INLINE void row_fuse(const int columns, const hk_dwm_args *a, const dwm_part *b, const float *c, v_f32 *acc) {
  const bool whole = b->lanes == HK_VW;
  const v_mask m = v_tail(b->lanes);
  if (a->fuse.flags & HK_DW_AFFINE) {
    v_f32 scale = v_set1(1.0f), bias = v_zero();
    if (a->scale)
      scale = a->scale_one ? v_bcast(a->scale)
              : whole      ? v_load(a->scale + b->channel)
                           : v_load_m(a->scale + b->channel, m);
    if (a->bias) bias = whole ? v_load(a->bias + b->channel) : v_load_m(a->bias + b->channel, m);
    HK_UNROLL for (int j = 0; j < columns; j++) acc[j] = v_fma(acc[j], scale, bias);
  }
  if (a->fuse.flags & HK_DW_BEFORE)
    HK_UNROLL for (int j = 0; j < columns; j++)
      acc[j] = v_fma(v_bcast(&a->fuse.beta), row_residual(c + j * a->c_col, whole, m), acc[j]);
  if (a->fuse.flags & HK_DW_CLAMP) {
    const v_f32 lo = v_bcast(&a->fuse.lo), hi = v_bcast(&a->fuse.hi);
    HK_UNROLL for (int j = 0; j < columns; j++) acc[j] = v_min(hi, v_max(lo, acc[j]));
  }
  if (a->fuse.flags & HK_DW_AFTER)
    HK_UNROLL for (int j = 0; j < columns; j++)
      acc[j] = v_fma(v_bcast(&a->fuse.beta), row_residual(c + j * a->c_col, whole, m), acc[j]);
}

/* The same for whole vectors without a residual, branch-free in scale, bias and clamp: branches would spill
 * accumulators. */
HK_INLINE void row_clamp(const int columns, const hk_dwm_args *a, int64_t channel, v_f32 *acc) {
  HK_OPAQUE(a); /* otherwise the bounds would occupy accumulator registers throughout */
  v_f32 scale = v_set1(1.0f), bias = v_zero();
  if (a->scale) scale = a->scale_one ? v_bcast(a->scale) : v_load(a->scale + channel);
  if (a->bias) bias = v_load(a->bias + channel);
  const v_f32 lo = v_bcast(&a->fuse.lo), hi = v_bcast(&a->fuse.hi);
  HK_UNROLL for (int j = 0; j < columns; j++) acc[j] = v_min(hi, v_max(lo, v_fma(acc[j], scale, bias)));
}

/* One output row of `together` blocks; rows of x count as row_first does. */
HK_INLINE void row_tile(const int columns, const int stride, const int together, const hk_dwm_args *a,
                        const dwm_part *b, int64_t p) {
  const int64_t row = p * stride;
  const bool has_first = b->first == 0, has_last = b->last == (columns - 1) * stride + DWM_WINDOW;
  const float *x = b->x + row * a->x_row, *f = b->f;
  v_f32 acc[ROW_SUMS];
  HK_UNROLL for (int j = 0; j < columns * together; j++) acc[j] = v_zero();
  ROW_LOOP for (int r = 0; r < DWM_WINDOW; r++, x += a->x_row, f += DWM_WINDOW * HK_VW) {
    if (!dwm_inside(a, row + r)) continue;
    HK_UNROLL for (int i = 0; i < together; i++) {
      row_add(columns, stride, a, has_first, has_last, x + i * HK_VW, f + i * DWM_WINDOW * DWM_WINDOW * HK_VW,
              acc + i * columns);
    }
  }
  HK_UNROLL for (int i = 0; i < together; i++) {
    dwm_part one = *b;
    one.channel += i * HK_VW;
    if (a->fuse.flags) row_fuse(columns, a, &one, b->c ? b->c + p * a->c_row + i * HK_VW : b->c, acc + i * columns);
    float *y = b->y + p * a->y_row + i * HK_VW;
    HK_UNROLL for (int j = 0; j < columns; j++) {
      if (j > 0 && j % 4 == 0) {
        y += 4 * a->y_col;
        HK_OPAQUE(y);
      }
      v_store(y + j % 4 * a->y_col, acc[i * columns + j]);
    }
  }
}

/* Columns from q on, from block i on. */
HK_INLINE dwm_part row_part(const hk_dwm_args *a, const int stride, int32_t q, int64_t i, int columns) {
  const int32_t m = q * stride, span = (columns - 1) * stride + DWM_WINDOW;
  const int64_t at = i * HK_VW;
  return (dwm_part){.x = a->x + m * a->x_col + at,
                    .f = a->f + at * DWM_WINDOW * DWM_WINDOW,
                    .c = a->c ? a->c + q * a->c_col + at : a->c,
                    .y = a->y + q * a->y_col + at,
                    .channel = at,
                    .lanes = HK_VW,
                    .first = a->col_first > m ? a->col_first - m : 0,
                    .last = a->col_last - m < span ? a->col_last - m : span};
}

/* Output row p: `columns` columns from q on, of whole blocks. */
HK_INLINE void row_blocks(const int columns, const int stride, const hk_dwm_args *a, int32_t q, int64_t from,
                          int64_t to, int64_t p) {
  const int together = ROW_SUMS / columns < 4 ? ROW_SUMS / columns : 4;
  dwm_part b = row_part(a, stride, q, from, columns);
  for (int n; from < to; from += n) {
    n = from + together <= to ? together : 1;
    if (n == together) row_tile(columns, stride, together, a, &b, p);
    else row_tile(columns, stride, 1, a, &b, p);
    b.x += n * HK_VW;
    b.y += n * HK_VW;
    b.f += n * DWM_WINDOW * DWM_WINDOW * HK_VW;
    if (b.c) b.c += n * HK_VW;
    b.channel += n * HK_VW;
  }
}

/* Returns the columns of the next tile when `left` remain: twelve, unless the tiles after it would have fewer than
 * twelve sums. */
HK_INLINE int row_columns(int left) {
  static const int8_t best[] = {0, 1, 2, 3, 4, 3, 6, 4, 4, 6, 6, 6, 12, 6, 6};
  return left < 15 ? best[left] : 12;
}

/* A macro, not another inlined function: through a function gcc keeps accumulators on the stack. */
#define ROW_NEAR(STRIDE)                                                                                               \
  static __attribute__((noinline)) void row_near_##STRIDE(const hk_dwm_args *a, int n, int32_t q, int64_t from,        \
                                                          int64_t to, int64_t p) {                                     \
    switch (n) {                                                                                                       \
      case 1: row_blocks(1, STRIDE, a, q, from, to, p); return;                                                        \
      case 2: row_blocks(2, STRIDE, a, q, from, to, p); return;                                                        \
      case 3: row_blocks(3, STRIDE, a, q, from, to, p); return;                                                        \
      case 4: row_blocks(4, STRIDE, a, q, from, to, p); return;                                                        \
      case 6: row_blocks(6, STRIDE, a, q, from, to, p); return;                                                        \
      default: row_blocks(12, STRIDE, a, q, from, to, p); return;                                                      \
    }                                                                                                                  \
  }
ROW_NEAR(1)
ROW_NEAR(2)
#undef ROW_NEAR

/* Output row p of a strip that row_add accepts, for blocks from..to-1. */
HK_INLINE void row_strip(const hk_dwm_args *a, int64_t p, int64_t from, int64_t to) {
  for (int32_t q = 0, n; q < a->columns; q += n) {
    n = row_columns(a->columns - q);
    if (a->stride == 1) row_near_1(a, n, q, from, to, p);
    else row_near_2(a, n, q, from, to, p);
  }
}
