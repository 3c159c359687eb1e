/* What planning (tapsum.c) and running (tapsum_run.c) of tapsum share. The channels of x over all groups lie at one
 * distance, and so do those of f: lanes are channels c of x, whatever their group. A panel is a run of whole groups
 * whose channels a kernel takes at once.
 *
 * Partial sums: [slice][tap][k of the group][c of x over all groups]. Boxes and slices are outer's. */
#ifndef HK_TAPSUM_H
#define HK_TAPSUM_H
#include "plan/gradient/outer.h"

enum { HK_TAPSUM_BLOCK, HK_TAPSUM_SLICES, HK_TAPSUM_BC, HK_TAPSUM_VECTORS }; /* knobs */

#define HK_TAPSUM_TAPS 1024 /* most taps: they are listed on the stack */

typedef struct hk_tapsum {
  bool depthwise;      /* one channel of x and one of y per group */
  bool pack_x, pack_f; /* else read in place */
  int64_t channels;    /* of x, over all groups */
  int64_t x_step, f_step;
  int64_t panel, chunk; /* groups per panel and per chunk */
  int64_t vectors;      /* most per kernel call */
  hk_outer_boxes boxes;
  int64_t slices, chunks, jobs, slots;
  int64_t x_floats, f_floats; /* of a packed box */
  size_t sums_bytes, slot_bytes;
} hk_tapsum;

hk_status hk_tapsum_run(const hk_plan *plan, const hk_call *call);
/* tapsum_store.c: the partial sums of all slices through the epilogue to y. */
void hk_tapsum_store(const hk_plan *plan, const hk_call *call, float *sums);
#endif
