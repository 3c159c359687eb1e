/* The tables of algorithms and rewrites, from algos.inc and rewrites.inc. */
#include "plan/plan.h"

#define HK_ALGO(name) extern const hk_algo hk_algo_##name;
#include "plan/algos.inc"
#undef HK_ALGO

#define HK_ALGO(name) &hk_algo_##name,
const hk_algo *const hk_algos[] = {
#include "plan/algos.inc"
    NULL};
#undef HK_ALGO

#define HK_REWRITE(name) extern const hk_rewrite hk_rewrite_##name;
#include "plan/rewrites.inc"
#undef HK_REWRITE

#define HK_REWRITE(name) &hk_rewrite_##name,
const hk_rewrite *const hk_rewrites[] = {
#include "plan/rewrites.inc"
    NULL};
#undef HK_REWRITE
