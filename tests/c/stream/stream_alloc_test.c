/* Chains and streams short of memory, and of hostile sizes. Every allocation of creation fails once, alone and together
 * with all that follow it: HK_NO_MEMORY with a sentence, nothing leaked, and what is made afterwards plays the same.
 * Then sizes that once overflowed, and chains that once took many seconds to lower. */
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "support/allocs.h"
#include "support/check.h"

enum { FRAMES = 200, MOST = 200 };

static float weights[4096], signal_in[8 * FRAMES];

/* One step of every kind: strided, grouped and gated convolutions, slopes, a mix-in, FiLM, an LSTM, sums. */
static hk_chain_desc everything(void) {
  static hk_step s[8];
  const hk_step steps[] = {
      {.kind = HK_STEP_CONV, .x = 1, .k = 8, .window = 3, .dilation = 30, .f = weights, .bias = weights},
      {.kind = HK_STEP_MAP, .x = 2, .act = {.act = HK_ACT_PRELU, .slopes = weights}},
      {.kind = HK_STEP_CONV,
       .x = 3,
       .k = 8,
       .groups = 2,
       .window = 2,
       .f = weights,
       .mix = 1,
       .mix_f = weights,
       .gate = HK_GATE_GATED,
       .act = {.act = HK_ACT_TANH},
       .act2 = {.act = HK_ACT_SIGMOID}},
      {.kind = HK_STEP_CONV, .x = 1, .k = 8, .f = weights},
      {.kind = HK_STEP_SCALE, .x = 4, .x2 = 5},
      {.kind = HK_STEP_MAP, .x = 4, .residual = HK_RESIDUAL_AFTER, .add = 6, .beta = 1.0f},
      {.kind = HK_STEP_LSTM, .x = 7, .k = 5, .f = weights, .bias = weights, .h0 = weights, .c0 = weights},
      {.kind = HK_STEP_CONV, .x = 8, .k = 2, .stride = 3, .window = 4, .f = weights}};
  memcpy(s, steps, sizeof s);
  for (int i = 0; i < 8; i++) s[i].size = sizeof s[i];
  return (hk_chain_desc){.size = sizeof(hk_chain_desc), .channels = 2, .max_block = FRAMES, .steps = s, .count = 8};
}

/* Long windows of two levels, one after the other. */
static hk_chain_desc windows(void) {
  static hk_step s[2];
  s[0] = (hk_step){.size = sizeof *s, .kind = HK_STEP_FIR, .x = 1, .k = 2, .window = 900, .f = weights};
  s[1] = (hk_step){.size = sizeof *s, .kind = HK_STEP_FIR, .x = 2, .k = 1, .groups = 1, .window = 2000, .f = weights};
  return (hk_chain_desc){.size = sizeof(hk_chain_desc), .channels = 2, .max_block = FRAMES, .steps = s, .count = 2};
}

static hk_status make_conv(hk_chain **chain, const char *problem, const char *epilogue) {
  hk_problem p;
  hk_epilogue e;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, problem));
  CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, epilogue));
  const hk_weights w = {.size = sizeof w, .f = weights, .scale = weights, .bias = weights, .slopes = weights};
  return hk_chain_create_conv(chain, &p, &e, NULL, &w);
}

/* Chain and stream; which of them ran out of memory does not matter. */
static hk_status make(int kind, hk_chain **chain, hk_stream **stream) {
  hk_status e;
  size_t chain_bytes, stream_bytes;
  const hk_chain_desc d = kind == 4 ? windows() : everything();
  *chain = NULL;
  *stream = NULL;
  if (kind == 0 || kind == 4) e = hk_chain_create(chain, &d, NULL, 0);
  else if (kind == 1) e = make_conv(chain, "1d_c4_i200_k8_w3_d7_p14:0_first", "scale+bias+prelu");
  else if (kind == 2) e = make_conv(chain, "1d_c4_i200_k4_w5_p4:0_g4_last", "bias+tanh+sum:0.5");
  else e = hk_chain_measure(&d, &chain_bytes, &stream_bytes);
  if (!e && *chain) e = hk_stream_create(stream, *chain, NULL, 0);
  return e;
}

static void unmake(hk_chain *chain, hk_stream *stream) {
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
}

static void play(hk_stream *s, float *y) {
  int64_t made_frames = 0;
  memset(y, 0, 8 * FRAMES * sizeof *y);
  CHECK_STATUS(HK_OK, "", hk_stream_prewarm(s, 1000));
  made = 0;
  CHECK_STATUS(HK_OK, "", hk_stream_process(s, signal_in, FRAMES, y, &made_frames));
  CHECK(made == 0, "process made %ld allocations", made);
}

static void test_failing(int kind) {
  static float want[8 * FRAMES], got[8 * FRAMES];
  hk_chain *chain;
  hk_stream *stream;
  CHECK_STATUS(HK_OK, "", make(kind, &chain, &stream));
  if (stream) play(stream, want);
  unmake(chain, stream);
  for (fail_rest = 0; fail_rest < 2; fail_rest++) {
    for (long n = 1; n < MOST; n++) {
      const long before = live;
      refused = 0;
      fail_at = n;
      const hk_status e = make(kind, &chain, &stream);
      fail_at = 0;
      if (refused) {
        CHECK(e == HK_NO_MEMORY && strstr(hk_last_error(), "no memory"), "kind %d, allocation %ld: %s \"%s\"", kind, n,
              hk_status_name(e), hk_last_error());
        CHECK(!stream, "kind %d, allocation %ld: a stream all the same", kind, n);
      } else {
        CHECK_STATUS(HK_OK, "", e);
        if (stream) play(stream, got);
        if (stream) CHECK(!memcmp(want, got, sizeof want), "kind %d plays something else", kind);
      }
      unmake(chain, stream);
      CHECK(live == before, "kind %d, allocation %ld: %ld blocks left", kind, n, live - before);
      if (!refused) break;
      CHECK(n + 1 < MOST, "kind %d: never without a failing allocation", kind);
    }
  }
  fail_rest = 0;
}

/* ---- hostile sizes */
static void test_sizes(void) {
  /* Zero strides: one weight in memory, up to 2^46 in the convolution. Refused before anything is gathered. */
  static const char *const problems[] = {
      "1d_c1073741824_i4_k65536_w1_last_fs=0.0.0.0.0", "1d_c1099511627776_i1_k64_w1_last_fs=0.0.0.0.0",
      "1d_c16384_i4_k65537_w1_last_fs=0.0.0.0.0", "1d_c1_i4_k1_w100000000_p99999999:0_last_fs=0.0.0.0.0"};
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
    hk_chain *chain = NULL;
    const long before = live;
    const hk_status e = make_conv(&chain, problems[i], "none");
    CHECK(e == HK_INVALID && !chain && live == before, "%s: %s \"%s\"", problems[i], hk_status_name(e),
          hk_last_error());
  }
}

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Every step a history, or a rate, of its own */
static void test_long(bool rates) {
  enum { STEPS = 65536 };
  hk_step *s = calloc(STEPS, sizeof *s);
  if (!s) exit(1);
  for (int i = 0; i < STEPS; i++) {
    s[i] = (hk_step){.size = sizeof *s,
                     .kind = HK_STEP_CONV,
                     .x = rates ? 1 : i + 1,
                     .k = 1,
                     .window = 2,
                     .f = weights,
                     .stride = rates ? 2 + i % 60000 : 1};
  }
  const hk_chain_desc d = {.size = sizeof d, .channels = 1, .max_block = 64, .steps = s, .count = STEPS};
  size_t chain_bytes, stream_bytes;
  const double start = seconds();
  if (rates) CHECK_STATUS(HK_INVALID, "at most 1024 are supported", hk_chain_measure(&d, &chain_bytes, &stream_bytes));
  else CHECK_STATUS(HK_OK, "", hk_chain_measure(&d, &chain_bytes, &stream_bytes));
#ifndef HK_SANITIZED
  CHECK(seconds() - start < 1, "lowering %d steps took %.1f s", STEPS, seconds() - start);
#else
  (void)start;
#endif
  free(s);
}

int main(void) {
  uint64_t seed = 3;
  for (int i = 0; i < 4096; i++) weights[i] = (float)hk_test_integer(&seed, 20) / 64.0f;
  for (int i = 0; i < 8 * FRAMES; i++) signal_in[i] = (float)hk_test_integer(&seed, 20) / 32.0f;
  for (int kind = 0; kind < 5; kind++) test_failing(kind);
  test_sizes();
  test_long(false);
  test_long(true);
  return hk_test_end();
}
