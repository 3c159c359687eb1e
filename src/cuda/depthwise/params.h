/* What the host hands to the depthwise and grouped kernels; read by C, nvcc and NVRTC.
 *
 * The width is walked in window indices, which make every stride and dilation look like stride 1, dilation 1. With
 * g = gcd(stride, dilation), phases = stride/g and classes = dilation/g: output q = r + classes*i (class r, index i) and
 * tap s = f + phases*u (phase f, index u) read column stride*(r + classes*(i + u)) + f*dilation - lo. Within one (r, f)
 * neighbouring outputs and neighbouring taps both move the column by stride*classes, so a register window slides. */
#ifndef HK_CUDA_DW_PARAMS_H
#define HK_CUDA_DW_PARAMS_H
#include "cuda/params.h"

/* Division of 0 <= n < 2^31 by a constant: (n * m >> 32) >> s; d = 1 has m = 0 and gives n. */
typedef struct hk_cu_div { unsigned d, m, s; } hk_cu_div;

/* Forms of packed weights, tap = ((t*win1 + r)*phases + f)*taps_u + u:
 *   taps      f32 [tap][channels rounded up to 8]
 *   channels  f32 [channel][tap]
 *   stem      [64 channels][16 of gk][4 pairs of blocks][lane][2][2] fragments of mma, see stem.cuh
 *   lines     [channel][tap row] two copies of its taps_u weights between zeros, taps_bytes, see dw_toeplitz.cuh
 *   split     [channel][tap row][high, low] f32 parts of its weights between zeros, taps_bytes, see dw_split.cuh
 *   bands     [channel rounded up to 16][tap row] two copies of its weights between zeros, see dw_band.cuh
 *   bundle    [run of 16 output channels][16 input channels of its group][tap][lane][4] fragments of mma, see bundle.cuh
 *   table     [run of 8 channels][tap][reach] fragments of mma: 8x8 16-bit weights [k][c], or 8 [c] when groups are single channels */
enum { HK_DW_PACK_NONE = 0, HK_DW_PACK_TAPS = 1, HK_DW_PACK_CHANNELS = 2, HK_DW_PACK_TABLE = 3, HK_DW_PACK_STEM = 4, HK_DW_PACK_LINES = 5, HK_DW_PACK_BANDS = 6, HK_DW_PACK_SPLIT = 7, HK_DW_PACK_BUNDLE = 8 };

enum { HK_SLIDE_COLUMNS = 7, HK_SLIDE_THREADS = 128, HK_SLIDE_THREADS_3 = 288, HK_SLIDE_THREADS_3S2 = 512, HK_PLANE_THREADS = 256, HK_OCTET_THREADS = 288, HK_TOEPLITZ_FRONT = 24 };
enum { HK_BAND_ROWS = 7, HK_BAND_CHANNELS = 16, HK_BAND_WORDS = 12, HK_BAND_THREADS = 256, HK_SPLIT_STEPS = 16, HK_STREAM_THREADS = 128 };

typedef struct hk_cu_dw {
  hk_cu_geom g;
  hk_cu_epi e;
  const void *x, *f, *packed;
  int pack, plain;                   /* HK_DW_PACK_*; no epilogue but conversion */
  int taps;                          /* win0*win1*phases*taps_u */
  hk_cu_div div_out0, div_out1, div_channels, div_classes, div_row_groups, div_patch, div_phases;
  int phases, classes, class_length; /* class_length: outputs of the longest class, ceil(out[2]/classes) */
  int taps_u;                        /* ceil(win[2]/phases) */
  int channels;                      /* of y, over all groups */
  int y_vector, x_vector, c_vector;  /* 16-byte accesses along the contiguous dimension are legal */

  /* dw_last: a group is TQ outputs of one class of one output row; a block is `teams` groups of `lanes` runs of channels */
  int row_groups, groups, steps;     /* groups of an output row; in all; that one thread computes in turn */
  int pairs;                         /* stride 2, 3 taps, dilation 1: weights packed as with one phase */
  int channel_blocks, padded;        /* padded: channels rounded up to 8 */
  int chunk_u;                       /* dw_first, dw_toeplitz: taps staged at a time */

  /* dw_slide: a block is `lanes` pairs of channels times `teams` groups; a group is 4 or 7 columns of strip_rows output
   * rows, row_groups and strips of them an image */
  int strips, strip_rows;            /* weights_at: pairs of channels before the rows under way */
  hk_cu_div div_strips;

  /* dw_plane: a block is `planes` units of `lanes` threads; a unit is strip_rows output rows of a plane, tile_rows of them a thread.
   * Shared memory of a unit: slots rows of slot_length pieces of patch_length bytes, line_bytes in all; results, sums_pitch bytes. */

  /* dw_first: a block is planes x rows x lanes threads, each TQ outputs of one class */
  int planes, rows, lanes;           /* of a block */
  int plane_count;                   /* n * channels * out[0] */
  int row_blocks, lane_blocks;
  int class_run, class_lanes;        /* classes side by side in a block; lanes / class_run */
  int slots, slot_rows, slot_taps, slot_step; /* input row of slot z is first + z*slot_step; slot of (row, tap) = row*slot_rows + tap*slot_taps */
  int slot_length;                   /* window indices held a slot, times class_run, padding counted */
  int weight_pitch;                  /* floats of one row of taps, a multiple of 4 */
  int weights_at;                    /* floats before the weights in shared memory */

  /* dw_toeplitz: a block is `planes` output rows, `lanes` warps each of 16*B outputs; lane_blocks tile a row. With places a tile is a warp's. */
  int line_bytes, plane_pitch;       /* staged x of a row; of one plane of its 16-byte pieces */
  int wide;                          /* y contiguous and of the type of x: 16-byte stores */
  int taps_at, taps_bytes;           /* two copies of the weights of a row, the second one element on */
  int sums_at, sums_pitch;           /* results of a warp, bytes */
  int rows_at;                       /* what is known of each row, 64 bytes a row */
  int places, buffer_bytes;          /* tiles that the warps walk along, 0: blocks of one tile each; shared memory of a warp */

  /* dw_band: a block is tile_rows x tile_length outputs of 16 channels; slots input rows of row_groups pieces of 8 columns */

  /* stem: a block is tile_rows output rows of tile_length outputs (16 at a time), 64 output channels */
  int pixel, k_steps;                /* elements of a staged pixel; steps of 16 elements */
  int lead, row_pairs;               /* elements before a filter row's first tap; pairs of elements of a filter row */
  int row_pieces;                    /* 16-byte pieces of a row of one channel, x channels-first (x_vector 2) */
  int turned;                        /* channels are the left operand: the inner two of a fragment's words change places */
  int patch_pixels, patch_pitch;     /* pixels of a staged row; its bytes */

  /* grouped_mma: a block is `slabs` runs of 8 output channels, a warp each, times `teams` that share the pixels */
  int slabs, teams, slab_blocks;
  int table_runs;                    /* runs of 8 output channels in the packed table */
  int in_slabs, reach;               /* runs of 8 input channels in the patch; that one run of outputs reads */
  int tile_rows, tile_length;        /* output rows and window indices of a block */
  int row_tiles, tiles, class_count; /* of the image; of a class; = classes */
  int depth_slots;                   /* slots of one depth tap */
  int patch_length;                  /* window indices of a slot and phase */
  int plane_bytes, table_at, stage_at, stage_pitch, stage_bytes; /* shared memory, bytes */
  int channel_step;                  /* elements from one channel of x to the next, over all groups */
  int compact;                       /* table holds 8 weights a tap (one channel a group), else 8x8 */
  int leaks;                         /* zeros of the table meet foreign channels: results that are NaN are recomputed */

  /* octet: a block is `slabs` eights of channels, `teams` warps each, by tile_rows x tile_length outputs. A ring of `slots` input rows of
   * patch_length pixels, plane_bytes each; then two buffers of stage_bytes for two rows of y each; then the ring's barriers, at table_at. */
  int swizzle_shift, swizzle_mask;           /* the copy engine's swizzle: piece s of pixel i lies at s ^ (i >> swizzle_shift & swizzle_mask) */
  hk_cu_tmap xmap, ymap;             /* {channels, columns, rows, images} */
} hk_cu_dw;
#endif
