/* Chains of random steps against the same steps in double over the whole signal: convolutions with mix-ins, groups,
 * strides, residuals and gates, sums in every order (which share buffers or not), scale and shift, LSTMs; signals that
 * are read again much later; steps that reach no output. Any block split, every ISA. Then refusals, memory of the
 * caller, and denormal tails. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "core/core.h"
#include "support/check.h"

enum { FRAMES = 500, BLOCK = 200, STEPS = 14, WIDEST = 12 };

static uint64_t seed = 0x2545f4914f6cdd1du;
static int below(int n) { return (int)hk_test_between(&seed, 0, n - 1); }

typedef struct signal {
  int64_t channels, rate, frames; /* one frame for `rate` input frames */
  double v[WIDEST * FRAMES];
} signal;

static signal sig[STEPS + 2];
static hk_step steps[STEPS];
static float pool[1 << 18];
static int used;

static const float *numbers(int64_t count, double size) {
  const float *at = pool + used;
  for (int64_t i = 0; i < count; i++) pool[used++] = (float)(size * (below(2001) - 1000) * 1e-3);
  return at;
}

static int divisor(int64_t a, int64_t b) {
  int g;
  do g = 1 + below((int)(a < b ? a : b));
  while (a % g || b % g);
  return g;
}

static hk_step_act draw_act(void) {
  hk_step_act a = {.act = (hk_act)below(HK_ACT_USER), .a = -0.5f, .b = 0.75f};
  if (a.act == HK_ACT_PRELU) a.slopes = numbers(2 * WIDEST, 0.2);
  if (a.act == HK_ACT_HARDTANH && below(2)) a.slope_lo = 0.1f, a.slope_hi = 0.2f;
  return a;
}

static double act(const hk_step_act *a, int64_t c, double v) {
  if (a->act == HK_ACT_HARDTANH) {
    if (v < a->a) return a->a + a->slope_lo * (v - a->a);
    return v > a->b ? a->b + a->slope_hi * (v - a->b) : v;
  }
  return hk_act_eval(a->act, a->a, a->b, a->slopes ? a->slopes[c] : 0, v);
}

/* any earlier signal of a shape (0: any), or 0 */
static int find(int upto, int64_t rate, int64_t channels) {
  for (int tries = 0; tries < 20; tries++) {
    const int id = 1 + below(upto);
    if ((!rate || sig[id].rate == rate) && (!channels || sig[id].channels == channels)) return id;
  }
  return 0;
}

/* the tail of CONV and MAP, on v in place of the shape before it */
static void tail(int i, signal *out) {
  hk_step *s = &steps[i];
  const signal before = *out;
  if (below(2)) s->act = draw_act();
  if (before.channels % 2 == 0 && below(4) == 0) {
    s->gate = (hk_gate)(1 + below(2));
    s->act2 = draw_act();
    out->channels /= 2;
  }
  if (below(2)) {
    s->residual = (hk_residual)(1 + below(2));
    s->add = find(i + 1, out->rate, s->residual == HK_RESIDUAL_BEFORE ? before.channels : out->channels);
    s->beta = below(4) ? 1.0f : 0.3f;
    if (!s->add) s->residual = HK_RESIDUAL_NONE;
  }
  const signal *c = &sig[s->add];
  for (int64_t t = 0; t < out->frames; t++) {
    for (int64_t k = 0; k < out->channels; k++) {
      double top = before.v[k * FRAMES + t], low = s->gate ? before.v[(k + out->channels) * FRAMES + t] : 0;
      if (s->residual == HK_RESIDUAL_BEFORE) {
        top += s->beta * c->v[k * FRAMES + t];
        if (s->gate) low += s->beta * c->v[(k + out->channels) * FRAMES + t];
      }
      double v = act(&s->act, k, top);
      const double g = s->gate ? act(&s->act2, k, low) : 0;
      if (s->gate == HK_GATE_GATED) v *= g;
      if (s->gate == HK_GATE_BLENDED) v = g * v + (1 - g) * top;
      if (s->residual == HK_RESIDUAL_AFTER) v += s->beta * c->v[k * FRAMES + t];
      out->v[k * FRAMES + t] = v;
    }
  }
}

static void draw_conv(int i, signal *out) {
  hk_step *s = &steps[i];
  const signal *x = &sig[s->x];
  s->k = 1 + below(WIDEST);
  s->groups = divisor(x->channels, s->k);
  s->window = 1 + below(5);
  s->dilation = 1 + below(below(3) ? 4 : 60);
  s->stride = below(8) ? 1 : 1 + below(3);
  const int64_t cg = x->channels / s->groups, kg = s->k / s->groups;
  s->f = numbers(s->k * cg * s->window, 1.0 / sqrt((double)(cg * s->window)));
  s->bias = below(2) ? numbers(s->k, 0.3) : NULL;
  out->channels = s->k;
  out->rate = x->rate * s->stride;
  out->frames = (x->frames + s->stride - 1) / s->stride;
  s->mix = below(2) ? find(i + 1, out->rate, 0) : 0;
  const signal *m = &sig[s->mix];
  if (s->mix) {
    s->mix_groups = divisor(m->channels, s->k);
    s->mix_f = numbers(s->k * m->channels / s->mix_groups, 0.7);
  }
  for (int64_t k = 0; k < s->k; k++) {
    for (int64_t t = 0; t < out->frames; t++) {
      double v = s->bias ? s->bias[k] : 0;
      for (int64_t c = 0; c < cg; c++) {
        for (int64_t w = 0; w < s->window; w++) {
          const int64_t at = t * s->stride - s->dilation * (s->window - 1 - w);
          if (at >= 0) v += (double)s->f[(k * cg + c) * s->window + w] * x->v[(k / kg * cg + c) * FRAMES + at];
        }
      }
      const int64_t mc = s->mix ? m->channels / s->mix_groups : 0;
      for (int64_t c = 0; c < mc; c++)
        v += (double)s->mix_f[k * mc + c] * m->v[(k / (s->k / s->mix_groups) * mc + c) * FRAMES + t];
      out->v[k * FRAMES + t] = v;
    }
  }
  tail(i, out);
}

static bool draw_scale(int i, signal *out) {
  hk_step *s = &steps[i];
  const signal *x = &sig[s->x];
  int id = find(i + 1, x->rate, 2 * x->channels);
  if (!id) id = find(i + 1, x->rate, x->channels);
  if (!id) return false;
  s->x2 = id;
  *out = *x;
  for (int64_t k = 0; k < x->channels; k++) {
    for (int64_t t = 0; t < x->frames; t++) {
      const double shift = sig[id].channels == 2 * x->channels ? sig[id].v[(k + x->channels) * FRAMES + t] : 0;
      out->v[k * FRAMES + t] = x->v[k * FRAMES + t] * sig[id].v[k * FRAMES + t] + shift;
    }
  }
  return true;
}

static void draw_lstm(int i, signal *out) {
  hk_step *s = &steps[i];
  const signal *x = &sig[s->x];
  const int64_t k = 1 + below(6), in = x->channels;
  s->k = k;
  s->f = numbers(4 * k * (in + k), 0.5);
  s->bias = numbers(4 * k, 0.3);
  if (below(2)) s->h0 = numbers(k, 0.5), s->c0 = numbers(k, 0.5);
  out->channels = k, out->rate = x->rate, out->frames = x->frames;
  double h[8] = {0}, c[8] = {0}, z[32];
  for (int64_t j = 0; s->h0 && j < k; j++) h[j] = s->h0[j], c[j] = s->c0[j];
  for (int64_t t = 0; t < x->frames; t++) {
    for (int64_t o = 0; o < 4 * k; o++) {
      z[o] = s->bias[o];
      for (int64_t j = 0; j < in; j++) z[o] += (double)s->f[o * (in + k) + j] * x->v[j * FRAMES + t];
      for (int64_t j = 0; j < k; j++) z[o] += (double)s->f[o * (in + k) + in + j] * h[j];
    }
    for (int64_t j = 0; j < k; j++) {
      c[j] = c[j] / (1 + exp(-z[k + j])) + tanh(z[2 * k + j]) / (1 + exp(-z[j]));
      h[j] = tanh(c[j]) / (1 + exp(-z[3 * k + j]));
      out->v[j * FRAMES + t] = h[j];
    }
  }
}

static int draw_chain(int64_t channels) {
  const int count = 1 + below(STEPS);
  used = 0;
  memset(steps, 0, sizeof steps);
  sig[1] = (signal){.channels = channels, .rate = 1, .frames = FRAMES};
  for (int64_t i = 0; i < channels * FRAMES; i++) sig[1].v[i] = (float)((below(2001) - 1000) * 1e-3);
  for (int i = 0; i < count; i++) {
    hk_step *s = &steps[i];
    signal *out = &sig[i + 2];
    s->size = sizeof *s;
    s->x = 1 + below(i + 1);
    if (below(3)) s->x = i + 1; /* mostly a chain */
    const int kind = below(10);
    *out = sig[s->x];
    s->kind = HK_STEP_MAP;
    if (kind < 5) {
      s->kind = HK_STEP_CONV;
      draw_conv(i, out);
    } else if (kind < 6 && draw_scale(i, out)) {
      s->kind = HK_STEP_SCALE;
    } else if (kind < 7) {
      s->kind = HK_STEP_LSTM;
      draw_lstm(i, out);
    } else if (kind < 9) { /* a plain sum, as networks have them */
      s->residual = HK_RESIDUAL_AFTER;
      s->beta = 1.0f;
      s->add = find(i + 1, out->rate, out->channels);
      if (!s->add) s->add = s->x;
      for (int64_t j = 0; j < out->channels * FRAMES; j++) out->v[j] += sig[s->add].v[j];
    } else {
      tail(i, out);
    }
  }
  return count;
}

static void play(int count, int64_t channels, hk_isa isa) {
  static float in[WIDEST * BLOCK], out[WIDEST * BLOCK];
  const int last = count + 1;
  const int output = below(3) ? 0 : 2 + below(count); /* sometimes an earlier signal: the rest is dead */
  const signal *want = &sig[output ? output : last];
  const hk_chain_desc d = {.size = sizeof d,
                           .channels = channels,
                           .max_block = BLOCK,
                           .steps = steps,
                           .count = count,
                           .output = output,
                           .layout = HK_CHANNELS_LAST,
                           .isa = isa};
  hk_chain *chain = NULL;
  hk_stream *stream = NULL;
  CHECK_STATUS(HK_OK, "", hk_chain_create(&chain, &d, NULL, 0));
  if (!chain) return;
  CHECK_STATUS(HK_OK, "", hk_stream_create(&stream, chain, NULL, 0));
  double peak = 1;
  for (int64_t i = 0; i < want->channels * FRAMES; i++) {
    if (i % FRAMES < want->frames) peak = fmax(peak, fabs(want->v[i]));
  }
  int64_t made = 0;
  double worst = 0;
  for (int64_t at = 0; at < FRAMES;) {
    int64_t n = 1 + below(BLOCK), got = 0;
    if (n > FRAMES - at) n = FRAMES - at;
    for (int64_t t = 0; t < n; t++) {
      for (int64_t c = 0; c < channels; c++) in[t * channels + c] = (float)sig[1].v[c * FRAMES + at + t];
    }
    CHECK_STATUS(HK_OK, "", hk_stream_process(stream, in, n, out, &got));
    for (int64_t t = 0; t < got; t++) {
      for (int64_t c = 0; c < want->channels; c++) {
        const double error = fabs(out[t * want->channels + c] - want->v[c * FRAMES + made + t]);
        if (!(error <= worst)) worst = error;
      }
    }
    made += got;
    at += n;
  }
  CHECK(made == want->frames, "%lld frames of %lld", (long long)made, (long long)want->frames);
  CHECK(worst <= 3e-5 * peak, "%d steps on %s: off by %g of a peak of %g", count, hk_isa_name(isa), worst, peak);
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
}

static void test_refusals(void) {
  const float f[64] = {0};
  hk_step s[2] = {{.size = sizeof s[0], .kind = HK_STEP_CONV, .x = 1, .k = 4, .window = 3, .f = f}};
  hk_chain_desc d = {.size = sizeof d, .channels = 2, .max_block = 64, .steps = s, .count = 1};
  hk_chain *chain = NULL;
  size_t bytes, stream_bytes;
  CHECK_STATUS(HK_OK, "", hk_chain_measure(&d, &bytes, &stream_bytes));
  s[0].x = 2;
  CHECK_STATUS(HK_INVALID, "steps[0].x is signal 2", hk_chain_create(&chain, &d, NULL, 0));
  s[0].x = 1, s[0].groups = 3;
  CHECK_STATUS(HK_INVALID, "groups", hk_chain_create(&chain, &d, NULL, 0));
  s[0].groups = 1, s[0].dilation = INT64_MAX;
  CHECK_STATUS(HK_INVALID, "window, dilation", hk_chain_create(&chain, &d, NULL, 0));
  s[0].dilation = 1, s[0].k = -1;
  CHECK_STATUS(HK_INVALID, "k is not", hk_chain_create(&chain, &d, NULL, 0));
  s[0].k = 4, s[0].f = NULL;
  CHECK_STATUS(HK_INVALID, "f is missing", hk_chain_create(&chain, &d, NULL, 0));
  s[0].f = f, s[0].act.act = HK_ACT_USER;
  CHECK_STATUS(HK_INVALID, "act.act", hk_chain_create(&chain, &d, NULL, 0));
  s[0].act.act = HK_ACT_PRELU;
  CHECK_STATUS(HK_INVALID, "slopes", hk_chain_create(&chain, &d, NULL, 0));
  s[0].act.act = HK_ACT_NONE, s[0].residual = HK_RESIDUAL_AFTER, s[0].add = 1;
  CHECK_STATUS(HK_INVALID, "add", hk_chain_create(&chain, &d, NULL, 0));
  s[0].residual = HK_RESIDUAL_NONE;
  char *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
  CHECK_STATUS(HK_INVALID, "aligned", hk_chain_create(&chain, &d, memory, bytes - 1));
  CHECK_STATUS(HK_OK, "", hk_chain_create(&chain, &d, memory, bytes));
  CHECK((char *)chain == memory, "the caller's memory is not used");
  hk_chain_destroy(chain);
  free(memory);
}

/* x + 1x1(x) with more channels than a tile: the sum must not run into rows that are still to be read. */
static void test_sum_of_source(void) {
  static float f[16 * 16], x[64 * 16], y[64 * 16];
  for (int i = 0; i < 16 * 16; i++) f[i] = (float)(i % 7 - 3);
  for (int i = 0; i < 64 * 16; i++) x[i] = (float)(i % 11 - 5);
  const hk_step s[2] = {
      {.size = sizeof s[0], .kind = HK_STEP_CONV, .x = 1, .k = 16, .f = f},
      {.size = sizeof s[0], .kind = HK_STEP_MAP, .x = 1, .residual = HK_RESIDUAL_AFTER, .add = 2, .beta = 1.0f}};
  const hk_chain_desc d = {
      .size = sizeof d, .channels = 16, .max_block = 64, .steps = s, .count = 2, .layout = HK_CHANNELS_LAST};
  hk_chain *chain;
  hk_stream *stream;
  if (hk_chain_create(&chain, &d, NULL, 0) || hk_stream_create(&stream, chain, NULL, 0)) return;
  hk_stream_process(stream, x, 64, y, NULL);
  int wrong = 0;
  for (int t = 0; t < 64; t++) {
    for (int k = 0; k < 16; k++) {
      float v = x[t * 16 + k];
      for (int c = 0; c < 16; c++) v += f[k * 16 + c] * x[t * 16 + c];
      wrong += v != y[t * 16 + k];
    }
  }
  CHECK(!wrong, "%d of 1024 sums", wrong);
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
}

/* A decaying tail must not cost more than sound: 1e-38 and below is flushed. */
static void test_denormals(void) {
  static float f[8 * 8 * 3], x[64 * 8], y[64 * 8];
  for (int i = 0; i < 8 * 8 * 3; i++) f[i] = 0.01f;
  const hk_step s = {.size = sizeof s, .kind = HK_STEP_CONV, .x = 1, .k = 8, .window = 3, .f = f};
  const hk_chain_desc d = {
      .size = sizeof d, .channels = 8, .max_block = 64, .steps = &s, .count = 1, .layout = HK_CHANNELS_LAST};
  hk_chain *chain;
  hk_stream *stream;
  if (hk_chain_create(&chain, &d, NULL, 0) || hk_stream_create(&stream, chain, NULL, 0)) return;
  for (int i = 0; i < 64 * 8; i++) x[i] = 1e-39f;
  hk_stream_process(stream, x, 64, y, NULL);
  bool zero = true;
  for (int i = 0; i < 64 * 8; i++) zero = zero && y[i] == 0.0f;
  CHECK(zero, "a denormal came through");
  volatile float tiny = 1e-39f;
  CHECK(tiny * 0.5f != 0.0f, "the caller's floating-point mode was not put back");
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
}

int main(void) {
  const hk_isa isas[] = {HK_ISA_SCALAR, HK_ISA_NEON, HK_ISA_AVX2, HK_ISA_AVX512};
  for (int i = 0; i < 1500; i++) {
    const int64_t channels = 1 + below(4);
    const int count = draw_chain(channels);
    const hk_isa isa = isas[below(4)];
    play(count, channels, hk_cpu_has(isa) ? isa : HK_ISA_BEST);
  }
  test_refusals();
  test_sum_of_source();
  test_denormals();
  return hk_test_end();
}
