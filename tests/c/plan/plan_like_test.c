/* hk_plan_create_like: for every decision of a problem, plans made like it for other batches, sizes, padding and
 * strides give what the reference gives, or are refused with a sentence; from each problem of a family to each other.
 * Weights that hold Inf count for nothing where their tap lies in the padding, whatever the plan knew that they were
 * packed for. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "support/check.h"

/* The same filter over other x and y. */
typedef struct variation {
  const char *text;  /* "%s" is the layout; f lies as in the family's first */
  const char *x, *y; /* layouts */
} variation;

enum { MOST = 8, ROOM = 1 << 16 };
static float x[ROOM], f[ROOM], y[ROOM], want[MOST][ROOM];

typedef struct family {
  hk_problem problem[MOST];
  hk_extent y[MOST];
  int count;
  hk_options options;
  int made, refused;
} family;

static bool run(const hk_plan *plan, const hk_extent *e, float *to) {
  for (int64_t i = 0; i < e->elements; i++) to[i] = -77;
  hk_args a = {.size = sizeof a, .x = x, .y = to + e->below, .workspace_bytes = hk_plan_workspace(plan)};
  a.workspace = a.workspace_bytes ? aligned_alloc(64, (a.workspace_bytes + 63) / 64 * 64) : NULL;
  const hk_status s = hk_plan_execute(plan, &a);
  CHECK(s == HK_OK, "%s", hk_last_error());
  free(a.workspace);
  return !s;
}

static bool same(float a, float b) { return isnan(a) ? isnan(b) : a == b; }

static void compare(const family *m, int from, int to, const char *decision) {
  int64_t wrong = 0, at = -1;
  char a[300], b[300];
  for (int64_t i = 0; i < m->y[to].elements; i++)
    if (!same(y[i], want[to][i]) && !wrong++) at = i;
  hk_problem_print(&m->problem[from], a, sizeof a, NULL);
  hk_problem_print(&m->problem[to], b, sizeof b, NULL);
  CHECK(!wrong, "%s by '%s', then like it %s: %lld wrong, y[%lld] = %g, must be %g", a, decision, b, (long long)wrong,
        (long long)at, (double)y[at < 0 ? 0 : at], (double)want[to][at < 0 ? 0 : at]);
}

typedef struct visit_of {
  family *m;
  int from;
} visit_of;

static void visit(void *context, const hk_candidate *c) {
  const visit_of *v = context;
  family *m = v->m;
  const hk_weights w = {.size = sizeof w, .f = f};
  hk_options o = m->options;
  hk_plan *plan = NULL, *like = NULL;
  o.decision = c->decision;
  if (c->refusal || hk_plan_create(&plan, &m->problem[v->from], NULL, &o, &w)) return; /* Inf refuses some */
  for (int to = 0; to < m->count; to++) {
    const hk_status s = hk_plan_create_like(&like, plan, &m->problem[to]);
    CHECK(s == HK_OK || (s == HK_UNSUPPORTED && hk_last_error()[0]), "%s: %s", hk_status_name(s), hk_last_error());
    CHECK(to != v->from || s == HK_OK, "'%s' is not like itself: %s", c->decision, hk_last_error());
    if (!s && run(like, &m->y[to], y)) compare(m, v->from, to, c->decision);
    *(s ? &m->refused : &m->made) += 1;
    hk_plan_destroy(like);
  }
  hk_plan_destroy(plan);
}

static void check_family(const variation *v, int count, hk_isa isa, uint32_t math, bool inf) {
  family m = {.count = count, .options = {.size = sizeof m.options, .threads = 1, .isa = isa, .math = math}};
  const hk_options ref = {.size = sizeof ref, .threads = 1, .decision = "ref"};
  char text[200];
  for (int i = 0; i < ROOM; i++) x[i] = (float)(i * 7 % 5 - 2), f[i] = (float)(i * 11 % 7 - 3);
  if (inf) f[0] = INFINITY, f[2] = NAN;
  for (int i = 0; i < count; i++) {
    hk_problem *p = &m.problem[i], other;
    snprintf(text, sizeof text, v[i].text, v[i].x);
    CHECK_STATUS(HK_OK, "", hk_problem_parse(p, text));
    snprintf(text, sizeof text, v[i].text, v[i].y);
    CHECK_STATUS(HK_OK, "", hk_problem_parse(&other, text));
    p->y = other.y;
    p->f = m.problem[0].f;
    hk_extent ex;
    CHECK_STATUS(HK_OK, "", hk_problem_extents(p, &ex, NULL, &m.y[i]));
    CHECK(ex.elements <= ROOM && m.y[i].elements <= ROOM, "%s is too large", text);
    const hk_weights w = {.size = sizeof w, .f = f};
    hk_plan *plan = NULL;
    CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, p, NULL, &ref, &w));
    run(plan, &m.y[i], want[i]);
    hk_plan_destroy(plan);
  }
  for (int from = 0; from < count; from++) {
    visit_of at = {&m, from};
    CHECK_STATUS(HK_OK, "", hk_plan_candidates(&m.problem[from], NULL, &m.options, visit, &at));
  }
  CHECK(m.made > m.count, "%s: %d plans were made alike, %d refused", v[0].text, m.made, m.refused);
}

int main(void) {
  static const variation depthwise[] = {
      {"1d_n1_c20_i9_k20_w3_g20_f32_%s", "last", "last"},     {"1d_n1_c20_i9_k20_w3_g20_f32_%s", "last", "first"},
      {"1d_n3_c20_i40_k20_w3_g20_f32_%s", "last", "last"},    {"1d_n1_c20_i9_k20_w3_p1_g20_f32_%s", "last", "last"},
      {"1d_n1_c20_i9_k20_w3_p2_g20_f32_%s", "last", "first"}, {"1d_n2_c20_i9_k20_w3_p1_g20_f32_%s", "first", "first"},
      {"1d_n1_c20_i70_k20_w3_g20_f32_%s", "first", "last"}};
  static const variation squares[] = {{"2d_n1_c36_i9x9_k36_w3x3_g36_f32_%s", "last", "last"},
                                      {"2d_n1_c36_i9x9_k36_w3x3_p1_g36_f32_%s", "last", "last"},
                                      {"2d_n2_c36_i5x17_k36_w3x3_p1_g36_f32_%s", "last", "first"},
                                      {"2d_n1_c36_i12x9_k36_w3x3_p1_g36_f32_%s", "first", "first"},
                                      {"2d_n1_c36_i9x12_k36_w3x3_g36_f32_%s", "first", "last"}};
  static const variation dense[] = {{"2d_n1_c5_i9x20_k19_w3x3_f32_%s", "last", "last"},
                                    {"2d_n1_c5_i9x20_k19_w3x3_p1_f32_%s", "last", "last"},
                                    {"2d_n2_c5_i6x40_k19_w3x3_p1_f32_%s", "last", "first"},
                                    {"2d_n1_c5_i9x20_k19_w3x3_p1:0_f32_%s", "first", "first"},
                                    {"2d_n1_c5_i12x33_k19_w3x3_f32_%s", "first", "last"}};
  static const variation lines[] = {{"1d_n1_c1_i8_k1_w3_f32_%s", "first", "first"},
                                    {"1d_n1_c1_i8_k1_w3_p1_f32_%s", "first", "first"},
                                    {"1d_n2_c1_i90_k1_w3_p2:0_f32_%s", "first", "first"},
                                    {"1d_n1_c1_i90_k1_w3_f32_%s", "first", "first"}};
  static const variation points[] = {{"1d_n1_c8_i40_k8_w1_g2_f32_%s", "last", "last"},
                                     {"1d_n2_c8_i41_k8_w1_g2_f32_%s", "last", "last"},
                                     {"1d_n1_c8_i40_k8_w1_g2_f32_%s", "first", "first"},
                                     {"1d_n1_c8_i40_k8_w1_p1_g2_f32_%s", "last", "first"}};
  static const variation grouped[] = {{"1d_n1_c24_i50_k24_w5_d2_g4_f32_%s", "first", "first"},
                                      {"1d_n2_c24_i33_k24_w5_p4_d2_g4_f32_%s", "first", "first"},
                                      {"1d_n1_c24_i50_k24_w5_p2_d2_g4_f32_%s", "last", "last"},
                                      {"1d_n1_c24_i64_k24_w5_d2_g4_f32_%s", "last", "first"}};
  static const variation wide[] = {{"2d_n1_c20_i8x8_k20_w3x3_f32_%s", "last", "last"},
                                   {"2d_n1_c20_i12x8_k20_w3x3_p1_f32_%s", "last", "last"},
                                   {"2d_n1_c20_i8x8_k20_w3x3_p1_f32_%s", "first", "first"}};
  /* input dilation: the phases of other padding have other filters, those of other sizes may be fewer */
  static const variation dilated[] = {{"2d_n1_c5_i9x7_k19_w3x4_p1:2_l2x3_f32_%s", "last", "last"},
                                      {"2d_n2_c5_i5x8_k19_w3x4_p1:2_l2x3_f32_%s", "last", "last"},
                                      {"2d_n1_c5_i9x7_k19_w3x4_p2:0_l2x3_f32_%s", "last", "first"},
                                      {"2d_n1_c5_i1x1_k19_w3x4_p1:0x2:0_l2x3_f32_%s", "last", "last"},
                                      {"2d_n1_c5_i9x7_k19_w3x4_p3:2_l2x3_f32_%s", "first", "first"}};
  static const struct {
    const variation *v;
    int count;
  } families[] = {{depthwise, 7}, {squares, 5}, {dense, 5}, {lines, 4},
                  {points, 4},    {grouped, 4}, {wide, 3},  {dilated, 5}};
  hk_machine machine = {.size = sizeof machine};
  CHECK_STATUS(HK_OK, "", hk_machine_info(&machine));
  static const hk_isa isas[] = {HK_ISA_BEST, HK_ISA_AVX2, HK_ISA_SCALAR};
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    for (size_t k = 0; k < sizeof isas / sizeof *isas; k++)
      for (int inf = 0; inf < 2 && isas[k] <= machine.best_isa; inf++)
        check_family(families[i].v, families[i].count, isas[k], HK_MATH_STRICT, inf);
  return hk_test_end();
}
