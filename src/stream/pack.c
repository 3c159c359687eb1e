/* Kernel calls of a convolution op and its packed weights.
 *
 * Each part of hk_small_split is one kernel call over all groups. */
#include <string.h>

#include "stream/stream.h"

static void add_call(hk_graph *g, hk_net_op *op, const hk_small_part *p) {
  hk_net_call *c = &op->call[op->calls++];
  const int64_t channels = op->window * (op->c / op->groups) + (op->mix >= 0 ? op->mix_c / op->mix_groups : 0);
  *c = (hk_net_call){p->kernel->fn, p->mr, p->mg, p->tiles, p->first, g->data, g->segs};
  g->data += hk_round_up(op->groups * p->tiles * p->mr * channels, 16);
  g->segs += op->segs;
}

void hk_op_calls(hk_graph *g, hk_net_op *op, hk_isa isa) {
  if (op->kind == HK_OP_MAP) { /* slopes are copied */
    hk_map_act *acts[2] = {&op->map_act, &op->map_act2};
    for (int j = 0; j < 2; j++) {
      if (acts[j]->act == HK_ACT_PRELU) g->data += hk_round_up(op->rows, 16);
    }
  } else if (op->kind == HK_OP_LSTM) {
    op->call[0].f = g->data;
    g->data += (op->c + op->k + 1) * op->row + 2 * op->pad;
    op->call[0].seg = g->segs++;
  } else if (op->kind == HK_OP_FIR) {
    hk_fir_place(g, &g->fir[op->fir], isa);
  } else if (op->kind == HK_OP_CONV) {
    op->segs = (int32_t)((op->taps_inside ? 1 : op->window) + (op->mix >= 0));
    op->bias_at = g->data;
    g->data += hk_round_up(op->k, 16);
    hk_small_part part[HK_SMALL_PARTS];
    const int parts = hk_small_split(isa, op->k / op->groups, op->groups, part);
    for (int i = 0; i < parts; i++) add_call(g, op, &part[i]);
  }
}

/* Packs f[k][c][w] of one tap (or all taps as channels) into [group/mg][tile][channel][mg][mr]; returns where the next
 * goes. */
static float *pack_segment(const hk_net_op *op, const hk_net_call *call, const float *f, int64_t channels, int64_t step,
                           int64_t k_step, float *to) {
  const int64_t kg = op->k / op->groups;
  const int64_t rows_a_tile =
      call->mg * call->mr; /* with several groups per tile, rows continue across group borders */
  for (int64_t g = 0; g < op->groups; g += call->mg) {
    for (int64_t j = 0; j < call->tiles; j++) {
      const float *rows = f + (g * kg + call->first + j * call->mr) * k_step;
      for (int64_t c = 0; c < channels; c++) {
        for (int64_t i = 0; i < rows_a_tile; i++) *to++ = rows[i * k_step + c * step];
      }
    }
  }
  return to;
}

static void pack_conv(const hk_net_op *op, float *data) {
  const int64_t cg = op->c / op->groups;
  if (op->bias) memcpy(data + op->bias_at, op->bias, (size_t)op->k * sizeof(float));
  else memset(data + op->bias_at, 0, (size_t)op->k * sizeof(float));
  for (int32_t j = 0; j < op->calls; j++) {
    const hk_net_call *call = &op->call[j];
    float *to = data + call->f;
    if (op->taps_inside) {
      to = pack_segment(op, call, op->f, op->window, 1, op->window, to);
    } else {
      for (int64_t s = 0; s < op->window; s++)
        to = pack_segment(op, call, op->f + s, cg, op->window, cg * op->window, to);
    }
    if (op->mix >= 0) {
      const int64_t mc = op->mix_c / op->mix_groups;
      pack_segment(op, call, op->mix_f, mc, 1, mc, to);
    }
  }
}

/* Transposed, so that the gates are one row and the inputs its reduction. sigmoid(v) = (tanh(v/2) + 1)/2: with the rows
 * of i, f and o halved (exactly), one tanh over the row serves all four gates. */
static void pack_lstm(const hk_net_op *op, float *data) {
  const hk_step *s = op->step;
  const int64_t in = op->c + op->k;
  float *w = data + op->call[0].f, *bias = w + in * op->row, *h0 = bias + op->row, *c0 = h0 + op->pad;
  memset(w, 0, (size_t)((in + 1) * op->row + 2 * op->pad) * sizeof(float));
  for (int64_t o = 0; o < 4 * op->k; o++) {
    const float factor = o / op->k == 2 ? 1.0f : 0.5f;
    for (int64_t c = 0; c < in; c++) w[c * op->row + o] = factor * s->f[o * in + c];
    bias[o] = factor * s->bias[o];
  }
  if (s->h0) memcpy(h0, s->h0, (size_t)op->k * sizeof(float));
  if (s->c0) memcpy(c0, s->c0, (size_t)op->k * sizeof(float));
}

void hk_op_pack(const hk_net_op *op, float *data) {
  if (op->kind == HK_OP_CONV) pack_conv(op, data);
  if (op->kind == HK_OP_LSTM) pack_lstm(op, data);
}
