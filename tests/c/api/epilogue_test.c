/* Epilogues with a zero convolution and position-coded sources, so that a wrong coordinate shows: residuals in both
 * orders and odd layouts, user functions, user stores, gates, on every candidate. */
#include <math.h>
#include <stdlib.h>

#include "support/check.h"

enum { N = 2, K = 6, P = 5, Q = 7, G = 2, SIZE = N * K * P * Q };
static float x[4096], f[4096], c[2 * SIZE], y[SIZE];

static float code(int64_t n, int64_t k, int64_t p, int64_t q) { return (float)(((n * 8 + k) * 8 + p) * 8 + q); }

static void add_code(void *user, const hk_at *at, int64_t count, void *values) {
  float *v = values;
  __atomic_fetch_add((long *)user, count, __ATOMIC_RELAXED);
  for (int64_t i = 0; i < count; i++)
    v[i] += code(at->n, at->k + (at->along_k ? i : 0), at->p[0], at->p[1] + (at->along_k ? 0 : i));
}

static void keep(void *user, const hk_at *at, int64_t count, const void *values) {
  const float *v = values;
  (void)user;
  for (int64_t i = 0; i < count; i++) {
    const int64_t k = at->k + (at->along_k ? i : 0), q = at->p[1] + (at->along_k ? 0 : i);
    y[((at->n * K + k) * P + at->p[0]) * Q + q] = v[i] + 1;
  }
}

typedef struct test {
  hk_problem p;
  hk_epilogue e;
  const char *name;
  int layout;
  float factor, offset;
} test;

static int64_t place(const hk_problem *p, int64_t n, int64_t k, int64_t i, int64_t j) {
  const int64_t per = K / G;
  return p->y.group * (k / per) + p->y.channel * (k % per) + p->y.outer * n + p->y.at[0] * i + p->y.at[1] * j;
}

static void run_one(void *context, const hk_candidate *cand) {
  test *t = context;
  if (cand->refusal) return;
  char text[512];
  snprintf(text, sizeof text, "%s", cand->decision);
  const hk_options o = {.size = sizeof o, .decision = text, .threads = 2};
  const hk_weights w = {.size = sizeof w, .f = f};
  hk_plan *plan;
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &t->p, &t->e, &o, &w));
  long seen = 0;
  void *workspace = aligned_alloc(64, (hk_plan_workspace(plan) + 127) / 64 * 64);
  const hk_args a = {.size = sizeof a,
                     .x = x,
                     .y = y,
                     .c = c,
                     .user = &seen,
                     .workspace = workspace,
                     .workspace_bytes = hk_plan_workspace(plan)};
  for (int i = 0; i < SIZE; i++) y[i] = -7777;
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  for (int64_t n = 0; n < N; n++)
    for (int64_t k = 0; k < K; k++)
      for (int64_t i = 0; i < P; i++)
        for (int64_t j = 0; j < Q; j++) {
          const int64_t at = t->e.store ? ((n * K + k) * P + i) * Q + j : place(&t->p, n, k, i, j);
          const float want = t->factor * code(n, k, i, j) + t->offset;
          CHECK(y[at] == want, "%s by %s: y[%d,%d,%d,%d] = %g, not %g", t->name, text, (int)n, (int)k, (int)i, (int)j,
                (double)y[at], (double)want);
        }
  if (t->e.user2 || t->e.act == HK_ACT_USER) CHECK(seen == SIZE, "%s by %s: %ld values seen", t->name, text, seen);
  free(workspace);
  hk_plan_destroy(plan);
}

static void each(const char *name, hk_layout layout, hk_epilogue e, float factor, float offset) {
  test t = {.e = e, .name = name, .factor = factor, .offset = offset};
  const hk_conv_desc d = {.size = sizeof d,
                          .rank = 2,
                          .layout = layout,
                          .n = N,
                          .c = 4,
                          .k = K,
                          .groups = G,
                          .in = {P, Q},
                          .window = {3, 3},
                          .pad_lo = {1, 1},
                          .pad_hi = {1, 1}};
  CHECK_STATUS(HK_OK, "", hk_problem_conv(&t.p, &d));
  for (int64_t n = 0; n < N; n++)
    for (int64_t k = 0; k < K; k++)
      for (int64_t i = 0; i < P; i++)
        for (int64_t j = 0; j < Q; j++) {
          const int64_t at = e.c_strided ? e.c.group * (k / (K / G)) + e.c.channel * (k % (K / G)) + e.c.outer * n +
                                               e.c.at[0] * i + e.c.at[1] * j
                                         : place(&t.p, n, k, i, j);
          c[at] = code(n, k, i, j);
        }
  CHECK_STATUS(HK_OK, "", hk_plan_candidates(&t.p, &t.e, NULL, run_one, &t));
}

static void gates(void) {
  hk_problem p;
  hk_plan *plan;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_c1_i1_k4_w1"));
  CHECK_STATUS(HK_OK, "", hk_problem_dense_y(&p, HK_CHANNELS_FIRST, 2));
  float one = 1, w4[4] = {0.5f, -1, 2, 0.25f}, out[3] = {9, 9, 9};
  const hk_weights w = {.size = sizeof w, .f = w4};
  const hk_args a = {.size = sizeof a, .x = &one, .y = out};
  hk_epilogue e;
  CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, "gated:tanh:sigmoid"));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, &e, NULL, &w));
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  for (int i = 0; i < 2; i++) {
    const double want = tanh(w4[i]) / (1 + exp(-w4[i + 2]));
    CHECK(fabs(out[i] - want) < 1e-6, "gated %d: %g, not %g", i, (double)out[i], want);
  }
  CHECK(out[2] == 9, "a gate wrote past its channels");
  hk_plan_destroy(plan);
  CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, "blended:relu:hardtanh=0=1"));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, &e, NULL, &w));
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  CHECK(out[0] == 0.5f && out[1] == -0.75f, "blended: %g %g", (double)out[0], (double)out[1]);
  hk_plan_destroy(plan);
}

/* beta = 0 reads no C: NaN there does not reach y, and NULL will do. */
static void no_residual(void) {
  static const char *const texts[] = {"sum:0", "presum:0+relu", "relu+sum:0"};
  hk_problem p;
  hk_epilogue e;
  float one = 1, w4[4] = {0.5f, 1, 2, 0.25f}, out[4], nans[4] = {NAN, NAN, NAN, NAN};
  const hk_weights w = {.size = sizeof w, .f = w4};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_c1_i1_k4_w1"));
  for (size_t i = 0; i < 2 * sizeof texts / sizeof texts[0]; i++) {
    const hk_args a = {.size = sizeof a, .x = &one, .y = out, .c = i % 2 ? nans : NULL};
    hk_plan *plan = NULL;
    CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, texts[i / 2]));
    CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, &e, NULL, &w));
    CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
    CHECK(!memcmp(out, w4, sizeof out), "%s: %g", texts[i / 2], (double)out[0]);
    hk_plan_destroy(plan);
  }
}

/* Without channels there is no bias to give: a stateful plan, which has its state to write, takes NULL. */
static void no_channels(void) {
  hk_problem p;
  hk_epilogue e;
  hk_plan *plan = NULL;
  const hk_options o = {.size = sizeof o, .stateful = 1};
  float x[6] = {1, 2, 3, 4, 5, 6}, state[2] = {0, 0};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_c1_i6_k0_w3_p2:0_first"));
  CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, "scale+bias"));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, &e, &o, NULL));
  const hk_args a = {.size = sizeof a, .x = x, .state_out = state};
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  CHECK(state[0] == 5 && state[1] == 6, "the state is %g %g", (double)state[0], (double)state[1]);
  hk_plan_destroy(plan);
}

int main(void) {
  no_channels();
  no_residual();
  for (int layout = 0; layout < 2; layout++) {
    const hk_epilogue zero = {.size = sizeof zero};
    hk_epilogue e = zero;
    e.residual = HK_RESIDUAL_AFTER, e.beta = 2;
    each("sum", (hk_layout)layout, e, 2, 0);
    e.residual = HK_RESIDUAL_BEFORE, e.beta = -1, e.act = HK_ACT_RELU;
    each("presum+relu", (hk_layout)layout, e, 0, 0);
    e.residual = HK_RESIDUAL_AFTER;
    each("relu+sum", (hk_layout)layout, e, -1, 0);
    e = zero, e.residual = HK_RESIDUAL_AFTER, e.beta = 1, e.c_strided = 1;
    e.c = (hk_strides){0, 3, 12 * P * Q, 1, {6, 6 * P}}; /* [n][q][p][g][k], gapped by n */
    each("odd residual", (hk_layout)layout, e, 1, 0);
    e = zero, e.act = HK_ACT_USER, e.user = add_code;
    each("user", (hk_layout)layout, e, 1, 0);
    e = zero, e.user2 = add_code;
    each("user2", (hk_layout)layout, e, 1, 0);
    e.store = keep;
    each("user2+store", (hk_layout)layout, e, 1, 1);
  }
  gates();
  return hk_test_end();
}
