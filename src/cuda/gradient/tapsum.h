/* The kernels for gradients of narrow filters as the planner sees them: whether one supports a problem, its tiling, its
 * predicted time. Pure host code but for build and run. */
#ifndef HK_CUDA_TAPSUM_H
#define HK_CUDA_TAPSUM_H
#include "cuda/cuda.h"
#include "cuda/gradient/tapsum_params.h"

typedef enum hk_cu_tapsum_way {
  HK_TAPSUM_TILE = 1, /* general: 64 channels by 64 columns */
  HK_TAPSUM_LANE = 2, /* FMA, threads along channels */
  HK_TAPSUM_LINE = 3, /* FMA, threads along positions */
  HK_TAPSUM_MMA = 4,  /* tensor cores, groups, channels-last */
  HK_TAPSUM_STEM = 5, /* tensor cores, few channels of x */
  HK_TAPSUM_BAND = 6, /* tensor cores, depthwise, channels-last */
  HK_TAPSUM_WAYS = 6
} hk_cu_tapsum_way;

typedef struct hk_cu_tapsum_tiling {
  const char *image;
  char kernel[48];
  hk_cu_tapsum params; /* execute fills in the pointers */
  int64_t blocks;
  int threads, shared_bytes;
  bool unaligned;       /* given: x and f may lie at any element */
  int x_align, f_align; /* bytes that addresses must be multiples of; 0: any element */
  size_t sums_bytes;    /* of all slices; 0: the only slice is stored at once */
  int fit;              /* blocks that an SM holds */
  double busy, moved;   /* seconds of arithmetic on all SMs, and of memory */
  double seconds;       /* predicted on an H200 */
} hk_cu_tapsum_tiling;

/* slices 0: as many as keep the device busy, by the shape alone; but no more than `room` bytes of partial sums hold. */
typedef struct hk_cu_tapsum_knobs {
  hk_cu_tapsum_way way;
  int64_t slices;
} hk_cu_tapsum_knobs;
bool hk_cu_tapsum_tile(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_tapsum_knobs knobs, size_t room,
                       hk_cu_tapsum_tiling *t, char *why);

/* tapsum_simt.c, tapsum_mma.c: the rest of a tiling whose params hold the geometry. *slices is chosen where it is 0. */
bool hk_cu_tapsum_tile_general(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why);
bool hk_cu_tapsum_tile_lane(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why);
bool hk_cu_tapsum_tile_line(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why);
bool hk_cu_tapsum_tile_mma(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why);
bool hk_cu_tapsum_tile_stem(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why);
/* Whether pixels, images and the first element lie at multiples of `unit` elements. */
bool hk_cu_tapsum_whole(const hk_geom *g, const hk_strides *s, const int64_t *size, int64_t unit);
bool hk_cu_tapsum_tile_band(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why);
const char *hk_cu_tapsum_type(const hk_geom *g); /* "bf16", "f16", "f32" where x and f are both that; else NULL */
/* Slices for so many units, of which each is at least one: about `wanted`, but little in the partial sums. */
int64_t hk_cu_tapsum_slices(const hk_geom *g, int64_t wanted, int64_t units);

typedef struct hk_cu_tapsum_state {
  hk_cu_tapsum_tiling tiling;
  hk_cu_kernel kernel, join;
} hk_cu_tapsum_state;
hk_status hk_cu_tapsum_build(hk_cu_tapsum_state *s);
hk_status hk_cu_tapsum_run(const hk_cu_tapsum_state *s, const hk_cu_call *call, const void *slopes);
#endif
