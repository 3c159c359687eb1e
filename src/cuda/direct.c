/* Host side of the general kernels: any problem that the library takes at all. */
#include "cuda/cuda.h"

#include <string.h>

hk_status hk_cu_direct_build(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e) {
  memset(s, 0, sizeof *s);
  hk_cu_geom_make(g, e, &s->params.g);
  hk_cu_epi_make(e, &s->params.e);
  s->params.outputs = g->y_channels * g->n * g->pixels;
  s->params.k_inner = g->y.channel == 1;
  s->blocks = hk_min64(hk_ceil_div(s->params.outputs, 256), 132 * 64);
  const char *name = g->acc_type == HK_F64 ? "hk_direct_f64" : g->acc_type == HK_S32 ? "hk_direct_s32" : "hk_direct_f32";
  return hk_cu_kernel_find("direct", name, 0, &s->kernel);
}

hk_status hk_cu_direct_run(const hk_cu_direct_state *s, const hk_cu_call *call, const void *slopes, const int32_t *f_zeros) {
  hk_cu_direct p = s->params;
  if (!p.outputs) return HK_OK;
  p.x = call->x, p.f = call->f;
  p.e.y = call->y, p.e.c = call->c;
  p.e.scale = call->scale, p.e.bias = call->bias, p.e.slopes = slopes, p.e.f_zeros = f_zeros, p.e.user = call->user;
  return hk_cu_kernel_run(s->kernel, s->blocks, 256, 1, 0, call->stream, &p);
}
