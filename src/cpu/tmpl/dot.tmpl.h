/* dot for one ISA: few output channels, one a sum of its own, vectors along the input channels, so that a layer with
 * 1 to 4 outputs fills the vectors that output channels cannot. Arguments are igemm's with lanes = 1 (`vectors` counts
 * output channels), and f packed with the channels innermost. A resumed sum is added to what came before.
 * Define HK_NAME and HK_ROWS_1..4 (most rows for that many output channels), include a vocabulary, then this. */
#include "cpu/ukernel.h"
#include "unroll.tmpl.h"

#define HK_TILE "dot_tile.tmpl.h"
typedef void (*tile_fn)(const hk_igemm_args *r, int64_t m0);

static inline void finish(const hk_igemm_args *r, int64_t m, int64_t j, int64_t width, float v) {
  if (r->flags & HK_IGEMM_RESUME) v += r->partial[m * width + j];
  if (r->flags & HK_IGEMM_SUSPEND) {
    r->partial[m * width + j] = v;
    return;
  }
  if (r->flags & HK_IGEMM_AFFINE) v = v * r->scale[j] + r->bias[j];
  if (r->flags & HK_IGEMM_BEFORE) v += r->beta * r->c[m][r->y_at + j];
  if (r->flags & HK_IGEMM_CLAMP) v = v < r->lo ? r->lo : v > r->hi ? r->hi : v;
  if (r->flags & HK_IGEMM_AFTER) v += r->beta * r->c[m][r->y_at + j];
  r->y[m][r->y_at + j] = v;
}

#if HK_ROWS_1 > 0
#define HK_NV 1
#define HK_ROWS HK_ROWS_1
#include "tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
#if HK_ROWS_2 > 0
#define HK_NV 2
#define HK_ROWS HK_ROWS_2
#include "tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
#if HK_ROWS_3 > 0
#define HK_NV 3
#define HK_ROWS HK_ROWS_3
#include "tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
#if HK_ROWS_4 > 0
#define HK_NV 4
#define HK_ROWS HK_ROWS_4
#include "tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif

static void run(const hk_igemm_args *r, const tile_fn *tiles, int64_t most) {
  int64_t left = r->count, m = 0;
  for (int64_t n = hk_ceil_div(left, most); n > 0; n--) {
    const int64_t rows = hk_ceil_div(left, n);
    tiles[rows - 1](r, m);
    m += rows;
    left -= rows;
  }
}

void HK_NAME(const void *args) {
  const hk_igemm_args *r = args;
  switch (r->vectors) {
#if HK_ROWS_1 > 0
    case 1: run(r, tiles_1_rows, HK_ROWS_1); return;
#endif
#if HK_ROWS_2 > 0
    case 2: run(r, tiles_2_rows, HK_ROWS_2); return;
#endif
#if HK_ROWS_3 > 0
    case 3: run(r, tiles_3_rows, HK_ROWS_3); return;
#endif
#if HK_ROWS_4 > 0
    case 4: run(r, tiles_4_rows, HK_ROWS_4); return;
#endif
    default: return;
  }
}
