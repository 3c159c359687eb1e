/* The staged sums of gate and finish: see sums.h. */
#include "plan/rewrite/sums.h"

hk_type hk_sums_type(const hk_geom *g) { return g->acc_type == HK_F32 ? HK_F32 : HK_F64; }

hk_strides hk_sums_strides(const hk_geom *g) {
  const int64_t k = g->k * g->groups;
  const bool last = g->y.channel == 1 && !(g->out[2] > 1 && g->y.at[2] == 1);
  hk_strides s = {0};
  s.channel = last ? 1 : g->pixels;
  s.at[2] = last ? k : 1;
  s.at[1] = s.at[2] * g->out[2];
  s.at[0] = s.at[1] * g->out[1];
  s.outer = g->pixels * k;
  s.group = g->groups > 1 ? s.channel * g->k : 0;
  return s;
}

int hk_sums_inner(const hk_task *t, int part, hk_task *to) {
  const hk_epilogue *e = &t->epi.e;
  const hk_strides y = hk_sums_strides(&t->geom);
  (void)part;
  to->epi = (hk_epi){
      .e = {.size = sizeof to->epi.e, .scale = e->scale, .bias = e->bias}, .any = e->scale || e->bias, .simple = true};
  hk_geom_set_ungated(&to->geom, &y);
  hk_geom_set_types(&to->geom, t->geom.x_type, t->geom.f_type, hk_sums_type(&t->geom));
  return 1;
}

size_t hk_sums_bytes(const hk_task *t) {
  const int64_t bytes = (int64_t)hk_type_bytes(hk_sums_type(&t->geom));
  return (size_t)hk_round_up(t->geom.gm * t->geom.k * t->geom.groups * bytes, HK_ALIGN);
}
