/* FIR steps against the direct sum in double: windows from one tap to 100,000, one or more inputs and outputs, groups;
 * within 1e-6 of the peak on every ISA of this machine. The same bits for every cut into blocks, down to single frames,
 * after save and restore, and in two streams of one chain; chain, stream and blocks between guard pages. Then
 * refusals. */
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

/* At the first and the last frames, around multiples of 64, and at random ones. */
static void compare(const shape *s, const float *f, const float *bias, const float *x, const float *y) {
  const double peak = peak_of(s, f);
  double worst = 0;
  for (int i = 0; i < SAMPLES; i++) {
    int64_t t = i < 3 ? i : i < 6 ? s->frames - 1 - (i - 3) : below(s->frames);
    if (i % 5 == 4) t = hk_min64(s->frames - 1, hk_round_up(t, 64) - below(2));
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
  const shape longest = {1, 2, 1, 100000, 130000, HK_ISA_BEST};
  try_shape(&longest);
  test_refusals();
  return hk_test_end();
}
