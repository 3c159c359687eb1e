/* Tiles of pixels x the output channels of a group (channels-last): what dense/strip.c decides, strip_cut.c cuts and
 * strip_run.c runs.
 *
 * The output channels of a group are parts of one to four vectors, nearly equal, so of one or two sizes. For each size
 * the pixels are cut into tiles, in one of two ways: ROWS    an output row after the other: neighbours; tiles of a row
 * that use the same taps are one span, one call. Taps lie [window plane][window row][those needed], and an output row
 * takes the window rows that lie inside x PLANE   a whole output plane, for small ones: pixels that find the same taps
 * inside x, wherever they lie, so that taps in the padding cost nothing and tiles are full. Taps lie [window
 * plane][those needed] Weights: [group][part][tap][input][vectors * VW]; by pairs [group][tap][pair][2 * VW], see
 * hk_strip_args. */
#ifndef HK_PLAN_STRIP_H
#define HK_PLAN_STRIP_H
#include "plan/depthwise/depthwise.h"

enum { HK_STRIP_CUT, HK_STRIP_BAND, HK_STRIP_GROUPS, HK_STRIP_SHARDS, HK_STRIP_PARTS };
enum { HK_STRIP_BY_ROWS, HK_STRIP_BY_PLANE };
#define HK_STRIP_TAPS 512         /* most of a window */
#define HK_STRIP_RANGES (1 << 16) /* most outputs along a dimension whose ranges are kept */

/* Tiles that differ by their place. */
typedef struct hk_strip_span {
  int64_t x, y, c, tiles; /* the first, from the first output of the row or plane */
  int64_t x_step;         /* see hk_strip_args */
  int32_t pixels, kept;   /* of a tile; taps of a window row, or of a window plane */
  const hk_strip_tap *taps;
  int64_t x_at[HK_STRIP_MOST], y_at[HK_STRIP_MOST], c_at[HK_STRIP_MOST]; /* see hk_strip_args */
} hk_strip_span;

/* An output row or plane cut into spans for one size of parts. */
typedef struct hk_strip_cut {
  int64_t vectors, most, count; /* most: pixels of a tile */
  double call;                  /* cycles of a tile's share of a call, where groups go together */
  bool paired;                  /* by pairs of inputs, of which two sums a pixel are made */
  hk_strip_span *span;
  hk_strip_tap *taps;
} hk_strip_cut;

typedef struct hk_strip_part {
  int64_t first, lanes, f; /* channel of the group, and how many; where its weights lie in the group's */
  int32_t cut;
} hk_strip_part;

/* What of the window lies inside x along one dimension. */
typedef struct hk_strip_range {
  int32_t from, to;
} hk_strip_range;

typedef struct hk_strip {
  int64_t vw, vectors, part_count, blocks, f_group; /* blocks: parts of all groups, or so many groups together */
  int64_t way, band, bands, together, shards,
      parts;      /* rows of a band; bands of an output plane; groups that go tile by tile */
  int64_t pieces; /* of a row, where there are more parts than rows */
  hk_dw_fuse fuse;
  int32_t cuts;
  hk_strip_cut cut[2];
  hk_strip_part *part;
  hk_strip_range *plane, *row; /* for each output plane and row; NULL: there are more than HK_STRIP_RANGES */
  float *zeros;
} hk_strip;

/* Cycles of one part's tiles over an output plane; a product of vectors takes `product`. Less than 0: the plane cannot
 * be cut this way. */
double hk_strip_cycles(const hk_geom *g, int64_t way, const hk_strip_cut *cut, double product);
/* Fills span and taps; false when memory is out. f_tap: weights of a tap in a part. */
bool hk_strip_cut_make(const hk_task *task, int64_t way, hk_strip_cut *cut, int64_t f_tap);
hk_strip_range hk_strip_inside(const hk_geom *g, int d, int64_t p);

hk_status hk_strip_run(const hk_plan *plan, const hk_call *call);
/* The same for plans of one task that read x and write y and nothing else. */
hk_status hk_strip_run_xy(const hk_plan *plan, const char *x, char *y);
#endif
