/* Causal depthwise Conv1D from its definition in include/hankel.h, token by token, sums in double. Any types, strides,
 * states and packing. */
#include "cpu/ref/causal.h"

#include <string.h>

void hk_causal_seq_make(hk_causal_seq *q, const hk_causal_desc *d, const hk_causal_args *a, int64_t s) {
  const bool packed = d->packing == HK_CAUSAL_OFFSETS;
  *q = (hk_causal_seq){.s = s, .tokens = d->length, .outer = packed ? 0 : s};
  if (packed) q->token = a->offsets[s], q->tokens = a->offsets[s + 1] - a->offsets[s];
  const int32_t *out = a->slots_out ? a->slots_out : a->slots_in;
  q->slot_in = a->slots_in ? a->slots_in[s] : s;
  q->slot_out = out ? out[s] : s;
  q->skipped = d->has_skip && q->slot_in == d->skip;
  if (!a->state_out || (d->has_skip && q->slot_out == d->skip)) q->slot_out = -1;
  q->has_state = d->state_length > 0 && a->state_in && (!a->has_state || a->has_state[s]);
  q->position = d->ring ? a->positions[s] : 0;
  q->accepted = a->accepted ? a->accepted[s] : 0;
}

int64_t hk_causal_entry(const hk_causal_desc *d, const hk_causal_seq *q, int64_t t) {
  if (!q->has_state) return -1;
  if (d->ring) return q->position + t < 0 ? -1 : (q->position + t) % d->state_length;
  return q->accepted ? q->accepted - 1 + hk_causal_reach(d) + t : d->state_length + t;
}

static int64_t state_at(const hk_causal_desc *d, int64_t slot, int64_t c, int64_t entry) {
  return slot * d->state.outer + c * d->state.channel + entry * d->state.time;
}

/* u of token t >= 0: what a state stores is rounded once more. */
static double input(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_seq *q, int64_t c, int64_t t) {
  const double x = hk_load_element(d->x_type, a->x, hk_causal_at(q, &d->x, c, t));
  if (!d->has_pre) return x;
  return (float)(x * hk_load_element(d->x_type, a->pre, hk_causal_at(q, &d->pre, c, t)));
}

static double old_entry(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_seq *q, int64_t c,
                        int64_t entry) {
  if (entry < 0 || !q->has_state) return 0;
  return hk_load_element(d->state_type, a->state_in, state_at(d, q->slot_in, c, entry));
}

/* One channel of one sequence, with its history where the state and x may be overwritten. */
typedef struct channel {
  const hk_causal_desc *d;
  const hk_causal_args *a;
  const hk_causal_seq *q;
  int64_t c;
  const float *history; /* the values before token 0, oldest first; NULL: in the state */
  const int32_t *ids;   /* of this row, or NULL */
} channel;

static double value(const channel *h, int64_t t) {
  if (t >= 0) return input(h->d, h->a, h->q, h->c, t);
  if (h->history) return h->history[hk_causal_reach(h->d) + t];
  return old_entry(h->d, h->a, h->q, h->c, hk_causal_entry(h->d, h->q, t));
}

static double tap(const hk_causal_desc *d, const hk_causal_args *a, int64_t c, int64_t j) {
  return hk_load_element(d->f_type, a->f, c * d->f_channel + j * d->f_tap);
}

static bool sees(const channel *h, int64_t t, int64_t from) {
  return !h->ids || (from >= 0 && h->ids[from] == h->ids[t]);
}

/* bias + the sum of taps: what the activation is applied to. */
static double sum(const channel *h, int64_t t) {
  const hk_causal_desc *d = h->d;
  double v = d->has_bias ? hk_load_element(d->f_type, h->a->bias, h->c) : 0;
  for (int64_t j = 0; j < d->window; j++) {
    const int64_t from = t - d->dilation * (d->window - 1 - j);
    v += tap(d, h->a, h->c, j) * (sees(h, t, from) ? value(h, from) : 0);
  }
  return v;
}

static void output(const channel *h, int64_t t) {
  const hk_causal_desc *d = h->d;
  const hk_causal_args *a = h->a;
  const hk_causal_seq *q = h->q;
  double v = 0;
  if (!h->ids || h->ids[t] >= 0) {
    v = hk_act_eval(d->act, d->a, d->b, 0, sum(h, t));
    if (d->has_post) v *= hk_load_element(d->x_type, a->post, hk_causal_at(q, &d->post, h->c, t));
    if (d->has_residual) v += hk_load_element(d->x_type, a->residual, hk_causal_at(q, &d->residual, h->c, t));
  }
  hk_store_element(d->y_type, a->y, hk_causal_at(q, &d->y, h->c, t), v);
}

void hk_ref_causal(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_seq *q, int64_t c) {
  const int64_t reach = hk_causal_reach(d);
  const bool in_place = d->in_place && a->x == a->y;
  float history[HK_CAUSAL_REACH];
  channel h = {d, a, q, c, NULL, d->packing == HK_CAUSAL_IDS ? a->ids + q->s * d->length : NULL};
  if (in_place) {
    for (int64_t t = -reach; t < 0; t++) history[reach + t] = (float)value(&h, t);
    h.history = history;
    hk_ref_causal_state(d, a, q, c);
  }
  for (int64_t t = q->tokens - 1; t >= 0; t--) output(&h, t); /* backwards: in place, y overwrites x */
  if (!in_place) hk_ref_causal_state(d, a, q, c);
}

static void keep(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_seq *q, int64_t c, int64_t to,
                 int64_t from) {
  hk_store_element(d->state_type, a->state_out, state_at(d, q->slot_out, c, to), old_entry(d, a, q, c, from));
}

/* Entries that no token of this call replaces stay where they are: copied if the new state lies elsewhere. */
static void carry(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_seq *q, int64_t c) {
  if (q->has_state && a->state_in == a->state_out && q->slot_in == q->slot_out) return;
  for (int64_t i = 0; i < d->state_length; i++) keep(d, a, q, c, i, i);
}

void hk_ref_causal_state(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_seq *q, int64_t c) {
  const int64_t length = d->state_length, tokens = q->tokens;
  if (!length || q->slot_out < 0) return;
  int64_t kept = hk_max64(length - tokens, 0), shift = tokens;
  if (d->ring || !tokens) {
    carry(d, a, q, c);
    kept = 0;
  } else if (q->accepted) {
    kept = hk_max64(hk_causal_reach(d) - 1, 0), shift = q->accepted;
  }
  for (int64_t i = 0; i < kept; i++) keep(d, a, q, c, i, i + shift);
  const int64_t first = q->accepted && !d->ring ? 0 : hk_max64(tokens - length, 0);
  for (int64_t t = first; t < tokens; t++) {
    const int64_t entry = d->ring ? (q->position + t) % length : kept + t - first;
    hk_store_element(d->state_type, a->state_out, state_at(d, q->slot_out, c, entry), input(d, a, q, c, t));
  }
}

/* ---- gradient */

/* dy times the slope of act at token t of one sequence. */
static double slope(const channel *h, const hk_causal_grads *g, int64_t t) {
  const hk_causal_desc *d = h->d;
  if (h->ids && h->ids[t] < 0) return 0;
  const double dy = hk_load_element(d->y_type, g->dy, hk_causal_at(h->q, &d->y, h->c, t));
  if (d->act == HK_ACT_NONE) return dy;
  const double z = sum(h, t);
  if (d->act == HK_ACT_RELU) return z > 0 ? dy : 0;
  const double gate = hk_act_eval(HK_ACT_SIGMOID, 0, 0, 0, z);
  return dy * gate * (1 + z * (1 - gate));
}

/* What the new state's gradient adds to that of entry or token number `t` of this sequence, negative before it. */
static double from_state(const channel *h, const hk_causal_grads *g, int64_t t) {
  const int64_t entry = h->d->state_length - h->q->tokens + t;
  if (!g->dstate_out || entry < 0) return 0;
  return hk_load_element(h->d->state_type, g->dstate_out, state_at(h->d, h->q->s, h->c, entry));
}

static double to_input(const channel *h, const hk_causal_grads *g, int64_t t) {
  const hk_causal_desc *d = h->d;
  double v = from_state(h, g, t);
  for (int64_t j = 0; j < d->window; j++) {
    const int64_t to = t + d->dilation * (d->window - 1 - j);
    if (to < 0 || to >= h->q->tokens || !sees(h, to, t)) continue;
    v += tap(d, h->a, h->c, j) * slope(h, g, to);
  }
  return v;
}

static void to_state(const channel *h, const hk_causal_grads *g) {
  const hk_causal_desc *d = h->d;
  for (int64_t i = 0; i < d->state_length; i++) {
    const double v = h->q->has_state ? to_input(h, g, i - d->state_length) : 0;
    hk_store_element(d->state_type, g->dstate_in, state_at(d, h->q->s, h->c, i), v);
  }
}

static void to_weights(const channel *h, const hk_causal_grads *g, double *df, double *dbias) {
  const hk_causal_desc *d = h->d;
  for (int64_t t = 0; t < h->q->tokens; t++) {
    const double dz = slope(h, g, t);
    *dbias += dz;
    for (int64_t j = 0; j < d->window; j++) {
      const int64_t from = t - d->dilation * (d->window - 1 - j);
      if (sees(h, t, from)) df[j] += dz * value(h, from);
    }
  }
}

void hk_ref_causal_gradient(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_grads *g, int64_t c) {
  double df[256] = {0}, dbias = 0;
  for (int64_t s = 0; s < d->n; s++) {
    hk_causal_seq q;
    hk_causal_seq_make(&q, d, a, s);
    const channel h = {d, a, &q, c, NULL, d->packing == HK_CAUSAL_IDS ? a->ids + s * d->length : NULL};
    if (g->df || g->dbias) to_weights(&h, g, df, &dbias);
    for (int64_t t = 0; g->dx && t < q.tokens; t++)
      hk_store_element(d->x_type, g->dx, hk_causal_at(&q, &g->dx_at, c, t), to_input(&h, g, t));
    if (g->dstate_in && d->state_length) to_state(&h, g);
  }
  for (int64_t j = 0; g->df && j < d->window; j++) g->df[c * d->window + j] = (float)df[j];
  if (g->dbias) g->dbias[c] = (float)dbias;
}
