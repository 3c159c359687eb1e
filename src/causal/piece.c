/* One piece: a range of channels of one sequence, by the kernels. Weights, history and new state pass through buffers
 * of f32 on the stack, laid out as the kernel wants them: entries apart (lanes are channels) or channels apart (lanes
 * are tokens). Order: history out of the old state, new state, then y, so that states and x may be overwritten in
 * place. */
#include "causal/part.h"

/* Bytes of x and y in one tile of tokens, which all channels of the piece pass before the next. */
#define TILE_BYTES 65536

/* Reads the history and writes the new state; returns where the history lies in b, which holds k->entries. */
static hk_causal_rows pass_state(const hk_causal_part *p, hk_causal_rows b) {
  const hk_causal_desc *d = &p->k->d;
  const hk_causal_seq *q = p->q;
  const int64_t reach = hk_causal_reach(d), length = d->state_length, tokens = q->tokens;
  const bool store = length && q->slot_out >= 0;
  const int64_t last = q->accepted ? tokens : hk_min64(tokens, length);
  const bool whole = store && !d->ring && tokens && length + last <= p->k->entries;
  if (!whole) { /* the state moves by the reference, once its history is read */
    hk_causal_load_state(p, d->ring ? -reach : hk_max64(hk_causal_entry(d, q, -reach), 0), reach, b);
    for (int64_t i = 0; i < p->count && store; i++) hk_ref_causal_state(d, p->a, q, p->c + i);
    return b;
  }
  hk_causal_load_state(p, 0, length, b);
  const hk_causal_view to = hk_causal_state_view(p, p->a->state_out, q->slot_out, 0);
  if (q->accepted) { /* tokens follow the history; what else there was is rejected */
    const hk_causal_rows history = hk_causal_from(p, b, q->accepted - 1);
    hk_causal_load_tokens(p, 0, tokens, hk_causal_from(p, history, reach));
    hk_causal_move(p, true, to, hk_max64(reach - 1, 0) + tokens, hk_causal_from(p, history, reach ? 1 : 0));
    return history;
  }
  hk_causal_load_tokens(p, tokens - last, last, hk_causal_from(p, b, length));
  hk_causal_move(p, true, to, length, hk_causal_from(p, b, last));
  return hk_causal_from(p, b, length - reach);
}

/* The weights of the piece: as they lie where they are f32 along the lanes, else in b. */
static hk_causal_rows load_weights(const hk_causal_part *p, hk_causal_rows b) {
  const hk_causal_desc *d = &p->k->d;
  if (d->f_type == HK_F32 && (p->channels ? d->f_channel : d->f_tap) == 1)
    return (hk_causal_rows){(float *)(uintptr_t)p->a->f + p->c * d->f_channel, p->channels ? d->f_tap : d->f_channel};
  hk_causal_load_weights(p, b);
  return b;
}

/* Tokens first..end-1 with this history, cut into tiles; from the last to the first where y overwrites x. */
static void run_tokens(const hk_causal_part *p, hk_causal_tile *tile, int64_t first, int64_t end,
                       hk_causal_rows history) {
  const hk_causal_desc *d = &p->k->d;
  const hk_causal_args *a = p->a;
  const int64_t bytes = (int64_t)(hk_type_bytes(d->x_type) + hk_type_bytes(d->y_type)) * p->count;
  int64_t size = hk_max64(hk_max64(TILE_BYTES / bytes, 16), hk_causal_reach(d));
  if (!p->channels) size = end - first;
  const int64_t tiles = hk_ceil_div(end - first, hk_max64(size, 1));
  for (int64_t i = 0; i < tiles; i++) {
    const int64_t t = first + size * (a->x == a->y ? tiles - 1 - i : i);
    tile->tokens = hk_min64(size, end - t);
    tile->x = hk_causal_token_view(p, a->x, &d->x, t).at;
    if (d->has_pre) tile->pre = hk_causal_token_view(p, a->pre, &d->pre, t).at;
    if (d->has_post) tile->post = hk_causal_token_view(p, a->post, &d->post, t).at;
    if (d->has_residual) tile->residual = hk_causal_token_view(p, a->residual, &d->residual, t).at;
    tile->y = hk_causal_view_of(d->y_type, a->y, hk_causal_at(p->q, &d->y, p->c, t), 0, 0).at;
    tile->history = t == first ? history.rows : NULL;
    tile->history_step = history.step;
    p->k->kernel->fn(tile);
  }
}

static void zero_tokens(const hk_causal_part *p, int64_t first, int64_t end) {
  const hk_causal_desc *d = &p->k->d;
  for (int64_t i = 0; i < p->count; i++)
    for (int64_t t = first; t < end; t++)
      hk_store_element(d->y_type, p->a->y, hk_causal_at(p->q, &d->y, p->c + i, t), 0);
}

/* Rows of ids as runs of one id each, from the last to the first; what lies before a run is its history, without the
 * tokens of other ids. */
static void run_ids(const hk_causal_part *p, hk_causal_tile *tile, hk_causal_rows history) {
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
    hk_causal_clear(p, reach - before, history);
    hk_causal_load_tokens(p, first - before, before, hk_causal_from(p, history, reach - before));
    for (int64_t e = reach - before; e < reach; e++)
      if (ids[first - reach + e] != ids[first]) hk_causal_clear(p, 1, hk_causal_from(p, history, e));
    run_tokens(p, tile, first, end, history);
  }
}

void hk_causal_piece(const hk_causal *k, const hk_causal_args *a, const hk_causal_seq *q, int64_t c, int64_t count) {
  const hk_causal_desc *d = &k->d;
  const hk_causal_part p = {k, a, q, c, count, k->way == HK_CAUSAL_CHANNELS};
  _Alignas(HK_ALIGN) float room[HK_CAUSAL_ROOM];
  const int64_t step = hk_round_up(count, 16);
  const bool channels = p.channels;
  const hk_causal_rows weights = load_weights(&p, (hk_causal_rows){room, channels ? step : d->window});
  float *rest = room + step * d->window;
  const hk_causal_rows room_of_state = {rest + step, channels ? step : k->entries};
  hk_causal_tile tile = {.f = weights.rows,
                         .bias = hk_causal_load_bias(&p, rest),
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
  const hk_causal_rows history = pass_state(&p, room_of_state);
  run_tokens(&p, &tile, 0, q->tokens, history);
}
