/* The cost model of filter gradients, checked without a GPU: for five layers the first choice is the tile that was
 * fastest on the H200 (bench/results, grad-h200), and the share of the window inside x is that of a count. */
#include <math.h>

#include "cuda/gradient/outer.h"
#include "plan/gpu/gpu.h"
#include "support/check.h"

enum { SMS = 132 }; /* of the H200 */

static const struct {
  const char *forward, *fastest;
} layers[] = {
    {"2d_n64_c64_i56x56_k64_w3_p1_bf16_last", "wgmma_outer bm=64 bn=576 cm=1 cn=1 strip=1 slices=132"},
    {"2d_n64_c256_i14x14_k256_w3_p1_bf16_last", "wgmma_outer bm=128 bn=192 cm=1 cn=1 strip=0 slices=5"},
    {"2d_n64_c512_i7x7_k512_w3_p1_bf16_last", "wgmma_outer bm=128 bn=192 cm=1 cn=1 strip=0 slices=1"},
    {"2d_n64_c1024_i14x14_k256_w1_bf16_last", "wgmma_outer bm=128 bn=128 cm=1 cn=1 strip=0 slices=8"},
    {"2d_n4_c320_i64x64_k320_w3_p1_bf16_last", "wgmma_outer bm=64 bn=576 cm=1 cn=1 strip=1 slices=5"},
};

static const char *const windows[] = {
    "2d_n2_c64_i9x8_k64_w3_p1_bf16_last",
    "2d_n2_c64_i9x11_k64_w3x2_s2x1_p1:0x0:1_d2x1_bf16_last",
    "1d_n3_c64_i20_k96_w5_p9:3_d2_bf16_last",
    "2d_n2_c64_i20x20_k128_w1_s2_bf16_last",
};

static void keep_first(void *to, const hk_candidate *c) {
  char *first = to;
  if (!*first && !c->refusal && !strncmp(c->decision, "wgmma_outer ", 12)) snprintf(first, 200, "%s", c->decision);
}

static bool gradient_of(const char *forward, hk_problem *p) {
  hk_problem f = {.size = sizeof f};
  *p = (hk_problem){.size = sizeof *p};
  const bool made = !hk_problem_parse(&f, forward) && !hk_problem_grad_filter(&f, p);
  CHECK(made, "%s: %s", forward, hk_last_error());
  return made;
}

static void check_choice(int i) {
  const hk_options o = {.size = sizeof o, .device = HK_CUDA};
  hk_problem p;
  char first[200] = "";
  if (!gradient_of(layers[i].forward, &p)) return;
  CHECK(!hk_plan_candidates(&p, NULL, &o, keep_first, first), "%s", hk_last_error());
  CHECK(!strcmp(first, layers[i].fastest), "%s: %s", layers[i].forward, first);
}

static double counted_share(const hk_geom *g) {
  double inside = 0, all = 0;
  for (int64_t tap = 0; tap < g->win[0] * g->win[1] * g->win[2]; ++tap)
    for (int64_t at = 0; at < g->out[0] * g->out[1] * g->out[2]; ++at, ++all) {
      int64_t t = tap, p = at;
      bool in = true;
      for (int d = 2; d >= 0; t /= g->win[d], p /= g->out[d], --d) {
        const int64_t x = p % g->out[d] * g->stride[d] + t % g->win[d] * g->dil[d] - g->lo[d];
        in = in && x >= 0 && x < g->in[d];
      }
      inside += in;
    }
  return inside / all;
}

static void check_share(const char *forward) {
  static const double none;
  const hk_options o = {.size = sizeof o, .device = HK_CUDA};
  const hk_weights w = {.size = sizeof w, .f = &none};
  hk_problem p;
  hk_task task;
  hk_cu_outer_shape s;
  char why[HK_CU_REASON] = "";
  if (!gradient_of(forward, &p)) return;
  const bool made = !hk_task_make(&task, &p, NULL, &o, &w) && hk_cu_outer_shape_make(&task.geom, &task.epi, &s, why);
  CHECK(made, "%s: %s %s", forward, hk_last_error(), why);
  if (made)
    CHECK(fabs(s.inside - counted_share(&s.x)) < 1e-12, "%s: %g, not %g", forward, s.inside, counted_share(&s.x));
}

int main(void) {
  hk_plan_cuda_pretend(SMS);
  for (int i = 0; i < HK_COUNT(layers); ++i) check_choice(i);
  for (int i = 0; i < HK_COUNT(windows); ++i) check_share(windows[i]);
  hk_plan_cuda_pretend(0);
  return hk_test_end();
}
