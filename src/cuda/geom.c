/* Conversion of hk_geom and hk_epi to the device structs. Offsets are omitted: execute adds them to the pointers. */
#include "cuda/cuda.h"

#include <string.h>

_Static_assert(HK_CU_F32 == (int)HK_F32 && HK_CU_F64 == (int)HK_F64 && HK_CU_F16 == (int)HK_F16 &&
                   HK_CU_BF16 == (int)HK_BF16 && HK_CU_S8 == (int)HK_S8 && HK_CU_U8 == (int)HK_U8 &&
                   HK_CU_S32 == (int)HK_S32 && HK_CU_F8 == (int)HK_F8E4M3,
               "device type numbers are hk_type");
_Static_assert(HK_CU_RELU == (int)HK_ACT_RELU && HK_CU_USER == (int)HK_ACT_USER &&
                   HK_CU_SOFTSIGN == (int)HK_ACT_SOFTSIGN && HK_CU_GELU == (int)HK_ACT_GELU &&
                   HK_CU_HARDTANH == (int)HK_ACT_HARDTANH,
               "device activation numbers are hk_act");

static hk_cu_view view(const hk_strides *s) {
  return (hk_cu_view){0, s->group, s->outer, s->channel, {s->at[0], s->at[1], s->at[2]}};
}

void hk_cu_geom_make(const hk_geom *g, const hk_epi *e, hk_cu_geom *to) {
  memset(to, 0, sizeof *to);
  to->n = g->n, to->groups = g->groups, to->cg = g->c, to->kg = g->k;
  for (int d = 0; d < 3; ++d) {
    to->in[d] = g->in[d], to->out[d] = g->out[d], to->win[d] = g->win[d], to->stride[d] = g->stride[d];
    to->lo[d] = g->lo[d], to->dil[d] = g->dil[d], to->in_dil[d] = g->in_dil[d];
  }
  to->x = view(&g->x), to->f = view(&g->f), to->y = view(&g->y), to->c = view(&e->c);
  to->x_type = g->x_type, to->f_type = g->f_type, to->y_type = g->y_type;
  to->x_zero = g->x_zero, to->f_zero = g->f_zero, to->y_zero = g->y_zero;
}

void hk_cu_epi_make(const hk_epi *e, hk_cu_epi *to) {
  memset(to, 0, sizeof *to);
  to->scale_one = e->e.scale == 1;
  to->act = e->e.act, to->act2 = e->e.act2, to->gate = e->e.gate, to->residual = e->e.residual;
  to->a = e->e.a, to->b = e->e.b, to->a2 = e->e.a2, to->b2 = e->e.b2, to->beta = e->e.beta;
  if (to->act == HK_CU_HARDTANH && to->a == 0 && to->b == 0) to->a = -1, to->b = 1;
  if (to->act2 == HK_CU_HARDTANH && to->a2 == 0 && to->b2 == 0) to->a2 = -1, to->b2 = 1;
}

bool hk_cu_is_linear(const hk_geom *g, const hk_strides *s) {
  int64_t expect = s->at[2] * g->out[2];
  for (int d = 1; d >= 0; --d) {
    if (g->out[d] > 1 && s->at[d] != expect) return false;
    expect *= g->out[d];
  }
  return g->n <= 1 || s->outer == expect;
}

bool hk_cu_is_flat(const hk_geom *g, int d) {
  return g->in[d] == 1 && g->out[d] == 1 && g->win[d] == 1 && g->lo[d] == 0;
}

/* With l = ceil(log2 d): mul = floor(2^32 (2^l - d) / d) + 1 (Granlund and Montgomery); n < 2^31 keeps the sum
 * within 32 bits. */
hk_cu_divisor hk_cu_divisor_make(int64_t d) {
  hk_cu_divisor by = {.d = (unsigned)d};
  while (((uint64_t)1 << by.shift) < (uint64_t)d) by.shift++;
  by.mul = (unsigned)(((((uint64_t)1 << by.shift) - (uint64_t)d) << 32) / (uint64_t)d + 1);
  return by;
}

hk_status hk_cu_unaligned(const char *name, const void *p) {
  return hk_fail(HK_INVALID, "args.%s: %p is not 16-byte aligned; make the plan with options.unaligned", name, p);
}
