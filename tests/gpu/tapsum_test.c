/* Gradients of filters by cuda_tapsum on the device, every kernel of it that takes the problem and several numbers of
 * slices, against the CPU's reference on integers: depthwise, grouped, few channels of x, dense; both layouts, the
 * three types, mixed types, strides, dilations, input dilation, reversed filters, tails, accumulation into y, random
 * problems. Then the same bits twice, and no workspace. Needs a CUDA device; exits with 77 without. `tapsum_test short`
 * is the set for compute-sanitizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "device.h"
#include "support/check.h"

/* Forward problems without type and layout; their filter gradients are tested. */
static const char *const shapes[] = {
    "1d_n2_c64_i300_k64_w4_p3:0_g64",
    "1d_n3_c128_i517_k128_w4_p3:0_g128",
    "1d_n2_c20_i333_k20_w7_p3_g20",
    "1d_n1_c40_i257_k40_w3_s2_p1_g40",
    "1d_n2_c16_i600_k16_w31_p15_g16",
    "1d_n1_c13_i701_k13_w9_s3_p4:5_d2_g13",
    "2d_n2_c96_i14x14_k96_w7_p3_g96",
    "2d_n2_c48_i28x30_k48_w3_s2_p1_g48",
    "2d_n3_c130_i9x11_k130_w3_p1_g130",
    "2d_n2_c24_i20x33_k24_w5_p2_g24",
    "2d_n2_c10_i31x56_k10_w7_p3_g10",
    "2d_n3_c16_i48x24_k16_w3_p1:0x2_g16",
    "2d_n1_c8_i17x19_k16_w3_p2_d2_g8",
    "2d_n2_c70_i13x17_k70_w5_s2_p2_g70",
    "2d_n2_c64_i28x28_k64_w3_p1_g8",
    "2d_n3_c256_i14x14_k256_w3_p1_g32",
    "2d_n2_c128_i15x13_k128_w3_p1_g32",
    "2d_n2_c64_i13x21_k64_w3_s2_p1:0x1_g4",
    "2d_n2_c96_i12x12_k96_w5_p2_g3",
    "2d_n1_c24_i30x9_k24_w3x5_p1x2_g6",
    "2d_n2_c72_i11x10_k72_w3_p2_d2_g9",
    "2d_n1_c64_i7x40_k64_w1x3_p0x1_g8",
    "2d_n2_c40_i9x9_k20_w3_p1_g10",
    "2d_n2_c3_i64x48_k64_w7_s2_p3",
    "2d_n2_c3_i33x45_k72_w5_p2",
    "2d_n1_c4_i16x24_k136_w3_p1:2x1:0_d2x1",
    "2d_n2_c1_i30x40_k24_w5_p2",
    "1d_n2_c1_i1000_k32_w20_s5_p5",
    "1d_n2_c4_i500_k80_w7_s3_p4",
    "2d_n2_c3_i20x40_k30_w3_p1",
    "2d_n1_c5_i9x8_k7_w3_p1",
    "2d_n2_c64_i12x10_k70_w3_p1",
    "2d_n4_c72_i9x9_k40_w1",
    "3d_n2_c16_i5x9x13_k16_w3x2x5_s2x1x1_p1x0x2_g16",
    "3d_n1_c24_i5x9x7_k12_w3_p1_g4",
};
static const char *const kinds[] = {"f32", "bf16", "f16", "bf16:bf16:f32"};
static const char *const layouts[] = {"last", "first"};

/* The filter gradient of a forward problem; accumulated into: f32. */
static bool gradient(const char *text, hk_problem *q) {
  hk_problem p = {.size = sizeof p};
  *q = (hk_problem){.size = sizeof *q};
  if (!hk_problem_parse(&p, text) && !hk_problem_grad_filter(&p, q)) return true;
  fprintf(stderr, "%s: %s\n", text, hk_last_error());
  exit(1);
}

static int run_text(const char *text, const char *epilogue, int fill, uint64_t seed) {
  hk_problem q;
  gradient(text, &q);
  const gpu_case c = {text, epilogue, fill, 0, seed % 4 != 0};
  return gpu_case_run(&c, &q, seed);
}

static int run_shapes(bool few) {
  int ran = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t k = 0; k < 4; k++)
      for (size_t l = 0; l < 2; l++) {
        char text[200];
        if ((few && (k != 1 || l)) || (k == 2 && i % 3) || (k == 3 && i % 4)) continue;
        snprintf(text, sizeof text, "%s_%s_%s", shapes[i], kinds[k], layouts[l]);
        ran += run_text(text, i % 5 == 2 ? "sum:1" : "none", FILL_INTEGERS, i * 8 + k * 2 + l);
      }
  return ran;
}

/* Filters given at creation whose first element lies anywhere in them, since they are reversed. */
static int run_reversed(void) {
  static const char *const texts[] = {
      "2d_n2_c3_i4x5_k53_w2x2_flip1x0_f32_first", "2d_n2_c3_i10x10_k5_w6x6_flip1x0_bf16_first",
      "2d_n2_c6_i7x6_k6_w5x3_g6_flip1x0_f16_first", "2d_n2_c2_i4x5_k2_w2x3_g2_flip0x1_bf16_last"};
  int ran = 0;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    hk_problem p = {.size = sizeof p};
    const gpu_case c = {texts[i], "scale+bias+clip:-2:3", FILL_INTEGERS, 0, false};
    CHECK(!hk_problem_parse(&p, texts[i]), "%s: %s", texts[i], hk_last_error());
    ran += gpu_case_run(&c, &p, i);
  }
  return ran;
}

static int pick(uint64_t *seed, int lo, int hi) {
  return lo + (hk_test_integer(seed, 1 << 20) + (1 << 20)) % (hi - lo + 1);
}

static bool random_problem(hk_problem *q, uint64_t *seed) {
  static const hk_type types[] = {HK_BF16, HK_F16, HK_F32};
  static const int pers[] = {1, 1, 1, 2, 3, 4, 8, 16, 32};
  hk_conv_desc d = {.size = sizeof d, .rank = pick(seed, 0, 5) ? pick(seed, 1, 2) : 3, .n = pick(seed, 1, 4)};
  d.groups = pick(seed, 0, 1) ? 1 : pick(seed, 1, 5) * (pick(seed, 0, 1) ? 8 : 1);
  const int per = pers[pick(seed, 0, 8)];
  d.layout = pick(seed, 0, 2) ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST;
  d.c = d.groups * per;
  d.k = d.groups * (pick(seed, 0, 3) ? per : pick(seed, 1, 10));
  if (d.groups == 1 && pick(seed, 0, 1)) d.k = 8 * pick(seed, 1, 12);
  d.x_type = d.f_type = d.y_type = types[pick(seed, 0, 2)];
  for (int a = 0; a < d.rank; a++) {
    d.in[a] = pick(seed, 4, d.rank == 1 ? 900 : d.rank == 3 ? 8 : 40);
    d.window[a] = pick(seed, 1, d.rank == 3 ? 3 : 8);
    d.stride[a] = pick(seed, 0, 1) ? 1 : pick(seed, 1, 3), d.dilation[a] = pick(seed, 0, 2) ? 1 : pick(seed, 1, 3);
    d.pad_lo[a] = pick(seed, 0, (int)d.window[a]), d.pad_hi[a] = pick(seed, 0, (int)d.window[a]);
  }
  hk_problem p = {.size = sizeof p};
  if (hk_problem_conv(&p, &d)) return false;
  p.reverse[0] = pick(seed, 0, 8) == 0;
  if (pick(seed, 0, 9) == 0) p.in_dilation[p.rank - 1] = 2;
  if (pick(seed, 0, 6) == 0) p.f_type = HK_F32;
  *q = (hk_problem){.size = sizeof *q};
  return !hk_problem_grad_filter(&p, q);
}

static int run_random(int count, uint64_t seed) {
  int ran = 0;
  for (int i = 0; i < count; i++) {
    hk_problem q;
    if (!random_problem(&q, &seed)) continue;
    const gpu_case c = {NULL, i % 5 ? "none" : "scale+bias+relu+sum:1", FILL_INTEGERS, 0, i % 4 != 0};
    ran += gpu_case_run(&c, &q, seed);
  }
  return ran;
}

typedef struct tensors {
  char *x, *f, *y, *workspace;
} tensors;

/* Executes a decision (NULL: the planner's) on fractions; the result is copied to `to`. */
static void execute(const hk_problem *q, const tensors *t, hk_options o, char *to, size_t bytes) {
  hk_plan *plan = NULL;
  o.size = sizeof o, o.device = HK_CUDA, o.forbid_fallback = 1;
  CHECK(hk_plan_create(&plan, q, NULL, &o, NULL) == HK_OK, "%s", hk_last_error());
  if (!plan) return;
  CHECK(!o.limit_workspace || hk_plan_workspace(plan) == 0, "a plan without workspace needs some");
  const hk_args a = {.size = sizeof a,
                     .x = t->x,
                     .f = t->f,
                     .y = t->y,
                     .workspace = t->workspace,
                     .workspace_bytes = hk_plan_workspace(plan)};
  CHECK(hk_plan_execute(plan, &a) == HK_OK && hk_gpu_sync(NULL) == HK_OK, "%s", hk_last_error());
  hk_gpu_copy(to, t->y, bytes);
  hk_plan_destroy(plan);
}

static void fill(char **device, hk_type type, int64_t elements, uint64_t seed) {
  char *host = malloc((size_t)elements * hk_type_bytes(type));
  for (int64_t i = 0; i < elements; i++) hk_store_element(type, host, i, hk_test_integer(&seed, 1000) / 1000.0);
  hk_gpu_alloc((void **)device, (size_t)elements * hk_type_bytes(type));
  hk_gpu_copy(*device, host, (size_t)elements * hk_type_bytes(type));
  free(host);
}

/* The same bits in two executions, and a plan for a workspace limit of 0. */
static void run_again(const char *text) {
  hk_problem q;
  hk_extent x, f, y;
  tensors t;
  gradient(text, &q);
  hk_problem_extents(&q, &x, &f, &y);
  const size_t bytes = (size_t)y.elements * hk_type_bytes(q.y_type);
  fill(&t.x, q.x_type, x.elements, 1), fill(&t.f, q.f_type, f.elements, 2), fill(&t.y, q.y_type, y.elements, 3);
  hk_gpu_alloc((void **)&t.workspace, (size_t)64 << 20);
  char *first = malloc(bytes), *second = malloc(bytes);
  execute(&q, &t, (hk_options){0}, first, bytes);
  execute(&q, &t, (hk_options){0}, second, bytes);
  CHECK(!memcmp(first, second, bytes), "%s: two executions differ", text);
  execute(&q, &t, (hk_options){.limit_workspace = 1}, second, bytes);
  for (int64_t i = 0; i < y.elements; i++) {
    const double a = hk_load_element(q.y_type, first, i), b = hk_load_element(q.y_type, second, i);
    CHECK(a - b < 0.5 && b - a < 0.5, "%s: without workspace element %lld is %g, not %g", text, (long long)i, b, a);
  }
  free(first), free(second);
  hk_gpu_free(t.x), hk_gpu_free(t.f), hk_gpu_free(t.y), hk_gpu_free(t.workspace);
}

int main(int argc, char **argv) {
  const bool few = argc > 1 && !strcmp(argv[1], "short");
  hk_gpu gpu = {.size = sizeof gpu};
  if (hk_gpu_info(&gpu) || !gpu.kernels) {
    printf("no CUDA device: %s\n", hk_last_error());
    return 77;
  }
  gpu_few_tiles = true;
  gpu_only = "cuda_tapsum";
  int ran = run_shapes(few);
  ran += run_reversed();
  if (!few) ran += run_random(120, 5);
  run_again("2d_n4_c96_i28x28_k96_w7_p3_g96_f32_last");
  run_again("2d_n4_c3_i64x64_k64_w7_s2_p3_bf16:bf16:f32_last");
  run_again("2d_n4_c64_i28x28_k64_w3_p1_g8_bf16:bf16:f32_last");
  run_again("2d_n4_c64_i28x28_k64_w3_p1_f32_first");
  printf("%d executions compared\n", ran);
  CHECK(ran > 0, "nothing ran");
  return hk_test_end();
}
