/* Parameters of the planes kernels (planes.cuh) and the sizes of their tiles in shared memory, defined once for host
 * and device. Read by C and nvcc. */
#ifndef HK_CUDA_PLANES_PARAMS_H
#define HK_CUDA_PLANES_PARAMS_H
#include "cuda/igemm/tile.h"
#include "cuda/params.h"

/* Output pixel (d, h, w) of an image has position q = (d * height + h) * width + w, at x's pitch, so a tap is one
 * distance for all pixels. Columns past y's last are computed and not stored.
 *
 * TMA boxes start at multiples of 8 pixels only. So taps are processed in phases by their distance modulo 8, `lag`:
 * in a phase, column i of the tile is output pixel q0 - lag + i, and between phases the sums shift left by the
 * difference of the lags. */
enum { HK_CU_PHASES = 9, HK_CU_PLANES_TAPS = 128 };
typedef struct hk_cu_planes_tap {
  int start;                         /* start of its box relative to q0: its distance minus its lag */
  int across, down;                  /* distance along the last dimension and along the one before */
  int index;                         /* its index in the packed filters */
} hk_cu_planes_tap;
typedef struct hk_cu_planes {
  hk_cu_igemm m;                     /* xmap {pixels, channels of a group, groups, images}, ymap the same of y;
                                      * tiles_m counts tiles of pixels */
  int flat;                          /* position past an image's last output */
  int width, height;
  int wraps;                         /* HK_CU_WRAP_* */
  int whole;                         /* y (and the residual) have x's pitch and 16-byte planes: y is stored by TMA */
  int phases;
  int lag[HK_CU_PHASES], taps[HK_CU_PHASES]; /* lags decrease to lag[phases] = 0; taps per phase */
  int chunks;                        /* runs of 64 channels */
  int lost;                          /* pixels per tile lost to shifting: 8, or 0 when all lags are 0 */
  hk_cu_divisor by_tiles, by_width, by_height; /* by_tiles: tiles of pixels per image */
  hk_cu_planes_tap tap[HK_CU_PLANES_TAPS]; /* ordered by phase */
} hk_cu_planes;

/* Taps wrap around the ends of rows into the neighbouring row, or around the ends of planes into the neighbouring
 * plane. */
enum { HK_CU_WRAP_COLUMNS = 1, HK_CU_WRAP_ROWS = 2 };

#ifdef __CUDACC__
#define HK_CU_BOTH static __device__ __forceinline__
#else
#define HK_CU_BOTH static inline
#endif

/* Columns [*from, *to) of row h of a plane from which a tap of distance (down, across) leaves the row or the plane. */
HK_CU_BOTH void hk_cu_planes_wrapped(const hk_cu_planes *p, int h, int across, int down, int *from, int *to) {
  const int width = p->width, lost = (p->wraps & HK_CU_WRAP_ROWS) && (h + down < 0 || h + down >= (int)p->m.g.in[1]);
  *from = !lost && across > 0 && across < width ? width - across : 0;
  *to = lost || across > 0 || -across >= width ? width : -across;
}

/* A stage: the filters of bm channels, then boxes of 64 pixels x 64 channels. After the ring: two slots of 16 x 128
 * bytes per consumer warp, then the mbarriers full, zeroed and empty. */
#define HK_PLANES_BOXES(bn) (((bn) + 63) / 64)
#define HK_PLANES_STAGE(bm, bn) ((bm) * 128 + HK_PLANES_BOXES(bn) * 8192)
#define HK_PLANES_BARS(bm, nc, bn, stages) ((stages) * HK_PLANES_STAGE(bm, bn) + (nc) * 16384)
#define HK_PLANES_SMEM(bm, nc, bn, stages) (HK_PLANES_BARS(bm, nc, bn, stages) + 256)
#endif
