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

const hk_kernel *hk_algo_next_row(const hk_algo *algo, const hk_kernel *last) {
  const bool second = last && last->family != algo->family;
  for (const hk_kernel *k = last ? last + 1 : hk_kernels; k < hk_kernels + hk_kernel_count; k++)
    if (k->family == (second ? algo->also : algo->family)) return k;
  if (second || algo->also == HK_FAMILY_NONE) return NULL;
  for (const hk_kernel *k = hk_kernels; k < hk_kernels + hk_kernel_count; k++)
    if (k->family == algo->also) return k;
  return NULL;
}
