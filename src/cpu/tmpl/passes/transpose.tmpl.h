/* transpose: to[c*to_step + r] = from[r*from_step + c]. Squares of VW x VW are transposed in registers, two of them one
 * below the other, so that ISAs with 8 lanes write whole cache lines; the last squares are moved back to end with the
 * matrix and overlap their neighbours. A matrix narrower than a vector also goes by whole vectors where its rows (or
 * those of the result) are contiguous: the excess of a vector is dropped, or overwritten by the next row. The remainder
 * goes element by element. Define HK_NAME, include a vocabulary with v_transpose, then this. HK_HALVES: vectors have
 * two halves of 4 lanes, and matrices of at most 4 columns or rows are transposed by halves. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

static inline __attribute__((always_inline)) void square(const float *from, int64_t from_step, float *to,
                                                         int64_t to_step) {
  v_f32 v[HK_VW];
  HK_UNROLL for (int i = 0; i < HK_VW; i++) v[i] = v_load(from + i * from_step);
  v_transpose(v);
  HK_UNROLL for (int i = 0; i < HK_VW; i++) v_store(to + i * to_step, v[i]);
}

static void edge(const hk_transpose_args *a, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
  for (int64_t c = c0; c < c1; c++)
    for (int64_t r = r0; r < r1; r++) a->to[c * a->to_step + r] = a->from[r * a->from_step + c];
}

/* Fewer columns than lanes, contiguous rows: VW rows at a time, each load reads past its row. */
static void few_columns(const hk_transpose_args *a) {
  const int64_t columns = a->columns, end = a->rows * columns;
  int64_t r = 0;
#ifdef HK_HALVES
  for (; columns <= 4 && r <= a->rows - 8 && (r + 7) * columns + 4 <= end; r += 8) {
    const float *from = a->from + r * columns;
    v_f32 v[4];
    HK_UNROLL for (int i = 0; i < 4; i++) v[i] = v_load_halves(from + i * columns, from + (i + 4) * columns);
    v_transpose_halves(v);
    HK_UNROLL for (int c = 0; c < 4; c++) if (c < columns) v_store(a->to + c * a->to_step + r, v[c]);
  }
#endif
  for (; r <= a->rows - HK_VW && (r + HK_VW - 1) * columns + HK_VW <= end; r += HK_VW) {
    const float *from = a->from + r * columns;
    v_f32 v[HK_VW];
    HK_UNROLL for (int i = 0; i < HK_VW; i++) v[i] = v_load(from + i * columns);
    v_transpose(v);
    HK_UNROLL for (int c = 0; c < HK_VW; c++) if (c < columns) v_store(a->to + c * a->to_step + r, v[c]);
  }
  edge(a, r, a->rows, 0, columns);
}

/* Fewer rows than lanes, contiguous rows of the result: VW of them at a time, in order, each store writes past its
 * row. */
static void few_rows(const hk_transpose_args *a) {
  const int64_t rows = a->rows, end = a->columns * rows;
  int64_t c = 0;
#ifdef HK_HALVES
  for (; rows <= 4 && c <= a->columns - 8 && (c + 7) * rows + 4 <= end; c += 8) {
    float *to = a->to + c * rows;
    v_f32 v[4];
    HK_UNROLL for (int r = 0; r < 4; r++) v[r] = r < rows ? v_load(a->from + r * a->from_step + c) : v_zero();
    v_transpose_halves(v);
    HK_UNROLL for (int i = 0; i < 4; i++) v_store_low(to + i * rows, v[i]);
    HK_UNROLL for (int i = 0; i < 4; i++) v_store_high(to + (i + 4) * rows, v[i]);
  }
#endif
  for (; c <= a->columns - HK_VW && (c + HK_VW - 1) * rows + HK_VW <= end; c += HK_VW) {
    float *to = a->to + c * rows;
    v_f32 v[HK_VW];
    HK_UNROLL for (int r = 0; r < HK_VW; r++) v[r] = r < rows ? v_load(a->from + r * a->from_step + c) : v_zero();
    v_transpose(v);
    HK_UNROLL for (int i = 0; i < HK_VW; i++) v_store(to + i * rows, v[i]);
  }
  edge(a, 0, rows, c, a->columns);
}

static void squares(const hk_transpose_args *a) {
  const int64_t rows = a->rows - a->rows % HK_VW, columns = a->columns - a->columns % HK_VW;
  const int64_t last_r = a->rows - HK_VW, last_c = a->columns - HK_VW;
  for (int64_t r = 0; r < rows; r += 2 * HK_VW) {
    const float *from = a->from + r * a->from_step;
    float *to = a->to + r;
    /* Prefetch the rows of the next pair of squares, half of them per step: their stride defeats the hardware
     * prefetcher. */
    const float *next = r + 3 * HK_VW < rows ? from + 2 * HK_VW * a->from_step : from;
    for (int64_t c = 0; c < columns; c += HK_VW) {
      const float *line = next + (c & HK_VW ? HK_VW * a->from_step + c - HK_VW : c);
      HK_UNROLL for (int i = 0; i < HK_VW; i++) v_prefetch(line + i * a->from_step);
      square(from + c, a->from_step, to + c * a->to_step, a->to_step);
      if (r + HK_VW < rows)
        square(from + HK_VW * a->from_step + c, a->from_step, to + c * a->to_step + HK_VW, a->to_step);
    }
  }
  if (columns < a->columns)
    for (int64_t r = 0; r < rows; r += HK_VW)
      square(a->from + r * a->from_step + last_c, a->from_step, a->to + last_c * a->to_step + r, a->to_step);
  if (rows == a->rows) return;
  for (int64_t c = 0; c < columns; c += HK_VW)
    square(a->from + last_r * a->from_step + c, a->from_step, a->to + c * a->to_step + last_r, a->to_step);
  if (columns < a->columns)
    square(a->from + last_r * a->from_step + last_c, a->from_step, a->to + last_c * a->to_step + last_r, a->to_step);
}

void HK_NAME(const void *args) {
  const hk_transpose_args *a = args;
  if (a->rows >= HK_VW && a->columns >= HK_VW) squares(a);
  else if (a->rows >= HK_VW && a->from_step == a->columns) few_columns(a);
  else if (a->columns >= HK_VW && a->to_step == a->rows) few_rows(a);
  else edge(a, 0, a->rows, 0, a->columns);
}
