/* Problems that an audit found wrong, and their relatives, each by every decision the planner would consider, bit for
 * bit against the reference on small integers. x, f and y lie between pages that must not be touched, once ending and
 * once beginning there; elements of x that no stride reaches are NaN. zero strides   x broadcast along space, batch or
 * channels, one dimension or several dilated input  its dilation equal to, dividing and multiple of the stride, in
 * outer dimensions too; results of one row long windows   more taps than are gathered at once, results of several
 * strips */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/guard.h"

typedef struct trial {
  const hk_problem *problem;
  const char *name;
  hk_options options;
  hk_extent x, f, y;
  float *want;
  int ran;
} trial;

/* Marks the elements of x that some index reaches: the others must not count. */
static void fill_x(const hk_problem *p, const hk_extent *e, float *x) {
  uint64_t seed = 7;
  for (int64_t i = 0; i < e->elements; i++) x[i] = NAN;
  int64_t size[6] = {p->feature_groups * p->batch_groups, p->n / p->batch_groups, p->c / p->feature_groups, 1, 1, 1};
  int64_t step[6] = {p->x.group, p->x.outer, p->x.channel, 0, 0, 0}, total = 1;
  for (int d = 0; d < p->rank; d++) size[3 + d] = p->in[d], step[3 + d] = p->x.at[d];
  for (int d = 0; d < 6; d++) total *= size[d];
  for (int64_t i = 0; i < total; i++) {
    int64_t at = p->x.offset + e->below, rest = i;
    for (int d = 5; d >= 0; rest /= size[d--]) at += rest % size[d] * step[d];
    if (isnan(x[at])) x[at] = (float)hk_test_integer(&seed, 2);
  }
}

static bool execute(const trial *t, const char *decision, int high, float *y_copy) {
  guarded x = guarded_make((size_t)t->x.elements, high), f = guarded_make((size_t)t->f.elements, high),
          y = guarded_make((size_t)t->y.elements, high);
  uint64_t seed = 3;
  fill_x(t->problem, &t->x, x.at);
  for (int64_t i = 0; i < t->f.elements; i++) f.at[i] = (float)hk_test_integer(&seed, 2);
  for (int64_t i = 0; i < t->y.elements; i++) y.at[i] = -77;
  hk_options o = t->options;
  o.decision = decision;
  const hk_weights w = {.size = sizeof w, .f = f.at + t->f.below};
  hk_plan *plan = NULL;
  bool ok = hk_plan_create(&plan, t->problem, NULL, &o, &w) == HK_OK;
  CHECK(ok, "%s: %s: %s", t->name, decision, hk_last_error());
  if (ok) {
    hk_args a = {
        .size = sizeof a, .x = x.at + t->x.below, .y = y.at + t->y.below, .workspace_bytes = hk_plan_workspace(plan)};
    a.workspace = a.workspace_bytes ? aligned_alloc(64, (a.workspace_bytes + 63) / 64 * 64) : NULL;
    CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
    memcpy(y_copy, y.at, (size_t)t->y.elements * sizeof *y_copy);
    free(a.workspace);
  }
  hk_plan_destroy(plan);
  guarded_free(&x), guarded_free(&f), guarded_free(&y);
  return ok;
}

static void visit(void *context, const hk_candidate *c) {
  trial *t = context;
  if (c->refusal) return;
  float *got = malloc((size_t)t->y.elements * sizeof *got);
  for (int high = 0; high < 2; high++) {
    int64_t wrong = 0, at = -1;
    if (!execute(t, c->decision, high, got)) continue;
    for (int64_t i = 0; i < t->y.elements; i++)
      if (got[i] != t->want[i] && !wrong++) at = i;
    CHECK(!wrong, "%s --decision '%s': %lld wrong, y[%lld] = %g, must be %g", t->name, c->decision, (long long)wrong,
          (long long)at, (double)got[at], (double)t->want[at]);
    t->ran++;
  }
  free(got);
}

static void check_problem(const hk_problem *p, const char *name) {
  static const hk_isa isas[] = {HK_ISA_BEST, HK_ISA_AVX2, HK_ISA_SCALAR};
  trial t = {.problem = p, .name = name, .options = {.size = sizeof t.options, .threads = 1}};
  CHECK_STATUS(HK_OK, "", hk_problem_extents(p, &t.x, &t.f, &t.y));
  if (t.y.elements == 0) return;
  t.want = malloc((size_t)t.y.elements * sizeof *t.want);
  if (execute(&t, "ref", 1, t.want)) {
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
      hk_machine m = {.size = sizeof m};
      if (hk_machine_info(&m) || isas[i] > m.best_isa) continue;
      t.options.isa = isas[i];
      CHECK_STATUS(HK_OK, "", hk_plan_candidates(p, NULL, &t.options, visit, &t));
    }
    CHECK(t.ran > 0, "%s: no decision", name);
  }
  free(t.want);
}

static void check_text(const char *text) {
  hk_problem p;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  check_problem(&p, text);
}

/* Every set of strides of x that are 0. */
static void zero_strides(const char *text) {
  hk_problem p, q;
  char name[256];
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  for (int mask = 1; mask < 1 << (p.rank + 2); mask++) {
    q = p;
    for (int d = 0; d < p.rank; d++)
      if (mask >> d & 1) q.x.at[d] = 0;
    if (mask >> p.rank & 1) q.x.outer = 0;
    if (mask >> (p.rank + 1) & 1) q.x.channel = 0;
    CHECK_STATUS(HK_OK, "", hk_problem_print(&q, name, sizeof name, NULL));
    check_problem(&q, name);
  }
}

static void dilated_inputs(void) {
  static const struct { int s, l; } pairs[] = {{2, 2}, {4, 2}, {3, 3}, {2, 4}, {1, 2}, {6, 4}};
#ifdef HK_SANITIZED /* each check takes ten to twenty times as long */
  static const struct { int c, k; } channels[] = {{3, 32}};
#else
  static const struct { int c, k; } channels[] = {{3, 32}, {1, 17}, {4, 80}};
#endif
  static const char *const layouts[] = {"last", "first"};
  char text[200];
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    for (size_t j = 0; j < sizeof channels / sizeof *channels; j++)
      for (int layout = 0; layout < 2; layout++) {
        const int s = pairs[i].s, l = pairs[i].l, c = channels[j].c, k = channels[j].k, n = j == 1 ? 2 : 1;
        const char *order = layouts[layout];
        snprintf(text, sizeof text, "2d_n%d_c%d_i7x90_k%d_w3x3_s%dx1_p1_l%dx1_f32_%s", n, c, k, s, l, order);
        check_text(text);
        snprintf(text, sizeof text, "3d_n%d_c%d_i3x4x90_k%d_w2x3x3_s%dx1x1_p1_l%dx1x1_f32_%s", n, c, k, s, l, order);
        check_text(text);
        snprintf(text, sizeof text, "3d_n1_c%d_i4x3x90_k%d_w3x2x2_s1x%dx1_p2x1x0_l1x%dx1_f32_%s", c, k, s, l, order);
        check_text(text);
        snprintf(text, sizeof text, "2d_n1_c%d_i5x40_k%d_w1x3_s1x%d_p1_l1x%d_f32_%s", c, k, s, l, order);
        check_text(text);
        /* a result of one row has one phase, whatever the dilation */
        snprintf(text, sizeof text, "2d_n1_c%d_i2x90_k%d_w%dx3_p0x1_l%dx1_f32_%s", c, k, l + 1, l, order);
        check_text(text);
        snprintf(text, sizeof text, "2d_n1_c%d_i6x20_k%d_w3x3_s%d_p1_l%d_g%d_f32_%s", c, c, s, l, c, order);
        check_text(text);
        /* x, the window and the result of one row: stride and input dilation along it mean nothing */
        snprintf(text, sizeof text, "2d_n2_c%d_i1x21_k%d_w1x2_s%dx1_p0:%dx0:2_d3_l%dx1_f32_%s", c, k, s, l - 1, l,
                 order);
        check_text(text);
      }
}

int main(void) {
  check_text("1d_n1_c2_i64_k5_w1_f32_xs=0.0.2.1.0_fs=0.0.2.1.1_ys=0.0.320.64.1");
  static const char *const broadcast[] = {
      "1d_n2_c2_i64_k5_w1_f32_first",          "1d_n2_c2_i64_k5_w1_f32_last",
      "1d_n1_c4_i40_k4_w1_g2_f32_last",        "2d_n1_c2_i5x9_k16_w1x1_f32_first",
      "2d_n2_c3_i5x9_k4_w1x1_f32_last",        "1d_n1_c3_i70_k6_w3_p1_f32_first",
      "2d_n1_c4_i6x20_k8_w3x3_p1_f32_last",    "2d_n1_c8_i6x20_k8_w3x3_p1_g8_f32_first",
      "2d_n1_c8_i6x20_k8_w3x3_p1_g8_f32_last", "1d_n1_c8_i50_k8_w5_d2_g8_f32_first"};
  for (size_t i = 0; i < sizeof broadcast / sizeof *broadcast; i++) zero_strides(broadcast[i]);
  check_text("2d_n1_c3_i32x64_k32_w3x3_s2x1_p1_l2x1_f32_last");
  dilated_inputs();
  static const char *const windows[] = {"2d_n1_c1_i100x1_k1_w65x2_p0x1:0_f32_first",
                                        "2d_n1_c1_i120x3_k2_w65x2_p0x1:0_f32_first",
                                        "1d_n1_c1_i400_k1_w65_f32_first",
                                        "1d_n2_c1_i300_k3_w100_p50_f32_first",
                                        "1d_n1_c2_i300_k5_w129_d1_f32_first",
                                        "2d_n1_c1_i30x60_k4_w9x9_p4_f32_first",
                                        "2d_n1_c2_i30x30_k3_w8x9_s2_p4_f32_first",
                                        "3d_n1_c1_i9x9x20_k2_w5x5x3_p2_f32_first",
                                        "1d_n1_c1_i300_k2_w70_f32_last",
                                        "2d_n1_c1_i40x40_k1_w13x5_p2_f32_last"};
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) check_text(windows[i]);
  /* strides, and a stride, that are multiplied by 0 alone */
  check_text("1d_n1_c2_i3_k2_w3_g2_f32_xs=0.1.9223372036854775807.1.2_fs=0.3.3.1.1_ys=0.1.9223372036854775807.1."
             "9223372036854775807");
  check_text("1d_n1_c2_i1_k2_w3_p1_s9223372036854775807_f32_xs=0.0.2.1.9223372036854775807_fs=0.0.6.3.1_ys=0.0.2.1."
             "9223372036854775807");
  check_text(
      "2d_n1_c2_i1x30_k2_w1x3_p0x1_s9223372036854775807x1_d9223372036854775807x1_l9223372036854775807x1_f32_first");
  check_text(
      "2d_n1_c2_i1x30_k2_w1x3_p0x1_s9223372036854775807x1_d9223372036854775807x1_l9223372036854775807x1_g2_f32_last");
  return hk_test_end();
}
