/* Parameters of the halo kernels (halo.cuh) and their shared memory, defined once for host and device. Read by C and
 * nvcc. */
#ifndef HK_CUDA_HALO_PARAMS_H
#define HK_CUDA_HALO_PARAMS_H
#include "cuda/igemm/planes_params.h"

/* Pixel (h, w) of an image of x or y has position v = h * pitch + w: rows of x with gaps that serve as padding, so a
 * tap is one distance for all pixels. A block is what one tile reads of 64 channels: `rows` pixels from v = m0 -
 * before on, as rows of 128 bytes, swizzled as wgmma reads them; any row may be the first. Gaps and what is outside
 * the image are zeros.
 *
 * Where planes do not start at multiples of 16 bytes, TMA takes every apart-th channel: channels c, c + apart, c + 2
 * * apart.. have planes of equal alignment. */
enum { HK_CU_HALO_WARPS = 3, HK_CU_HALO_SLOTS = 2 };
typedef struct hk_cu_halo {
  hk_cu_planes p;                    /* m, flat, chunks, by_tiles; width is the pitch, height y's; tap[t].start is
                                      * its first row in the block */
  int apart;                         /* 1, 2, 4 or 8 */
  int step;                          /* elements between channels */
  int wide, plane;                   /* pixels of x per row, per image */
  int before, rows, hold;
  int unit;                          /* pixels of y (and of the residual) per access: 4, 2 or 1 */
  int stages, slots;                 /* of the ring of filters; prefetched boxes per transposing warp */
  hk_cu_divisor by_wide;
} hk_cu_halo;

/* [stages][filters of bm channels] [slots of 64 pixels x 64 channels] [8 channels x bn pixels per consumer warp]
 * [two blocks] [the table of the transposing warps] [mbarriers] */
#define HK_HALO_STAGE(bm) ((bm) * 128)
#define HK_HALO_SLOTS(slots) (HK_CU_HALO_WARPS * (slots) * 8192)
#define HK_HALO_BLOCK(hold) ((hold) * 128)
/* A staged row of pixels: an odd number of 16-byte pieces, so that the rows of a matrix hit distinct banks. */
#define HK_HALO_LINE(bn) ((bn) * 2 + 16)
#define HK_HALO_STAGING(bn, nc) (((nc) * 32 * HK_HALO_LINE(bn) + 1023) / 1024 * 1024)
#define HK_HALO_BOXES(rows) (((rows) + 7 + 63) / 64)
#define HK_HALO_TABLE(apart, rows) ((apart) * HK_HALO_BOXES(rows) * 128)
#define HK_HALO_SMEM(bm, bn, nc, stages, slots, apart, rows, hold)                                                     \
  ((stages)*HK_HALO_STAGE(bm) + HK_HALO_SLOTS(slots) + HK_HALO_STAGING(bn, nc) + 2 * HK_HALO_BLOCK(hold) +             \
   HK_HALO_TABLE(apart, rows) + 256)
#endif
