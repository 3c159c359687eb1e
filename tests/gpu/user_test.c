/* User functions on the device: what they are told about where they are, tested with a zero convolution, so that the
 * result is the coordinates alone; a store of the caller's own; and a source that does not compile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

enum { N = 3, C = 64, H = 9, W = 14, K = 168 };
static const char *const decisions[] = {
    NULL, "wgmma bm=128 bn=128 stages=6 cm=1 cn=1 split=1 parts=1 turns=0",
    "wgmma bm=128 bn=128 stages=6 cm=1 cn=1 split=1 parts=1 turns=1",
    "wgmma bm=192 bn=128 stages=5 cm=1 cn=1 split=1 parts=1 turns=0"};

static float code(int n, int k, int p, int q) { return (float)(k + 1000 * q + 20000 * p + 400000 * n); }

static void check_values(const float *got, float add, const char *what) {
  int wrong = 0;
  for (int i = 0; i < N * H * W * K; ++i)
    wrong += got[i] != code(i / K / W / H, i % K, i / K / W % H, i / K % W) + add;
  CHECK(!wrong, "%s: %d values wrong", what, wrong);
}

static hk_status run(const hk_epilogue *e, const char *decision, void *x, const void *f, void *y, void *user) {
  hk_problem p = {.size = sizeof p};
  hk_plan *plan = NULL;
  const hk_options o = {.size = sizeof o, .device = HK_CUDA, .decision = decision};
  const hk_weights w = {.size = sizeof w, .f = f};
  hk_status s = hk_problem_parse(&p, "2d_n3_c64_i9x14_k168_w1_bf16:bf16:f32_last");
  if (!s) s = hk_plan_create(&plan, &p, e, &o, &w);
  const hk_args a = {.size = sizeof a, .x = x, .y = y, .user = user};
  if (!s) s = hk_plan_execute(plan, &a);
  if (!s) s = hk_gpu_sync(NULL);
  hk_plan_destroy(plan);
  return s;
}

int main(void) {
  const size_t count = (size_t)N * H * W * K;
  hk_gpu gpu = {.size = sizeof gpu};
  void *x, *y, *own;
  if (hk_gpu_info(&gpu) || !gpu.kernels) return printf("no CUDA device: %s\n", hk_last_error()), 77;
  float *got = calloc(count, 4);
  void *zeros = calloc(1, (size_t)N * H * W * C * 2 + (size_t)K * C * 2);
  if (hk_gpu_alloc(&x, (size_t)N * H * W * C * 2) || hk_gpu_alloc(&y, count * 4) || hk_gpu_alloc(&own, count * 4)) return 1;
  hk_gpu_copy(x, zeros, (size_t)N * H * W * C * 2);
  hk_epilogue e = {.size = sizeof e, .act = HK_ACT_USER,
                   .cuda_user = "float hk_user(hk_at at, float v, const void *user) {\n"
                                "  return v + at.k + 1000 * at.p[2] + 20000 * at.p[1] + 400000 * at.n;\n}\n"};
  for (size_t i = 0; i < sizeof decisions / sizeof *decisions; ++i) {
    hk_gpu_copy(y, got, count * 4);
    const hk_status s = run(&e, decisions[i], x, zeros, y, NULL);
    CHECK(s == HK_OK, "%s", hk_last_error());
    hk_gpu_copy(got, y, count * 4);
    check_values(got, 0, "hk_user");
    memset(got, 0, count * 4);
  }
  e.cuda_user2 = "float hk_user2(hk_at at, float v, const void *user) { return v + 7; }";
  e.cuda_store = "void hk_user_store(hk_at at, float v, void *user) {\n"
                 "  ((float *)user)[((at.n * 9 + at.p[1]) * 14 + at.p[2]) * 168 + at.k] = v;\n}\n";
  CHECK(run(&e, NULL, x, zeros, y, own) == HK_OK, "%s", hk_last_error());
  hk_gpu_copy(got, own, count * 4);
  check_values(got, 7, "hk_user_store");
  e.cuda_user = "float hk_user(hk_at at, float v, const void *user) { return nothing; }";
  CHECK_STATUS(HK_DEVICE, "nothing", run(&e, NULL, x, zeros, y, own));
  hk_gpu_free(x);
  hk_gpu_free(y);
  hk_gpu_free(own);
  free(got);
  free(zeros);
  return hk_test_end();
}
