/* Strips of neighbouring pixels x the output channels of a group (channels-last): what algo_strip.c decides and builds, and
 * strip_run.c runs.
 *
 * The output channels of a group are parts of one to four vectors, those of one group nearly equal, so of one or two sizes; for
 * each size an output row is cut into tiles, and tiles that use the same taps are one span, one call. A span's taps lie
 * [window plane][window row][those it needs of the row]: an output row takes those of the window rows that lie inside x.
 * Weights: [group][part][tap][input][vectors * VW]. */
#ifndef HK_PLAN_STRIP_H
#define HK_PLAN_STRIP_H
#include "plan/dw.h"

enum { HK_STRIP_BAND, HK_STRIP_SHARDS, HK_STRIP_PARTS };
#define HK_STRIP_TAPS 512 /* most of a window */

typedef struct hk_strip_span {
  int64_t q, tiles;
  int32_t pixels, kept;      /* of a tile; taps of a window row */
  const hk_strip_tap *taps;
} hk_strip_span;

/* An output row cut into spans for one size of parts. */
typedef struct hk_strip_cut {
  int64_t vectors, tile, count;
  hk_strip_span *span;
  hk_strip_tap *taps;
} hk_strip_cut;

typedef struct hk_strip_part {
  int64_t first, lanes, f;   /* channel of the group, and how many; where its weights lie in the group's */
  int32_t cut;
} hk_strip_part;

/* Window planes or rows that lie inside x. */
typedef struct hk_strip_range {
  int32_t from, to;
} hk_strip_range;

typedef struct hk_strip {
  int64_t vw, vectors, part_count, blocks, f_group;   /* blocks: parts of all groups */
  int64_t band, bands, shards, parts;                 /* rows of a band; bands of an output plane */
  hk_dw_fuse fuse;
  int32_t cuts;
  hk_strip_cut cut[2];
  hk_strip_part *part;
  hk_strip_range *plane, *row;                        /* for each output plane and row */
  float *zeros;
} hk_strip;

/* Sizes from the knobs; false with a reason when they do not fit the problem. */
bool hk_strip_layout(const hk_task *task, const hk_decision *d, hk_strip *p, char *why);
hk_status hk_strip_run(const hk_plan *plan, const hk_call *call);
/* The same for plans of one task that read x and write y and nothing else. */
hk_status hk_strip_run_xy(const hk_plan *plan, const char *x, char *y);
#endif
