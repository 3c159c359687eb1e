/* igemm for one ISA: all tiles of 1..4 vectors (those whose HK_ROWS_<vectors> is above 0) and the loop over rows.
 * Define HK_NAME and HK_ROWS_1..4 (most rows per tile for that many vectors), HK_PREFETCH for kernels that can prefetch
 * f, include a vocabulary, then this. Rows are split into tiles of nearly equal size: a count just above a multiple
 * does not leave an almost empty tile. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

#define HK_TILE "cpu/tmpl/igemm/igemm_tile.tmpl.h"
#if HK_OPENS
#define HK_REOPEN /* chunk.tmpl.h: a chunk begins with a product */
#endif
#define HK_ROW_FN line_fn
#define HK_KIND_2 line_
#define HK_TABLE_2 lines_
#define HK_KIND_3 one_
#define HK_TABLE_3 ones_
typedef void (*tile_fn)(const hk_igemm_args *r, int64_t m0, int64_t tiles);
/* What all tiles over rows at a constant stride share; strides of x are in bytes. */
typedef struct line_at {
  const hk_igemm_args *r;
  const float *f;
  const int64_t *x_seg, *seg;
  int64_t first, segments, x_step, y_step,
      last; /* first: bytes from a row's end to its first channel; last: lanes of the last vector */
  uint32_t flags;
  bool prefetch;
} line_at;
typedef void (*line_fn)(const line_at *at, const char *x, float *y, int64_t m0, int64_t tiles);

#include "cpu/tmpl/common/tiles.tmpl.h"

/* How rows are split: the first `more` tiles have one row more than the others. */
typedef struct cut {
  int64_t count, each, more;
} cut;

static void run_line(const hk_igemm_args *r, const line_fn *lines, const line_fn *ones, cut k) {
  const hk_igemm_line *l = r->line;
  line_at at = {.r = r,
                .f = r->f,
                .x_seg = l->x_seg,
                .seg = r->seg,
                .first = -r->channels * (int64_t)sizeof(float),
                .segments = r->segments,
                .x_step = l->x_step * (int64_t)sizeof(float),
                .y_step = l->y_step,
                .last = r->columns - (r->vectors - 1) * HK_VW,
                .flags = r->flags,
                .prefetch = r->prefetch};
  const float *x = l->x + r->x_at + r->channels;
  const bool one = r->segments == 1;
  if (one) at.f += r->seg[0] * r->vectors * HK_VW, x += l->x_seg[0];
  const int64_t m1 = k.more * (k.each + 1);
  float *y = l->y + r->y_at;
  if (k.more) (one ? ones : lines)[k.each](&at, (const char *)x, y, 0, k.more);
  if (k.count > k.more)
    (one ? ones : lines)[k.each - 1](&at, (const char *)(x + m1 * l->x_step), y + m1 * l->y_step, m1, k.count - k.more);
}

static void run(const hk_igemm_args *r, const tile_fn *tiles, const line_fn *lines, const line_fn *ones, int64_t most) {
  cut k = {.count = hk_ceil_div(r->count, most)};
  if (k.count <= 0) return;
  k.each = r->count / k.count;
  k.more = r->count - k.each * k.count;
  if (r->line) {
    run_line(r, lines, ones, k);
    return;
  }
  if (k.more) tiles[k.each](r, 0, k.more);
  if (k.count > k.more) tiles[k.each - 1](r, k.more * (k.each + 1), k.count - k.more);
}

#define HK_ARGS hk_igemm_args
#define HK_TILES(n) HK_PASTE4(tiles_, n, _, rows), HK_PASTE4(lines_, n, _, rows), HK_PASTE4(ones_, n, _, rows)
#include "cpu/tmpl/common/tiles_entry.tmpl.h"
