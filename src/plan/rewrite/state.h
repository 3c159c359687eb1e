/* What stateful plans on both devices share: the joined x that their inner algorithms see. */
#ifndef HK_PLAN_STATE_H
#define HK_PLAN_STATE_H
#include "plan/rewrite/around.h"

/* Strides of the joined x, [n][position][channel] or [n][channel][position] as x lies; a channel's row takes a multiple of
 * `granule` elements. */
hk_strides hk_state_strides(const hk_geom *g, int64_t granule);
/* The task without state over the joined x, and that x's bytes. */
hk_task hk_state_task(const hk_task *t, int64_t granule);
size_t hk_state_bytes(const hk_task *t, int64_t granule);
/* Refuses tasks that have no state or nothing to multiply. */
bool hk_state_takes(const hk_task *t, char *why);
#endif
