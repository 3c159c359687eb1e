/* Random calls of hk_causal and their results. See causal.h. */
#include "support/causal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "support/check.h"

static int64_t between(uint64_t *seed, int64_t lo, int64_t hi) { return hk_test_between(seed, lo, hi); }
static bool chance(uint64_t *seed, int64_t of) { return between(seed, 0, of - 1) == 0; }
static void put(causal_tensor *m, int64_t o, int64_t c, int64_t t, double v) {
  hk_store_element(m->type, m->base, causal_element(m, o, c, t), v);
}

/* Random nested strides: the axes in random order, gaps between them, some reversed. */
static hk_causal_strides random_strides(uint64_t *seed, const int64_t size[3]) {
  int order[3] = {0, 1, 2};
  if (chance(seed, 2)) order[0] = 0, order[1] = 2, order[2] = 1; /* slowest first: [outer][time][c] */
  if (chance(seed, 5))
    for (int i = 2; i > 0; i--) {
      const int j = (int)between(seed, 0, i), t = order[i];
      order[i] = order[j], order[j] = t;
    }
  int64_t stride[3], step = chance(seed, 6) ? between(seed, 2, 3) : 1;
  for (int i = 2; i >= 0; i--) {
    stride[order[i]] = step;
    step = step * (size[order[i]] ? size[order[i]] : 1) + (chance(seed, 3) ? between(seed, 0, 5) : 0);
  }
  for (int i = 0; i < 3; i++)
    if (chance(seed, 20)) stride[i] = -stride[i];
  return (hk_causal_strides){stride[0], stride[1], stride[2]};
}

/* Memory that ends (or begins) at a guard page exactly where the tensor does. */
static void place(causal_tensor *m, uint64_t *seed) {
  const int64_t size[3] = {m->outer, m->c, m->time}, stride[3] = {m->at.outer, m->at.channel, m->at.time};
  int64_t lo = 0, hi = 0;
  for (int i = 0; i < 3; i++) {
    if (size[i] == 0) lo = hi = 0;
    if (size[0] == 0 || size[1] == 0 || size[2] == 0) break;
    const int64_t far = (size[i] - 1) * stride[i];
    if (far > 0) hi += far;
    else lo += far;
  }
  const bool empty = !size[0] || !size[1] || !size[2], high = !chance(seed, 3);
  const size_t bytes = hk_type_bytes(m->type);
  m->elements = empty ? 0 : hi - lo + 1;
  const size_t floats = ((size_t)m->elements * bytes + 3) / 4;
  m->g = guarded_make(floats, high);
  m->memory = (char *)m->g.at + (high ? floats * 4 - (size_t)m->elements * bytes : 0);
  m->base = m->memory - lo * (int64_t)bytes;
  m->owned = calloc((size_t)m->elements + 1, 1);
  if (!m->owned) abort();
  for (int64_t o = 0; o < m->outer && !empty; o++)
    for (int64_t c = 0; c < m->c; c++)
      for (int64_t t = 0; t < m->time; t++) m->owned[causal_element(m, o, c, t) - lo] = 1;
}

/* NaN everywhere, then values in the tensor's own places. */
static void fill(causal_tensor *m, uint64_t *seed, bool exact, int range) {
  for (int64_t i = 0; i < m->elements; i++) hk_store_element(m->type, m->memory, i, NAN);
  for (int64_t o = 0; o < m->outer; o++)
    for (int64_t c = 0; c < m->c; c++)
      for (int64_t t = 0; t < m->time; t++)
        put(m, o, c, t, exact ? hk_test_integer(seed, range) : (double)hk_test_float(seed) * range);
}

static size_t bytes_of(const causal_tensor *m) { return (size_t)m->elements * hk_type_bytes(m->type); }

static void save(causal_tensor *m) {
  if (!m->owned) return;
  m->saved = malloc(bytes_of(m) + 1);
  if (!m->saved) abort();
  memcpy(m->saved, m->memory, bytes_of(m));
}

enum { TENSORS = 13 };
static void list(causal_trial *t, causal_tensor *all[TENSORS]) {
  causal_tensor *each[TENSORS] = {&t->x,  &t->y,         &t->pre,       &t->post,      &t->residual,
                                  &t->f,  &t->bias,      &t->state_in,  &t->state_out, &t->dy,
                                  &t->dx, &t->dstate_in, &t->dstate_out};
  memcpy(all, each, sizeof each);
}

static causal_tensor like(const causal_trial *t, hk_type type) {
  const hk_causal_desc *d = &t->d;
  return (causal_tensor){
      .type = type, .outer = d->packing == HK_CAUSAL_OFFSETS ? 1 : d->n, .c = d->c, .time = d->length};
}

static void random_tensor(causal_tensor *m, uint64_t *seed, hk_causal_strides *at) {
  const int64_t size[3] = {m->outer, m->c, m->time};
  *at = m->at = random_strides(seed, size);
  place(m, seed);
}

static hk_type random_type(uint64_t *seed) {
  static const hk_type types[] = {HK_F32, HK_F16, HK_BF16};
  return types[between(seed, 0, 2)];
}

static void draw_sizes(causal_trial *t, uint64_t *seed, causal_kind kind) {
  static const int64_t windows[] = {1, 2, 3, 4, 4, 4, 5, 7, 12, 31};
  static const hk_act acts[] = {HK_ACT_SILU,    HK_ACT_SILU, HK_ACT_TANH, HK_ACT_GELU,      HK_ACT_GELU_TANH,
                                HK_ACT_SIGMOID, HK_ACT_CLIP, HK_ACT_RELU, HK_ACT_HARDSWISH, HK_ACT_SOFTSIGN};
  hk_causal_desc *d = &t->d;
  *d = (hk_causal_desc){.size = sizeof *d};
  d->x_type = random_type(seed), d->f_type = random_type(seed), d->state_type = random_type(seed);
  d->y_type = random_type(seed);
  if (chance(seed, 2)) d->y_type = d->x_type;
  if (chance(seed, 2)) d->f_type = d->state_type = d->x_type;
  d->n = chance(seed, 30) ? 0 : between(seed, 1, CAUSAL_MAX_N - 2);
  d->c = chance(seed, 30) ? 0 : between(seed, 1, chance(seed, 3) ? 150 : 40);
  d->length = chance(seed, 30) ? 0 : between(seed, 1, chance(seed, 3) ? 100 : chance(seed, 2) ? 4 : 30);
  d->window = windows[between(seed, 0, 9)];
  d->dilation = chance(seed, 4) ? between(seed, 2, 5) : chance(seed, 2);
  d->packing = chance(seed, 3) ? HK_CAUSAL_OFFSETS : chance(seed, 5) ? HK_CAUSAL_IDS : HK_CAUSAL_BATCH;
  d->has_bias = chance(seed, 2);
  t->exact = chance(seed, 2);
  if (t->exact) d->act = chance(seed, 2) ? HK_ACT_RELU : HK_ACT_NONE;
  else if (!chance(seed, 5)) d->act = acts[between(seed, 0, 9)];
  if (d->act == HK_ACT_CLIP) d->a = -0.5f, d->b = 0.25f;
  if (kind == CAUSAL_GRADIENT) {
    d->gradient = 1;
    if (d->act && d->act != HK_ACT_RELU) d->act = HK_ACT_SILU;
    return;
  }
  d->has_pre = chance(seed, 4), d->has_post = chance(seed, 4), d->has_residual = chance(seed, 4);
  d->in_place = d->x_type == d->y_type && chance(seed, 4);
}

static void draw_packing(causal_trial *t, uint64_t *seed) {
  hk_causal_desc *d = &t->d;
  if (d->packing == HK_CAUSAL_OFFSETS) {
    int64_t at = chance(seed, 3) ? between(seed, 0, d->length / 3) : 0;
    for (int64_t s = 0; s <= d->n; s++) {
      t->offsets[s] = (int32_t)at;
      const int64_t step = s == d->n - 1 && chance(seed, 2) ? d->length - at : between(seed, 0, d->length / (d->n + 1));
      if (step > d->longest) d->longest = s < d->n ? step : d->longest;
      at += step;
    }
    if (d->longest && chance(seed, 2)) d->longest = 0;
    t->a.offsets = t->offsets;
  } else if (d->packing == HK_CAUSAL_IDS) {
    t->ids = calloc((size_t)(d->n * d->length) + 1, sizeof *t->ids);
    if (!t->ids) abort();
    int32_t id = 0;
    for (int64_t i = 0; i < d->n * d->length; i++) {
      if (chance(seed, 9)) id = (int32_t)between(seed, -1, 2);
      t->ids[i] = id;
    }
    t->a.ids = t->ids;
  }
}

static int64_t longest(const hk_causal_desc *d) { return d->longest ? d->longest : d->length; }
static int64_t reach(const hk_causal_desc *d) { return (d->dilation ? d->dilation : 1) * (d->window - 1); }

static void shuffle_slots(int32_t *to, int64_t n, int64_t slots, uint64_t *seed) {
  int32_t all[64];
  for (int32_t i = 0; i < slots; i++) all[i] = i;
  for (int64_t i = 0; i < n; i++) {
    const int64_t j = between(seed, i, slots - 1);
    const int32_t v = all[j];
    all[j] = all[i], all[i] = v;
    to[i] = v;
  }
}

/* Slots of a call: those written are read by their own sequence alone. */
static void draw_slots(causal_trial *t, uint64_t *seed) {
  hk_causal_desc *d = &t->d;
  t->slots = 2 * d->n + 3;
  shuffle_slots(t->slots_in, d->n, t->slots, seed);
  t->a.slots_in = t->slots_in;
  if (t->copied_state && chance(seed, 2)) {
    shuffle_slots(t->slots_out, d->n, t->slots, seed);
    t->a.slots_out = t->slots_out;
  }
  if (!chance(seed, 2)) return;
  d->has_skip = 1, d->skip = chance(seed, 2) ? -1 : 1000;
  for (int64_t s = 0; s < d->n; s++) {
    if (chance(seed, 4)) t->slots_in[s] = (int32_t)d->skip;
    if (chance(seed, 4) && t->a.slots_out) t->slots_out[s] = (int32_t)d->skip;
  }
}

static void draw_state(causal_trial *t, uint64_t *seed, causal_kind kind) {
  hk_causal_desc *d = &t->d;
  t->slots = d->n;
  if (d->packing == HK_CAUSAL_IDS || !chance(seed, 2)) return;
  const int64_t extra = chance(seed, 2) ? 0 : between(seed, 0, 6);
  d->state_length = reach(d) + extra;
  if (!d->state_length) return;
  t->copied_state = chance(seed, 2);
  if (chance(seed, 3)) {
    for (int64_t s = 0; s < d->n; s++) t->has_state[s] = !chance(seed, 2);
    t->a.has_state = t->has_state;
  }
  if (kind == CAUSAL_GRADIENT) return;
  if (chance(seed, 3)) {
    d->ring = 1;
    for (int64_t s = 0; s < d->n; s++) t->positions[s] = (int32_t)between(seed, 0, chance(seed, 2) ? 3 : 1000);
    t->a.positions = t->positions;
  } else if (chance(seed, 3)) {
    d->state_length = (reach(d) ? reach(d) - 1 : 0) + (longest(d) ? longest(d) : 1) + extra;
    for (int64_t s = 0; s < d->n; s++) t->accepted[s] = (int32_t)between(seed, 1, d->state_length - reach(d) + 1);
    t->a.accepted = t->accepted;
  }
  if (chance(seed, 2)) draw_slots(t, seed);
}

static void make_state(causal_trial *t, causal_tensor *m, uint64_t *seed, const hk_causal_strides *at) {
  *m = (causal_tensor){.type = t->d.state_type, .outer = t->slots, .c = t->d.c, .time = t->d.state_length};
  if (at) {
    m->at = *at;
    place(m, seed);
  } else {
    random_tensor(m, seed, &t->d.state);
    if (!t->d.state.outer) t->d.state.outer = m->at.outer = 1;
  }
}

static void make_weights(causal_trial *t, uint64_t *seed) {
  hk_causal_desc *d = &t->d;
  hk_causal_strides at;
  t->f = (causal_tensor){.type = d->f_type, .outer = 1, .c = d->c, .time = d->window};
  random_tensor(&t->f, seed, &at);
  d->f_channel = at.channel, d->f_tap = at.time;
  t->bias = (causal_tensor){.type = d->f_type, .outer = 1, .c = d->c, .time = 1, .at = {0, 1, 0}};
  place(&t->bias, seed);
  t->a.f = t->f.base;
  if (d->has_bias) t->a.bias = t->bias.base;
}

static void make_gradient(causal_trial *t, uint64_t *seed) {
  hk_causal_desc *d = &t->d;
  t->dy = like(t, d->y_type), t->dy.at = d->y;
  place(&t->dy, seed);
  t->dx = like(t, d->x_type);
  random_tensor(&t->dx, seed, &t->g.dx_at);
  t->df = calloc((size_t)(d->c * d->window) + 1, sizeof(float));
  t->dbias = calloc((size_t)d->c + 1, sizeof(float));
  t->g.size = sizeof t->g, t->g.dy = t->dy.base, t->g.dx = t->dx.base, t->g.df = t->df, t->g.dbias = t->dbias;
  if (!d->state_length) return;
  make_state(t, &t->dstate_in, seed, &d->state);
  make_state(t, &t->dstate_out, seed, &d->state);
  t->g.dstate_in = t->dstate_in.base;
  if (!chance(seed, 3)) t->g.dstate_out = t->dstate_out.base;
}

static void fill_all(causal_trial *t, uint64_t *seed) {
  fill(&t->x, seed, t->exact, 2);
  fill(&t->f, seed, t->exact, 1);
  fill(&t->bias, seed, t->exact, 2);
  if (t->pre.owned) fill(&t->pre, seed, t->exact, 1);
  if (t->post.owned) fill(&t->post, seed, t->exact, 2);
  if (t->residual.owned) fill(&t->residual, seed, t->exact, 2);
  if (t->state_in.owned) fill(&t->state_in, seed, t->exact, 2);
  if (t->state_out.owned) fill(&t->state_out, seed, t->exact, 2);
  fill(&t->y, seed, t->exact, 2);
  if (t->dx.owned) fill(&t->dx, seed, t->exact, 2);
  if (t->dstate_in.owned) fill(&t->dstate_in, seed, t->exact, 2);
  if (t->dy.owned) fill(&t->dy, seed, t->exact, 1);
  if (t->dstate_out.owned) fill(&t->dstate_out, seed, t->exact, 2);
}

void causal_trial_make(causal_trial *t, uint64_t *seed, causal_kind kind) {
  memset(t, 0, sizeof *t);
  hk_causal_desc *d = &t->d;
  t->a.size = sizeof t->a;
  draw_sizes(t, seed, kind);
  draw_packing(t, seed);
  draw_state(t, seed, kind);
  t->x = like(t, d->x_type), t->y = like(t, d->y_type);
  random_tensor(&t->x, seed, &d->x);
  if (chance(seed, 2) || d->in_place) {
    d->y = t->y.at = d->x;
    place(&t->y, seed);
  } else {
    random_tensor(&t->y, seed, &d->y);
  }
  if (d->has_pre) t->pre = like(t, d->x_type), random_tensor(&t->pre, seed, &d->pre), t->a.pre = t->pre.base;
  if (d->has_post) t->post = like(t, d->x_type), random_tensor(&t->post, seed, &d->post), t->a.post = t->post.base;
  if (d->has_residual) {
    t->residual = like(t, d->x_type);
    random_tensor(&t->residual, seed, &d->residual);
    t->a.residual = t->residual.base;
  }
  make_weights(t, seed);
  t->a.x = t->x.base, t->a.y = d->in_place ? t->x.base : t->y.base;
  if (d->state_length) {
    make_state(t, &t->state_in, seed, NULL);
    make_state(t, &t->state_out, seed, &d->state);
    t->a.state_in = kind == CAUSAL_FORWARD && chance(seed, 8) ? NULL : t->state_in.base;
    t->a.state_out = chance(seed, 8) ? NULL : t->copied_state || !t->a.state_in ? t->state_out.base : t->state_in.base;
  }
  if (kind == CAUSAL_GRADIENT) make_gradient(t, seed);
  fill_all(t, seed);
  causal_tensor *all[TENSORS];
  list(t, all);
  for (int i = 0; i < TENSORS; i++) save(all[i]);
  if (kind == CAUSAL_GRADIENT) causal_trial_want_gradient(t);
  else causal_trial_want(t);
}

void causal_trial_reset(causal_trial *t) {
  causal_tensor *all[TENSORS];
  list(t, all);
  for (int i = 0; i < TENSORS; i++)
    if (all[i]->owned) memcpy(all[i]->memory, all[i]->saved, bytes_of(all[i]));
}

void causal_trial_free(causal_trial *t) {
  causal_tensor *all[TENSORS];
  list(t, all);
  for (int i = 0; i < TENSORS; i++) {
    if (!all[i]->owned) continue;
    guarded_free(&all[i]->g);
    free(all[i]->owned);
    free(all[i]->saved);
  }
  void *blocks[] = {t->ids,     t->df,       t->dbias,      t->want_y,      t->bound_y,     t->want_state,
                    t->want_df, t->bound_df, t->want_dbias, t->bound_dbias, t->want_dstate, t->bound_dstate};
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) free(blocks[i]);
}

void causal_trial_print(const causal_trial *t) {
  const hk_causal_desc *d = &t->d;
  fprintf(
      stderr,
      "  n=%lld c=%lld length=%lld window=%lld dilation=%lld packing=%d types=%s/%s/%s/%s act=%d pre=%d post=%d "
      "residual=%d state=%lld ring=%d accepted=%d slots=%d in_place=%d exact=%d\n  x=%lld.%lld.%lld y=%lld.%lld.%lld\n",
      (long long)d->n, (long long)d->c, (long long)d->length, (long long)d->window, (long long)d->dilation,
      (int)d->packing, hk_type_name(d->x_type), hk_type_name(d->f_type), hk_type_name(d->y_type),
      hk_type_name(d->state_type), (int)d->act, d->has_pre, d->has_post, d->has_residual, (long long)d->state_length,
      d->ring, t->a.accepted != NULL, t->a.slots_in != NULL, d->in_place, t->exact, (long long)d->x.outer,
      (long long)d->x.channel, (long long)d->x.time, (long long)d->y.outer, (long long)d->y.channel,
      (long long)d->y.time);
}
