/* All algorithms, in the order candidates of equal predicted time are preferred. */
#include "plan/plan.h"

extern const hk_algo hk_algo_wgmma, hk_algo_cuda_direct;
extern const hk_algo hk_algo_dwp, hk_algo_dwc, hk_algo_grouped, hk_algo_igemm, hk_algo_planes, hk_algo_ref;
extern const hk_algo hk_algo_widen_dwp, hk_algo_widen_dwc, hk_algo_widen_igemm, hk_algo_widen_planes;

const hk_algo *const hk_algos[] = {&hk_algo_dwp, &hk_algo_dwc, &hk_algo_grouped, &hk_algo_igemm, &hk_algo_planes,
                                   &hk_algo_widen_dwp, &hk_algo_widen_dwc, &hk_algo_widen_igemm, &hk_algo_widen_planes,
                                   &hk_algo_ref, &hk_algo_wgmma, &hk_algo_cuda_direct, NULL};
