/* pgemm for one ISA: all tiles of 1..4 vectors of pixels (those whose HK_ROWS_<vectors> is above 0) and the loop over
 * output channels. Every HK_ROWS_<vectors> is the row's MR, since the weights are packed by tiles (hk_tile_rows).
 * Define HK_NAME and HK_ROWS_1..4, include a vocabulary, then this. */
#include "cpu/ukernel.h"
#include "unroll.tmpl.h"

#define HK_TILE "pgemm_tile.tmpl.h"
typedef void (*tile_fn)(const hk_pgemm_args *r, int64_t m0);

#include "tiles.tmpl.h"

static void run(const hk_pgemm_args *r, const tile_fn *tiles, int64_t most) {
  int64_t left = r->count, m = 0;
  while (left > 0) {
    const int64_t rows = hk_tile_rows(left, most);
    tiles[rows - 1](r, m);
    m += rows;
    left -= rows;
  }
}

#define HK_ARGS hk_pgemm_args
#include "tiles_entry.tmpl.h"
