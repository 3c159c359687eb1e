/* Parameters of the depthwise and grouped kernels; read by C and nvcc.
 *
 * The width is indexed by window indices, which reduce every stride and dilation to stride 1, dilation 1. With g =
 * gcd(stride, dilation), phases = stride/g and classes = dilation/g: output q = r + classes*i (class r, index i) and
 * tap s = f + phases*u (phase f, index u) read column stride*(r + classes*(i + u)) + f*dilation - lo. Within one (r,
 * f), neighbouring outputs and neighbouring taps both move the column by stride*classes, so a register window
 * slides. */
#ifndef HK_CUDA_DW_PARAMS_H
#define HK_CUDA_DW_PARAMS_H
#include "cuda/params.h"

/* Division of 0 <= n < 2^31 by a constant: (n * m >> 32) >> s; d = 1 has m = 0 and gives n. */
typedef struct hk_cu_div { unsigned d, m, s; } hk_cu_div;

/* Layouts of packed weights, tap = ((t*win1 + r)*phases + f)*taps_u + u:
 *   taps      f32 [tap][channels rounded up to 8]
 *   channels  f32 [channel][tap]
 *   stem      [64 channels][16 of gk][4 pairs of blocks][lane][2][2] fragments of mma, see stem.cuh
 *   lines     [channel][tap row] two copies of its taps_u weights between zeros, taps_bytes, see toeplitz.cuh
 *   split     [channel][tap row][high, low] f32 parts of its weights between zeros, taps_bytes, see split.cuh
 *   bands     [channel rounded up to 16][tap row] two copies of its weights between zeros, see band.cuh
 *   bundle    [run of 16 output channels][16 input channels of its group][tap][lane][4] fragments, see bundle.cuh
 *   table     [run of 8 channels][tap][reach] fragments of mma: 8x8 16-bit weights [k][c], or 8 [c] for depthwise */
enum {
  HK_DW_PACK_NONE = 0,
  HK_DW_PACK_TAPS = 1,
  HK_DW_PACK_CHANNELS = 2,
  HK_DW_PACK_TABLE = 3,
  HK_DW_PACK_STEM = 4,
  HK_DW_PACK_LINES = 5,
  HK_DW_PACK_BANDS = 6,
  HK_DW_PACK_SPLIT = 7,
  HK_DW_PACK_BUNDLE = 8
};

enum {
  HK_SLIDE_COLUMNS = 7,
  HK_SLIDE_THREADS = 128,
  HK_SLIDE_THREADS_3 = 288,
  HK_SLIDE_THREADS_3S2 = 512,
  HK_PLANE_THREADS = 256,
  HK_OCTET_THREADS = 288,
  HK_TOEPLITZ_FRONT = 24
};
enum {
  HK_BAND_ROWS = 7,
  HK_BAND_CHANNELS = 16,
  HK_BAND_WORDS = 12,
  HK_BAND_THREADS = 256,
  HK_SPLIT_STEPS = 16,
  HK_STREAM_THREADS = 128
};

/* dw_last, dw_run, dw_row: a group is `run` outputs of one class of one output row (dw_row: 32 bytes of it); a block is
 * `teams` groups by `lanes` runs of channels. */
typedef struct hk_cu_dw_last {
  int row_groups, groups, steps;     /* groups per output row; in all; outputs that one dw_run thread computes */
  int pairs;                         /* stride 2, 3 taps, dilation 1: the weights are packed as one phase */
  int lanes, teams;
  hk_cu_div div_row_groups;
} hk_cu_dw_last;

/* dw_slide: a block is `lanes` channel pairs by `teams` groups; a group is 4 or 7 columns of strip_rows output rows. An
 * image has row_groups by strips groups. */
typedef struct hk_cu_dw_slide {
  int row_groups, groups, lanes, teams;
  int strips, strip_rows;
  int weights_at;                    /* size of the weight table in channel pairs; the prefetched rows follow it */
  hk_cu_div div_row_groups, div_strips;
} hk_cu_dw_slide;

/* dw_plane: a block is `planes` units of `lanes` threads; a unit is strip_rows output rows of a plane, tile_rows of
 * them per thread. Shared memory of a unit: `slots` rows of slot_length pieces of patch_length bytes, line_bytes in
 * all, then sums_pitch bytes of results. */
typedef struct hk_cu_dw_plane {
  int strips, strip_rows, planes, lanes, row_groups, groups, tile_rows;
  int slots, slot_length, patch_length, patch_pitch;
  int lead;                          /* zero elements before column 0 of a staged row */
  int line_bytes, sums_at, sums_pitch, taps_at;
  hk_cu_div div_patch, div_strips;
} hk_cu_dw_plane;

/* dw_first: a block is planes x rows x lanes threads; each computes TQ outputs of one class. */
typedef struct hk_cu_dw_first {
  int planes, rows, lanes;           /* per block */
  int plane_count;                   /* n * channels * out[0] */
  int row_blocks, lane_blocks;
  int class_run, class_lanes;        /* classes side by side in a block; lanes / class_run */
  /* The input row of slot z is first + z*slot_step; the slot of (row, tap) is row*slot_rows + tap*slot_taps. */
  int slots, slot_rows, slot_taps, slot_step;
  int slot_length;                   /* window indices per slot, times class_run, bank padding included */
  int weight_pitch;                  /* floats per row of taps, a multiple of 4 */
  int weights_at;                    /* floats before the weights in shared memory */
  int chunk_u;                       /* taps staged at a time */
} hk_cu_dw_first;

/* dw_toeplitz, dw_split: a block is `planes` output rows by `lanes` warps of 16*B outputs; lane_blocks tiles cover a
 * row. With places > 0 each warp walks along tiles of its own (stream.cuh). */
typedef struct hk_cu_dw_toeplitz {
  int planes, lanes, plane_count, lane_blocks;
  int chunk_u;                       /* taps staged at a time */
  int line_bytes, plane_pitch;       /* staged x of a row; of one plane of its 16-byte pieces */
  int wide;                          /* y is contiguous and has the type of x: 16-byte stores */
  int y_vector;                      /* rows of y start at multiples of 16 bytes */
  int taps_at;                       /* two copies of the weights of a row, the second shifted by one element */
  int sums_at, sums_pitch;           /* results of a warp, bytes */
  int rows_at;                       /* one toeplitz_row per row, 64 bytes each */
  int places, buffer_bytes;          /* tiles in all, 0: one tile per block; shared memory per warp */
} hk_cu_dw_toeplitz;

/* dw_transposed: tiles of HK_TRANSPOSED_LENGTH outputs per row; `slots` regions of 64 pixels. */
typedef struct hk_cu_dw_transposed {
  int tiles, slots, taps_at;
} hk_cu_dw_transposed;

/* dw_band: a block is tile_rows x tile_length outputs of 16 channels; `slots` input rows of row_groups pieces of 8
 * columns. */
typedef struct hk_cu_dw_band {
  int row_groups, slots, tile_rows, tile_length, row_tiles, tiles, taps_at;
} hk_cu_dw_band;

/* stem: a block is tile_rows output rows of tile_length outputs (16 at a time) by 64 output channels. */
typedef struct hk_cu_dw_stem {
  int patch_pixels, patch_pitch;     /* pixels of a staged row; its bytes */
  int row_pieces;                    /* 16-byte pieces per row of one channel, for a channels-first x (x_vector 2) */
  int slots, slab_blocks, tile_rows, tile_length, row_tiles, tiles, table_at;
  int x_vector, y_vector;            /* 16-byte accesses along the contiguous dimension are legal */
  hk_cu_div div_patch;
} hk_cu_dw_stem;

/* grouped, bundle: a block is `slabs` runs of output channels (8, bundle: 16), one warp each, by `teams` that share the
 * pixels. */
typedef struct hk_cu_dw_grouped {
  int slabs, teams, slab_blocks;
  int in_slabs;                      /* runs of 8 input channels in the patch */
  int tile_rows, tile_length;        /* output rows and window indices per block */
  int row_tiles, tiles;              /* per image; per class */
  int slots, slot_rows, slot_taps, slot_step; /* as in hk_cu_dw_first */
  int depth_slots;                   /* slots per depth tap */
  int patch_length;                  /* window indices per slot and phase */
  int plane_bytes, table_at, stage_at, stage_pitch, stage_bytes; /* shared memory, bytes */
  int channel_step;                  /* elements from one channel of x to the next, over all groups */
  int leaks;                         /* the table's zeros meet other groups' channels: NaN results are recomputed */
  int x_vector, y_vector, c_vector;  /* 16-byte accesses along the channels are legal */
  hk_cu_div div_patch, div_phases;
} hk_cu_dw_grouped;

/* octet: a block is `slabs` runs of 8 channels, `teams` warps each, by tile_rows x tile_length outputs. Shared
 * memory: a ring of `slots` input rows of patch_length pixels, plane_bytes each; two buffers of stage_bytes for two
 * rows of y each; the ring's mbarriers, at table_at. */
typedef struct hk_cu_dw_octet {
  int slabs, teams, slab_blocks, tile_rows, tile_length, row_tiles, tiles;
  int slots, patch_length, plane_bytes, table_at, stage_at, stage_bytes;
  int leaks;                         /* as in hk_cu_dw_grouped */
  int swizzle_shift, swizzle_mask;   /* TMA's swizzle: slab s of pixel i is at s ^ (i >> swizzle_shift &
                                      * swizzle_mask) */
  hk_cu_tmap xmap, ymap;             /* {channels, columns, rows, images} */
} hk_cu_dw_octet;

/* A launch: a head that all kernels and hk_dw_pack read, and the part of the kernel that is launched. */
typedef struct hk_cu_dw {
  hk_cu_geom g;
  hk_cu_epi e;
  const void *x, *f, *packed;
  int plain;                         /* the epilogue is a conversion only */
  int channels;                      /* of y, over all groups */
  int padded, channel_blocks;        /* channels rounded up to 8; blocks that the channels are cut into */
  int phases, classes, class_length; /* class_length: outputs of the longest class, ceil(out[2]/classes) */
  int taps_u;                        /* ceil(win[2]/phases) */
  int taps;                          /* win[0]*win[1]*phases*taps_u */
  hk_cu_div div_out0, div_out1, div_channels, div_classes;
  /* Packing: what hk_dw_pack reads besides. */
  int pack;                          /* HK_DW_PACK_* */
  int taps_bytes;                    /* lines, split, bands: bytes per channel and tap row */
  int table_runs, reach, compact;    /* table: runs of 8 output channels; input runs that one of them reads; 8
                                      * weights per tap (one channel per group) instead of 8x8 */
  int pixel, k_steps;                /* stem: elements of a staged pixel; steps of 16 elements */
  int lead, row_pairs;               /* stem: elements before a filter row's first tap; pairs of elements per filter
                                      * row */
  int turned;                        /* stem, y channels-first: channels are the left operand, and the inner two
                                      * words of a fragment are swapped */
  union {
    hk_cu_dw_last last;
    hk_cu_dw_slide slide;
    hk_cu_dw_plane plane;
    hk_cu_dw_first first;
    hk_cu_dw_toeplitz toeplitz;
    hk_cu_dw_transposed transposed;
    hk_cu_dw_band band;
    hk_cu_dw_stem stem;
    hk_cu_dw_grouped grouped;
    hk_cu_dw_octet octet;
  };
} hk_cu_dw;
#endif
