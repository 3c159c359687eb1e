/* Gradients of filters: the planner knows them by their shape, any number of threads gives the same bits, sums may be
 * added to those in y, and a plan without workspace exists. And the gradient of the bias. */
#include <stdlib.h>

#include "core/core.h"
#include "support/check.h"
#include "support/trial.h"

typedef struct layer {
  const char *forward, *algorithm; /* of the gradient */
} layer;

static const layer layers[] = {{"2d_n1_c64_i28x28_k64_w3x3_p1_f32_last", "outer"},
                               {"2d_n1_c64_i28x28_k64_w3x3_p1_f32_first", "outer"},
                               {"2d_n2_c64_i28x28_k96_w3x3_s2_p1_f32_last", "outer"},
                               {"2d_n1_c128_i28x28_k64_w1x1_f32_first", "outer"},
                               {"2d_n1_c3_i64x64_k64_w7x7_s2_p3_f32_last", "outer"},
                               {"2d_n2_c64_i28x28_k64_w3x3_p1_bf16:f32:bf16_last", "outer"},
                               {"2d_n2_c32_i28x28_k40_w3x3_s2_p1_g2_f64_last", "outer64"},
                               {"3d_n1_c32_i6x14x14_k32_w3x3x3_p1_f32_first", "outer"},
                               {"1d_n2_c64_i500_k64_w9_p4_f32_last", "outer"},
                               {"2d_n1_c96_i28x28_k96_w3x3_p1_g96_f32_last", "tapsum"},
                               {"2d_n1_c96_i28x28_k96_w7x7_p3_g96_f32_first", "tapsum"},
                               {"2d_n1_c128_i28x28_k128_w3x3_p1_g32_f32_last", "tapsum"},
                               {"1d_n2_c64_i500_k64_w4_p3:0_g64_f32_last", "tapsum"},
                               {"3d_n1_c32_i6x14x14_k32_w3x3x3_p1_g32_f32_first", "tapsum"}};

static void gradient_text(const char *forward, char text[512]) {
  hk_problem p = {.size = sizeof p}, grad = {.size = sizeof grad};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, forward));
  CHECK_STATUS(HK_OK, "", hk_problem_grad_filter(&p, &grad));
  CHECK_STATUS(HK_OK, "", hk_problem_print(&grad, text, 512, NULL));
}

/* Runs a plan with f at execute; its decision goes to text. */
static hk_status execute(trial *t, const hk_options *o, int poison, char text[512]) {
  hk_plan *plan = NULL;
  hk_status s = hk_plan_create(&plan, &t->problem, &t->epilogue, o, NULL);
  if (s) return s;
  hk_plan_decision(plan, text, 512, NULL);
  trial_prepare(t, plan, poison);
  t->args.f = t->memory[1];
  s = hk_plan_execute(plan, &t->args);
  hk_plan_destroy(plan);
  return s;
}

static void threads(trial *t, const layer *l, const char *decision) {
  const size_t bytes = trial_y_bytes(t);
  char *first = malloc(bytes), text[512];
  for (int n = 1; n <= 7; n += n < 3 ? 1 : 2) {
    const hk_options o = {.size = sizeof o, .threads = n, .decision = decision};
    CHECK_STATUS(HK_OK, "", execute(t, &o, 0x7f, text));
    if (n == 1) memcpy(first, t->memory[2], bytes);
    CHECK(!memcmp(first, t->memory[2], bytes), "%s: %d threads give other bits: %s", l->forward, n, text);
  }
  free(first);
}

static void chosen(const layer *l) {
  char problem[512], text[512] = "";
  gradient_text(l->forward, problem);
  trial t;
  trial_make(&t, problem, "none", 1);
  const hk_options one = {.size = sizeof one, .threads = 1};
  CHECK_STATUS(HK_OK, "", execute(&t, &one, 0x7f, text));
  CHECK(!strncmp(text, l->algorithm, strlen(l->algorithm)), "%s: %s in place of %s", l->forward, text, l->algorithm);
  threads(&t, l, l->algorithm);
  char cut[64];
  const bool slices = strcmp(l->algorithm, "outer64") != 0;
  snprintf(cut, sizeof cut, "%s block=50%s", l->algorithm, slices ? " slices=5" : "");
  threads(&t, l, cut);
  trial_free(&t);
}

/* y = beta*y + df, as often as there are micro-batches. */
static void accumulated(const layer *l, const char *decision) {
  char problem[512], text[512];
  gradient_text(l->forward, problem);
  trial t, sum;
  trial_make(&t, problem, "none", 3);
  trial_make(&sum, problem, "sum:1", 3);
  const hk_options o = {.size = sizeof o, .threads = 2, .decision = decision};
  CHECK_STATUS(HK_OK, "", execute(&t, &o, 0x7f, text));
  sum.args.c = sum.memory[2];
  CHECK_STATUS(HK_OK, "", execute(&sum, &o, 0, text)); /* 0 is the value 0 */
  CHECK(!memcmp(t.memory[2], sum.memory[2], trial_y_bytes(&t)), "%s: 0 + df is not df", l->forward);
  hk_plan *plan = NULL;
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &sum.problem, &sum.epilogue, &o, NULL));
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &sum.args));
  const float *df = t.memory[2], *twice = sum.memory[2];
  for (int64_t i = 0; i < t.y.elements; i++)
    CHECK(twice[i] == 2 * df[i], "%s: element %lld is %g, not twice %g", l->forward, (long long)i, (double)twice[i],
          (double)df[i]);
  hk_plan_destroy(plan);
  trial_free(&t);
  trial_free(&sum);
}

static void without_workspace(const layer *l) {
  char problem[512], text[512] = "";
  gradient_text(l->forward, problem);
  trial t;
  trial_make(&t, problem, "none", 5);
  const hk_options o = {.size = sizeof o, .threads = 3, .limit_workspace = 1};
  CHECK_STATUS(HK_OK, "", execute(&t, &o, 0x7f, text));
  if (strstr(l->forward, "k64_w3x3_p1_f32_last"))
    CHECK(!strncmp(text, "outer", 5), "%s without workspace: %s", l->forward, text);
  trial_free(&t);
}

/* A forward problem is none of theirs. */
static void refused(void) {
  hk_problem p = {.size = sizeof p};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "2d_n1_c64_i28x28_k64_w3x3_p1_f32_last"));
  hk_plan *plan = NULL;
  const hk_options o = {.size = sizeof o, .decision = "outer"}, q = {.size = sizeof q, .decision = "tapsum"};
  CHECK_STATUS(HK_UNSUPPORTED, "positions", hk_plan_create(&plan, &p, NULL, &o, NULL));
  CHECK_STATUS(HK_UNSUPPORTED, "groups", hk_plan_create(&plan, &p, NULL, &q, NULL));
}

/* Integers, so that any order gives the same sum. */
static void bias(const char *forward) {
  hk_problem p = {.size = sizeof p};
  hk_extent x, f, y;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, forward));
  CHECK_STATUS(HK_OK, "", hk_problem_extents(&p, &x, &f, &y));
  const bool wide = p.y_type == HK_F64;
  char *dy = malloc((size_t)y.elements * 8);
  double *got = calloc((size_t)p.k + 1, sizeof *got), *want = calloc((size_t)p.k + 1, sizeof *want);
  uint64_t seed = 7;
  for (int64_t i = 0; i < y.elements; i++) hk_store_element(p.y_type, dy, i, hk_test_integer(&seed, 4));
  CHECK_STATUS(HK_OK, "", hk_grad_bias(&p, dy, got));
  hk_geom g;
  CHECK_STATUS(HK_OK, "", hk_geom_make(&g, &p, false));
  for (int64_t i = 0; i < p.k * g.gm; i++) {
    const int64_t k = i / g.gm, m = i % g.gm, q = m % g.out[2], r = m / g.out[2] % g.out[1];
    const int64_t u = m / g.out[2] / g.out[1] % g.out[0], n = m / g.pixels;
    const int64_t at = g.y.offset + hk_geom_y_channel(&g, &g.y, k) + n * g.y.outer + u * g.y.at[0] + r * g.y.at[1];
    want[k] += hk_load_element(p.y_type, dy, at + q * g.y.at[2]);
  }
  for (int64_t k = 0; k < p.k; k++) {
    const double v = hk_load_element(wide ? HK_F64 : HK_F32, got, k);
    CHECK(v == want[k], "%s: db[%lld] is %g, not %g", forward, (long long)k, v, want[k]);
  }
  free(dy);
  free(got);
  free(want);
}

int main(void) {
  static const char *const forwards[] = {"2d_n2_c5_i9x11_k130_w3x3_p1_f32_last", "2d_n2_c5_i9x11_k7_w3x3_p1_f32_first",
                                         "1d_n3_c6_i200_k9_w5_g3_bf16_first",    "1d_n3_c6_i200_k9_w5_g3_f16_last",
                                         "3d_n1_c4_i5x6x7_k6_w2x2x2_f64_last",   "2d_n4_c6_i7x7_k8_w3x3_b2_f32_last"};
  for (size_t i = 0; i < sizeof forwards / sizeof *forwards; i++) bias(forwards[i]);
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    chosen(&layers[i]);
    if (!strstr(layers[i].forward, "f64")) accumulated(&layers[i], layers[i].algorithm);
    without_workspace(&layers[i]);
  }
  refused();
  return hk_test_end();
}
