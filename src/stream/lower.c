/* From a checked graph to ops over buffers. Fuses bias, one added signal, and clip or leaky slope into the convolution;
 * the mix-in into the same accumulators; and a running sum into the op that makes its newest term. Signals of a running
 * sum share one buffer; rows without history are reused as soon as they are dead, so that a layer stays in L1. */
#include <math.h>
#include <string.h>

#include "stream/stream.h"

static int64_t or_one(int64_t v) { return v ? v : 1; }

static int32_t root_of(const hk_graph *g, int32_t id) {
  while (g->signal[id].share != id) id = g->signal[id].share;
  return id;
}

static bool is_plain_sum(const hk_step *s) {
  return s->kind == HK_STEP_MAP && s->act.act == HK_ACT_NONE && s->gate == HK_GATE_NONE && s->residual &&
         s->beta == 1.0f;
}

static bool reads(const hk_graph *g, int32_t step, int32_t root) {
  const hk_step *s = &g->step[step];
  return root_of(g, s->x) == root || (s->mix && root_of(g, s->mix) == root) || (s->x2 && root_of(g, s->x2) == root) ||
         (s->residual && root_of(g, s->add) == root);
}

/* A sum with an operand that is dead afterwards continues in its buffer. */
static void share_sums(hk_graph *g) {
  for (int32_t i = 0; i < g->desc.count; i++) {
    const hk_step *s = &g->step[i];
    hk_net_signal *out = &g->signal[i + 2];
    if (!out->live || !is_plain_sum(s) || s->x == s->add) continue;
    const int32_t pair[2] = {s->x, s->add};
    for (int j = 0; j < 2; j++) {
      const hk_net_signal *acc = &g->signal[pair[j]];
      /* not the newest term: the op that makes the newest one can add while it is in registers */
      if (acc->last_use != i || acc->history || pair[j] == i + 1) continue;
      const int32_t root = root_of(g, pair[j]);
      out->share = root;
      g->signal[root].last_use = out->last_use;
      break;
    }
  }
  for (int32_t id = 1; id <= g->signals; id++) {
    const int32_t root = root_of(g, id);
    if (!g->signal[id].live || root == id) continue;
    g->signal[root].history = hk_max64(g->signal[root].history, g->signal[id].history);
    g->signal[root].whole |= g->signal[id].whole;
  }
}

static int32_t buffer_new(hk_graph *g, int64_t rows, int32_t domain, int64_t history, bool whole) {
  if (!history && g->free_buffer >= 0) { /* the one freed last is the most likely to be in L1 */
    const int32_t b = g->free_buffer;
    hk_net_buffer *q = &g->buffer[b];
    g->free_buffer = q->next_free;
    q->used = true;
    q->rows = hk_max64(q->rows, rows);
    return b;
  }
  g->buffer[g->buffers] =
      (hk_net_buffer){.domain = domain, .rows = rows, .history = history, .whole = whole, .used = true};
  return g->buffers++;
}

static void buffer_drop(hk_graph *g, int32_t b) {
  hk_net_buffer *q = &g->buffer[b];
  if (q->history || !q->used) return;
  q->used = false;
  q->next_free = g->free_buffer;
  g->free_buffer = b;
}

static int32_t signal_buffer(hk_graph *g, int32_t id) {
  hk_net_signal *r = &g->signal[root_of(g, id)];
  if (r->buffer < 0) r->buffer = buffer_new(g, r->channels, r->domain, r->history, r->whole);
  return r->buffer;
}

static hk_net_op *op_new(hk_graph *g, hk_op_kind kind, const hk_step *s, int32_t domain) {
  hk_net_op *op = &g->op[g->ops++];
  *op = (hk_net_op){.kind = kind,
                    .step = s,
                    .domain = domain,
                    .x = -1,
                    .x2 = -1,
                    .mix = -1,
                    .add = -1,
                    .y = -1,
                    .sum = -1,
                    .fir = -1,
                    .phases = 1,
                    .x3_row = -1,
                    .beta = 1.0f,
                    .map = HK_MAP_ACT};
  return op;
}

/* What the convolution kernel does in registers. */
static bool simple_act(const hk_step_act *a, int32_t *act, float *lo, float *hi) {
  *act = HK_SMALL_CLIP;
  *lo = a->a;
  *hi = a->b;
  switch (a->act) {
  case HK_ACT_NONE: *act = HK_SMALL_NONE; return true;
  case HK_ACT_RELU:
    *lo = 0.0f;
    *hi = INFINITY;
    return true;
  case HK_ACT_CLIP: return true;
  case HK_ACT_HARDTANH:
    if (a->a == 0.0f && a->b == 0.0f) {
      *lo = -1.0f;
      *hi = 1.0f;
    }
    return a->slope_lo == 0.0f && a->slope_hi == 0.0f;
  case HK_ACT_LEAKY: *act = HK_SMALL_LEAKY; return true;
  default: return false;
  }
}

static hk_map_act map_act(const hk_step_act *a) {
  hk_map_act m = {a->act, a->a, a->b, a->slope_lo, a->slope_hi, a->slopes, a->rational};
  const bool leaky = a->act == HK_ACT_HARDTANH && (a->slope_lo != 0.0f || a->slope_hi != 0.0f);
  if (leaky && a->a == 0.0f && a->b == 0.0f) {
    m.a = -1.0f;
    m.b = 1.0f;
  }
  return m;
}

/* v = x (+ beta*add), then the activation or gate, then (+ beta*add), into y. Fused residuals are already done. */
static void lower_tail(hk_graph *g, const hk_step *s, int32_t x, int64_t rows, int32_t domain, int32_t y, bool added) {
  if (s->residual == HK_RESIDUAL_BEFORE && !added) {
    hk_net_op *op = op_new(g, HK_OP_MAP, s, domain);
    const bool last = s->act.act == HK_ACT_NONE && s->gate == HK_GATE_NONE;
    op->x = x;
    op->add = signal_buffer(g, s->add);
    op->beta = s->beta;
    op->rows = rows;
    op->y = last ? y : buffer_new(g, rows, domain, 0, false);
    if (last) return;
    x = op->y;
    buffer_drop(g, x);
  }
  hk_net_op *op = op_new(g, HK_OP_MAP, s, domain);
  op->x = x;
  op->y = y;
  op->map_act = map_act(&s->act);
  op->map_act2 = map_act(&s->act2);
  op->rows = rows;
  if (s->gate != HK_GATE_NONE) {
    op->map = s->gate == HK_GATE_GATED ? HK_MAP_GATED : HK_MAP_BLENDED;
    op->rows = rows / 2;
    op->x2 = x;
    op->x2_row = rows / 2;
  }
  if (s->residual == HK_RESIDUAL_AFTER && !added) {
    op->add = signal_buffer(g, s->add);
    op->beta = s->beta;
  }
}

static hk_net_op *lower_split(hk_graph *g, const hk_step *s, int64_t c, int32_t domain) {
  const int64_t stride = s->stride, back = or_one(s->dilation) * (or_one(s->window) - 1);
  hk_net_op *op = op_new(g, HK_OP_SPLIT, s, domain);
  op->x = signal_buffer(g, s->x);
  op->c = c;
  op->phases = stride;
  op->y = buffer_new(g, c * stride, domain, hk_ceil_div(back + stride - 1, stride) + 1, false);
  g->buffer[op->y].phased = true;
  return op;
}

static hk_net_op *conv_op(hk_graph *g, const hk_step *s, int32_t domain, int64_t k, int64_t c, int64_t groups) {
  hk_net_op *op = op_new(g, HK_OP_CONV, s, domain);
  op->k = k;
  op->c = c;
  op->groups = groups;
  op->window = op->dilation = 1;
  op->rows = k;
  return op;
}

/* The mix-in as an op of its own, where its groups differ from those of the convolution; returns its buffer. */
static int32_t lower_mix(hk_graph *g, const hk_step *s, int32_t domain, int32_t add) {
  hk_net_op *op = conv_op(g, s, domain, s->k, g->signal[s->mix].channels, or_one(s->mix_groups));
  op->x = signal_buffer(g, s->mix);
  op->f = s->mix_f;
  op->add = add;
  op->y = buffer_new(g, s->k, domain, 0, false);
  g->flops += 2.0 * (double)s->k * (double)(op->c / op->groups) * g->domain[domain].rate;
  return op->y;
}

static void lower_conv(hk_graph *g, int32_t i, const hk_step *s) {
  const hk_net_signal *x = &g->signal[s->x], *out = &g->signal[i + 2];
  const int64_t groups = or_one(s->groups), mix_groups = or_one(s->mix_groups);
  int32_t act;
  float lo, hi;
  const bool simple = simple_act(&s->act, &act, &lo, &hi) && s->gate == HK_GATE_NONE;
  const bool linear = s->act.act == HK_ACT_NONE && s->gate == HK_GATE_NONE;
  const bool added = s->residual && s->beta == 1.0f && (s->residual == HK_RESIDUAL_BEFORE || linear);
  const bool whole = simple && (added || !s->residual); /* one op is enough */
  const int32_t source =
      or_one(s->stride) > 1 ? lower_split(g, s, x->channels, out->domain)->y : signal_buffer(g, s->x);
  int32_t add = added ? signal_buffer(g, s->add) : -1, temporary = -1;
  const bool mix_fits = s->mix && (mix_groups == 1 || mix_groups == groups);
  if (s->mix && !mix_fits) add = temporary = lower_mix(g, s, out->domain, add);
  const int32_t y = signal_buffer(g, i + 2);
  hk_net_op *op = conv_op(g, s, out->domain, s->k, x->channels, groups);
  op->x = source;
  op->window = or_one(s->window);
  op->dilation = or_one(s->dilation);
  op->phases = or_one(s->stride);
  if (g->interleaved) op->kind = HK_OP_FRAME;
  op->taps_inside = op->c == op->groups && op->window > 1 && op->phases == 1;
  op->f = s->f;
  op->bias = s->bias;
  op->add = add;
  if (mix_fits) {
    op->mix = signal_buffer(g, s->mix);
    op->mix_c = g->signal[s->mix].channels;
    op->mix_groups = mix_groups;
    op->mix_f = s->mix_f;
    g->flops += 2.0 * (double)s->k * (double)(op->mix_c / mix_groups) * g->domain[out->domain].rate;
  }
  g->flops += 2.0 * (double)s->k * (double)(op->c / groups) * (double)op->window * g->domain[out->domain].rate;
  if (whole) {
    op->act = act;
    op->lo = lo;
    op->hi = hi;
    op->y = y;
  } else {
    const bool in_place = s->gate == HK_GATE_NONE && !(s->residual && !added);
    const int32_t z = in_place ? y : buffer_new(g, s->k, out->domain, 0, false);
    op->y = z;
    lower_tail(g, s, z, s->k, out->domain, y, added);
    if (!in_place) buffer_drop(g, z);
  }
  if (temporary >= 0) buffer_drop(g, temporary);
}

static void lower_fir(hk_graph *g, int32_t i, const hk_step *s) {
  const hk_net_signal *x = &g->signal[s->x], *out = &g->signal[i + 2];
  const bool plain = s->act.act == HK_ACT_NONE && s->gate == HK_GATE_NONE && !s->residual;
  const int32_t source = signal_buffer(g, s->x), y = signal_buffer(g, i + 2);
  const bool in_place = s->gate == HK_GATE_NONE && !s->residual;
  const int32_t z = in_place ? y : buffer_new(g, s->k, out->domain, 0, false);
  hk_net_op *op = op_new(g, HK_OP_FIR, s, out->domain);
  op->x = source;
  op->y = z;
  op->fir = g->firs;
  hk_net_fir *f = &g->fir[g->firs++];
  *f = hk_fir_cut(x->channels, s);
  g->flops += 2.0 * (double)f->k * (double)(f->c / f->groups) * (double)f->window * g->domain[out->domain].rate;
  if (!plain) lower_tail(g, s, z, s->k, out->domain, y, false);
  if (!in_place) buffer_drop(g, z);
}

/* Returns whether the newest op made `term` and can add it to `root` while it is in registers or L1. */
static bool sum_into_last(hk_graph *g, int32_t i, int32_t term, int32_t root) {
  if (!g->ops || term != i + 1 || root_of(g, term) != term || reads(g, i - 1, root)) return false;
  hk_net_op *op = &g->op[g->ops - 1];
  if ((op->kind != HK_OP_CONV && op->kind != HK_OP_MAP) || op->y != g->signal[term].buffer || op->sum >= 0)
    return false;
  op->sum = g->signal[root].buffer;
  return true;
}

static void lower_map(hk_graph *g, int32_t i, const hk_step *s) {
  const hk_net_signal *x = &g->signal[s->x], *out = &g->signal[i + 2];
  const int32_t root = root_of(g, i + 2);
  if (root != i + 2) { /* a running sum */
    const int32_t term = root_of(g, s->x) == root ? s->add : s->x;
    if (sum_into_last(g, i, term, root)) return;
    hk_net_op *op = op_new(g, HK_OP_MAP, s, out->domain);
    op->x = op->y = g->signal[root].buffer;
    op->add = signal_buffer(g, term);
    op->rows = out->channels;
    return;
  }
  const int32_t from = signal_buffer(g, s->x);
  lower_tail(g, s, from, x->channels, out->domain, signal_buffer(g, i + 2), false);
}

static void lower_scale(hk_graph *g, int32_t i, const hk_step *s) {
  const hk_net_signal *x = &g->signal[s->x];
  hk_net_op *op = op_new(g, HK_OP_MAP, s, x->domain);
  op->map = HK_MAP_SCALE;
  op->x = signal_buffer(g, s->x);
  op->x2 = signal_buffer(g, s->x2);
  op->x3_row = g->signal[s->x2].channels == 2 * x->channels ? x->channels : -1;
  op->rows = x->channels;
  op->y = signal_buffer(g, i + 2);
}

static void lower_lstm(hk_graph *g, int32_t i, const hk_step *s) {
  hk_net_op *op = op_new(g, HK_OP_LSTM, s, g->signal[i + 2].domain);
  op->x = signal_buffer(g, s->x);
  op->c = g->signal[s->x].channels;
  op->k = s->k;
  op->pad = hk_round_up(s->k, 16);
  op->row = hk_round_up(4 * s->k, 16);
  op->map_act.rational = s->act.rational;
  op->y = signal_buffer(g, i + 2);
  op->state = g->lstm_floats;
  g->lstm_floats += hk_round_up(op->c + op->k, 16) + op->pad;
  g->lstm_work = hk_max64(g->lstm_work, op->row + op->pad);
  g->flops += 8.0 * (double)s->k * (double)(op->c + op->k) * g->domain[op->domain].rate;
}

static void drop_dead(hk_graph *g, int32_t i, const hk_step *s) {
  const int32_t ids[4] = {s->x, s->mix, s->x2, s->residual ? s->add : 0};
  for (int j = 0; j < 4; j++) {
    if (ids[j] < 1 || ids[j] > i + 1) continue;
    hk_net_signal *r = &g->signal[root_of(g, ids[j])];
    if (r->buffer < 0 || r->last_use != i) continue;
    buffer_drop(g, r->buffer);
    r->last_use = -1; /* only once */
  }
}

/* Returns true for the first call with a buffer that has a history. */
static bool close_buffer(hk_graph *g, int32_t b) {
  if (b < 0 || !g->buffer[b].history || g->buffer[b].closed) return false;
  return g->buffer[b].closed = true;
}

static void mark_last_writers(hk_graph *g) {
  for (int32_t j = g->ops - 1; j >= 0; j--) {
    hk_net_op *op = &g->op[j];
    op->ring_y = close_buffer(g, op->y);
    op->ring_sum = close_buffer(g, op->sum);
  }
}

hk_status hk_graph_lower(hk_graph *g) {
  g->free_buffer = -1;
  for (int32_t id = 1; id <= g->signals; id++) g->signal[id].buffer = -1;
  share_sums(g);
  signal_buffer(g, 1);
  for (int32_t i = 0; i < g->desc.count; i++) {
    const hk_step *s = &g->step[i];
    if (!g->signal[i + 2].live) continue;
    switch (s->kind) {
    case HK_STEP_CONV: lower_conv(g, i, s); break;
    case HK_STEP_FIR: lower_fir(g, i, s); break;
    case HK_STEP_MAP: lower_map(g, i, s); break;
    case HK_STEP_SCALE: lower_scale(g, i, s); break;
    case HK_STEP_LSTM: lower_lstm(g, i, s); break;
    }
    drop_dead(g, i, s);
  }
  mark_last_writers(g);
  return HK_OK;
}

/* Staggers the rows within a page: a power-of-two stride would map all channels to the same cache sets. */
static int64_t row_stride(int64_t floats) {
  int64_t stride = hk_round_up(floats, 16);
  if (stride % 128 == 0) stride += 16;
  return stride;
}

void hk_graph_place(hk_graph *g) {
  for (int32_t b = 0; b < g->buffers; b++) {
    hk_net_buffer *q = &g->buffer[b];
    int64_t floats = HK_PIECE + HK_SLACK;
    if (q->history > HK_PIECE || q->phased) {
      q->length = hk_round_up(q->history + HK_PIECE + HK_SLACK, 16);
      q->guard = q->whole ? q->length : HK_PIECE;
      floats = q->length + q->guard + HK_SLACK;
    } else if (q->history) {
      q->before = hk_round_up(q->history, 16);
      floats += q->before;
    }
    q->pitch = g->interleaved ? q->rows : 1;
    if (g->interleaved) q->rows = 1;
    q->stride = row_stride(floats * q->pitch);
    int64_t *total = q->history ? &g->ring_floats : &g->scratch_floats;
    q->offset = *total;
    *total += q->rows * q->stride;
  }
  g->scratch_floats += g->lstm_work;
}
