/* dots: what it must not read (gaps between the channels of pixels hold NaN), the same bits for any number of threads
 * and blocks, and that options.denormals = exact keeps bf16 from the instructions that count denormals as zero. Passes
 * where no row of dots runs on this machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "plan/plan.h"
#include "support/check.h"
#include "support/trial.h"

/* pixels of x lie further apart than their channels are */
static const trial_text texts[] = {
    {"2d_n2_c5_i9x7_k19_w3x3_p1_bf16_xs=0.0.600.1.60.8_fs=0.0.45.9.3.1_ys=0.0.1197.1.133.19", "bias+relu"},
    {"2d_n1_c33_i6x11_k70_w2x3_s1x2_p1_d2x1_bf16:bf16:f32_xs=0.0.9000.1.600.48_fs=0.0.198.6.3.1_ys=0.0.4200.1.560.70",
     "none"},
    {"1d_n2_c3_i40_k17_w5_p2_bf16:bf16:f16_xs=0.0.400.1.5_fs=0.0.15.5.1_ys=0.0.680.1.17", "scale+bias+clip:-2:3"},
    {"1d_n1_c7_i30_k9_w4_p3:0_s8:u8:u8_xz3_fz100_xs=0.0.400.1.11_fs=0.0.28.4.1_ys=0.0.270.1.9", "scale+bias+relu"},
    {"2d_n3_c70_i7x7_k52_w3x3_p1_bf16_last", "scale+bias+relu"},
    {"2d_n2_c24_i20x19_k36_w3x3_s2x1_p1_g2_bf16:bf16:f32_last", "bias+presum:2+relu"},
    {"2d_n2_c8_i9x9_k24_w3x3_p1_l2_bf16:bf16:f32_last", "bias+sum:2"},
    {"2d_n2_c75_i7x8_k70_w3x3_p1_s8:s8:s8_xz-3_fz4_yz2_last", "scale+bias+relu"},
    {"2d_n1_c64_i8x8_k20_w3x3_p1_u8:u8:s32_xz7_fz130_last", "bias"},
    {"2d_n1_c6_i8x8_k20_w3x3_p1_u8:s8:s8_xz200_fz-7_yz4_xs=0.0.800.1.96.9_fs=0.0.54.9.3.1_ys=0.0.1280.1.160.20",
     "scale"},
};

extern const hk_algo hk_algo_dots;

static bool runs(hk_type x) {
  for (int32_t i = 0; i < hk_kernel_count; i++) {
    const hk_kernel *k = &hk_kernels[i];
    const bool of_type = x == HK_BF16 ? k->x_type == HK_BF16 : k->x_type == HK_S8;
    if (k->family == HK_FAMILY_DOTS && of_type && hk_kernel_runs(k, hk_cpu_best_isa())) return true;
  }
  return false;
}

/* Fills x with small integers, and what lies between its pixels with NaN (8 bits: with whatever is there). */
static void fill(const trial *t, uint64_t *seed) {
  char *x = t->memory[0];
  for (int64_t i = 0; i < t->x.elements; i++)
    hk_store_element(t->problem.x_type, x, i, t->problem.x_type == HK_BF16 ? NAN : 77);
  const hk_problem *p = &t->problem;
  const int64_t h = p->rank == 2 ? p->in[0] : 1, w = p->in[p->rank - 1];
  for (int64_t i = 0; i < p->n * h * w; i++)
    for (int64_t c = 0; c < p->c; c++) {
      const int64_t at = i / (h * w) * p->x.outer + (p->rank == 2 ? i / w % h * p->x.at[0] : 0) +
                         i % w * p->x.at[p->rank - 1] + c * p->x.channel;
      hk_store_element(p->x_type, x, at, hk_test_integer(seed, 3));
    }
  for (int64_t i = 0; p->x_type == HK_BF16 && i < t->y.elements; i++)
    hk_store_element(p->y_type, t->memory[3], i, hk_test_integer(seed, 9));
  for (int v = 4; p->x_type == HK_BF16 && v < 6; v++)
    for (int64_t i = 0; i < p->k; i++) ((float *)t->memory[v])[i] = (float)hk_test_integer(seed, 5);
  for (int64_t i = 0; i < t->f.elements; i++) hk_store_element(p->f_type, t->memory[1], i, hk_test_integer(seed, 3));
}

static void run(trial *t, const hk_options *o, char *y) {
  hk_plan *plan = NULL;
  CHECK(hk_plan_create(&plan, &t->problem, &t->epilogue, o, &t->weights) == HK_OK, "%s", hk_last_error());
  if (!plan) return;
  trial_prepare(t, plan, 0xA5);
  CHECK(hk_plan_execute(plan, &t->args) == HK_OK, "%s", hk_last_error());
  memcpy(y, t->memory[2], trial_y_bytes(t));
  hk_plan_destroy(plan);
}

static void compare(const trial_text *text) {
  static const char *const decisions[] = {"dots", "dots bm=7", "dots bm=32 bn=1"};
  trial t;
  uint64_t seed = 3;
  trial_make(&t, text->problem, text->epilogue, 1);
  fill(&t, &seed);
  char *want = malloc(trial_y_bytes(&t)), *y = malloc(trial_y_bytes(&t));
  if (!want || !y) exit(1);
  run(&t, &(hk_options){.size = sizeof(hk_options), .threads = 1, .decision = "ref"}, want);
  for (int i = 0; i < 2 * HK_COUNT(decisions) && runs(t.problem.x_type); i++) {
    const hk_options o = {.size = sizeof o, .threads = 1 + 2 * (i & 1), .decision = decisions[i / 2]};
    run(&t, &o, y);
    CHECK(!memcmp(want, y, trial_y_bytes(&t)), "%s, %s, %d threads: other bits than ref", text->problem, o.decision,
          o.threads);
  }
  free(want);
  free(y);
  trial_free(&t);
}

/* Scalar kernels behind passes that have rows of AVX2 and above only. */
static void scalar_inside(void) {
  static const char *const decisions[] = {"transpose_x / qgemm kernel=hk_qgemm_s16_2x4_scalar",
                                          "integers / planes kernel=hk_pgemm_f32_4x2_scalar bm=25 bs=1 wide=128"};
  trial t;
  trial_make(&t, "1d_n1_c5_i47_k25_w2_p1_d2_s8:s8:s8_first", "bias", 1);
  char *want = malloc(trial_y_bytes(&t)), *y = malloc(trial_y_bytes(&t));
  if (!want || !y) exit(1);
  run(&t, &(hk_options){.size = sizeof(hk_options), .threads = 1, .decision = "ref"}, want);
  for (int i = 0; i < HK_COUNT(decisions) && hk_cpu_has(HK_ISA_AVX2); i++) {
    run(&t, &(hk_options){.size = sizeof(hk_options), .threads = 1, .decision = decisions[i]}, y);
    CHECK(!memcmp(want, y, trial_y_bytes(&t)), "%s: other bits than ref", decisions[i]);
  }
  free(want);
  free(y);
  trial_free(&t);
}

/* The whole plan with AMX's packed weights and zero points, on any machine with AVX-512: the kernel is the template of
 * AMX over emulated tiles. */
void tiles_bf16(const void *args);
void tiles_s8(const void *args);
static const hk_kernel emulated[] = {
    {"emulated_bf16", HK_FAMILY_DOTS, HK_ISA_AMX, HK_BF16, HK_BF16, 32, 64, tiles_bf16, HK_FEATURE_NONE},
    {"emulated_s8", HK_FAMILY_DOTS, HK_ISA_AMX, HK_S8, HK_S8, 32, 64, tiles_s8, HK_FEATURE_NONE}};

static void emulate(const trial_text *text) {
  trial t;
  hk_task task;
  uint64_t seed = 3;
  char why[HK_REASON];
  trial_make(&t, text->problem, text->epilogue, 1);
  fill(&t, &seed);
  char *want = malloc(trial_y_bytes(&t));
  if (!want) exit(1);
  run(&t, &(hk_options){.size = sizeof(hk_options), .threads = 1, .decision = "ref"}, want);
  const hk_options o = {.size = sizeof o, .threads = 3};
  CHECK(hk_task_make(&task, &t.problem, &t.epilogue, &o, &t.weights) == HK_OK, "%s", hk_last_error());
  hk_task_read_weights(&task, t.weights.f);
  hk_decision d = {.algo = &hk_algo_dots, .kernel = &emulated[t.problem.x_type != HK_BF16], .isa = HK_ISA_AVX512};
  hk_plan *plan = NULL;
  CHECK(d.algo->offer(&task, &d, why), "%s: %s", text->problem, why);
  CHECK(hk_plan_build(&plan, &task, &d, &t.weights, NULL) == HK_OK, "%s", hk_last_error());
  trial_prepare(&t, plan, 0xA5);
  CHECK(hk_plan_execute(plan, &t.args) == HK_OK, "%s", hk_last_error());
  CHECK(!memcmp(want, t.memory[2], trial_y_bytes(&t)), "%s, emulated tiles: other bits than ref", text->problem);
  hk_plan_destroy(plan);
  free(want);
  trial_free(&t);
}

/* 2^-130 * 2^20 is a number that f32 holds, but bf16 dot products count 2^-130 as zero. */
static void check_denormals(void) {
  trial t;
  trial_make(&t, "1d_n1_c64_i256_k64_w1_bf16:bf16:f32_last", "none", 1);
  for (int64_t i = 0; i < t.x.elements; i++) hk_store_element(HK_BF16, t.memory[0], i, 0x1p-130);
  for (int64_t i = 0; i < t.f.elements; i++) hk_store_element(HK_BF16, t.memory[1], i, 0x1p20);
  float *y = malloc(trial_y_bytes(&t));
  if (!y) exit(1);
  hk_options o = {.size = sizeof o, .threads = 1, .denormals = HK_DENORMALS_EXACT};
  run(&t, &o, (char *)y);
  CHECK(y[0] == 0x1p-104f, "exact: 64 * 2^-130 * 2^20 gives %g", (double)y[0]);
  hk_plan *plan = NULL;
  o.decision = "dots kernel=hk_dots_bf16_6x64_avx512";
  if (runs(HK_BF16)) {
    CHECK(hk_plan_create(&plan, &t.problem, &t.epilogue, &o, &t.weights) == HK_UNSUPPORTED, "exact allows dots");
    CHECK(strstr(hk_last_error(), "denormals"), "refused for another reason: %s", hk_last_error());
    o.denormals = HK_DENORMALS_KEEP;
    run(&t, &o, (char *)y);
    CHECK(y[0] == 0, "dots counts denormals as zero, and gives %g", (double)y[0]);
    char text[4096];
    CHECK(hk_plan_create(&plan, &t.problem, &t.epilogue, &o, &t.weights) == HK_OK, "%s", hk_last_error());
    CHECK(hk_plan_print(plan, text, sizeof text, NULL) == HK_OK && strstr(text, "denormals  "), "the plan is silent");
    hk_plan_destroy(plan);
  }
  free(y);
  trial_free(&t);
}

int main(void) {
  for (int i = 0; i < HK_COUNT(texts); i++) compare(&texts[i]);
  for (int i = 0; i < HK_COUNT(texts) && hk_kernel_best(HK_FAMILY_FINISH, HK_ISA_AVX512); i++) emulate(&texts[i]);
  check_denormals();
  scalar_inside();
  return hk_test_end();
}
