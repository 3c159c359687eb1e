/* The planes kernels (planes.cuh) as the planner sees them: rows, what they support, the predicted time, and a plan's
 * device state. All but hk_cu_planes_build and run is pure host code. */
#ifndef HK_CUDA_PLANES_H
#define HK_CUDA_PLANES_H
#include "cuda/igemm/channels_first.h"

extern const hk_cu_planes_row hk_cu_planes_rows[];
extern const int hk_cu_planes_row_count;

/* Describes the problem as one run of pixels per image, or says why it is none. Fills m.g and all that does not depend
 * on the tile. unaligned: y and c may start at any element address. */
bool hk_cu_planes_make(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_planes *p, char *why);
double hk_cu_planes_seconds(const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e, const hk_cu_planes *p,
                            int processors);
size_t hk_cu_planes_filter_bytes(const hk_cu_planes_row *r, const hk_geom *g);

typedef hk_cu_first_state hk_cu_planes_state;
hk_status hk_cu_planes_build(hk_cu_planes_state *s, const hk_cu_planes_row *row, const hk_geom *g, const hk_epi *e,
                             bool unaligned);
/* call->f points to filters packed by hk_cu_igemm_pack(&s->filters, ..). */
hk_status hk_cu_planes_run(const hk_cu_planes_state *s, const hk_cu_call *call, const void *slopes);
#endif
