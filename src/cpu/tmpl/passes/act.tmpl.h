/* act: what is added to a row of floats, and an activation. There is one loop per function, so no loop contains a
 * switch. Define HK_NAME, include a vocabulary, then this. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/actmath.tmpl.h"

/* Inlined with a constant act. Nothing is added as -0, which leaves every value as it is. */
static inline __attribute__((always_inline)) void act_row(hk_act act, const hk_act_args *r) {
  const v_f32 one_slope = v_set1(r->slope && !r->slope_step ? *r->slope : 0.0f);
  const v_f32 one_add = v_set1(r->add && !r->add_step ? *r->add : -0.0f);
  const bool slopes = act == HK_ACT_PRELU && r->slope_step, adds = r->add && r->add_step;
  int64_t i = 0;
  for (; i + HK_VW <= r->count; i += HK_VW) {
    const v_f32 v = v_add(v_load(r->v + i), adds ? v_load(r->add + i) : one_add);
    v_store(r->y + i, v_act(act, v, r->a, r->b, slopes ? v_load(r->slope + i) : one_slope));
  }
  if (i < r->count) {
    const v_mask m = v_tail(r->count - i);
    const v_f32 v = v_add(v_load_m(r->v + i, m), adds ? v_load_m(r->add + i, m) : one_add);
    const v_f32 slope = slopes ? v_load_m(r->slope + i, m) : one_slope;
    v_store_m(r->y + i, v_act(act, v, r->a, r->b, slope), m);
  }
}

void HK_NAME(const void *args) {
  const hk_act_args *r = args;
  switch (r->act) {
    case HK_ACT_RELU: act_row(HK_ACT_RELU, r); return;
    case HK_ACT_CLIP: act_row(HK_ACT_CLIP, r); return;
    case HK_ACT_HARDTANH: act_row(HK_ACT_HARDTANH, r); return;
    case HK_ACT_LEAKY: act_row(HK_ACT_LEAKY, r); return;
    case HK_ACT_PRELU: act_row(HK_ACT_PRELU, r); return;
    case HK_ACT_SIGMOID: act_row(HK_ACT_SIGMOID, r); return;
    case HK_ACT_SILU: act_row(HK_ACT_SILU, r); return;
    case HK_ACT_TANH: act_row(HK_ACT_TANH, r); return;
    case HK_ACT_GELU: act_row(HK_ACT_GELU, r); return;
    case HK_ACT_GELU_TANH: act_row(HK_ACT_GELU_TANH, r); return;
    case HK_ACT_HARDSWISH: act_row(HK_ACT_HARDSWISH, r); return;
    case HK_ACT_SOFTSIGN: act_row(HK_ACT_SOFTSIGN, r); return;
    case HK_ACT_NONE: case HK_ACT_USER: act_row(HK_ACT_NONE, r); return;
  }
}
