/* From the sums of a block and panel of dots to y. */
#include <string.h>

#include "plan/dense/dots.h"
#include "plan/dense/tiles.h"

hk_fuse hk_dots_fuse(const hk_task *t) {
  hk_task plain = *t;
  plain.geom.y_type = HK_F32;
  return t->geom.y.channel == 1 || t->geom.k == 1 ? hk_fuse_make(&plain, true) : hk_fuse_make_transposed(&plain);
}

hk_dots_store hk_dots_choose_store(const hk_task *t) {
  const hk_geom *g = &t->geom;
  const bool along_k = g->y.channel == 1 || g->k == 1;
  const bool takes = g->y_type == HK_F32 || g->y_type == HK_BF16 || g->y_type == HK_F16;
  if (g->acc_type == HK_S32) {
    if (!t->epi.simple || t->epi.e.residual || !hk_type_is_int8(g->y_type)) return HK_DOTS_DOUBLES;
    return along_k ? HK_DOTS_REQUANT : HK_DOTS_REQUANT_PLANES;
  }
  if (takes && hk_dots_fuse(t).all) return along_k ? HK_DOTS_FINISH : HK_DOTS_FINISH_PLANES;
  return along_k || hk_grid_count(g) > 1 ? HK_DOTS_ROWS : HK_DOTS_PLANES;
}

/* Element of a tensor laid out as s that pixel 0 of a run has for channel k. */
static int64_t run_at(const hk_dots_panel *p, const hk_run *r, const hk_strides *s) {
  return hk_geom_y_channel(&p->plan->task.geom, s, p->k) + hk_run_offset(p->block, r, s, 0);
}

/* To y, or to rows of p->columns elements. */
static void finish(const hk_dots_own *o, const hk_dots_panel *p, char *rows) {
  const hk_geom *g = &p->plan->task.geom;
  const hk_epi *epi = &p->plan->task.epi;
  const int64_t bytes = (int64_t)hk_type_bytes(g->y_type), step = p->block->grid->step[2] * bytes;
  const char *c[HK_BLOCK_MAX];
  char *y[HK_BLOCK_MAX];
  _Alignas(HK_ALIGN) float scale[HK_DOTS_WIDTH], bias[HK_DOTS_WIDTH];
  if (o->fuse.flags & HK_IGEMM_AFFINE) hk_fuse_affine(p->plan, p->call, p->k, p->columns, p->width, scale, bias);
  for (int32_t m = 0; rows && m < p->block->count; m++) y[m] = rows + m * p->columns * bytes;
  for (int32_t i = 0; !rows && i < p->block->runs; i++) {
    const hk_run *r = &p->block->run[i];
    char *to = p->call->y + run_at(p, r, &g->y) * bytes;
    const char *from = epi->e.residual ? p->call->c + run_at(p, r, &epi->c) * bytes : NULL;
    for (int32_t m = 0; m < r->count; m++) y[r->m + m] = to + m * step * g->y.at[2];
    for (int32_t m = 0; from && m < r->count; m++) c[r->m + m] = from + m * step * epi->c.at[2];
  }
  hk_finish_args a = {.sums = p->sums, .width = p->width, .count = p->block->count, .columns = p->columns};
  a.flags = o->fuse.flags, a.y_type = g->y_type, a.beta = o->fuse.beta, a.lo = o->fuse.lo, a.hi = o->fuse.hi;
  a.scale = scale, a.bias = bias, a.c = c, a.y = y;
  o->finish->fn(&a);
}

/* count rows of p->columns finished elements to planes of y, whose pixels are `step` apart. */
static void turn(const hk_dots_own *o, const hk_dots_panel *p, const char *from, int64_t count, int64_t step, char *y) {
  const hk_geom *g = &p->plan->task.geom;
  const int64_t bytes = (int64_t)hk_type_bytes(g->y_type), planes = g->y.channel, columns = p->columns;
  if (step != 1 && count > 1) {
    for (int64_t j = 0; j < columns; j++)
      for (int64_t m = 0; m < count; m++)
        memcpy(y + (j * planes + m * step) * bytes, from + (m * columns + j) * bytes, (size_t)bytes);
  } else if (bytes == 4) {
    const float *rows = (const float *)(const void *)from;
    o->transpose->fn(&(hk_transpose_args){rows, (float *)(void *)y, columns, planes, count, columns});
  } else {
    o->transpose->fn(&(hk_transpose_narrow_args){from, y, columns, planes, count, columns});
  }
}

static void to_planes(const hk_dots_own *o, const hk_dots_panel *p, const char *rows) {
  const hk_geom *g = &p->plan->task.geom;
  const int64_t bytes = (int64_t)hk_type_bytes(g->y_type), step = p->block->grid->step[2] * g->y.at[2];
  const bool whole = hk_block_adjacent(p->block, &g->y);
  for (int32_t i = 0; i < (whole ? 1 : p->block->runs); i++) {
    const hk_run *r = &p->block->run[i];
    turn(o, p, rows + r->m * p->columns * bytes, whole ? p->block->count : r->count, step,
         p->call->y + run_at(p, r, &g->y) * bytes);
  }
}

static void finish_planes(const hk_dots_own *o, const hk_dots_panel *p) {
  float rows[HK_DOTS_SUMS];
  finish(o, p, (char *)rows);
  to_planes(o, p, (const char *)rows);
}

static void planes(const hk_dots_own *o, const hk_dots_panel *p) {
  float turned[HK_DOTS_SUMS];
  o->transpose->fn(&(hk_transpose_args){p->sums, turned, p->width, p->block->count, p->block->count, p->columns});
  hk_block_store_planes(p->plan, p->call, p->block, p->k, p->columns, turned, p->block->count);
}

/* ---- 8 bits */
/* The terms of hk_dots_int that do not depend on the pixel, and the caller's bias where `with` it. */
static void offsets(const hk_dots_own *o, const hk_dots_panel *p, bool with, int32_t *to) {
  const hk_geom *g = &p->plan->task.geom;
  const int32_t *f_zero = p->plan->packed->f_zero, *bias = p->call->bias;
  const uint32_t u = (uint32_t)o->q.u_zero, gk = (uint32_t)g->gk;
  for (int64_t j = 0; j < p->columns; j++) {
    const uint32_t w = (uint32_t)((f_zero ? f_zero[p->k + j] : g->f_zero) - o->q.f_shift);
    to[j] = (int32_t)(gk * u * w - u * (uint32_t)p->f_sums[j] + (with ? (uint32_t)bias[p->k + j] : 0));
  }
}

/* - w_zero * sum u */
static void take_windows(const hk_dots_own *o, const hk_dots_panel *p) {
  const hk_geom *g = &p->plan->task.geom;
  const int32_t *f_zero = p->plan->packed->f_zero;
  int32_t *sums = p->sums;
  for (int64_t m = 0; m < p->block->count; m++, sums += p->width)
    for (int64_t j = 0; j < p->columns; j++) {
      const int32_t w = (f_zero ? f_zero[p->k + j] : g->f_zero) - o->q.f_shift;
      sums[j] = (int32_t)((uint32_t)sums[j] - (uint32_t)w * (uint32_t)p->x_sums[m * p->x_sums_step]);
    }
}

static void scales(const hk_dots_panel *p, float *to) {
  const hk_epilogue *e = &p->plan->task.epi.e;
  const float *scale = p->call->scale;
  for (int64_t j = 0; j < p->columns; j++) to[j] = e->scale == 2 ? scale[p->k + j] : e->scale ? scale[0] : 1.0f;
}

static void requant(const hk_dots_own *o, const hk_dots_panel *p, uint8_t *rows) {
  const hk_geom *g = &p->plan->task.geom;
  const hk_epilogue *e = &p->plan->task.epi.e;
  int32_t bias[HK_DOTS_WIDTH];
  float scale[HK_DOTS_WIDTH];
  uint8_t *y[HK_BLOCK_MAX];
  offsets(o, p, e->bias, bias);
  scales(p, scale);
  for (int32_t i = 0; i < p->block->runs; i++) {
    const hk_run *r = &p->block->run[i];
    uint8_t *to = rows ? NULL : (uint8_t *)p->call->y + run_at(p, r, &g->y);
    for (int32_t m = 0; m < r->count; m++)
      y[r->m + m] = rows ? rows + (r->m + m) * p->columns : to + m * p->block->grid->step[2] * g->y.at[2];
  }
  hk_requant_args a = {.sums = p->sums, .bias = bias, .scale = scale, .width = p->width};
  a.count = p->block->count, a.columns = p->columns, a.y_type = g->y_type, a.y = y, a.zero = g->y_zero;
  hk_tiles_bounds(e, &a.lo, &a.hi);
  o->finish->fn(&a);
}

static void requant_planes(const hk_dots_own *o, const hk_dots_panel *p) {
  uint8_t rows[HK_DOTS_SUMS];
  requant(o, p, rows);
  to_planes(o, p, (const char *)rows);
}

static void doubles(const hk_dots_own *o, const hk_dots_panel *p) {
  const hk_epilogue *e = &p->plan->task.epi.e;
  const int lead = 3 - p->plan->task.geom.rank;
  int32_t bias[HK_DOTS_WIDTH];
  float scale[HK_DOTS_WIDTH];
  double v[HK_DOTS_WIDTH];
  offsets(o, p, e->bias, bias);
  scales(p, scale);
  for (int32_t i = 0; i < p->block->runs; i++) {
    const hk_run *r = &p->block->run[i];
    for (int64_t m = 0; m < r->count; m++) {
      const int32_t *sums = (const int32_t *)p->sums + (r->m + m) * p->width;
      for (int64_t j = 0; j < p->columns; j++) {
        v[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)bias[j]);
        if (e->scale) v[j] *= scale[j];
      }
      hk_at at = {.n = r->n, .k = p->k, .along_k = 1};
      for (int d = lead; d < 3; d++) at.p[d - lead] = r->p[d];
      at.p[2 - lead] += m * p->block->grid->step[2];
      hk_tiles_finish(p->plan, p->call, &at, p->columns, v);
    }
  }
}

void hk_dots_store_panel(const hk_dots_own *o, const hk_dots_panel *p) {
  if (p->x_sums) take_windows(o, p);
  switch (o->store) {
  case HK_DOTS_FINISH: finish(o, p, NULL); return;
  case HK_DOTS_FINISH_PLANES: finish_planes(o, p); return;
  case HK_DOTS_REQUANT: requant(o, p, NULL); return;
  case HK_DOTS_REQUANT_PLANES: requant_planes(o, p); return;
  case HK_DOTS_DOUBLES: doubles(o, p); return;
  case HK_DOTS_PLANES: planes(o, p); return;
  case HK_DOTS_ROWS: hk_block_store(p->plan, p->call, p->block, p->k, p->columns, p->sums, p->width); return;
  }
}
