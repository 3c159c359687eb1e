/* igemm for one ISA: all tiles of 1..4 vectors (those whose HK_ROWS_<vectors> is above 0) and the loop over rows.
 * Define HK_NAME and HK_ROWS_1..4 (most rows a tile holds for that many vectors), HK_AHEAD where f is to be asked for ahead of
 * its use, include a vocabulary, then this.
 * Rows are cut into tiles of nearly equal size, so a count just above a multiple costs no almost empty tile. */
#include "cpu/ukernel.h"
#include "unroll.tmpl.h"

#define HK_TILE "igemm_tile.tmpl.h"
typedef void (*tile_fn)(const hk_igemm_args *r, int64_t m0);

#include "tiles.tmpl.h"

#include "tiles_even.tmpl.h"
#define HK_ARGS hk_igemm_args
#include "tiles_entry.tmpl.h"
