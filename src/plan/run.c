/* Running a plan: arguments checked against what the plan needs, floating-point mode set and restored on every thread
 * that works, the work handed to the pool or the caller's loop. Nothing here allocates. */
#include "plan/rewrite/rewrite.h"

typedef struct wrapped {
  hk_body body;
  void *context;
  bool flush;
} wrapped;

static void call_body(void *context, int64_t i) {
  const wrapped *w = context;
  const uint64_t mode = hk_fp_set(w->flush);
  w->body(w->context, i);
  hk_fp_restore(mode);
}

void hk_plan_parallel(const hk_plan *plan, int64_t count, hk_body body, void *context) {
  const hk_options *o = &plan->task.options;
  if (count <= 1 || (plan->task.threads == 1 && !o->parallel_for)) {
    for (int64_t i = 0; i < count; i++) body(context, i);
    return;
  }
  wrapped w = {body, context, o->denormals == HK_DENORMALS_FLUSH};
  if (o->parallel_for) o->parallel_for(o->pool, count, call_body, &w);
  else hk_pool_run(plan->task.threads, count, call_body, &w);
}

static bool misaligned(const void *p, size_t bytes) { return ((uintptr_t)p & (bytes - 1)) != 0; }

static hk_status check_pointer(const char *name, const void *p, size_t bytes) {
  if (!p) return hk_fail(HK_INVALID, "args.%s is NULL", name);
  if (misaligned(p, bytes)) return hk_fail(HK_INVALID, "args.%s must be aligned to its element size %zu", name, bytes);
  return HK_OK;
}

static hk_status check_parameters(const hk_plan *plan, const hk_args *a, hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  const hk_epilogue *e = &plan->task.epi.e;
  const size_t real = g->acc_type == HK_F64 ? 8 : 4;
  hk_status s;
  call->scale = plan->packed->scale ? plan->packed->scale : a->scale;
  call->bias = plan->packed->bias ? plan->packed->bias : a->bias;
  const bool any = g->k > 0; /* without channels there is nothing to scale, and NULL is as good as any address */
  if (e->scale && any && (s = check_pointer("scale", call->scale, real))) return s;
  if (e->bias && any && (s = check_pointer("bias", call->bias, real))) return s;
  if (plan->decision.workspace_bytes) {
    if (!a->workspace || a->workspace_bytes < plan->decision.workspace_bytes)
      return hk_fail(HK_WORKSPACE, "args.workspace needs %zu bytes, %zu were given", plan->decision.workspace_bytes,
                     a->workspace ? a->workspace_bytes : 0);
    if (misaligned(a->workspace, HK_ALIGN)) return hk_fail(HK_WORKSPACE, "args.workspace must be 64-byte aligned");
  }
  if (plan->task.options.stateful) {
    const size_t xb = hk_type_bytes(g->x_type);
    if (misaligned(a->state_in, xb) || misaligned(a->state_out, xb))
      return hk_fail(HK_INVALID, "args.state_in and state_out must be aligned to their element size %zu", xb);
  } else if (a->state_in || a->state_out) {
    return hk_fail(HK_INVALID, "args.state_in and state_out need a plan made with options.stateful");
  }
  return HK_OK;
}

/* What stands for an empty x or f, and for the y of a store function: algorithms count offsets from them that they
 * never read or write, which from NULL is undefined. On a device they stay NULL. */
static const _Alignas(HK_ALIGN) char nowhere[HK_ALIGN];

static hk_status check_tensors(const hk_plan *plan, const hk_args *a, hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  const hk_epi *epi = &plan->task.epi;
  const size_t xb = hk_type_bytes(g->x_type), fb = hk_type_bytes(g->f_type), yb = hk_type_bytes(g->y_type);
  hk_status s;
  const bool empty = g->gm == 0 || g->y_channels == 0;
  if (plan->task.options.device == HK_CPU) call->x = call->f = nowhere, call->y = (char *)(uintptr_t)nowhere;
  const bool reads_f = g->gk && !empty, has_x = g->gk && g->in[0] && g->in[1] && g->in[2] && g->n;
  if (has_x && (!empty || plan->task.options.stateful)) {
    if ((s = check_pointer("x", a->x, xb))) return s;
    call->x = (const char *)a->x + g->x.offset * (int64_t)xb;
  }
  if (reads_f) {
    if (plan->task.f_now) {
      call->f = (const char *)plan->packed->f + plan->packed->f_shift * (int64_t)fb;
    } else {
      if ((s = check_pointer("f", a->f, fb))) return s;
      call->f = (const char *)a->f + g->f.offset * (int64_t)fb;
    }
  }
  if (empty) return HK_OK;
  if (!epi->e.store && !epi->e.cuda_store) {
    if ((s = check_pointer("y", a->y, yb))) return s;
    call->y = (char *)a->y + g->y.offset * (int64_t)yb;
  }
  if (epi->e.residual) {
    if ((s = check_pointer("c", a->c, yb))) return s;
    call->c = (const char *)a->c + epi->c.offset * (int64_t)yb;
  }
  return HK_OK;
}

hk_status hk_plan_run(const hk_plan *plan, const hk_call *call) { return plan->short_way.run(plan, call); }

void hk_plan_short_way(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  const hk_epilogue *e = &plan->task.epi.e;
  const hk_packed *p = plan->packed;
  const int64_t xb = (int64_t)hk_type_bytes(g->x_type), fb = (int64_t)hk_type_bytes(g->f_type),
                yb = (int64_t)hk_type_bytes(g->y_type);
  hk_short_way *w = &plan->short_way;
  w->open = g->gm && g->y_channels && g->gk && g->in[0] && g->in[1] && g->in[2] && g->n && plan->task.f_now && p->f &&
            !plan->task.options.stateful && !plan->decision.workspace_bytes && !e->store && !e->cuda_store &&
            !e->residual && (!e->scale || p->scale) && (!e->bias || p->bias);
  w->x_mask = (uintptr_t)xb - 1;
  w->y_mask = (uintptr_t)yb - 1;
  w->x_bytes = g->x.offset * xb;
  w->y_bytes = g->y.offset * yb;
  if (w->open) w->f = (const char *)p->f + p->f_shift * fb;
  w->scale = p->scale;
  w->bias = p->bias;
  w->run = plan->decision.depth ? plan->decision.path[0]->run : plan->decision.algo->run;
  w->flush = plan->task.options.denormals == HK_DENORMALS_FLUSH;
}

/* The checks that remain on the short way; whatever fails them is told by those of the long one. */
static bool short_way(const hk_short_way *w, const hk_args *a) {
  if (!w->open || !a || a->size != sizeof *a || !a->x || !a->y) return false;
  const uintptr_t wrong = ((uintptr_t)a->x & w->x_mask) | ((uintptr_t)a->y & w->y_mask);
  return !(wrong | (uintptr_t)a->state_in | (uintptr_t)a->state_out | hk_log_maybe(HK_LOG_EXEC));
}

/* What a plan reads of a call on this way; its other pointers are its own, or nobody's. */
static __attribute__((noinline)) hk_status execute_short(const hk_plan *plan, const hk_args *a) {
  const hk_short_way *w = &plan->short_way;
  hk_call call; /* field by field: small calls would feel the rest being cleared twice */
  call.x = (const char *)a->x + w->x_bytes;
  call.f = w->f;
  call.c = NULL;
  call.y = (char *)a->y + w->y_bytes;
  call.scale = w->scale;
  call.bias = w->bias;
  call.workspace = NULL;
  call.state_in = NULL;
  call.state_out = NULL;
  call.stream = a->stream;
  call.user = a->user;
  call.prepared = false;
  const uint64_t mode = hk_fp_set(w->flush);
  const hk_status s = w->run(plan, &call);
  hk_fp_restore(mode);
  return s;
}

static __attribute__((noinline)) hk_status execute_long(const hk_plan *plan, const hk_args *a) {
  hk_args room;
  if (!(a = hk_take(a, &room, sizeof room, "args"))) return HK_INVALID;
  hk_call call = {.workspace = a->workspace,
                  .state_in = a->state_in,
                  .state_out = a->state_out,
                  .stream = a->stream,
                  .user = a->user};
  hk_status s;
  const hk_geom *g = &plan->task.geom;
  const bool empty = g->gm == 0 || g->y_channels == 0;
  if (empty && !plan->task.options.stateful) return HK_OK;
  if ((s = check_tensors(plan, a, &call)) || (s = check_parameters(plan, a, &call))) return s;
  const double start = hk_log_on(HK_LOG_EXEC) ? hk_clock() : 0;
  const uint64_t mode = hk_fp_set(plan->task.options.denormals == HK_DENORMALS_FLUSH);
  s = hk_plan_run(plan, &call);
  hk_fp_restore(mode);
  if (start != 0) hk_plan_log_exec(plan, hk_clock() - start);
  return s;
}

hk_status hk_plan_execute(const hk_plan *plan, const hk_args *a) {
  if (!plan) return hk_fail(HK_INVALID, "plan is NULL");
  const hk_short_way *w = &plan->short_way;
  if (!short_way(w, a)) return execute_long(plan, a);
  if (w->run_xy && hk_fp_is(w->flush))
    return w->run_xy(plan, (const char *)a->x + w->x_bytes, (char *)a->y + w->y_bytes);
  return execute_short(plan, a);
}
