/* igemm for one ISA: all tiles of 1..4 vectors (those whose HK_ROWS_<vectors> is above 0) and the loop over rows.
 * Define HK_NAME and HK_ROWS_1..4 (most rows a tile holds for that many vectors), include a vocabulary, then this.
 * Rows are cut into tiles of nearly equal size, so a count just above a multiple costs no almost empty tile. */
#include "cpu/ukernel.h"
#include "unroll.tmpl.h"

#define HK_TILE "igemm_tile.tmpl.h"
typedef void (*tile_fn)(const hk_igemm_args *r, int64_t m0);

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
