/* Depthwise with lanes along the last dimension: what depthwise/dwp.c decides and builds, and dwp_run.c runs.
 *
 * A channel's plane is read in one of four ways:
 *   DIRECT  one dimension, stride 1: vectors of x itself, and only the padded ends from a buffer
 *   BAND    a band of rows is copied, padded, into a buffer on the stack, its columns split into phases by the stride
 *   MASKED  vectors of x itself, lanes and rows outside it masked: two and three dimensions, stride 1 along the row,
 *           on ISAs whose masks are free
 *   GATHER  each tap's values are gathered for one tile: for windows whose span fits no buffer
 * In a tile the vectors lie `spread` rows apart (down) or `spread` vectors apart in a row, so that chained taps of a
 * dilated window still meet the vectors of their neighbours; or, DIRECT, `fold` outputs apart, a multiple of the
 * dilation that need not be one of vectors: the row is seen as rows of `fold` columns, of which the last vector
 * overlaps the one before. A short window without dilation is a line: a call takes a whole row. */
#ifndef HK_PLAN_DWP_H
#define HK_PLAN_DWP_H
#include "plan/depthwise/depthwise.h"

enum { HK_DWP_DIRECT = 0, HK_DWP_BAND = 1, HK_DWP_GATHER = 2, HK_DWP_MASKED = 3 };
#define HK_DWP_RUNS 1024 /* most runs of all tiles down a band, kept on the stack with their edges */
/* knobs; SPREAD and LINE (whether the window is taken as a line) are derived */
enum {
  HK_DWP_SOURCE,
  HK_DWP_DOWN,
  HK_DWP_ROWS,
  HK_DWP_COLS,
  HK_DWP_SHARDS,
  HK_DWP_PARTS,
  HK_DWP_FOLD,
  HK_DWP_SPREAD,
  HK_DWP_LINE
};

typedef struct hk_dwp {
  hk_kernel_fn stage;
  int64_t vw, mr;
  int64_t source, down, spread, fold; /* fold 0: not folded */
  int32_t line;                       /* DIRECT: taps of a window that the kernel knows as a line; 0: not one */
  int64_t band_p, band_q, bands_p, bands_q, bands; /* output rows and columns of a band; bands in all */
  int64_t phases, pitch, row, rows, used;          /* of the buffer; see hk_stage_args; rows of one depth slice */
  int64_t inner_lo, inner_hi;                      /* DIRECT: outputs all of whose taps lie inside x */
  int64_t shards, parts;
  bool fused;
  hk_dw_fuse fuse;
  int64_t tile_rows, row_tiles; /* MASKED: outputs of a tile's column, tiles down a band */
  hk_tap_runs chain;
} hk_dwp;

/* All sizes from the knobs, of which those that are HK_KNOB_AUTO are chosen; false: the buffer does not hold it, or
 * spread or line do not fit. */
bool hk_dwp_layout(const hk_task *task, hk_decision *d, hk_dwp *p);
hk_status hk_dwp_run(const hk_plan *plan, const hk_call *call);
#endif
