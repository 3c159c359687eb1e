/* The device for programs without CUDA code of their own: memory, copies, waiting, timing. */
#include <string.h>

#include "cuda/cuda.h"
#include "plan/plan.h"

hk_status hk_gpu_info(hk_gpu *gpu) {
  hk_cu_device here;
  if (!gpu || gpu->size != sizeof *gpu)
    return hk_fail(HK_INVALID, "gpu.size = %zu must be sizeof(hk_gpu) = %zu", gpu ? gpu->size : 0, sizeof *gpu);
  const hk_status s = hk_cu_here(&here);
  if (s) return s;
  memcpy(gpu->name, here.name, sizeof gpu->name);
  gpu->major = here.major, gpu->minor = here.minor;
  gpu->processors = here.processors, gpu->driver = here.driver, gpu->l2_bytes = here.l2_bytes;
  gpu->kernels = hk_cu_built();
  return HK_OK;
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

hk_status hk_gpu_time(const hk_plan *plan, const hk_args *args, int32_t repeats, double *seconds) {
  hk_cu_event from = NULL, to = NULL;
  float ms = 0;
  if (!plan || !args || !seconds || repeats < 1) return hk_fail(HK_INVALID, "plan, args and seconds must not be NULL, repeats >= 1");
  if (plan->task.options.device != HK_CUDA) return hk_fail(HK_INVALID, "the plan is not for the CUDA device");
  const hk_cu_driver *cu = hk_cu();
  if (!cu) return HK_DEVICE;
  hk_status s = hk_cu_check(cu->event_create(&from, 0), "making an event");
  if (!s) s = hk_cu_check(cu->event_create(&to, 0), "making an event");
  if (!s) s = hk_cu_check(cu->event_record(from, args->stream), "recording an event");
  for (int32_t i = 0; i < repeats && !s; ++i) s = hk_plan_execute(plan, args);
  if (!s) s = hk_cu_check(cu->event_record(to, args->stream), "recording an event");
  if (!s) s = hk_cu_check(cu->event_sync(to), "waiting for the device");
  if (!s) s = hk_cu_check(cu->event_ms(&ms, from, to), "reading events");
  if (from) cu->event_destroy(from);
  if (to) cu->event_destroy(to);
  *seconds = (double)ms * 1e-3 / repeats;
  return s;
}
