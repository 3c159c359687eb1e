/* Streams of one convolution against a direct sum in double over the whole signal: every channel count and group up to
 * 16, taps 1..16, dilations up to 1024, strides, gates, residuals, planar and interleaved blocks, any block split, on
 * every ISA the machine has. Then what a stream promises about itself: reset, prewarm, save and restore, two streams of
 * one chain, refusals. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "core/core.h"
#include "support/check.h"

enum { MAX_BLOCK = 300, FRAMES = 700 };

typedef struct shape {
  int64_t c, k, groups, window, dilation, stride;
  hk_layout layout;
  hk_epilogue e;
  bool integers;
} shape;

static uint64_t seed = 0x9e3779b97f4a7c15u;
static int64_t below(int64_t n) { return hk_test_between(&seed, 0, n - 1); }
static float value(bool integers) {
  return integers ? (float)(below(7) - 3) : (float)(below(2000001) - 1000000) * 1e-6f;
}

typedef struct data {
  float x[16 * FRAMES], f[32 * 16 * 16], bias[32], slopes[32]; /* x planar: [c][FRAMES] */
  double y[32 * FRAMES], mass[32 * FRAMES];
} data;
static data d;

static double act(const hk_epilogue *e, bool second, int64_t k, double v) {
  return second ? hk_act_eval(e->act2, e->a2, e->b2, d.slopes[k], v) : hk_act_eval(e->act, e->a, e->b, d.slopes[k], v);
}

/* y and, beside it, the sum of magnitudes that bounds its error */
static void reference(const shape *s) {
  const int64_t cg = s->c / s->groups, kg = s->k / s->groups, out = (FRAMES + s->stride - 1) / s->stride;
  const int64_t rows = s->e.gate ? s->k / 2 : s->k;
  static double z[32 * FRAMES], m[32 * FRAMES];
  for (int64_t k = 0; k < s->k; k++) {
    for (int64_t p = 0; p < out; p++) {
      double v = s->e.bias ? d.bias[k] : 0, w = fabs(v);
      for (int64_t c = 0; c < cg; c++) {
        for (int64_t t = 0; t < s->window; t++) {
          const int64_t i = p * s->stride - s->dilation * (s->window - 1 - t);
          if (i < 0) continue;
          const double term = (double)d.f[(k * cg + c) * s->window + t] * d.x[(k / kg * cg + c) * FRAMES + i];
          v += term;
          w += fabs(term);
        }
      }
      if (s->e.residual == HK_RESIDUAL_BEFORE) v += s->e.beta * d.x[k * FRAMES + p], w += fabs(v);
      z[k * FRAMES + p] = v;
      m[k * FRAMES + p] = w + 1;
    }
  }
  for (int64_t k = 0; k < rows; k++) {
    for (int64_t p = 0; p < out; p++) {
      const double t = z[k * FRAMES + p];
      double v = act(&s->e, false, k, t), w = m[k * FRAMES + p];
      if (s->e.gate) {
        const double g = act(&s->e, true, k, z[(k + rows) * FRAMES + p]);
        w = (w + 1) * (m[(k + rows) * FRAMES + p] + 1) * 4;
        v = s->e.gate == HK_GATE_GATED ? v * g : g * v + (1 - g) * t;
      }
      if (s->e.residual == HK_RESIDUAL_AFTER) v += s->e.beta * d.x[k * FRAMES + p];
      d.y[k * FRAMES + p] = v;
      d.mass[k * FRAMES + p] = w;
    }
  }
}

static hk_chain *make(const shape *s, hk_isa isa) {
  hk_conv_desc desc = {.size = sizeof desc,
                       .rank = 1,
                       .layout = s->layout,
                       .n = 1,
                       .c = s->c,
                       .k = s->k,
                       .groups = s->groups,
                       .in = {MAX_BLOCK},
                       .window = {s->window},
                       .stride = {s->stride},
                       .dilation = {s->dilation},
                       .padding = HK_PAD_CAUSAL};
  hk_problem p;
  CHECK_STATUS(HK_OK, "", hk_problem_conv(&p, &desc));
  if (s->e.gate) { /* y has half the channels: they lie as a dense tensor of k/2 would */
    p.y.group = p.y.channel;
    if (s->layout == HK_CHANNELS_LAST) p.y.at[0] = s->k / 2;
  }
  /* f in the order of this test, [k][c][s], whatever the layout of x and y */
  const int64_t cg = s->c / s->groups;
  p.f = (hk_strides){
      .group = s->k / s->groups * cg * s->window, .outer = cg * s->window, .channel = s->window, .at = {1}};
  const hk_weights w = {.size = sizeof w, .f = d.f, .bias = d.bias, .slopes = d.slopes};
  const hk_options o = {.size = sizeof o, .isa = isa};
  hk_chain *chain = NULL;
  CHECK_STATUS(HK_OK, "", hk_chain_create_conv(&chain, &p, &s->e, &o, &w));
  return chain;
}

/* Feeds the whole signal in blocks of `block` frames (0: random lengths); y comes back planar. */
static void play(const shape *s, hk_stream *stream, int64_t block, float *y) {
  static float in[16 * MAX_BLOCK], out[32 * MAX_BLOCK];
  const int64_t rows = s->e.gate ? s->k / 2 : s->k, most = (MAX_BLOCK + s->stride - 1) / s->stride;
  const bool planar = s->layout == HK_CHANNELS_FIRST;
  int64_t made = 0;
  for (int64_t at = 0; at < FRAMES;) {
    int64_t n = block ? block : below(MAX_BLOCK + 1), got = -1;
    if (n > FRAMES - at) n = FRAMES - at;
    for (int64_t c = 0; c < s->c; c++) {
      for (int64_t t = 0; t < n; t++) in[planar ? c * MAX_BLOCK + t : t * s->c + c] = d.x[c * FRAMES + at + t];
    }
    memset(out, 0xff, sizeof out);
    CHECK_STATUS(HK_OK, "", hk_stream_process(stream, in, n, out, &got));
    CHECK(got == (at + n + s->stride - 1) / s->stride - (at + s->stride - 1) / s->stride, "%lld frames",
          (long long)got);
    for (int64_t k = 0; k < rows; k++) {
      for (int64_t t = 0; t < got; t++) y[k * FRAMES + made + t] = out[planar ? k * most + t : t * rows + k];
      if (planar && got < most) CHECK(isnan(out[k * most + got]), "wrote past the block");
    }
    made += got;
    at += n;
  }
}

static void compare(const shape *s, const float *y, const char *what, int64_t block) {
  const int64_t rows = s->e.gate ? s->k / 2 : s->k, out = (FRAMES + s->stride - 1) / s->stride;
  const double gk = (double)(s->c / s->groups * s->window + 4);
  double worst = 0;
  int64_t at = 0;
  for (int64_t k = 0; k < rows; k++) {
    for (int64_t p = 0; p < out; p++) {
      const int64_t i = k * FRAMES + p;
      const double error = fabs((double)y[i] - d.y[i]);
      const double over = s->integers ? error : error / (gk * 1.2e-7 * d.mass[i] + 1e-6 * fabs(d.y[i]));
      if (!(over <= worst)) worst = over, at = i;
    }
  }
  CHECK(worst <= (s->integers ? 0 : 1),
        "%s block %lld: c %lld k %lld g %lld w %lld d %lld s %lld act %d gate %d: y[%lld] = %g, not %g", what,
        (long long)block, (long long)s->c, (long long)s->k, (long long)s->groups, (long long)s->window,
        (long long)s->dilation, (long long)s->stride, (int)s->e.act, (int)s->e.gate, (long long)at, (double)y[at],
        d.y[at]);
}

static void try_shape(const shape *s, hk_isa isa) {
  static float y[32 * FRAMES];
  for (int64_t i = 0; i < s->c * FRAMES; i++) d.x[i] = value(s->integers);
  for (int64_t i = 0; i < s->k * s->c / s->groups * s->window; i++) d.f[i] = value(s->integers);
  for (int64_t i = 0; i < s->k; i++) d.bias[i] = value(s->integers), d.slopes[i] = 0.1f * value(false);
  reference(s);
  hk_chain *chain = make(s, isa);
  if (!chain) return;
  hk_stream *stream = NULL;
  CHECK_STATUS(HK_OK, "", hk_stream_create(&stream, chain, NULL, 0));
  const int64_t blocks[] = {0, 1, 16, 37, 64, 256};
  const int64_t block = blocks[below(6)];
  play(s, stream, block, y);
  compare(s, y, hk_isa_name(isa), block);
  hk_stream_reset(stream);
  play(s, stream, 0, y);
  compare(s, y, "after reset", 0);
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
}

/* Every pair of channel counts up to 16 and every common divisor as groups. */
static void test_all_channels(hk_isa isa) {
  for (int64_t c = 1; c <= 16; c++) {
    for (int64_t k = 1; k <= 16; k++) {
      for (int64_t g = 1; g <= c; g++) {
        if (c % g || k % g) continue;
        const int64_t dilations[] = {1, 2, 3, 7, 17, 64, 100, 239, 512, 1024};
        shape s = {c, k, g, 1 + below(16), dilations[below(10)], 1, (hk_layout)below(2), {.size = sizeof s.e}, true};
        s.e.bias = (int32_t)below(2);
        try_shape(&s, isa);
      }
    }
  }
}

static void test_epilogues(hk_isa isa) {
  for (int i = 0; i < 400; i++) {
    const int64_t g = 1 + below(4), stride = below(3) ? 1 : 1 + below(5);
    shape s = {g * (1 + below(4)),  g * (1 + below(4)),   g,    1 + below(6), 1 + below(30), stride,
               (hk_layout)below(2), {.size = sizeof s.e}, false};
    s.e.bias = (int32_t)below(2);
    s.e.act = (hk_act)below(HK_ACT_USER);
    s.e.a = s.e.act == HK_ACT_LEAKY ? 0.01f : -0.5f;
    s.e.b = 0.75f;
    if (below(2) && s.k % 2 == 0) {
      s.e.gate = (hk_gate)(1 + below(2));
      s.e.act2 = (hk_act)below(HK_ACT_USER);
      s.e.a2 = -0.25f;
      s.e.b2 = 0.5f;
    }
    if (stride == 1 && s.c == (s.e.gate ? s.k / 2 : s.k) && below(3)) {
      s.e.residual = s.e.gate ? HK_RESIDUAL_AFTER : (hk_residual)(1 + below(2));
      s.e.beta = below(2) ? 1.0f : 0.3f;
    }
    try_shape(&s, isa);
  }
}

/* prewarm is reset and then zeros; save and restore put a stream back; streams of one chain do not know each other */
static void test_state(void) {
  for (int i = 0; i < 40; i++) {
    static float a[32 * FRAMES], b[32 * FRAMES];
    shape s = {1 + below(5),     1 + below(5),         1,    1 + below(8), 1 + below(40), 1 + below(3),
               HK_CHANNELS_LAST, {.size = sizeof s.e}, false};
    s.e.bias = 1;
    s.e.act = HK_ACT_TANH;
    for (int64_t j = 0; j < s.c * FRAMES; j++) d.x[j] = value(false);
    for (int64_t j = 0; j < s.k * s.c * s.window; j++) d.f[j] = value(false);
    for (int64_t j = 0; j < s.k; j++) d.bias[j] = value(false);
    hk_chain *chain = make(&s, HK_ISA_BEST);
    hk_stream *one = NULL, *two = NULL;
    hk_stream_create(&one, chain, NULL, 0);
    hk_stream_create(&two, chain, NULL, 0);
    hk_chain_facts facts = {.size = sizeof facts};
    CHECK_STATUS(HK_OK, "", hk_chain_info(chain, &facts));
    CHECK(facts.receptive_field == 1 + s.dilation * (s.window - 1), "%lld", (long long)facts.receptive_field);
    static const float zeros[16 * MAX_BLOCK];
    static float sink[32 * MAX_BLOCK];
    const int64_t warm = facts.receptive_field + below(50);
    for (int64_t n = 0; n < warm; n++) hk_stream_process(one, zeros, 1, sink, NULL);
    play(&s, two, 0, a); /* dirt that prewarm must forget */
    CHECK_STATUS(HK_OK, "", hk_stream_prewarm(two, warm));
    char *state = malloc(facts.state_bytes);
    CHECK_STATUS(HK_OK, "", hk_stream_save(two, state, facts.state_bytes));
    const int64_t made = (warm + s.stride - 1) / s.stride;
    int64_t n1 = 0, n2 = 0;
    static float in[16 * MAX_BLOCK];
    for (int64_t j = 0; j < s.c * 200; j++) in[j] = value(false);
    hk_stream_process(one, in, 200, a, &n1);
    hk_stream_process(two, in, 200, b, &n2);
    CHECK(n1 == n2 && n1 == (warm + 200 + s.stride - 1) / s.stride - made, "%lld, %lld", (long long)n1, (long long)n2);
    CHECK(!memcmp(a, b, (size_t)(n1 * s.k) * sizeof(float)), "prewarm differs from zeros, stride %lld",
          (long long)s.stride);
    CHECK_STATUS(HK_OK, "", hk_stream_restore(two, state, facts.state_bytes));
    memset(b, 0, sizeof b);
    hk_stream_process(two, in, 200, b, &n2);
    CHECK(!memcmp(a, b, (size_t)(n1 * s.k) * sizeof(float)), "restore");
    CHECK_STATUS(HK_INVALID, "state", hk_stream_restore(two, state, facts.state_bytes - 1));
    memset(state + 32, 0x7f, 64); /* positions far outside */
    CHECK_STATUS(HK_INVALID, "state", hk_stream_restore(two, state, facts.state_bytes));
    free(state);
    hk_stream_destroy(one);
    hk_stream_destroy(two);
    hk_chain_destroy(chain);
  }
}

static void test_refusals(void) {
  shape s = {4, 4, 1, 3, 2, 1, HK_CHANNELS_FIRST, {.size = sizeof s.e}, false};
  hk_chain *chain = make(&s, HK_ISA_BEST);
  hk_stream *stream = NULL;
  hk_stream_create(&stream, chain, NULL, 0);
  float x[4], y[4];
  CHECK_STATUS(HK_INVALID, "0 to 300", hk_stream_process(stream, x, MAX_BLOCK + 1, y, NULL));
  CHECK_STATUS(HK_INVALID, "n is -1", hk_stream_process(stream, x, -1, y, NULL));
  CHECK_STATUS(HK_INVALID, "NULL", hk_stream_process(stream, NULL, 1, y, NULL));
  CHECK_STATUS(HK_OK, "", hk_stream_process(stream, NULL, 0, NULL, NULL));
  char small[64];
  CHECK_STATUS(HK_INVALID, "aligned", hk_stream_create(&stream, chain, small + 1, 63));
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
  hk_problem p;
  hk_problem_parse(&p, "1d_n1_c4_i64_k4_w3_p1_first");
  const hk_weights w = {.size = sizeof w, .f = d.f};
  CHECK_STATUS(HK_UNSUPPORTED, "causal", hk_chain_create_conv(&chain, &p, NULL, NULL, &w));
  hk_problem_pad(&p, HK_PAD_CAUSAL);
  CHECK_STATUS(HK_INVALID, "weights.f", hk_chain_create_conv(&chain, &p, NULL, NULL, NULL));
  hk_problem_parse(&p, "2d_n1_c4_i8x8_k4_w1x1_first");
  CHECK_STATUS(HK_UNSUPPORTED, "rank", hk_chain_create_conv(&chain, &p, NULL, NULL, &w));
}

int main(void) {
  const hk_isa isas[] = {HK_ISA_SCALAR, HK_ISA_NEON, HK_ISA_AVX2, HK_ISA_AVX512};
  for (int i = 0; i < 4; i++) {
    if (!hk_cpu_has(isas[i])) continue;
    test_all_channels(isas[i]);
    test_epilogues(isas[i]);
  }
  test_state();
  test_refusals();
  return hk_test_end();
}
