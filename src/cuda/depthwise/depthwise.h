/* The depthwise, grouped and stem kernels as the planner sees them: whether one supports a problem, its tiling, its
 * predicted time. Pure host code. */
#ifndef HK_CUDA_DW_H
#define HK_CUDA_DW_H
#include "cuda/cuda.h"
#include "cuda/depthwise/params.h"

#define HK_DW_REASON 160

typedef enum hk_cu_dw_kind {
  HK_DW_LAST = 0,     /* FMA, channels-last */
  HK_DW_FIRST = 1,    /* FMA, channels-first */
  HK_DW_TOEPLITZ = 2, /* tensor cores, rows with long filters; f32 where rules.split */
  HK_DW_GROUPED = 3,  /* tensor cores, channels-last, any filter; groups */
  HK_DW_STEM = 4,     /* tensor cores, one group of few input channels */
  HK_DW_SLIDE = 5,    /* FMA, channels-last, 3x3, 5x5, 7x7 */
  HK_DW_PLANE = 6,    /* FMA, channels-first, 3x3, 5x5, 7x7 */
  HK_DW_ROW = 7,      /* FMA, contiguous rows, short filters */
  HK_DW_BAND = 8,     /* tensor cores, channels-last, depthwise 5x5, 7x7 */
  HK_DW_BUNDLE = 9,   /* tensor cores, channels-last, 3x3, groups of a multiple of 16 channels */
  HK_DW_OCTET = 10,   /* tensor cores and TMA, channels-last, 3x3, groups of 1, 2, 4, 8 channels */
  HK_DW_KINDS = 11
} hk_cu_dw_kind;

/* Knobs, 0 = chosen here.
 *   last      run: outputs per thread, 4, 8, 16 (12, 24, 48: dw_run)
 *   first     run: outputs per thread, 8 or 16
 *   toeplitz  run: B = 8, 32, 64 (f32: 32)
 *   slide     rows: of a strip
 *   plane     rows: per thread
 *   band      run: windows side by side, 4 or 8; rows: per block
 *   bundle    slabs: runs of 16 channels per block; run: columns
 *   octet     slabs: runs of 8 channels per block; run: columns; rows: per block, even
 *   grouped   slabs; run: window indices per block; rows (walk)
 *   stem      rows
 * way: which of several kernels, 0 where there is one
 *   last      HK_LAST_*
 *   toeplitz  HK_TOEPLITZ_*
 *   grouped   HK_GROUPED_* */
enum {
  HK_LAST_SINGLE = 1, /* a channel per thread */
  HK_LAST_PAIRS = 2,
  HK_LAST_ODD = 3,     /* pairs at any element */
  HK_LAST_FEW = 4,     /* pairs, 3 or 4 taps per row */
  HK_LAST_VECTORS = 5, /* 16 bytes of channels per thread */
  HK_LAST_RUN = 6      /* tiles_run.c: run = 12, 24 or 48 must be given */
};
enum {
  HK_TOEPLITZ_TILES = 1,      /* a block per tile */
  HK_TOEPLITZ_STREAM = 2,     /* warps walk along tiles */
  HK_TOEPLITZ_TRANSPOSED = 3, /* channels-last rows */
  HK_TOEPLITZ_SPLIT = 4       /* f32 as two tf32 parts */
};
enum {
  HK_GROUPED_WALK = 1,
  HK_GROUPED_ROLL = 2 /* 3x3, 5x5, 7x7: fragments of an input row serve all output rows */
};
enum { HK_DW_WAYS = 6 }; /* most of a kernel */
typedef struct hk_cu_dw_knobs {
  int run, slabs, rows, way;
} hk_cu_dw_knobs;

typedef struct hk_cu_dw_tiling {
  const char *image, *kernel;
  hk_cu_dw params;          /* execute fills in the pointers, hk_cu_dw_build the geometry */
  hk_cu_dw_knobs knobs;        /* as chosen */
  int64_t blocks;
  int threads, shared_bytes;
  size_t packed_bytes;      /* weights packed as params.pack, see params.h */
  bool aligned;             /* x, y and c must be 16-byte aligned */
  bool mapped;              /* x and y are accessed through tensor maps */
  double seconds;           /* predicted on an H200 */
} hk_cu_dw_tiling;

/* Tilings of one kernel each; false with the reason in why. */
/* What the plan's options allow: x, y and c at any element address; f32 as the sum of two tf32 parts; and what they
 * demand: the same bits for an image in any batch. */
typedef struct hk_cu_dw_rules { bool unaligned, split, batch_invariant; } hk_cu_dw_rules;
bool hk_cu_dw_tile(hk_cu_dw_kind kind, const hk_geom *g, const hk_epi *e, hk_cu_dw_rules rules, hk_cu_dw_knobs knobs,
                   hk_cu_dw_tiling *t, char *why);
bool hk_cu_dw_tile_split(const hk_geom *g, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t, char *why);
bool hk_cu_dw_tile_transposed(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_tiling *t, char *why);
bool hk_cu_dw_tile_toeplitz(const hk_geom *g, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t, char *why);
bool hk_cu_dw_tile_mma(const hk_geom *g, const hk_epi *e, bool unaligned, bool roll, hk_cu_dw_knobs knobs,
                       hk_cu_dw_tiling *t, char *why);

bool hk_cu_dw_tile_stem(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                        char *why);

bool hk_cu_dw_tile_slide(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                         char *why);
bool hk_cu_dw_tile_plane(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                         char *why);
bool hk_cu_dw_tile_band(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                        char *why);
bool hk_cu_dw_tile_bundle(const hk_geom *g, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t, char *why);
bool hk_cu_dw_tile_octet(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                         char *why);
bool hk_cu_dw_tile_run(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                       char *why);
bool hk_cu_dw_tile_row(const hk_geom *g, const hk_epi *e, hk_cu_dw_tiling *t, char *why);
/* The channels of all groups, `per` in each, are contiguous; pixels start at multiples of 8 elements; offsets inside
 * one image fit into 32 bits. */
bool hk_cu_dw_is_last(const hk_geom *g, const hk_strides *s, int64_t per);
bool hk_cu_dw_is_whole(const hk_strides *s);
bool hk_cu_dw_is_small(const hk_geom *g, const hk_strides *s, const int64_t *size);
/* One channel per group: channels are contiguous, and runs of v of them start at multiples of v. */
bool hk_cu_dw_pairs(const hk_strides *s, int v);

/* depthwise.c: finds the kernels and fills in the device parameters of s->tiling; packs raw filters (on the device)
 * into tiling.packed_bytes; launches one call, whose f is the raw filters. */
typedef struct hk_cu_dw_state {
  hk_cu_dw_tiling tiling;
  bool pdl;             /* launched with programmatic dependent launch */
  hk_cu_kernel kernel, pack;
} hk_cu_dw_state;
hk_status hk_cu_dw_build(hk_cu_dw_state *s, const hk_geom *g, const hk_epi *e);
hk_status hk_cu_dw_pack(const hk_cu_dw_state *s, const void *f, void *to, void *stream);
hk_status hk_cu_dw_run(const hk_cu_dw_state *s, const hk_cu_call *call, const void *packed, const void *slopes);

hk_cu_div hk_cu_dw_divisor(int64_t d);
/* Predicted seconds on an H200 of the given bytes and arithmetic clocks (summed over SMs), see bench/results. */
double hk_cu_dw_seconds(const hk_geom *g, double clocks, double bytes_factor);
#endif
