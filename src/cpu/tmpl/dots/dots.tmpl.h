/* dots for one ISA: all tiles of 1..4 vectors (those whose HK_ROWS_<vectors> is above 0) and the loop over rows. Define
 * HK_NAME and HK_ROWS_1..4 (most rows per tile for that many vectors), include a vocabulary and one of dot products
 * (d_sums, d_group, ...), then this. Rows are split into tiles of nearly equal size. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

#define HK_TILE "cpu/tmpl/dots/dots_tile.tmpl.h"
typedef void (*tile_fn)(const hk_dots_args *r, int64_t m0, int64_t tiles);

/* The bits of the first 1 to 3 bytes at p, zeros above. */
static inline uint32_t rest_of(const char *p, int64_t bytes) {
  const uint8_t *u = (const uint8_t *)p;
  uint32_t v = u[0];
  if (bytes > 1) v |= (uint32_t)u[1] << 8;
  if (bytes > 2) v |= (uint32_t)u[2] << 16;
  return v;
}

#include "cpu/tmpl/common/tiles.tmpl.h"

static void run(const hk_dots_args *r, const tile_fn *tiles, int64_t most) {
  const int64_t count = hk_ceil_div(r->count, most);
  if (count <= 0) return;
  const int64_t each = r->count / count, more = r->count - each * count;
  if (more) tiles[each](r, 0, more);
  if (count > more) tiles[each - 1](r, more * (each + 1), count - more);
}

#define HK_ARGS hk_dots_args
#include "cpu/tmpl/common/tiles_entry.tmpl.h"
