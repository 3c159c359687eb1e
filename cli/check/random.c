/* Random cases from a state of random numbers: of every kind that the specification names, each often enough to show in
 * --stats with at least one percent, with every option and call sequence. Everything made here is legal; what the
 * library refuses is a finding. Sizes, strides and options are drawn in check/sizes.c, check/strides.c and
 * check/options.c. */
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

static int64_t below(uint64_t *r, int64_t n) { return cli_random_below(r, n); }
static int64_t between(uint64_t *r, int64_t a, int64_t b) { return check_between(r, a, b); }
static bool chance(uint64_t *r, int percent) { return check_chance(r, percent); }

/* ---- types */
static void types_choose(hk_problem *p, uint64_t *r) {
  static const hk_type common[][3] = {{HK_F32, HK_F32, HK_F32}, {HK_F32, HK_F32, HK_F32},    {HK_F32, HK_F32, HK_F32},
                                      {HK_F32, HK_F32, HK_F32}, {HK_F64, HK_F64, HK_F64},    {HK_F16, HK_F16, HK_F16},
                                      {HK_F16, HK_F16, HK_F32}, {HK_BF16, HK_BF16, HK_BF16}, {HK_BF16, HK_BF16, HK_F32},
                                      {HK_S8, HK_S8, HK_S32},   {HK_S8, HK_S8, HK_S8},       {HK_U8, HK_S8, HK_U8},
                                      {HK_U8, HK_S8, HK_S32},   {HK_U8, HK_S8, HK_F32}};
  static const hk_type floats[] = {HK_F32, HK_F64, HK_F16, HK_BF16, HK_F8E4M3, HK_S8, HK_U8};
  static const hk_type from_int8[] = {HK_S32, HK_S8, HK_U8, HK_F32, HK_F64, HK_F16, HK_BF16, HK_F8E4M3};
  if (chance(r, 20)) {
    p->x_type = p->f_type = p->y_type = HK_F32;
  } else if (chance(r, 45)) {
    const hk_type *t = common[below(r, sizeof common / sizeof *common)];
    p->x_type = t[0];
    p->f_type = t[1];
    p->y_type = t[2];
  } else if (chance(r, 75)) {
    p->x_type = floats[below(r, 5)];
    p->f_type = floats[below(r, 5)];
    p->y_type = floats[below(r, 7)];
  } else {
    p->x_type = below(r, 2) ? HK_S8 : HK_U8;
    p->f_type = below(r, 2) ? HK_S8 : HK_U8;
    p->y_type = from_int8[below(r, 8)];
  }
}

/* Types of dot-product instructions, for --family narrow. */
static void narrow_choose(hk_problem *p, uint64_t *r) {
  static const hk_type from_bf16[] = {HK_BF16, HK_BF16, HK_F32, HK_F16},
                       from_int8[] = {HK_S8, HK_U8, HK_S32, HK_F32, HK_BF16};
  const bool halves = chance(r, 50);
  p->x_type = halves ? HK_BF16 : below(r, 2) ? HK_S8 : HK_U8;
  p->f_type = halves ? HK_BF16 : below(r, 2) ? HK_S8 : HK_U8;
  p->y_type = halves ? from_bf16[below(r, 4)] : from_int8[below(r, 5)];
}

static int32_t zero_point(hk_type t, uint64_t *r) {
  return (int32_t)(t == HK_U8 ? below(r, 256) : t == HK_S8 ? between(r, -128, 127) : 0);
}

static void zeros_choose(hk_problem *p, uint64_t *r) {
  if (cli_problem_is_int8(p) && chance(r, 60)) p->x_zero = zero_point(p->x_type, r);
  if (cli_problem_is_int8(p) && chance(r, 40)) p->f_zero = zero_point(p->f_type, r);
  if (chance(r, 50)) p->y_zero = zero_point(p->y_type, r);
}

static void emptied(hk_problem *p, uint64_t *r) {
  switch (below(r, 4)) {
  case 0: p->n = 0; break;
  case 1: p->c = 0; break;
  case 2: p->k = 0; break;
  default: p->in[below(r, p->rank)] = 0;
  }
}

/* ---- epilogues */
static void act_choose(hk_act *act, float *a, float *b, uint64_t *r) {
  *act = (hk_act)between(r, HK_ACT_RELU, HK_ACT_SOFTSIGN);
  *a = *b = 0;
  if (*act == HK_ACT_CLIP) {
    *a = -2;
    *b = 3;
  }
  if (*act == HK_ACT_LEAKY) *a = 0.25f;
  if (*act == HK_ACT_HARDTANH && chance(r, 50)) {
    *a = -2;
    *b = 4;
  }
}

static void epilogue_choose(check_case *t, uint64_t *r) {
  static const float betas[] = {1, 0.5f, 2, -1};
  hk_epilogue *e = &t->e;
  e->bias = chance(r, 45);
  if (chance(r, 5)) t->with |= WITH_STORE;
  if (t->p.y_type == HK_S32) return;
  /* Sums of int8 are too large for the narrow types without a scale. */
  bool large = cli_problem_is_int8(&t->p) && hk_type_bytes(t->p.y_type) < 4;
  e->scale = chance(r, large ? 15 : 60) ? 0 : (int32_t)between(r, 1, 2);
  if (chance(r, 60)) act_choose(&e->act, &e->a, &e->b, r);
  if (t->p.k % 2 == 0 && chance(r, 15)) {
    e->gate = chance(r, 50) ? HK_GATE_GATED : HK_GATE_BLENDED;
    act_choose(&e->act2, &e->a2, &e->b2, r);
  } else if (chance(r, 6)) {
    t->with |= WITH_USER;
    e->a = e->b = 0;
  }
  if (chance(r, 30)) {
    e->residual = e->gate || chance(r, 50) ? HK_RESIDUAL_AFTER : HK_RESIDUAL_BEFORE;
    e->beta = betas[below(r, 4)];
    if (chance(r, 25)) t->with |= WITH_C_STRIDES;
    else if (chance(r, 25)) t->with |= WITH_IN_PLACE;
  }
  if (chance(r, 6)) t->with |= WITH_USER2;
}

/* A stateful problem is 1D, causal, stride 1: what came before x is a state. */
static void stateful_make(hk_problem *p, uint64_t *r) {
  if (p->batch_groups > 1) p->n = p->batch_groups, p->batch_groups = 1;
  p->stride[0] = p->in_dilation[0] = 1;
  p->dilation[0] = p->window[0] > 30 ? 1 : between(r, 1, 6);
}

/* Epilogues that kernels finish in registers. */
static void plain_epilogue(check_case *t, uint64_t *r) {
  hk_epilogue *e = &t->e;
  const bool s32 = t->p.y_type == HK_S32;
  if (chance(r, 30)) return;
  e->bias = chance(r, 50);
  if (!s32 && chance(r, 40)) e->scale = (int32_t)between(r, 1, 2);
  if (!s32 && chance(r, 40)) e->act = chance(r, 60) ? HK_ACT_RELU : HK_ACT_CLIP;
  if (e->act == HK_ACT_CLIP) e->a = -2, e->b = 3;
  if (!s32 && chance(r, 20)) e->residual = chance(r, 50) ? HK_RESIDUAL_AFTER : HK_RESIDUAL_BEFORE, e->beta = 1;
}

static void stateful_draw(check_case *t, uint64_t *r) {
  if (t->p.rank != 1 || cli_problem_is_int8(&t->p) || !chance(r, 15)) return;
  t->with |= WITH_STATE;
  stateful_make(&t->p, r);
}

/* The gradient of a float problem that was drawn whole, strides included: of its filter three times out of four. What
 * has none (an empty y) stays a forward problem. */
static void gradient_draw(check_case *t, const check_budget *budget, uint64_t *r) {
  static const hk_type types[] = {HK_F32, HK_F32, HK_F32, HK_F32, HK_BF16, HK_F16, HK_F64};
  t->p.rank = (int32_t)(chance(r, 35) ? 1 : chance(r, 65) ? 2 : 3);
  t->p.x_type = t->p.f_type = t->p.y_type = types[below(r, 7)];
  if (chance(r, 15)) t->p.f_type = HK_F32; /* of 16-bit x and dy, in f32 */
  check_sizes_draw(t, budget, chance(r, 20) ? FAMILY_DEPTHWISE : chance(r, 60) ? FAMILY_RECIPE : FAMILY_ANY, r);
  if (cli_problem_is_int8(&t->p)) t->p.x_type = t->p.f_type = t->p.y_type = HK_F32;
  t->p.x_zero = t->p.f_zero = t->p.y_zero = 0;
  check_strides_draw(t, budget, 20, r);
  hk_problem grad = {.size = sizeof grad};
  if (!(chance(r, 75) ? hk_problem_grad_filter(&t->p, &grad) : hk_problem_grad_input(&t->p, &grad))) t->p = grad;
  if (chance(r, 25)) {
    t->e.residual = HK_RESIDUAL_AFTER;
    t->e.beta = 1;
    if (chance(r, 50)) t->with |= WITH_IN_PLACE;
  } else if (chance(r, 25)) plain_epilogue(t, r);
  if (chance(r, 70)) t->with |= WITH_LATE;
}

/* What the residual, user functions and so on do to the strides is settled last. */
void check_draw(check_case *t, hk_options *options, check_drawn kind, uint64_t *r) {
  const bool depthwise = kind == DRAW_DEPTHWISE;
  memset(t, 0, sizeof *t);
  t->p.size = sizeof t->p;
  t->e.size = sizeof t->e;
  t->seed = cli_random(r) >> 20;
  t->p.rank = (int32_t)(chance(r, 35) ? 1 : chance(r, 65) ? 2 : 3);
  const check_budget drawn = check_budget_draw(r), budget = kind == DRAW_SMALL ? check_budget_small() : drawn;
  const bool transposed = kind == DRAW_TRANSPOSED, recipe = chance(r, 35) && !depthwise && !transposed;
  if (kind == DRAW_GRADIENT) {
    gradient_draw(t, &budget, r);
    const hk_problem whole = t->p; /* another batch would need other strides */
    check_options_draw(t, options, r);
    t->p = whole;
    if (options->device == HK_CUDA) check_case_leave_out(t);
    check_case_settle(t);
    check_workspace_draw(t, options, r);
    return;
  }
  if (kind == DRAW_NARROW) narrow_choose(&t->p, r);
  else types_choose(&t->p, r);
  zeros_choose(&t->p, r);
  check_sizes_draw(t, &budget,
                   depthwise    ? FAMILY_DEPTHWISE
                   : transposed ? FAMILY_TRANSPOSED
                   : recipe     ? FAMILY_RECIPE
                                : FAMILY_ANY,
                   r);
  check_options_draw(t, options, r);
  if (!transposed) stateful_draw(t, r);
  if (chance(r, 35)) check_edges_draw(t, options, &budget, r);
  if (t->with & WITH_STATE) {
    t->p.pad_lo[0] = t->p.dilation[0] * (t->p.window[0] - 1);
    t->p.pad_hi[0] = 0;
  }
  if (chance(r, recipe ? 1 : 5)) emptied(&t->p, r);
  if ((recipe || transposed) && chance(r, 65)) plain_epilogue(t, r);
  else epilogue_choose(t, r);
  if (cli_problem_is_int8(&t->p) && chance(r, 25)) t->with |= WITH_F_ZEROS;
  if (chance(r, recipe ? 8 : 22)) t->with |= WITH_LATE;
  check_strides_draw(t, &budget, recipe ? 15 : 45, r);
  if (options->device == HK_CUDA) check_case_leave_out(t);
  check_case_settle(t);
  check_workspace_draw(t, options, r);
}

void check_random(check_case *t, hk_options *options, check_drawn kind, uint64_t seed) {
  uint64_t state = seed;
  check_draw(t, options, kind, &state);
}
