/* The backward pass of a range of channels over all sequences, in tiles of tokens from the last to the first. A tile is
 * staged in rows of f32: u with the tokens before it, z by the forward kernel, dz in its place with those of the tokens
 * behind it, and dx by the forward kernel again: a causal convolution of dz with the taps reversed, shifted by the
 * reach. Sums over a tile are f32, over tiles double. Tiles depend on the description alone, so the bits do not depend
 * on the threads. */
#include <string.h>

#include "causal/part.h"

typedef struct back {
  hk_causal_part p;
  const hk_causal_grads *g;
  int64_t reach, size; /* size: tokens of a whole tile */
  const float *bias;
  hk_causal_rows f, reversed, df;
  hk_causal_rows u, z, other; /* reach + size, size + reach, size entries; other: dy, then dx */
  float *dbias;
  double *sums; /* [window + 1][count], bias last */
} back;

static float *at(const back *b, hk_causal_rows r, int64_t i, int64_t e) {
  return hk_causal_from(&b->p, r, e).rows + (b->p.channels ? i : i * r.step);
}

/* Convolves `tokens` entries of x, which has those before it, into y. */
static void convolve(const back *b, hk_causal_rows f, const float *bias, hk_causal_rows x, hk_causal_rows y,
                     int64_t tokens) {
  const hk_causal_desc *d = &b->p.k->d;
  const hk_causal_tile tile = {.x = hk_causal_from(&b->p, x, b->reach).rows,
                               .y = y.rows,
                               .f = f.rows,
                               .bias = bias,
                               .channels = b->p.count,
                               .tokens = tokens,
                               .window = d->window,
                               .dilation = d->dilation,
                               .x_step = x.step,
                               .y_step = y.step,
                               .f_step = f.step};
  b->p.k->kernel->fn(&tile);
}

/* Moves the first `reach` entries of z behind the `tokens` entries that come now. */
static void carry(const back *b, int64_t tokens) {
  const int64_t rows = b->p.channels ? 1 : b->p.count;
  const size_t bytes = (size_t)(b->p.channels ? b->reach * b->z.step : b->reach) * sizeof(float);
  for (int64_t i = 0; i < rows; i++) {
    float *row = b->z.rows + i * b->z.step;
    memmove(row + (b->p.channels ? tokens * b->z.step : tokens), row, bytes);
  }
}

/* Adds entries from..from+count-1 of the new state's gradient to `to`; uses u. */
static void add_state(const back *b, int64_t from, int64_t count, hk_causal_rows to) {
  const hk_causal_part *p = &b->p;
  if (!b->g->dstate_out || count <= 0) return;
  hk_causal_move(p, false, hk_causal_state_view(p, b->g->dstate_out, p->q->s, from), count, b->u);
  for (int64_t e = 0; e < count; e++)
    for (int64_t i = 0; i < p->count; i++) *at(b, to, i, e) += *at(b, b->u, i, e);
}

static void load_inputs(const back *b, int64_t t, int64_t tokens) {
  const hk_causal_part *p = &b->p;
  const int64_t before = hk_min64(t, b->reach), older = b->reach - before;
  hk_causal_load_state(p, p->k->d.state_length - older, older, b->u);
  hk_causal_load_tokens(p, t - before, before + tokens, hk_causal_from(p, b->u, older));
}

static void run_tile(const back *b, int64_t t, int64_t tokens) {
  const hk_causal_part *p = &b->p;
  const hk_causal_desc *d = &p->k->d;
  const int64_t length = d->state_length;
  load_inputs(b, t, tokens);
  carry(b, tokens);
  convolve(b, b->f, b->bias, b->u, b->z, tokens);
  const int64_t first = hk_causal_at(p->q, &d->y, p->c, t);
  hk_causal_move(p, false, hk_causal_view_of(d->y_type, b->g->dy, first, d->y.channel, d->y.time), tokens, b->other);
  const hk_causal_back tile = {.z = b->z.rows,
                               .df = b->df.rows,
                               .dbias = b->dbias,
                               .dy = b->other.rows,
                               .u = b->u.rows,
                               .channels = p->count,
                               .tokens = tokens,
                               .window = d->window,
                               .dilation = d->dilation,
                               .z_step = b->z.step,
                               .dy_step = b->other.step,
                               .u_step = b->u.step,
                               .df_step = b->df.step,
                               .act = d->act,
                               .along_tokens = !p->channels};
  p->k->back->fn(&tile);
  for (int64_t i = 0; i < p->count; i++) {
    for (int64_t j = 0; j < d->window; j++) b->sums[j * p->count + i] += (double)*at(b, b->df, i, j);
    b->sums[d->window * p->count + i] += (double)b->dbias[i];
  }
  if (!b->g->dx) return;
  convolve(b, b->reversed, NULL, b->z, b->other, tokens);
  const int64_t entry = length - p->q->tokens + t, skip = hk_min64(hk_max64(-entry, 0), tokens);
  add_state(b, entry + skip, tokens - skip, hk_causal_from(p, b->other, skip));
  hk_causal_move(p, true, hk_causal_token_view(p, b->g->dx, &b->g->dx_at, t), tokens, b->other);
}

/* What the first tokens hand back to the initial state, and what of it is left in the new one. */
static void run_state(const back *b) {
  const hk_causal_part *p = &b->p;
  const int64_t length = p->k->d.state_length;
  hk_causal_clear(p, length, b->other);
  if (p->q->has_state) {
    carry(b, b->reach);
    hk_causal_clear(p, b->reach, b->z);
    if (b->reach) convolve(b, b->reversed, NULL, b->z, hk_causal_from(p, b->other, length - b->reach), b->reach);
    const int64_t first = hk_min64(p->q->tokens, length);
    add_state(b, 0, length - first, hk_causal_from(p, b->other, first));
  }
  hk_causal_move(p, true, hk_causal_state_view(p, b->g->dstate_in, p->q->s, 0), length, b->other);
}

static void run_sequence(const back *b) {
  hk_causal_clear(&b->p, b->reach, b->z); /* nothing follows the last token */
  for (int64_t end = b->p.q->tokens, t; end > 0; end = t) {
    t = hk_max64(end - b->size, 0);
    run_tile(b, t, end - t);
  }
  if (b->g->dstate_in && b->p.k->d.state_length) run_state(b);
}

/* Rows of `entries` entries from *room on. */
static hk_causal_rows take(const hk_causal_part *p, float **room, int64_t entries) {
  const hk_causal_rows r = {*room, p->channels ? hk_round_up(p->count, 16) : entries};
  *room += hk_round_up(p->count, 16) * entries;
  return r;
}

bool hk_causal_back_fits(const hk_causal *k, int64_t *size, int64_t *count) {
  const hk_causal_desc *d = &k->d;
  const int64_t reach = hk_causal_reach(d);
  const bool tokens = k->way == HK_CAUSAL_TOKENS;
  if (d->packing == HK_CAUSAL_IDS || (tokens && reach > HK_CAUSALT_REACH)) return false;
  for (*size = tokens ? 256 : 64; *size >= 32; *size /= 2) {
    const int64_t longest = hk_max64(*size, hk_max64(reach, d->state_length));
    const int64_t entries = 2 * reach + 3 * longest + 3 * d->window + 2;
    *count = tokens || 32 * entries > HK_CAUSAL_ROOM ? 16 : 32;
    if (*count * entries > HK_CAUSAL_ROOM) continue;
    *size = longest;
    return true;
  }
  return false;
}

void hk_causal_back_piece(const hk_causal *k, const hk_causal_args *a, const hk_causal_grads *g, int64_t c,
                          int64_t count) {
  const hk_causal_desc *d = &k->d;
  _Alignas(HK_ALIGN) float floats[HK_CAUSAL_ROOM];
  double sums[257 * 32];
  float *room = floats;
  int64_t most;
  hk_causal_seq q;
  back b = {.p = {k, a, &q, c, count, k->way != HK_CAUSAL_TOKENS}, .g = g, .reach = hk_causal_reach(d), .sums = sums};
  hk_causal_back_fits(k, &b.size, &most);
  b.f = take(&b.p, &room, d->window), b.reversed = take(&b.p, &room, d->window), b.df = take(&b.p, &room, d->window);
  b.u = take(&b.p, &room, b.reach + b.size), b.z = take(&b.p, &room, b.size + b.reach);
  b.other = take(&b.p, &room, b.size);
  b.dbias = room, b.bias = hk_causal_load_bias(&b.p, room + hk_round_up(count, 16));
  hk_causal_load_weights(&b.p, b.f);
  memset(sums, 0, (size_t)((d->window + 1) * count) * sizeof *sums);
  for (int64_t j = 0; j < d->window; j++)
    for (int64_t i = 0; i < count; i++) *at(&b, b.reversed, i, d->window - 1 - j) = *at(&b, b.f, i, j);
  for (int64_t s = 0; s < d->n; s++) {
    hk_causal_seq_make(&q, d, a, s);
    run_sequence(&b);
  }
  for (int64_t i = 0; i < count; i++) {
    for (int64_t j = 0; j < d->window && g->df; j++) g->df[(c + i) * d->window + j] = (float)sums[j * count + i];
    if (g->dbias) g->dbias[c + i] = (float)sums[d->window * count + i];
  }
}
