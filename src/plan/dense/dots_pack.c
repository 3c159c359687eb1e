/* Packed weights of dots: see hk_dots_layout. */
#include <string.h>

#include "plan/dense/dots.h"

hk_dots_layout hk_dots_layout_of(const hk_geom *g, const hk_kernel *kernel, bool merged) {
  hk_dots_layout l = {.each = 4 / (int64_t)hk_type_bytes(kernel->f_type)};
  l.segments = merged ? g->taps / g->win[2] : g->taps;
  l.channels = merged ? g->c * g->win[2] : g->c;
  l.panels = hk_panels_make(g, kernel, 0);
  l.panels.taps = l.segments;
  l.panels.c = l.panels.bk = hk_dots_groups(kernel->isa, hk_ceil_div(l.channels, l.each));
  l.columns = l.panels.vectors * l.panels.lanes;
  l.panels.group_size = l.columns * l.panels.taps * l.panels.c;
  l.f_bytes = (size_t)(g->groups * l.panels.group_size * 4);
  if (g->acc_type != HK_S32) return l;
  l.sums_bytes = (size_t)(g->groups * l.columns) * sizeof(int32_t);
  l.ones_bytes = (size_t)(l.panels.taps * l.panels.c * l.panels.lanes * 4);
  return l;
}

typedef struct job {
  const hk_geom *g;
  const hk_dots_layout *l;
  const char *f;
  char *to;
  uint8_t flip;
} job;

/* Where channel i of a segment lies in f: the channels of merged windows follow each other tap by tap. */
static int64_t place(const job *j, int64_t segment, int64_t i) {
  const hk_geom *g = j->g;
  const int64_t tap = j->l->segments == g->taps ? segment : segment * g->win[2] + i / g->c, c = i % g->c;
  const int64_t s2 = tap % g->win[2], s1 = tap / g->win[2] % g->win[1], s0 = tap / g->win[2] / g->win[1];
  return s0 * g->f.at[0] + s1 * g->f.at[1] + s2 * g->f.at[2] + c * g->f.channel;
}

/* One group of channels of one segment, for all columns of a panel. */
static void pack_halves(const job *j, const char *f, int64_t columns, char *to) {
  const int64_t step = 2 * j->g->f.outer;
  for (int64_t k = 0; k < columns; k++) memcpy(to + 4 * k, f + k * step, 2);
}

static void pack_bytes(const job *j, const char *f, int64_t columns, char *to, int32_t *sums) {
  for (int64_t k = 0; k < columns; k++) {
    const int8_t w = (int8_t)((uint8_t)f[k * j->g->f.outer] ^ j->flip);
    to[4 * k] = (char)w;
    sums[k] = (int32_t)((uint32_t)sums[k] + (uint32_t)(int32_t)w);
  }
}

static void pack_panel(void *context, int64_t index) {
  const job *j = context;
  const hk_geom *g = j->g;
  const hk_dots_layout *l = j->l;
  const int64_t group = index / l->panels.count, bytes = 4 / l->each;
  const hk_panel p = hk_panels_get(&l->panels, index % l->panels.count);
  const int64_t width = p.vectors * p.lanes;
  char *to = j->to + hk_panels_at(&l->panels, group, &p) * 4;
  const char *f = j->f + (group * g->f.group + p.first * g->f.outer) * bytes;
  int32_t *sums = (int32_t *)(void *)(j->to + l->f_bytes) + group * l->columns + p.first;
  memset(to, 0, (size_t)(width * l->panels.taps * l->panels.c * 4));
  if (l->sums_bytes) memset(sums, 0, (size_t)width * sizeof *sums);
  for (int64_t t = 0; t < l->segments; t++, to += width * l->panels.c * 4)
    for (int64_t i = 0; i < l->channels; i++) {
      char *at = to + i / l->each * width * 4 + i % l->each * bytes;
      if (l->sums_bytes) pack_bytes(j, f + place(j, t, i), p.columns, at, sums);
      else pack_halves(j, f + 2 * place(j, t, i), p.columns, at);
    }
}

void hk_dots_pack(const hk_plan *plan, const hk_dots_layout *l, int32_t f_shift, const void *f, void *to) {
  job j = {&plan->task.geom, l, f, to, f_shift ? 0x80 : 0};
  hk_plan_parallel(plan, plan->task.geom.groups * l->panels.count, pack_panel, &j);
  char *ones = (char *)to + l->f_bytes + l->sums_bytes;
  if (!l->ones_bytes) return;
  memset(ones, 0, l->ones_bytes);
  for (int64_t t = 0; t < l->segments; t++, ones += l->panels.c * l->panels.lanes * 4)
    for (int64_t i = 0; i < l->channels; i++)
      for (int64_t k = 0; k < l->panels.lanes; k++) ones[(i / 4 * l->panels.lanes + k) * 4 + i % 4] = 1;
}
