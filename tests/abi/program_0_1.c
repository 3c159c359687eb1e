/* A program of hankel 0.1: compiled against its header (hankel_0_1.h, as released), linked to today's library. Returns the
 * number of things that no longer work. Each struct stands before a guard that the library must not write. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hankel_0_1.h"

static int failed;
#define CHECK(condition) \
  do { \
    if (!(condition)) failed++, fprintf(stderr, "%d: %s: %s\n", __LINE__, #condition, hk_last_error()); \
  } while (0)
#define GUARD 0x5a5a5a5a5a5a5a5aull

enum { C = 3, K = 4, W = 20, S = 3 };
static float x[C * W], f[K * C * S], bias[K], y[K * W];

static float wanted(int k, int p) {
  float v = bias[k];
  for (int c = 0; c < C; c++)
    for (int s = 0; s < S; s++)
      if (p + s >= 1 && p + s - 1 < W) v += x[c * W + p + s - 1] * f[(k * C + c) * S + s];
  return v > 0 ? v : 0;
}

static void helpers(void) {
  struct { hk_problem p; unsigned long long guard; } g = {.guard = GUARD};
  const int64_t in[2] = {9, 9}, window[2] = {3, 3};
  CHECK(!hk_problem_conv1d(&g.p, HK_CHANNELS_FIRST, 1, C, W, K, S, 1, 1, 1, 1) && g.p.size == sizeof g.p);
  CHECK(!hk_problem_conv2d(&g.p, HK_CHANNELS_LAST, 1, 4, 9, 9, 8, 3, 3, 2, 1, 1, 2) && g.p.in[1] == 9);
  CHECK(!hk_problem_conv3d(&g.p, HK_CHANNELS_LAST, 1, 4, 5, 6, 7, 8, 3, 3, 3, 1, 1, 1, 1) && g.p.in[2] == 7);
  CHECK(!hk_problem_depthwise(&g.p, HK_CHANNELS_LAST, 2, 1, 8, in, window, 2, 1, HK_PAD_SAME_UPPER, 1) && g.p.k == 16);
  CHECK(hk_problem_conv1d(&g.p, HK_CHANNELS_FIRST, 1, C, W, K, S, 0, 1, 1, 1) == HK_INVALID);
  CHECK(!hk_problem_parse(&g.p, "1d_n1_c3_i20_k4_w3_p1_first"));
  CHECK(g.guard == GUARD);
}

static void plan(void) {
  struct { hk_epilogue e; unsigned long long guard; } g = {.guard = GUARD};
  hk_problem p;
  hk_plan *made = NULL;
  CHECK(!hk_problem_conv1d(&p, HK_CHANNELS_FIRST, 1, C, W, K, S, 1, 1, 1, 1));
  CHECK(!hk_epilogue_parse(&g.e, "bias+relu") && g.guard == GUARD);
  const hk_options o = {.size = sizeof o, .threads = 1};
  const hk_weights w = {.size = sizeof w, .f = f, .bias = bias};
  CHECK(!hk_plan_create(&made, &p, &g.e, &o, &w));
  if (!made) return;
  const size_t bytes = hk_plan_workspace(made);
  void *workspace = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
  const hk_args a = {.size = sizeof a, .x = x, .y = y, .workspace = workspace, .workspace_bytes = bytes};
  CHECK(!hk_plan_execute(made, &a));
  for (int k = 0; k < K; k++)
    for (int q = 0; q < W; q++) CHECK(fabsf(y[k * W + q] - wanted(k, q)) < 1e-5f);
  hk_plan *like = NULL;
  CHECK(!hk_plan_create_like(&like, made, &p));
  hk_plan_destroy(like);
  hk_plan_destroy(made);
  free(workspace);
}

static void on_candidate(void *context, const hk_candidate *c) {
  if (c->size >= sizeof *c && c->decision) ++*(int *)context;
}

static void facts(void) {
  struct { hk_machine m; unsigned long long guard; } g = {.m = {.size = sizeof g.m}, .guard = GUARD};
  CHECK(!hk_machine_info(&g.m) && g.m.size == sizeof g.m && g.m.cores > 0 && g.m.l2_bytes > 0);
  CHECK(g.guard == GUARD);
  hk_problem p;
  int count = 0;
  CHECK(!hk_problem_conv1d(&p, HK_CHANNELS_FIRST, 1, C, W, K, S, 1, 1, 1, 1));
  CHECK(!hk_plan_candidates(&p, NULL, NULL, on_candidate, &count) && count > 0);
}

static void chain(void) {
  struct { hk_chain_facts f; unsigned long long guard; } g = {.f = {.size = sizeof g.f}, .guard = GUARD};
  static const float taps[2] = {2, 1};
  const hk_step steps[2] = {{.size = sizeof steps[0], .kind = HK_STEP_CONV, .x = 1, .k = 1, .window = 2, .f = taps},
                            {.size = sizeof steps[0], .kind = HK_STEP_MAP, .x = 2, .act = {.act = HK_ACT_RELU}}};
  const hk_chain_desc d = {.size = sizeof d, .channels = 1, .max_block = 4, .steps = steps, .count = 2};
  hk_chain *made = NULL;
  hk_stream *stream = NULL;
  float in[4] = {1, 2, 3, -9}, out[4];
  CHECK(!hk_chain_create(&made, &d, NULL, 0) && !hk_stream_create(&stream, made, NULL, 0));
  CHECK(!hk_stream_process(stream, in, 4, out, NULL) && out[0] == 1 && out[1] == 4 && out[2] == 7 && out[3] == 0);
  CHECK(!hk_chain_info(made, &g.f) && g.f.size == sizeof g.f && g.f.receptive_field == 2 && g.guard == GUARD);
  hk_stream_destroy(stream);
  hk_chain_destroy(made);
}

int main(void) {
  for (int i = 0; i < C * W; i++) x[i] = (float)(i % 7 - 3);
  for (int i = 0; i < K * C * S; i++) f[i] = (float)(i % 5 - 2);
  for (int i = 0; i < K; i++) bias[i] = (float)i;
  helpers();
  plan();
  facts();
  chain();
  return failed;
}
