/* Sums staged in memory before a gate or a function that the inner algorithm does not know. */
#ifndef HK_PLAN_SUMS_H
#define HK_PLAN_SUMS_H
#include "plan/rewrite/around.h"

/* All k channels dense in the order of y. */
hk_strides hk_sums_strides(const hk_geom *g);
/* The task that leaves f32 sums, scaled and biased, with those strides; and their bytes. */
hk_task hk_sums_task(const hk_task *t);
size_t hk_sums_bytes(const hk_task *t);
#endif
