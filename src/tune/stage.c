/* Operands for measuring: values about 1 in buffers of the tensors' extents, the same values in every set. On CUDA the
 * tensors lie in device memory; weights that the plan already holds are not made. */
#include "tune/stage.h"

#include <string.h>

#include "cuda/cuda.h"

/* elements of a type with values about 1, in host memory */
static void *values(hk_type t, int64_t elements) {
  const size_t bytes = hk_type_bytes(t);
  char *p = hk_alloc(((size_t)elements + 1) * bytes);
  if (!p) return NULL;
  const int64_t head = hk_min64(elements, 4096);
  for (int64_t i = 0; i < head; i++) hk_store_element(t, p, i, (double)((i * 2654435761u >> 7) % 2001) / 1000.0 - 1.0);
  for (int64_t done = head; done < elements; done += hk_min64(done, elements - done))
    memcpy(p + (size_t)done * bytes, p, (size_t)hk_min64(done, elements - done) * bytes);
  return p;
}

/* Keeps a block of the stage's device; from is host memory, or NULL for raw bytes. */
static hk_status keep(hk_stage *s, const void *from, size_t bytes, void **to) {
  hk_cu_buffer b = {NULL, 0};
  hk_status status = HK_OK;
  if (s->device == HK_CUDA) {
    status = hk_cu_buffer_make(&b, from, bytes);
  } else {
    b.data = hk_alloc(bytes + 1);
    if (!b.data) status = hk_fail(HK_NO_MEMORY, "no memory to measure candidates");
    else if (from) memcpy(b.data, from, bytes);
  }
  if (!status) s->block[s->blocks++] = b.data;
  *to = b.data;
  return status;
}

/* The tensor once for each of `copies` sets; to[] gets the addresses of its element 0. */
static hk_status tensor(hk_stage *s, hk_type t, const hk_extent *e, int copies, void **to) {
  const size_t bytes = hk_type_bytes(t);
  void *made = values(t, e->elements);
  hk_status status = made ? HK_OK : hk_fail(HK_NO_MEMORY, "no memory to measure candidates");
  for (int i = 0; i < copies && !status; i++) {
    status = keep(s, made, (size_t)e->elements * bytes, &to[i]);
    if (!status) to[i] = (char *)to[i] + e->below * (int64_t)bytes;
  }
  for (int i = copies; i < HK_STAGE_SETS; i++) to[i] = to[0];
  hk_free(made);
  return status;
}

/* Sets that together are thrice the L2, so that memory is timed and not the cache; the CPU's caches are left warm. */
static int sets_for(const hk_task *t, double bytes) {
  hk_cu_device here;
  if (t->options.device != HK_CUDA || hk_cu_here(&here)) return 1;
  return (int)hk_max64(1, hk_min64(HK_STAGE_SETS, (int64_t)(3.0 * here.l2_bytes / (bytes + 1)) + 1));
}

hk_status hk_stage_make(hk_stage *s, const hk_task *t, size_t workspace) {
  const hk_geom *g = &t->geom;
  const bool gated = t->epi.e.gate != HK_GATE_NONE, sum = t->epi.e.residual != HK_RESIDUAL_NONE;
  const int64_t groups = gated ? 1 : g->groups, k = gated ? g->y_channels : g->k;
  const hk_extent x = hk_extent_of(&g->x, g->groups, g->n, g->c, g->in);
  const hk_extent f = hk_extent_of(&g->f, g->groups, g->k, g->c, g->win);
  const hk_extent y = hk_extent_of(&g->y, groups, g->n, k, g->out);
  const hk_extent c = hk_extent_of(&t->epi.c, groups, g->n, k, g->out);
  const size_t reals_bytes = (size_t)(g->k * g->groups + 1) * 8;
  void *at[4][HK_STAGE_SETS] = {{NULL}}, *space = NULL, *reals = NULL, *zeros = hk_alloc_zero(reals_bytes);
  *s = (hk_stage){.device = t->options.device};
  s->sets = sets_for(t, (double)x.elements * (double)hk_type_bytes(g->x_type) +
                            (double)y.elements * (double)hk_type_bytes(g->y_type));
  hk_status status = tensor(s, g->x_type, &x, s->sets, at[0]); /* scale and bias are zeros of any type */
  if (!status) status = tensor(s, g->y_type, &y, s->sets, at[1]);
  if (!status && sum) status = tensor(s, g->y_type, &c, s->sets, at[2]);
  if (!status && !t->f_now) status = tensor(s, g->f_type, &f, 1, at[3]);
  if (!status)
    status = zeros ? keep(s, zeros, reals_bytes, &reals) : hk_fail(HK_NO_MEMORY, "no memory to measure candidates");
  if (!status) status = keep(s, NULL, workspace, &space);
  for (int i = 0; i < s->sets; i++)
    s->args[i] = (hk_args){.size = sizeof s->args[i],
                           .x = at[0][i],
                           .y = at[1][i],
                           .c = at[2][i],
                           .f = at[3][0],
                           .scale = reals,
                           .bias = reals,
                           .workspace = space,
                           .workspace_bytes = workspace};
  hk_free(zeros);
  return status;
}

void hk_stage_free(hk_stage *s) {
  for (int i = 0; i < s->blocks; i++) {
    hk_cu_buffer b = {s->block[i], 0};
    if (s->device == HK_CUDA) hk_cu_buffer_free(&b);
    else hk_free(s->block[i]);
  }
  s->blocks = 0;
}

typedef struct turn {
  const hk_stage *stage;
  const hk_plan *plan;
} turn;

static hk_status take_turn(void *context, int32_t i, void *stream) {
  const turn *t = context;
  hk_args a = t->stage->args[i % t->stage->sets];
  a.stream = stream;
  return hk_plan_execute(t->plan, &a);
}

hk_status hk_stage_time(const hk_stage *s, const hk_plan *plan, int repeats, double *seconds) {
  turn t = {s, plan};
  if (s->device == HK_CUDA) return hk_cu_time(take_turn, &t, repeats, seconds);
  const double start = hk_clock();
  hk_status status = HK_OK;
  for (int i = 0; i < repeats && !status; i++) status = hk_plan_execute(plan, &s->args[i % s->sets]);
  *seconds = (hk_clock() - start) / repeats;
  return status;
}
