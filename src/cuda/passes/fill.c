/* Host side of the pass that stores the epilogue of 0: outputs that no product reaches. */
#include <string.h>

#include "cuda/cuda.h"

enum { BLOCKS = 132 * 8 }; /* fill every SM */

/* Whether runs of 8 channels of y or the residual lie at multiples of 16 bytes. */
static bool runs(const hk_geom *g, const hk_strides *s) {
  const int64_t all[] = {s->outer * (g->n > 1), s->at[0] * (g->out[0] > 1), s->at[1] * (g->out[1] > 1),
                         s->at[2] * (g->out[2] > 1), s->group * (g->groups > 1)};
  if (s->channel != 1 || g->k % 8) return false;
  for (int i = 0; i < HK_COUNT(all); ++i)
    if (all[i] % 8) return false;
  return true;
}

hk_status hk_cu_fill_build(hk_cu_fill_state *s, const hk_geom *g, const hk_epi *e, bool unaligned) {
  const hk_act act = e->e.act;
  hk_cu_direct *p = &s->direct.params;
  hk_geom none = *g;
  none.c = 0;
  for (int d = 0; d < 3; ++d) none.win[d] = 1;
  const hk_status status = hk_cu_direct_build(&s->direct, &none, e);
  s->runs = !unaligned && act != HK_ACT_PRELU && p->few && runs(g, &g->y) && (!e->e.residual || runs(g, &e->c)) &&
            (g->y_type == HK_F32 || g->y_type == HK_F16 || g->y_type == HK_BF16) &&
            g->k * g->groups / 8 <= BLOCKS * 256; /* a run per thread, or more threads */
  if (status || !s->runs) return status;
  p->outputs /= 8;
  p->by_k = hk_cu_divisor_make(g->k * g->groups / 8);
  p->by_kg = hk_cu_divisor_make(g->k / 8);
  s->direct.blocks = hk_min64(hk_ceil_div(p->outputs, 256), BLOCKS);
  return hk_cu_kernel_find("fill", "hk_fill", 0, &s->direct.kernel);
}

hk_status hk_cu_fill_run(const hk_cu_fill_state *s, const hk_cu_call *call, const void *slopes, bool next) {
  hk_cu_direct p = s->direct.params;
  if (!next || !s->runs || !p.outputs) return hk_cu_direct_run(&s->direct, call, slopes, NULL);
  p.e.y = call->y, p.e.c = call->c;
  p.e.scale = call->scale, p.e.bias = call->bias;
  return hk_cu_kernel_run_pdl(s->direct.kernel, s->direct.blocks, 256, 1, 0, call->stream, &p);
}
