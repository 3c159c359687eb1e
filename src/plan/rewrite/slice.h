/* How slice cuts a problem, and its run (slice_run.c). */
#ifndef HK_PLAN_SLICE_H
#define HK_PLAN_SLICE_H
#include "plan/rewrite/rewrite.h"

/* A slice: whole images (d < 0), or `rows` output rows of dimension d of one; of all groups, or of some of one image.
 */
typedef struct hk_slice {
  int64_t images, groups, rows;
  int d;
  int64_t blocks, bands, count;         /* blocks of rows, bands of groups; slices of all images */
  bool planes;                          /* of some groups: their weights are widened with them */
  int64_t in[3], out[3];                /* of a slice */
  hk_strides x, y, f;                   /* in the buffers, f32 and dense */
  int64_t x_values, y_values, f_values; /* of a slice */
} hk_slice;
hk_slice hk_slice_make(const hk_geom *g);

/* Slices that run at once, each with one thread; 1: one after the other, with all threads in each. */
int64_t hk_slice_workers(const hk_task *t, const hk_slice *s);

/* Keeps the slice in plan->pass, and the weights as they come where slices are of planes. */
hk_status hk_slice_build(hk_plan *plan);
hk_status hk_slice_run(const hk_plan *plan, const hk_call *call);
#endif
