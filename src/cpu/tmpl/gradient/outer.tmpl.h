/* outer for one ISA: all tiles of 1..4 vectors of b (those whose HK_ROWS_<vectors> is above 0) and the loop over rows
 * of a, which are split into tiles of nearly equal size. Define HK_NAME and HK_ROWS_1..4, include a vocabulary, then
 * this. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

#define HK_TILE "cpu/tmpl/gradient/outer_tile.tmpl.h"
typedef void (*tile_fn)(const hk_outer_args *r, int64_t m0);
#include "cpu/tmpl/common/tiles.tmpl.h"

static void run(const hk_outer_args *r, const tile_fn *tiles, int64_t most) {
  for (int64_t m = 0, rows; m < r->rows; m += rows) {
    rows = hk_tile_rows(r->rows - m, most);
    tiles[rows - 1](r, m);
  }
}

#define HK_ARGS hk_outer_args
#include "cpu/tmpl/common/tiles_entry.tmpl.h"
