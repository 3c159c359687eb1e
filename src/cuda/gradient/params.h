/* Parameters of the filter-gradient kernels and the sizes of their tiles, defined once for kernel and host. Include
 * after params.h. */
#ifndef HK_CUDA_GRADIENT_PARAMS_H
#define HK_CUDA_GRADIENT_PARAMS_H
#include "cuda/params.h"

/* One launch. In the words of the forward convolution whose filter gradient y is: f is dy, with k channels of pixels
 * (images, then the window of the problem, its last dimension innermost), x is read at every pixel by every tap, and
 * a tap is a position of y. `join` groups of channels are multiplied as one, of which the products of unlike groups are
 * not kept. A row of the product is a channel of dy in its joined group, a column is a channel of x in a chunk of 64
 * of a tap: column = (tap * chunks + chunk) * 64 + channel; in a strip kernel the last dimension of the tap comes after
 * the chunk. */
typedef struct hk_cu_outer {
  hk_cu_tmap xmap, fmap;
  hk_cu_geom g; /* of the caller's problem: its batch is the channels of x */
  hk_cu_epi e;
  const void *x, *f;                   /* for results that are computed again */
  float *sums;                         /* [slice][joined group][row][column]; NULL: the only slice is stored in y */
  int x_load, f_load;                  /* HK_CU_LOAD_* */
  int k_blocks, slices;                /* blocks of pixels; parts of them */
  int groups, join;                    /* joined groups; groups in each */
  int rows, columns;                   /* of a joined group; columns a multiple of 64 */
  int chunks;                          /* of 64 channels of x, per tap */
  int channels;                        /* of x, in a group */
  int x_step, f_step;                  /* channels of a joined group */
  int tiles_m, tiles_n;                /* units of a cluster along rows and columns */
  int again;                           /* a tap may lie in the padding, so that a NaN may be 0 * Inf */
  int pairs;                           /* two adjacent columns may be stored at once in y */
  int quads;                           /* the same of four */
  int teams;                           /* of the adding kernel: threads that share the slices of an output */
  hk_cu_divisor by_out[3];             /* pixels of dy */
  hk_cu_divisor by_m, by_n, by_groups; /* tiles_m, tiles_n, groups */
  hk_cu_divisor by_chunks, by_taps[2]; /* chunks; taps of dimensions 1 and 2 */
  hk_cu_divisor by_kg;                 /* channels of dy in a group */
  int stride[3], dil[3], lo[3];        /* of the forward convolution */
  int strip;                           /* a strip kernel; what follows is for it */
  int wide, lines, pieces;             /* a block of pixels is `lines` pieces of lines of dy, of `wide` pixels each */
  int x_wide, x_line;                  /* pixels of x under one with its taps; bytes from piece to piece */
  int stages, stage_bytes;
  hk_cu_divisor by_pieces; /* of a line */
} hk_cu_outer;

/* Sizes of a tile: 64*mi*wm rows by bn*wn columns, in blocks of px pixels; boxes of px pixels by 64 channels. */
#define HK_OUTER_BOX(px) ((px)*128)
#define HK_OUTER_BOXES(mi, wm, wn, bn) ((mi) * (wm) + (wn) * (bn) / 64)
#define HK_OUTER_RING(mi, wm, wn, bn, px, stages) ((stages)*HK_OUTER_BOX(px) * HK_OUTER_BOXES(mi, wm, wn, bn))
#define HK_OUTER_SMEM(mi, wm, wn, bn, px, stages) (HK_OUTER_RING(mi, wm, wn, bn, px, stages) + 256)
#define HK_OUTER_SMEM_MAX 232448
/* Pixels of a block of a strip kernel, and the most stages. */
#define HK_OUTER_STRIP_PX 64
#define HK_OUTER_STRIP_STAGES 8
/* Threads of a block of the adding kernel. */
#define HK_OUTER_ADDERS 256
#endif
