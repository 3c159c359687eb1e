/* Executing a plan on the device that it was made for, from tensors in host memory: on the CPU a plain call; on CUDA the
 * tensors are copied over, the plan runs, y is copied back. For `run` and `check`; timing needs tensors that stay there
 * (bench/gpu). */
#include <string.h>

#include "cli.h"

enum { X, F, C, Y, SCALE, BIAS, WORKSPACE, COUNT };

typedef struct part {
  const char *host; /* lowest address */
  size_t bytes, below;
  void *device;
} part;

static part tensor(const void *p, hk_extent e, hk_type type) {
  const size_t element = hk_type_bytes(type);
  if (!p) return (part){0};
  return (part){(const char *)p - (size_t)e.below * element, (size_t)e.elements * element, (size_t)e.below * element, NULL};
}

static void *place(const part *p) { return p->device ? (char *)p->device + p->below : NULL; }

hk_status cli_execute(const hk_options *o, const hk_plan *plan, const hk_problem *p, const hk_epilogue *e, const hk_args *host) {
  hk_extent x, f, y;
  if (!o || o->device == HK_CPU) return hk_plan_execute(plan, host);
  hk_status s = hk_problem_extents(p, &x, &f, &y);
  if (s) return s;
  const size_t real = cli_problem_is_double(p) ? 8 : 4;
  part parts[COUNT] = {tensor(host->x, x, p->x_type), tensor(host->f, f, p->f_type), tensor(host->c, y, p->y_type),
                       tensor(host->y, y, p->y_type)};
  if (host->scale && e->scale) parts[SCALE] = (part){host->scale, (e->scale == 1 ? 1 : (size_t)p->k) * real, 0, NULL};
  if (host->bias && e->bias) parts[BIAS] = (part){host->bias, (size_t)p->k * real, 0, NULL};
  const size_t workspace = hk_plan_workspace(plan);
  for (int i = 0; i < COUNT && !s; i++) {
    const size_t bytes = i == WORKSPACE ? workspace : parts[i].bytes;
    if (!bytes) continue;
    s = hk_gpu_alloc(&parts[i].device, bytes);
    if (!s && i != WORKSPACE) s = hk_gpu_copy(parts[i].device, parts[i].host, bytes);
  }
  hk_args a = {.size = sizeof a, .x = place(&parts[X]), .f = place(&parts[F]), .c = place(&parts[C]), .y = place(&parts[Y]),
               .scale = place(&parts[SCALE]), .bias = place(&parts[BIAS]), .workspace = parts[WORKSPACE].device,
               .workspace_bytes = workspace};
  if (host->c == host->y) a.c = a.y;
  if (!s) s = hk_plan_execute(plan, &a);
  if (!s) s = hk_gpu_sync(NULL);
  if (!s && parts[Y].bytes) s = hk_gpu_copy((void *)(uintptr_t)parts[Y].host, parts[Y].device, parts[Y].bytes);
  for (int i = 0; i < COUNT; i++) hk_gpu_free(parts[i].device);
  return s;
}

bool cli_on_cpu(const hk_options *o, const char *verb) {
  if (o->device == HK_CPU) return true;
  cli_error("hankel %s times the CPU; the device is timed by make bench-gpu (bench/gpu/bench.py) or hk_gpu_time", verb);
  return false;
}
