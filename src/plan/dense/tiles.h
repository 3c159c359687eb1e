/* What the plain tile loops (qgemm, dgemm) share: pixels of a strip, and the epilogue of a run of values in double. */
#ifndef HK_TILES_H
#define HK_TILES_H
#include "plan/plan.h"

typedef struct hk_pixel {
  int64_t n, p[3];
} hk_pixel;
hk_pixel hk_pixel_of(const hk_geom *g, int64_t m);
/* Position in x (without group and channel, in elements of the given strides) that a tap of an output reads; false in
 * the padding or between dilated inputs. */
bool hk_pixel_source(const hk_geom *g, const hk_pixel *at, int64_t tap, const hk_strides *x, int64_t *offset);
/* The place of a pixel's channel k (over all groups) for user functions. */
hk_at hk_pixel_at(const hk_geom *g, const hk_pixel *p, int64_t k);
int64_t hk_at_place(const hk_geom *g, const hk_strides *s, const hk_at *at);
/* Packs weights that are known at creation into `bytes` of plan->packed->f, unless the plan shares them. */
hk_status hk_tiles_pack(hk_plan *plan, size_t bytes, void (*pack)(const hk_plan *plan, const void *f, void *to));
/* The activation of channel k in double; none for functions of the caller. */
double hk_tiles_act(const hk_plan *plan, hk_act act, float a, float b, int64_t k, double v);
/* The clamp of an epilogue that is `simple` (hk_epi), infinite where there is none. */
void hk_tiles_bounds(const hk_epilogue *e, double *lo, double *hi);
/* Residual after the activation, user2 and the store of count values along k that are finished otherwise. */
void hk_tiles_store(const hk_plan *plan, const hk_call *call, const hk_at *at, int64_t count, const double *v);
/* Residual, activation, user functions and store of count values along k, already scaled and biased. */
void hk_tiles_finish(const hk_plan *plan, const hk_call *call, const hk_at *at, int64_t count, double *v);
#endif
