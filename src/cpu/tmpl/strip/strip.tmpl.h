/* strip for one ISA: all tiles of 1 to 4 vectors that fit its registers, or, with HK_PAIRS, tiles of one vector that
 * take inputs in pairs; see hk_strip_args. Define HK_NAME, include a vocabulary (with HK_PAIRS: one with v_bcast_pair
 * and v_add_pairs), then this. */
#include "cpu/tmpl/common/unroll.tmpl.h"
#include "cpu/tmpl/depthwise/dwfuse.tmpl.h"

#ifdef HK_PAIRS
#define HK_ROWS_1 HK_STRIP_PAIR_ROWS
#define HK_ROWS_2 0
#define HK_ROWS_3 0
#define HK_ROWS_4 0
#else
#define HK_ROWS_1 HK_STRIP_ROWS(HK_VREGS, 1)
#define HK_ROWS_2 HK_STRIP_ROWS(HK_VREGS, 2)
#define HK_ROWS_3 HK_STRIP_ROWS(HK_VREGS, 3)
#define HK_ROWS_4 HK_STRIP_ROWS(HK_VREGS, 4)
#endif
#define HK_TILE "cpu/tmpl/strip/strip_tile.tmpl.h"
typedef void (*tile_fn)(const hk_strip_args *a);

#include "cpu/tmpl/common/tiles.tmpl.h"

static void run(const hk_strip_args *a, const tile_fn *tiles, int64_t most) {
  if (a->pixels <= most) tiles[a->pixels - 1](a);
}
#define HK_ARGS hk_strip_args
#include "cpu/tmpl/common/tiles_entry.tmpl.h"
