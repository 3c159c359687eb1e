/* What the planes and the halo kernels share on the host: rows of the kernel tables, a plan's device state, refusals,
 * tensor maps and estimates. Both read a channels-first x in place: the rows of a tile are output channels, its columns
 * output pixels. All but build and bind is pure host code. */
#ifndef HK_CUDA_CHANNELS_FIRST_H
#define HK_CUDA_CHANNELS_FIRST_H
#include "cuda/cuda.h"
#include "cuda/igemm/halo_params.h"
#include "cuda/igemm/planes_params.h"

typedef struct hk_cu_planes_row {
  const char *name, *image;
  hk_type type;
  int bm, bn, stages;          /* channels and pixels of a tile; k blocks in the ring (halo: 0, as many as fit) */
  int mi, nc, wgs;             /* see planes.inc */
} hk_cu_planes_row;

typedef struct hk_cu_first_state {
  const hk_cu_planes_row *row;
  hk_cu_kernel kernel;
  hk_cu_halo params;           /* the planes kernels take params.p only */
  hk_cu_igemm_state filters;   /* only its packing is used */
  int64_t blocks;
} hk_cu_first_state;

/* Checks types, epilogue, batch groups, and input dilation and stride of dimensions d0 to 2. */
bool hk_cu_first_takes(const hk_geom *g, const hk_epi *e, int d0, char *why);
/* The row of the igemm kernels with the same filter packing as r. */
hk_cu_row hk_cu_first_filter_row(const hk_cu_planes_row *r);
int64_t hk_cu_first_tiles_m(const hk_cu_planes_row *r, const hk_geom *g, const hk_cu_planes *p);
int64_t hk_cu_first_tiles_n(const hk_cu_planes_row *r, const hk_geom *g);
/* Clocks of a tile in one of `waves` waves: ping-pong consumers hide all but the last epilogue. */
double hk_cu_first_tile_clocks(const hk_cu_planes_row *r, double waves, double work, double finish);

/* {pixels, channels, groups, images} of x or y, in boxes of 64 pixels x box channels. */
typedef struct hk_cu_first_box {
  int64_t pixels, channels, step; /* pixels of a plane; channels of a group; elements between channels */
  int box;
} hk_cu_first_box;
hk_status hk_cu_first_map(const hk_geom *g, const hk_strides *s, hk_cu_first_box b, hk_cu_tmap *to);

/* Finds the kernels and fills what params.p and filters need beyond hk_cu_planes_make or hk_cu_halo_make; row is
 * set. */
hk_status hk_cu_first_build(hk_cu_first_state *s, const hk_geom *g, const hk_epi *e, int shared_bytes);
/* Puts the pointers of one call into a copy of the parameters. */
hk_status hk_cu_first_bind(hk_cu_igemm *m, const hk_cu_call *call, const void *slopes);
#endif
