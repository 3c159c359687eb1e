/* What Winograd's planning (transform/winograd.c) and running (winograd_run.c) share. m: side of an output tile; tiles
 * of a window of 1 x 3 are one line high. */
#ifndef HK_WINOGRAD_H
#define HK_WINOGRAD_H
#include "plan/dense/dense.h"

/* how far the error of a sum may lie above that of a plain one: hk_algo.error_factor */
#define HK_WINOGRAD2_ERROR 4
#define HK_WINOGRAD4_ERROR 24

enum { HK_WINOGRAD_BT }; /* knob: tiles in a block */

typedef struct hk_winograd_own {
  int64_t m, t, bt;          /* side of the output and the input tile; tiles a block */
  int64_t m_high, points;    /* lines of an output tile; points of the transformed domain */
  bool line;                 /* the window is 1 x 3 */
  int64_t rows, cols, tiles; /* tiles down and across an image; over the batch, of one group */
  int64_t blocks, slots;     /* blocks over all groups; pieces of work, each with its own workspace */
  hk_panels panels;          /* as for a window of that many taps as there are points */
  hk_fuse fuse;
  const hk_kernel *in, *out;
  size_t slot_bytes;
  float *zeros;
} hk_winograd_own;

/* Elements between the points of the transformed domain: a line more than a round number, or the streams would
 * all fall into the same sets of L1. */
static inline int64_t hk_winograd_step(int64_t tiles, int64_t width) { return hk_round_up(tiles * width, 16) + 16; }

hk_status hk_winograd_run(const hk_plan *plan, const hk_call *call);
/* Bytes of workspace a slot takes, and how many slots a task gets. */
size_t hk_winograd_slot_bytes(const hk_geom *g, const hk_panels *p, int64_t bt);
#endif
