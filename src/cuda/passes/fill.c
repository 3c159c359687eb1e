/* Host side of the pass that stores the epilogue of 0: outputs that no product reaches. */
#include <string.h>

#include "cuda/cuda.h"

/* Whether runs of 8 channels of y or the residual lie at multiples of 16 bytes. */
static bool runs(const hk_geom *g, const hk_strides *s) {
  const int64_t all[] = {s->outer * (g->n > 1), s->at[0] * (g->out[0] > 1), s->at[1] * (g->out[1] > 1),
                         s->at[2] * (g->out[2] > 1), s->group * (g->groups > 1)};
  if (s->channel != 1 || g->k % 8) return false;
  for (int i = 0; i < HK_COUNT(all); ++i)
    if (all[i] % 8) return false;
  return true;
}

hk_status hk_cu_fill_build(hk_cu_direct_state *s, const hk_geom *g, const hk_epi *e, bool unaligned) {
  const hk_act act = e->e.act;
  hk_geom none = *g;
  none.c = 0;
  for (int d = 0; d < 3; ++d) none.win[d] = 1;
  const hk_status status = hk_cu_direct_build(s, &none, e);
  if (status || unaligned || act == HK_ACT_PRELU || !s->params.few || !runs(g, &g->y) ||
      (e->e.residual && !runs(g, &e->c)) || (g->y_type != HK_F32 && g->y_type != HK_F16 && g->y_type != HK_BF16))
    return status;
  s->params.outputs /= 8;
  s->params.by_k = hk_cu_divisor_make(g->k * g->groups / 8);
  s->params.by_kg = hk_cu_divisor_make(g->k / 8);
  s->blocks = hk_min64(hk_ceil_div(s->params.outputs, 256), 132 * 16);
  return hk_cu_kernel_find("direct", "hk_fill", 0, &s->kernel);
}
