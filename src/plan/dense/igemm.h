/* What igemm's planning (dense/igemm.c) and running (igemm_run.c) share. */
#ifndef HK_IGEMM_H
#define HK_IGEMM_H
#include "plan/dense/dense.h"

/* knobs */
enum { HK_IGEMM_BM, HK_IGEMM_BN, HK_IGEMM_BK, HK_IGEMM_PACK };
/* how f is packed: whole, at creation or (when it comes at execute) into the workspace; or, only then, on a job's
 * stack, piece by piece */
enum { HK_PACK_WHOLE = 0, HK_PACK_BLOCK = 1 };

/* what a job keeps on its stack */
#define HK_IGEMM_TABLE 2048   /* row pointers */
#define HK_IGEMM_TAPS 256     /* taps in a table */
#define HK_IGEMM_PARTIAL 8192 /* floats: sums of a block and panel */
#define HK_IGEMM_SCRATCH 8192 /* floats: completed window rows, or weights packed for a block */

/* FLAT: pointwise, all pixels of x and of y one after another. LINES: merged windows; a block is some output lines,
 * their ends go through tables together. */
enum { HK_EVEN_NOT, HK_EVEN_FLAT, HK_EVEN_LINES };
#define HK_EVEN_MOST 8  /* lines of a block */
#define HK_EVEN_ROWS 32 /* window rows */

typedef struct hk_igemm_own {
  hk_panels panels;
  hk_fuse fuse;
  const hk_kernel *transpose; /* y lies in planes: blocks are finished channels-last, then transposed; else NULL */
  const hk_kernel *dot;       /* for the panel of left-over channels */
  bool merged;
  int64_t even;               /* HK_EVEN_*: blocks whose rows lie evenly need no tables */
  hk_cuts cuts;               /* tiles end where the set of taps changes */
  int64_t lines;              /* EVEN_LINES: output lines of a block */
  int64_t q0, q1;             /* EVEN_LINES: outputs of a line whose windows lie in x along the row */
  int64_t segments, channels; /* of the reduction: taps x C, or window rows x C*S */
  int64_t bm, bn, bk, grids, splits, blocks;
  bool ahead; /* prefetch packed weights */
  float *zeros;
} hk_igemm_own;

hk_status hk_igemm_run(const hk_plan *plan, const hk_call *call);
#endif
