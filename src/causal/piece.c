/* One piece: a range of channels of one sequence, by the kernels. Weights, history and new state pass through buffers
 * of f32 on the stack, laid out as the kernel wants them: entries apart (lanes are channels) or channels apart (lanes
 * are tokens). Order: history out of the old state, new state, then y, so that states and x may be overwritten in
 * place. */
#include <string.h>

#include "causal/causal.h"

/* Bytes of x and y in one tile of tokens, which all channels of the piece pass before the next. */
#define TILE_BYTES 65536

typedef struct piece {
  const hk_causal *k;
  const hk_causal_args *a;
  const hk_causal_seq *q;
  int64_t c, count; /* channels c..c+count-1 */
} piece;

/* Part of a tensor: element (i, e) of channel c+i and entry or token e. */
typedef struct view {
  hk_type type;
  char *at;
  int64_t channel, time;
} view;

/* f32 of the same: (i, e) is at rows[e*step + i] or, lanes being tokens, at rows[i*step + e]. */
typedef struct buffer {
  float *rows;
  int64_t step;
} buffer;

static bool by_channels(const piece *p) { return p->k->way == HK_CAUSAL_CHANNELS; }

static buffer from_entry(const piece *p, buffer b, int64_t e) {
  return (buffer){b.rows + (by_channels(p) ? e * b.step : e), b.step};
}

static view view_of(hk_type type, const void *tensor, int64_t element, int64_t channel, int64_t time) {
  return (view){type, (char *)(uintptr_t)tensor + element * (int64_t)hk_type_bytes(type), channel, time};
}

/* Moves the first `entries` entries of v into b, or back. */
static void move(const piece *p, bool back, view v, int64_t entries, buffer b) {
  const bool channels = by_channels(p);
  hk_spread_args s = {v.at, b.rows, p->count, entries, v.channel, v.time, b.step, v.type, back};
  if (channels) s.height = entries, s.width = p->count, s.row = v.time, s.column = v.channel;
  if (s.width == 1) s.column = 1;
  if (entries > 0) p->k->spread->fn(&s);
}

static void clear(const piece *p, int64_t entries, buffer b) {
  const int64_t rows = by_channels(p) ? entries : p->count, width = by_channels(p) ? p->count : entries;
  for (int64_t i = 0; i < rows; i++) memset(b.rows + i * b.step, 0, (size_t)width * sizeof(float));
}

static view token_view(const piece *p, const void *tensor, const hk_causal_strides *s, int64_t t) {
  return view_of(p->k->d.x_type, tensor, hk_causal_at(p->q, s, p->c, t), s->channel, s->time);
}
static view state_view(const piece *p, const void *state, int64_t slot, int64_t entry) {
  const hk_causal_strides *s = &p->k->d.state;
  return view_of(p->k->d.state_type, state, slot * s->outer + p->c * s->channel + entry * s->time, s->channel, s->time);
}

/* u of `count` tokens from t on. */
static void load_tokens(const piece *p, int64_t t, int64_t count, buffer b) {
  const hk_causal_desc *d = &p->k->d;
  move(p, false, token_view(p, p->a->x, &d->x, t), count, b);
  if (!d->has_pre) return;
  float gate[HK_CAUSAL_PIECE];
  for (int64_t e = 0; e < count; e++) { /* one token of all channels at a time */
    const buffer one = {gate, 1}, to = from_entry(p, b, e);
    move(p, false, token_view(p, p->a->pre, &d->pre, t + e), 1, one);
    const int64_t step = by_channels(p) ? 1 : b.step;
    for (int64_t i = 0; i < p->count; i++) to.rows[i * step] *= gate[i];
  }
}

/* Entries from..from+count-1 of the old state, in the order of a ring's tokens if it is one (from is then a token). */
static void load_state(const piece *p, int64_t from, int64_t count, buffer b) {
  const hk_causal_desc *d = &p->k->d;
  const hk_causal_seq *q = p->q;
  if (!q->has_state) {
    clear(p, count, b);
  } else if (!d->ring) {
    move(p, false, state_view(p, p->a->state_in, q->slot_in, from), count, b);
  } else {
    for (int64_t e = 0; e < count; e++) {
      const int64_t entry = hk_causal_entry(d, q, from + e);
      if (entry < 0) clear(p, 1, from_entry(p, b, e));
      else move(p, false, state_view(p, p->a->state_in, q->slot_in, entry), 1, from_entry(p, b, e));
    }
  }
}

/* Reads the history and writes the new state; returns where the history lies in b, which holds k->entries. */
static buffer pass_state(const piece *p, buffer b) {
  const hk_causal_desc *d = &p->k->d;
  const hk_causal_seq *q = p->q;
  const int64_t reach = hk_causal_reach(d), length = d->state_length, tokens = q->tokens;
  const bool store = length && q->slot_out >= 0;
  const int64_t last = q->accepted ? tokens : hk_min64(tokens, length);
  const bool whole = store && !d->ring && tokens && length + last <= p->k->entries;
  if (!whole) { /* the state moves by the reference, once its history is read */
    load_state(p, d->ring ? -reach : hk_max64(hk_causal_entry(d, q, -reach), 0), reach, b);
    for (int64_t i = 0; i < p->count && store; i++) hk_ref_causal_state(d, p->a, q, p->c + i);
    return b;
  }
  load_state(p, 0, length, b);
  const view to = state_view(p, p->a->state_out, q->slot_out, 0);
  if (q->accepted) { /* tokens follow the history; what else there was is rejected */
    const buffer history = from_entry(p, b, q->accepted - 1);
    load_tokens(p, 0, tokens, from_entry(p, history, reach));
    move(p, true, to, hk_max64(reach - 1, 0) + tokens, from_entry(p, history, reach ? 1 : 0));
    return history;
  }
  load_tokens(p, tokens - last, last, from_entry(p, b, length));
  move(p, true, to, length, from_entry(p, b, last));
  return from_entry(p, b, length - reach);
}

/* The weights of the piece: as they lie where they are f32 along the lanes, else in b. */
static buffer load_weights(const piece *p, buffer b) {
  const hk_causal_desc *d = &p->k->d;
  const view v = view_of(d->f_type, p->a->f, p->c * d->f_channel, d->f_channel, d->f_tap);
  const int64_t lane = by_channels(p) ? v.channel : v.time;
  if (v.type == HK_F32 && lane == 1) return (buffer){(float *)(void *)v.at, by_channels(p) ? v.time : v.channel};
  move(p, false, v, d->window, b);
  return b;
}

static const float *load_bias(const piece *p, float *room) {
  const hk_causal_desc *d = &p->k->d;
  if (!d->has_bias) return NULL;
  if (d->f_type == HK_F32) return (const float *)p->a->bias + p->c;
  const hk_spread_args s = {view_of(d->f_type, p->a->bias, p->c, 1, 0).at, room, 1, p->count, 0, 1, 0, d->f_type, 0};
  p->k->spread->fn(&s);
  return room;
}

/* Tokens first..end-1 with this history, cut into tiles; from the last to the first where y overwrites x. */
static void run_tokens(const piece *p, hk_causal_tile *tile, int64_t first, int64_t end, buffer history) {
  const hk_causal_desc *d = &p->k->d;
  const hk_causal_args *a = p->a;
  const int64_t bytes = (int64_t)(hk_type_bytes(d->x_type) + hk_type_bytes(d->y_type)) * p->count;
  int64_t size = hk_max64(hk_max64(TILE_BYTES / bytes, 16), hk_causal_reach(d));
  if (!by_channels(p)) size = end - first;
  const int64_t tiles = hk_ceil_div(end - first, hk_max64(size, 1));
  for (int64_t i = 0; i < tiles; i++) {
    const int64_t t = first + size * (a->x == a->y ? tiles - 1 - i : i);
    tile->tokens = hk_min64(size, end - t);
    tile->x = token_view(p, a->x, &d->x, t).at;
    if (d->has_pre) tile->pre = token_view(p, a->pre, &d->pre, t).at;
    if (d->has_post) tile->post = token_view(p, a->post, &d->post, t).at;
    if (d->has_residual) tile->residual = token_view(p, a->residual, &d->residual, t).at;
    tile->y = view_of(d->y_type, a->y, hk_causal_at(p->q, &d->y, p->c, t), 0, 0).at;
    tile->history = t == first ? history.rows : NULL;
    tile->history_step = history.step;
    p->k->kernel->fn(tile);
  }
}

static void zero_tokens(const piece *p, int64_t first, int64_t end) {
  const hk_causal_desc *d = &p->k->d;
  for (int64_t i = 0; i < p->count; i++)
    for (int64_t t = first; t < end; t++)
      hk_store_element(d->y_type, p->a->y, hk_causal_at(p->q, &d->y, p->c + i, t), 0);
}

/* Rows of ids as runs of one id each, from the last to the first; what lies before a run is its history, without the
 * tokens of other ids. */
static void run_ids(const piece *p, hk_causal_tile *tile, buffer history) {
  const hk_causal_desc *d = &p->k->d;
  const int32_t *ids = p->a->ids + p->q->s * d->length;
  const int64_t reach = hk_causal_reach(d);
  for (int64_t end = p->q->tokens, first; end > 0; end = first) {
    for (first = end - 1; first > 0 && ids[first - 1] == ids[first];) first--;
    if (ids[first] < 0) {
      zero_tokens(p, first, end);
      continue;
    }
    const int64_t before = hk_min64(reach, first);
    clear(p, reach - before, history);
    load_tokens(p, first - before, before, from_entry(p, history, reach - before));
    for (int64_t e = reach - before; e < reach; e++)
      if (ids[first - reach + e] != ids[first]) clear(p, 1, from_entry(p, history, e));
    run_tokens(p, tile, first, end, history);
  }
}

void hk_causal_piece(const hk_causal *k, const hk_causal_args *a, const hk_causal_seq *q, int64_t c, int64_t count) {
  const hk_causal_desc *d = &k->d;
  const piece p = {k, a, q, c, count};
  _Alignas(HK_ALIGN) float room[HK_CAUSAL_ROOM];
  const int64_t step = hk_round_up(count, 16);
  const bool channels = by_channels(&p);
  const buffer weights = load_weights(&p, (buffer){room, channels ? step : d->window});
  float *rest = room + step * d->window;
  const buffer room_of_state = {rest + step, channels ? step : k->entries};
  hk_causal_tile tile = {.f = weights.rows,
                         .bias = load_bias(&p, rest),
                         .channels = count,
                         .window = d->window,
                         .dilation = d->dilation,
                         .x_step = channels ? d->x.time : d->x.channel,
                         .pre_step = channels ? d->pre.time : d->pre.channel,
                         .post_step = channels ? d->post.time : d->post.channel,
                         .residual_step = channels ? d->residual.time : d->residual.channel,
                         .y_step = channels ? d->y.time : d->y.channel,
                         .f_step = weights.step,
                         .x_type = d->x_type,
                         .y_type = d->y_type,
                         .act = d->act,
                         .a = d->a,
                         .b = d->b};
  if (d->packing == HK_CAUSAL_IDS) {
    run_ids(&p, &tile, room_of_state);
    return;
  }
  const buffer history = pass_state(&p, room_of_state);
  run_tokens(&p, &tile, 0, q->tokens, history);
}
