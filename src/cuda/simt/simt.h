/* The SIMT kernels (simt.tmpl.cuh) as the planner sees them. All but hk_cu_simt_build and run is pure host code. */
#ifndef HK_CUDA_SIMT_H
#define HK_CUDA_SIMT_H
#include "cuda/cuda.h"
#include "cuda/simt/params.h"

typedef struct hk_cu_simt_tile {
  const char *image, *name, *slices; /* the pass that adds slices */
  hk_type sum;
  bool mixed; /* takes operands of any type, otherwise f32 only */
  int bm, bn;
  double rate; /* products per clock and SM, measured on an H200, channels-last */
} hk_cu_simt_tile;
extern const hk_cu_simt_tile hk_cu_simt_tiles[];
extern const int hk_cu_simt_tile_count;

/* How a problem is laid over rows and products; derived from the strides unless a decision says otherwise. */
typedef struct hk_cu_simt_order {
  bool images_inner, taps_inner, x_rows, f_columns;
} hk_cu_simt_order;

typedef struct hk_cu_simt_state {
  const hk_cu_simt_tile *tile;
  hk_cu_kernel kernel, add;
  hk_cu_simt params;
  int64_t blocks, add_blocks;
} hk_cu_simt_state;

/* Whether the kernels support the geometry, or why not. */
bool hk_cu_simt_takes(const hk_geom *g, const hk_epi *e, char *why);
bool hk_cu_simt_tile_takes(const hk_cu_simt_tile *t, const hk_geom *g);
hk_cu_simt_order hk_cu_simt_order_of(const hk_geom *g);
/* Slices of the reduction that fill the device, by the shape alone; at most as many as partial sums of `limit` bytes.
 */
int hk_cu_simt_slices(const hk_cu_simt_tile *t, const hk_geom *g, size_t limit);
int64_t hk_cu_simt_steps(const hk_geom *g);
size_t hk_cu_simt_partial_bytes(const hk_cu_simt_tile *t, const hk_geom *g, int slices);
double hk_cu_simt_seconds(const hk_cu_simt_tile *t, const hk_geom *g, int slices, int processors);

hk_status hk_cu_simt_build(hk_cu_simt_state *s, const hk_cu_simt_tile *t, const hk_geom *g, const hk_epi *e,
                           hk_cu_simt_order order, int slices);
/* call->f: raw filters on the device, offset added. call->workspace: partial sums. */
hk_status hk_cu_simt_run(const hk_cu_simt_state *s, const hk_cu_call *call, const void *slopes, const int32_t *f_zeros);
#endif
