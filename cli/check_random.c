/* Random problems from a seed: small, but of every kind that the specification names, each often enough to show in
 * --stats with at least one percent. Everything made here is legal; what the library refuses is a finding. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { MOST_PRODUCTS = 40000, MOST_ELEMENTS = 12000 };

static int64_t below(uint64_t *r, int64_t n) { return cli_random_below(r, n); }
static int64_t between(uint64_t *r, int64_t a, int64_t b) { return a + below(r, b - a + 1); }
static bool chance(uint64_t *r, int percent) { return below(r, 100) < percent; }

/* ---- types */
static void types_choose(hk_problem *p, uint64_t *r) {
  static const hk_type common[][3] = {{HK_F32, HK_F32, HK_F32}, {HK_F32, HK_F32, HK_F32},    {HK_F32, HK_F32, HK_F32},
                                      {HK_F32, HK_F32, HK_F32}, {HK_F64, HK_F64, HK_F64},    {HK_F16, HK_F16, HK_F16},
                                      {HK_F16, HK_F16, HK_F32}, {HK_BF16, HK_BF16, HK_BF16}, {HK_BF16, HK_BF16, HK_F32},
                                      {HK_S8, HK_S8, HK_S32},   {HK_S8, HK_S8, HK_S8},       {HK_U8, HK_S8, HK_U8},
                                      {HK_U8, HK_S8, HK_S32},   {HK_U8, HK_S8, HK_F32}};
  static const hk_type floats[] = {HK_F32, HK_F64, HK_F16, HK_BF16, HK_F8E4M3, HK_S8, HK_U8};
  static const hk_type from_int8[] = {HK_S32, HK_S8, HK_U8, HK_F32, HK_F64, HK_F16, HK_BF16, HK_F8E4M3};
  if (chance(r, 45)) {
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

static int32_t zero_point(hk_type t, uint64_t *r) {
  return (int32_t)(t == HK_U8 ? below(r, 256) : t == HK_S8 ? between(r, -128, 127) : 0);
}

static void zeros_choose(hk_problem *p, uint64_t *r) {
  if (cli_problem_is_int8(p) && chance(r, 60)) p->x_zero = zero_point(p->x_type, r);
  if (cli_problem_is_int8(p) && chance(r, 40)) p->f_zero = zero_point(p->f_type, r);
  if (chance(r, 50)) p->y_zero = zero_point(p->y_type, r);
}

/* ---- sizes */
static int64_t channels_choose(uint64_t *r) {
  return chance(r, 60) ? between(r, 1, 8) : chance(r, 85) ? between(r, 9, 40) : between(r, 41, 100);
}

static void groups_choose(hk_problem *p, bool grouped, uint64_t *r) {
  int64_t kind = below(r, grouped ? 43 : 100);
  p->n = between(r, 1, 3);
  p->feature_groups = p->batch_groups = 1;
  p->c = channels_choose(r);
  p->k = channels_choose(r);
  if (kind < 20) { /* grouped */
    p->feature_groups = between(r, 2, 6);
    p->c = p->feature_groups * between(r, 1, 9);
    p->k = p->feature_groups * between(r, 1, 9);
  } else if (kind < 33) /* depthwise */
    p->feature_groups = p->k = p->c;
  else if (kind < 43) { /* with a multiplier */ p->feature_groups = p->c = between(r, 2, 20);
    p->k = p->c * between(r, 2, 4);
  } else if (kind < 56) { /* batch groups */
    p->batch_groups = between(r, 2, 4);
    p->n = p->batch_groups * between(r, 1, 3);
    p->k = p->batch_groups * between(r, 1, 9);
  }
}

static void dimension_choose(hk_problem *p, int d, bool crop, bool stretch, uint64_t *r) {
  p->in[d] = p->rank == 1 ? between(r, 1, 70) : p->rank == 2 ? between(r, 1, 16) : between(r, 1, 7);
  p->window[d] = chance(r, 25) ? 1 : between(r, 1, p->rank == 3 ? 3 : 5);
  p->stride[d] = chance(r, 60) ? 1 : between(r, 2, 4);
  p->dilation[d] = chance(r, 70) ? 1 : between(r, 2, 3);
  p->in_dilation[d] = stretch ? between(r, 1, 3) : 1;
  p->pad_lo[d] = between(r, crop ? -2 : 0, 3);
  p->pad_hi[d] = between(r, crop ? -2 : 0, 3);
}

/* Of --family depthwise: mostly f32, and longer windows of one dimension than others have. */
static void depthwise_choose(hk_problem *p, uint64_t *r) {
  if (chance(r, 85)) {
    p->x_type = p->f_type = p->y_type = HK_F32;
    p->x_zero = p->f_zero = p->y_zero = 0;
  }
  if (p->rank != 1 || !chance(r, 50)) return;
  p->in[0] = between(r, 1, 400);
  p->window[0] = between(r, 1, chance(r, 70) ? 9 : 200);
  p->dilation[0] = chance(r, 70) ? 1 : between(r, 2, 40);
}

static double products(const check_case *t) {
  check_shape s;
  check_shape_make(&s, t);
  return (double)s.sums * (double)s.gk;
}

static double elements(const check_case *t) {
  check_shape s;
  check_shape_make(&s, t);
  double x = (double)s.groups * (double)s.n * (double)s.c * (double)s.in[0] * (double)s.in[1] * (double)s.in[2];
  return x + (double)s.sums;
}

/* Halves sizes until a reference in plain C takes well under a millisecond. */
static void shrink(check_case *t) {
  hk_problem *p = &t->p;
  for (int turn = 0; products(t) > MOST_PRODUCTS || elements(t) > MOST_ELEMENTS; turn++) {
    int d = turn % (p->rank + 1);
    if (d < p->rank) p->in[d] = (p->in[d] + 1) / 2;
    else if (p->batch_groups == 1 && p->n > 1) p->n = 1;
    else if (p->feature_groups == 1 && turn > 8) p->c = (p->c + 1) / 2;
    else if (turn > 16 && p->window[turn % p->rank] > 1) p->window[turn % p->rank]--;
    if (turn > 24)
      for (int i = 0; i < p->rank; i++) p->pad_lo[i] = p->pad_hi[i] = 0;
    if (turn > 40) break;
  }
}

static void emptied(hk_problem *p, uint64_t *r) {
  switch (below(r, 4)) {
  case 0: p->n = 0; break;
  case 1: p->c = 0; break;
  case 2: p->k = 0; break;
  default: p->in[below(r, p->rank)] = 0;
  }
}

/* ---- strides */
static void strides_choose(hk_strides *s, const int64_t size[6], int rank, bool may_share, uint64_t *r) {
  int64_t *axis[6] = {&s->group, &s->outer, &s->channel, &s->at[0], &s->at[1], &s->at[2]}, step = between(r, 1, 2);
  int order[6] = {0, 1, 2, 3, 4, 5}, count = 3 + rank;
  *s = (hk_strides){0};
  for (int i = count - 1; i > 0; i--) {
    int j = (int)below(r, i + 1), keep = order[i];
    order[i] = order[j];
    order[j] = keep;
  }
  bool negative = chance(r, 40), shared = may_share && chance(r, 25), gaps = chance(r, 50), settled = chance(r, 50);
  for (int i = 0; i < count; i++) {
    int a = order[i];
    int64_t n = size[a] > 0 ? size[a] : 1;
    if (shared && chance(r, 30)) continue; /* stays 0 */
    bool back = negative && chance(r, 40);
    *axis[a] = back ? -step : step;
    if (back && settled) s->offset += (n - 1) * step;
    step *= n + (gaps ? below(r, 3) : 0);
  }
}

static void layout_choose(check_case *t, uint64_t *r) {
  hk_problem *p = &t->p;
  hk_layout layout = chance(r, 55) ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST;
  hk_problem_dense(p, layout);
  if (t->e.gate) hk_problem_dense_y(p, layout, p->k / 2);
  if (!chance(r, 35)) return;
  check_shape s;
  check_shape_make(&s, t);
  int lead = 3 - p->rank, which = (int)between(r, 1, 7);
  const check_axes *axes[3] = {&s.x, &s.f, &s.y};
  hk_strides *strides[3] = {&p->x, &p->f, &p->y};
  for (int i = 0; i < 3; i++) {
    int64_t size[6] = {axes[i]->size[0], axes[i]->size[1], axes[i]->size[2], 1, 1, 1};
    for (int d = 0; d < p->rank; d++) size[3 + d] = axes[i]->size[3 + lead + d];
    if (which >> i & 1) strides_choose(strides[i], size, p->rank, i < 2, r);
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
static void stateful_make(check_case *t, uint64_t *r) {
  hk_problem *p = &t->p;
  if (p->batch_groups > 1) p->n = p->batch_groups, p->batch_groups = 1;
  p->stride[0] = p->in_dilation[0] = 1;
  p->dilation[0] = between(r, 1, 6);
}

void check_random(check_case *t, hk_options *options, bool depthwise, uint64_t seed) {
  uint64_t state = seed, *r = &state;
  memset(t, 0, sizeof *t);
  t->p.size = sizeof t->p;
  t->e.size = sizeof t->e;
  t->seed = cli_random_mix(seed, 5) >> 20;
  t->p.rank = (int32_t)(chance(r, 35) ? 1 : chance(r, 65) ? 2 : 3);
  types_choose(&t->p, r);
  zeros_choose(&t->p, r);
  groups_choose(&t->p, depthwise, r);
  bool crop = chance(r, 15), stretch = chance(r, 15);
  for (int d = 0; d < t->p.rank; d++) dimension_choose(&t->p, d, crop, stretch, r);
  if (depthwise) depthwise_choose(&t->p, r);
  for (int d = 0; d < t->p.rank && chance(r, 15); d++) t->p.reverse[d] = 1;
  if (t->p.rank == 1 && !cli_problem_is_int8(&t->p) && chance(r, 15)) t->with |= WITH_STATE;
  if (t->with & WITH_STATE) stateful_make(t, r);
  shrink(t);
  if (t->with & WITH_STATE) {
    t->p.pad_lo[0] = t->p.dilation[0] * (t->p.window[0] - 1);
    t->p.pad_hi[0] = 0;
  }
  if (chance(r, 4)) emptied(&t->p, r);
  epilogue_choose(t, r);
  if (cli_problem_is_int8(&t->p) && chance(r, 25)) t->with |= WITH_F_ZEROS;
  if (chance(r, 20)) t->with |= WITH_LATE;
  layout_choose(t, r);
  check_case_settle(t);
  if (chance(r, 8)) options->rigor = HK_PATIENT; /* other knob settings of each candidate, too */
  options->math = chance(r, 40) ? HK_MATH_FAST_ALGORITHMS : HK_MATH_STRICT;
}
