/* Sizes of random problems: channels, groups, images, windows. Three kinds of draws follow one another. Each size
 * alone; then coupled sizes, in which one parameter equals, divides or just misses another (input dilation and stride,
 * window and image, padding and window); then sizes around the block edges of a decision: a candidate of the draft is
 * chosen, its knobs and the MRxNR of its kernel are read, and channels, pixels and windows are set to k*B-1, k*B,
 * k*B+1. */
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

static int64_t below(uint64_t *r, int64_t n) { return cli_random_below(r, n); }
static int64_t between(uint64_t *r, int64_t a, int64_t b) { return check_between(r, a, b); }
static bool chance(uint64_t *r, int percent) { return check_chance(r, percent); }

/* Most problems are small, so that there are many; every fortieth has 10^5 to 10^6 elements. */
check_budget check_budget_small(void) { return (check_budget){4e4, 1.2e4, 1}; }
check_budget check_budget_draw(uint64_t *r) {
  const int64_t kind = below(r, 1000);
  if (kind < 800) return check_budget_small();
  if (kind < 975) return (check_budget){6e5, 6e4, 3};
  return (check_budget){6e6, 4e5, 10};
}

bool check_sizes_fit(const check_case *t, const check_budget *b) {
  double elements, products;
  check_shape_size(t, &elements, &products);
  return elements <= b->elements && products <= b->products;
}

/* ---- each size alone */
static int64_t channels_draw(const check_budget *b, uint64_t *r) {
  static const int64_t widths[] = {4, 8, 16, 32, 64};
  if (chance(r, 20)) return between(r, 1, 2) * widths[below(r, 5)] + between(r, -1, 1);
  int64_t c = chance(r, 60) ? between(r, 1, 8) : chance(r, 85) ? between(r, 9, 40) : between(r, 41, 100);
  return chance(r, 30) ? c * between(r, 1, b->factor) : c;
}

static void groups_draw(hk_problem *p, bool grouped, const check_budget *b, uint64_t *r) {
  int64_t kind = below(r, grouped ? 43 : 100);
  p->n = chance(r, 90) ? between(r, 1, 3) : between(r, 4, 9);
  p->feature_groups = p->batch_groups = 1;
  p->c = channels_draw(b, r);
  p->k = channels_draw(b, r);
  if (kind < 20) { /* grouped */
    p->feature_groups = between(r, 2, chance(r, 80) ? 6 : 40);
    p->c = p->feature_groups * between(r, 1, 9);
    p->k = p->feature_groups * between(r, 1, 9);
  } else if (kind < 33) { /* depthwise */
    p->feature_groups = p->k = p->c;
  } else if (kind < 43) { /* with a multiplier */
    p->feature_groups = p->c = between(r, 2, 20);
    p->k = p->c * between(r, 2, 4);
  } else if (kind < 54) { /* batch groups */
    p->batch_groups = between(r, 2, 4);
    p->n = p->batch_groups * between(r, 1, 3);
    p->k = p->batch_groups * between(r, 1, 9);
  }
}

static void dimension_draw(hk_problem *p, int d, bool crop, bool stretch, const check_budget *b, uint64_t *r) {
  const int64_t most = p->rank == 1 ? 70 : p->rank == 2 ? 16 : 7;
  p->in[d] = between(r, 1, most * (p->rank == 1 ? b->factor * b->factor : b->factor));
  p->window[d] = chance(r, 25) ? 1 : between(r, 1, p->rank == 3 ? 3 : 5);
  p->stride[d] = chance(r, 60) ? 1 : between(r, 2, 4);
  p->dilation[d] = chance(r, 70) ? 1 : between(r, 2, 3);
  p->in_dilation[d] = stretch ? between(r, 1, 3) : 1;
  p->pad_lo[d] = between(r, crop ? -2 : 0, 3);
  p->pad_hi[d] = between(r, crop ? -2 : 0, 3);
}

/* Long lines, so that kernels along the last dimension meet whole blocks in small problems too. */
static void lines_draw(hk_problem *p, uint64_t *r) {
  for (int d = 0; d < p->rank - 1; d++) p->in[d] = between(r, 1, 4);
  p->in[p->rank - 1] = between(r, 17, 140);
  if (p->feature_groups == 1) p->c = between(r, 1, 12);
}

/* Typical of networks: 3x3 and 1x1 windows with equal strides and padding, which most algorithms accept. */
static void usual_draw(hk_problem *p, uint64_t *r) {
  const int64_t window = 2 * between(r, 0, chance(r, 80) ? 1 : 3) + 1, stride = chance(r, 75) ? 1 : 2;
  const int64_t pad = chance(r, 80) ? window / 2 : 0, dilation = chance(r, 90) ? 1 : 2;
  for (int d = 0; d < p->rank; d++) {
    p->window[d] = window, p->stride[d] = stride, p->dilation[d] = dilation, p->in_dilation[d] = 1;
    p->pad_lo[d] = p->pad_hi[d] = pad * dilation;
  }
}

/* For --family depthwise: mostly f32, and longer one-dimensional windows. */
static void depthwise_draw(hk_problem *p, uint64_t *r) {
  if (chance(r, 85)) {
    p->x_type = p->f_type = p->y_type = HK_F32;
    p->x_zero = p->f_zero = p->y_zero = 0;
  }
  if (p->rank != 1 || !chance(r, 50)) return;
  p->in[0] = between(r, 1, 400);
  p->window[0] = between(r, 1, chance(r, 70) ? 9 : 200);
  p->dilation[0] = chance(r, 70) ? 1 : between(r, 2, 40);
}

/* For --family transposed: input dilation in most dimensions, windows that it divides and that it does not, shorter
 * ones too, dilation of the window with and without a common divisor, and padding up to and beyond output_padding's. */
static void transposed_draw(hk_problem *p, uint64_t *r) {
  const bool equal = chance(r, 50), plain = chance(r, 50);
  const int64_t all = between(r, 2, 5);
  for (int d = 0; d < p->rank; d++) {
    const int64_t by = equal ? all : between(r, 1, 5);
    p->in_dilation[d] = by;
    p->window[d] = chance(r, 40) ? by * between(r, 1, 2) : between(r, 1, p->rank == 3 ? 4 : 7);
    p->stride[d] = plain || chance(r, 70) ? 1 : between(r, 2, 6);
    p->dilation[d] = plain || chance(r, 60) ? 1 : chance(r, 40) ? by : between(r, 2, 4);
    const int64_t reach = p->dilation[d] * (p->window[d] - 1);
    p->pad_lo[d] = chance(r, 80) ? reach - between(r, 0, reach < 3 ? reach : 3) : between(r, -2, reach + 4);
    p->pad_hi[d] = chance(r, 60) ? p->pad_lo[d] + between(r, 0, by - 1) : between(r, -2, reach + 4);
  }
  p->in_dilation[p->rank - 1] = chance(r, 80) ? between(r, 2, 5) : p->in_dilation[p->rank - 1];
}

/* ---- coupled sizes */
static int64_t reach_of(const hk_problem *p, int d) { return p->dilation[d] * (p->window[d] - 1) + 1; }
static int64_t span_of(const hk_problem *p, int d) { return p->in_dilation[d] * (p->in[d] - 1) + 1; }

/* The image's size that makes `out` outputs of a dimension; at least 1. */
static void outputs_set(hk_problem *p, int d, int64_t out) {
  const int64_t span = (out - 1) * p->stride[d] + reach_of(p, d) - p->pad_lo[d] - p->pad_hi[d];
  p->in[d] = span < 1 ? 1 : (span - 1) / p->in_dilation[d] + 1;
}

static int64_t prime_near(int64_t v) {
  for (;; v++) {
    bool prime = v > 1;
    for (int64_t q = 2; q * q <= v; q++) prime &= v % q != 0;
    if (prime) return v;
  }
}

static void window_make_long(hk_problem *p, int d, uint64_t *r) {
  static const int64_t edges[] = {33, 64, 65, 66, 96, 128, 130, 140, 192, 257};
  p->window[d] = edges[below(r, 10)] + between(r, -1, 1);
  p->dilation[d] = chance(r, 85) ? 1 : between(r, 2, 3);
  p->stride[d] = chance(r, 85) ? 1 : 2;
  p->in_dilation[d] = 1;
  p->pad_lo[d] = chance(r, 50) ? 0 : between(r, 0, 3);
  p->pad_hi[d] = chance(r, 50) ? 0 : between(r, 0, 3);
  outputs_set(p, d, between(r, 1, chance(r, 60) ? 70 : 300));
  if (p->feature_groups == 1) p->c = between(r, 1, 4), p->k = p->batch_groups * between(r, 1, 5);
  for (int i = 0; i < p->rank; i++)
    if (i != d && chance(r, 60)) p->in[i] = between(r, 1, 3), p->window[i] = between(r, 1, 3);
}

/* Input dilation and stride of one dimension, one a multiple of the other. */
static void stretch_couple(hk_problem *p, int d, uint64_t *r) {
  const int64_t some = between(r, 2, 4), other = some * between(r, 1, 3);
  p->in_dilation[d] = chance(r, 60) ? some : other;
  p->stride[d] = chance(r, 60) ? other : some;
}

/* Few taps with a large dilation. */
static void taps_spread(hk_problem *p, int d, uint64_t *r) {
  p->window[d] = between(r, 2, 4);
  p->dilation[d] = between(r, 10, chance(r, 70) ? 60 : 400);
  p->in_dilation[d] = 1;
  outputs_set(p, d, between(r, 1, 40));
}

static void dimension_couple(hk_problem *p, int d, uint64_t *r) {
  const int64_t some = between(r, 2, 4);
  switch (below(r, 14)) {
  case 0:
  case 1: stretch_couple(p, d, r); break;
  case 2:
    for (int i = 0; i < p->rank; i++)
      if (chance(r, 70)) stretch_couple(p, i, r);
    break;
  case 3:
    if (chance(r, 40)) taps_spread(p, d, r);
    else p->stride[d] = some, p->dilation[d] = some * between(r, 1, 2);
    break;
  case 4: p->dilation[d] = p->in_dilation[d] = some, p->stride[d] = chance(r, 50) ? 1 : some; break;
  case 5: /* a window beyond the image, and padding enough for outputs */
    p->window[d] = p->in[d] + between(r, 1, 4);
    p->pad_lo[d] = reach_of(p, d) - between(r, 1, 2), p->pad_hi[d] = between(r, 0, 4);
    break;
  case 6:
  case 7: window_make_long(p, d, r); break;
  case 8: p->pad_hi[d] = reach_of(p, d) - span_of(p, d) - p->pad_lo[d]; break; /* one output exactly */
  case 9: p->pad_hi[d] = reach_of(p, d) - span_of(p, d) - p->pad_lo[d] + between(r, -1, p->stride[d]); break;
  case 10: p->pad_lo[d] = reach_of(p, d) + below(r, 5), p->pad_hi[d] = reach_of(p, d) + below(r, 5); break;
  case 11: p->in[d] = prime_near(between(r, 5, 130)); break;
  case 12: outputs_set(p, d, between(r, 1, 3)); break;
  default: p->in[d] = (reach_of(p, d) + below(r, 3) - 1) / p->in_dilation[d] + 1; break;
  }
}

/* ---- block edges */
enum { MOST_EDGES = 32 };
typedef struct edges {
  uint64_t *r;
  int64_t seen;
  char decision[512];
  int64_t at[MOST_EDGES];
  int count;
} edges;

static void candidate_pick(void *context, const hk_candidate *c) {
  edges *e = context;
  if (!c->refusal && below(e->r, ++e->seen) == 0) snprintf(e->decision, sizeof e->decision, "%s", c->decision);
}

static void edge_add(edges *e, int64_t v) {
  if (v > 1 && v <= 8192 && e->count < MOST_EDGES) e->at[e->count++] = v;
}

/* The numbers of a decision's text: knob=value, and MRxNR of a kernel's name. */
static void edges_read(edges *e) {
  int64_t columns = 1;
  for (const char *s = e->decision; *s; s++) {
    char *end = NULL;
    if (*s == '=' && s[1] >= '0' && s[1] <= '9') {
      const int64_t v = strtoll(s + 1, &end, 10);
      edge_add(e, v);
      if (columns > 1 && v * columns < 4096) edge_add(e, v * columns);
    }
    if (*s != '_' || s[1] < '1' || s[1] > '9') continue;
    const int64_t rows = strtoll(s + 1, &end, 10);
    if (*end != 'x') continue;
    columns = strtoll(end + 1, NULL, 10);
    edge_add(e, rows);
    edge_add(e, columns);
  }
  static const int64_t widths[] = {4, 8, 16, 32, 64};
  edge_add(e, widths[below(e->r, 5)]);
}

/* Channels per group to v; of a depthwise problem the number of groups. */
static void channels_set(hk_problem *p, int64_t v, bool of_x) {
  const int64_t c = p->c / p->feature_groups, k = p->k / p->feature_groups;
  if (p->feature_groups > 1 && c == 1) {
    p->feature_groups = p->c = v;
    p->k = v * k;
  } else if (of_x) {
    p->c = p->feature_groups * v;
  } else {
    p->k = p->feature_groups * p->batch_groups * v;
  }
}

static void edge_set(hk_problem *p, const edges *e, uint64_t *r) {
  const int64_t base = e->at[below(r, e->count)];
  int64_t v = base * between(r, 1, 4) + between(r, -1, 1);
  const int d = chance(r, 70) ? p->rank - 1 : (int)below(r, p->rank);
  if (v < 1) v = 1;
  switch (below(r, 8)) {
  case 0:
  case 1: channels_set(p, v, true); break;
  case 2:
  case 3: channels_set(p, v, false); break;
  case 4: p->window[d] = v; break;
  case 5: p->in[d] = v; break;
  default: outputs_set(p, d, v);
  }
}

void check_edges_draw(check_case *t, const hk_options *options, const check_budget *b, uint64_t *r) {
  edges e = {.r = r};
  hk_options o = *options;
  o.stateful = (t->with & WITH_STATE) != 0;
  o.rigor = HK_ESTIMATE;
  if (hk_problem_dense(&t->p, chance(r, 50) ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST)) return;
  if (hk_plan_candidates(&t->p, NULL, &o, candidate_pick, &e)) return;
  edges_read(&e);
  for (int i = 0; i < 6; i++) {
    const check_case keep = *t;
    edge_set(&t->p, &e, r);
    if (!check_sizes_fit(t, b)) *t = keep;
  }
}

/* ---- all of it */
/* Halves sizes until the problem fits its budget. */
static void shrink(check_case *t, const check_budget *b) {
  hk_problem *p = &t->p;
  for (int turn = 0; !check_sizes_fit(t, b); turn++) {
    int d = turn % (p->rank + 1);
    if (d < p->rank) p->in[d] = (p->in[d] + 1) / 2;
    else if (p->batch_groups == 1 && p->n > 1) p->n = (p->n + 1) / 2;
    else if (p->feature_groups == 1 && turn > 8) p->c = (p->c + 1) / 2;
    else if (turn > 16 && p->window[turn % p->rank] > 1) p->window[turn % p->rank]--;
    if (turn > 24)
      for (int i = 0; i < p->rank; i++) p->pad_lo[i] = p->pad_hi[i] = 0;
    if (turn > 40) break;
  }
}

void check_sizes_draw(check_case *t, const check_budget *b, check_family family, uint64_t *r) {
  hk_problem *p = &t->p;
  const bool depthwise = family == FAMILY_DEPTHWISE;
  const bool crop = chance(r, 15), stretch = chance(r, 15);
  groups_draw(p, depthwise, b, r);
  for (int d = 0; d < p->rank; d++) dimension_draw(p, d, crop, stretch, b, r);
  if (p->rank > 1 && chance(r, 35)) lines_draw(p, r);
  if (chance(r, 30)) usual_draw(p, r);
  if (depthwise) depthwise_draw(p, r);
  if (family == FAMILY_TRANSPOSED) transposed_draw(p, r);
  if (family == FAMILY_RECIPE) check_recipe_draw(p, r);
  for (int d = 0; d < p->rank && chance(r, 15); d++) p->reverse[d] = 1;
  shrink(t, b);
  for (int i = 0; i < 3 && chance(r, family == FAMILY_RECIPE || family == FAMILY_TRANSPOSED ? 10 : 40); i++) {
    const check_case keep = *t;
    dimension_couple(p, (int)below(r, p->rank), r);
    if (!check_sizes_fit(t, b)) *t = keep;
  }
}
