/* The epilogue of the dense algorithms: what kernels do in registers, and the way of everything else. */
#include <math.h>
#include <string.h>

#include "plan/dense/dense.h"

/* adjacent: what a kernel writes at once lies next to each other in y and in the residual. */
static hk_fuse fuse_make(const hk_task *task, bool adjacent) {
  const hk_epilogue *e = &task->epi.e;
  hk_fuse f = {.lo = -INFINITY, .hi = INFINITY, .beta = e->beta};
  f.all = task->epi.simple && task->geom.y_type == HK_F32 && adjacent;
  if (!f.all) return f;
  if (e->scale || e->bias) f.flags |= HK_IGEMM_AFFINE;
  if (e->residual) f.flags |= e->residual == HK_RESIDUAL_AFTER ? HK_IGEMM_AFTER : HK_IGEMM_BEFORE;
  if (e->act != HK_ACT_NONE) {
    f.flags |= HK_IGEMM_CLAMP;
    const bool unset = e->act == HK_ACT_HARDTANH && e->a == 0 && e->b == 0;
    f.lo = e->act == HK_ACT_RELU ? 0.0f : unset ? -1.0f : e->a;
    f.hi = e->act == HK_ACT_RELU ? INFINITY : unset ? 1.0f : e->b;
  }
  return f;
}

hk_fuse hk_fuse_make(const hk_task *task, bool along_k) {
  const hk_geom *g = &task->geom;
  const bool unit_y = g->y.channel == 1 || g->k == 1;
  const bool unit_c = !task->epi.e.residual || task->epi.c.channel == 1 || g->k == 1;
  return fuse_make(task, !along_k || (unit_y && unit_c));
}

hk_fuse hk_fuse_make_late(const hk_task *task) {
  hk_fuse f = hk_fuse_make(task, true);
  const hk_epilogue *e = &task->epi.e;
  if (f.all || e->gate != HK_GATE_NONE || e->act == HK_ACT_NONE || e->act == HK_ACT_USER || e->user2 || e->store ||
      e->residual == HK_RESIDUAL_AFTER)
    return f;
  hk_task linear = *task;
  linear.epi.e.act = HK_ACT_NONE;
  linear.epi.simple = true;
  f = hk_fuse_make(&linear, true);
  if (f.all) f.late = e->act;
  return f;
}

void hk_fuse_late(const hk_plan *plan, const hk_fuse *fuse, int64_t first, int64_t count, float *y, int64_t step,
                  int64_t rows) {
  if (fuse->late == HK_ACT_NONE) return;
  const hk_epilogue *e = &plan->task.epi.e;
  hk_act_args a = {.act = fuse->late, .a = e->a, .b = e->b, .count = count};
  if (a.act == HK_ACT_PRELU) a.slope = (const float *)plan->packed->slopes + first, a.slope_step = 1;
  else if (step == count) a.count *= rows, rows = 1; /* rows without a gap are one */
  for (int64_t r = 0; r < rows; r++) {
    a.v = a.y = y + r * step;
    plan->act->fn(&a);
  }
}

hk_fuse hk_fuse_make_transposed(const hk_task *task) { return fuse_make(task, !task->epi.e.residual); }

void hk_fuse_affine(const hk_plan *plan, const hk_call *call, int64_t first, int64_t columns, int64_t width,
                    float *scale, float *bias) {
  const hk_epilogue *e = &plan->task.epi.e;
  const float *s = call->scale, *b = call->bias;
  for (int64_t j = 0; j < width; j++) {
    const bool real = j < columns;
    scale[j] = e->scale == 0 || !real ? 1.0f : e->scale == 1 ? s[0] : s[first + j];
    bias[j] = e->bias && real ? b[first + j] : 0.0f;
  }
}

void hk_block_store(const hk_plan *plan, const hk_call *call, const hk_block *b, int64_t k, int64_t columns,
                    float *sums, int64_t width) {
  const int lead = 3 - plan->task.geom.rank;
  for (int32_t i = 0; i < b->runs; i++) {
    const hk_run *r = &b->run[i];
    for (int64_t j = 0; j < r->count; j++) {
      hk_at at = {.n = r->n, .k = k, .along_k = 1};
      for (int d = lead; d < 3; d++) at.p[d - lead] = r->p[d];
      at.p[2 - lead] += j * b->grid->step[2];
      hk_plan_store_row(plan, call, &at, columns, sums + (r->m + j) * width);
    }
  }
}

bool hk_block_adjacent(const hk_block *b, const hk_strides *s) {
  if (b->count == 1) return true;
  if (s->at[2] * b->grid->step[2] != 1) return false;
  int64_t next = hk_run_offset(b, &b->run[0], s, 0);
  for (int32_t i = 0; i < b->runs; next += b->run[i].count, i++)
    if (hk_run_offset(b, &b->run[i], s, 0) != next) return false;
  return true;
}

void hk_block_store_planes(const hk_plan *plan, const hk_call *call, const hk_block *b, int64_t k, int64_t channels,
                           float *sums, int64_t width) {
  const int lead = 3 - plan->task.geom.rank;
  const int64_t step = b->grid->step[2];
  for (int64_t m = 0; m < channels; m++) {
    for (int32_t i = 0; i < b->runs; i++) {
      const hk_run *r = &b->run[i];
      hk_at at = {.n = r->n, .k = k + m};
      for (int d = lead; d < 3; d++) at.p[d - lead] = r->p[d];
      if (step == 1) {
        hk_plan_store_row(plan, call, &at, r->count, sums + m * width + r->m);
        continue;
      }
      for (int32_t j = 0; j < r->count; j++, at.p[2 - lead] += step)
        hk_plan_store_row(plan, call, &at, 1, sums + m * width + r->m + j);
    }
  }
}
