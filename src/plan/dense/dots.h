/* What the parts of dots share: planning (dense/dots.c), packing (dots_pack.c), rows of x (dots_rows.c), running
 * (dots_run.c) and storing (dots_store.c). */
#ifndef HK_DOTS_H
#define HK_DOTS_H
#include "plan/dense/dense.h"

/* knobs: pixels of a block, panels of a job; windows joined along the row; tiles end where taps inside x change */
enum { HK_DOTS_BM, HK_DOTS_BN, HK_DOTS_MERGE, HK_DOTS_CUTS };

/* what a job keeps on its stack */
#define HK_DOTS_TABLE 2048    /* row pointers */
#define HK_DOTS_TAPS 256      /* taps in a table */
#define HK_DOTS_SUMS 8192     /* sums of a block and panel */
#define HK_DOTS_SCRATCH 32768 /* bytes: completed window rows */
#define HK_DOTS_WIDTH 64      /* most channels of a panel */

/* 8 bits: the kernels take f as s8, and x as u8 where they are not AMX's. u = x + 128 where x is s8 then, else x, and
 * w = f - 128 where f is u8, their zero points likewise; then sum (x - x_zero)(f - f_zero) is
 *   sum u*w - u_zero * sum w - w_zero * sum u + gk * u_zero * w_zero
 * in s32, over all taps: a place in the padding holds x_zero. */
typedef struct hk_dots_int {
  bool on;
  int32_t x_signed; /* x is s8 */
  int32_t u_zero;
  bool window;     /* some w_zero is not 0: sum u is needed */
  int32_t f_shift; /* taken off f and its zero points */
} hk_dots_int;

/* Packed f in groups of channels: [group][panel][segment][group of channels][NR][E]; with 8 bits then sum w as
 * [group][vectors * lanes] of s32, and ones in place of f, one vector wide. */
typedef struct hk_dots_layout {
  hk_panels panels;           /* taps: segments; c: groups of channels of a segment */
  int64_t segments, channels; /* of the reduction: taps x C, or window rows x C*S */
  int64_t each;               /* channels of a group, E */
  int64_t columns;            /* vectors * lanes of all panels of a group */
  size_t f_bytes, sums_bytes, ones_bytes;
} hk_dots_layout;

typedef enum hk_dots_store {
  HK_DOTS_FINISH_PLANES,  /* as FINISH, and from its rows to planes of y */
  HK_DOTS_FINISH,         /* the finish kernel, straight to y */
  HK_DOTS_REQUANT,        /* the requant kernel, straight to y */
  HK_DOTS_REQUANT_PLANES, /* and from its rows to planes of y */
  HK_DOTS_ROWS,           /* the plan's epilogue, along channels */
  HK_DOTS_PLANES,         /* transposed, then the plan's epilogue, along pixels */
  HK_DOTS_DOUBLES         /* the plan's epilogue in double, for s32 sums */
} hk_dots_store;

typedef struct hk_dots_own {
  hk_dots_layout layout;
  hk_dots_int q;
  hk_dots_store store;
  hk_fuse fuse;
  const hk_kernel *finish, *transpose; /* finish: requant for s32 sums; transpose: of elements of y, or of sums */
  hk_cuts cuts;
  bool merged;
  int64_t bytes, bm, bn, splits, blocks;
  char *zeros; /* a row of x_zero, or NULL */
} hk_dots_own;

hk_dots_layout hk_dots_layout_of(const hk_geom *g, const hk_kernel *kernel, bool merged);
/* Packs all of f; spread over the plan's threads. */
void hk_dots_pack(const hk_plan *plan, const hk_dots_layout *l, int32_t f_shift, const void *f, void *to);

/* A job: a block of pixels x some panels. */
typedef struct hk_dots_rows {
  const char *table[HK_DOTS_TABLE]; /* [tap kept][pixel of the block] */
  int64_t step, tap[HK_DOTS_TAPS], kept;
  bool all; /* taps outside x for all pixels are kept too */
  char scratch[HK_DOTS_SCRATCH];
} hk_dots_rows;
/* The rows of taps (merged: window rows) t0..t1-1 of a block. x: of the group at hand. */
void hk_dots_rows_make(const hk_geom *g, const hk_dots_own *o, const hk_block *b, const char *x, int64_t t0, int64_t t1,
                       hk_dots_rows *rows);

/* Sums of a block and panel to y. */
typedef struct hk_dots_panel {
  const hk_plan *plan;
  const hk_call *call;
  const hk_block *block;
  int64_t k, columns, width; /* k: first channel, over all groups; width: from pixel to pixel of the sums */
  const int32_t *f_sums;     /* 8 bits: sum w of the panel's channels */
  const int32_t *x_sums;     /* 8 bits: sum u of the pixels, x_sums_step apart, or NULL */
  int64_t x_sums_step;
  void *sums; /* overwritten */
} hk_dots_panel;
void hk_dots_store_panel(const hk_dots_own *o, const hk_dots_panel *p);
hk_dots_store hk_dots_choose_store(const hk_task *t);
hk_fuse hk_dots_fuse(const hk_task *t);

hk_status hk_dots_run(const hk_plan *plan, const hk_call *call);
#endif
