/* Tensors where a plan needs them. On the CPU they are used in place; on CUDA they are copied to the device, in several
 * sets when timing, so that more than the L2 is read. cli_execute does it for one call and copies y back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Freed device memory that fits is reused: `check` allocates thousands of times, and the driver is slow. */
enum { SHELVES = 64, SHELF_MOST = 1 << 24 };
static struct {
  void *p;
  size_t bytes;
} shelf[SHELVES];

static void *shelf_take(size_t bytes, size_t *has) {
  for (int i = 0; i < SHELVES; i++)
    if (shelf[i].p && shelf[i].bytes >= bytes && shelf[i].bytes <= 4 * bytes + 4096) {
      void *p = shelf[i].p;
      *has = shelf[i].bytes;
      shelf[i].p = NULL;
      return p;
    }
  return NULL;
}

static void shelf_put(void *p, size_t bytes) {
  for (int i = 0; i < SHELVES && bytes <= SHELF_MOST; i++)
    if (!shelf[i].p) {
      shelf[i].p = p, shelf[i].bytes = bytes;
      return;
    }
  hk_gpu_free(p);
}

enum { ALIGN = 256 }; /* of what hk_gpu_alloc returns */

/* Takes device memory whose byte `at` is aligned and fills it from `from` unless that is NULL. */
static hk_status keep_at(cli_site *s, const void *from, size_t bytes, size_t at, void **to) {
  const size_t shift = (ALIGN - at % ALIGN) % ALIGN, all = bytes + shift;
  size_t has = all;
  *to = shelf_take(all, &has);
  const hk_status status = *to ? HK_OK : hk_gpu_alloc(to, all);
  if (status) return status;
  s->bytes[s->blocks] = has;
  s->block[s->blocks++] = *to;
  *to = (char *)*to + shift;
  return from ? hk_gpu_copy(*to, from, bytes) : HK_OK;
}

static hk_status keep(cli_site *s, const void *from, size_t bytes, void **to) { return keep_at(s, from, bytes, 0, to); }

/* The extent of c that a residual with its own strides reads. Unlike y it may read an element more than once. */
static hk_status residual_extent(const hk_problem *p, const hk_strides *strides, hk_extent *c) {
  int64_t out[HK_MAX_RANK], n = 0, high = strides->offset, low = strides->offset;
  const hk_status s = hk_problem_output(p, out, &n);
  if (s) return s;
  const int64_t groups = p->feature_groups * p->batch_groups, size[3] = {groups, n, p->k / groups},
                step[3] = {strides->group, strides->outer, strides->channel};
  bool empty = false;
  for (int d = 0; d < 3 + p->rank; d++) {
    const int64_t count = d < 3 ? size[d] : out[d - 3], reach = (count - 1) * (d < 3 ? step[d] : strides->at[d - 3]);
    empty |= count < 1;
    *(reach > 0 ? &high : &low) += reach;
  }
  *c = empty ? (hk_extent){0, 0} : (hk_extent){high - low + 1, -low};
  return HK_OK;
}

/* Extents of y and of the residual, which may have its own strides. Under a gate both have half the channels of k,
 * counted without groups. */
static hk_status extents(const hk_problem *p, const hk_epilogue *e, hk_extent *x, hk_extent *f, hk_extent *y,
                         hk_extent *c) {
  hk_status s = hk_problem_extents(p, x, f, y);
  hk_extent unused[2];
  hk_problem half = *p;
  if (e->gate) {
    half.k = p->k / 2;
    if (p->batch_groups > 1) half.n = p->n / p->batch_groups;
    half.feature_groups = half.batch_groups = 1;
    if (!s) s = hk_problem_extents(&half, &unused[0], &unused[1], y);
  }
  *c = *y;
  if (s || !e->residual || !e->c_strided) return s;
  return residual_extent(&half, &e->c, c);
}

/* Copies a tensor `copies` times; to[i] gets the address of element 0 of copy i. */
static hk_status tensor(cli_site *s, const void *p, hk_extent e, hk_type type, int copies, void **to) {
  const size_t element = hk_type_bytes(type), below = (size_t)e.below * element;
  hk_status status = HK_OK;
  for (int i = 0; p && i < copies && !status; i++) {
    status = keep_at(s, (const char *)p - below, (size_t)e.elements * element, below, &to[i]);
    if (!status) to[i] = (char *)to[i] + below;
  }
  return status;
}

static hk_status vector(cli_site *s, const void *p, size_t count, size_t element, const void **to) {
  void *made = NULL;
  const hk_status status = p && count ? keep(s, p, count * element, &made) : HK_OK;
  *to = made;
  return status;
}

/* The elements of a stateful plan's state. */
static size_t state_count(const hk_problem *p) { return (size_t)(p->n * p->c * p->dilation[0] * (p->window[0] - 1)); }

static int sets_for(size_t bytes) {
  hk_gpu gpu = {.size = sizeof gpu};
  if (hk_gpu_info(&gpu)) return 1;
  const double sets = 3.0 * (double)gpu.l2_bytes / (double)(bytes + 1) + 1;
  return sets > CLI_SITE_SETS ? CLI_SITE_SETS : (int)sets;
}

static hk_status site_on_gpu(cli_site *s, const hk_problem *p, const hk_epilogue *e, const hk_args *host) {
  hk_extent x, f, y, c;
  void *at[4][CLI_SITE_SETS] = {{NULL}}, *space = NULL;
  const size_t real = cli_problem_is_double(p) ? 8 : 4;
  hk_args a = {.size = sizeof a, .workspace_bytes = host->workspace_bytes};
  hk_status status = extents(p, e, &x, &f, &y, &c);
  if (status) return status;
  if (!s->sets)
    s->sets = sets_for((size_t)x.elements * hk_type_bytes(p->x_type) + (size_t)y.elements * hk_type_bytes(p->y_type));
  status = tensor(s, host->x, x, p->x_type, s->sets, at[0]);
  if (!status) status = tensor(s, host->y, y, p->y_type, s->sets, at[1]);
  if (!status && host->c != host->y) status = tensor(s, host->c, c, p->y_type, s->sets, at[2]);
  if (!status) status = tensor(s, host->f, f, p->f_type, 1, at[3]);
  if (!status) status = vector(s, host->scale, e->scale == 1 ? 1 : (size_t)p->k * (e->scale != 0), real, &a.scale);
  if (!status) status = vector(s, host->bias, (size_t)p->k * (e->bias != 0), real, &a.bias);
  const size_t past = state_count(p), element = hk_type_bytes(p->x_type);
  if (!status) status = vector(s, host->state_in, past, element, &a.state_in);
  if (!status && host->state_out && past) status = keep(s, NULL, past * element, &a.state_out);
  if (!status && a.workspace_bytes) status = keep(s, host->workspace, a.workspace_bytes, &space);
  for (int i = 0; i < s->sets; i++) {
    s->args[i] = a;
    s->args[i].x = at[0][i], s->args[i].y = at[1][i], s->args[i].f = at[3][0], s->args[i].workspace = space;
    s->args[i].c = host->c == host->y ? at[1][i] : at[2][i];
  }
  return status;
}

hk_status cli_site_make(cli_site *s, hk_device device, int sets, const hk_problem *p, const hk_epilogue *e,
                        const hk_args *host) {
  *s = (cli_site){.device = device, .sets = device == HK_CUDA ? sets : 1, .args = {*host}};
  const hk_status status = device == HK_CUDA ? site_on_gpu(s, p, e, host) : HK_OK;
  if (status) cli_site_free(s);
  return status;
}

void cli_site_free(cli_site *s) {
  for (int i = 0; i < s->blocks; i++) shelf_put(s->block[i], s->bytes[i]);
  s->blocks = 0;
}

double cli_site_time(const cli_site *s, const hk_plan *plan, int calls) {
  double seconds = 0;
  if (s->device == HK_CUDA) return hk_gpu_time(plan, s->args, s->sets, calls, &seconds) ? INFINITY : seconds;
  const double start = cli_tick();
  for (int i = 0; i < calls; i++)
    if (hk_plan_execute(plan, &s->args[0])) return INFINITY;
  return (cli_tick() - start) / calls;
}

double cli_gpu_peak(const hk_problem *p, uint32_t math) {
  hk_gpu gpu = {.size = sizeof gpu};
  if (hk_gpu_info(&gpu)) return 0;
  switch (p->x_type) {
  case HK_F16:
  case HK_BF16: return gpu.tensor_flops;
  case HK_F8E4M3: return 2 * gpu.tensor_flops;
  case HK_F32:
    return math & HK_MATH_TF32 ? gpu.tensor_flops / 2 : math & HK_MATH_SPLIT_F32 ? gpu.tensor_flops / 6 : gpu.fma_flops;
  default: return 0;
  }
}

hk_status cli_execute(const hk_options *o, const hk_plan *plan, const hk_problem *p, const hk_epilogue *e,
                      const hk_args *host) {
  hk_extent x, f, y = {0, 0}, c;
  cli_site site;
  hk_args args = *host;
  if (!o || o->device == HK_CPU) return hk_plan_execute(plan, host);
  args.workspace_bytes = hk_plan_workspace(plan);
  hk_status s = cli_site_make(&site, o->device, 1, p, e, &args);
  if (s) return s;
  s = hk_plan_execute(plan, &site.args[0]);
  if (!s) s = hk_gpu_sync(NULL);
  if (!s) s = extents(p, e, &x, &f, &y, &c);
  const size_t element = hk_type_bytes(p->y_type), below = (size_t)y.below * element;
  if (!s && host->y)
    s = hk_gpu_copy((char *)host->y - below, (char *)site.args[0].y - below, (size_t)y.elements * element);
  if (!s && site.args[0].state_out)
    s = hk_gpu_copy(host->state_out, site.args[0].state_out, state_count(p) * hk_type_bytes(p->x_type));
  cli_site_free(&site);
  return s;
}
