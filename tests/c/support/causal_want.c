/* The formula of hankel.h's causal section, written for reading: one line of u values per channel of a sequence,
 * history first. And comparisons: exact for small integers, else within the rounding of f32 sums and of the result's
 * type. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/core.h"
#include "support/causal.h"

static double get(const causal_tensor *m, int64_t o, int64_t c, int64_t t) {
  return hk_load_element(m->type, m->base, causal_element(m, o, c, t));
}
static double *doubles(int64_t count) {
  double *p = calloc((size_t)count + 1, sizeof *p);
  if (!p) abort();
  return p;
}
static double rounded(hk_type type, double v) {
  uint64_t room = 0;
  hk_store_element(type, &room, 0, v);
  return hk_load_element(type, &room, 0);
}

typedef struct line {
  int64_t s, c, row, first, tokens; /* row of the tensors, first token in it */
  int64_t reach, dilation;
  int64_t in, out; /* slots; out -1: not written */
  bool skipped, has_state;
  double *u; /* reach values before token 0, then the tokens */
} line;

static line make_line(const causal_trial *t, int64_t s, int64_t c) {
  const hk_causal_desc *d = &t->d;
  const hk_causal_args *a = &t->a;
  line l = {.s = s, .c = c, .row = s, .tokens = d->length, .dilation = d->dilation ? d->dilation : 1};
  l.reach = l.dilation * (d->window - 1);
  if (a->offsets) l.row = 0, l.first = a->offsets[s], l.tokens = a->offsets[s + 1] - a->offsets[s];
  l.in = a->slots_in ? a->slots_in[s] : s;
  l.out = a->slots_out ? a->slots_out[s] : l.in;
  l.skipped = d->has_skip && l.in == d->skip;
  if (!a->state_out || (d->has_skip && l.out == d->skip)) l.out = -1;
  l.has_state = a->state_in && (!a->has_state || a->has_state[s]);
  return l;
}

static double entry(const causal_trial *t, const line *l, int64_t i) {
  return l->has_state ? get(&t->state_in, l->in, l->c, i) : 0;
}

static void fill_line(const causal_trial *t, line *l) {
  const hk_causal_desc *d = &t->d;
  l->u = doubles(l->reach + l->tokens);
  for (int64_t i = 0; i < l->reach && d->state_length; i++) {
    const int64_t before = l->reach - i, p = d->ring ? t->a.positions[l->s] - before : 0;
    int64_t e = d->state_length - before;
    if (d->ring) e = p >= 0 ? p % d->state_length : -1;
    else if (t->a.accepted) e = t->a.accepted[l->s] - 1 + i;
    l->u[i] = e < 0 ? 0 : entry(t, l, e);
  }
  for (int64_t i = 0; i < l->tokens; i++) {
    double v = get(&t->x, l->row, l->c, l->first + i);
    if (d->has_pre) v = (float)(v * get(&t->pre, l->row, l->c, l->first + i));
    l->u[l->reach + i] = v;
  }
}

static bool tap_sees(const causal_trial *t, const line *l, int64_t i, int64_t from) {
  const int32_t *ids = t->ids ? t->ids + l->s * t->d.length : NULL;
  return !ids || (from >= 0 && ids[from] == ids[i]);
}

/* z of token i; *size: the sum of magnitudes. */
static double pre_activation(const causal_trial *t, const line *l, int64_t i, double *size) {
  const hk_causal_desc *d = &t->d;
  double z = d->has_bias ? get(&t->bias, 0, l->c, 0) : 0;
  *size = fabs(z);
  for (int64_t j = 0; j < d->window; j++) {
    const int64_t from = i - l->dilation * (d->window - 1 - j);
    if (!tap_sees(t, l, i, from)) continue;
    const double v = get(&t->f, 0, l->c, j) * l->u[l->reach + from];
    z += v, *size += fabs(v);
  }
  return z;
}

static int64_t y_index(const causal_trial *t, const line *l, int64_t i) {
  return (l->row * t->d.c + l->c) * t->d.length + l->first + i;
}

static void want_outputs(causal_trial *t, const line *l) {
  const hk_causal_desc *d = &t->d;
  for (int64_t i = 0; i < l->tokens; i++) {
    double size, z = pre_activation(t, l, i, &size);
    double v = hk_act_eval(d->act, d->a, d->b, 0, z), bound = size * 0x1p-22 * sqrt((double)d->window) + 3e-6 * size;
    const double post = d->has_post ? get(&t->post, l->row, l->c, l->first + i) : 1;
    const double add = d->has_residual ? get(&t->residual, l->row, l->c, l->first + i) : 0;
    v = v * post + add;
    bound = (bound + 1e-6) * fabs(post) + 0x1p-23 * fabs(add);
    if (t->ids && t->ids[l->s * d->length + i] < 0) v = bound = 0;
    t->want_y[y_index(t, l, i)] = v;
    t->bound_y[y_index(t, l, i)] = t->exact ? 0 : bound;
  }
}

static void want_state(causal_trial *t, const line *l) {
  const hk_causal_desc *d = &t->d;
  const int64_t length = d->state_length, n = l->tokens;
  if (!length || l->out < 0) return;
  double *to = t->want_state + (l->out * d->c + l->c) * length;
  double *was = doubles(length);
  for (int64_t i = 0; i < length; i++) was[i] = entry(t, l, i);
  const double *u = l->u + l->reach;
  if (d->ring || n == 0) {
    for (int64_t i = 0; i < length; i++) to[i] = was[i];
    for (int64_t i = 0; i < n; i++) to[(t->a.positions[l->s] + i) % length] = rounded(d->state_type, u[i]);
  } else if (t->a.accepted) {
    const int64_t kept = l->reach > 1 ? l->reach - 1 : 0;
    for (int64_t i = 0; i < kept; i++) to[i] = was[i + t->a.accepted[l->s]];
    for (int64_t i = 0; i < n; i++) to[kept + i] = rounded(d->state_type, u[i]);
  } else {
    for (int64_t i = 0; i < length; i++)
      to[i] = i < length - n ? was[i + n] : rounded(d->state_type, u[i - (length - n)]);
  }
  free(was);
}

void causal_trial_want(causal_trial *t) {
  const hk_causal_desc *d = &t->d;
  const int64_t count = t->y.outer * d->c * d->length;
  t->want_y = doubles(count), t->bound_y = doubles(count), t->want_state = doubles(t->slots * d->c * d->state_length);
  for (int64_t i = 0; i < count; i++) t->want_y[i] = NAN;
  const causal_tensor *first = t->a.state_out == t->state_in.base ? &t->state_in : &t->state_out;
  for (int64_t i = 0; d->state_length && i < t->slots * d->c * d->state_length; i++)
    t->want_state[i] = get(first, i / d->state_length / d->c, i / d->state_length % d->c, i % d->state_length);
  for (int64_t s = 0; s < d->n; s++)
    for (int64_t c = 0; c < d->c; c++) {
      line l = make_line(t, s, c);
      if (l.skipped) continue;
      fill_line(t, &l);
      want_outputs(t, &l);
      want_state(t, &l);
      free(l.u);
    }
}

/* Elements of the memory that no tensor owns keep their bytes. */
static int changed_gaps(const causal_tensor *m) {
  const int64_t bytes = (int64_t)hk_type_bytes(m->type);
  int wrong = 0;
  for (int64_t i = 0; i < m->elements * bytes; i++) wrong += !m->owned[i / bytes] && m->memory[i] != m->saved[i];
  if (wrong) fprintf(stderr, "  %d bytes between the elements of a tensor changed\n", wrong);
  return wrong;
}

static double step_of(hk_type type) { return type == HK_F32 ? 0x1p-23 : type == HK_F16 ? 0x1p-10 : 0x1p-7; }

/* One place; `was` is what it held, for a want of NaN: untouched. */
static bool is_wrong(hk_type type, double got, double want, double bound, double was) {
  if (want != want) return !(got == was);
  if (type == HK_F16 && fabs(want) + bound >= 65000) return false;
  const double room = bound ? bound + step_of(type) * fabs(want) + (type == HK_F16 ? 0x1p-24 : 0) : 0;
  return !(fabs(got - want) <= room);
}

static int compare_tensor(const causal_tensor *m, const double *want, const double *bound, const char *name) {
  int wrong = changed_gaps(m);
  for (int64_t i = 0; i < m->outer * m->c * m->time; i++) {
    const int64_t o = i / m->time / m->c, c = i / m->time % m->c, j = i % m->time;
    const int64_t at = causal_element(m, o, c, j) + (m->base - m->memory) / (int64_t)hk_type_bytes(m->type);
    const double got = get(m, o, c, j), was = hk_load_element(m->type, m->saved, at);
    if (is_wrong(m->type, got, want[i], bound ? bound[i] : 0, was) && wrong++ == 0)
      fprintf(stderr, "  %s[%lld][%lld][%lld] is %.9g, must be %.9g within %.3g\n", name, (long long)o, (long long)c,
              (long long)j, got, want[i], bound ? bound[i] : 0);
  }
  return wrong;
}

int causal_trial_compare(const causal_trial *t) {
  int wrong = compare_tensor(t->a.y == t->x.base ? &t->x : &t->y, t->want_y, t->bound_y, "y");
  if (t->d.state_length && t->a.state_out)
    wrong +=
        compare_tensor(t->a.state_out == t->state_in.base ? &t->state_in : &t->state_out, t->want_state, NULL, "state");
  return wrong;
}

/* ---- gradient */

static double slope_at(const causal_trial *t, const line *l, int64_t i) {
  double size;
  if (t->ids && t->ids[l->s * t->d.length + i] < 0) return 0;
  const double dy = get(&t->dy, l->row, l->c, l->first + i), z = pre_activation(t, l, i, &size);
  if (t->d.act == HK_ACT_NONE) return dy;
  if (t->d.act == HK_ACT_RELU) return z > 0 ? dy : 0;
  const double e = 1 / (1 + exp(-z));
  return dy * (e + z * e * (1 - e));
}

/* Adds what the line's outputs and new state hand back to its inputs, history first. */
static void want_line(causal_trial *t, line *l, double *du, double *size) {
  const hk_causal_desc *d = &t->d;
  double *df = t->want_df + l->c * d->window, *bdf = t->bound_df + l->c * d->window;
  for (int64_t i = 0; i < l->tokens; i++) {
    const double dz = slope_at(t, l, i);
    t->want_dbias[l->c] += dz, t->bound_dbias[l->c] += 1e-5 * fabs(dz) + 1e-6;
    for (int64_t j = 0; j < d->window; j++) {
      const int64_t from = i - l->dilation * (d->window - 1 - j);
      if (!tap_sees(t, l, i, from)) continue;
      const double w = get(&t->f, 0, l->c, j), u = l->u[l->reach + from];
      du[l->reach + from] += w * dz, size[l->reach + from] += fabs(w * dz) + 1e-1 * fabs(w);
      df[j] += dz * u, bdf[j] += 1e-5 * fabs(dz * u) + 1e-6 * fabs(u);
    }
  }
}

static void want_back(causal_trial *t, line *l) {
  const hk_causal_desc *d = &t->d;
  const int64_t old = l->reach > d->state_length ? l->reach : d->state_length; /* values before token 0 */
  double *du = doubles(old + l->tokens), *size = doubles(old + l->tokens);
  want_line(t, l, du + old - l->reach, size + old - l->reach);
  for (int64_t i = 0; i < d->state_length && t->g.dstate_out; i++) {
    const double v = get(&t->dstate_out, l->s, l->c, i); /* the new state ends with the last token */
    du[old - d->state_length + l->tokens + i] += v, size[old - d->state_length + l->tokens + i] += fabs(v);
  }
  for (int64_t i = 0; i < l->tokens; i++) {
    t->want_y[y_index(t, l, i)] = du[old + i];
    t->bound_y[y_index(t, l, i)] = t->exact ? 0 : 1e-5 * size[old + i] + 1e-7;
  }
  for (int64_t i = 0; i < d->state_length; i++) {
    const int64_t at = (l->s * d->c + l->c) * d->state_length + i;
    t->want_dstate[at] = l->has_state ? du[old - d->state_length + i] : 0;
    t->bound_dstate[at] = t->exact || !l->has_state ? 0 : 1e-5 * size[old - d->state_length + i] + 1e-7;
  }
  free(du);
  free(size);
}

void causal_trial_want_gradient(causal_trial *t) {
  const hk_causal_desc *d = &t->d;
  const int64_t count = t->y.outer * d->c * d->length;
  t->want_y = doubles(count), t->bound_y = doubles(count);
  for (int64_t i = 0; i < count; i++) t->want_y[i] = NAN;
  t->want_df = doubles(d->c * d->window), t->bound_df = doubles(d->c * d->window);
  t->want_dbias = doubles(d->c), t->bound_dbias = doubles(d->c);
  t->want_dstate = doubles(d->n * d->c * d->state_length), t->bound_dstate = doubles(d->n * d->c * d->state_length);
  for (int64_t s = 0; s < d->n; s++)
    for (int64_t c = 0; c < d->c; c++) {
      line l = make_line(t, s, c);
      fill_line(t, &l);
      want_back(t, &l);
      free(l.u);
    }
}

static int compare_floats(const float *got, const double *want, const double *bound, int64_t count, bool exact) {
  int wrong = 0;
  for (int64_t i = 0; i < count; i++)
    if (is_wrong(HK_F32, (double)got[i], want[i], exact ? 0 : bound[i], 0) && wrong++ == 0)
      fprintf(stderr, "  sum %lld is %.9g, must be %.9g\n", (long long)i, (double)got[i], want[i]);
  return wrong;
}

int causal_trial_compare_gradient(const causal_trial *t) {
  const hk_causal_desc *d = &t->d;
  int wrong = compare_tensor(&t->dx, t->want_y, t->bound_y, "dx");
  if (d->state_length) wrong += compare_tensor(&t->dstate_in, t->want_dstate, t->bound_dstate, "dstate_in");
  wrong += compare_floats(t->df, t->want_df, t->bound_df, d->c * d->window, t->exact);
  return wrong + compare_floats(t->dbias, t->want_dbias, t->bound_dbias, d->c, t->exact);
}
