/* Counts the allocations and locks of this thread while it is watched, those of loaded libraries too. Under sanitizers,
 * which bring their own functions, nothing is counted. */
#ifndef LV2_TEST_WATCH_H
#define LV2_TEST_WATCH_H
#include <stdbool.h>

extern _Thread_local bool watched;
extern _Thread_local long watched_allocations, watched_locks;
#endif
