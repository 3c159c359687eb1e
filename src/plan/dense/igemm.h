/* What igemm's planning (dense/igemm.c) and running (igemm_run.c) share. */
#ifndef HK_IGEMM_H
#define HK_IGEMM_H
#include "plan/dense/dense.h"

/* knobs; those from MERGE on are derived:
 *   merge  windows joined along the row (hk_rows_mergeable)
 *   flat   pointwise, all pixels of x and of y one after another: rows at one distance need no tables
 *   lines  output lines of a block whose rows between the ends have one stride, merged windows only; 0: tables for all
 *   cuts   tiles end where the set of taps inside x changes (dense/cut.c)
 *   ahead  packed weights are prefetched
 *   tail   output channels of a last panel of dot's kind; 0: none */
enum {
  HK_IGEMM_BM,
  HK_IGEMM_BN,
  HK_IGEMM_BK,
  HK_IGEMM_PACK,
  HK_IGEMM_MERGE,
  HK_IGEMM_FLAT,
  HK_IGEMM_LINES,
  HK_IGEMM_CUTS,
  HK_IGEMM_AHEAD,
  HK_IGEMM_TAIL
};
/* how f is packed: whole, at creation or (when it comes at execute) into the workspace; or, only then, on a job's
 * stack, piece by piece */
enum { HK_PACK_WHOLE = 0, HK_PACK_BLOCK = 1 };

/* what a job keeps on its stack */
#define HK_IGEMM_TABLE 2048   /* row pointers */
#define HK_IGEMM_TAPS 256     /* taps in a table */
#define HK_IGEMM_PARTIAL 8192 /* floats: sums of a block and panel */
#define HK_IGEMM_SCRATCH 8192 /* floats: completed window rows, or weights packed for a block */

#define HK_EVEN_MOST 8  /* lines of a block */
#define HK_EVEN_ROWS 32 /* window rows */

typedef struct hk_igemm_own {
  hk_panels panels;
  hk_fuse fuse;
  const hk_kernel *transpose; /* y lies in planes: blocks are finished channels-last, then transposed; else NULL */
  const hk_kernel *dot;       /* for the panel of left-over channels */
  bool merged, flat;
  hk_cuts cuts;
  int64_t lines;
  int64_t q0, q1;             /* lines: outputs of a line whose windows lie in x along the row */
  int64_t segments, channels; /* of the reduction: taps x C, or window rows x C*S */
  int64_t bm, bn, bk, grids, splits, blocks;
  bool ahead;
  float *zeros;
} hk_igemm_own;

hk_status hk_igemm_run(const hk_plan *plan, const hk_call *call);
#endif
