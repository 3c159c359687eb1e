/* weave for one ISA: a line of pixels of few channels, several pixels per vector; see hk_weave_args. Define HK_NAME and
 * HK_ROWS_1 (vectors per tile), include a vocabulary with v_range and v_permute, then this. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

#define HK_TILE "cpu/tmpl/igemm/weave_tile.tmpl.h"
typedef void (*tile_fn)(const hk_weave_args *r, int64_t j0);

#define HK_NV 1
#define HK_ROWS HK_ROWS_1
#include "cpu/tmpl/common/tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS

void HK_NAME(const void *args) {
  const hk_weave_args *r = args;
  int64_t j = r->first, left = r->end - r->first;
  for (int64_t n = hk_ceil_div(left, HK_ROWS_1); n > 0; n--) {
    const int64_t vectors = hk_ceil_div(left, n);
    tiles_1_rows[vectors - 1](r, j);
    j += vectors;
    left -= vectors;
  }
}
