/* Every tile of cuda_simt against the CPU's reference: all types of sums, any strides and dilations, groups, tails of
 * rows, columns and products, slices, gradients of filters. Needs a CUDA device; exits with 77 without. */
#include <stdio.h>

#include "device.h"
#include "support/check.h"

static const gpu_case geometries[] = {
    {"2d_n2_c16_i16x12_k64_w1_f32_last", "none", 0, 0, 0},
    {"2d_n2_c16_i16x12_k64_w3_p1_f32_first", "none", 0, 0, 1},
    {"2d_n3_c67_i20x18_k129_w3_p1_f32_last", "none", 0, 0, 0},
    {"2d_n3_c67_i20x18_k129_w3_p1_f32_first", "bias+relu", 0, 0, 1},
    {"2d_n1_c3_i33x31_k200_w7_s2_p3_f32_last", "none", 0, 0, 0},
    {"2d_n1_c3_i33x31_k200_w7_s2_p3_f32_first", "none", 0, 0, 0},
    {"2d_n2_c40_i14x20_k136_w3x5_p1:0x2:1_d2x3_f32_first", "none", FILL_FRACTIONS, 0, 0},
    {"2d_n2_c40_i14x20_k136_w3x5_p-1:0x2:1_s2x3_f32_last", "none", 0, 0, 0},
    {"2d_n2_c24_i9x11_k40_w3_p2_l2x3_f32_last", "none", 0, 0, 0},
    {"2d_n2_c24_i9x11_k40_w3_p2_l3x2_d2_f32_first", "none", 0, 0, 1},
    {"1d_n5_c1_i777_k300_w33_p16_f32_first", "none", 0, 0, 0},
    {"1d_n5_c1_i777_k300_w33_p16_s5_f32_last", "bias", 0, 0, 0},
    {"3d_n2_c7_i5x6x9_k33_w2x3x3_p1:0x1x1_f32_last", "none", 0, 0, 0},
    {"3d_n2_c7_i5x6x9_k33_w3_p1_d1x2x1_s2x1x2_f32_first", "none", 0, 0, 0},
    {"2d_n2_c96_i12x10_k80_w3_p1_g4_f32_last", "scale+bias", 0, 0, 1},
    {"2d_n2_c96_i12x10_k64_w3_p1_g32_f32_first", "none", 0, 0, 0},
    /* few outputs of long sums: slices */
    {"2d_n1_c512_i7x7_k32_w3_p1_f32_last", "bias+relu", 0, 0, 0},
    {"2d_n1_c2048_i1x1_k1000_w1_f32_last", "bias", 0, 0, 0},
    {"1d_n2_c300_i40_k9_w40_f32_first", "sum:0.5", 0, 0, 1},
    /* mixed floats */
    {"2d_n2_c33_i15x12_k70_w3_p1_bf16:f32:f32_last", "none", 0, 0, 0},
    {"2d_n2_c33_i15x12_k70_w3_p1_f16:bf16:f16_first", "none", 0, 0, 1},
    {"2d_n2_c33_i15x12_k10_w3_p1_s2_bf16_first", "none", 0, 0, 0},
    /* f64 and int8 */
    {"2d_n2_c33_i15x12_k70_w3_p1_f64_last", "bias", 0, 0, 0},
    {"2d_n1_c333_i9x7_k7_w3_p1_f64_first", "none", 0, 0, 1},
    {"2d_n2_c33_i15x12_k130_w3_p1_u8:s8:s32_last", "none", 0, 0, 0},
    {"2d_n2_c33_i15x12_k70_w3_p1_s8:s8:s8_first", "scale+bias", 0, 0, 1},
    {"2d_n1_c777_i5x5_k6_w3_p1_u8:u8:f32_last", "scale", 0, 0, 0},
    {"2d_n40_c32_i28x28_k96_w3_p1_f32_last", "bias+relu", 0, 0, 0},
};

/* Gradients of filters: hk_problem_grad_filter of these. */
static const char *const forward[] = {
    "2d_n4_c24_i14x14_k40_w3_p1_f32_last",     "2d_n4_c24_i15x14_k40_w3_s2_p1_f32_first",
    "2d_n8_c3_i32x32_k64_w7_s2_p3_f32_last",   "2d_n3_c64_i9x9_k48_w1_bf16_last",
    "1d_n3_c20_i200_k36_w5_p4:0_d2_f16_first", "2d_n4_c32_i14x14_k32_w3_p1_g32_bf16_last",
    "2d_n4_c32_i12x14_k64_w5_p2_g4_f32_first", "3d_n2_c6_i5x7x6_k10_w3_p1_s1x2x1_f32_last",
    "2d_n2_c130_i8x8_k70_w3_p1_f64_last",
};

static int run_gradients(void) {
  int ran = 0;
  for (size_t i = 0; i < sizeof forward / sizeof *forward; ++i) {
    hk_problem p = {.size = sizeof p}, grad = {.size = sizeof grad};
    if (hk_problem_parse(&p, forward[i]) || hk_problem_grad_filter(&p, &grad)) {
      CHECK(false, "%s: %s", forward[i], hk_last_error());
      continue;
    }
    const gpu_case c = {forward[i], i % 2 ? "none" : "sum:1", 0, 0, 1};
    ran += gpu_case_run(&c, &grad, 300 + i);
  }
  return ran;
}

/* Problems that nobody wrote down, of one to three dimensions. */
static int run_random(int count, uint64_t seed) {
  static const char *const types[] = {"f32", "f32",       "f32",       "bf16:f32:bf16",
                                      "f64", "u8:s8:s32", "s8:s8:f32", "f16:f16:f32"};
  int ran = 0;
  for (int i = 0; i < count; ++i) {
    int v[16];
    char text[200];
    for (int j = 0; j < 16; ++j) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      v[j] = (int)(seed >> 40);
    }
    const int groups = v[0] % 4 ? 1 : 1 + v[0] % 5, down = 1 + v[1] % 4, across = 1 + v[2] % 6;
    const int dd = 1 + v[3] % 3, da = 1 + v[3] / 3 % 3, sd = 1 + v[4] % 3, sa = 1 + v[4] / 3 % 3;
    const int h = (down - 1) * dd + 1 + v[5] % 14, w = (across - 1) * da + 1 + v[6] % 60;
    const int input = v[7] % 5 ? 1 : 1 + v[7] / 5 % 3;
    snprintf(text, sizeof text, "2d_n%d_c%d_i%dx%d_k%d_w%dx%d_s%dx%d_p%d:%dx%d:%d_d%dx%d_l%d_g%d_%s_%s", 1 + v[8] % 4,
             groups * (1 + v[9] % (v[9] % 7 ? 40 : 300)), h, w, groups * (1 + v[10] % 150), down, across, sd, sa,
             v[11] % 4, v[12] % 4, v[13] % 5, v[13] / 5 % 5, dd, da, input, groups, types[v[14] % 8],
             v[14] / 8 % 2 ? "last" : "first");
    const gpu_case c = {text,
                        v[15] % 3        ? "none"
                        : v[14] % 8 == 5 ? "bias"
                                         : "bias+relu",
                        FILL_INTEGERS, 0, v[15] / 3 % 2};
    ran += gpu_case_run(&c, NULL, (uint64_t)i);
  }
  return ran;
}

int main(void) {
  enum { CASES = sizeof geometries / sizeof *geometries };
  hk_gpu gpu = {.size = sizeof gpu};
  int ran = 0;
  if (hk_gpu_info(&gpu) || !gpu.kernels) {
    printf("no CUDA device: %s\n", hk_last_error());
    return 77;
  }
  gpu_only = "cuda_simt ";
  for (size_t i = 0; i < CASES; ++i) ran += gpu_case_run(&geometries[i], NULL, i);
  for (int e = 0; e < gpu_epilogue_count; ++e) {
    const gpu_case c = {"2d_n2_c20_i12x10_k52_w3_p1_f32_last", gpu_epilogues[e], 0, 0, 0};
    ran += gpu_case_run(&c, NULL, 7 + (uint64_t)e);
  }
  ran += run_gradients();
  ran += run_random(150, 8642);
  printf("cuda_simt: %d executions compared\n", ran);
  CHECK(ran >= 400, "only %d executions", ran);
  return hk_test_end();
}
