/* Values that are not numbers stay where they belong. Weights that hold Inf or NaN meet only the inputs the window
 * reaches: a tap in the padding is left out, not multiplied by zero. Every candidate a plan with such weights offers
 * gives what the definition gives, and what would multiply by zeros refuses itself. An Inf in x, in the last channel of
 * an odd number of them too, reaches the outputs as the definition says. */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hankel.h"

static bool same(float a, float b) { return isnan(a) ? isnan(b) : a == b; }

static float *numbers(int64_t count) {
  float *p = malloc((size_t)count * sizeof *p);
  for (int64_t i = 0; i < count; i++) p[i] = (float)(i * 7 % 5 - 2);
  return p;
}

static bool run(const hk_problem *p, const char *decision, const float *x, const float *f, float *y, int64_t outputs) {
  const hk_options o = {.size = sizeof o, .threads = 1, .decision = decision};
  const hk_weights w = {.size = sizeof w, .f = f};
  hk_plan *plan = NULL;
  if (hk_plan_create(&plan, p, NULL, &o, &w)) return false;
  const size_t bytes = hk_plan_workspace(plan);
  void *workspace = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
  const hk_args a = {.size = sizeof a, .x = x, .y = y, .workspace = workspace, .workspace_bytes = bytes};
  for (int64_t i = 0; i < outputs; i++) y[i] = -99.0f;
  assert(hk_plan_execute(plan, &a) == HK_OK);
  free(workspace);
  hk_plan_destroy(plan);
  return true;
}

typedef struct tally {
  const hk_problem *p;
  const float *x, *f, *want;
  int64_t outputs;
  int ran, refused, wrong;
} tally;

/* Candidates are those of finite weights. Where igemm's derived knobs do not suit these, they are chosen anew. */
static bool run_candidate(const tally *t, const char *decision, float *y) {
  char text[512];
  if (run(t->p, decision, t->x, t->f, y, t->outputs)) return true;
  const char *derived = strstr(decision, " merge=");
  snprintf(text, sizeof text, "%.*s", (int)(derived ? derived - decision : 0), decision);
  return derived && run(t->p, text, t->x, t->f, y, t->outputs);
}

static void visit(void *context, const hk_candidate *c) {
  tally *t = context;
  if (c->refusal) return;
  float *y = malloc((size_t)t->outputs * sizeof *y);
  if (run_candidate(t, c->decision, y)) {
    t->ran++;
    bool ok = true;
    for (int64_t i = 0; i < t->outputs; i++) ok &= same(y[i], t->want[i]);
    if (!ok) t->wrong++, printf("wrong: %s\n", c->decision);
  } else {
    t->refused++;
  }
  free(y);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  static const char *const problems[] = {
      "2d_n2_c5_i7x9_k6_w3x3_p1_f32_last",      "2d_n2_c5_i7x9_k6_w3x3_p1_f32_first",
      "2d_n1_c20_i6x6_k33_w3x3_p2_d2_f32_last", "2d_n1_c3_i9x40_k17_w3x3_s2_p1_f32_last",
      "3d_n1_c4_i4x5x6_k9_w3x3x3_p1_f32_first", "1d_n2_c4_i30_k8_w5_p4_f32_first",
      "2d_n1_c6_i5x5_k7_w1x1_p1_f32_last",      "1d_n1_c3_i40_k8_w3_f32_last",
      "2d_n1_c10_i9x9_k14_w3x3_g2_f32_last"};
  int bad = 0, refused = 0;
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
    hk_problem p;
    assert(hk_problem_parse(&p, problems[i]) == HK_OK);
    const int64_t room = 1 << 16;
    float *x = numbers(room), *f = numbers(room), *want = malloc((size_t)room * sizeof *want),
          *y = malloc((size_t)room * sizeof *y);
    const int64_t outputs = 4096; /* as many as the largest of these problems has, and more */
    for (int kind = 0; kind < 3; kind++) {
      if (kind == 1) x[p.c - 1] = INFINITY;
      if (kind == 2)
        x[p.c - 1] = 1.0f, f[0] = INFINITY,
                f[1] = NAN; /* the first tap and channel of output channel 0, and what lies next to it */
      assert(run(&p, "ref", x, f, want, outputs));
      assert(run(&p, NULL, x, f, y, outputs));
      for (int64_t j = 0; j < outputs; j++) bad += !same(y[j], want[j]);
      int finite = 0;
      for (int64_t j = 0; j < outputs; j++) finite += isfinite(want[j]) && want[j] != -99.0f;
      assert(finite > 0);
      tally t = {.p = &p, .x = x, .f = f, .want = want, .outputs = outputs};
      const hk_options o = {.size = sizeof o, .threads = 1};
      assert(hk_plan_candidates(&p, NULL, &o, visit, &t) == HK_OK);
      printf("%s, %s: %d candidates agree, %d refused, %d wrong\n", problems[i],
             kind == 2 ? "Inf and NaN weights"
             : kind    ? "infinite x"
                       : "finite",
             t.ran - t.wrong, t.refused, t.wrong);
      bad += t.wrong;
      assert(t.ran >= 2);
      refused += kind == 2 ? t.refused : 0;
    }
    free(x), free(f), free(want), free(y);
  }
  assert(refused > 0);
  return bad != 0;
}
