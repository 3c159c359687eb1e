/* Packed weights of the dense algorithms: see dense.h for the layout. */
#include <string.h>

#include "plan/dense/dense.h"

static int64_t panel_count(const hk_kernel *kernel, const hk_panels *s) {
  return hk_ceil_div(s->vectors, kernel->nr / s->lanes);
}

hk_panels hk_panels_make(const hk_geom *g, const hk_kernel *kernel, int64_t bk) {
  const bool dot = kernel->family == HK_FAMILY_DOT;
  hk_panels s = {
      .lanes = dot ? 1 : hk_isa_lanes(kernel->isa), .dot = dot, .k = g->k, .taps = g->taps, .c = g->c, .bk = bk};
  s.vectors = hk_ceil_div(g->k, s.lanes);
  s.count = panel_count(kernel, &s);
  s.group_size = s.vectors * s.lanes * s.taps * s.c;
  return s;
}

int64_t hk_panels_tail(const hk_geom *g, const hk_kernel *kernel) {
  const int64_t lanes = hk_isa_lanes(kernel->isa), left = g->k % lanes;
  return kernel->family == HK_FAMILY_DOT || lanes < 8 || g->k < lanes || left > 3 ? 0 : left;
}

bool hk_panels_tail_pays(const hk_geom *g, const hk_kernel *kernel) {
  const int64_t lanes = hk_isa_lanes(kernel->isa), left = hk_panels_tail(g, kernel);
  if (left == 0 || g->c <= 16) return false;
  /* vectors of products per pixel: along the inputs, with a sum across lanes, against one for each of gk */
  const double along = g->taps == 1 ? 1.2 * (double)hk_ceil_div(g->c, lanes) + 6
                                    : 1.5 * (double)(g->taps * hk_ceil_div(g->c, lanes)) + 10;
  return (double)left * along <= 0.8 * (double)g->gk;
}

void hk_panels_cut_tail(hk_panels *s, const hk_kernel *kernel, int64_t tail) {
  if (!tail) return;
  s->tail = tail;
  s->vectors--;
  s->count = panel_count(kernel, s) + 1;
  s->group_size = (s->vectors * s->lanes + tail) * s->taps * s->c;
}

hk_panel hk_panels_get(const hk_panels *s, int64_t index) {
  const int64_t whole = s->count - (s->tail > 0), k = s->k - s->tail;
  if (index == whole) return (hk_panel){.first = k, .columns = s->tail, .vectors = s->tail, .lanes = 1, .dot = true};
  const int64_t each = s->vectors / whole, more = s->vectors % whole;
  const int64_t first = index * each + hk_min64(index, more);
  hk_panel p = {.first = first * s->lanes, .vectors = each + (index < more), .lanes = s->lanes, .dot = s->dot};
  p.columns = hk_min64(p.vectors * s->lanes, k - p.first);
  return p;
}

void hk_panel_pack(const hk_geom *g, const hk_panel *p, const float *f, const hk_panel_piece *piece, float *to) {
  const int64_t width = p->vectors * p->lanes, cl = piece->cl;
  f += p->first * g->f.outer + piece->c0 * g->f.channel;
  for (int64_t t = piece->t0; t < piece->t1; t++) {
    const int64_t s2 = t % g->win[2], s1 = t / g->win[2] % g->win[1], s0 = t / g->win[2] / g->win[1];
    const float *from = f + s0 * g->f.at[0] + s1 * g->f.at[1] + s2 * g->f.at[2];
    for (int64_t j = 0; p->dot && j < width; j++) {
      for (int64_t c = 0; c < cl; c++) *to++ = from[j * g->f.outer + c * g->f.channel];
    }
    for (int64_t c = 0; !p->dot && c < cl; c++, from += g->f.channel, to += width) {
      for (int64_t j = 0; j < p->columns; j++) to[j] = from[j * g->f.outer];
      for (int64_t j = p->columns; j < width; j++) to[j] = 0.0f;
    }
  }
}

typedef struct pack_job {
  const hk_geom *g;
  const hk_panels *s;
  const float *f;
  float *to;
} pack_job;

static void pack_body(void *context, int64_t i) {
  const pack_job *j = context;
  const hk_panels *s = j->s;
  const hk_panel p = hk_panels_get(s, i % s->count);
  float *to = j->to + hk_panels_at(s, i / s->count, &p);
  for (int64_t c0 = 0; c0 < s->c; c0 += s->bk) {
    const hk_panel_piece piece = {0, s->taps, c0, hk_min64(s->bk, s->c - c0)};
    hk_panel_pack(j->g, &p, j->f + i / s->count * j->g->f.group, &piece, to + c0 * s->taps * p.vectors * p.lanes);
  }
}

void hk_panels_pack(const hk_plan *plan, const hk_panels *s, const float *f, float *to) {
  pack_job j = {&plan->task.geom, s, f, to};
  hk_plan_parallel(plan, s->count * plan->task.geom.groups, pack_body, &j);
}
