/* What the problems of a check covered: how many had each trait, as a table. */
#include <string.h>

#include "check.h"

enum {
  T_RANK = 0,
  T_PAIR = 4, /* x type * 8 + f type */
  T_RESULT = T_PAIR + 64,
  T_GROUPING = T_RESULT + 8,
  T_ACT = T_GROUPING + 5,
  T_MORE = T_ACT + 14
};

static const char *const groupings[] = {"no groups", "feature groups", "depthwise", "channel multiplier",
                                        "batch groups"};
static const char *const acts[] = {"none", "relu", "clip",      "leaky",     "prelu",    "sigmoid",  "silu",
                                   "tanh", "gelu", "gelu_tanh", "hardswish", "hardtanh", "softsign", "user"};
static const char *const more[] = {"input dilation",
                                   "filter dilation",
                                   "stride > 1",
                                   "padding",
                                   "negative padding",
                                   "filter reversal",
                                   "zero sizes",
                                   "window does not fit",
                                   "channels first",
                                   "channels last",
                                   "odd strides",
                                   "strides with gaps",
                                   "negative strides",
                                   "zero strides",
                                   "zero points",
                                   "zero point a channel",
                                   "scale",
                                   "scale a channel",
                                   "bias",
                                   "gated",
                                   "blended",
                                   "residual after",
                                   "residual before",
                                   "residual strided",
                                   "residual in place",
                                   "user function",
                                   "second user function",
                                   "user store",
                                   "weights at execute",
                                   "stateful",
                                   "unequal padding"};
enum { MORE = sizeof more / sizeof *more };
_Static_assert(T_MORE + MORE <= CHECK_TRAITS, "room for every trait");

static int grouping_of(const hk_problem *p) {
  if (p->batch_groups > 1) return 4;
  if (p->feature_groups <= 1) return 0;
  if (p->feature_groups != p->c) return 1;
  return p->k == p->c ? 2 : 3;
}

typedef struct stride_traits {
  bool gaps, negative, zero;
} stride_traits;

static void strides_look(stride_traits *s, const check_axes *a) {
  int64_t count = 1;
  for (int i = 0; i < 6; i++) {
    count *= a->size[i];
    if (a->size[i] < 2) continue;
    s->negative |= a->stride[i] < 0;
    s->zero |= a->stride[i] == 0;
  }
  s->gaps |= a->elements > count;
}

static bool dense_as(const check_case *t, hk_layout layout) {
  hk_problem d = t->p;
  if (hk_problem_dense(&d, layout) || (t->e.gate && hk_problem_dense_y(&d, layout, d.k / 2))) return false;
  return !memcmp(&d.x, &t->p.x, sizeof d.x) && !memcmp(&d.f, &t->p.f, sizeof d.f) && !memcmp(&d.y, &t->p.y, sizeof d.y);
}

void check_stats_note(int64_t counts[CHECK_TRAITS], const check_case *t) {
  const hk_problem *p = &t->p;
  const hk_epilogue *e = &t->e;
  check_shape s;
  stride_traits strides = {0};
  check_shape_make(&s, t);
  strides_look(&strides, &s.x);
  strides_look(&strides, &s.f);
  strides_look(&strides, &s.y);
  bool some[MORE] = {0}, first = dense_as(t, HK_CHANNELS_FIRST), last = dense_as(t, HK_CHANNELS_LAST);
  for (int d = 0; d < p->rank; d++) {
    some[0] |= p->in_dilation[d] > 1;
    some[1] |= p->dilation[d] > 1;
    some[2] |= p->stride[d] > 1;
    some[3] |= p->pad_lo[d] > 0 || p->pad_hi[d] > 0;
    some[4] |= p->pad_lo[d] < 0 || p->pad_hi[d] < 0;
    some[5] |= p->reverse[d] != 0;
    some[6] |= p->in[d] == 0;
    some[30] |= p->pad_lo[d] != p->pad_hi[d];
  }
  some[6] |= !p->n || !p->c || !p->k;
  some[7] = s.pixels == 0;
  bool rest[] = {first,
                 last,
                 !first && !last,
                 strides.gaps,
                 strides.negative,
                 strides.zero,
                 p->x_zero || p->f_zero || p->y_zero,
                 t->with & WITH_F_ZEROS,
                 e->scale == 1,
                 e->scale == 2,
                 e->bias,
                 e->gate == HK_GATE_GATED,
                 e->gate == HK_GATE_BLENDED,
                 e->residual == HK_RESIDUAL_AFTER,
                 e->residual == HK_RESIDUAL_BEFORE,
                 t->with & WITH_C_STRIDES,
                 t->with & WITH_IN_PLACE,
                 t->with & WITH_USER,
                 t->with & WITH_USER2,
                 t->with & WITH_STORE,
                 t->with & WITH_LATE,
                 t->with & WITH_STATE};
  memcpy(some + 8, rest, sizeof rest);
  counts[T_RANK + p->rank]++;
  counts[T_PAIR + p->x_type * 8 + p->f_type]++;
  counts[T_RESULT + p->y_type]++;
  counts[T_GROUPING + grouping_of(p)]++;
  counts[T_ACT + e->act]++;
  for (int i = 0; i < MORE; i++) counts[T_MORE + i] += some[i];
}

static void line(FILE *file, const char *kind, const char *name, int64_t count, int64_t total) {
  fprintf(file, "%-10s %-22s %9lld %6.2f %%\n", kind, name, (long long)count,
          total ? 100.0 * (double)count / (double)total : 0.0);
}

void check_stats_print(const int64_t counts[CHECK_TRAITS], int64_t total, FILE *file) {
  char name[40];
  for (int i = 1; i <= 3; i++) line(file, "rank", (const char *[]){"1", "2", "3"}[i - 1], counts[T_RANK + i], total);
  for (int i = 0; i < 64; i++) {
    if (!counts[T_PAIR + i]) continue;
    snprintf(name, sizeof name, "%s:%s", hk_type_name((hk_type)(i / 8)), hk_type_name((hk_type)(i % 8)));
    line(file, "types x:f", name, counts[T_PAIR + i], total);
  }
  for (int i = 0; i < 8; i++) line(file, "type y", hk_type_name((hk_type)i), counts[T_RESULT + i], total);
  for (int i = 0; i < 5; i++) line(file, "grouping", groupings[i], counts[T_GROUPING + i], total);
  for (int i = 0; i < 14; i++) line(file, "activation", acts[i], counts[T_ACT + i], total);
  for (int i = 0; i < MORE; i++) line(file, "trait", more[i], counts[T_MORE + i], total);
}
