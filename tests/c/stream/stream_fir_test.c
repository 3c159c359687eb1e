/* FIR steps against the direct sum in double: windows from one tap to 480,000, one or more inputs and outputs, groups;
 * within 1e-6 of the peak on every ISA of this machine. The same bits for every cut into blocks, down to single frames,
 * after save and restore, and in two streams of one chain; chain, stream and blocks between guard pages. Then tails,
 * chains of several FIR steps and rates, prewarm, facts, and refusals. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "core/core.h"
#include "support/check.h"
#include "support/guard.h"

enum { BLOCK = 1000, SAMPLES = 150 };

static uint64_t seed = 0x853c49e6748fea9bu;
static int64_t below(int64_t n) { return hk_test_between(&seed, 0, n - 1); }

typedef struct shape {
  int64_t c, k, groups, window, frames;
  hk_isa isa;
} shape;

typedef struct player {
  guarded chain_memory, stream_memory;
  hk_chain *chain;
  hk_stream *stream;
  hk_chain_facts facts;
} player;

static float *numbers(int64_t count) {
  float *v = malloc((size_t)count * sizeof *v);
  for (int64_t i = 0; i < count; i++) v[i] = hk_test_float(&seed);
  return v;
}

static hk_chain_desc desc_of(const shape *s, const hk_step *step) {
  return (hk_chain_desc){.size = sizeof(hk_chain_desc),
                         .channels = s->c,
                         .max_block = BLOCK,
                         .steps = step,
                         .count = 1,
                         .layout = HK_CHANNELS_LAST,
                         .isa = s->isa};
}

/* In memory of the test's own, which ends (high) or begins at an inaccessible page. */
static bool open_player(player *p, const hk_chain_desc *d, int high) {
  size_t chain_bytes = 0, stream_bytes = 0;
  *p = (player){.facts = {.size = sizeof p->facts}};
  CHECK_STATUS(HK_OK, "", hk_chain_measure(d, &chain_bytes, &stream_bytes));
  if (!chain_bytes) return false;
  p->chain_memory = guarded_make(chain_bytes / sizeof(float), high);
  p->stream_memory = guarded_make(stream_bytes / sizeof(float), high);
  CHECK_STATUS(HK_OK, "", hk_chain_create(&p->chain, d, p->chain_memory.at, chain_bytes));
  CHECK_STATUS(HK_OK, "", hk_stream_create(&p->stream, p->chain, p->stream_memory.at, stream_bytes));
  CHECK_STATUS(HK_OK, "", hk_chain_info(p->chain, &p->facts));
  return true;
}

static void close_player(player *p) {
  hk_stream_destroy(p->stream);
  hk_chain_destroy(p->chain);
  guarded_free(&p->stream_memory);
  guarded_free(&p->chain_memory);
}

/* A length for the next block: 1, at most 70, or up to the longest, as `cut` says. */
static int64_t draw_block(int cut) {
  return cut == 0 ? BLOCK : cut == 1 ? 1 + below(70) : cut == 2 ? 64 : below(4) ? 1 + below(BLOCK) : 1;
}

/* Frames [from, to) of x through the stream; blocks of their exact length, next to a guard page. */
static void play(const player *p, const float *x, float *y, int64_t from, int64_t to, int cut) {
  const int64_t c = p->facts.x_channels, k = p->facts.y_channels;
  const guarded in = guarded_make((size_t)(BLOCK * c), 1), out = guarded_make((size_t)(BLOCK * k), 1);
  for (int64_t t = from, n; t < to; t += n) {
    n = hk_min64(draw_block(cut), to - t);
    float *a = in.at + (BLOCK - n) * c, *b = out.at + (BLOCK - n) * k;
    memcpy(a, x + t * c, (size_t)(n * c) * sizeof *a);
    CHECK_STATUS(HK_OK, "", hk_stream_process(p->stream, a, n, b, NULL));
    memcpy(y + t * k, b, (size_t)(n * k) * sizeof *b);
  }
  guarded_free((guarded *)&in);
  guarded_free((guarded *)&out);
}

/* Output k at time t, in double. */
static double direct(const shape *s, const float *f, const float *bias, const float *x, int64_t k, int64_t t) {
  const int64_t cg = s->c / s->groups, first = k / (s->k / s->groups) * cg;
  double sum = bias ? bias[k] : 0;
  for (int64_t c = 0; c < cg; c++) {
    const float *row = f + (k * cg + c) * s->window + s->window - 1;
    for (int64_t j = 0; j < s->window && j <= t; j++) sum += (double)row[-j] * x[(t - j) * s->c + first + c];
  }
  return sum;
}

/* The largest sum of magnitudes of f over an output channel; x lies in [-1, 1). */
static double peak_of(const shape *s, const float *f) {
  const int64_t row = s->c / s->groups * s->window;
  double peak = 0;
  for (int64_t k = 0; k < s->k; k++) {
    double sum = 0;
    for (int64_t j = 0; j < row; j++) sum += fabs((double)f[k * row + j]);
    peak = fmax(peak, sum);
  }
  return peak;
}

/* At the first and the last frames, around multiples of 64, and at random ones. The bound of the header is relative to
 * the largest sum of magnitudes; noise through one input per output stays below 1e-6 of the largest output too. */
static void compare(const shape *s, const float *f, const float *bias, const float *x, const float *y) {
  const double most = peak_of(s, f);
  double worst = 0, loudest = 0;
  for (int64_t i = 0; i < s->frames * s->k; i++) { /* no fmax: gcc 12 for aarch64 fails on its reduction */
    const double v = fabs((double)y[i]);
    if (v > loudest) loudest = v;
  }
  const double peak = s->c == s->groups ? loudest : most;
  for (int i = 0; i < SAMPLES; i++) {
    int64_t t = i < 3 ? i : i < 6 ? s->frames - 1 - (i - 3) : below(s->frames);
    if (i % 5 == 4) t = hk_min64(s->frames - 1, hk_round_up(t + 1, 64) - below(2));
    for (int64_t k = 0; k < s->k; k++) {
      const double error = fabs(y[t * s->k + k] - direct(s, f, bias, x, k, t));
      if (!(error <= worst)) worst = error;
    }
  }
  CHECK(worst <= 1e-6 * peak, "%lldx%lld g %lld window %lld on %s: off by %g of a peak of %g", (long long)s->c,
        (long long)s->k, (long long)s->groups, (long long)s->window, hk_isa_name(s->isa), worst, peak);
}

/* The first half again from the start, then a restored state in another stream: the same bits as y. */
static void replay(const shape *s, const player *p, player *q, const float *x, const float *y) {
  const size_t row = (size_t)s->k * sizeof(float);
  const int64_t half = below(s->frames);
  float *again = malloc((size_t)s->frames * row), *dirt = malloc((size_t)s->frames * row);
  char *state = malloc(p->facts.state_bytes);
  CHECK_STATUS(HK_OK, "", hk_stream_reset(p->stream));
  play(p, x, again, 0, half, 3);
  CHECK_STATUS(HK_OK, "", hk_stream_save(p->stream, state, p->facts.state_bytes));
  play(q, x, dirt, 0, below(s->frames), 3); /* for restore to replace */
  CHECK_STATUS(HK_OK, "", hk_stream_restore(q->stream, state, p->facts.state_bytes));
  play(p, x, dirt, 0, half, 3); /* the other stream's past is not q's */
  play(q, x, again, half, s->frames, 1);
  int64_t wrong = 0;
  for (int64_t i = 0; i < s->frames * s->k; i++) wrong += memcmp(&again[i], &y[i], sizeof *y) != 0;
  CHECK(!wrong, "%lldx%lld g %lld window %lld on %s: %lld frames depend on the blocks", (long long)s->c,
        (long long)s->k, (long long)s->groups, (long long)s->window, hk_isa_name(s->isa), (long long)wrong);
  free(again);
  free(dirt);
  free(state);
}

static void try_shape(const shape *s) {
  const int64_t taps = s->k * s->c / s->groups * s->window;
  float *f = numbers(taps), *bias = below(2) ? numbers(s->k) : NULL, *x = numbers(s->frames * s->c);
  float *y = malloc((size_t)(s->frames * s->k) * sizeof *y);
  const hk_step step = {.size = sizeof step,
                        .kind = HK_STEP_FIR,
                        .x = 1,
                        .k = s->k,
                        .window = s->window,
                        .groups = s->groups,
                        .f = f,
                        .bias = bias};
  const hk_chain_desc d = desc_of(s, &step);
  player p, q;
  if (open_player(&p, &d, 1)) {
    CHECK(p.facts.receptive_field == s->window, "%lld", (long long)p.facts.receptive_field);
    play(&p, x, y, 0, s->frames, (int)below(4));
    compare(s, f, bias, x, y);
    if (open_player(&q, &d, 0)) replay(s, &p, &q, x, y);
    close_player(&q);
  }
  close_player(&p);
  free(f);
  free(bias);
  free(x);
  free(y);
}

static void test_shapes(hk_isa isa) {
  static const int64_t windows[] = {1, 2, 63, 64, 65, 127, 128, 129, 1000, 2048, 20000};
  static const int64_t widths[][3] = {{1, 1, 1}, {1, 2, 1}, {2, 1, 1}, {2, 2, 1}, {2, 2, 2}, {6, 4, 2}};
  for (size_t i = 0; i < HK_COUNT(windows) + 6; i++) {
    const int64_t window = i < HK_COUNT(windows) ? windows[i] : 1 + below(below(2) ? 700 : 9000);
    for (size_t j = 0; j < HK_COUNT(widths); j++) {
      if (window > 9000 && j != i % HK_COUNT(widths)) continue;
      const shape s = {widths[j][0], widths[j][1], widths[j][2], window, window + 700 + below(2000), isa};
      try_shape(&s);
    }
  }
}

/* Chains of several steps: frames of y, in blocks of a random cut. */
static float *chain_output(const hk_step *steps, int count, int64_t c, const float *x, int64_t frames, int64_t *made) {
  const hk_chain_desc d = {
      .size = sizeof d, .channels = c, .max_block = BLOCK, .steps = steps, .count = count, .layout = HK_CHANNELS_LAST};
  hk_chain *chain = NULL;
  hk_stream *stream = NULL;
  hk_chain_facts facts = {.size = sizeof facts};
  CHECK_STATUS(HK_OK, "", hk_chain_create(&chain, &d, NULL, 0));
  CHECK_STATUS(HK_OK, "", hk_stream_create(&stream, chain, NULL, 0));
  CHECK_STATUS(HK_OK, "", hk_chain_info(chain, &facts));
  float *y = calloc((size_t)(frames * facts.y_channels), sizeof *y);
  const int cut = (int)below(4);
  *made = 0;
  for (int64_t t = 0, n, got; t < frames; t += n, *made += got) {
    n = hk_min64(draw_block(cut), frames - t);
    CHECK_STATUS(HK_OK, "", hk_stream_process(stream, x + t * c, n, y + *made * facts.y_channels, &got));
  }
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
  return y;
}

static void same(const float *a, const float *b, int64_t count, double tolerance, const char *what) {
  double worst = 0;
  for (int64_t i = 0; i < count; i++) {
    const double error = fabs((double)a[i] - (double)b[i]);
    if (!(error <= worst)) worst = error;
  }
  CHECK(worst <= tolerance, "%s: off by %g", what, worst);
}

/* The tail of FIR is what a MAP after it computes. */
static void test_tails(void) {
  enum { FRAMES = 3000, WINDOW = 1500 };
  float *f = numbers(4 * WINDOW), *bias = numbers(4), *x = numbers(2 * FRAMES);
  for (int i = 0; i < 4 * WINDOW; i++) f[i] *= 0.05f;
  for (int i = 0; i < 12; i++) {
    const hk_gate gate = (hk_gate)(i % 3);
    const hk_act acts[] = {HK_ACT_NONE, HK_ACT_RELU, HK_ACT_TANH, HK_ACT_CLIP};
    const hk_step_act act = {.act = acts[i / 3], .a = -0.5f, .b = 0.5f}, act2 = {.act = HK_ACT_SIGMOID};
    const hk_residual residual = gate ? (hk_residual)(below(2) * HK_RESIDUAL_AFTER) : (hk_residual)below(3);
    const hk_step plain = {.size = sizeof plain,
                           .kind = HK_STEP_FIR,
                           .x = 1,
                           .k = gate ? 4 : 2,
                           .window = WINDOW,
                           .groups = 2,
                           .f = f,
                           .bias = bias};
    hk_step whole = plain, tail = {.size = sizeof tail, .kind = HK_STEP_MAP, .x = 2};
    whole.act = tail.act = act, whole.act2 = tail.act2 = act2, whole.gate = tail.gate = gate;
    whole.residual = tail.residual = residual, whole.add = tail.add = residual ? 1 : 0;
    whole.beta = tail.beta = i % 2 ? 1.0f : 0.3f;
    const hk_step both[2] = {plain, tail};
    int64_t made;
    float *a = chain_output(&whole, 1, 2, x, FRAMES, &made), *b = chain_output(both, 2, 2, x, FRAMES, &made);
    same(a, b, made * 2, 1e-5, "tail");
    free(a);
    free(b);
  }
  free(f);
  free(bias);
  free(x);
}

/* FIR steps one after the other, at a slower rate, equal to chains of their own: the same bits. */
static void test_chains(void) {
  enum { FRAMES = 9000, FIRST = 700, SECOND = 2500 };
  float *f = numbers(2 * FIRST), *g = numbers(2 * SECOND), *h = numbers(2 * 4), *x = numbers(FRAMES);
  const hk_step steps[3] = {
      {.size = sizeof *steps, .kind = HK_STEP_CONV, .x = 1, .k = 2, .window = 4, .stride = 3, .f = h},
      {.size = sizeof *steps, .kind = HK_STEP_FIR, .x = 2, .k = 2, .window = FIRST, .groups = 2, .f = f},
      {.size = sizeof *steps, .kind = HK_STEP_FIR, .x = 3, .k = 1, .window = SECOND, .f = g}};
  hk_step alone[2] = {steps[1], steps[2]};
  alone[0].x = alone[1].x = 1;
  int64_t slow, made;
  float *z = chain_output(steps, 1, 1, x, FRAMES, &slow), *u = chain_output(&alone[0], 1, 2, z, slow, &made);
  CHECK(slow == FRAMES / 3 && made == slow, "%lld, %lld", (long long)slow, (long long)made);
  float *want = chain_output(&alone[1], 1, 2, u, slow, &made), *got = chain_output(steps, 3, 1, x, FRAMES, &made);
  CHECK(made == slow && !memcmp(want, got, (size_t)made * sizeof *got), "FIR steps in a chain");
  free(z), free(u), free(want), free(got);
  free(f), free(g), free(h), free(x);
}

/* Prewarm is reset and then zeros: to the bit where x of the FIR is 0, within its rounding where it is a constant. */
static void test_prewarm(bool biased) {
  enum { WINDOW = 5000, FRAMES = 2000 };
  float *f = numbers(WINDOW), *x = numbers(FRAMES);
  const float one = 1.0f, half = 0.5f;
  const hk_step steps[2] = {
      {.size = sizeof *steps, .kind = HK_STEP_CONV, .x = 1, .k = 1, .f = &one, .bias = biased ? &half : NULL},
      {.size = sizeof *steps, .kind = HK_STEP_FIR, .x = 2, .k = 1, .window = WINDOW, .f = f}};
  const hk_chain_desc d = {.size = sizeof d, .channels = 1, .max_block = BLOCK, .steps = steps, .count = 2};
  hk_chain *chain = NULL;
  hk_stream *stream[2] = {NULL, NULL};
  CHECK_STATUS(HK_OK, "", hk_chain_create(&chain, &d, NULL, 0));
  for (int i = 0; i < 2; i++) CHECK_STATUS(HK_OK, "", hk_stream_create(&stream[i], chain, NULL, 0));
  static const float zeros[BLOCK];
  static float a[FRAMES], b[FRAMES], sink[BLOCK];
  const int64_t frames[] = {0, 1, 999, WINDOW - 1, WINDOW, 12345, 31000};
  for (size_t i = 0; i < HK_COUNT(frames); i++) {
    hk_stream_process(stream[1], x, BLOCK, sink, NULL);
    CHECK_STATUS(HK_OK, "", hk_stream_prewarm(stream[1], frames[i]));
    hk_stream_reset(stream[0]);
    for (int64_t t = 0; t < frames[i]; t += BLOCK)
      hk_stream_process(stream[0], zeros, hk_min64(BLOCK, frames[i] - t), sink, NULL);
    for (int j = 0; j < 2; j++) {
      hk_stream_process(stream[0], x + j * BLOCK, BLOCK, a + j * BLOCK, NULL);
      hk_stream_process(stream[1], x + j * BLOCK, BLOCK, b + j * BLOCK, NULL);
    }
    const bool steady = biased && frames[i] >= WINDOW;
    same(a, b, FRAMES, steady ? 1e-6 * WINDOW : 0, steady ? "prewarm of a constant" : "prewarm");
  }
  hk_stream_destroy(stream[0]);
  hk_stream_destroy(stream[1]);
  hk_chain_destroy(chain);
  free(f);
  free(x);
}

/* A dead FIR costs nothing; the facts of a live one; a state with marks outside is refused. */
static void test_facts(void) {
  enum { WINDOW = 3000 };
  float *f = numbers(WINDOW);
  const hk_step steps[2] = {{.size = sizeof *steps, .kind = HK_STEP_MAP, .x = 1},
                            {.size = sizeof *steps, .kind = HK_STEP_FIR, .x = 1, .k = 1, .window = WINDOW, .f = f}};
  for (int output = 2; output < 4; output++) {
    const hk_chain_desc d = {
        .size = sizeof d, .channels = 1, .max_block = 64, .steps = steps, .count = 2, .output = output};
    hk_chain *chain = NULL;
    hk_stream *stream = NULL;
    hk_chain_facts facts = {.size = sizeof facts};
    CHECK_STATUS(HK_OK, "", hk_chain_create(&chain, &d, NULL, 0));
    CHECK_STATUS(HK_OK, "", hk_stream_create(&stream, chain, NULL, 0));
    CHECK_STATUS(HK_OK, "", hk_chain_info(chain, &facts));
    CHECK(facts.flops == (output == 2 ? 0 : 2.0 * WINDOW), "%g", facts.flops);
    CHECK((facts.stream_bytes > 4 * WINDOW) == (output == 3), "%zu bytes", facts.stream_bytes);
    char *state = malloc(facts.state_bytes);
    CHECK_STATUS(HK_OK, "", hk_stream_save(stream, state, facts.state_bytes));
    if (output == 3) {
      memset(state + 32 + 2 * 64, 0x7f, 16); /* after phases and positions */
      CHECK_STATUS(HK_INVALID, "state", hk_stream_restore(stream, state, facts.state_bytes));
    }
    free(state);
    hk_stream_destroy(stream);
    hk_chain_destroy(chain);
  }
  free(f);
}

static void test_refusals(void) {
  const float f[64] = {0};
  hk_step s = {.size = sizeof s, .kind = HK_STEP_FIR, .x = 1, .k = 2, .window = 8, .f = f};
  const hk_chain_desc d = {.size = sizeof d, .channels = 2, .max_block = 64, .steps = &s, .count = 1};
  CHECK_STATUS(HK_OK, "", hk_chain_measure(&d, NULL, NULL));
  s.window = HK_FIR_WINDOW_MAX + 1;
  CHECK_STATUS(HK_INVALID, "window is 2097153", hk_chain_measure(&d, NULL, NULL));
  s.window = 8, s.stride = 2;
  CHECK_STATUS(HK_INVALID, "stride is 2", hk_chain_measure(&d, NULL, NULL));
  s.stride = 1, s.dilation = 3;
  CHECK_STATUS(HK_INVALID, "dilation 3", hk_chain_measure(&d, NULL, NULL));
  s.dilation = 1, s.mix = 1, s.mix_f = f;
  CHECK_STATUS(HK_INVALID, "mix", hk_chain_measure(&d, NULL, NULL));
  s.mix = 0, s.groups = 3;
  CHECK_STATUS(HK_INVALID, "groups", hk_chain_measure(&d, NULL, NULL));
  s.groups = 1, s.f = NULL;
  CHECK_STATUS(HK_INVALID, "f is missing", hk_chain_measure(&d, NULL, NULL));
  s.f = f, s.window = HK_FIR_WINDOW_MAX;
  CHECK_STATUS(HK_OK, "", hk_chain_measure(&d, NULL, NULL));
}

int main(void) {
  const hk_isa isas[] = {HK_ISA_SCALAR, HK_ISA_NEON, HK_ISA_AVX2, HK_ISA_AVX512};
  for (size_t i = 0; i < HK_COUNT(isas); i++) {
    if (hk_cpu_has(isas[i])) test_shapes(isas[i]);
  }
  const shape longest[] = {{1, 2, 1, 100000, 130000, HK_ISA_BEST}, {1, 1, 1, 480000, 800000, HK_ISA_BEST}};
  for (size_t i = 0; i < HK_COUNT(longest); i++) try_shape(&longest[i]); /* three levels and four */
  test_tails();
  test_chains();
  test_prewarm(false);
  test_prewarm(true);
  test_facts();
  test_refusals();
  return hk_test_end();
}
