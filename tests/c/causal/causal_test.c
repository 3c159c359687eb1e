/* hk_causal against the formula of hankel.h (tests/c/support/causal_want.c): thousands of random calls, each by the way
 * that is chosen on every ISA, with one thread and with three, and by the scalar reference itself. Run with a count and
 * a seed for more: causal_test 100000 7. */
#include <stdlib.h>

#include "base/base.h"
#include "cpu/ref/causal.h"
#include "causal/causal.h"
#include "support/causal.h"
#include "support/check.h"

static void report(const causal_trial *t, uint64_t seed, const char *what) {
  fprintf(stderr, "  %s, seed %llu\n", what, (unsigned long long)seed);
  causal_trial_print(t);
}

static void run(causal_trial *t, uint64_t seed, hk_isa isa, int threads) {
  const hk_options o = {.size = sizeof o, .isa = isa, .threads = threads};
  hk_causal *k;
  causal_trial_reset(t);
  CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &t->d, &o));
  if (!k) {
    report(t, seed, "create");
    return;
  }
  char text[256];
  CHECK_STATUS(HK_OK, "", hk_causal_print(k, text, sizeof text, NULL));
  hk_status s;
  int wrong = 0;
  if (t->d.gradient) {
    CHECK_STATUS(HK_OK, "", s = hk_causal_gradient(k, &t->a, &t->g));
    if (!s) wrong = causal_trial_compare_gradient(t);
  } else {
    CHECK_STATUS(HK_OK, "", s = hk_causal_execute(k, &t->a));
    if (!s) wrong = causal_trial_compare(t);
  }
  CHECK(!s && !wrong, "%d wrong: %s", wrong, text);
  if (s || wrong) report(t, seed, hk_isa_name(isa));
  hk_causal_destroy(k);
}

/* The reference, without the choice of a way. */
static void run_reference(causal_trial *t, uint64_t seed) {
  hk_causal_desc d = t->d;
  CHECK_STATUS(HK_OK, "", hk_causal_check(&d));
  causal_trial_reset(t);
  for (int64_t s = 0; s < d.n && !d.gradient; s++) {
    hk_causal_seq q;
    hk_causal_seq_make(&q, &d, &t->a, s);
    for (int64_t c = 0; c < d.c && !q.skipped; c++) hk_ref_causal(&d, &t->a, &q, c);
  }
  hk_causal_grads g = t->g;
  if (d.gradient) CHECK_STATUS(HK_OK, "", hk_causal_check_dx(&d, &g.dx_at));
  for (int64_t c = 0; c < d.c && d.gradient; c++) hk_ref_causal_gradient(&d, &t->a, &g, c);
  const int wrong = d.gradient ? causal_trial_compare_gradient(t) : causal_trial_compare(t);
  CHECK(!wrong, "%d wrong in the reference", wrong);
  if (wrong) report(t, seed, "reference");
}

/* The same bits with one thread and with five, forward and backward, in both layouts. */
static void same_bits(hk_layout layout) {
  enum { N = 3, C = 200, L = 700, W = 4, E = N * C * L };
  float *memory = calloc(6 * E + 4 * C * W, sizeof *memory);
  if (!memory) abort();
  float *x = memory, *f = x + 6 * E;
  uint64_t seed = 9;
  for (int i = 0; i < E; i++) x[i] = hk_test_float(&seed);
  for (int i = 0; i < C * W; i++) f[i] = hk_test_float(&seed);
  hk_causal_desc d = {.size = sizeof d, .n = N, .c = C, .length = L, .window = W, .act = HK_ACT_SILU, .gradient = 1};
  if (layout == HK_CHANNELS_LAST) d.x = (hk_causal_strides){C * L, 1, C};
  for (int run = 0; run < 2; run++) {
    const hk_options o = {.size = sizeof o, .threads = run ? 5 : 1};
    hk_causal *k;
    CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &d, &o));
    const hk_causal_args a = {.size = sizeof a, .x = x, .f = f, .y = x + (1 + run) * E};
    const hk_causal_grads g = {.size = sizeof g, .dy = x, .dx = x + (3 + run) * E, .df = f + (1 + run) * C * W};
    CHECK_STATUS(HK_OK, "", hk_causal_execute(k, &a));
    CHECK_STATUS(HK_OK, "", hk_causal_gradient(k, &a, &g));
    hk_causal_destroy(k);
  }
  CHECK(!memcmp(x + E, x + 2 * E, E * sizeof *x), "y depends on the threads");
  CHECK(!memcmp(x + 3 * E, x + 4 * E, E * sizeof *x), "dx depends on the threads");
  CHECK(!memcmp(f + C * W, f + 2 * C * W, C * W * sizeof *f), "df depends on the threads");
  free(memory);
}

/* The same bits in both layouts and at every position, of each type: kernels, tails and heads of rows agree. */
static void same_layouts(hk_type type) {
  enum { C = 37, L = 61, W = 4 };
  static uint16_t x[2][C * L * 2], y[2][C * L * 2];
  static float f[C * W];
  uint64_t seed = 3;
  const int64_t strides[2][3] = {{0, L, 1}, {0, 1, C}};
  for (int i = 0; i < C * W; i++) f[i] = hk_test_float(&seed);
  for (int i = 0; i < C * L; i++) {
    const float v = 3 * hk_test_float(&seed);
    for (int s = 0; s < 2; s++) hk_store_element(type, x[s], i / L * strides[s][1] + i % L * strides[s][2], (double)v);
  }
  for (int s = 0; s < 2; s++) {
    hk_causal_desc d = {.size = sizeof d, .x_type = type, .y_type = type, .n = 1, .c = C, .length = L, .window = W};
    d.act = HK_ACT_SILU, d.x = (hk_causal_strides){strides[s][0], strides[s][1], strides[s][2]};
    hk_causal *k;
    CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &d, NULL));
    const hk_causal_args a = {.size = sizeof a, .x = x[s], .f = f, .y = y[s]};
    CHECK_STATUS(HK_OK, "", hk_causal_execute(k, &a));
    hk_causal_destroy(k);
  }
  int wrong = 0;
  for (int i = 0; i < C * L; i++)
    wrong += hk_load_element(type, y[0], i / L * L + i % L) != hk_load_element(type, y[1], i / L + i % L * C);
  CHECK(!wrong, "%d elements of %s depend on the layout", wrong, hk_type_name(type));
}

int main(int argc, char **argv) {
  const long count = argc > 1 ? atol(argv[1]) : 1500;
  uint64_t next = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  static const hk_isa isas[] = {HK_ISA_SCALAR, HK_ISA_NEON, HK_ISA_AVX2, HK_ISA_AVX512};
  for (long i = 0; i < count && hk_test_failed < 5; i++) {
    const uint64_t seed = next++;
    uint64_t state = seed * 0x9e3779b97f4a7c15u;
    causal_trial t;
    causal_trial_make(&t, &state, i % 4 == 3 ? CAUSAL_GRADIENT : CAUSAL_FORWARD);
    run_reference(&t, seed);
    for (int j = 0; j < HK_COUNT(isas); j++)
      if (hk_cpu_has(isas[j])) run(&t, seed, isas[j], i % 16 == 0 ? 3 : 1);
    causal_trial_free(&t);
  }
  same_layouts(HK_F32);
  same_layouts(HK_F16);
  same_layouts(HK_BF16);
  same_bits(HK_CHANNELS_FIRST);
  same_bits(HK_CHANNELS_LAST);
  return hk_test_end();
}
