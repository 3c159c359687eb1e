/* The halo kernels (halo.cuh) as the planner sees them: rows, what they support, the predicted time, and a plan's
 * device state. All but hk_cu_halo_build and run is pure host code. */
#ifndef HK_CUDA_HALO_H
#define HK_CUDA_HALO_H
#include "cuda/igemm/planes.h"

extern const hk_cu_planes_row hk_cu_halo_rows[]; /* stages: 0, as many as fit */
extern const int hk_cu_halo_row_count;

/* Describes the problem as rows of pixels with gaps between them, or says why it is none. Fills all that does not
 * depend on the tile. */
bool hk_cu_halo_make(const hk_geom *g, const hk_epi *e, hk_cu_halo *h, char *why);
/* Fits h to a tile: its block, the stages of the ring and the slots. False where shared memory is too small. */
bool hk_cu_halo_fit(const hk_cu_planes_row *r, const hk_geom *g, hk_cu_halo *h, char *why);
double hk_cu_halo_seconds(const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e, const hk_cu_halo *h,
                          int processors);

typedef hk_cu_first_state hk_cu_halo_state;
hk_status hk_cu_halo_build(hk_cu_halo_state *s, const hk_cu_planes_row *row, const hk_geom *g, const hk_epi *e);
/* call->f points to filters packed by hk_cu_igemm_pack(&s->filters, ..), of hk_cu_planes_filter_bytes. */
hk_status hk_cu_halo_run(const hk_cu_halo_state *s, const hk_cu_call *call, const void *slopes);
#endif
