/* Between tensors of any type and stride and the f32 rows that kernels read. */
#include "causal/part.h"

#include <string.h>

void hk_causal_move(const hk_causal_part *p, bool back, hk_causal_view v, int64_t entries, hk_causal_rows b) {
  const bool channels = p->channels;
  hk_spread_args s = {v.at, b.rows, p->count, entries, v.channel, v.time, b.step, v.type, back};
  if (channels) s.height = entries, s.width = p->count, s.row = v.time, s.column = v.channel;
  if (s.width == 1) s.column = 1;
  if (entries > 0) p->k->spread->fn(&s);
}

void hk_causal_clear(const hk_causal_part *p, int64_t entries, hk_causal_rows b) {
  const int64_t rows = p->channels ? entries : p->count, width = p->channels ? p->count : entries;
  for (int64_t i = 0; i < rows; i++) memset(b.rows + i * b.step, 0, (size_t)width * sizeof(float));
}

hk_causal_view hk_causal_token_view(const hk_causal_part *p, const void *tensor, const hk_causal_strides *s,
                                    int64_t t) {
  return hk_causal_view_of(p->k->d.x_type, tensor, hk_causal_at(p->q, s, p->c, t), s->channel, s->time);
}
hk_causal_view hk_causal_state_view(const hk_causal_part *p, const void *state, int64_t slot, int64_t entry) {
  const hk_causal_strides *s = &p->k->d.state;
  return hk_causal_view_of(p->k->d.state_type, state, slot * s->outer + p->c * s->channel + entry * s->time, s->channel,
                           s->time);
}

void hk_causal_load_tokens(const hk_causal_part *p, int64_t t, int64_t count, hk_causal_rows b) {
  const hk_causal_desc *d = &p->k->d;
  hk_causal_move(p, false, hk_causal_token_view(p, p->a->x, &d->x, t), count, b);
  if (!d->has_pre) return;
  float gate[HK_CAUSAL_PIECE];
  for (int64_t e = 0; e < count; e++) { /* one token of all channels at a time */
    const hk_causal_rows one = {gate, 1}, to = hk_causal_from(p, b, e);
    hk_causal_move(p, false, hk_causal_token_view(p, p->a->pre, &d->pre, t + e), 1, one);
    const int64_t step = p->channels ? 1 : b.step;
    for (int64_t i = 0; i < p->count; i++) to.rows[i * step] *= gate[i];
  }
}

void hk_causal_load_state(const hk_causal_part *p, int64_t from, int64_t count, hk_causal_rows b) {
  const hk_causal_desc *d = &p->k->d;
  const hk_causal_seq *q = p->q;
  if (!q->has_state) {
    hk_causal_clear(p, count, b);
  } else if (!d->ring) {
    hk_causal_move(p, false, hk_causal_state_view(p, p->a->state_in, q->slot_in, from), count, b);
  } else {
    for (int64_t e = 0; e < count; e++) {
      const int64_t entry = hk_causal_entry(d, q, from + e);
      if (entry < 0) hk_causal_clear(p, 1, hk_causal_from(p, b, e));
      else
        hk_causal_move(p, false, hk_causal_state_view(p, p->a->state_in, q->slot_in, entry), 1,
                       hk_causal_from(p, b, e));
    }
  }
}

void hk_causal_load_weights(const hk_causal_part *p, hk_causal_rows b) {
  const hk_causal_desc *d = &p->k->d;
  const hk_causal_view v = hk_causal_view_of(d->f_type, p->a->f, p->c * d->f_channel, d->f_channel, d->f_tap);
  hk_causal_move(p, false, v, d->window, b);
}

const float *hk_causal_load_bias(const hk_causal_part *p, float *room) {
  const hk_causal_desc *d = &p->k->d;
  if (!d->has_bias) return NULL;
  if (d->f_type == HK_F32) return (const float *)p->a->bias + p->c;
  const hk_spread_args s = {
      hk_causal_view_of(d->f_type, p->a->bias, p->c, 1, 0).at, room, 1, p->count, 0, 1, 0, d->f_type, 0};
  p->k->spread->fn(&s);
  return room;
}
