/* Runs of f16, bf16 and f8 elements, and filters of them, as f32: see widen.h. The conversion to f32 is exact. */
#include "plan/rewrite/widen.h"

#include <string.h>

hk_strides hk_widen_dense(bool last, int64_t groups, int64_t channels, const int64_t at[3]) {
  const int64_t image = at[0] * at[1] * at[2];
  hk_strides s = {.channel = last || channels == 1 ? 1 : image, .group = last ? channels : channels * image};
  s.at[2] = last ? channels * groups : 1;
  s.at[1] = s.at[2] * at[2];
  s.at[0] = s.at[1] * at[1];
  s.outer = image * channels * groups;
  return s;
}

hk_channels hk_widen_channels(const hk_geom *g) {
  const int64_t features = g->batch_grouped ? 1 : g->groups;
  if (g->c == 1) return (hk_channels){features, features == 1 ? 1 : g->x.group, 1, 0};
  if (features == 1 || g->x.group == g->c * g->x.channel) return (hk_channels){features * g->c, g->x.channel, 1, 0};
  return (hk_channels){g->c, g->x.channel, features, g->x.group};
}

bool hk_widen_last(const hk_geom *g) {
  const hk_channels c = hk_widen_channels(g);
  return c.step == 1 && (c.count > 1 || c.outer > 1) && !(g->in[2] > 1 && g->x.at[2] == 1);
}

void hk_widen_run(const hk_kernel *k, hk_type t, const char *src, int64_t step, float *dst, int64_t count) {
  if (t == HK_F32 && step == 1) memcpy(dst, src, (size_t)count * sizeof *dst);
  else if (k && step == 1) k->fn(&(hk_convert_args){src, dst, count});
  else
    for (int64_t i = 0; i < count; i++) dst[i] = (float)hk_load_element(t, src, i * step);
}

hk_extent hk_widen_filter_extent(const hk_geom *g) {
  hk_strides s = g->f;
  s.offset = 0;
  return hk_extent_of(&s, g->groups, g->k, g->c, g->win);
}

size_t hk_widen_filter_bytes(const hk_task *t) {
  const int64_t bytes = hk_widen_filter_extent(&t->geom).elements * (int64_t)sizeof(float);
  return t->f_now ? 0 : (size_t)hk_round_up(bytes, HK_ALIGN);
}

const char *hk_widen_filter_to(const hk_plan *plan, const char *f, float *to) {
  const hk_geom *g = &plan->task.geom;
  const hk_extent e = hk_widen_filter_extent(g);
  const char *from = f - e.below * (int64_t)hk_type_bytes(g->f_type);
  hk_widen_run(hk_kernel_convert(g->f_type, HK_F32, plan->decision.isa), g->f_type, from, 1, to, e.elements);
  return (const char *)(to + e.below);
}

hk_status hk_widen_filter(const hk_plan *plan, const void **f, void **made) {
  const int64_t elements = hk_widen_filter_extent(&plan->task.geom).elements;
  float *to = *made = hk_alloc((size_t)elements * sizeof *to);
  if (!to) return hk_fail(HK_NO_MEMORY, "no memory for %lld converted weights", (long long)elements);
  *f = hk_widen_filter_to(plan, *f, to);
  return HK_OK;
}
