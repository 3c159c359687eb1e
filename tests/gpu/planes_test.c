/* Every tile of wgmma_planes and of wgmma_halo against the CPU's reference: tails of channels, filters and pixels, taps
 * that reach over the ends of rows and planes (also with NaN waiting there), y whose rows are shorter than x's, one and
 * three dimensions, groups, epilogues, residuals. Needs a CUDA device; exits with 77 without. */
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "support/check.h"

static const gpu_case geometries[] = {
    {"2d_n2_c64_i16x12_k64_w1_bf16_first", "none", 0, 0, 0},
    {"2d_n2_c64_i16x12_k64_w3_p1_bf16_first", "none", 0, 0, 0},
    {"2d_n3_c128_i28x28_k128_w3_p1_bf16_first", "none", 0, 0, 1},
    {"2d_n2_c72_i10x12_k200_w3_p1_f16_first", "none", 0, 0, 0},
    {"2d_n2_c67_i20x18_k129_w3_p1_bf16_first", "none", 0, 0, 0},
    {"2d_n2_c100_i9x8_k72_w1_bf16_first", "none", 0, 0, 1},
    {"2d_n1_c64_i9x16_k64_w3_p1_f16_first", "none", 0, 0, 0},
    {"2d_n5_c32_i4x4_k8_w3_p1_f16_first", "none", 0, 0, 0},
    /* y with shorter rows, more rows, odd planes; asymmetric padding, cropping, dilation beyond a row */
    {"2d_n2_c64_i14x20_k136_w3x5_p1:0x2:1_d2x3_bf16_first", "none", 0, 0, 0},
    {"2d_n2_c64_i14x20_k136_w2x3_p3:2x0_f16_first", "none", 0, 0, 0},
    {"2d_n2_c64_i14x20_k136_w3x3_p0_bf16_first", "bias", 0, 0, 0},
    {"2d_n2_c64_i20x16_k72_w3_p-1:1x-2:3_bf16_first", "none", 0, 0, 0},
    {"2d_n1_c64_i32x24_k64_w3_p12_d12_bf16_first", "none", 0, 0, 0},
    {"2d_n2_c64_i16x8_k64_w3_p1x9_d1x9_bf16_first", "none", 0, 0, 0},
    {"2d_n2_c64_i64x1_k64_w3x1_p1x0_bf16_first", "none", 0, 0, 0},
    {"2d_n2_c64_i16x2_k64_w3_p1_f16_first", "none", 0, 0, 0},
    {"1d_n3_c64_i400_k72_w5_p2_f16_first", "relu", 0, 0, 0},
    {"1d_n2_c80_i264_k130_w3_p3:9_d7_bf16_first", "none", 0, 0, 0},
    {"1d_n2_c64_i64_k64_w3_p20_bf16_first", "none", 0, 0, 0},
    {"3d_n2_c40_i4x6x10_k72_w2x3x3_p1:0x1x1_bf16_first", "none", 0, 0, 0},
    {"3d_n1_c64_i5x4x6_k64_w3_p1:2x0:1x2:0_d1x2x1_f16_first", "none", 0, 0, 0},
    {"2d_n2_c128_i12x10_k272_w3_p1_g2_bf16_first", "bias", 0, 0, 0},
    {"2d_n2_c96_i12x10_k80_w3_p1_g4_f16_first", "scale+bias", 0, 0, 1},
    /* several tiles a block */
    {"2d_n80_c72_i16x16_k136_w3_p1_bf16_first", "none", 0, 0, 0},
    {"2d_n24_c64_i28x28_k128_w3_p1_f16_first", "bias+relu", 0, 0, 0},
    {"2d_n40_c64_i20x20_k64_w1_bf16_first", "none", 0, 0, 0},
    /* every remainder of a distance by eight */
    {"2d_n3_c64_i24x25_k96_w5_p2_bf16_first", "none", 0, 0, 0},
    {"1d_n2_c64_i600_k96_w13_p6_f16_first", "bias", 0, 0, 0},
    {"1d_n2_c64_i600_k96_w1_p-3:3_f16_first", "none", 0, 0, 0},
    /* planes that start at odd multiples of 8, 4 and 2 bytes; images that end within a box */
    {"2d_n5_c64_i14x14_k72_w3_p1_bf16_first", "none", 0, 0, 0},
    {"2d_n3_c256_i14x14_k256_w3_p1_f16_first", "bias+relu", 0, 0, 1},
    {"2d_n4_c72_i6x7_k136_w3_p1_bf16_first", "none", 0, 0, 0},
    {"2d_n4_c72_i7x7_k136_w3_p1_f16_first", "none", 0, 0, 1},
    {"2d_n3_c136_i9x11_k64_w5x3_p2x1_bf16_first", "none", 0, 0, 0},
    {"2d_n2_c144_i13x6_k96_w3_p1_g2_bf16_first", "scale+bias", 0, 0, 0},
    {"1d_n3_c80_i333_k72_w7_p3_f16_first", "none", 0, 0, 0},
    {"2d_n2_c64_i56x56_k64_w3_p1_bf16_first", "none", 0, 0, 0},
    {"2d_n1_c128_i64x64_k160_w3_p1_f16_first", "bias", 0, 0, 0},
    {"2d_n150_c64_i7x9_k64_w3_p1_f16_first", "none", 0, 0, 0},
    /* what waits behind the ends of rows must not be multiplied, not even by zero */
    {"2d_n2_c64_i14x12_k72_w3_p1_bf16_first", "none", FILL_ENDS, 0, 0},
    {"2d_n2_c64_i12x14_k72_w1x3_p0x2_d1x2_f16_first", "none", FILL_ENDS, 0, 0},
    {"3d_n2_c40_i4x6x10_k72_w3_p1_f16_first", "none", FILL_ENDS, 0, 0},
    {"2d_n3_c64_i14x14_k72_w3_p1_bf16_first", "none", FILL_ENDS, 0, 0},
    {"2d_n3_c64_i7x7_k72_w3_p1_f16_first", "none", FILL_ENDS, 0, 0},
};
static const char *const epilogue_problems[] = {
    "2d_n2_c64_i12x10_k160_w3_p1_bf16_first",
    "2d_n2_c64_i12x16_k160_w3_p1_f16_first",
    "2d_n2_c64_i12x10_k52_w3_p1x0_f16_first",
};
static const gpu_case coded[] = {
    {"2d_n3_c64_i8x14_k168_w1_bf16_first", "sum:1", FILL_POSITIONS, 0, 0},
    {"2d_n3_c64_i8x14_k168_w3_p1_f16_first", "sum:1", FILL_POSITIONS, 0, 0},
    {"2d_n3_c64_i8x14_k131_w3_p1x0_f16_first", "sum:1", FILL_POSITIONS, 0, 0},
    {"2d_n3_c128_i28x28_k272_w1_g2_bf16_first", "presum:1+relu", FILL_POSITIONS, 0, 0},
};

/* Problems that nobody wrote down: any size, window, dilation and padding that leaves an output. */
static int run_random(int count, uint64_t seed) {
  int ran = 0;
  for (int i = 0; i < count; ++i) {
    int v[16];
    char text[160];
    for (int j = 0; j < 16; ++j) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      v[j] = (int)(seed >> 40);
    }
    const int down = 1 + v[0] % 5, across = 1 + v[1] % 5, dd = 1 + v[2] % 3, da = 1 + v[3] % 3;
    const int h = (down - 1) * dd + 1 + v[4] % 12, w = (across - 1) * da + 1 + v[5] % 40;
    snprintf(text, sizeof text, "2d_n%d_c%d_i%dx%d_k%d_w%dx%d_p%d:%dx%d:%d_d%dx%d_%s_first", 1 + v[6] % 3,
             8 * (1 + v[7] % 10), h, w, 1 + v[8] % 140, down, across, v[9] % 4, v[10] % 4, v[11] % 5, v[12] % 5, dd, da,
             v[13] % 2 ? "bf16" : "f16");
    const gpu_case c = {text,
                        v[14] % 3   ? "none"
                        : v[14] % 2 ? "bias+relu"
                                    : "sum:0.5",
                        v[15] % 5 ? FILL_INTEGERS : FILL_ENDS, 0, v[15] % 2};
    ran += gpu_case_run(&c, NULL, (uint64_t)i);
  }
  return ran;
}

static int run_all(const char *only) {
  int ran = 0;
  gpu_only = only;
  for (size_t i = 0; i < sizeof geometries / sizeof *geometries; ++i) ran += gpu_case_run(&geometries[i], NULL, i);
  for (size_t p = 0; p < sizeof epilogue_problems / sizeof *epilogue_problems; ++p)
    for (size_t e = 0; e < (size_t)gpu_epilogue_count; ++e) {
      const gpu_case c = {epilogue_problems[p], gpu_epilogues[e], 0, 0, 0};
      ran += gpu_case_run(&c, NULL, 7 + e);
    }
  for (size_t i = 0; i < sizeof coded / sizeof *coded; ++i) ran += gpu_case_run(&coded[i], NULL, 60 + i);
  ran += run_random(40, 97531);
  printf("%s: %d executions compared\n", only, ran);
  return ran;
}

int main(void) {
  enum { CASES = sizeof geometries / sizeof *geometries + sizeof coded / sizeof *coded };
  hk_gpu gpu = {.size = sizeof gpu};
  if (hk_gpu_info(&gpu) || !gpu.kernels) {
    printf("no CUDA device: %s\n", hk_last_error());
    return 77;
  }
  /* planes leaves odd planes to halo, halo single taps and volumes to planes */
  const int planes = run_all("wgmma_planes "), halo = run_all("wgmma_halo ");
  CHECK(planes >= CASES * 4 && halo >= CASES * 6, "%d and %d executions of %d problems", planes, halo, CASES);
  return hk_test_end();
}
