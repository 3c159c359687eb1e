/* The common part of CUDA plans: what is refused for every kernel, and weights on the device. */
#include "plan/gpu/gpu.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_REASON, __VA_ARGS__), false

static int pretended;

void hk_plan_cuda_pretend(int processors) { pretended = processors; }

static bool find_device(hk_cu_device *here, char *why) {
  if (pretended) *here = (hk_cu_device){.processors = pretended};
  if (pretended) return true;
  if (hk_cu_missing()) REFUSE("%s", hk_cu_missing());
  if (hk_cu_here(here)) REFUSE("%s", hk_last_error());
  return hk_cu_has_code(here, why);
}

bool hk_plan_cuda_takes(const hk_task *t, hk_cu_device *here, char *why) {
  const hk_epilogue *e = &t->epi.e;
  if (!find_device(here, why)) return false;
  if (t->options.stateful) REFUSE("options.stateful is 1: only a path that begins with state takes it");
  if (e->user || e->user2 || e->store) REFUSE("a C callback cannot run on the device: give its CUDA source instead");
  return true;
}

static hk_status upload(hk_cu_buffer *b, const void *from, size_t bytes) {
  return from ? hk_cu_buffer_make(b, from, bytes) : HK_OK;
}

hk_status hk_plan_cuda_weights(hk_plan *plan, hk_cu_weights **weights) {
  hk_packed *p = plan->packed;
  const hk_geom *g = &plan->task.geom;
  const size_t k = (size_t)(g->k * g->groups), real = g->acc_type == HK_F64 ? 8 : 4;
  /* a rewrite whose filters come at execute shares an empty one */
  if (hk_plan_shares(plan) && p->f) return *weights = p->f, HK_OK;
  hk_cu_weights *w = hk_alloc_zero(sizeof *w);
  if (!w) return hk_fail(HK_NO_MEMORY, "no memory for the weights");
  p->f = *weights = w;
  p->f_free = hk_cu_weights_free;
  hk_status s = upload(&w->scale, p->scale, plan->task.epi.e.scale == 1 ? real : k * real);
  if (!s) s = upload(&w->bias, p->bias, k * real);
  if (!s) s = upload(&w->slopes, p->slopes, k * real);
  if (!s) s = upload(&w->f_zero, p->f_zero, k * 4);
  return s;
}

hk_status hk_plan_cuda_raw(hk_plan *plan) {
  hk_cu_weights *w;
  hk_status s = hk_plan_cuda_weights(plan, &w);
  if (s || !plan->task.f_now || hk_plan_shares(plan)) return s;
  s = hk_cu_filters_make(&w->f, &plan->task.geom, plan->raw_f, &w->f_shift);
  plan->packed->f_bytes = w->f.bytes;
  return s;
}

hk_status hk_plan_cuda_pack(hk_plan *plan, const hk_cu_igemm_state *state, size_t bytes, bool keep, hk_cu_weights *w) {
  const hk_geom *g = &plan->task.geom;
  hk_cu_buffer raw = {0};
  int64_t shift = 0;
  hk_status s = hk_cu_filters_make(&raw, g, plan->raw_f, &shift);
  if (!s) s = hk_cu_buffer_make(&w->f, NULL, bytes + (keep ? raw.bytes : 0));
  if (!s && keep) s = hk_cu_copy((char *)w->f.data + bytes, raw.data, raw.bytes);
  w->f_shift = shift;
  if (!s)
    s = hk_cu_igemm_pack(state, (const char *)raw.data + shift * (int64_t)hk_type_bytes(g->f_type), w->f.data, NULL);
  if (!s) s = hk_cu_check(hk_cu()->ctx_sync(), "packing filters");
  hk_cu_buffer_free(&raw);
  plan->packed->f_bytes = w->f.bytes;
  return s;
}

int64_t hk_plan_cuda_order(const int64_t *parts, int count) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a, word by word */
  for (int i = 0; i < count; i++) hash = (hash ^ (uint64_t)parts[i]) * 1099511628211u;
  return (int64_t)(hash >> 1);
}

hk_status hk_plan_cuda_keep_order(hk_plan *plan, const hk_cu_igemm_state *s) {
  const hk_cu_pack *p = &s->packing.pack;
  const hk_cu_view *v = &p->view;
  const int64_t parts[] = {
      v->group,       v->outer,         v->channel,     v->at[0],  v->at[1],  v->at[2],          p->cg,
      p->kg,          p->win[0],        p->win[1],      p->win[2], p->blocks, p->f_type,         p->to_type,
      p->bn,          p->group_tiles_n, p->k_blocks,    p->gate,   p->parts,  p->fold,           p->fold_run,
      p->fold_win[0], p->fold_win[1],   p->fold_win[2], p->join_c, p->join_k, s->packing.halves, s->packing.apart};
  const int64_t order = hk_plan_cuda_order(parts, HK_COUNT(parts));
  return plan->task.f_now ? hk_plan_keep_layout(plan, plan->packed->f_bytes, &order, 1) : HK_OK;
}

void hk_plan_cuda_enter(void) {
  hk_cu_device here;
  hk_cu_ctx current = NULL;
  if (!hk_cu()->ctx_current(&current) && !current) (void)hk_cu_here(&here);
}

hk_cu_call hk_plan_cuda_call(const hk_plan *plan, const hk_call *call) {
  const hk_cu_weights *w = plan->packed->f;
  const hk_epilogue *e = &plan->task.epi.e;
  hk_plan_cuda_enter();
  return (hk_cu_call){.x = call->x,
                      .f = call->f,
                      .c = call->c,
                      .y = call->y,
                      .scale = !e->scale       ? NULL
                               : w->scale.data ? w->scale.data
                                               : call->scale,
                      .bias = !e->bias       ? NULL
                              : w->bias.data ? w->bias.data
                                             : call->bias,
                      .workspace = call->workspace,
                      .stream = call->stream,
                      .user = call->user};
}

hk_cu_call hk_plan_cuda_raw_call(const hk_plan *plan, const hk_call *call) {
  const hk_cu_weights *w = plan->packed->f;
  hk_cu_call c = hk_plan_cuda_call(plan, call);
  if (plan->task.f_now) c.f = (const char *)w->f.data + w->f_shift * (int64_t)hk_type_bytes(plan->task.geom.f_type);
  return c;
}
