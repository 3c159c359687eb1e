/* The epilogue: what it may hold, and what each activation means (in double; the definition). */
#include <math.h>
#include <string.h>

#include "core/core.h"

static double sigmoid(double v) { return v >= 0 ? 1 / (1 + exp(-v)) : exp(v) / (1 + exp(v)); }

double hk_act_eval(hk_act act, double a, double b, double slope, double v) {
  if (v != v) return v;
  switch (act) {
  case HK_ACT_NONE:
  case HK_ACT_USER: return v;
  case HK_ACT_RELU: return v > 0 ? v : 0;
  case HK_ACT_CLIP: return v < a ? a : v > b ? b : v;
  case HK_ACT_LEAKY: return v < 0 ? a * v : v;
  case HK_ACT_PRELU: return v < 0 ? slope * v : v;
  case HK_ACT_SIGMOID: return sigmoid(v);
  case HK_ACT_SILU: return v == -INFINITY ? 0 : v * sigmoid(v);
  case HK_ACT_TANH: return tanh(v);
  case HK_ACT_GELU: return v == -INFINITY ? 0 : 0.5 * v * erfc(-v * 0.70710678118654752440);
  case HK_ACT_GELU_TANH:
    return v == -INFINITY ? 0 : 0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
  case HK_ACT_HARDSWISH: return v <= -3 ? 0 : v >= 3 ? v : v * (v + 3) / 6;
  case HK_ACT_HARDTANH:
    if (a == 0 && b == 0) a = -1, b = 1;
    return v < a ? a : v > b ? b : v;
  case HK_ACT_SOFTSIGN: return isinf(v) ? (v > 0 ? 1 : -1) : v / (1 + fabs(v));
  }
  return v;
}

static bool act_valid(hk_act act) { return (unsigned)act <= HK_ACT_USER; }
static bool act_smooth(hk_act act) { return act >= HK_ACT_SIGMOID && act <= HK_ACT_GELU_TANH; }

static hk_status check_act(const char *name, hk_act act, float a, float b, bool user) {
  if (!act_valid(act)) return hk_fail(HK_INVALID, "%s = %d must be an hk_act value", name, (int)act);
  if ((act == HK_ACT_CLIP || act == HK_ACT_HARDTANH) && !(a <= b))
    return hk_fail(HK_INVALID, "%s: the bounds %g and %g must be in order", name, (double)a, (double)b);
  if (act == HK_ACT_USER && !user) return hk_fail(HK_INVALID, "%s = user needs the field user (or cuda_user)", name);
  return HK_OK;
}

static hk_status check_residual(hk_epi *epi, const hk_problem *p) {
  const hk_epilogue *e = &epi->e;
  if ((unsigned)e->residual > HK_RESIDUAL_BEFORE)
    return hk_fail(HK_INVALID, "residual = %d must be an hk_residual value", (int)e->residual);
  if (e->residual && !(e->beta == e->beta)) return hk_fail(HK_INVALID, "beta must be a number");
  epi->c = p->y;
  if (e->residual && e->c_strided) epi->c = e->c;
  hk_strides c = epi->c;
  for (int d = 0; d < 3; d++) epi->c.at[d] = d < 3 - p->rank ? 0 : c.at[d - (3 - p->rank)];
  if (!e->residual || !e->c_strided) return HK_OK;
  /* C is judged as the x of a pointwise problem: a tensor that may be read at any stride */
  hk_problem q = *p;
  int64_t out[HK_MAX_RANK], n;
  const hk_status s = hk_problem_output(p, out, &n);
  if (s) return s;
  q.feature_groups = p->feature_groups * p->batch_groups, q.batch_groups = 1;
  q.n = n, q.c = p->k, q.k = 0, q.x = c;
  for (int d = 0; d < p->rank; d++) {
    q.in[d] = out[d], q.window[d] = 1, q.in_dilation[d] = 1;
    q.pad_lo[d] = q.pad_hi[d] = 0;
  }
  return hk_problem_check(&q);
}

static hk_status check_gate(const hk_epilogue *e) {
  if ((unsigned)e->gate > HK_GATE_BLENDED)
    return hk_fail(HK_INVALID, "gate = %d must be an hk_gate value", (int)e->gate);
  if (!e->gate && e->act2) return hk_fail(HK_INVALID, "act2 = %s needs a gate", hk_act_name(e->act2));
  if (e->gate && e->residual == HK_RESIDUAL_BEFORE)
    return hk_fail(HK_INVALID, "a gate takes its residual after the activation (C has y's k/2 channels)");
  return HK_OK;
}

static hk_status check_integer(const hk_epi *epi, const hk_problem *p) {
  const hk_epilogue *e = &epi->e;
  if (p->y_type != HK_S32) return HK_OK;
  if (e->scale || e->act || e->gate || e->residual || e->user2)
    return hk_fail(HK_INVALID, "y_type = s32 is the plain sum: only a bias may be added");
  return HK_OK;
}

hk_status hk_epi_make(hk_epi *epi, const hk_epilogue *e, const hk_problem *p) {
  hk_status s;
  memset(epi, 0, sizeof *epi);
  epi->e.size = sizeof epi->e;
  if (e) {
    if (!(e = hk_take(e, &epi->e, sizeof epi->e, "epilogue"))) return HK_INVALID;
    if (e != &epi->e) epi->e = *e;
    if (e->scale < 0 || e->scale > 2) return hk_fail(HK_INVALID, "scale = %d must be 0, 1 or 2", e->scale);
    if (e->bias < 0 || e->bias > 1) return hk_fail(HK_INVALID, "bias = %d must be 0 or 1", e->bias);
    const bool user = e->user || e->cuda_user;
    if ((s = check_act("act", e->act, e->a, e->b, user)) || (s = check_act("act2", e->act2, e->a2, e->b2, user)) ||
        (s = check_gate(e)))
      return s;
  }
  if ((s = check_residual(epi, p)) || (s = check_integer(epi, p))) return s;
  if (epi->e.beta == 0) epi->e.residual = HK_RESIDUAL_NONE; /* 0*C is nothing, also where C holds NaN: C is not read */
  const hk_epilogue *c = &epi->e;
  const bool users = c->user || c->user2 || c->store || c->cuda_user || c->cuda_user2 || c->cuda_store;
  epi->any = c->scale || c->bias || c->act || c->gate || c->residual || users;
  const bool clamp =
      c->act == HK_ACT_NONE || c->act == HK_ACT_RELU || c->act == HK_ACT_CLIP || c->act == HK_ACT_HARDTANH;
  epi->simple = clamp && !c->gate && !users;
  epi->transcendental = act_smooth(c->act) || (c->gate && act_smooth(c->act2));
  return HK_OK;
}
