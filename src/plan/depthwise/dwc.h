/* Depthwise and grouped with lanes over channels: what depthwise/dwc.c decides and builds, and dwc_run.c runs.
 *
 * A block is VW lanes: as many whole groups as fit, or, where all channels fit several times, the channels of `unit`
 * neighbouring pixels, or, where a group has two or four times as many outputs, a part of one: 1 << share of them. A
 * tile is up to MR units of one output row; its blocks follow each other in one call. DIRECT  vectors of x itself; taps
 * outside x are skipped tile by tile STAGED  what a stretch of tiles reads, `wide` blocks wide, is copied, padded, into
 * a buffer on the stack: for windows and groups that read each element often, from places a power of two apart */
#ifndef HK_PLAN_DWC_H
#define HK_PLAN_DWC_H
#include "plan/depthwise/depthwise.h"

enum { HK_DWC_DIRECT = 0, HK_DWC_STAGED = 1 };
/* knobs; those from WIDE on are derived:
 *   wide       STAGED: blocks of a pixel that are copied together
 *   together   all rows of an image go together, tile by tile
 *   back       the last block is moved back to be whole
 *   past       non-temporal stores where y is aligned
 *   backwards  blocks go from the last to the first where y begins a little after x modulo 4 KiB */
enum {
  HK_DWC_SOURCE,
  HK_DWC_UNIT,
  HK_DWC_TILE,
  HK_DWC_SHARDS,
  HK_DWC_PARTS,
  HK_DWC_CHAINS,
  HK_DWC_WIDE,
  HK_DWC_TOGETHER,
  HK_DWC_BACK,
  HK_DWC_PAST,
  HK_DWC_BACKWARDS
};
/* What a task keeps on its stack, less than 64 KiB in all: the runs of a pass with their edges, a staged stretch, the
 * weights of a block when they come at execute, sums that wait for hk_plan_store_row. */
#define HK_DWC_RUNS 512
#define HK_DWC_STAGE 7168
#define HK_DWC_WEIGHTS 6144
#define HK_DWC_SUMS 2048

/* A chain of taps of one window row. */
typedef struct hk_dwc_run_of {
  int64_t a, r;        /* depth and row of the window */
  int64_t first, last; /* units q + m for which its input column lies inside x */
  int64_t order;       /* where its taps begin in hk_dwc.order */
} hk_dwc_run_of;

typedef struct hk_dwc {
  hk_kernel_fn stage;
  int64_t vw, mr;
  int64_t source, unit, tile;       /* tile: units of a tile */
  int64_t block_groups, blocks;     /* groups of a block; blocks of all channels */
  int64_t share, y_block;           /* log2 of the blocks of one group; output channels of a block */
  int64_t x_lanes, y_lanes, inputs; /* lanes of a whole block; inputs per group, 0 for depthwise */
  int32_t back;         /* lanes by which the last block is moved back to be whole; 0: it is, or may not be moved */
  int64_t units, tiles; /* of one output row; the last unit may be short */
  int64_t rows;         /* of an image whose tiles follow each other in one call: 1, or all of them */
  int64_t items;        /* of all images: tiles of `rows` rows */
  int64_t shards, parts;
  int64_t run_count, chains; /* chains: runs of a pass over y, so that the rows they read stay near */
  int64_t stretch, cols_staged,
      wide;        /* STAGED: tiles copied together, the pixels they read of a window row, and blocks of a pixel */
  int64_t f_block; /* weights of a block */
  int64_t inner_first, inner_last; /* units all of whose taps lie inside x along the row */
  int32_t chain;                   /* see hk_dwc_args */
  bool fused;
  bool past, backwards; /* knobs */
  hk_dw_fuse fuse;
  hk_dw_run *runs; /* as if all taps were inside */
  hk_dwc_run_of *of;
  int32_t *order, *index;
  /* One row, one task, every tap inside x: all but the pointers of the one or two calls it takes is known. */
  bool at_once;
  int64_t rest; /* units after the whole tiles */
  hk_dwc_args args;
} hk_dwc;

/* All sizes from the knobs, of which those that are HK_KNOB_AUTO are chosen; false with a reason when they do not fit
 * the problem. */
bool hk_dwc_layout(const hk_task *task, hk_decision *d, hk_dwc *p, char *why);
/* The weights of one block's runs [from, to) in the kernel's order; returns behind them. f: the caller's, offset added.
 * A plan packs pass by pass, and in a pass block by block, as they are read. */
float *hk_dwc_pack(const hk_geom *g, const hk_dwc *p, const float *f, int64_t block, int64_t from, int64_t to,
                   float *at);
/* Weights of one block in runs [from, to). */
int64_t hk_dwc_weights(const hk_dwc *p, int64_t from, int64_t to);
/* Sets args where the plan runs at once. */
void hk_dwc_prepare(const hk_plan *plan, hk_dwc *p);
hk_status hk_dwc_run(const hk_plan *plan, const hk_call *call);
#endif
