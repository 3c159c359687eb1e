/* What planning (outer.c), the boxes of the reduction (outer_box.c), the loops (outer_run.c) and the result
 * (outer_store.c) share.
 *
 * The sum of one output runs over the images c and the window's positions s0, s1, s2; of a filter gradient these are
 * batch and pixels of dy. It is cut into boxes of c x s0 x s1 x s2, the boxes into slices. A box is summed in
 * registers and added to the partial sums of its slice, the slices are added in their order: the bits of a result
 * depend on the knobs `block` and `slices` alone.
 *
 * Partial sums: [slice][group][tap][row][column]; of a single slice [tap][row][column] of a chunk. A tap is a position
 * of y. With lanes along n a row is an output channel k and a column is n; with lanes along k it is the other way
 * round. Merged, the positions of y's last dimension are no taps but belong to n's axis: e = p2*n + channel. */
#ifndef HK_OUTER_H
#define HK_OUTER_H
#include "plan/plan.h"

enum {
  HK_OUTER_LANES,
  HK_OUTER_MERGE,
  HK_OUTER_BLOCK,
  HK_OUTER_SLICES,
  HK_OUTER_BR,
  HK_OUTER_BC,
  HK_OUTER_PACK
}; /* knobs */

#define HK_OUTER_LINES 256 /* of s2, in a box */

/* ---- outer_box.c */

/* A range of the reduction. */
typedef struct hk_outer_box {
  int64_t from[4], to[4];
} hk_outer_box;
/* How the reduction is cut into boxes of about `block` positions and at most HK_OUTER_LINES lines of s2. */
typedef struct hk_outer_boxes {
  int64_t size[4], parts[4], count; /* c, s0, s1, s2 */
} hk_outer_boxes;
hk_outer_boxes hk_outer_boxes_make(const hk_geom *g, int64_t block);
hk_outer_box hk_outer_box_get(const hk_geom *g, const hk_outer_boxes *boxes, int64_t index);

typedef struct hk_outer {
  bool along_k, merged;
  bool pack_x, pack_f; /* else read in place */
  bool direct;         /* the only slice is summed in y itself */
  bool local;          /* the only slice is summed chunk by chunk, in a slot's own room, and stored at once */
  int64_t e, rows, columns, taps;
  hk_outer_boxes boxes;
  int64_t slices, br, bc, row_chunks, column_chunks, jobs, slots;
  int64_t x_floats, f_floats; /* of a packed box */
  size_t sums_bytes, slot_bytes;
} hk_outer;
hk_outer hk_outer_make(const hk_task *t, const hk_decision *d);

/* Where element (c, i0, i1, i2) of an operand lies: base + sum of (index - first)/every*step; its channels are
 * adjacent. Packed, only every `every`-th plane or line may be there: those between are read by no window of a single
 * position. */
typedef struct hk_outer_view {
  const float *base;
  int64_t first[4], step[4], every[2];
} hk_outer_view;
static inline const float *hk_outer_at(const hk_outer_view *v, int64_t c, int64_t i0, int64_t i1, int64_t i2) {
  return v->base + (c - v->first[0]) * v->step[0] + (i0 - v->first[1]) / v->every[0] * v->step[1] +
         (i1 - v->first[2]) / v->every[1] * v->step[2] + (i2 - v->first[3]) * v->step[3];
}
/* Channels first..first+count-1, step elements apart, from the pointer on. Packed into `to` or in place (to is NULL).
 */
typedef struct hk_outer_channels {
  int64_t first, count, step;
} hk_outer_channels;
hk_outer_view hk_outer_view_x(const hk_plan *plan, const hk_outer_box *box, const void *x, hk_outer_channels n,
                              bool merged, float *to);
hk_outer_view hk_outer_view_f(const hk_plan *plan, const hk_outer_box *box, const void *f, hk_outer_channels k,
                              float *to);
/* Floats that packed views of boxes of that size take at most. */
int64_t hk_outer_floats_x(const hk_geom *g, const int64_t box[4], bool merged, int64_t channels);
int64_t hk_outer_floats_f(const int64_t box[4], int64_t channels);

/* Positions from..to-1 of the last dimension, within first..last-1, that output p finds in x (input dilation 1). */
void hk_outer_positions(const hk_geom *g, int64_t p, int64_t first, int64_t last, int64_t *from, int64_t *to);

/* The segments of one tap: positions at which both operands lie. */
typedef struct hk_outer_lines {
  int64_t count, x_step, f_step;
  struct {
    const float *x, *f;
    int64_t count;
  } line[HK_OUTER_LINES];
} hk_outer_lines;
void hk_outer_lines_make(const hk_geom *g, const hk_outer_box *box, const int64_t p[3], bool merged,
                         const hk_outer_view *x, const hk_outer_view *f, hk_outer_lines *l);

/* Into how many chunks, at most `most`, to cut work that is `base` jobs for threads, so that few threads end idle. */
int64_t hk_outer_chunks(int64_t base, int64_t most, int32_t threads);

/* ---- outer_run.c, outer_store.c */
hk_status hk_outer_run(const hk_plan *plan, const hk_call *call);
/* The partial sums of all slices through the epilogue to y. */
void hk_outer_store(const hk_plan *plan, const hk_call *call, float *sums);
/* Complete sums of some channels of a group: (tap, n, k) is at from + tap*tap_step + n*n_step + k*k_step. */
typedef struct hk_outer_sums {
  const float *from;
  int64_t tap_step, n_step, k_step;
  int64_t group;
  hk_outer_channels n, k; /* steps are not used */
} hk_outer_sums;
void hk_outer_store_part(const hk_plan *plan, const hk_call *call, const hk_outer_sums *s);
bool hk_outer_store_is_plain(const hk_task *t); /* conversion and residual alone: no rows of the plan's epilogue */
#endif
