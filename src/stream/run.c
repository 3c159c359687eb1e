/* One piece of a block through the ops, and process: blocks in, pieces through, blocks out. Nothing here allocates,
 * locks or makes a system call, and no branch depends on sample values. */
#include <string.h>

#include "stream/stream.h"

/* Copies whole cache lines: up to 15 floats beyond n, into slack or dead frames. */
static inline void copy_lines(float *to, const float *from, int64_t n) {
  for (int64_t t = 0; t < n; t += 16) {
    float line[16];
    memcpy(line, from + t, sizeof line);
    memcpy(to + t, line, sizeof line);
  }
}

/* Repeats the frame at `at` over all `frames` of a row. */
static void fill_frames(float *row, int64_t at, int64_t frames, int64_t pitch) {
  for (int64_t c = 0; c < pitch; c++) {
    const float v = row[at * pitch + c];
    for (int64_t t = 0; t < frames; t++) row[t * pitch + c] = v;
  }
}

/* Mirrors the n frames just written at the block's position into the guard of their ring, or from it. steady: the
 * block's first frame fills the whole history instead. */
void hk_ring_store(const hk_stream *s, int32_t buffer, int64_t n, bool steady) {
  const hk_net_buffer *b = &s->chain->buffer[buffer];
  float *rows = s->ring + b->offset;
  if (steady && b->history) {
    const int64_t at = b->length ? s->at[buffer] : b->before;
    for (int64_t r = 0; r < b->rows; r++, rows += b->stride)
      fill_frames(rows, at, b->length ? b->length + b->guard : b->before, b->pitch);
  }
  if (steady || !b->length) return;
  const int64_t pitch = b->pitch, at = s->at[buffer] * pitch, end = at + n * pitch, length = b->length * pitch,
                guard = b->guard * pitch;
  if (at < guard) {
    const int64_t count = (end < guard ? end : guard) - at;
    for (int64_t r = 0; r < b->rows; r++)
      copy_lines(rows + r * b->stride + length + at, rows + r * b->stride + at, count);
  }
  if (end > length) {
    for (int64_t r = 0; r < b->rows; r++) copy_lines(rows + r * b->stride, rows + r * b->stride + length, end - length);
  }
}

const float *hk_stream_delayed(const hk_stream *s, int32_t buffer, int64_t delay) {
  const hk_net_buffer *b = &s->chain->buffer[buffer];
  if (!b->length) return (b->before ? s->ring : s->scratch) + b->offset + (b->before - delay) * b->pitch;
  int64_t at = s->at[buffer] - delay;
  if (at < 0) at += b->length;
  return s->ring + b->offset + at * b->pitch;
}

static void aim_segments(const hk_stream *s, const hk_net_op *op, hk_small_seg *seg) {
  const hk_net_buffer *b = &s->chain->buffer[op->x];
  if (op->taps_inside) {
    seg++->x = hk_stream_delayed(s, op->x, op->dilation * (op->window - 1));
  } else if (op->phases == 1) {
    for (int64_t w = op->window - 1; w >= 0; w--) seg++->x = hk_stream_delayed(s, op->x, op->dilation * w);
  } else {
    for (int64_t w = op->window - 1; w >= 0; w--) {
      const int64_t back = op->dilation * w, phase = (op->phases - back % op->phases) % op->phases;
      seg++->x = hk_stream_delayed(s, op->x, (back + phase) / op->phases) + phase * b->stride;
    }
  }
  if (op->mix >= 0) seg->x = hk_stream_rows(s, op->mix);
}

static void run_conv(const hk_stream *s, const hk_net_op *op, int64_t n) {
  const hk_chain *c = s->chain;
  hk_small_args a = {.n = n,
                     .groups = op->groups,
                     .y_group = op->k / op->groups,
                     .segs = op->segs,
                     .act = op->act,
                     .lo = op->lo,
                     .hi = op->hi,
                     .y_stride = c->buffer[op->y].stride};
  float *y = hk_stream_rows(s, op->y);
  const float *add = op->add >= 0 ? hk_stream_rows(s, op->add) : NULL;
  float *sum = op->sum >= 0 ? hk_stream_rows(s, op->sum) : NULL;
  if (add) a.add_stride = c->buffer[op->add].stride;
  if (sum) a.sum_stride = c->buffer[op->sum].stride;
  for (int32_t j = 0; j < op->calls; j++) {
    const hk_net_call *call = &op->call[j];
    aim_segments(s, op, s->seg + call->seg);
    a.seg = s->seg + call->seg;
    a.tiles = call->tiles;
    a.bias = c->data + op->bias_at + call->first;
    a.y = y + call->first * a.y_stride;
    a.add = add ? add + call->first * a.add_stride : NULL;
    a.sum = sum ? sum + call->first * a.sum_stride : NULL;
    call->fn(&a);
  }
}

static void run_frame(const hk_stream *s, const hk_net_op *op, int64_t n) {
  hk_small_seg *seg = s->seg + op->call[0].seg;
  for (int64_t w = 0; w < op->window; w++) seg[w].x = hk_stream_delayed(s, op->x, op->dilation * (op->window - 1 - w));
  const bool last = s->y && op == s->chain->op + s->chain->ops - 1;
  hk_frame_run(s->chain, op, seg, last ? s->y : hk_stream_rows(s, op->y), n);
}

/* An interleaved chain has one row of frames: its maps are element-wise. */
static void run_map(const hk_stream *s, const hk_net_op *op, int64_t n) {
  const hk_net_buffer *b = s->chain->buffer;
  hk_map_args a = {.rows = op->rows, .n = n, .op = op->map, .beta = op->beta, .act = op->map_act, .act2 = op->map_act2};
  if (s->chain->interleaved) {
    a.rows = 1;
    a.n = n * op->rows;
  }
  a.x = hk_stream_rows(s, op->x);
  a.x_stride = b[op->x].stride;
  a.y = hk_stream_rows(s, op->y);
  a.y_stride = b[op->y].stride;
  if (op->x2 >= 0) {
    const float *x2 = hk_stream_rows(s, op->x2);
    a.x2_stride = a.x3_stride = b[op->x2].stride;
    a.x2 = x2 + op->x2_row * a.x2_stride;
    if (op->x3_row >= 0) a.x3 = x2 + op->x3_row * a.x3_stride;
  }
  if (op->add >= 0) {
    a.add = hk_stream_rows(s, op->add);
    a.add_stride = b[op->add].stride;
  }
  if (op->sum >= 0) {
    a.sum = hk_stream_rows(s, op->sum);
    a.sum_stride = b[op->sum].stride;
  }
  s->chain->map(&a);
}

/* Writes frames of x to the row of their phase, so that a strided convolution reads contiguous rows. A frame of a later
 * phase than the stride starts with belongs to the output frame before the piece. */
static void run_split(const hk_stream *s, const hk_net_op *op, bool steady) {
  const hk_chain *c = s->chain;
  const hk_net_domain *d = &c->domain[op->domain];
  const hk_net_buffer *from = &c->buffer[op->x], *to = &c->buffer[op->y];
  const float *x = hk_stream_rows(s, op->x);
  const int64_t phase = steady ? 0 : s->phase[op->domain], n = s->frames[d->parent], at = s->at[op->y] - (phase > 0);
  for (int64_t ch = 0; ch < op->c; ch++) {
    for (int64_t i = 0; i < n; i++) {
      const int64_t time = phase + i;
      float *row = s->ring + to->offset + (ch * op->phases + time % op->phases) * to->stride;
      int64_t t = at + time / op->phases;
      if (t < 0) t += to->length;
      if (t >= to->length) t -= to->length;
      row[t] = x[ch * from->stride + i];
      if (t < to->guard) row[t + to->length] = row[t];
    }
  }
  if (!steady) return;
  for (int64_t r = 0; r < op->c * op->phases; r++) {
    float *row = s->ring + to->offset + r * to->stride;
    for (int64_t t = 0; t < to->length + to->guard; t++) row[t] = x[r / op->phases * from->stride];
  }
}

/* Sample by sample; the four gates are one row whose reduction runs over input and state. */
static void run_lstm(const hk_stream *s, const hk_net_op *op, int64_t n) {
  static const float zero[1] = {0.0f};
  const hk_chain *c = s->chain;
  const int64_t in = op->c + op->k, k = op->k, x_row = c->buffer[op->x].stride, y_row = c->buffer[op->y].stride;
  const float *w = c->data + op->call[0].f, *x = hk_stream_rows(s, op->x);
  float *v = s->lstm + op->state, *cell = v + hk_round_up(in, 16), *y = hk_stream_rows(s, op->y);
  float *z = s->scratch + c->scratch_floats - op->row - op->pad,
        *t = z + op->row; /* the scratch ends with lstm_work floats */
  hk_small_seg *seg = s->seg + op->call[0].seg;
  *seg = (hk_small_seg){w, v, in, op->row, 0};
  const hk_small_args a = {.seg = seg,
                           .segs = 1,
                           .bias = zero,
                           .add = w + in * op->row,
                           .y = z,
                           .n = hk_round_up(4 * k, c->width),
                           .groups = 1,
                           .tiles = 1};
  const hk_map_act tanh_of = {.act = HK_ACT_TANH, .rational = op->map_act.rational};
  const hk_map_args gates = {.x = z, .y = z, .rows = 1, .n = a.n, .op = HK_MAP_ACT, .act = tanh_of};
  const hk_map_args out = {.x = t, .y = t, .rows = 1, .n = hk_round_up(k, c->width), .op = HK_MAP_ACT, .act = tanh_of};
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < op->c; j++) v[j] = x[j * x_row + i];
    c->matvec(&a);
    c->map(&gates);
    for (int64_t j = 0; j < k; j++) {
      t[j] = cell[j] = (0.5f * z[k + j] + 0.5f) * cell[j] + (0.5f * z[j] + 0.5f) * z[2 * k + j];
    }
    c->map(&out);
    for (int64_t j = 0; j < k; j++) y[j * y_row + i] = v[op->c + j] = (0.5f * z[3 * k + j] + 0.5f) * t[j];
  }
}

void hk_stream_piece(hk_stream *s, bool steady) {
  const hk_chain *c = s->chain;
  for (int32_t j = 0; j < c->ops; j++) {
    const hk_net_op *op = &c->op[j];
    const int64_t n = s->frames[op->domain], wide = hk_round_up(n, c->width);
    if (op->kind == HK_OP_SPLIT) {
      run_split(s, op, steady);
      continue;
    }
    if (!n) continue;
    switch (op->kind) {
    case HK_OP_CONV: run_conv(s, op, wide); break;
    case HK_OP_FRAME: run_frame(s, op, n); break;
    case HK_OP_MAP: run_map(s, op, wide); break;
    case HK_OP_FIR:
      if (steady) hk_fir_settle(s, op);
      else hk_fir_run(s, op, n, wide);
      break;
    default: run_lstm(s, op, n); break;
    }
    if (op->ring_y) hk_ring_store(s, op->y, n, steady);
    if (op->ring_sum) hk_ring_store(s, op->sum, n, steady);
  }
}

void hk_stream_move(hk_stream *s) {
  const hk_chain *c = s->chain;
  for (int32_t b = 0; b < c->buffers; b++) {
    const hk_net_buffer *q = &c->buffer[b];
    const int64_t n = s->frames[q->domain];
    if (q->length) {
      s->at[b] += n;
      if (s->at[b] >= q->length) s->at[b] -= q->length;
    } else if (n) {
      float *rows = s->ring + q->offset;
      for (int64_t r = 0; q->before && r < q->rows; r++, rows += q->stride) {
        copy_lines(rows, rows + n * q->pitch, q->before * q->pitch);
      }
    }
  }
  for (int32_t d = 1; d < c->domains; d++) {
    s->phase[d] = (s->phase[d] + s->frames[c->domain[d].parent]) % c->domain[d].stride;
  }
}

void hk_stream_advance(hk_stream *s, int64_t n) {
  const hk_chain *c = s->chain;
  hk_ring_store(s, c->in, n, false);
  s->frames[0] = n;
  for (int32_t d = 1; d < c->domains; d++) {
    const int64_t stride = c->domain[d].stride, parent = s->frames[c->domain[d].parent], phase = s->phase[d];
    s->frames[d] = hk_ceil_div(phase + parent, stride) - hk_ceil_div(phase, stride);
  }
  hk_stream_piece(s, false);
}

static void copy_in(const hk_stream *s, const float *x, int64_t n) {
  const hk_chain *c = s->chain;
  const int64_t row = c->buffer[c->in].stride;
  float *to = hk_stream_rows(s, c->in);
  if (c->interleaved) {
    memcpy(to, x, (size_t)(n * c->x_channels) * sizeof(float));
    return;
  }
  for (int64_t ch = 0; ch < c->x_channels; ch++) {
    if (c->x_time == 1) {
      memcpy(to + ch * row, x + ch * c->x_channel, (size_t)n * sizeof(float));
      continue;
    }
    for (int64_t t = 0; t < n; t++) to[ch * row + t] = x[ch * c->x_channel + t * c->x_time];
  }
}

static void copy_out(const hk_stream *s, float *y, int64_t n) {
  const hk_chain *c = s->chain;
  const int64_t row = c->buffer[c->out].stride;
  if (c->direct) return;
  const float *from = hk_stream_rows(s, c->out);
  if (c->interleaved) {
    memcpy(y, from, (size_t)(n * c->y_channels) * sizeof(float));
    return;
  }
  for (int64_t ch = 0; ch < c->y_channels; ch++) {
    if (c->y_time == 1) {
      memcpy(y + ch * c->y_channel, from + ch * row, (size_t)n * sizeof(float));
      continue;
    }
    for (int64_t t = 0; t < n; t++) y[ch * c->y_channel + t * c->y_time] = from[ch * row + t];
  }
}

/* Whether the kernel of a lone convolution may read x while it writes y. */
static bool apart(const hk_chain *c, const float *x, const float *y, int64_t n) {
  return (uintptr_t)(x + n * c->x_channels) <= (uintptr_t)y || (uintptr_t)(y + n * c->y_channels) <= (uintptr_t)x;
}

/* Returns the frames made. Not inlined: a lone convolution should not pay for its registers. */
static __attribute__((noinline)) int64_t process_pieces(hk_stream *s, const float *x, int64_t n, float *y) {
  const hk_chain *c = s->chain;
  int64_t made = 0;
  for (int64_t done = 0; done < n; done += HK_PIECE) {
    const int64_t piece = hk_min64(HK_PIECE, n - done);
    copy_in(s, x + done * c->x_time, piece);
    if (c->direct) s->y = y + made * c->y_time;
    hk_stream_advance(s, piece);
    const int64_t out = s->frames[c->out_domain];
    copy_out(s, y + made * c->y_time, out);
    hk_stream_move(s);
    made += out;
  }
  s->y = NULL;
  return made;
}

HK_API hk_status hk_stream_process(hk_stream *s, const float *x, int64_t n, float *y, int64_t *n_out) {
  if (!s) return hk_fail(HK_INVALID, "stream is NULL");
  const hk_chain *c = s->chain;
  if (n < 0 || n > c->max_block) {
    return hk_fail(HK_INVALID, "n is %lld; this stream takes 0 to %lld frames", (long long)n, (long long)c->max_block);
  }
  if (n && (!x || !y)) return hk_fail(HK_INVALID, "x or y is NULL");
  int64_t made = n;
  const uint64_t mode = hk_fp_set(true);
  if (c->alone && n && apart(c, x, y, n)) hk_frame_alone(s, x, n, y);
  else made = process_pieces(s, x, n, y);
  hk_fp_restore(mode);
  if (n_out) *n_out = made;
  return HK_OK;
}
