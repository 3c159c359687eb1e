/* tapsum for one ISA: all tiles of 1..4 vectors (those whose HK_ROWS_<vectors> is above 0) and the loop over taps,
 * which are split into tiles of nearly equal size. Define HK_NAME and HK_ROWS_1..4, include a vocabulary, then this. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

/* Most taps of a tile of groups. */
#define HK_GROUP_ROWS(vectors) ((HK_VREGS - 4) / (vectors) - 2)
#define HK_TILE "cpu/tmpl/gradient/tapsum_tile.tmpl.h"
#define HK_ROW_FN tile_fn
#define HK_KIND_2 group_
#define HK_TABLE_2 groups_
typedef void (*tile_fn)(const hk_tapsum_args *r, int64_t t0);
#include "cpu/tmpl/common/tiles.tmpl.h"

static void run(const hk_tapsum_args *r, const tile_fn *tiles, const tile_fn *groups, int64_t most) {
  const tile_fn *table = r->grouped ? groups : tiles;
  if (r->grouped) most = hk_min64(most, HK_GROUP_ROWS(r->vectors));
  for (int64_t t = 0, rows; t < r->taps; t += rows) {
    rows = hk_tile_rows(r->taps - t, most);
    table[rows - 1](r, t);
  }
}

#define HK_ARGS hk_tapsum_args
#define HK_TILES(n) HK_PASTE4(tiles_, n, _, rows), HK_PASTE4(groups_, n, _, rows)
#include "cpu/tmpl/common/tiles_entry.tmpl.h"
