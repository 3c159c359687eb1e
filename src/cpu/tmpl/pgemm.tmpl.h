/* pgemm for one ISA: all tiles of 1..4 vectors of pixels (those whose HK_ROWS_<vectors> is above 0) and the loop over
 * output channels. Every HK_ROWS_<vectors> is the row's MR, since the weights are packed by tiles (hk_tile_rows).
 * Define HK_NAME and HK_ROWS_1..4, include a vocabulary, then this. */
#include "cpu/ukernel.h"
#include "unroll.tmpl.h"

#define HK_TILE "pgemm_tile.tmpl.h"
typedef void (*tile_fn)(const hk_pgemm_args *r, int64_t m0, int64_t pixel);

#include "tiles.tmpl.h"

/* A strip stays in L1 for all its channels: `more` tiles of one channel more than the rest, as hk_tile_rows cuts them. */
static void run(const hk_pgemm_args *r, const tile_fn *tiles, int64_t most) {
  const int64_t count = hk_ceil_div(r->count, most), each = r->count / hk_max64(count, 1), more = r->count - each * count;
  for (int64_t s = 0; s < r->strips; s++) {
    const int64_t pixel = s * r->vectors * HK_VW;
    int64_t m = 0;
    for (int64_t i = 0; i < more; i++, m += each + 1) tiles[each](r, m, pixel);
    for (int64_t i = more; i < count; i++, m += each) tiles[each - 1](r, m, pixel);
  }
}

#define HK_ARGS hk_pgemm_args
#include "tiles_entry.tmpl.h"
