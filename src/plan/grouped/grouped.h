/* Grouped convolution over planar rows: what grouped/grouped.c decides and builds, and grouped_run.c runs.
 *
 * The output channels of a group are split into tiles of one or two sizes, so that every kernel of the small family
 * works on whole tiles. Lanes are neighbours of the flat output, so they are full whatever a group holds:
 *   DIRECT  one dimension, stride 1, no tap outside x: rows of x and y themselves, all groups in one call
 *   STAGED  the inputs of one group are copied, padded, into a buffer on the stack, in phases of the strides; the
 *           rows of the band lie `pitch` apart, so one flat run computes them all, with (pitch - cols) idle lanes a row
 *   ROWS    stride 1 along the last dimension: rows of x itself, in ranges that read the same taps (grouped_rows.c)
 */
#ifndef HK_PLAN_GROUPED_H
#define HK_PLAN_GROUPED_H
#include "plan/depthwise/depthwise.h"

enum { HK_GROUPED_DIRECT = 0, HK_GROUPED_STAGED = 1, HK_GROUPED_ROWS_OF_X = 2 };
/* knobs; TILES, the tiles that the outputs of a group are cut into, is derived */
enum { HK_GROUPED_SOURCE, HK_GROUPED_ROWS, HK_GROUPED_COLS, HK_GROUPED_SHARDS, HK_GROUPED_PARTS, HK_GROUPED_TILES };
#define HK_GROUPED_TAPS 128
#define HK_GROUPED_AT_ONCE 8
#define HK_GROUPED_SUMS 12288 /* floats on the stack for the sums of a band */

/* Tiles of one size. */
typedef struct hk_grouped_tiles {
  const hk_kernel *kernel;
  int64_t tiles, first, f; /* how many; the first channel of a group; where its weights begin */
} hk_grouped_tiles;

typedef struct hk_grouped {
  hk_geom geom; /* the task's, or its pixels as one row */
  hk_kernel_fn stage, transpose;
  int64_t source, shards, parts;
  hk_grouped_tiles tile[2];
  int64_t tile_sizes;
  double tile_cycles; /* of all tiles of a group: a tap, an input and a vector of 8 lanes */
  int64_t band_p, band_q, bands_p, bands_q, bands;
  int64_t pitch, plane, channel, used; /* of the buffer: a row, a phase, all of a channel, all */
  bool fused;                          /* bias and activation in the kernel */
  bool uniform;                        /* all groups of x and y lie alike, so one call does them */
  int32_t act;
  float lo, hi;
  int64_t offset[HK_GROUPED_TAPS]; /* of a tap from the first, in x (DIRECT) or in the buffer */
  float *zeros;                    /* a bias where there is none */
  /* DIRECT, one image, one task, few taps: all but the pointers of x, y and bias is known of the calls it takes. */
  bool at_once;
  hk_small_args args[2];
  hk_small_seg seg[2][HK_GROUPED_AT_ONCE];
} hk_grouped;

/* Several channels that are adjacent: they are transposed into rows and back. */
static inline bool hk_woven(const hk_strides *s, int64_t channels) {
  return channels > 1 && s->channel == 1 && s->at[2] != 1;
}
/* All sizes from the knobs, of which TILES is chosen where it is HK_KNOB_AUTO; false with a reason when they do not
 * fit. */
bool hk_grouped_layout(const hk_task *task, hk_decision *d, hk_grouped *p, char *why);
/* True when rows of x alias in a few sets of L1. */
bool hk_grouped_crowded(const hk_task *task, const hk_geom *g);
/* Sets args and seg where the plan runs at once. */
void hk_grouped_prepare(const hk_plan *plan, hk_grouped *p);
hk_status hk_grouped_run(const hk_plan *plan, const hk_call *call);

/* grouped_rows.c: the source ROWS_OF_X, with a plan->own of its own */
bool hk_grouped_rows_offer(const hk_task *task, hk_decision *d, char *why);
bool hk_grouped_rows_check(const hk_task *task, hk_decision *d, char *why);
hk_status hk_grouped_rows_build(hk_plan *plan);
hk_status hk_grouped_rows_run(const hk_plan *plan, const hk_call *call);
void hk_grouped_rows_trace(const hk_plan *plan, hk_text *t);
#endif
