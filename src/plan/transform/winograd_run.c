/* The work of Winograd: each slot takes a run of blocks. A block's pixels are transformed to v[points][bt][C],
 * multiplied by the transformed weights panel by panel into s[points][bt][NR], and transformed back to y. */
#include <string.h>

#include "plan/transform/winograd.h"

#define BT_MAX 256

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_winograd_own *o;
} job;

typedef struct work {
  const job *j;
  int64_t group, first, count; /* tiles of the block */
  float *v, *s;
  const float *rows[BT_MAX];
  _Alignas(HK_ALIGN) float scale[64];
  _Alignas(HK_ALIGN) float bias[64];
  _Alignas(HK_ALIGN) float sums[16 * 64]; /* outputs of a tile on their way through a longer epilogue */
} work;

typedef struct tile {
  int64_t n, p, q;
} tile; /* first output */

static tile tile_at(const hk_winograd_own *o, int64_t i) {
  const int64_t line = i / o->cols;
  return (tile){line / o->rows, line % o->rows * o->m_high, i % o->cols * o->m};
}

static void transform_in(work *w) {
  const hk_winograd_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  const float *x = (const float *)w->j->call->x + w->group * g->x.group;
  const float *px[36];
  const int64_t v_step = hk_winograd_step(w->count, g->c);
  for (int64_t b = 0; b < w->count; b++) {
    const tile at = tile_at(o, w->first + b);
    for (int64_t i = 0; i < (o->line ? 1 : o->t); i++) {
      const int64_t h = at.p - g->lo[1] + i;
      for (int64_t k = 0; k < o->t; k++) {
        const int64_t c = at.q - g->lo[2] + k;
        const bool inside = h >= 0 && h < g->in[1] && c >= 0 && c < g->in[2];
        px[i * o->t + k] = inside ? x + at.n * g->x.outer + h * g->x.at[1] + c * g->x.at[2] : o->zeros;
      }
    }
    o->in->fn(&(hk_winoin_args){.x = px, .line = o->line, .channels = g->c, .v_step = v_step, .v = w->v + b * g->c});
    w->rows[b] = w->v + b * g->c;
  }
}

static void multiply(work *w, const hk_panel *p) {
  const hk_winograd_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  const int64_t width = p->vectors * o->panels.lanes;
  const float *f = (const float *)w->j->plan->packed->f + hk_panels_at(&o->panels, w->group, p);
  static const int64_t from_start = 0;
  hk_igemm_args a = {.rows = w->rows,
                     .row_step = w->count,
                     .count = w->count,
                     .segments = 1,
                     .channels = g->c,
                     .seg = &from_start,
                     .vectors = p->vectors,
                     .columns = width,
                     .flags = HK_IGEMM_SUSPEND};
  for (int64_t i = 0; i < o->points; i++) {
    a.x_at = i * hk_winograd_step(w->count, g->c);
    a.f = f + i * g->c * width;
    a.partial = w->s + i * hk_winograd_step(w->count, width);
    w->j->plan->decision.kernel->fn(&a);
  }
}

/* Outputs of one tile that lie in y, one row of channels each, through everything kernels do not fuse. */
static void store_tile(work *w, const hk_panel *p, const tile *at, int64_t width) {
  const hk_winograd_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  const int lead = 3 - g->rank;
  for (int64_t i = 0; i < o->m_high * o->m; i++) {
    const int64_t r = at->p + i / o->m, c = at->q + i % o->m;
    if (r >= g->out[1] || c >= g->out[2]) continue;
    hk_at to = {.n = at->n, .k = w->group * g->k + p->first, .along_k = 1};
    const int64_t p3[3] = {0, r, c};
    for (int d = lead; d < 3; d++) to.p[d - lead] = p3[d];
    hk_plan_store_row(w->j->plan, w->j->call, &to, p->columns, w->sums + i * width);
  }
}

static void transform_out(work *w, const hk_panel *p) {
  const hk_winograd_own *o = w->j->o;
  const hk_geom *g = &w->j->plan->task.geom;
  const hk_epi *epi = &w->j->plan->task.epi;
  const int64_t width = p->vectors * o->panels.lanes;
  float *y0 = o->fuse.all ? (float *)w->j->call->y + w->group * g->y.group + p->first * g->y.channel : NULL;
  const float *c0 = o->fuse.all && epi->e.residual
                        ? (const float *)w->j->call->c + w->group * epi->c.group + p->first * epi->c.channel
                        : NULL;
  float *y[16];
  const float *c[16];
  hk_winoout_args a = {.line = o->line,
                       .m_step = hk_winograd_step(w->count, width),
                       .columns = p->columns,
                       .flags = o->fuse.flags,
                       .beta = o->fuse.beta,
                       .lo = o->fuse.lo,
                       .hi = o->fuse.hi,
                       .scale = w->scale,
                       .bias = w->bias,
                       .c = c,
                       .y = y};
  for (int64_t b = 0; b < w->count; b++) {
    const tile at = tile_at(o, w->first + b);
    for (int64_t i = 0; i < o->m_high * o->m; i++) {
      const int64_t r = at.p + i / o->m, q = at.q + i % o->m;
      const bool inside = r < g->out[1] && q < g->out[2];
      y[i] = !inside       ? NULL
             : o->fuse.all ? y0 + at.n * g->y.outer + r * g->y.at[1] + q * g->y.at[2]
                           : w->sums + i * width;
      if (c0) c[i] = c0 + at.n * epi->c.outer + r * epi->c.at[1] + q * epi->c.at[2];
    }
    a.m = w->s + b * width;
    o->out->fn(&a);
    if (!o->fuse.all) store_tile(w, p, &at, width);
  }
}

static void body(void *context, int64_t slot) {
  work w;
  const job *j = w.j = context;
  const hk_winograd_own *o = j->o;
  const hk_geom *g = &j->plan->task.geom;
  const int64_t per_group = hk_ceil_div(o->tiles, o->bt);
  w.v = (float *)(void *)(j->call->workspace + (size_t)slot * o->slot_bytes);
  w.s = w.v + o->points * hk_winograd_step(o->bt, g->c);
  for (int64_t i = slot * o->blocks / o->slots; i < (slot + 1) * o->blocks / o->slots; i++) {
    w.group = i / per_group;
    w.first = i % per_group * o->bt;
    w.count = hk_min64(o->bt, o->tiles - w.first);
    transform_in(&w);
    for (int64_t n = 0; n < o->panels.count; n++) {
      const hk_panel p = hk_panels_get(&o->panels, n);
      if (o->fuse.flags & HK_IGEMM_AFFINE)
        hk_fuse_affine(j->plan, j->call, w.group * g->k + p.first, p.columns, p.vectors * o->panels.lanes, w.scale,
                       w.bias);
      multiply(&w, &p);
      transform_out(&w, &p);
    }
  }
}

hk_status hk_winograd_run(const hk_plan *plan, const hk_call *call) {
  job j = {plan, call, plan->own};
  hk_plan_parallel(plan, j.o->slots, body, &j);
  return HK_OK;
}
