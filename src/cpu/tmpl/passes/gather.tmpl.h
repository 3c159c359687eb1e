/* gather: packs pixels of planes into a panel of rows of equal width, piece by piece. At stride 1 it copies vectors, at
 * stride 2 it deinterleaves two; it reads only the elements it needs. Define HK_NAME, include a vocabulary, then
 * this. */
#include "cpu/ukernel.h"

static inline void copy_run(const float *x, float *to, int64_t n) {
  int64_t i = 0;
  for (; i + HK_VW <= n; i += HK_VW) v_store(to + i, v_load(x + i));
  if (i < n) v_store_n(to + i, v_load_n(x + i, n - i), n - i);
}

static inline void clear_run(float *to, int64_t n) {
  int64_t i = 0;
  for (; i + HK_VW <= n; i += HK_VW) v_store(to + i, v_zero());
  if (i < n) v_store_n(to + i, v_zero(), n - i);
}

/* A pair of vectors reads up to element 2n - 1, one beyond the last that is needed: hence i + VW < n. */
static inline void even_run(const float *x, float *to, int64_t n) {
  int64_t i = 0;
  for (; HK_VW > 1 && i + HK_VW < n; i += HK_VW) v_store(to + i, v_even(v_load(x + 2 * i), v_load(x + 2 * i + HK_VW)));
  for (; i < n; i++) to[i] = x[2 * i];
}

void HK_NAME(const void *args) {
  const hk_gather_args *r = args;
  const float *x = r->x;
  float *to = r->to;
  for (int64_t c = 0; c < r->channels; c++, x += r->c_step, to += r->width) {
    for (int64_t i = 0; i < r->pieces; i++) {
      const hk_gather_piece p = r->piece[i];
      if (p.zero) {
        clear_run(to + p.at, p.count);
      } else if (r->step == 1) {
        copy_run(x + p.from, to + p.at, p.count);
      } else if (r->step == 2) {
        even_run(x + p.from, to + p.at, p.count);
      } else {
        for (int64_t j = 0; j < p.count; j++) to[p.at + j] = x[p.from + j * r->step];
      }
    }
  }
}
