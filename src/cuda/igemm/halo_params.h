/* What the host hands to the halo kernels (halo.cuh), and their shared memory: one fact for both sides. Read by C and by nvcc. */
#ifndef HK_CUDA_HALO_PARAMS_H
#define HK_CUDA_HALO_PARAMS_H
#include "cuda/igemm/planes_params.h"

/* Pixel (h, w) of an image, x's or y's, counts as v = h * pitch + w: rows of x with the gap between them that padding needs, so that a tap is one
 * distance for all pixels. A block is what one tile reads of 64 channels: `rows` pixels from v = m0 - before on, as rows of 128 bytes,
 * swizzled as wgmma reads them; it takes any row as the first. Between images and in gaps the block has zeros.
 *
 * Channels whose planes do not start at multiples of 16 bytes are taken `apart`: channel c with c + apart, c + 2 * apart.., whose planes do so by a shift. */
enum { HK_CU_HALO_WARPS = 3, HK_CU_HALO_SLOTS = 2 };
typedef struct hk_cu_halo {
  hk_cu_planes p;                    /* m, flat, chunks, by_tiles; width and height are the pitch and y's; tap[t].start is its first row in the block */
  int apart;                         /* 1, 2, 4 or 8 */
  int step;                          /* elements from channel to channel */
  int wide, plane;                   /* x's pixels in a row, in an image */
  int before, rows, hold;
  int unit;                          /* pixels of y (and of the residual) that are moved at a time: 4, 2 or 1 */
  int stages, slots;                 /* of the ring of filters; of pixels on their way into blocks, a warp */
  hk_cu_divisor by_wide;
} hk_cu_halo;

/* [stages][filters of bm channels] [slots of 64 pixels x 64 channels] [8 channels x bn pixels a consumer warp] [two blocks] [the movers' table] [barriers] */
#define HK_HALO_STAGE(bm) ((bm) * 128)
#define HK_HALO_SLOTS(slots) (HK_CU_HALO_WARPS * (slots) * 8192)
#define HK_HALO_BLOCK(hold) ((hold) * 128)
/* A row of pixels on its way out: an odd number of 16-byte pieces, so that a matrix's rows hit distinct banks. */
#define HK_HALO_LINE(bn) ((bn) * 2 + 16)
#define HK_HALO_STAGING(bn, nc) (((nc) * 32 * HK_HALO_LINE(bn) + 1023) / 1024 * 1024)
#define HK_HALO_BOXES(rows) (((rows) + 7 + 63) / 64)
#define HK_HALO_TABLE(apart, rows) ((apart) * HK_HALO_BOXES(rows) * 128)
#define HK_HALO_SMEM(bm, bn, nc, stages, slots, apart, rows, hold)                                                     \
  ((stages)*HK_HALO_STAGE(bm) + HK_HALO_SLOTS(slots) + HK_HALO_STAGING(bn, nc) + 2 * HK_HALO_BLOCK(hold) +             \
   HK_HALO_TABLE(apart, rows) + 256)
#endif
