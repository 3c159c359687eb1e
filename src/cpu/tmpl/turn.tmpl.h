/* turn: to[c*to_step + r] = from[r*from_step + c]. Squares of a vector's size are turned in registers, two of them one below
 * the other, so that on machines with 8 lanes whole lines are written; what is left at the edges goes one by one.
 * Define HK_NAME, include a vocabulary with v_transpose, then this. */
#include "cpu/ukernel.h"
#include "unroll.tmpl.h"

static inline __attribute__((always_inline)) void square(const float *from, int64_t from_step, float *to, int64_t to_step) {
  v_f32 v[HK_VW];
  HK_UNROLL for (int i = 0; i < HK_VW; i++) v[i] = v_load(from + i * from_step);
  v_transpose(v);
  HK_UNROLL for (int i = 0; i < HK_VW; i++) v_store(to + i * to_step, v[i]);
}

static void edge(const hk_turn_args *a, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
  for (int64_t c = c0; c < c1; c++)
    for (int64_t r = r0; r < r1; r++) a->to[c * a->to_step + r] = a->from[r * a->from_step + c];
}

void HK_NAME(const void *args) {
  const hk_turn_args *a = args;
  const int64_t rows = a->rows - a->rows % HK_VW, columns = a->columns - a->columns % HK_VW;
  for (int64_t r = 0; r < rows; r += 2 * HK_VW) {
    const float *from = a->from + r * a->from_step;
    float *to = a->to + r;
    for (int64_t c = 0; c < columns; c += HK_VW) {
      square(from + c, a->from_step, to + c * a->to_step, a->to_step);
      if (r + HK_VW < rows) square(from + HK_VW * a->from_step + c, a->from_step, to + c * a->to_step + HK_VW, a->to_step);
    }
  }
  edge(a, 0, rows, columns, a->columns);
  edge(a, rows, a->rows, 0, a->columns);
}
