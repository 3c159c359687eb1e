/* Host side of the pass that concatenates a state and x; see state.cu. */
#include "cuda/cuda.h"

#include <string.h>

enum { SEGMENT = 1024 }; /* as in state.cu */

hk_status hk_cu_state_build(hk_cu_state_pass *s, const hk_geom *g, const hk_strides *to) {
  static const char *const names[] = {"hk_state_1", "hk_state_2", "hk_state_4", "hk_state_8"};
  const int64_t channels = g->c * g->groups, step = g->c > 1 ? g->x.channel : g->x.group;
  const bool last = to->channel == 1, even = g->groups == 1 || g->x.group == g->c * step;
  hk_cu_state *p = &s->params;
  memset(s, 0, sizeof *s);
  p->view = (hk_cu_view){0, g->x.group, g->x.outer, g->x.channel, {g->x.at[0], g->x.at[1], g->x.at[2]}};
  p->n = g->n, p->channels = channels, p->cg = g->c, p->in = g->in[2], p->past = g->lo[2], p->zero = g->x_zero;
  p->to_outer = to->outer, p->to_channel = to->channel, p->to_at = to->at[2];
  p->parts = even ? 1 : g->groups; /* the channels of all groups are one axis where their stride is constant */
  const int64_t across = even ? channels : g->c;
  p->from_part = g->x.group, p->into_part = g->c * to->channel;
  p->outer = last ? g->in[2] : across, p->inner = last ? across : g->in[2];
  p->from_outer = last ? g->x.at[2] : step, p->from_inner = last ? step : g->x.at[2];
  p->into_outer = last ? to->at[2] : to->channel;
  /* contiguous in both */
  if (last && even && p->from_inner == 1 && p->from_outer == p->inner && p->into_outer == p->inner)
    p->inner *= p->outer, p->outer = 1;
  p->segments = hk_max64(hk_ceil_div(p->inner, SEGMENT), 1);
  p->past_warps = p->past ? g->n * channels : 0;
  p->warps = p->past_warps + (p->inner ? g->n * p->parts * p->outer * p->segments : 0);
  int size = 0;
  while ((size_t)1 << size < hk_type_bytes(g->x_type)) size++;
  return hk_cu_kernel_find("state", names[size], 0, &s->kernel);
}

hk_status hk_cu_state_run(const hk_cu_state_pass *s, const void *x, const void *state_in, void *to, void *state_out,
                          void *stream) {
  hk_cu_state p = s->params;
  if (!p.warps) return HK_OK;
  p.x = x, p.state_in = state_in, p.to = to, p.state_out = state_out;
  return hk_cu_kernel_run(s->kernel, hk_ceil_div(p.warps, 8), 256, 1, 0, stream, &p);
}
