/* What the state rewrites of both devices share: the joined x that the inner task sees. */
#ifndef HK_PLAN_STATE_H
#define HK_PLAN_STATE_H
#include "plan/rewrite/rewrite.h"

/* Strides of the joined x, [n][position][channel] or [n][channel][position] as x lies; a channel's row takes a multiple
 * of `granule` elements. */
hk_strides hk_state_strides(const hk_geom *g, int64_t granule);
/* Makes a copy of the task the one without state over the joined x; and that x's bytes. */
void hk_state_inner(hk_task *copy, int64_t granule);
size_t hk_state_bytes(const hk_task *t, int64_t granule);
/* Refuses tasks that have no state or nothing to multiply. */
bool hk_state_takes(const hk_task *t, char *why);
#endif
