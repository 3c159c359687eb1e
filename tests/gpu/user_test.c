/* User functions on the device: what they are told about where they are, tested with a zero convolution, so that the
 * result is the coordinates alone; a store of the caller's own; and a source that does not compile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "support/check.h"

enum { N = 3, C = 64, H = 9, W = 14, K = 168, SPAN = 1 << 17 };
static const char *const decisions[] = {NULL, "wgmma bm=128 bn=128 stages=6 cm=1 cn=1 split=1 parts=1 turns=0",
                                        "wgmma bm=128 bn=128 stages=6 cm=1 cn=1 split=1 parts=1 turns=1",
                                        "wgmma bm=192 bn=128 stages=5 cm=1 cn=1 split=1 parts=1 turns=0"};

static float code(int n, int k, int p, int q) { return (float)(k + 1000 * q + 20000 * p + 400000 * n); }

static void check_values(const float *got, float add, const char *what) {
  int wrong = 0;
  for (int i = 0; i < N * H * W * K; ++i) wrong += got[i] != code(i / K / W / H, i % K, i / K / W % H, i / K % W) + add;
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

/* Depthwise, grouped and first layers: every decision, in both layouts, of a function, a second one and a store. */
static int check_problem(const char *text, const hk_epilogue *e, float add, void *x, const void *zeros, void *y,
                         float *got) {
  hk_problem p = {.size = sizeof p};
  int64_t out[HK_MAX_RANK] = {0}, n;
  gpu_names all = {.skip = "wgmma", .once = "finish / wgmma"}; /* wgmma was seen above */
  const hk_weights w = {.size = sizeof w, .f = zeros};
  hk_options o = {.size = sizeof o, .device = HK_CUDA};
  CHECK(!hk_problem_parse(&p, text) && !hk_problem_output(&p, out, &n), "%s", hk_last_error());
  CHECK(!hk_plan_candidates(&p, e, &o, gpu_names_collect, &all) && all.count > 0, "%s: %d decisions: %s", text,
        all.count, hk_last_error());
  for (int i = 0; i < all.count; ++i) {
    hk_plan *plan = NULL;
    void *workspace = NULL;
    o = (hk_options){.size = sizeof o, .device = HK_CUDA, .decision = all.text[i]};
    hk_status s = hk_plan_create(&plan, &p, e, &o, &w);
    hk_args a = {.size = sizeof a, .x = x, .y = y, .user = y, .workspace_bytes = plan ? hk_plan_workspace(plan) : 0};
    if (a.workspace_bytes) hk_gpu_alloc(&workspace, a.workspace_bytes);
    a.workspace = workspace;
    memset(got, 0xff, SPAN);
    hk_gpu_copy(y, got, SPAN);
    if (!s) s = hk_plan_execute(plan, &a);
    if (!s) s = hk_gpu_sync(NULL);
    CHECK(s == HK_OK, "%s: %s: %s", text, all.text[i], hk_last_error());
    hk_gpu_copy(got, y, SPAN);
    const int lead = 3 - p.rank;
    int wrong = 0;
    int64_t size[3] = {1, 1, 1}, step[3] = {0, 0, 0};
    for (int d = 0; d < p.rank; ++d) size[lead + d] = out[d], step[lead + d] = p.y.at[d];
    for (int64_t j = 0; j < n * p.k * size[0] * size[1] * size[2]; ++j) {
      const int64_t q = j % size[2], r = j / size[2] % size[1], t = j / size[2] / size[1] % size[0],
                    k = j / size[2] / size[1] / size[0] % p.k;
      const int64_t b = j / size[2] / size[1] / size[0] / p.k;
      wrong += got[b * p.y.outer + k * p.y.channel + t * step[0] + r * step[1] + q * step[2]] !=
               code((int)b, (int)k, (int)r, (int)q) + add;
    }
    CHECK(!wrong, "%s: %s: %d values wrong", text, all.text[i], wrong);
    hk_plan_destroy(plan);
    hk_gpu_free(workspace);
  }
  return all.count;
}

static void other_kernels(hk_epilogue e, void *x, const void *zeros, void *y, float *got) {
  static const char *const problems[] = {"2d_n2_c24_i9x14_k24_w3_p1_g24_bf16:bf16:f32_last",
                                         "2d_n2_c24_i9x14_k24_w3_p1_g24_f16:f16:f32_first",
                                         "1d_n2_c16_i100_k16_w4_p3:0_g16_f32_last",
                                         "1d_n2_c16_i100_k16_w33_p16_g16_bf16:bf16:f32_first",
                                         "2d_n2_c32_i9x14_k32_w3_p1_g8_bf16:bf16:f32_last",
                                         "2d_n2_c3_i9x14_k24_w3_p1_bf16:bf16:f32_last",
                                         "2d_n2_c5_i9x7_k6_w3_p1_f32_last"};
  const char *const store = e.cuda_store;
  int ran = 0;
  for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) {
    e.cuda_store = e.cuda_user2 = NULL;
    ran += check_problem(problems[i], &e, 0, x, zeros, y, got);
    e.cuda_user2 = "float hk_user2(hk_at at, float v, const void *user) { return v + 7; }";
    ran += check_problem(problems[i], &e, 7, x, zeros, y, got);
  }
  e.cuda_store = store;
  ran += check_problem("2d_n2_c24_i9x14_k24_w3_p1_g24_bf16:bf16:f32_last", &e, 7, x, zeros, y, got);
  printf("%d decisions with user functions\n", ran);
}

int main(void) {
  const size_t count = (size_t)N * H * W * K;
  hk_gpu gpu = {.size = sizeof gpu};
  void *x, *y, *own;
  if (hk_gpu_info(&gpu) || !gpu.kernels) return printf("no CUDA device: %s\n", hk_last_error()), 77;
  float *got = calloc(count, 4);
  void *zeros = calloc(1, (size_t)N * H * W * C * 2 + (size_t)K * C * 2);
  if (hk_gpu_alloc(&x, (size_t)N * H * W * C * 2) || hk_gpu_alloc(&y, count * 4) || hk_gpu_alloc(&own, count * 4))
    return 1;
  hk_gpu_copy(x, zeros, (size_t)N * H * W * C * 2);
  hk_epilogue e = {.size = sizeof e,
                   .act = HK_ACT_USER,
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
  hk_epilogue other = e;
  other.cuda_store = "void hk_user_store(hk_at at, float v, void *user) {\n"
                     "  ((float *)user)[((at.n * 9 + at.p[1]) * 14 + at.p[2]) * 24 + at.k] = v;\n}\n";
  other_kernels(other, x, zeros, y, got);
  e.cuda_user = "float hk_user(hk_at at, float v, const void *user) { return nothing; }";
  CHECK_STATUS(HK_DEVICE, "nothing", run(&e, NULL, x, zeros, y, own));
  hk_gpu_free(x);
  hk_gpu_free(y);
  hk_gpu_free(own);
  free(got);
  free(zeros);
  return hk_test_end();
}
