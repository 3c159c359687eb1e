/* The planes kernels (planes.cuh) as the planner sees them: rows, what they take, how long they should take, and a plan's device state. All but
 * hk_cu_planes_build and run is pure host code. */
#ifndef HK_CUDA_PLANES_H
#define HK_CUDA_PLANES_H
#include "cuda/cuda.h"
#include "cuda/igemm/planes_params.h"

typedef struct hk_cu_planes_row {
  const char *name, *image;
  hk_type type;
  int bm, bn, stages;          /* channels and pixels of a tile, k blocks of the ring */
  int mi, nc, wgs;             /* see planes.inc */
} hk_cu_planes_row;
extern const hk_cu_planes_row hk_cu_planes_rows[];
extern const int hk_cu_planes_row_count;

/* The problem as a run of pixels an image, or why it is none: fills m.g and all that does not depend on the tile. unaligned: y and
 * c may lie at any element address. */
bool hk_cu_planes_make(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_planes *p, char *why);
/* Whether planes_out.cuh and halo_out.cuh have the epilogue: they have the same. */
bool hk_cu_planes_finishes(const hk_geom *g, const hk_epi *e, char *why);
double hk_cu_planes_seconds(const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e, const hk_cu_planes *p, int processors);
size_t hk_cu_planes_filter_bytes(const hk_cu_planes_row *r, const hk_geom *g);

typedef struct hk_cu_planes_state {
  const hk_cu_planes_row *row;
  hk_cu_kernel kernel;
  hk_cu_planes params;
  hk_cu_igemm_state filters;   /* its packing alone */
  int64_t blocks;
} hk_cu_planes_state;
hk_status hk_cu_planes_build(hk_cu_planes_state *s, const hk_cu_planes_row *row, const hk_geom *g, const hk_epi *e, bool unaligned);
/* call->f points to filters packed by hk_cu_igemm_pack(&s->filters, ..). */
hk_status hk_cu_planes_run(const hk_cu_planes_state *s, const hk_cu_call *call, const void *slopes);
#endif
