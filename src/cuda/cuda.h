/* What the planner sees of the CUDA backend: which device is present, whether a kernel supports a problem, and the
 * device state of plans. Everything is pure host code; nothing needs a GPU before a *_build. */
#ifndef HK_CUDA_CUDA_H
#define HK_CUDA_CUDA_H
#include "core/core.h"
#include "cuda/driver/driver.h"
#include "cuda/params.h"
#include "cuda/igemm/tile.h"

#define HK_CU_REASON 160 /* bytes of a refusal */

/* module.c */
/* Why there is no device code (libhankel-cuda.so.0 is not installed, or of another version); NULL where there is. */
const char *hk_cu_missing(void);
/* Whether the device code runs on this device; else why not. */
bool hk_cu_has_code(const hk_cu_device *device, char *why);
hk_status hk_cu_kernel_prepare(hk_cu_kernel kernel, int shared_bytes);
int hk_cu_max_clusters(hk_cu_kernel kernel, int threads, int cluster, int shared_bytes);

/* nvrtc.c: compiles one kernel row (NULL: the pass over staged sums) with the caller's functions by NVRTC, or takes
 * it from the cache of earlier compilations. The library belongs to the plan: unload it with the plan. */
hk_status hk_cu_user_kernel(const char *row_name, const hk_epilogue *e, int shared_bytes, hk_cu_lib *lib,
                            hk_cu_kernel *kernel);
/* Returns the text that is compiled, NULL when out of memory. The caller frees it with hk_free. */
char *hk_cu_user_source(const char *row_name, const hk_epilogue *e);

/* geom.c: the problem and the epilogue as device structs; execute fills in the pointers. */
void hk_cu_geom_make(const hk_geom *g, const hk_epi *e, hk_cu_geom *to);
void hk_cu_epi_make(const hk_epi *e, hk_cu_epi *to);
/* True when pixel m = (n, p..) of a tensor is at offset m * s->at[2]. */
bool hk_cu_is_linear(const hk_geom *g, const hk_strides *s);
/* True when dimension d is trivial: its only index is 0, and it is not padded. */
bool hk_cu_is_flat(const hk_geom *g, int d);
hk_cu_divisor hk_cu_divisor_make(int64_t d); /* 0 < d < 2^31 */

static inline bool hk_cu_misaligned(const void *p) { return (uintptr_t)p % 16 != 0; }
/* Fails with HK_INVALID: field `name` of hk_args is not 16-byte aligned. */
hk_status hk_cu_unaligned(const char *name, const void *p);
/* Predicted seconds of a launch: the longer of `busy` (arithmetic) and `moved` (bytes) and a twentieth of the shorter,
 * which breaks ties, plus 3 us to start. */
static inline double hk_cu_seconds_of(double busy, double moved) {
  return 3e-6 + (busy > moved ? busy + 0.05 * moved : moved + 0.05 * busy);
}

/* time.c: measures the mean seconds of `repeats` calls of body(context, 0..repeats-1, stream), which only launch.
 * The launches are captured into a graph and replayed, so launch overhead on the host is not measured. */
hk_status hk_cu_time(hk_status (*body)(void *context, int32_t i, void *stream), void *context, int32_t repeats,
                     double *seconds);

/* memory.c: device memory of a plan; plans with equal weights share it. */
typedef struct hk_cu_buffer {
  void *data;
  size_t bytes;
} hk_cu_buffer;
/* from: host or device; NULL: uninitialised */
hk_status hk_cu_buffer_make(hk_cu_buffer *b, const void *from, size_t bytes);
void hk_cu_buffer_free(hk_cu_buffer *b);
hk_status hk_cu_copy(void *to, const void *from, size_t bytes); /* either side host or device; synchronous */
/* Weights of a plan on the device. f: packed or raw; element f_shift is f[0]. */
typedef struct hk_cu_weights {
  hk_cu_buffer f, scale, bias, slopes, f_zero;
  int64_t f_shift;
  hk_cu_buffer raw; /* as they came, for a rewrite that packs others; element raw_shift is f[0] */
  int64_t raw_shift;
} hk_cu_weights;
/* Copies the extent of raw filters (host or device) to the device. */
hk_status hk_cu_filters_make(hk_cu_buffer *b, const hk_geom *g, const void *f, int64_t *shift);
void hk_cu_weights_free(void *weights);

/* map.c: tensor-map parameters of a geometry, a pure function. The innermost dimension comes first. */
typedef struct hk_cu_map {
  int load, rank;              /* HK_CU_LOAD_*; dimensions of the map */
  int type, bytes;             /* CUtensorMapDataType; bytes per element */
  uint64_t dims[5], strides[4]; /* in elements; in bytes */
  int lower[3], upper[3];
  unsigned steps[5], channels;
} hk_cu_map;
enum { HK_CU_MAP_F32 = 7 }; /* CUtensorMapDataType of unrounded f32 */
bool hk_cu_map_make(const hk_geom *g, hk_cu_map *map, char *why);
/* half: boxes hold half as many channels. */
hk_status hk_cu_map_encode(const hk_cu_map *map, int pixels, bool half, hk_cu_tmap *to);
/* Encodes the map of y or of the residual for TMA stores of tiles of bn channels, `rows` pixels per copy
 * (finish_slab.cuh): {channels of a group, groups, pixels}. */
hk_status hk_cu_map_encode_rows(const hk_geom *g, const hk_strides *s, int bn, int rows, hk_cu_tmap *to);

/* The same for a y of any strides, without groups: {channels, out[2], out[1], out[0], n} in im2col mode. */
hk_status hk_cu_map_encode_pixels(const hk_geom *g, const hk_strides *s, int bn, int rows, hk_cu_tmap *to);

/* rows.c: the wgmma kernels of this build */
typedef struct hk_cu_row {
  const char *name, *image;
  hk_type type;
  int mi, nc, bn, stages, chunk, cm, cn, split;
  int parts;                   /* 2: f32 as three tf32 products */
  int wgs;                     /* consumers that share a tile; 1 of nc: ping-pong */
} hk_cu_row;
extern const hk_cu_row hk_cu_rows[];
extern const int hk_cu_row_count;
static inline int hk_cu_row_bm(const hk_cu_row *r) { return 64 * r->mi * r->wgs; }
static inline int hk_cu_row_cluster(const hk_cu_row *r) { return r->cm * r->cn * r->split; }
int hk_cu_row_shared(const hk_cu_row *r);
bool hk_cu_row_strips(const hk_cu_row *r); /* finish_strip.cuh fits into shared memory */
int hk_cu_row_slot(const hk_cu_row *r); /* rows of y per TMA store */
/* Whether a row supports the geometry; predicted seconds on a device of `processors` SMs. */
bool hk_cu_row_takes(const hk_cu_row *r, const hk_geom *g, const hk_epi *e, char *why);
double hk_cu_row_seconds(const hk_cu_row *r, const hk_geom *g, const hk_epi *e, int processors);

/* igemm.c */
typedef struct hk_cu_call {
  const void *x, *f, *c, *scale, *bias;
  void *y, *workspace, *stream, *user;
} hk_cu_call;
typedef struct hk_cu_igemm_state {
  const hk_cu_row *row;
  hk_cu_kernel kernel, pack;
  hk_cu_lib lib;              /* of a kernel with user functions */
  hk_cu_launch params;
  hk_cu_images packing;
  int64_t blocks;
} hk_cu_igemm_state;
size_t hk_cu_igemm_filter_bytes(const hk_cu_row *r, const hk_geom *g);
/* How the filters differ from the geometry that the kernel sees: its channels may be padded, contain taps, or join
 * several groups. */
typedef struct hk_cu_filters {
  int64_t groups;             /* of the filters, a multiple of the kernel's */
  int64_t channels;           /* of the kernel's group that exist in the filters */
  int64_t fold[3], fold_run;  /* taps folded into channels (0: none); channels per folded tap, 0: taps are innermost */
} hk_cu_filters;
/* Fills the packing of filters for tiles of row->bn filters, without half blocks. */
void hk_cu_pack_make(hk_cu_images *to, const hk_cu_row *row, const hk_geom *g, const hk_epi *e,
                     const hk_cu_filters *filters);
/* Finds the kernel that packs filters so. */
hk_status hk_cu_pack_find(const hk_cu_images *images, hk_cu_kernel *kernel);
/* How a tile becomes y (finish.cuh, finish_wide.cuh). */
typedef enum hk_cu_finish {
  HK_FINISH_ANY = 0,        /* element by element: any y */
  HK_FINISH_SPLIT = 1,      /* a split reduction: runs of 8 channels */
  HK_FINISH_SLAB = 2,       /* TMA stores */
  HK_FINISH_TRANSPOSED = 3, /* contiguous pixels in aligned runs */
  HK_FINISH_STRIP = 4,      /* all channels of a run of pixels without gaps */
  HK_FINISH_SLIM = 5,       /* contiguous channels, not aligned */
  HK_FINISH_TALL = 6        /* other contiguous pixels */
} hk_cu_finish;
/* The finish that y, the epilogue and the row allow; and the pixels from tile to tile with it, which on a device of
 * `processors` SMs fill the last wave best. unaligned: y and c may start at any element address. */
hk_cu_finish hk_cu_igemm_finish(const hk_cu_row *row, const hk_geom *g, const hk_epi *e, bool unaligned);
int hk_cu_igemm_step(const hk_cu_row *row, const hk_geom *g, hk_cu_finish finish, int processors);
/* step: as hk_cu_igemm_step gives it, or with HK_FINISH_STRIP another multiple of 8 up to bm. */
typedef struct hk_cu_igemm_way {
  bool unaligned;
  int step;
  int chain; /* HK_CU_CHAIN_* */
} hk_cu_igemm_way;
hk_status hk_cu_igemm_build(hk_cu_igemm_state *s, const hk_cu_row *row, const hk_geom *g, const hk_epi *e,
                            const hk_cu_filters *filters, hk_cu_igemm_way way);
void hk_cu_igemm_free(hk_cu_igemm_state *s);
/* f: raw filters on the device, offset added; to: hk_cu_igemm_filter_bytes bytes. */
hk_status hk_cu_igemm_pack(const hk_cu_igemm_state *s, const void *f, void *to, void *stream);
/* call->f points to packed filters. */
hk_status hk_cu_igemm_run(const hk_cu_igemm_state *s, const hk_cu_call *call, const void *slopes);

/* join.c: treats several groups as one with zero weights between them. hk_cu_join_count says how many, 1 where
 * joining does not pay or NaN results could not be recomputed. */
int64_t hk_cu_join_count(const hk_geom *g, const hk_epi *e, bool unaligned);
hk_geom hk_cu_join(const hk_geom *g, int64_t count);

/* gather.c: copies x window by window where windows do not overlap, for few channels or strides above TMA's limit of
 * 8 */
typedef struct hk_cu_gather_state {
  hk_cu_kernel kernel;
  hk_cu_gather params;
} hk_cu_gather_state;
bool hk_cu_gather_takes(const hk_geom *g);
/* The geometry that the kernel then sees, and the filters that match it. */
hk_geom hk_cu_gather_geom(const hk_geom *g);
hk_cu_filters hk_cu_gather_filters(const hk_geom *g);
hk_status hk_cu_gather_build(hk_cu_gather_state *s, const hk_geom *g);
hk_status hk_cu_gather_run(const hk_cu_gather_state *s, const void *x, void *to, void *stream);

/* transpose.c: copies x into the workspace in a layout that TMA can read */
typedef struct hk_cu_transpose_state {
  hk_cu_kernel kernel, wide;
  int wide_pixels;             /* pixels per access of `wide`, which needs x aligned to as many; 0: `wide` is not
                                * used */
  bool rows;                   /* `kernel` is hk_pad_rows: one row of pixels per block */
  hk_cu_transpose params;
  int64_t blocks;
} hk_cu_transpose_state;
hk_cu_filters hk_cu_transpose_filters(const hk_geom *g);
bool hk_cu_transpose_takes(const hk_geom *g, hk_geom *to, size_t *bytes, char *why);
hk_status hk_cu_transpose_build(hk_cu_transpose_state *s, const hk_geom *g);
hk_status hk_cu_transpose_run(const hk_cu_transpose_state *s, const void *x, void *to, void *stream);

/* state.c: concatenates the state and x of a stateful 1D plan in the workspace */
typedef struct hk_cu_state_pass {
  hk_cu_kernel kernel;
  hk_cu_state params;
} hk_cu_state_pass;
/* g: the caller's geometry; to: strides of the concatenated x. */
hk_status hk_cu_state_build(hk_cu_state_pass *s, const hk_geom *g, const hk_strides *to);
hk_status hk_cu_state_run(const hk_cu_state_pass *s, const void *x, const void *state_in, void *to, void *state_out,
                          void *stream);

/* direct.c */
typedef struct hk_cu_direct_state {
  hk_cu_lib lib;               /* of a kernel compiled with the caller's functions, or NULL */
  hk_cu_kernel kernel;
  hk_cu_direct params;
  int64_t blocks;
} hk_cu_direct_state;
/* Fills everything but the kernel. */
void hk_cu_direct_params(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e);
hk_status hk_cu_direct_build(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e);
/* Applies the rest of the epilogue to scaled and biased sums in call->x with these strides. */
hk_status hk_cu_staged_build(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e, const hk_strides *sums);
/* Recomputes every NaN of y after a kernel multiplied zeros by an Inf. Needs a dense, aligned y and no user
 * functions. */
bool hk_cu_recompute_takes(const hk_geom *g, const hk_epi *e, bool unaligned);
hk_status hk_cu_recompute_build(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e);
/* fill.c: stores the epilogue of 0 to all of y, which no product reaches. next: the launch before is of another fill of
 * this call, and this one may run beside it. */
typedef struct hk_cu_fill_state {
  hk_cu_direct_state direct;
  bool runs; /* by hk_fill, else by the general kernel */
} hk_cu_fill_state;
hk_status hk_cu_fill_build(hk_cu_fill_state *s, const hk_geom *g, const hk_epi *e, bool unaligned);
hk_status hk_cu_fill_run(const hk_cu_fill_state *s, const hk_cu_call *call, const void *slopes, bool next);
void hk_cu_direct_free(hk_cu_direct_state *s);
hk_status hk_cu_direct_run(const hk_cu_direct_state *s, const hk_cu_call *call, const void *slopes,
                           const int32_t *f_zeros);
#endif
