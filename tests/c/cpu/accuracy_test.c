/* Long sums of f32 lose few digits: with N(0,1) data the norm of the errors stays under LIMIT of the
 * result's, whatever the number of products, for every decision over many taps that igemm and strip offer, and the bits
 * are those of any number of threads. In one run 4800 products would lose 1.2e-6; by chunks they lose 3.0e-7. Sums in
 * f64 are the truth. */
#include <math.h>
#include <stdlib.h>

#include "support/check.h"

#define LIMIT 4.5e-7 /* measured: 2.8e-7 to 4.1e-7 */

static double uniform(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 11) * 0x1p-53;
}

static double normal(uint64_t *seed) {
  const double u = uniform(seed), v = uniform(seed);
  return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

typedef struct tensors {
  float *x, *f, *y;
  double *x64, *f64, *y64;
  hk_extent ex, ef, ey;
} tensors;

static void execute(const hk_problem *p, const hk_options *o, const void *x, const void *f, void *y, const char *name) {
  hk_plan *plan;
  const hk_weights w = {.size = sizeof w, .f = f};
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, p, NULL, o, &w));
  if (!plan) return;
  const size_t bytes = (hk_plan_workspace(plan) + 63) / 64 * 64;
  void *space = bytes ? aligned_alloc(64, bytes) : NULL;
  const hk_args a = {.size = sizeof a, .x = x, .y = y, .workspace = space, .workspace_bytes = bytes};
  const hk_status s = hk_plan_execute(plan, &a);
  CHECK(!s, "%s: %s", name, hk_last_error());
  free(space);
  hk_plan_destroy(plan);
}

static tensors tensors_make(const hk_problem *p) {
  tensors t;
  uint64_t seed = 9;
  hk_problem wide = *p;
  const hk_options o = {.size = sizeof o, .threads = 1};
  wide.x_type = wide.f_type = wide.y_type = HK_F64;
  CHECK_STATUS(HK_OK, "", hk_problem_extents(p, &t.ex, &t.ef, &t.ey));
  t.x = malloc((size_t)t.ex.elements * 4), t.f = malloc((size_t)t.ef.elements * 4),
  t.y = malloc((size_t)t.ey.elements * 4);
  t.x64 = malloc((size_t)t.ex.elements * 8), t.f64 = malloc((size_t)t.ef.elements * 8),
  t.y64 = malloc((size_t)t.ey.elements * 8);
  for (int64_t i = 0; i < t.ex.elements; i++) t.x64[i] = t.x[i] = (float)normal(&seed);
  for (int64_t i = 0; i < t.ef.elements; i++) t.f64[i] = t.f[i] = (float)normal(&seed);
  execute(&wide, &o, t.x64, t.f64, t.y64, "f64");
  return t;
}

static void tensors_free(tensors *t) { free(t->x), free(t->f), free(t->y), free(t->x64), free(t->f64), free(t->y64); }

typedef struct judge {
  const hk_problem *p;
  const tensors *t;
  hk_isa isa;
  int judged;
} judge;

static void on_candidate(void *context, const hk_candidate *c) {
  judge *j = context;
  if (c->refusal || !(strstr(c->decision, "igemm") || strstr(c->decision, "strip"))) return;
  const hk_options o = {.size = sizeof o, .threads = 1, .isa = j->isa, .decision = c->decision};
  execute(j->p, &o, j->t->x, j->t->f, j->t->y, c->decision);
  double errors = 0, norm = 0;
  for (int64_t i = 0; i < j->t->ey.elements; i++) {
    const double e = (double)j->t->y[i] - j->t->y64[i];
    errors += e * e, norm += j->t->y64[i] * j->t->y64[i];
  }
  CHECK(sqrt(errors / norm) <= LIMIT, "%s: %.3g of the result's norm is error", c->decision, sqrt(errors / norm));
  const size_t bytes = (size_t)j->t->ey.elements * 4;
  float *one = malloc(bytes);
  memcpy(one, j->t->y, bytes);
  const hk_options three = {.size = sizeof three, .threads = 3, .isa = j->isa, .decision = c->decision};
  execute(j->p, &three, j->t->x, j->t->f, j->t->y, c->decision);
  CHECK(!memcmp(one, j->t->y, bytes), "%s: other bits by three threads", c->decision);
  free(one);
  j->judged++;
}

static void problem(const char *text) {
  hk_problem p;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  tensors t = tensors_make(&p);
  judge j = {.p = &p, .t = &t};
  for (j.isa = HK_ISA_SCALAR; j.isa <= HK_ISA_AVX512; j.isa++) {
    const hk_options o = {.size = sizeof o, .threads = 1, .isa = j.isa};
    CHECK_STATUS(HK_OK, "", hk_plan_candidates(&p, NULL, &o, on_candidate, &j));
  }
  CHECK(j.judged >= 2, "%s: %d decisions", text, j.judged);
  tensors_free(&t);
}

int main(void) {
  problem("1d_n1_c48_i150_k48_w100_first");
  problem("1d_n1_c48_i150_k48_w100_last");
  problem("2d_n1_c256_i6x6_k24_w3x3_p1_last");
  problem("2d_n2_c64_i9x9_k40_w5x5_p2_last");
  problem("1d_n1_c20_i500_k13_w300_p150_last"); /* taps beyond the edges: chunks end at the same places */
  return hk_test_end();
}
