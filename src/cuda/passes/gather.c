/* Copies x window by window into the workspace: to[n][out][taps and channels], a plain matrix. Only where windows do
 * not overlap, so that no element is copied twice (patches of a vision transformer, 16x16 with stride 16), and where
 * the alternatives are slow: strides above TMA's limit of 8, or few channels. Channels are innermost where they are
 * contiguous in x, otherwise taps: adjacent values stay adjacent. */
#include "cuda/cuda.h"

#include <string.h>

static int64_t run_of(const hk_geom *g) { return hk_round_up(g->taps * g->c, 16 / (int64_t)hk_type_bytes(g->x_type)); }

bool hk_cu_gather_takes(const hk_geom *g) {
  bool far = g->c * (int64_t)hk_type_bytes(g->x_type) < 128;
  if (g->groups != 1 || g->batch_grouped || g->taps < 2) return false;
  for (int d = 0; d < 3; ++d) {
    if (g->in_dil[d] != 1 || g->in[d] < 1 || (g->out[d] > 1 && g->stride[d] < (g->win[d] - 1) * g->dil[d] + 1))
      return false;
    if (g->in[d] > INT32_MAX / 2 || g->lo[d] > INT32_MAX / 4 || g->lo[d] < -INT32_MAX / 4 ||
        (double)g->out[d] * (double)g->stride[d] > INT32_MAX / 4 ||
        (double)g->win[d] * (double)g->dil[d] > INT32_MAX / 4)
      return false;
    far = far || g->stride[d] > 8;
  }
  /* Padding is written out: more than twice the image would be too much. Counted per image: gathering orders the
   * reduction otherwise than transposing does, and a batch-invariant plan must not depend on the batch. */
  const double bytes = (double)g->pixels * (double)run_of(g) * (double)hk_type_bytes(g->x_type);
  double image = (double)g->c * (double)hk_type_bytes(g->x_type);
  for (int d = 0; d < 3; ++d) image *= (double)g->in[d];
  return far && (double)g->n * bytes / 16 < INT32_MAX && bytes < 2 * image + 4096;
}

hk_geom hk_cu_gather_geom(const hk_geom *g) {
  hk_geom to = *g;
  to.c = run_of(g);
  to.taps = 1;
  to.gk = to.c;
  to.x = (hk_strides){.group = to.c, .channel = 1};
  int64_t step = to.c;
  for (int d = 2; d >= 0; --d) {
    to.in[d] = to.in_span[d] = g->out[d];
    to.win[d] = to.stride[d] = to.dil[d] = 1;
    to.lo[d] = to.hi[d] = 0;
    to.x.at[d] = step;
    step *= g->out[d];
  }
  to.x.outer = step;
  return to;
}

static bool taps_inner(const hk_geom *g) { return g->c > 1 && g->x.channel != 1; }

hk_cu_filters hk_cu_gather_filters(const hk_geom *g) {
  return (hk_cu_filters){1, g->c, {g->win[0], g->win[1], g->win[2]}, taps_inner(g) ? 0 : g->c};
}

/* Whether every 16-byte piece of a window's row is an aligned piece of x: the row of taps is contiguous and a
 * multiple of 16 bytes, and so are all strides. */
static bool vector(const hk_geom *g) {
  const int64_t piece = 16 / (int64_t)hk_type_bytes(g->x_type), step = taps_inner(g) ? 1 : g->c;
  const int64_t all[] = {g->win[2] * step,
                         g->x.at[2] * g->stride[2] * (g->out[2] > 1),
                         g->lo[2] * step,
                         g->x.at[1] * (g->in[1] > 1),
                         g->x.at[0] * (g->in[0] > 1),
                         g->x.outer * (g->n > 1),
                         taps_inner(g) ? g->x.channel : 0};
  for (int i = 0; i < HK_COUNT(all); ++i)
    if (all[i] % piece) return false;
  return g->dil[2] == 1 && (g->x.at[2] == step || g->in[2] == 1);
}

hk_status hk_cu_gather_build(hk_cu_gather_state *s, const hk_geom *g) {
  static const char *const names[] = {"hk_gather_1", "hk_gather_2", "hk_gather_4"};
  const int64_t bytes = (int64_t)hk_type_bytes(g->x_type), run = run_of(g) * bytes / 16;
  hk_cu_gather *p = &s->params;
  memset(s, 0, sizeof *s);
  p->view = (hk_cu_view){0, g->x.group, g->x.outer, g->x.channel, {g->x.at[0], g->x.at[1], g->x.at[2]}};
  p->pieces = g->n * g->pixels * run;
  p->live = (int)(g->taps * g->c);
  p->taps_inner = taps_inner(g);
  p->vector = vector(g);
  for (int d = 0; d < 3; ++d) {
    p->in[d] = (int)g->in[d], p->stride[d] = (int)g->stride[d], p->lo[d] = (int)g->lo[d], p->dil[d] = (int)g->dil[d];
    p->by_out[d] = hk_cu_divisor_make(g->out[d]), p->by_win[d] = hk_cu_divisor_make(g->win[d]);
  }
  p->by_run = hk_cu_divisor_make(run);
  p->by_inner = hk_cu_divisor_make(p->taps_inner ? g->taps : g->c);
  return hk_cu_kernel_find("gather", names[bytes / 2], 0, &s->kernel);
}

hk_status hk_cu_gather_run(const hk_cu_gather_state *s, const void *x, void *to, void *stream) {
  hk_cu_gather p = s->params;
  p.x = x;
  p.to = to;
  p.vector = p.vector && (uintptr_t)x % 16 == 0;
  return hk_cu_kernel_run(s->kernel, hk_ceil_div(p.pieces, 256), 256, 1, 0, stream, &p);
}
