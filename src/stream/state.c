/* A stream's memory and state: create, reset, prewarm, save, restore. One block holds the stream, the frame counts of
 * this piece, the segments, then the state (phases, positions, marks, LSTM state, rings, spectra and sums of long
 * windows: what save copies), then scratch rows. */
#include <string.h>

#include "stream/stream.h"

static const uint64_t MAGIC = 0x31656d616572746bu;

typedef struct state_head {
  uint64_t magic, print, bytes, unused;
} state_head;

static char *take(char **p, size_t bytes) {
  char *at = *p;
  *p += (bytes + HK_ALIGN - 1) / HK_ALIGN * HK_ALIGN;
  return at;
}

/* With memory NULL it only measures: s then holds sizes, and its pointers are invalid. */
size_t hk_stream_layout(const hk_chain *c, hk_stream *s, char *memory) {
  char *base = memory ? memory : (char *)HK_ALIGN, *p = base;
  hk_stream dummy;
  if (!s) s = &dummy;
  take(&p, sizeof *s);
  s->chain = c;
  s->frames = (int64_t *)take(&p, (size_t)c->domains * sizeof(int64_t));
  s->seg = (hk_small_seg *)take(&p, (size_t)c->segs * sizeof(hk_small_seg));
  s->state = p;
  s->phase = (int64_t *)take(&p, (size_t)c->domains * sizeof(int64_t));
  s->at = (int64_t *)take(&p, (size_t)c->buffers * sizeof(int64_t));
  s->mark = (int64_t *)take(&p, (size_t)c->marks * sizeof(int64_t));
  s->lstm = (float *)take(&p, (size_t)c->lstm_floats * sizeof(float));
  s->ring = (float *)take(&p, (size_t)c->ring_floats * sizeof(float));
  s->fir = (float *)take(&p, (size_t)c->fir_floats * sizeof(float));
  s->state_bytes = sizeof(state_head) + (size_t)(p - s->state);
  s->scratch = (float *)take(&p, (size_t)c->scratch_floats * sizeof(float));
  return (size_t)(p - base);
}

/* Everything of a segment except the address of its rows, which moves with the block. */
static void fill_segments(hk_stream *s, const hk_net_op *op, const hk_net_call *call) {
  const hk_chain *c = s->chain;
  const int64_t row = c->buffer[op->x].stride, cg = op->c / op->groups, tile = op->groups * call->tiles * call->mr;
  const float *f = c->data + call->f;
  hk_small_seg *seg = s->seg + call->seg;
  if (op->taps_inside) {
    *seg++ = (hk_small_seg){NULL, f, op->window, op->dilation, row};
    f += tile * op->window;
  } else {
    for (int64_t w = 0; w < op->window; w++, f += tile * cg) {
      *seg++ = (hk_small_seg){NULL, f, cg, row * op->phases, row * op->phases * cg};
    }
  }
  if (op->mix >= 0) {
    const int64_t mix_row = c->buffer[op->mix].stride, mc = op->mix_c / op->mix_groups;
    *seg = (hk_small_seg){NULL, f, mc, mix_row, op->mix_groups > 1 ? mix_row * mc : 0};
  }
}

HK_API hk_status hk_stream_create(hk_stream **stream, const hk_chain *chain, void *memory, size_t memory_bytes) {
  if (!stream || !chain) return hk_fail(HK_INVALID, "stream or chain is NULL");
  const size_t bytes = hk_stream_layout(chain, NULL, NULL);
  if (memory && ((uintptr_t)memory % HK_ALIGN || memory_bytes < bytes)) {
    return hk_fail(HK_INVALID, "memory must be 64-byte aligned and %zu bytes long; it has %zu", bytes, memory_bytes);
  }
  hk_stream *s = memory ? memory : hk_alloc(bytes);
  if (!s) return hk_fail(HK_NO_MEMORY, "no memory for a stream of %zu bytes", bytes);
  memset(s, 0, bytes);
  hk_stream_layout(chain, s, (char *)s);
  s->owned = !memory;
  for (int32_t j = 0; j < chain->ops; j++) {
    const hk_net_op *op = &chain->op[j];
    if (op->kind == HK_OP_FRAME) continue; /* they hold addresses only */
    for (int32_t i = 0; i < op->calls; i++) fill_segments(s, op, &op->call[i]);
  }
  hk_stream_reset(s);
  *stream = s;
  return HK_OK;
}

HK_API void hk_stream_destroy(hk_stream *stream) {
  if (stream && stream->owned) hk_free(stream);
}

HK_API hk_status hk_stream_reset(hk_stream *s) {
  if (!s) return hk_fail(HK_INVALID, "stream is NULL");
  memset(s->state, 0, s->state_bytes - sizeof(state_head));
  for (int32_t j = 0; j < s->chain->ops; j++) {
    const hk_net_op *op = &s->chain->op[j];
    if (op->kind != HK_OP_LSTM) continue;
    const float *h0 = s->chain->data + op->call[0].f + (op->c + op->k + 1) * op->row;
    float *v = s->lstm + op->state;
    memcpy(v + op->c, h0, (size_t)op->k * sizeof(float));
    memcpy(v + hk_round_up(op->c + op->k, 16), h0 + op->pad, (size_t)op->k * sizeof(float));
  }
  return HK_OK;
}

/* After zeros forever every signal is constant, but for the rounding of long windows: one frame through the ops gives
 * all of them. */
static void settle(hk_stream *s, int64_t frames) {
  const hk_chain *c = s->chain;
  s->frames[0] = frames;
  for (int32_t d = 1; d < c->domains; d++) {
    const int64_t parent = s->frames[c->domain[d].parent];
    s->phase[d] = parent % c->domain[d].stride;
    s->frames[d] = hk_ceil_div(parent, c->domain[d].stride);
  }
  for (int32_t j = 0; j < c->ops; j++) {
    if (c->op[j].kind == HK_OP_FIR) hk_fir_seek(s, &c->op[j], s->frames[c->op[j].domain]);
  }
  for (int32_t d = 0; d < c->domains; d++) s->frames[d] = 1;
  const hk_net_buffer *in = &c->buffer[c->in];
  float *x = hk_stream_rows(s, c->in);
  for (int64_t r = 0; r < in->rows; r++) memset(x + r * in->stride, 0, (size_t)in->pitch * sizeof(float));
  hk_ring_store(s, c->in, 1, true);
  hk_stream_piece(s, true);
}

HK_API hk_status hk_stream_prewarm(hk_stream *s, int64_t frames) {
  if (!s || frames < 0) return hk_fail(HK_INVALID, "stream is NULL or frames is negative");
  hk_stream_reset(s);
  const hk_chain *c = s->chain;
  const uint64_t mode = hk_fp_set(true);
  if (!c->recurrent && frames >= c->reach) {
    settle(s, frames);
  } else {
    const hk_net_buffer *in = &c->buffer[c->in];
    for (int64_t done = 0; done < frames; done += HK_PIECE) {
      const int64_t n = hk_min64(HK_PIECE, frames - done);
      float *x = hk_stream_rows(s, c->in);
      for (int64_t r = 0; r < in->rows; r++) { memset(x + r * in->stride, 0, (size_t)(n * in->pitch) * sizeof(float)); }
      hk_stream_advance(s, n);
      hk_stream_move(s);
    }
  }
  hk_fp_restore(mode);
  return HK_OK;
}

HK_API hk_status hk_stream_save(const hk_stream *s, void *state, size_t bytes) {
  if (!s || !state) return hk_fail(HK_INVALID, "stream or state is NULL");
  if (bytes != s->state_bytes)
    return hk_fail(HK_INVALID, "a state of this stream has %zu bytes, not %zu", s->state_bytes, bytes);
  const state_head head = {MAGIC, s->chain->print, s->state_bytes, 0};
  memcpy(state, &head, sizeof head);
  memcpy((char *)state + sizeof head, s->state, bytes - sizeof head);
  return HK_OK;
}

/* Positions and phases index memory: a state from outside is validated before it is used. */
static bool state_fits(const hk_stream *s, const char *body) {
  const hk_chain *c = s->chain;
  for (int32_t d = 0; d < c->domains; d++) {
    int64_t phase;
    memcpy(&phase, body + ((const char *)(s->phase + d) - s->state), sizeof phase);
    if (phase < 0 || phase >= c->domain[d].stride) return false;
  }
  for (int32_t b = 0; b < c->buffers; b++) {
    int64_t at;
    memcpy(&at, body + ((const char *)(s->at + b) - s->state), sizeof at);
    if (at < 0 || at >= hk_max64(1, c->buffer[b].length)) return false;
  }
  for (int32_t j = 0; j < c->firs; j++) {
    int64_t mark[1 + HK_FIR_LEVELS];
    memcpy(mark, body + ((const char *)(s->mark + c->fir[j].mark) - s->state),
           (1 + (size_t)c->fir[j].levels) * sizeof *mark);
    if (!hk_fir_marks_fit(&c->fir[j], mark)) return false;
  }
  return true;
}

HK_API hk_status hk_stream_restore(hk_stream *s, const void *state, size_t bytes) {
  if (!s || !state) return hk_fail(HK_INVALID, "stream or state is NULL");
  state_head head = {0, 0, 0, 0};
  if (bytes == s->state_bytes) memcpy(&head, state, sizeof head);
  if (head.magic != MAGIC || head.print != s->chain->print || head.bytes != bytes ||
      !state_fits(s, (const char *)state + sizeof head)) {
    return hk_fail(HK_INVALID, "the state is not one of this chain (%zu bytes, %zu expected)", bytes, s->state_bytes);
  }
  memcpy(s->state, (const char *)state + sizeof head, bytes - sizeof head);
  return HK_OK;
}
