/* The device for programs without CUDA code of their own: memory, copies, waiting, timing. */
#include <string.h>

#include "cuda/cuda.h"
#include "plan/plan.h"

hk_status hk_gpu_info(hk_gpu *to) {
  hk_cu_device here;
  hk_gpu made = {.size = sizeof made}, *gpu = &made;
  hk_status s = hk_give(to, gpu, sizeof made, "gpu"); /* a wrong size is said on machines without a device too */
  if (!s) s = hk_cu_here(&here);
  if (s) return s;
  memcpy(gpu->name, here.name, sizeof gpu->name);
  gpu->major = here.major, gpu->minor = here.minor;
  gpu->processors = here.processors, gpu->driver = here.driver, gpu->l2_bytes = here.l2_bytes;
  gpu->kernels = !hk_cu_missing();
  /* the memory's clock counts twice (both edges); Hopper's multiprocessor does 2048 bf16 products and 128 f32 ones a
   * clock */
  gpu->bytes_per_s = 2e3 * here.memory_khz * (here.bus_bits / 8.0);
  gpu->fma_flops = 1e3 * here.clock_khz * here.processors * 256.0;
  gpu->tensor_flops = here.major == 9 ? 1e3 * here.clock_khz * here.processors * 4096.0 : 0;
  return hk_give(to, gpu, sizeof made, "gpu");
}

hk_status hk_gpu_alloc(void **p, size_t bytes) {
  hk_cu_device here;
  hk_cu_buffer b;
  if (!p) return hk_fail(HK_INVALID, "p is NULL");
  hk_status s = hk_cu_here(&here);
  if (!s) s = hk_cu_buffer_make(&b, NULL, bytes);
  *p = s ? NULL : b.data;
  return s;
}

void hk_gpu_free(void *p) {
  hk_cu_buffer b = {p, 0};
  hk_cu_buffer_free(&b);
}

hk_status hk_gpu_copy(void *to, const void *from, size_t bytes) {
  hk_cu_device here;
  if (!bytes) return HK_OK;
  if (!to || !from) return hk_fail(HK_INVALID, "to and from must not be NULL");
  const hk_status s = hk_cu_here(&here);
  return s ? s : hk_cu_copy(to, from, bytes);
}

hk_status hk_gpu_sync(void *stream) {
  const hk_cu_driver *cu = hk_cu();
  if (!cu) return HK_DEVICE;
  return hk_cu_check(stream ? cu->stream_sync(stream) : cu->ctx_sync(), "waiting for the device");
}

typedef struct turn {
  const hk_plan *plan;
  const char *args;
  size_t step; /* bytes from one of args to the next: the size that the caller's header gives them */
  int32_t sets;
} turn;

static hk_status take_turn(void *context, int32_t i, void *stream) {
  const turn *t = context;
  hk_args a;
  const hk_args *given = hk_take(t->args + t->step * (size_t)(i % t->sets), &a, sizeof a, "args");
  if (!given) return HK_INVALID;
  if (given != &a) a = *given;
  a.stream = stream;
  return hk_plan_execute(t->plan, &a);
}

hk_status hk_gpu_time(const hk_plan *plan, const hk_args *args, int32_t sets, int32_t repeats, double *seconds) {
  hk_cu_device here;
  if (!plan || !args || !seconds || sets < 1 || repeats < 1)
    return hk_fail(HK_INVALID, "plan, args and seconds must not be NULL, sets and repeats >= 1");
  if (plan->task.options.device != HK_CUDA) return hk_fail(HK_INVALID, "the plan is not for the CUDA device");
  turn t = {plan, (const char *)args, args->size, sets};
  const hk_status s = hk_cu_here(&here);
  return s ? s : hk_cu_time(take_turn, &t, repeats, seconds);
}
