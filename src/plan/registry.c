/* The table of algorithms, from algos.inc. */
#include "plan/plan.h"

#define HK_ALGO(name) extern const hk_algo hk_algo_##name;
#include "plan/algos.inc"
#undef HK_ALGO

#define HK_ALGO(name) &hk_algo_##name,
const hk_algo *const hk_algos[] = {
#include "plan/algos.inc"
    NULL};
#undef HK_ALGO
