/* From a decision to a plan: weights copied and packed, shared between plans made alike, freed with the last. */
#include <string.h>

#include "cuda/cuda.h"
#include "plan/rewrite/rewrite.h"

void hk_packed_release(hk_packed *p) {
  if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
  hk_packed_release(p->next);
  if (p->f_free) p->f_free(p->f);
  else hk_free(p->f);
  hk_free(p->scale);
  hk_free(p->bias);
  hk_free(p->slopes);
  hk_free(p->f_zero);
  hk_free(p);
}

size_t hk_packed_bytes(const hk_packed *p) {
  size_t bytes = 0;
  for (; p; p = p->next) bytes += p->f_bytes;
  return bytes;
}

/* count values, in room for more. false when memory is out; a NULL source is fine. A CUDA plan's weights may lie on
 * either side. */
static bool copy(hk_device device, void **to, const void *from, int64_t count, int64_t room, size_t bytes) {
  if (!from) return true;
  *to = hk_alloc_zero((size_t)room * bytes);
  if (!*to) return false;
  if (device == HK_CUDA) return hk_cu_copy(*to, from, (size_t)count * bytes) == HK_OK;
  memcpy(*to, from, (size_t)count * bytes);
  return true;
}

static hk_packed *packed_make(const hk_task *t, const hk_weights *w) {
  hk_packed *p = hk_alloc_zero(sizeof *p);
  if (!p) return NULL;
  atomic_init(&p->refs, 1);
  const int64_t k = t->geom.k * t->geom.groups;
  const size_t real = t->geom.acc_type == HK_F64 ? 8 : 4;
  const hk_device at = t->options.device;
  /* a rewrite may keep scale for itself, and leave an inner plan that copies it without knowing that it is one value */
  if (w && !(copy(at, &p->scale, w->scale, t->epi.e.scale == 1 ? 1 : k, k, real) &&
             copy(at, &p->bias, w->bias, k, k, real) && copy(at, &p->slopes, w->slopes, k, k, real) &&
             copy(at, (void **)&p->f_zero, w->f_zero, k, k, 4))) {
    hk_packed_release(p);
    return NULL;
  }
  return p;
}

bool hk_plan_shares(const hk_plan *plan) { return plan->share != NULL; }

hk_status hk_plan_keep_layout(hk_plan *plan, size_t bytes, const int64_t *layout, int count) {
  hk_packed *p = plan->packed;
  const hk_decision *d = &plan->decision;
  bool same = p->algo == d->algo && p->kernel == d->kernel && p->f_bytes == bytes;
  for (int i = 0; i < count; i++) same = same && p->layout[i] == layout[i];
  if (hk_plan_shares(plan)) {
    if (same) return HK_OK;
    return hk_fail(HK_UNSUPPORTED,
                   "%s packs the weights of this problem in another order than those of the plan it is made like; "
                   "hk_plan_create makes a plan of its own",
                   d->algo->name);
  }
  p->algo = d->algo, p->kernel = d->kernel, p->f_bytes = bytes;
  for (int i = 0; i < count; i++) p->layout[i] = layout[i];
  return HK_OK;
}

hk_status hk_plan_pack_room(hk_plan *plan, int64_t elements, size_t bytes, const int64_t *layout, int count, void *to) {
  void *none = NULL;
  int64_t all;
  memcpy(to, &none, sizeof none);
  if (!plan->task.f_now) return HK_OK;
  if (!hk_mul_checked(elements, (int64_t)bytes, &all))
    return hk_fail(HK_NO_MEMORY, "no memory for %lld packed weights of %zu bytes", (long long)elements, bytes);
  const hk_status s = hk_plan_keep_layout(plan, (size_t)all, layout, count);
  if (s || hk_plan_shares(plan)) return s;
  plan->packed->f = hk_alloc((size_t)all);
  if (!plan->packed->f) return hk_fail(HK_NO_MEMORY, "no memory for %lld bytes of weights", (long long)all);
  memcpy(to, &plan->packed->f, sizeof none);
  return HK_OK;
}

hk_status hk_plan_copy_weights(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  if (!plan->task.f_now || hk_plan_shares(plan)) return HK_OK;
  const int64_t size[6] = {g->groups, g->k, g->c, g->win[0], g->win[1], g->win[2]};
  const int64_t step[6] = {g->f.group, g->f.outer, g->f.channel, g->f.at[0], g->f.at[1], g->f.at[2]};
  int64_t lo = 0, hi = 0;
  for (int i = 0; i < 6; i++) {
    if (size[i] == 0) return HK_OK;
    *(step[i] > 0 ? &hi : &lo) += (size[i] - 1) * step[i];
  }
  const size_t bytes = hk_type_bytes(g->f_type);
  plan->packed->f_bytes = (size_t)(hi - lo + 1) * bytes;
  plan->packed->f = hk_alloc(plan->packed->f_bytes);
  if (!plan->packed->f) return hk_fail(HK_NO_MEMORY, "no memory for %zu bytes of weights", plan->packed->f_bytes);
  memcpy(plan->packed->f, (const char *)plan->raw_f + lo * (int64_t)bytes, plan->packed->f_bytes);
  plan->packed->f_shift = -lo;
  return HK_OK;
}

hk_status hk_plan_build(hk_plan **out, const hk_task *task, const hk_decision *d, const hk_weights *w,
                        const hk_plan *like) {
  const hk_geom *g = &task->geom;
  const char *f = w ? w->f : NULL;
  return hk_plan_build_at(out, task, d, w, f ? f + g->f.offset * (int64_t)hk_type_bytes(g->f_type) : NULL, like);
}

hk_status hk_plan_build_at(hk_plan **out, const hk_task *task, const hk_decision *d, const hk_weights *w, const void *f,
                           const hk_plan *like) {
  hk_plan *plan = hk_alloc_zero(sizeof *plan);
  if (!plan) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  plan->task = *task;
  plan->decision = *d;
  plan->error_factor = d->algo->error_factor;
  plan->source = "estimate";
  plan->act = hk_kernel_best(HK_FAMILY_ACT, d->isa);
  plan->map = hk_kernel_best(HK_FAMILY_MAP, d->kernel && d->kernel->isa == HK_ISA_SCALAR ? HK_ISA_SCALAR : d->isa);
  plan->narrow = hk_kernel_convert(HK_F32, task->geom.y_type, d->isa);
  plan->wide = hk_kernel_convert(task->geom.y_type, HK_F32, d->isa);
  if (like) {
    plan->packed = like->packed;
    atomic_fetch_add(&plan->packed->refs, 1);
    plan->share = like->packed;
  } else {
    plan->packed = packed_make(task, w);
  }
  hk_status s = plan->packed ? HK_OK : hk_fail(HK_NO_MEMORY, "no memory for the weights");
  plan->raw_f = f;
  if (!s) s = d->depth ? hk_rewrite_build(plan) : d->algo->build(plan);
  plan->raw_f = NULL;
  plan->share = NULL;
  if (s) {
    hk_plan_destroy(plan);
    return s;
  }
  hk_plan_short_way(plan);
  hk_plan_log_trace(plan);
  *out = plan;
  return HK_OK;
}

void hk_plan_destroy(hk_plan *plan) {
  if (!plan) return;
  if (plan->decision.depth) hk_rewrite_destroy(plan);
  else if (plan->decision.algo->destroy) plan->decision.algo->destroy(plan);
  hk_packed_release(plan->packed);
  hk_free(plan);
}
