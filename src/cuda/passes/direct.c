/* Host side of the general kernels, which support every problem of the library. */
#include "cuda/cuda.h"

#include <string.h>

void hk_cu_direct_params(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e) {
  hk_cu_direct *p = &s->params;
  memset(s, 0, sizeof *s);
  hk_cu_geom_make(g, e, &p->g);
  hk_cu_epi_make(e, &p->e);
  p->outputs = g->y_channels * g->n * g->pixels;
  p->k_inner = g->y.channel == 1;
  p->few = p->outputs > 0 && p->outputs < INT32_MAX && g->k * g->groups < INT32_MAX;
  for (int d = 0; d < 3 && p->few; ++d) p->by_out[d] = hk_cu_divisor_make(g->out[d]);
  if (p->few) p->by_k = hk_cu_divisor_make(g->y_channels), p->by_kg = hk_cu_divisor_make(g->k);
  s->blocks = hk_min64(hk_ceil_div(p->outputs, 256), 132 * 64);
}

hk_status hk_cu_direct_build(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e) {
  hk_cu_direct_params(s, g, e);
  const char *name = g->acc_type == HK_F64   ? "hk_direct_f64"
                     : g->acc_type == HK_S32 ? "hk_direct_s32"
                                             : "hk_direct_f32";
  return hk_cu_kernel_find("direct", name, 0, &s->kernel);
}

hk_status hk_cu_staged_build(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e, const hk_strides *sums) {
  hk_cu_direct_params(s, g, e);
  s->params.g.x = (hk_cu_view){0, sums->group, sums->outer, sums->channel, {sums->at[0], sums->at[1], sums->at[2]}};
  if (e->e.cuda_user || e->e.cuda_user2 || e->e.cuda_store)
    return hk_cu_user_kernel(NULL, &e->e, 0, &s->lib, &s->kernel);
  return hk_cu_kernel_find("direct", "hk_direct_staged", 0, &s->kernel);
}

/* Elements from one channel of y to the next, over all groups. */
static int64_t channel_step(const hk_geom *g) { return g->y_channels == 1 ? 1 : g->k > 1 ? g->y.channel : g->y.group; }

/* Whether y has no gaps, its channels or its pixels innermost. */
static bool dense(const hk_geom *g) {
  const int64_t channel = channel_step(g);
  int64_t step = channel == 1 ? g->y_channels : 1;
  for (int d = 2; d >= 0; --d) {
    if (g->out[d] > 1 && g->y.at[d] != step) return false;
    step *= g->out[d];
  }
  return (channel == 1 || channel == step) && (g->groups == 1 || g->y.group == g->k * channel) &&
         (g->n == 1 || g->y.outer == g->y_channels * g->pixels);
}

bool hk_cu_recompute_takes(const hk_geom *g, const hk_epi *e, bool unaligned) {
  const bool real = g->y_type == HK_F32 || g->y_type == HK_F16 || g->y_type == HK_BF16;
  return real && g->acc_type == HK_F32 && !unaligned && !e->e.gate && !e->e.cuda_user && !e->e.cuda_user2 &&
         !e->e.cuda_store && dense(g);
}

hk_status hk_cu_recompute_build(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e) {
  hk_cu_direct_params(s, g, e);
  s->params.k_inner = channel_step(g) == 1; /* outputs are counted in memory order */
  s->blocks = hk_min64(hk_ceil_div(s->params.outputs * (int64_t)hk_type_bytes(g->y_type), 256 * 16), 132 * 8);
  return hk_cu_kernel_find("direct", "hk_recompute_nan", 0, &s->kernel);
}

void hk_cu_direct_free(hk_cu_direct_state *s) {
  if (s->lib) hk_cu()->lib_unload(s->lib);
  s->lib = NULL;
}

hk_status hk_cu_direct_run(const hk_cu_direct_state *s, const hk_cu_call *call, const void *slopes,
                           const int32_t *f_zeros) {
  hk_cu_direct p = s->params;
  if (!p.outputs) return HK_OK;
  p.x = call->x, p.f = call->f;
  p.e.y = call->y, p.e.c = call->c;
  p.e.scale = call->scale, p.e.bias = call->bias, p.e.slopes = slopes, p.e.f_zeros = f_zeros, p.e.user = call->user;
  return hk_cu_kernel_run(s->kernel, s->blocks, 256, 1, 0, call->stream, &p);
}
