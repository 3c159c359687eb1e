/* pgemm for one ISA: all tiles of 1..4 vectors of pixels (those whose HK_ROWS_<vectors> is above 0) and the loop over
 * output channels. Every HK_ROWS_<vectors> is the row's MR, since the weights are packed by tiles (hk_tile_rows).
 * Define HK_NAME and HK_ROWS_1..4, include a vocabulary, then this. */
#include "cpu/ukernel.h"
#include "unroll.tmpl.h"

#define HK_TILE "pgemm_tile.tmpl.h"
typedef void (*tile_fn)(const hk_pgemm_args *r, int64_t m0);

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

static void run(const hk_pgemm_args *r, const tile_fn *tiles, int64_t most) {
  int64_t left = r->count, m = 0;
  while (left > 0) {
    const int64_t rows = hk_tile_rows(left, most);
    tiles[rows - 1](r, m);
    m += rows;
    left -= rows;
  }
}

void HK_NAME(const void *args) {
  const hk_pgemm_args *r = args;
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
