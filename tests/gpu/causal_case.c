/* Random problems of hk_causal and their results by the formula. */
#include "causal_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "support/check.h"

enum { GUARD = 64, MOST = 1 << 20 }; /* elements */

static int64_t pick(causal_case *k, int64_t lo, int64_t hi) { return hk_test_between(&k->next, lo, hi); }
static bool often(causal_case *k, int percent) { return pick(k, 1, 100) <= percent; }
static int64_t size_of(const causal_tensor *t) { return t->count * (int64_t)hk_type_bytes(t->type); }
double causal_get(const causal_tensor *t, int64_t i) { return hk_load_element(t->type, t->host, t->first + i); }
void causal_put(const causal_tensor *t, char *memory, int64_t i, double v) {
  hk_store_element(t->type, memory, t->first + i, v);
}

static void tensor_make(causal_tensor *t, hk_type type, int64_t count, int64_t skew) {
  if (!t->host) {
    t->host = malloc(MOST * 4), t->want = malloc(MOST * 4);
    if (hk_gpu_alloc((void **)&t->device, MOST * 4)) exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  }
  t->type = type, t->first = GUARD + skew, t->count = count + 2 * GUARD + 16;
  if (t->count > MOST) exit((fprintf(stderr, "a tensor of %lld elements\n", (long long)count), 1));
  memset(t->host, 0xff, (size_t)size_of(t));
}
/* Elements 0 to count-1, all of them. */
static void tensor_fill(causal_case *k, causal_tensor *t, int64_t count, int range) {
  for (int64_t i = 0; i < count; ++i) causal_put(t, t->host, i, hk_test_integer(&k->next, range));
}

int64_t causal_case_length(const causal_case *k, int64_t s) {
  return k->d.packing == HK_CAUSAL_OFFSETS ? k->offsets[s + 1] - k->offsets[s] : k->d.length;
}
int64_t causal_case_at(const causal_case *k, hk_causal_strides at, int64_t s, int64_t c, int64_t t) {
  if (k->d.packing == HK_CAUSAL_OFFSETS) return at.channel * c + at.time * (k->offsets[s] + t);
  return at.outer * s + at.channel * c + at.time * t;
}
bool causal_case_skips(const causal_case *k, int64_t s) { return k->d.has_skip && k->slots_in[s] == k->d.skip; }

/* One of several ways in which a tensor may lie; returns the elements that it spans. */
static int64_t lay(causal_case *k, int way, hk_causal_strides *s) {
  const int64_t rows = k->d.packing == HK_CAUSAL_OFFSETS ? 1 : k->d.n, c = k->d.c, length = k->d.length;
  const int64_t more = way / 2 % 2 ? (often(k, 50) ? 8 : pick(k, 1, 5)) : 0, gap = way >= 4 ? pick(k, 2, 3) : 1;
  if (way % 2) *s = (hk_causal_strides){(c + more) * length * gap, gap, (c + more) * gap};
  else *s = (hk_causal_strides){c * (length + more) * gap, (length + more) * gap, gap};
  if (often(k, 10)) s->outer += 8;
  return (rows - 1) * s->outer + (c - 1) * s->channel + (length - 1) * s->time + 1;
}

static void make_tensor(causal_case *k, causal_tensor *t, hk_type type, hk_causal_strides *s, int way, int range) {
  const int64_t count = lay(k, way, s);
  static const int skews[] = {0, 0, 0, 8, 4, 2, 1, 3};
  tensor_make(t, type, count, skews[pick(k, 0, 7)]);
  const int64_t rows = k->d.packing == HK_CAUSAL_OFFSETS ? 1 : k->d.n;
  for (int64_t n = 0; n < rows && range; ++n)
    for (int64_t c = 0; c < k->d.c; ++c)
      for (int64_t i = 0; i < k->d.length; ++i)
        causal_put(t, t->host, s->outer * n + s->channel * c + s->time * i, hk_test_integer(&k->next, range));
}

static hk_type any_type(causal_case *k) {
  static const hk_type types[] = {HK_F32, HK_F16, HK_BF16};
  return types[pick(k, 0, 2)];
}

static void make_sizes(causal_case *k, bool gradient) {
  static const int64_t windows[] = {4, 4, 4, 3, 2, 1, 5, 7, 8, 9, 12, 16, 17, 33, 128, 201},
                       lengths[] = {1, 1, 2, 3, 5, 8, 9, 40, 128, 129, 257, 515, 1300};
  static const int64_t channels[] = {1, 2, 3, 4, 7, 8, 16, 24, 32, 40, 33};
  hk_causal_desc *d = &k->d;
  memset(d, 0, sizeof *d);
  d->size = sizeof *d;
  d->x_type = any_type(k);
  const bool same = often(k, 50);
  d->f_type = same ? d->x_type : any_type(k), d->y_type = same || often(k, 50) ? d->x_type : any_type(k);
  d->state_type = same ? d->x_type : any_type(k);
  d->n = pick(k, 1, 4), d->c = channels[pick(k, 0, 10)], d->length = lengths[pick(k, 0, 12)];
  if (d->length > 500 && d->c > 8 && often(k, 80)) d->c = 8;
  d->window = windows[pick(k, 0, 15)], d->dilation = often(k, 80) ? 1 : pick(k, 2, 5);
  d->packing = often(k, 50) ? HK_CAUSAL_BATCH : gradient || often(k, 70) ? HK_CAUSAL_OFFSETS : HK_CAUSAL_IDS;
  d->has_bias = often(k, 60), d->gradient = gradient;
  static const hk_act acts[] = {HK_ACT_NONE, HK_ACT_RELU, HK_ACT_SILU, HK_ACT_GELU, HK_ACT_TANH, HK_ACT_CLIP};
  d->act = acts[pick(k, 0, gradient ? 2 : 5)], d->a = -3, d->b = 7;
  if (!gradient) d->has_pre = often(k, 20), d->has_post = often(k, 20), d->has_residual = often(k, 20);
}

/* What the fastest kernels take. */
static void make_plain(causal_case *k) {
  hk_causal_desc *d = &k->d;
  d->f_type = d->y_type = d->state_type = d->x_type;
  d->window = pick(k, 2, 8), d->dilation = 1;
  if (d->packing == HK_CAUSAL_IDS) d->packing = HK_CAUSAL_BATCH;
  if (d->act != HK_ACT_NONE) d->act = HK_ACT_SILU;
  d->has_pre = d->has_post = d->has_residual = false;
}

static void make_offsets(causal_case *k) {
  k->offsets = k->tables[4];
  k->offsets[0] = (int32_t)(often(k, 80) ? 0 : pick(k, 0, k->d.length / 2));
  for (int64_t s = 0; s < k->d.n; ++s) {
    const int64_t left = k->d.length - k->offsets[s];
    const int64_t len = s == k->d.n - 1 && often(k, 80) ? left : often(k, 15) ? 0 : pick(k, 0, left);
    k->offsets[s + 1] = (int32_t)(k->offsets[s] + len);
    k->d.longest = k->d.longest > len ? k->d.longest : len;
  }
  if (often(k, 30)) k->d.longest = 0;
}
static void make_ids(causal_case *k) {
  k->ids = k->tables[5];
  for (int64_t i = 0, id = 0; i < k->d.n * k->d.length; ++i) {
    if (often(k, 10)) id = pick(k, -1, 3);
    k->ids[i] = (int32_t)id;
  }
}

static void make_state(causal_case *k) {
  hk_causal_desc *d = &k->d;
  const int64_t reach = d->dilation * (d->window - 1);
  const bool gradient = d->gradient;
  k->has_state_in = k->has_state_out = k->in_place_state = false;
  if (d->packing == HK_CAUSAL_IDS || often(k, 25)) return;
  d->state_length = reach + (often(k, 50) ? 0 : pick(k, 0, 5));
  if (!d->state_length) d->state_length = 1;
  d->ring = !gradient && often(k, 25);
  k->slots = d->n;
  if (!gradient && often(k, 60)) {
    k->slots = 2 * d->n + 1, k->slots_in = k->tables[0];
    for (int64_t s = 0; s < d->n; ++s) k->slots_in[s] = (int32_t)(2 * s + pick(k, 0, 1));
    if (often(k, 30)) {
      k->slots_out = k->tables[1]; /* the other slot of the pair, or the same */
      for (int64_t s = 0; s < d->n; ++s) k->slots_out[s] = (int32_t)(2 * s + pick(k, 0, 1));
    }
    d->has_skip = often(k, 50), d->skip = often(k, 50) ? -1 : 2 * d->n;
    for (int64_t s = 0; s < d->n && d->has_skip; ++s) {
      if (often(k, 30)) k->slots_in[s] = (int32_t)d->skip;
      if (k->slots_out && often(k, 20)) k->slots_out[s] = (int32_t)d->skip;
    }
  }
  if (often(k, 30)) {
    k->has_state = k->bytes;
    for (int64_t s = 0; s < d->n; ++s) k->has_state[s] = (uint8_t)pick(k, 0, 1);
  }
  const int64_t kept = reach ? reach - 1 : 0,
                longest = d->packing == HK_CAUSAL_OFFSETS && d->longest ? d->longest : d->length;
  if (d->ring) {
    k->positions = k->tables[2];
    for (int64_t s = 0; s < d->n; ++s) k->positions[s] = (int32_t)(often(k, 30) ? pick(k, 0, 3) : pick(k, 0, 100));
  } else if (!gradient && longest <= 40 && often(k, 30)) {
    if (d->state_length < kept + longest) d->state_length = kept + longest;
    k->accepted = k->tables[3];
    for (int64_t s = 0; s < d->n; ++s) k->accepted[s] = (int32_t)pick(k, 1, d->state_length - reach + 1);
  }
  d->state = often(k, 50) ? (hk_causal_strides){d->c * d->state_length, d->state_length, 1}
                          : (hk_causal_strides){d->c * d->state_length, 1, d->c};
  if (often(k, 20)) d->state.outer += pick(k, 1, 8);
  k->has_state_in = often(k, 85), k->has_state_out = gradient || often(k, 85);
  k->in_place_state = k->has_state_in && k->has_state_out && !gradient && often(k, 60);
  const int64_t count = k->slots * d->state.outer;
  tensor_make(&k->state_in, d->state_type, count, often(k, 80) ? 0 : 1);
  tensor_make(&k->state_out, d->state_type, count, k->state_in.first - GUARD);
  tensor_fill(k, &k->state_in, count, 3);
  tensor_fill(k, &k->state_out, count, 3);
}

void causal_case_make(causal_case *k, uint64_t seed, bool gradient) {
  hk_causal_desc *d = &k->d;
  k->seed = seed, k->next = seed * 2654435761u + 1;
  k->slots_in = k->slots_out = k->positions = k->accepted = k->offsets = k->ids = NULL, k->has_state = NULL;
  make_sizes(k, gradient);
  k->plain = often(k, 30);
  if (k->plain) make_plain(k);
  if (d->packing == HK_CAUSAL_OFFSETS) make_offsets(k);
  if (d->packing == HK_CAUSAL_IDS) {
    if (d->n * d->length > CAUSAL_TOKENS) d->length = CAUSAL_TOKENS / d->n;
    make_ids(k);
  }
  const int way = (int)pick(k, 0, often(k, 70) ? 3 : 5), other = often(k, 80) ? way : (int)pick(k, 0, 5);
  make_tensor(k, &k->x, d->x_type, &d->x, way, 3);
  make_tensor(k, &k->y, d->y_type, &d->y, often(k, 50) ? way : way ^ (int)(pick(k, 0, 1) * 2), 0);
  if (other != way) make_tensor(k, &k->y, d->y_type, &d->y, other, 0);
  if (k->plain) d->y = d->x, tensor_make(&k->y, d->y_type, k->x.count - 2 * GUARD - 16, k->x.first - GUARD);
  make_tensor(k, &k->pre, d->x_type, &d->pre, other, 2);
  make_tensor(k, &k->post, d->x_type, &d->post, way, 2);
  make_tensor(k, &k->residual, d->x_type, &d->residual, other, 3);
  const bool taps_first = often(k, 20);
  d->f_channel = taps_first ? 1 : d->window, d->f_tap = taps_first ? d->c : 1;
  tensor_make(&k->f, d->f_type, d->c * d->window, often(k, 80) ? 0 : 1);
  tensor_make(&k->bias, d->f_type, d->c, often(k, 80) ? 0 : 1);
  tensor_fill(k, &k->f, d->c * d->window, 2);
  tensor_fill(k, &k->bias, d->c, 3);
  make_state(k);
  snprintf(k->text, sizeof k->text,
           "seed %llu: types x%d f%d y%d s%d n%lld c%lld L%lld w%lld d%lld pack%d act%d bias%d pre%d post%d res%d "
           "S%lld ring%d "
           "skip%d in_place%d slots%d/%d accepted%d has%d x{%lld,%lld,%lld} y{%lld,%lld,%lld} state{%lld,%lld,%lld}",
           (unsigned long long)seed, d->x_type, d->f_type, d->y_type, d->state_type, (long long)d->n, (long long)d->c,
           (long long)d->length, (long long)d->window, (long long)d->dilation, d->packing, d->act, d->has_bias,
           d->has_pre, d->has_post, d->has_residual, (long long)d->state_length, d->ring, d->has_skip,
           k->in_place_state, k->slots_in != NULL, k->slots_out != NULL, k->accepted != NULL, k->has_state != NULL,
           (long long)d->x.outer, (long long)d->x.channel, (long long)d->x.time, (long long)d->y.outer,
           (long long)d->y.channel, (long long)d->y.time, (long long)d->state.outer, (long long)d->state.channel,
           (long long)d->state.time);
}

void *causal_case_copy(causal_tensor *t) {
  hk_gpu_copy(t->device, t->host, (size_t)size_of(t));
  return t->device + t->first * (int64_t)hk_type_bytes(t->type);
}
static const void *up_table(causal_case *k, const void *table, int i, size_t bytes) {
  if (!table) return NULL;
  char *to = k->device_tables + i * CAUSAL_TOKENS * 4;
  hk_gpu_copy(to, table, bytes);
  return to;
}

void causal_case_up(causal_case *k, hk_causal_args *a) {
  const size_t rows = (size_t)k->d.n * 4;
  if (!k->device_tables) hk_gpu_alloc((void **)&k->device_tables, 7 * CAUSAL_TOKENS * 4);
  memset(a, 0, sizeof *a);
  a->size = sizeof *a;
  a->x = causal_case_copy(&k->x), a->f = causal_case_copy(&k->f), a->bias = causal_case_copy(&k->bias),
  a->y = causal_case_copy(&k->y);
  if (k->d.has_pre) a->pre = causal_case_copy(&k->pre);
  if (k->d.has_post) a->post = causal_case_copy(&k->post);
  if (k->d.has_residual) a->residual = causal_case_copy(&k->residual);
  if (k->has_state_in) a->state_in = causal_case_copy(&k->state_in);
  if (k->has_state_out)
    a->state_out = k->in_place_state ? (void *)(uintptr_t)a->state_in : causal_case_copy(&k->state_out);
  a->slots_in = up_table(k, k->slots_in, 0, rows), a->slots_out = up_table(k, k->slots_out, 1, rows);
  a->positions = up_table(k, k->positions, 2, rows), a->accepted = up_table(k, k->accepted, 3, rows);
  a->offsets = up_table(k, k->offsets, 4, rows + 4);
  a->ids = up_table(k, k->ids, 5, (size_t)(k->d.n * k->d.length) * 4);
  if (k->d.state_length) a->has_state = up_table(k, k->has_state, 6, (size_t)k->d.n);
}

void causal_case_make_grads(causal_case *k) {
  hk_causal_desc *d = &k->d;
  const hk_causal_strides y = d->y;
  const bool as_x = often(k, 60) || k->plain;
  const int way = y.channel < y.time ? 1 : 0;
  /* dy lies as y, in memory of its own */
  tensor_make(&k->dy, d->y_type, k->y.count - 2 * GUARD - 16, k->y.first - GUARD);
  const int64_t rows = d->packing == HK_CAUSAL_OFFSETS ? 1 : d->n;
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t c = 0; c < d->c; ++c)
      for (int64_t i = 0; i < d->length; ++i)
        causal_put(&k->dy, k->dy.host, y.outer * n + y.channel * c + y.time * i, hk_test_integer(&k->next, 3));
  if (as_x) k->dx_at = d->x, tensor_make(&k->dx, d->x_type, k->x.count - 2 * GUARD - 16, k->x.first - GUARD);
  else make_tensor(k, &k->dx, d->x_type, &k->dx_at, way, 0);
  tensor_make(&k->df, HK_F32, d->c * d->window, 0), tensor_make(&k->dbias, HK_F32, d->c, 0);
  k->has_dstate = d->state_length && !k->plain && often(k, 60);
  if (!d->state_length) return;
  const int64_t count = k->slots * d->state.outer;
  tensor_make(&k->dstate_in, d->state_type, count, 0), tensor_make(&k->dstate_out, d->state_type, count, 0);
  tensor_fill(k, &k->dstate_out, count, 3);
}

static double old_entry(const causal_case *k, int64_t s, int64_t c, int64_t e) {
  const int64_t slot = k->slots_in ? k->slots_in[s] : s;
  if (!k->has_state_in || (k->has_state && !k->has_state[s]) || e < 0) return 0;
  return causal_get(&k->state_in, slot * k->d.state.outer + c * k->d.state.channel + e * k->d.state.time);
}

double causal_case_u(const causal_case *k, int64_t s, int64_t c, int64_t t) {
  const hk_causal_desc *d = &k->d;
  const int64_t size = d->state_length, reach = d->dilation * (d->window - 1);
  if (t >= 0)
    return causal_get(&k->x, causal_case_at(k, d->x, s, c, t)) *
           (d->has_pre ? causal_get(&k->pre, causal_case_at(k, d->pre, s, c, t)) : 1);
  if (!size) return 0;
  if (d->ring) return k->positions[s] + t < 0 ? 0 : old_entry(k, s, c, (k->positions[s] + t) % size);
  return old_entry(k, s, c, (k->accepted ? k->accepted[s] - 1 : size - reach) + reach + t);
}

/* Entry i of the new state. */
static double new_entry(const causal_case *k, int64_t s, int64_t c, int64_t i) {
  const hk_causal_desc *d = &k->d;
  const int64_t size = d->state_length, length = causal_case_length(k, s), reach = d->dilation * (d->window - 1);
  if (d->ring) {
    for (int64_t t = length - 1; t >= 0 && t >= length - size; --t)
      if ((k->positions[s] + t) % size == i) return causal_case_u(k, s, c, t);
    return old_entry(k, s, c, i);
  }
  if (k->accepted && length) {
    const int64_t kept = reach ? reach - 1 : 0;
    if (i < kept) return old_entry(k, s, c, i + k->accepted[s]);
    return i - kept < length ? causal_case_u(k, s, c, i - kept) : old_entry(k, s, c, i);
  }
  return i < size - length ? old_entry(k, s, c, i + length) : causal_case_u(k, s, c, i - (size - length));
}

static void reference_states(causal_case *k) {
  causal_tensor *to = k->in_place_state ? &k->state_in : &k->state_out;
  if (!k->has_state_out) return;
  memcpy(to->want, to->host, (size_t)size_of(to));
  for (int64_t s = 0; s < k->d.n; ++s) {
    const int64_t slot = k->slots_out ? k->slots_out[s] : k->slots_in ? k->slots_in[s] : s;
    if (causal_case_skips(k, s) || (k->d.has_skip && slot == k->d.skip)) continue;
    for (int64_t c = 0; c < k->d.c; ++c)
      for (int64_t i = 0; i < k->d.state_length; ++i)
        causal_put(to, to->want, slot * k->d.state.outer + c * k->d.state.channel + i * k->d.state.time,
                   new_entry(k, s, c, i));
  }
}

static double output(const causal_case *k, int64_t s, int64_t c, int64_t t) {
  const hk_causal_desc *d = &k->d;
  const int32_t *ids = k->ids ? k->ids + s * d->length : NULL;
  double sum = d->has_bias ? causal_get(&k->bias, c) : 0;
  if (ids && ids[t] < 0) return 0;
  for (int64_t j = 0; j < d->window; ++j) {
    const int64_t from = t - d->dilation * (d->window - 1 - j);
    if (ids && (from < 0 || ids[from] != ids[t])) continue;
    sum += causal_get(&k->f, c * d->f_channel + j * d->f_tap) * causal_case_u(k, s, c, from);
  }
  sum = hk_act_eval(d->act, (double)d->a, (double)d->b, 0, sum);
  if (d->has_post) sum *= causal_get(&k->post, causal_case_at(k, d->post, s, c, t));
  if (d->has_residual) sum += causal_get(&k->residual, causal_case_at(k, d->residual, s, c, t));
  return sum;
}

void causal_case_reference(causal_case *k) {
  memcpy(k->y.want, k->y.host, (size_t)size_of(&k->y));
  for (int64_t s = 0; s < k->d.n; ++s)
    for (int64_t c = 0; c < k->d.c && !causal_case_skips(k, s); ++c)
      for (int64_t t = 0; t < causal_case_length(k, s); ++t)
        causal_put(&k->y, k->y.want, causal_case_at(k, k->d.y, s, c, t), output(k, s, c, t));
  reference_states(k);
}

void causal_case_compare(causal_case *k, causal_tensor *t, const char *name, double loose) {
  const size_t bytes = hk_type_bytes(t->type);
  int64_t wrong = 0, at = 0;
  char *got = malloc((size_t)size_of(t));
  hk_gpu_copy(got, t->device, (size_t)size_of(t));
  for (int64_t i = 0; i < t->count; ++i) {
    if (!memcmp(got + i * (int64_t)bytes, t->want + i * (int64_t)bytes, bytes)) continue;
    const double a = hk_load_element(t->type, got, i), b = hk_load_element(t->type, t->want, i);
    if (a == b || (loose > 0 && fabs(a - b) <= loose * (1 + fabs(b)))) continue;
    if (!wrong++) at = i;
  }
  CHECK(!wrong, "%s: %lld of %s wrong, element %lld of %lld is %g, not %g", k->text, (long long)wrong, name,
        (long long)(at - t->first), (long long)t->count, wrong ? hk_load_element(t->type, got, at) : 0,
        wrong ? hk_load_element(t->type, t->want, at) : 0);
  free(got);
}
