/* igemm for one ISA: all tiles of 1..4 vectors (those whose HK_ROWS_<vectors> is above 0) and the loop over rows.
 * Define HK_NAME and HK_ROWS_1..4 (most rows a tile holds for that many vectors), HK_AHEAD where f is to be asked for ahead of
 * its use, include a vocabulary, then this.
 * Rows are cut into tiles of nearly equal size, so a count just above a multiple costs no almost empty tile. */
#include "cpu/ukernel.h"
#include "unroll.tmpl.h"

#define HK_TILE "igemm_tile.tmpl.h"
#define HK_ROW_FN line_fn
#define HK_KIND_2 line_
#define HK_TABLE_2 lines_
#define HK_KIND_3 one_
#define HK_TABLE_3 ones_
typedef void (*tile_fn)(const hk_igemm_args *r, int64_t m0);
/* What all tiles over even rows need; steps of x in bytes. */
typedef struct line_at {
  const hk_igemm_args *r;
  const float *f;
  const int64_t *x_seg, *seg;
  int64_t first, segments, x_step, y_step, last; /* first: bytes from a row's end to its first channel; last: columns of the last vector */
  uint32_t flags;
  bool ahead;
} line_at;
typedef void (*line_fn)(const line_at *at, const char *x, float *y, int64_t m0, int64_t tiles);

#include "tiles.tmpl.h"

/* All rows of r->line: tiles of one row more than the others come first. */
static void run_line(const hk_igemm_args *r, const line_fn *lines, const line_fn *ones, int64_t most) {
  const hk_igemm_line *l = r->line;
  line_at at = {.r = r, .f = r->f, .x_seg = l->x_seg, .seg = r->seg, .first = -r->channels * (int64_t)sizeof(float), .segments = r->segments,
                .x_step = l->x_step * (int64_t)sizeof(float), .y_step = l->y_step, .last = r->columns - (r->vectors - 1) * HK_VW,
                .flags = r->flags, .ahead = r->ahead};
  const float *x = l->x + r->x_at + r->channels;
  const bool one = r->segments == 1;
  if (one) at.f += r->seg[0] * r->vectors * HK_VW, x += l->x_seg[0];
  const int64_t count = hk_ceil_div(r->count, most), each = r->count / hk_max64(count, 1), more = r->count - each * count;
  const int64_t m1 = more * (each + 1);
  float *y = l->y + r->y_at;
  if (more) (one ? ones : lines)[each](&at, (const char *)x, y, 0, more);
  if (count > more) (one ? ones : lines)[each - 1](&at, (const char *)(x + m1 * l->x_step), y + m1 * l->y_step, m1, count - more);
}

/* Tiles of nearly equal size. */
static void run(const hk_igemm_args *r, const tile_fn *tiles, const line_fn *lines, const line_fn *ones, int64_t most) {
  if (r->line) {
    run_line(r, lines, ones, most);
    return;
  }
  int64_t left = r->count, m = 0;
  for (int64_t n = hk_ceil_div(left, most); n > 0; n--) {
    const int64_t rows = hk_ceil_div(left, n);
    tiles[rows - 1](r, m);
    m += rows;
    left -= rows;
  }
}

#define HK_ARGS hk_igemm_args
#define HK_TILES(n) HK_PASTE4(tiles_, n, _, rows), HK_PASTE4(lines_, n, _, rows), HK_PASTE4(ones_, n, _, rows)
#include "tiles_entry.tmpl.h"
