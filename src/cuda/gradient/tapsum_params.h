/* What a launch of the tapsum kernels gets, on both sides. The sum of an output runs over images c and positions s0,
 * s1, s2 of the window: rows (c, s0, s1) of s2. Output i = ((group*kg + k)*taps + tap)*n + channel, taps being
 * positions of y. Partial sums: [slice][output]. */
#ifndef HK_CUDA_TAPSUM_PARAMS_H
#define HK_CUDA_TAPSUM_PARAMS_H
#include "cuda/params.h"

typedef struct hk_cu_tapsum {
  hk_cu_direct d; /* geometry, epilogue and pointers */
  float *sums;    /* NULL: the only slice goes through the epilogue to y */
  int outputs, slices, taps;
  int rows; /* c * win[0] * win[1] */
  hk_cu_divisor by_n, by_taps, by_k, by_out[3], by_win[3];
  /* lane, line: pieces of work that slices take runs of */
  int units;                        /* lane: segments of rows; line: runs of 4 positions; mma: bands; stem: rows */
  int segment, segments;            /* lane: positions of s2 per unit, units per row */
  hk_cu_divisor by_segments;        /* lane: segments; line: runs of a row; mma: bands of an image */
  int jobs, jobs_block, job_blocks; /* tiles of taps (and k), those of a block, blocks for all */
  int p1_tiles, p2_tiles, k_tiles;
  int lanes, subs, chunks;        /* lane: threads along channels, slices per block, blocks along channels */
  int pairs;                      /* line: channels of x by channels of y, over all groups */
  int strips, x_vector, f_vector; /* walk: strips of `band` rows of x in an image; bytes that are loaded at once */
  int steps;                      /* walk: rows of x */
  hk_cu_divisor by_strips;
  /* mma, stem: shared memory */
  int band;                          /* mma, band: rows of dy per band */
  hk_cu_divisor by_spots, by_rows;   /* band: runs of 8 columns of x in an image; rows of x */
  int spots;                         /* band: runs of 8 columns of x in shared memory */
  int columns, pitch;                /* mma: columns of x in shared memory; stem: bytes between pixels of x */
  int ring;                          /* stem: rows of x that are kept */
  int raw_rows, raw_bytes, raw_left; /* stem: rows of x as they are: how many, their bytes, zeros before them */
  int quads;                         /* stem: positions of s2 rounded up to 16 */
  int x_bytes, f_bytes;              /* of x; of dy, each */
  int width, parity;                 /* mma: channels per group; warps that share a tile */
  int buffers, buffer_bytes;         /* mma: bands in shared memory; bytes of one */
  hk_cu_divisor by_columns;          /* mma: columns; stem: quads */
  /* tile */
  int m_tiles, n_tiles; /* of 64 channels k and of 64 columns (tap, n) */
  int f_rows, x_rows;   /* neighbouring threads load neighbouring channels of f, of x; else positions */
} hk_cu_tapsum;
#endif
