/* Strides of random problems: dense in one of the two layouts, any order of the axes with gaps and reversed axes,
 * strides of 0 and overlapping views (x and f only), and rows a multiple of 4 KiB apart. */
#include "check/check.h"

static int64_t below(uint64_t *r, int64_t n) { return cli_random_below(r, n); }
static int64_t between(uint64_t *r, int64_t a, int64_t b) { return check_between(r, a, b); }
static bool chance(uint64_t *r, int percent) { return check_chance(r, percent); }

typedef struct tensor {
  hk_strides *strides;
  int64_t size[6]; /* group, outer, channel, dimensions */
  int rank;
  bool read_only;
  int64_t page; /* elements of 4 KiB */
} tensor;

static int64_t *axis_of(hk_strides *s, int i) {
  return i == 0 ? &s->group : i == 1 ? &s->outer : i == 2 ? &s->channel : &s->at[i - 3];
}

static void order_draw(int *order, int count, uint64_t *r) {
  for (int i = 0; i < count; i++) order[i] = i;
  for (int i = count - 1; i > 0; i--) {
    int j = (int)below(r, i + 1), keep = order[i];
    order[i] = order[j];
    order[j] = keep;
  }
}

static void any_order(tensor *t, uint64_t *r) {
  int order[6], count = 3 + t->rank;
  int64_t step = between(r, 1, 2);
  hk_strides *s = t->strides;
  *s = (hk_strides){0};
  order_draw(order, count, r);
  bool negative = chance(r, 40), shared = t->read_only && chance(r, 25), gaps = chance(r, 50), settled = chance(r, 50);
  for (int i = 0; i < count; i++) {
    int64_t n = t->size[order[i]] > 0 ? t->size[order[i]] : 1, *axis = axis_of(s, order[i]);
    if (shared && chance(r, 30)) continue; /* stays 0 */
    bool back = negative && chance(r, 40);
    *axis = back ? -step : step;
    if (back && settled) s->offset += (n - 1) * step;
    step *= n + (gaps ? below(r, 3) : 0);
  }
}

/* Places one axis, and all that lie beyond it, a multiple of 4 KiB apart: loads and stores alias. */
static void far_apart(tensor *t, int axis) {
  const int64_t old = *axis_of(t->strides, axis);
  const int64_t far = (old + t->page - 1) / t->page * t->page;
  for (int i = 0; i < 3 + t->rank && old > 0; i++) {
    int64_t *s = axis_of(t->strides, i);
    if (*s >= old) *s = *s / old * far;
  }
}

static void broadcast(tensor *t, uint64_t *r) { *axis_of(t->strides, (int)below(r, 3 + t->rank)) = 0; }

/* Two axes with one stride: the windows of a signal as a matrix. */
static void overlap(tensor *t, uint64_t *r) {
  int64_t *a = axis_of(t->strides, (int)between(r, 1, 2 + t->rank));
  *a = *axis_of(t->strides, (int)between(r, 1, 2 + t->rank));
}

static void tensors_make(tensor v[3], check_case *t) {
  check_shape s;
  hk_problem *p = &t->p;
  check_shape_make(&s, t);
  const check_axes *axes[3] = {&s.x, &s.f, &s.y};
  hk_strides *strides[3] = {&p->x, &p->f, &p->y};
  const hk_type type[3] = {p->x_type, p->f_type, p->y_type};
  for (int i = 0; i < 3; i++) {
    v[i] = (tensor){.strides = strides[i], .rank = p->rank, .read_only = i < 2};
    v[i].page = 4096 / (int64_t)hk_type_bytes(type[i]);
    for (int a = 0; a < 3; a++) v[i].size[a] = axes[i]->size[a];
    for (int d = 0; d < p->rank; d++) v[i].size[3 + d] = axes[i]->size[3 + 3 - p->rank + d];
  }
}

static bool extents_fit(const check_case *t, double most) {
  check_shape s;
  check_shape_make(&s, t);
  return (double)s.x.elements + (double)s.f.elements + (double)s.y.elements <= most;
}

static void dense_draw(check_case *t, uint64_t *r) {
  hk_problem *p = &t->p;
  hk_layout layout = chance(r, 55) ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST;
  hk_problem_dense(p, layout);
  if (chance(r, 10)) { /* x in the other layout */
    hk_problem other = *p;
    hk_problem_dense(&other, layout == HK_CHANNELS_LAST ? HK_CHANNELS_FIRST : HK_CHANNELS_LAST);
    p->x = other.x;
  }
  if (t->e.gate) hk_problem_dense_y(p, layout, p->k / 2);
}

static void tensor_draw(tensor *v, uint64_t *r) {
  const int64_t kind = below(r, 100);
  if (kind < 60) any_order(v, r);
  else if (kind < 75) far_apart(v, (int)between(r, 1, 2 + v->rank));
  else if (v->read_only && kind < 90) broadcast(v, r);
  else if (v->read_only) overlap(v, r);
}

void check_strides_draw(check_case *t, const check_budget *b, int percent, uint64_t *r) {
  tensor v[3];
  dense_draw(t, r);
  if (chance(r, 5)) t->p.x.at[below(r, t->p.rank)] = 0;
  const hk_problem keep = t->p;
  tensors_make(v, t);
  if (chance(r, 4)) { /* the pixels of x and y alike */
    far_apart(&v[0], 2 + t->p.rank);
    far_apart(&v[2], 2 + t->p.rank);
    if (!extents_fit(t, 2 * b->elements + 2e5)) t->p = keep;
    return;
  }
  if (!chance(r, percent)) return;
  const int64_t which = between(r, 1, 7);
  for (int i = 0; i < 3; i++)
    if (which >> i & 1) tensor_draw(&v[i], r);
  if (!extents_fit(t, 2 * b->elements + 2e5)) t->p = keep;
}

void check_strides_redraw(check_case *t, uint64_t *r) {
  tensor v[3];
  const hk_problem old = t->p;
  const int64_t which = chance(r, 50) ? 0 : between(r, 1, 3); /* y's, x's, or both */
  dense_draw(t, r);
  t->p.f = old.f;
  if (which == 0) t->p.x = old.x;
  if (which == 1) t->p.y = old.y;
  const hk_problem keep = t->p;
  tensors_make(v, t);
  for (int i = 0; i < 3; i += 2)
    if (which >= 2 && chance(r, 30)) tensor_draw(&v[i], r);
  if (!extents_fit(t, 4e5)) t->p = keep;
}
