/* What the CUDA algorithms share: weights on the device, and a call with the right pointers. */
#ifndef HK_PLAN_CUDA_H
#define HK_PLAN_CUDA_H
#include "cuda/cuda.h"
#include "plan/plan.h"

/* Refuses what no CUDA algorithm takes; fills *here. */
bool hk_plan_cuda_takes(const hk_task *task, hk_cu_device *here, char *why);
/* For tests of predictions: plans as for a device of so many SMs, present or not; 0: asks the device again. */
void hk_plan_cuda_pretend(int processors);
/* Copies scale, bias, slopes and zero points of plan->packed to the device and hangs them, freed with the weights, on
 * plan->packed->f. A plan that shares weights gets those. */
hk_status hk_plan_cuda_weights(hk_plan *plan, hk_cu_weights **weights);
/* The same, and of filters known at creation a copy as they are, for kernels that read them unpacked. */
hk_status hk_plan_cuda_raw(hk_plan *plan);
/* Raw filters on the device, then the packing kernel: `bytes` of images into w->f, and behind them the raw ones where
 * they are kept. */
hk_status hk_plan_cuda_pack(hk_plan *plan, const hk_cu_igemm_state *s, size_t bytes, bool keep, hk_cu_weights *w);
/* One number for what a packing order depends on. */
int64_t hk_plan_cuda_order(const int64_t *parts, int count);
/* hk_plan_keep_layout by everything that the packing kernel reads of `s`: a plan made like another for a problem whose
 * images have another order (taps folded into channels, other blocks, joined groups) is refused. */
hk_status hk_plan_cuda_keep_order(hk_plan *plan, const hk_cu_igemm_state *s);
/* Gives a thread that has no context yet the one that creation would have used: tensor maps need one, and so do
 * launches on the default stream. Should it fail, the launch that follows says why. */
void hk_plan_cuda_enter(void);
/* Enters, then the device pointers of a call; f is left as execute got it. */
hk_cu_call hk_plan_cuda_call(const hk_plan *plan, const hk_call *call);
/* The same with f the filters that hk_plan_cuda_raw copied, where there are any. */
hk_cu_call hk_plan_cuda_raw_call(const hk_plan *plan, const hk_call *call);
#endif
