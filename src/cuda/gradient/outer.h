/* The filter-gradient kernels as the planner sees them: how a problem looks to them, which tiles there are, the
 * predicted time, and a plan's device state. All but hk_cu_outer_build and run is pure host code. */
#ifndef HK_CUDA_GRADIENT_OUTER_H
#define HK_CUDA_GRADIENT_OUTER_H
#include "cuda/cuda.h"
#include "cuda/gradient/params.h"

/* A problem as the forward convolution whose filter gradient its y is. */
typedef struct hk_cu_outer_shape {
  hk_geom x, f;         /* that convolution, over x; a 1x1 convolution over dy, which is the problem's f */
  int64_t groups, join; /* joined groups; groups in each */
  int64_t rows, chunks, columns, pixels; /* of a joined group; pixels of all images */
  bool plain;                            /* no activation: a single slice needs no second kernel */
  bool leaves;                           /* some tap lies in the padding */
  double bytes;                          /* that must move */
  double inside;                         /* share of the window's places, over all pixels, that are in x */
  bool bare;                             /* whole runs of channels are stored in y as they are */
} hk_cu_outer_shape;
bool hk_cu_outer_shape_make(const hk_geom *g, const hk_epi *e, hk_cu_outer_shape *s, char *why);

/* rows.c: the tiles of this build */
typedef struct hk_cu_outer_row {
  const char *name, *image;
  hk_type type;
  int mi, wm, wn, bn, px, stages, cm, cn, strip;
} hk_cu_outer_row;
extern const hk_cu_outer_row hk_cu_outer_rows[];
extern const int hk_cu_outer_row_count;
static inline int hk_cu_outer_row_m(const hk_cu_outer_row *r) { return 64 * r->mi * r->wm; }
static inline int hk_cu_outer_row_n(const hk_cu_outer_row *r) { return r->bn * r->wn; }
static inline int hk_cu_outer_row_cluster(const hk_cu_outer_row *r) { return r->cm * r->cn; }
/* How a strip kernel cuts the lines of dy. */
typedef struct hk_cu_outer_strip {
  int64_t wide, lines, pieces; /* pixels of a piece; pieces of a block, of a line */
  int64_t x_wide, x_line;      /* pixels of x under a piece and its taps; bytes from piece to piece */
  int64_t stages, stage_bytes;
} hk_cu_outer_strip;
hk_cu_outer_strip hk_cu_outer_strip_make(const hk_cu_outer_row *r, const hk_cu_outer_shape *s);
int hk_cu_outer_row_shared(const hk_cu_outer_row *r, const hk_cu_outer_shape *s);
/* Blocks of pixels. */
int64_t hk_cu_outer_blocks(const hk_cu_outer_row *r, const hk_cu_outer_shape *s);
/* Units of a cluster in one slice. */
int64_t hk_cu_outer_units(const hk_cu_outer_row *r, const hk_cu_outer_shape *s);
bool hk_cu_outer_row_takes(const hk_cu_outer_row *r, const hk_cu_outer_shape *s, char *why);
/* Bytes of the slices' sums; 0 where the only slice is stored in y. */
size_t hk_cu_outer_bytes(const hk_cu_outer_shape *s, int64_t slices);
double hk_cu_outer_seconds(const hk_cu_outer_row *r, const hk_cu_outer_shape *s, int64_t slices, int processors);
/* The fastest number of slices whose sums take at most `most` bytes, by the shape alone; 0: even one takes more. */
int64_t hk_cu_outer_slices(const hk_cu_outer_row *r, const hk_cu_outer_shape *s, size_t most);

/* outer.c */
typedef struct hk_cu_outer_state {
  const hk_cu_outer_row *row;
  hk_cu_kernel kernel, sum;
  hk_cu_outer params;
  int64_t blocks, sum_blocks;
  int shared;
  bool added; /* the slices' sums go to the workspace and are added */
} hk_cu_outer_state;
hk_status hk_cu_outer_build(hk_cu_outer_state *s, const hk_cu_outer_row *r, const hk_geom *g, const hk_epi *e,
                            int64_t slices);
/* call->workspace: hk_cu_outer_bytes. */
hk_status hk_cu_outer_run(const hk_cu_outer_state *s, const hk_cu_call *call, const void *slopes);
#endif
