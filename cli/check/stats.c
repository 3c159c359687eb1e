/* What the problems of a check covered: how many had each trait, as a table. */
#include <string.h>

#include "check/check.h"

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
                                   "zero point per channel",
                                   "scale",
                                   "scale per channel",
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

/* Parameters that meet: one equals, divides or exceeds another. */
static const char *const coupled[] = {
    "in_dil = stride",   "in_dil divides stride", "stride divides in_dil", "dilation, stride",
    "window over image", "padding over window",   "65 taps or more",       "one output",
    "strides of 4 KiB",  "channels 2^n"};
static const char *const sizes[] = {"gm over 256", "gn over 64", "gk over 256", "all three over 32", "10^5 elements"};
static const char *const option_words[] = {
    "threads",   "ISA cap",   "workspace limit", "workspace 0", "batch invariant", "no fallback", "patient",
    "fast math", "nonfinite", "flush",           "like",        "wisdom",          "hostile",     "alive"};
enum {
  COUPLED = sizeof coupled / sizeof *coupled,
  SIZES = sizeof sizes / sizeof *sizes,
  OPTIONS = sizeof option_words / sizeof *option_words,
  T_COUPLED = T_MORE + MORE,
  T_SIZES = T_COUPLED + COUPLED,
  T_OPTIONS = T_SIZES + SIZES
};
_Static_assert(T_OPTIONS + OPTIONS <= CHECK_TRAITS, "room for every trait");

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

static bool far_apart(const check_axes *a, hk_type type) {
  const int64_t page = 4096 / (int64_t)hk_type_bytes(type);
  for (int i = 0; i < 6; i++)
    if (a->size[i] > 1 && a->stride[i] && a->stride[i] % page == 0) return true;
  return false;
}

static void coupled_note(int64_t *counts, const check_case *t, const check_shape *s) {
  const hk_problem *p = &t->p;
  bool some[COUPLED] = {0};
  for (int d = 0; d < p->rank; d++) {
    const int64_t reach = p->dilation[d] * (p->window[d] - 1) + 1, in = p->in_dilation[d], stride = p->stride[d];
    some[0] |= in > 1 && in == stride;
    some[1] |= in > 1 && in < stride && stride % in == 0;
    some[2] |= stride > 1 && stride < in && in % stride == 0;
    some[3] |= stride > 1 && p->dilation[d] % stride == 0;
    some[4] |= reach > in * (p->in[d] - 1) + 1;
    some[5] |= p->window[d] > 1 && (p->pad_lo[d] >= reach || p->pad_hi[d] >= reach);
    some[6] |= p->window[d] >= 65;
  }
  some[7] = s->pixels == 1;
  some[8] = far_apart(&s->x, p->x_type) || far_apart(&s->f, p->f_type) || far_apart(&s->y, p->y_type);
  some[9] = p->c > 2 && !(p->c & (p->c - 1));
  for (int i = 0; i < COUPLED; i++) counts[T_COUPLED + i] += some[i];
}

static void sizes_note(int64_t *counts, const check_case *t, const check_shape *s) {
  const int64_t gm = s->n * s->pixels, gn = s->k;
  double elements, products;
  check_shape_size(t, &elements, &products);
  const bool some[SIZES] = {gm > 256, gn > 64, s->gk > 256, gm > 32 && gn > 32 && s->gk > 32, elements > 1e5};
  for (int i = 0; i < SIZES; i++) counts[T_SIZES + i] += some[i];
}

static void options_note(int64_t *counts, const check_case *t, const hk_options *o) {
  const bool some[OPTIONS] = {o->threads > 1,           o->isa != HK_ISA_BEST,
                              o->limit_workspace,       o->limit_workspace && !o->workspace_limit_bytes,
                              o->batch_invariant,       o->forbid_fallback,
                              o->rigor == HK_PATIENT,   o->math & HK_MATH_FAST_ALGORITHMS,
                              t->with & WITH_NONFINITE, t->with & WITH_FLUSH,
                              t->with & WITH_LIKE,      t->with & WITH_WISDOM,
                              t->with & WITH_HOSTILE,   t->with & WITH_ALIVE};
  for (int i = 0; i < OPTIONS; i++) counts[T_OPTIONS + i] += some[i];
}

void check_stats_note(int64_t counts[CHECK_TRAITS], const check_case *t, const hk_options *options) {
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
  coupled_note(counts, t, &s);
  sizes_note(counts, t, &s);
  options_note(counts, t, options);
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
  for (int i = 0; i < COUPLED; i++) line(file, "coupled", coupled[i], counts[T_COUPLED + i], total);
  for (int i = 0; i < SIZES; i++) line(file, "size", sizes[i], counts[T_SIZES + i], total);
  for (int i = 0; i < OPTIONS; i++) line(file, "option", option_words[i], counts[T_OPTIONS + i], total);
}
