/* Sums staged in memory for a gate or a function that the inner task does not have. */
#ifndef HK_PLAN_SUMS_H
#define HK_PLAN_SUMS_H
#include "plan/rewrite/rewrite.h"

/* f32 for f32 sums; f64 for f64 and int8, whose epilogues are computed in double. */
hk_type hk_sums_type(const hk_geom *g);
/* All k channels dense in the order of y. */
hk_strides hk_sums_strides(const hk_geom *g);
/* Makes a copy of the task the one that leaves the sums, scaled and biased, with those strides; and their bytes. */
int hk_sums_inner(const hk_task *t, int part, hk_task *copy);
size_t hk_sums_bytes(const hk_task *t);
#endif
