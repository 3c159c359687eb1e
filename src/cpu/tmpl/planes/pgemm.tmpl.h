/* pgemm for one ISA: all tiles of 1..4 vectors of pixels (those whose HK_ROWS_<vectors> is above 0) and the loop over
 * output channels. Every HK_ROWS_<vectors> equals the row's MR, since the weights are packed in tiles (hk_tile_rows).
 * Define HK_NAME and HK_ROWS_1..4, include a vocabulary, then this. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

#define HK_TILE "cpu/tmpl/planes/pgemm_tile.tmpl.h"
#define HK_ROW_FN strip_fn
#define HK_KIND_2 strip_
#define HK_TABLE_2 strips_
#define HK_KIND_3 keep_
#define HK_TABLE_3 keeps_
typedef void (*tile_fn)(const hk_pgemm_args *r, int64_t m0, int64_t pixel);
/* What all tiles of a strip share. */
typedef struct strip_at {
  const hk_pgemm_args *r;
  const float *from, *b; /* where the first tile reads the pixels, and where the others do */
  float *kept;
  int64_t from_step, b_step, start, count, depth, y_step, last,
      pixel; /* start, count: rows of the segment; last: lanes of the last vector */
  uint32_t flags;
  bool prefetch;
} strip_at;
typedef void (*strip_fn)(const strip_at *at, const float *tile, float *y, int64_t m0, int64_t tiles);

#include "cpu/tmpl/common/tiles.tmpl.h"

/* How channels are split: `more` tiles of one channel more than the others, as hk_tile_rows does. */
typedef struct cut {
  int64_t count, each, more;
} cut;

/* One segment and complete sums: the first tile of a strip packs the pixels for the others, or prefetches the next
 * strip. */
static void run_strip(const hk_pgemm_args *r, const tile_fn *tiles, const strip_fn *strips, const strip_fn *keeps,
                      cut c, const strip_at *at) {
  float *y = r->y + at->pixel;
  int64_t m = 0;
  if (r->kept || r->prefetch) {
    m = c.more ? c.each + 1 : c.each;
    if (r->kept) keeps[m - 1](at, r->a, y, 0, 1);
    else tiles[m - 1](r, 0, at->pixel);
    if (c.more) c.more--;
    c.count--;
  }
  if (c.more) strips[c.each](at, r->a + m * r->depth, y + m * at->y_step, m, c.more);
  m += c.more * (c.each + 1);
  if (c.count > c.more) strips[c.each - 1](at, r->a + m * r->depth, y + m * at->y_step, m, c.count - c.more);
}

/* A strip of pixels stays in L1 for all its channels. */
static void run(const hk_pgemm_args *r, const tile_fn *tiles, const strip_fn *strips, const strip_fn *keeps,
                int64_t most) {
  const int64_t count = hk_ceil_div(r->count, most), each = r->count / hk_max64(count, 1), width = r->vectors * HK_VW;
  const cut c = {count, each, r->count - each * count};
  const bool whole = r->segments == 1 && r->seg->count > 0 && !(r->flags & (HK_IGEMM_RESUME | HK_IGEMM_SUSPEND));
  for (int64_t s = 0; s < r->strips; s++) {
    const int64_t pixel = s * width;
    if (whole) {
      const float *b = r->seg->b + pixel;
      const strip_at at = {.r = r,
                           .from = b,
                           .b = r->kept ? r->kept : b,
                           .kept = r->kept,
                           .from_step = r->b_step,
                           .b_step = r->kept ? width : r->b_step,
                           .start = r->seg->at,
                           .count = r->seg->count,
                           .depth = r->depth,
                           .y_step = r->y_step,
                           .last = r->columns - (r->vectors - 1) * HK_VW,
                           .pixel = pixel,
                           .flags = r->flags,
                           .prefetch = r->prefetch};
      run_strip(r, tiles, strips, keeps, c, &at);
      continue;
    }
    int64_t m = 0;
    for (int64_t i = 0; i < c.more; i++, m += each + 1) tiles[each](r, m, pixel);
    for (int64_t i = c.more; i < count; i++, m += each) tiles[each - 1](r, m, pixel);
  }
}

#define HK_ARGS hk_pgemm_args
#define HK_TILES(n) HK_PASTE4(tiles_, n, _, rows), HK_PASTE4(strips_, n, _, rows), HK_PASTE4(keeps_, n, _, rows)
#include "cpu/tmpl/common/tiles_entry.tmpl.h"
