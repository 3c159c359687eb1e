/* Filter gradients on the device (wgmma_outer): every tile and several numbers of slices against the CPU's reference,
 * exact on small integers, y between guards. Problems are made by hk_problem_grad_filter from forward ones: several
 * tiles deep, tails of pixels, channels and taps, strides, dilation, padding, groups, all ranks and result types,
 * accumulation into y's residual. `outer_test cases` and `outer_test random COUNT` are its parts; `outer_test probe`
 * says where a wrong result comes from: what one pixel of dy and coded positions of x became. Needs a CUDA device;
 * exits with 77 without. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "support/check.h"

typedef struct forward {
  const char *problem, *epilogue;
  int fill, late;
} forward;

static const forward cases[] = {
    {"2d_n1_c64_i8x8_k64_w1_bf16:bf16:bf16_last", "none", 0, 1},
    {"2d_n2_c64_i8x8_k64_w3_p1_bf16_last", "none", 0, 1},
    {"2d_n2_c128_i16x16_k128_w3_p1_bf16_last", "none", 0, 1},
    {"2d_n3_c192_i9x11_k320_w3_p1_f16_last", "none", 0, 1},
    {"2d_n5_c256_i14x14_k256_w3_p1_bf16_last", "none", 0, 1},
    {"2d_n4_c64_i30x31_k64_w3_p1_bf16_last", "none", 0, 1},
    {"2d_n2_c128_i17x19_k136_w3_s2_p1_f16_last", "none", 0, 1},
    {"2d_n3_c72_i13x12_k40_w3x2_s1x2_p1:0x0:1_d2x1_bf16_last", "none", 0, 0},
    {"2d_n7_c128_i7x7_k264_w1_bf16_last", "none", 0, 1},
    {"2d_n2_c64_i20x20_k128_w1_s2_f16_last", "none", 0, 1},
    {"1d_n3_c64_i300_k96_w5_p3:9_d7_bf16_last", "none", 0, 1},
    {"3d_n2_c40_i5x6x7_k72_w2x3x2_s1x1x2_p1:0x0:2x1_f16_last", "none", 0, 0},
    {"2d_n2_c512_i8x8_k192_w3_p1_bf16_last", "none", 0, 1},
    /* joined groups: depthwise, 8, 24 and 64 channels each, unlike channels on both sides */
    {"2d_n2_c96_i14x14_k96_w7_p3_g96_bf16_last", "none", 0, 1},
    {"2d_n2_c128_i14x14_k128_w3_p1_g16_f16_last", "none", 0, 1},
    {"2d_n2_c120_i9x10_k72_w3_s2_p1_g3_bf16_last", "none", 0, 1},
    {"2d_n2_c128_i12x10_k256_w3_p1_g2_bf16_last", "none", 0, 0},
    {"2d_n2_c16_i12x10_k64_w3_p1_g8_bf16_last", "none", 0, 1},
    /* epilogues: accumulated, scaled, with an activation */
    {"2d_n2_c64_i16x16_k64_w3_p1_bf16_last", "sum:1", 0, 1},
    {"2d_n2_c128_i8x8_k72_w1_f16_last", "scale1+presum:0.5", 0, 1},
    {"2d_n2_c64_i9x8_k64_w3_p1_bf16_last", "scale+bias+relu", 0, 0},
    {"2d_n4_c256_i14x14_k128_w3_p1_bf16_last", "none", FILL_FRACTIONS, 1},
    /* NaN in x: what padding makes of it is computed again */
    {"2d_n2_c64_i9x8_k64_w3_p1_bf16_last", "sum:1", FILL_ENDS, 1},
};

/* The filter's gradient, with y of the type that the case's index says. */
static bool gradient(const char *text, int index, hk_problem *grad) {
  hk_problem p = {.size = sizeof p};
  grad->size = sizeof *grad;
  if (hk_problem_parse(&p, text) || hk_problem_grad_filter(&p, grad)) {
    CHECK(false, "%s: %s", text, hk_last_error());
    return false;
  }
  if (index % 2) grad->y_type = HK_F32;
  return true;
}

static int run(const forward *f, int index) {
  hk_problem grad;
  if (!gradient(f->problem, index, &grad)) return 0;
  const gpu_case c = {NULL, f->epilogue, f->fill, 0, f->late};
  const int ran = gpu_case_run(&c, &grad, 100 + (uint64_t)index);
  printf("%-60s %d decisions\n", f->problem, ran);
  fflush(stdout);
  CHECK(ran > 0, "%s: no decision ran", f->problem);
  return ran;
}

static int pick(uint64_t *seed, int lo, int hi) {
  return lo + (hk_test_integer(seed, 1 << 20) + (1 << 20)) % (hi - lo + 1);
}

static int run_random(int count, uint64_t seed) {
  int ran = 0;
  for (int i = 0; i < count; ++i) {
    hk_conv_desc d = {.size = sizeof d, .rank = pick(&seed, 1, 3), .n = pick(&seed, 1, 5), .layout = HK_CHANNELS_LAST};
    hk_problem p = {.size = sizeof p}, grad = {.size = sizeof grad};
    d.groups = pick(&seed, 0, 3) ? 1 : pick(&seed, 1, 6);
    const int each = d.groups == 1 ? 8 : pick(&seed, 0, 1) ? 8 : 16;
    d.c = pick(&seed, 1, 24) * each * d.groups, d.k = pick(&seed, 1, 40) * 8 * d.groups;
    if (d.groups > 1) d.c = each * d.groups * pick(&seed, 1, 5), d.k = 8 * d.groups * pick(&seed, 1, 5);
    d.x_type = d.f_type = d.y_type = pick(&seed, 0, 1) ? HK_BF16 : HK_F16;
    for (int a = 0; a < d.rank; ++a) {
      d.window[a] = pick(&seed, 1, 3), d.stride[a] = pick(&seed, 1, 3), d.dilation[a] = pick(&seed, 1, 3);
      d.pad_lo[a] = pick(&seed, 0, 3), d.pad_hi[a] = pick(&seed, 0, 3);
      d.in[a] = pick(&seed, 7, d.rank == 1 ? 400 : d.rank == 2 ? 20 : 9);
    }
    if (hk_problem_conv(&p, &d) || hk_problem_grad_filter(&p, &grad)) continue;
    if (pick(&seed, 0, 1)) grad.y_type = HK_F32;
    const gpu_case c = {NULL, i % 3 ? "none" : "sum:1", 0, 0, i % 4 != 0};
    ran += gpu_case_run(&c, &grad, (uint64_t)i);
  }
  return ran;
}

/* One image of 64 pixels, 64 x 64 channels and one or three taps: dy is 1 at one pixel and channel, x is coded.
 * y[k][s][c] then is x at that pixel and tap: where it stands in y, and what it holds, tell which operand is read
 * wrongly, and how. */
enum { PIXELS = 64, CHANNELS = 64, MOST_TAPS = 3 };
typedef struct probe {
  hk_plan *plan;
  int taps;
  uint16_t x[PIXELS * CHANNELS], f[PIXELS * CHANNELS];
  float y[CHANNELS * MOST_TAPS * CHANNELS];
  void *dx, *df, *dy, *workspace;
  size_t need;
} probe;

static uint16_t bf16_of(int v) { /* exact up to 256 */
  const float f = (float)v;
  uint32_t u;
  memcpy(&u, &f, 4);
  return (uint16_t)(u >> 16);
}

static float probe_want(const probe *p, int pixel, int k, bool by_pixel, int i) {
  const int c = i % CHANNELS, at = pixel + i / CHANNELS % p->taps - p->taps / 2;
  if (i / CHANNELS / p->taps != k || at < 0 || at >= PIXELS) return 0.0f;
  return (float)(by_pixel ? at + 1 : c + 1);
}

static void probe_one(probe *p, int pixel, int k, bool by_pixel) {
  const int count = CHANNELS * p->taps * CHANNELS;
  int wrong = 0;
  memset(p->f, 0, sizeof p->f);
  p->f[pixel * CHANNELS + k] = bf16_of(1);
  for (int i = 0; i < PIXELS * CHANNELS; ++i) p->x[i] = bf16_of(by_pixel ? i / CHANNELS + 1 : i % CHANNELS + 1);
  hk_gpu_copy(p->dx, p->x, sizeof p->x), hk_gpu_copy(p->df, p->f, sizeof p->f);
  const hk_args a = {
      .size = sizeof a, .x = p->dx, .f = p->df, .y = p->dy, .workspace = p->workspace, .workspace_bytes = p->need};
  if (hk_plan_execute(p->plan, &a) || hk_gpu_sync(NULL)) exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  hk_gpu_copy(p->y, p->dy, sizeof(float) * (size_t)count);
  printf("  dy[pixel %d][k %d] = 1, x = %s + 1:", pixel, k, by_pixel ? "pixel" : "c");
  for (int i = 0; i < count; ++i) {
    const float want = probe_want(p, pixel, k, by_pixel, i);
    if (p->y[i] == want || wrong++ >= 8) continue;
    printf(" y[k %d][tap %d][c %d] = %g not %g;", i / CHANNELS / p->taps, i / CHANNELS % p->taps, i % CHANNELS,
           (double)p->y[i], (double)want);
  }
  printf(wrong ? " %d wrong\n" : " right\n", wrong);
}

static void diagnose(int taps, const char *decision) {
  static const int spots[][2] = {{0, 0}, {0, 1}, {0, 9}, {1, 0}, {3, 5}, {8, 0}, {17, 33}, {63, 63}};
  static probe p;
  char text[512];
  hk_problem grad, forward = {.size = sizeof forward};
  const hk_options o = {.size = sizeof o, .device = HK_CUDA, .decision = decision};
  grad.size = sizeof grad;
  p.taps = taps;
  if (hk_problem_parse(&forward, taps == 1 ? "1d_n1_c64_i64_k64_w1_bf16_last" : "1d_n1_c64_i64_k64_w3_p1_bf16_last") ||
      hk_problem_grad_filter(&forward, &grad))
    exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  grad.y_type = HK_F32;
  if (hk_plan_create(&p.plan, &grad, NULL, &o, NULL)) exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  hk_plan_decision(p.plan, text, sizeof text, NULL);
  printf("%s\n", text);
  p.need = hk_plan_workspace(p.plan);
  hk_gpu_alloc(&p.dx, sizeof p.x), hk_gpu_alloc(&p.df, sizeof p.f), hk_gpu_alloc(&p.dy, sizeof p.y);
  if (p.need) hk_gpu_alloc(&p.workspace, p.need);
  for (size_t i = 0; i < sizeof spots / sizeof *spots; ++i)
    for (int by_pixel = 0; by_pixel < 2; ++by_pixel) probe_one(&p, spots[i][0], spots[i][1], by_pixel);
  hk_plan_destroy(p.plan);
  hk_gpu_free(p.dx), hk_gpu_free(p.df), hk_gpu_free(p.dy);
  if (p.need) hk_gpu_free(p.workspace);
}

static void diagnose_all(void) {
  diagnose(1, "wgmma_outer bm=64 bn=64 cm=1 cn=1 strip=0 slices=1");
  diagnose(3, "wgmma_outer bm=64 bn=64 cm=1 cn=1 strip=0 slices=1");
  diagnose(1, "wgmma_outer bm=128 bn=256 cm=1 cn=1 strip=0 slices=1");
  diagnose(3, "wgmma_outer bm=128 bn=192 cm=1 cn=1 strip=0 slices=1");
  diagnose(3, "wgmma_outer bm=128 bn=192 cm=1 cn=1 strip=1 slices=1");
}

int main(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  hk_gpu gpu = {.size = sizeof gpu};
  int ran = 0;
  if (hk_gpu_info(&gpu) || !gpu.kernels) {
    printf("no CUDA device: %s\n", hk_last_error());
    return 77;
  }
  gpu_only = "wgmma_outer";
  if (!strcmp(word, "probe")) {
    diagnose_all();
    return 0;
  }
  for (size_t i = 0; i < sizeof cases / sizeof *cases && strcmp(word, "random"); ++i) ran += run(&cases[i], (int)i);
  if (!*word || !strcmp(word, "random")) ran += run_random(argc > 2 ? atoi(argv[2]) : 25, 5);
  printf("%d executions compared\n", ran);
  CHECK(ran > 0, "nothing ran");
  return hk_test_end();
}
