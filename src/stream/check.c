/* From the caller's steps to a graph: checks every size and derives channels and rates of all signals, which of them
 * reach the output, and how far back each is read. Refuses what hk_step does not allow, with the number of the step. */
#include <math.h>

#include "stream/stream.h"

enum { MAX_CHANNELS = 1 << 16, MAX_TIME = 1 << 26, MAX_STEPS = 1 << 16, MAX_RATES = 1024 };
static const double MAX_FLOATS = 4e9;   /* weights or history of one step */
static const double MAX_REACH = 0x1p52; /* input frames: a double counts them exactly */

static hk_status bad(int32_t i, const char *what) { return hk_fail(HK_INVALID, "steps[%d]: %s", i, what); }

static hk_status check_signal(const hk_graph *g, int32_t i, int32_t id, const char *field) {
  if (id < 1 || id > i + 1) {
    return hk_fail(HK_INVALID, "steps[%d].%s is signal %d; only 1 to %d exist before this step", i, field, id, i + 1);
  }
  (void)g;
  return HK_OK;
}

static hk_status check_act(int32_t i, const hk_step_act *a, const char *field) {
  if ((int)a->act < 0 || a->act >= HK_ACT_USER) {
    return hk_fail(HK_INVALID, "steps[%d].%s.act is %d; 0 to %d are allowed in a chain", i, field, (int)a->act,
                   HK_ACT_USER - 1);
  }
  if (a->act == HK_ACT_PRELU && !a->slopes) return hk_fail(HK_INVALID, "steps[%d].%s: PRELU needs slopes", i, field);
  return HK_OK;
}

static int64_t or_one(int64_t v) { return v ? v : 1; }

/* -1: one more than MAX_RATES */
static int32_t domain_of_stride(hk_graph *g, int32_t parent, int64_t stride) {
  if (stride == 1) return parent;
  for (int32_t d = 1; d < g->domains; d++) {
    if (g->domain[d].parent == parent && g->domain[d].stride == stride) return d;
  }
  if (g->domains == MAX_RATES) return -1;
  g->domain[g->domains] = (hk_net_domain){parent, stride, g->domain[parent].rate / (double)stride};
  return g->domains++;
}

static hk_status check_mix(const hk_graph *g, int32_t i, const hk_step *s, const hk_net_signal *out) {
  if (!s->mix) return HK_OK;
  hk_status e = check_signal(g, i, s->mix, "mix");
  if (e) return e;
  const hk_net_signal *m = &g->signal[s->mix];
  const int64_t groups = or_one(s->mix_groups);
  if (m->domain != out->domain) return bad(i, "mix has another rate than the result");
  if (groups < 1 || m->channels % groups || s->k % groups)
    return bad(i, "mix_groups does not divide the channels of mix and k");
  if (!s->mix_f) return bad(i, "mix without mix_f");
  return HK_OK;
}

static hk_status check_conv(hk_graph *g, int32_t i, const hk_step *s, hk_net_signal *out) {
  const hk_net_signal *x = &g->signal[s->x];
  const int64_t window = or_one(s->window), dilation = or_one(s->dilation), stride = or_one(s->stride);
  const int64_t groups = or_one(s->groups);
  if (s->k < 1 || s->k > MAX_CHANNELS) return bad(i, "k is not in 1..65536");
  if (window < 1 || window > MAX_TIME || dilation < 1 || dilation > MAX_TIME || stride < 1 || stride > MAX_TIME) {
    return bad(i, "window, dilation and stride must lie in 1..2^26");
  }
  if (groups < 1 || x->channels % groups || s->k % groups) return bad(i, "groups does not divide the channels and k");
  const double history = (double)dilation * (double)(window - 1);
  if (history > MAX_TIME || history * (double)x->channels > MAX_FLOATS ||
      (double)stride * (double)x->channels > MAX_CHANNELS) {
    return bad(i, "the history is too long");
  }
  if ((double)window * (double)s->k * (double)(x->channels / groups) > MAX_FLOATS) return bad(i, "too many weights");
  if (!s->f) return bad(i, "f is missing");
  const double frame = 1.0 / g->domain[x->domain].rate, reach = (double)x->reach + ceil(history * frame);
  if ((double)stride * frame > MAX_REACH) return bad(i, "the strides of the steps before multiply to more than 2^52");
  if (reach > MAX_REACH)
    return bad(i, "the receptive field exceeds 2^52 input frames: shorten windows, dilations or strides");
  if ((out->domain = domain_of_stride(g, x->domain, stride)) < 0) {
    return hk_fail(HK_INVALID, "steps[%d].stride is %lld, the %d-th rate of the chain; at most %d are supported", i,
                   (long long)stride, MAX_RATES + 1, MAX_RATES);
  }
  out->reach = (int64_t)reach;
  hk_status e = check_mix(g, i, s, out);
  if (!e && s->mix) out->reach = hk_max64(out->reach, g->signal[s->mix].reach);
  out->channels = s->k;
  return e;
}

/* What FIR refuses of the fields of CONV. */
static hk_status check_fir(int32_t i, const hk_step *s) {
  if (or_one(s->window) > HK_FIR_WINDOW_MAX) {
    return hk_fail(HK_INVALID, "steps[%d].window is %lld; FIR takes at most %d taps", i, (long long)s->window,
                   HK_FIR_WINDOW_MAX);
  }
  if (or_one(s->stride) != 1 || or_one(s->dilation) != 1) {
    return hk_fail(HK_INVALID, "steps[%d]: stride is %lld and dilation %lld; FIR takes 1, CONV others", i,
                   (long long)or_one(s->stride), (long long)or_one(s->dilation));
  }
  if (s->mix) return hk_fail(HK_INVALID, "steps[%d].mix is signal %d; only CONV has a mix, FIR takes 0", i, s->mix);
  return HK_OK;
}

static hk_status check_tail(const hk_graph *g, int32_t i, const hk_step *s, hk_net_signal *out) {
  hk_status e = check_act(i, &s->act, "act");
  if (e) return e;
  const int64_t before = out->channels;
  if (s->gate == HK_GATE_GATED || s->gate == HK_GATE_BLENDED) {
    if ((e = check_act(i, &s->act2, "act2"))) return e;
    if (before % 2) return bad(i, "a gate needs an even number of channels");
    out->channels = before / 2;
  } else if (s->gate != HK_GATE_NONE) {
    return bad(i, "gate is none of hk_gate");
  }
  if (s->residual == HK_RESIDUAL_NONE) return HK_OK;
  if (s->residual != HK_RESIDUAL_AFTER && s->residual != HK_RESIDUAL_BEFORE)
    return bad(i, "residual is none of hk_residual");
  if ((e = check_signal(g, i, s->add, "add"))) return e;
  const hk_net_signal *a = &g->signal[s->add];
  const int64_t want = s->residual == HK_RESIDUAL_BEFORE ? before : out->channels;
  if (a->channels != want || a->domain != out->domain) return bad(i, "add has another shape or rate");
  out->reach = hk_max64(out->reach, a->reach);
  return HK_OK;
}

static hk_status check_scale(const hk_graph *g, int32_t i, const hk_step *s, hk_net_signal *out) {
  hk_status e = check_signal(g, i, s->x2, "x2");
  if (e) return e;
  const hk_net_signal *x = &g->signal[s->x], *x2 = &g->signal[s->x2];
  if (x2->domain != x->domain || (x2->channels != x->channels && x2->channels != 2 * x->channels)) {
    return bad(i, "x2 must have the rate of x, and as many channels or twice as many");
  }
  out->reach = hk_max64(out->reach, x2->reach);
  return HK_OK;
}

static hk_status check_lstm(hk_graph *g, int32_t i, const hk_step *s, hk_net_signal *out) {
  if (s->k < 1 || s->k > 4096 || g->signal[s->x].channels > 4096) return bad(i, "an LSTM takes 1..4096 channels and k");
  if (!s->f || !s->bias) return bad(i, "an LSTM needs f and bias");
  out->channels = s->k;
  return HK_OK;
}

static hk_status check_step(hk_graph *g, int32_t i) {
  const hk_step *s = &g->step[i];
  hk_net_signal *out = &g->signal[i + 2];
  hk_status e = check_signal(g, i, s->x, "x");
  if (e) return e;
  *out = g->signal[s->x];
  out->share = i + 2;
  switch (s->kind) {
  case HK_STEP_CONV:
  case HK_STEP_FIR:
    if (s->kind == HK_STEP_FIR) e = check_fir(i, s);
    if (!e) e = check_conv(g, i, s, out);
    return e ? e : check_tail(g, i, s, out);
  case HK_STEP_MAP: return check_tail(g, i, s, out);
  case HK_STEP_SCALE: return check_scale(g, i, s, out);
  case HK_STEP_LSTM: return check_lstm(g, i, s, out);
  }
  return bad(i, "kind is none of hk_step_kind");
}

static void use(hk_graph *g, int32_t id, int32_t step) {
  g->signal[id].live = true;
  if (g->signal[id].last_use < step) g->signal[id].last_use = step;
}

/* Backwards: what a live step reads is live. */
static void mark_live(hk_graph *g) {
  for (int32_t id = 1; id <= g->signals; id++) {
    g->signal[id].live = false;
    g->signal[id].whole = false;
    g->signal[id].history = 0;
    g->signal[id].last_use = -1;
  }
  use(g, g->output, g->desc.count);
  for (int32_t i = g->desc.count - 1; i >= 0; i--) {
    const hk_step *s = &g->step[i];
    if (!g->signal[i + 2].live) continue;
    use(g, s->x, i);
    if (s->kind == HK_STEP_SCALE) use(g, s->x2, i);
    if (s->kind == HK_STEP_LSTM) g->recurrent = true;
    if (s->kind != HK_STEP_SCALE && s->kind != HK_STEP_LSTM && s->residual) use(g, s->add, i);
    hk_net_signal *x = &g->signal[s->x];
    if (s->kind == HK_STEP_FIR) {
      x->history = hk_max64(x->history, hk_fir_cut(x->channels, s).history);
      x->whole = true;
    }
    if (s->kind != HK_STEP_CONV) continue;
    if (s->mix) use(g, s->mix, i);
    if (or_one(s->stride) > 1) continue; /* keeps a history of its own */
    x->history = hk_max64(x->history, or_one(s->dilation) * (or_one(s->window) - 1));
    if (x->channels == or_one(s->groups) && or_one(s->window) > 1) x->whole = true;
  }
}

hk_status hk_graph_check(hk_graph *g) {
  const hk_chain_desc *d = &g->desc;
  if (d->channels < 1 || d->channels > MAX_CHANNELS)
    return hk_fail(HK_INVALID, "channels is %lld, not in 1..65536", (long long)d->channels);
  if (d->max_block < 1 || d->max_block > MAX_TIME)
    return hk_fail(HK_INVALID, "max_block is %lld, not in 1..2^26", (long long)d->max_block);
  if (d->count < 1 || d->count > MAX_STEPS || !d->steps)
    return hk_fail(HK_INVALID, "count is %d, not in 1..65536, or steps is NULL", d->count);
  if (d->output < 0 || d->output > d->count + 1)
    return hk_fail(HK_INVALID, "output is signal %d of %d", d->output, d->count + 1);
  if (d->layout != HK_CHANNELS_FIRST && d->layout != HK_CHANNELS_LAST)
    return hk_fail(HK_INVALID, "layout is none of hk_layout");
  g->domain[0] = (hk_net_domain){0, 1, 1.0};
  g->domains = 1;
  g->signals = d->count + 1;
  g->output = d->output ? d->output : g->signals;
  g->signal[1] = (hk_net_signal){.channels = d->channels, .reach = 1, .share = 1};
  for (int32_t i = 0; i < d->count; i++) {
    hk_status e = check_step(g, i);
    if (e) return e;
  }
  mark_live(g);
  return HK_OK;
}
