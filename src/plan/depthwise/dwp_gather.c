/* The dwp tiles whose taps lie too far apart for any buffer: each tap's values are gathered for one tile at a time, and
 * sums wait in the tile between batches of taps. */
#include <string.h>

#include "plan/depthwise/dwp_tile.h"

#define GATHER_TAPS 128

typedef struct outputs { /* count of them from position p on, in rows of `width` floats */
  int64_t p[3], count, width;
} outputs;

/* What `taps` taps from `tap` on read for the outputs: one row per tap. */
static void gather(const hk_dwp_job *j, const float *x, float *to, int64_t tap, int64_t taps, const outputs *o) {
  const hk_geom *g = j->g;
  for (int64_t t = tap; t < tap + taps; t++, to += o->width) {
    const int64_t s = t % g->win[2], r = t / g->win[2] % g->win[1], a = t / g->win[2] / g->win[1];
    const int64_t depth = hk_dw_inside(g, 0, hk_geom_source(g, 0, o->p[0], a));
    const int64_t row = hk_dw_inside(g, 1, hk_geom_source(g, 1, o->p[1], r));
    memset(to, 0, (size_t)o->width * sizeof *to);
    if (depth < 0 || row < 0) continue;
    const float *from = x + depth * g->x.at[0] + row * g->x.at[1];
    for (int64_t i = 0; i < o->count; i++) {
      const int64_t col = hk_dw_inside(g, 2, hk_geom_source(g, 2, o->p[2] + i, s));
      if (col >= 0) to[i] = from[col * g->x.at[2]];
    }
  }
}

/* The weights of taps [from, from + count), out of the order of the chain. */
static void take_weights(const hk_dwp_site *s, int64_t from, int64_t count, float *to) {
  const int32_t *place = s->j->p->chain.place;
  for (int64_t i = 0; i < count; i++) to[i] = s->f[place[from + i]];
}

void hk_dwp_gather(const hk_dwp_site *s, const float *x, const int64_t p[3], int64_t count) {
  hk_dwp_job *j = s->j;
  const hk_dwp *d = j->p;
  const int64_t taps = j->g->taps, most = d->mr * d->vw, batch = hk_min64(GATHER_TAPS, HK_DW_BUFFER / most);
  _Alignas(HK_ALIGN) float buffer[HK_DW_BUFFER], sums[16 * 16], weights[GATHER_TAPS];
  hk_dw_run runs[GATHER_TAPS];
  hk_dwp_site part = *s;
  part.f = weights;
  for (int64_t done = 0; done < count; done += most) {
    const int64_t n = hk_min64(most, count - done), vectors = hk_ceil_div(n, d->vw), width = vectors * d->vw;
    const outputs o = {{p[0], p[1], p[2] + done}, n, width};
    for (int64_t t = 0; t < taps; t += batch) {
      const int64_t now = hk_min64(batch, taps - t);
      gather(j, x, buffer, t, now, &o);
      take_weights(s, t, now, weights);
      for (int64_t i = 0; i < now; i++) runs[i] = (hk_dw_run){.offset = (int32_t)(i * width), .taps = 1};
      hk_dwp_args a = j->along;
      a.x = buffer;
      a.start = t ? sums : NULL;
      a.runs = runs;
      a.run_count = now;
      a.tiles = 1;
      a.x_step = a.y_step = a.c_step = d->vw;
      a.vectors = (int32_t)vectors;
      a.last_lanes = (int32_t)d->vw;
      if (t + now < taps) {
        a.f = weights;
        a.y = sums;
        a.fuse.flags = 0;
        j->plan->decision.kernel->fn(&a);
        continue;
      }
      a.last_lanes = (int32_t)(n - (vectors - 1) * d->vw);
      const hk_dwp_place w = {.z = o.p[0], .p = o.p[1], .q = o.p[2], .q_step = d->vw};
      hk_dwp_emit(&part, &a, &w);
    }
  }
}
