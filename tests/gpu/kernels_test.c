/* Every wgmma tile and every other CUDA decision against the CPU's reference: geometries that squares would hide, every
 * epilogue, both layouts of y, odd channels, groups, gradients' dilations, random problems. Needs a CUDA device; exits
 * with 77 without. `kernels_test short` and `shortest` are the sets for compute-sanitizer; `geometries`, `general`,
 * `epilogues` and `random` are parts of the whole, which may run side by side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "support/check.h"

static const gpu_case geometries[] = {
    {"2d_n2_c64_i13x9_k96_w3x2_s2x1_p1:2x0:1_d1x2_bf16:bf16:f32_last", "none", 0, 0, 0},
    {"2d_n3_c64_i17x19_k64_w2x3_s1x2_p0:3x2:1_d2x1_bf16:bf16:f32_last", "none", 0, 0, 1},
    {"2d_n3_c72_i7x5_k200_w1_bf16_last", "none", 0, 0, 0},
    {"1d_n2_c64_i300_k40_w5_p3:9_d7_bf16:bf16:f32_last", "none", 0, 0, 0},
    {"3d_n2_c40_i5x6x7_k72_w2x3x2_s1x1x2_p1:0x0:2x1_bf16:bf16:f32_last", "none", 0, 0, 0},
    {"2d_n8_c128_i30x31_k320_w3_p1_bf16_last", "none", 0, 0, 0},
    {"2d_n2_c128_i20_k272_w3_p1_g2_bf16_last", "bias", 0, 0, 0},
    {"2d_n2_c64_i20_k129_w3_p-1:1x-2:-3_bf16_last", "bias", 0, 0, 0},
    {"2d_n1_c64_i9_k64_w3_p5:6x5_f16_last", "none", 0, 0, 1},
    {"2d_n2_c64_i12x10_k136_w3_p1_f16:f16:f32_last", "none", 0, 0, 0},
    {"2d_n2_c64_i12x10_k136_w3_p1_f32_last", "none", 0, HK_MATH_TF32 | HK_MATH_SPLIT_F32, 0},
    {"2d_n2_c36_i12x10_k130_w3_p1_f32_first", "none", 0, HK_MATH_TF32 | HK_MATH_SPLIT_F32, 1},
    {"2d_n2_c160_i12x10_k136_w3_p1_f8e4m3:f8e4m3:f32_last", "none", 0, 0, 0},
    {"2d_n2_c160_i12x10_k136_w3_p1_f8e4m3_last", "none", 0, 0, 0},
    {"2d_n2_c64_i12x10_k40_w3_p1_bf16:bf16:f16_last", "none", 0, 0, 0},
    {"2d_n2_c128_i20_k144_w3_p1_g2_bf16_last", "bias+relu+sum:1", 0, 0, 0},
    /* blocks of half as many channels: some, all of them; every rank and type that has them */
    {"1d_n2_c80_i300_k40_w5_p3:9_d7_f16_last", "bias", 0, 0, 0},
    {"2d_n3_c96_i14x13_k136_w3_p1_bf16_last", "none", 0, 0, 1},
    {"3d_n2_c24_i5x6x7_k72_w2x3x2_s1x1x2_p1_bf16:bf16:f32_last", "none", 0, 0, 0},
    {"2d_n2_c16_i12x10_k136_w3_p1_f32_last", "none", 0, HK_MATH_TF32 | HK_MATH_SPLIT_F32, 0},
    {"2d_n5_c160_i9x10_k200_w1_f16_last", "relu+sum:1", 0, 0, 0},
};
static const gpu_case general[] = {
    {"2d_n2_c5_i9x8_k7_w3_p1_f32_first", "none", 0, 0, 0},
    {"2d_n2_c6_i9x8_k8_w3_p1_g2_f64_first", "bias+relu", 0, 0, 1},
    {"2d_n2_c4_i9x8_k8_w3_l2_p1_f32_last", "none", 0, 0, 0},
    {"2d_n4_c4_i9x8_k8_w3_b2_f32_first", "none", 0, 0, 0},
    {"1d_n2_c8_i20_k6_w3_flip_f16_last", "none", 0, 0, 0},
    {"2d_n1_c16_i8x8_k32_w3_p1_s8:s8:s32_xz3_last", "none", 0, 0, 0},
    {"2d_n1_c16_i8x8_k32_w3_p1_u8:s8:s8_xz3_yz-2_last", "scale+bias", 0, 0, 0},
    {"3d_n1_c3_i4x5x6_k5_w2_bf16_first", "scale+bias+leaky:0.5", 0, 0, 0},
    {"2d_n2_c67_i9x8_k129_w3_p1_bf16_last", "none", 0, 0, 0},
    {"2d_n2_c64_i9x8_k64_w3_p1_bf16_first", "bias", 0, 0, 0},
    {"2d_n3_c64_i9x7_k130_w3_p1_f16:f16:f32_first", "scale+bias+relu", 0, 0, 0},
    {"2d_n8_c24_i40x30_k200_w3_p1_bf16_first", "bias+relu", 0, 0, 0},
    {"2d_n8_c67_i33x33_k129_w3_p1_f16_last", "bias+silu", 0, 0, 0},
    {"2d_n2_c128_i20x20_k64_w3_p1_g8_bf16_last", "none", 0, 0, 0},
    {"2d_n2_c40_i9x8_k64_w3_l2_p1_bf16_last", "none", 0, 0, 0},
    {"2d_n4_c48_i9x8_k8_w3_b2_bf16_first", "none", 0, 0, 1},
    {"2d_n2_c16_i0x6_k8_w1_p2:1x1:0_bf16_last", "bias", 0, 0, 0}, /* all padding */
    /* windows folded into channels: padding on one side, cropped, strided, one and three dimensions */
    {"2d_n3_c67_i9x11_k136_w3_s1x2_p1:0x2:1_f16_last", "bias", 0, 0, 0},
    {"2d_n2_c35_i10x12_k40_w2x3_p0:1x-1:3_bf16:bf16:f32_last", "none", 0, 0, 1},
    {"1d_n3_c72_i100_k129_w5_p2:4_bf16_first", "relu", 0, 0, 0},
    {"3d_n2_c19_i5x6x7_k24_w2x1x3_p1_bf16_last", "none", 0, 0, 0},
    {"2d_n2_c67_i9x8_k40_w3_p1_f8e4m3:f8e4m3:f32_last", "none", 0, 0, 0},
    {"2d_n2_c33_i9x8_k40_w3_p1_f32_last", "none", 0, HK_MATH_TF32 | HK_MATH_SPLIT_F32, 0},
    /* turned copies of y: images shorter than a tile, groups, a bias of every channel */
    {"2d_n9_c64_i4x4_k144_w3_p1_bf16_first", "scale+bias", 0, 0, 0},
    {"2d_n3_c128_i10x12_k80_w3_p1_g2_f16_first", "bias+relu", 0, 0, 0},
    {"1d_n5_c64_i40_k264_w1_f16_first", "none", 0, 0, 0},
    /* passes over x: fours and pairs of pixels over many images, odd channels, strides, cropping, dilation, late
       filters */
    {"2d_n5_c72_i14x14_k200_w3_p1_bf16_first", "bias", 0, 0, 0},
    {"2d_n7_c67_i13x12_k129_w3_s2_p1_f16_last", "none", 0, 0, 1},
    {"2d_n4_c130_i6x10_k64_w3x2_p-1:2x0_d2x1_bf16_first", "none", 0, 0, 1},
    {"2d_n3_c65_i30x18_k40_w5x3_s3x1_p4:7x1_bf16_last", "none", 0, 0, 0},
    {"1d_n3_c100_i64_k72_w5_p2_f16_first", "relu", 0, 0, 0},
    {"2d_n24_c64_i28x28_k128_w3_p1_bf16_first", "none", 0, 0, 0},
    {"2d_n5_c40_i6x7_k72_w3_p1_f16_first", "bias", 0, 0, 0},
    {"2d_n5_c136_i7x7_k136_w3_p1_bf16_first", "bias+relu", 0, 0, 0},
    /* whole odd planes at once, the last ones short; rows of pixels in several cuts, no channel aligned */
    {"2d_n1_c67_i5x7_k40_w1_f16_first", "none", 0, 0, 1},
    {"2d_n3_c72_i5x7_k40_w1_bf16_first", "none", 0, 0, 0},
    {"1d_n3_c67_i301_k24_w3_p1_f16_last", "none", 0, 0, 0},
    {"2d_n2_c9_i3x90_k12_w1x3_p0x1_bf16_last", "bias", 0, 0, 1},
    /* y of odd rows by strips: tiles of fewer pixels than they have room for, in one wave and in several; seven
       channels */
    {"2d_n16_c24_i33x33_k129_w3_p1_f16_last", "bias+silu", 0, 0, 0},
    {"2d_n6_c67_i70x71_k61_w1_bf16_last", "none", 0, 0, 0},
    {"2d_n2_c64_i31x30_k7_w3_p1_bf16_last", "relu", 0, 0, 0},
    {"2d_n2_c64_i31x30_k9_w1_f16_last", "none", 0, 0, 0},
    /* narrow groups joined: all of them, some, three; both layouts, strides, other types, late filters, folded */
    {"2d_n2_c64_i9x8_k64_w3_p1_g4_bf16_last", "none", 0, 0, 0},
    {"2d_n3_c128_i14x13_k128_w3_s2_p1_g8_f16_last", "bias+relu", 0, 0, 1},
    {"2d_n2_c96_i9x8_k96_w3_p1_g3_bf16_last", "scale+bias+silu", 0, 0, 0},
    {"2d_n3_c128_i7x7_k256_w3_p1_g8_bf16_first", "bias", 0, 0, 0},
    {"1d_n2_c256_i50_k128_w3_d2_g8_f16:f16:f32_first", "none", 0, 0, 1},
    {"2d_n2_c64_i9x8_k160_w3_p1_g4_f8e4m3:f8e4m3:f32_last", "none", 0, 0, 0},
    {"2d_n2_c64_i9x8_k64_w3_p1_g8_f32_last", "bias", 0, HK_MATH_TF32 | HK_MATH_SPLIT_F32, 0},
    {"2d_n2_c36_i9x8_k36_w3_p1_g3_bf16_last", "none", 0, 0, 0},
    {"2d_n2_c96_i19x37_k144_w3_s2_p1:0x0:1_g3_f16:f16:f32_last", "bias+silu", 0, 0, 1},
    {"2d_n3_c160_i17x18_k80_w3_p2:1x0_g5_bf16_last", "scale+bias+presum:1+relu", 0, 0, 0},
    {"2d_n2_c64_i9x8_k64_w3_p1_g4_bf16_last", "bias+sum:1", 0, 0, 0},
    /* windows that do not overlap laid out one by one: both layouts, padding, gaps, dilation, one and three dimensions,
       other types */
    {"2d_n2_c3_i32x48_k72_w16x16_s16_bf16_last", "bias", 0, 0, 0},
    {"2d_n2_c3_i32x48_k72_w16x16_s16_f16_first", "none", 0, 0, 1},
    {"2d_n2_c5_i40x41_k40_w3x2_s9x4_p1:0x2:1_d2x1_f16_last", "none", 0, 0, 0},
    {"2d_n3_c24_i40x41_k40_w3x2_s9x4_p1:0x2:1_d2x1_bf16_first", "relu", 0, 0, 0},
    {"1d_n3_c1_i200_k40_w10_s12_p3:0_bf16:bf16:f32_last", "none", 0, 0, 0},
    {"3d_n2_c3_i8x9x12_k24_w2x2x4_s2x3x4_f32_first", "none", 0, HK_MATH_TF32 | HK_MATH_SPLIT_F32, 0},
    {"2d_n2_c5_i20x20_k40_w10_s10_f8e4m3:f8e4m3:f32_last", "none", 0, 0, 0},
    /* the same of groups: joined, they are not laid out so */
    {"2d_n1_c14_i7x3_k16_w2x1_s2_p3:0x1:3_d1x2_g2_f16_first", "bias", 0, 0, 0},
    {"2d_n2_c32_i8x12_k32_w2x2_s2_g2_bf16_last", "none", 0, 0, 1},
    /* x channels-first and y channels-last, and the other way round */
    {"2d_n2_c64_i9x8_k64_w3x3_p1_bf16_xs=0.4608.4608.72.8.1_fs=0.0.576.9.3.1_ys=0.64.4608.1.512.64", "bias", 0, 0, 0},
    {"2d_n2_c64_i9x8_k64_w3x3_p1_bf16_xs=0.64.4608.1.512.64_fs=0.0.576.9.3.1_ys=0.4608.4608.72.8.1", "bias", 0, 0, 0},
};
/* beside gpu_epilogues */
static const char *const more_epilogues[] = {"softsign", "gated:tanh:sigmoid", "blended:none:sigmoid"};
static const char *const epilogue_problems[] = {
    "2d_n2_c64_i11x10_k160_w3_p1_bf16_last",
    "2d_n2_c64_i11x10_k160_w3_p1_f16:f16:f32_last",
    "2d_n2_c64_i11x10_k52_w3_p1_f16_last",
};

static int run(const gpu_case *c, uint64_t seed) { return gpu_case_run(c, NULL, seed); }

static int run_epilogues(void) {
  int ran = 0;
  for (size_t p = 0; p < sizeof epilogue_problems / sizeof *epilogue_problems; ++p)
    for (int e = 0; e < gpu_epilogue_count + (int)(sizeof more_epilogues / sizeof *more_epilogues); ++e) {
      const bool shared = e < gpu_epilogue_count;
      const char *text = shared ? gpu_epilogues[e] : more_epilogues[e - gpu_epilogue_count];
      ran += run(&(gpu_case){epilogue_problems[p], text, 0, 0, 0}, 7 + (uint64_t)e);
    }
  static const gpu_case coded[] = {
      {"2d_n3_c64_i9x14_k168_w1_bf16_last", "sum:1", FILL_POSITIONS, 0, 0},
      {"2d_n3_c64_i9x14_k168_w3_p1_f16:f16:f32_last", "sum:1", FILL_POSITIONS, 0, 0},
      {"2d_n3_c64_i9x14_k131_w3_p1_f16_last", "sum:1", FILL_POSITIONS, 0, 0},
      {"2d_n3_c128_i9x14_k272_w1_g2_bf16_last", "presum:1+relu", FILL_POSITIONS, 0, 0},
  };
  for (size_t i = 0; i < sizeof coded / sizeof *coded; ++i) ran += run(&coded[i], i);
  return ran;
}

static int pick(uint64_t *seed, int lo, int hi) {
  return lo + (hk_test_integer(seed, 1 << 20) + (1 << 20)) % (hi - lo + 1);
}

static int run_random(int count, uint64_t seed) {
  static const hk_type types[] = {HK_BF16, HK_F16, HK_F8E4M3, HK_F32};
  int ran = 0;
  for (int i = 0; i < count; ++i) {
    hk_conv_desc d = {.size = sizeof d, .rank = pick(&seed, 1, 3), .n = pick(&seed, 1, 3), .k = pick(&seed, 1, 40) * 8};
    const hk_type type = types[pick(&seed, 0, 3)];
    d.layout = pick(&seed, 0, 4) ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST;
    d.c = pick(&seed, 1, 12) * 16 + (pick(&seed, 0, 5) ? 0 : pick(&seed, 1, 15));
    d.x_type = d.f_type = type;
    d.y_type = pick(&seed, 0, 1) || type == HK_F8E4M3 ? HK_F32 : type;
    for (int a = 0; a < d.rank; ++a) {
      d.window[a] = pick(&seed, 1, 3), d.stride[a] = pick(&seed, 1, 3), d.dilation[a] = pick(&seed, 1, 3);
      d.pad_lo[a] = pick(&seed, 0, 3), d.pad_hi[a] = pick(&seed, 0, 3);
      d.in[a] = pick(&seed, 7, d.rank == 1 ? 200 : d.rank == 2 ? 16 : 8);
    }
    hk_problem p = {.size = sizeof p};
    if (hk_problem_conv(&p, &d)) continue;
    const gpu_case c = {NULL, i % 3 ? "none" : "scale+bias+relu", 0, i % 4 ? HK_MATH_TF32 : HK_MATH_SPLIT_F32, i % 2};
    ran += gpu_case_run(&c, &p, (uint64_t)i);
  }
  return ran;
}

int main(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  const int least = !strcmp(word, "shortest"), few = least || !strcmp(word, "short"), all = !*word;
  hk_gpu gpu = {.size = sizeof gpu};
  int ran = 0;
  if (hk_gpu_info(&gpu) || !gpu.kernels) {
    printf("no CUDA device: %s\n", hk_last_error());
    return 77;
  }
  printf("%s, %d processors\n", gpu.name, (int)gpu.processors);
  for (size_t i = 0; i < sizeof geometries / sizeof *geometries; ++i)
    if (all || !strcmp(word, "geometries") || (few && i < (least ? 1 : 3))) ran += run(&geometries[i], i);
  for (size_t i = 0; i < sizeof general / sizeof *general; i += least ? 5 : 1)
    if (all || few || !strcmp(word, "general")) ran += run(&general[i], 100 + i);
  gpu_tile_step = 3;
  if (all || !strcmp(word, "epilogues")) ran += run_epilogues();
  if (all || !strcmp(word, "random")) ran += run_random(60, 11);
  gpu_tile_step = 1;
  if (all || !strcmp(word, "geometries")) {
    static const gpu_case fractions[] = {
        {"2d_n2_c256_i14_k128_w3_p1_bf16:bf16:f32_last", "none", FILL_FRACTIONS, 0, 0},
        {"2d_n2_c256_i14_k128_w3_p1_f16:f16:f32_last", "none", FILL_FRACTIONS, 0, 0},
        {"2d_n2_c256_i14_k128_w3_p1_f32_last", "none", FILL_FRACTIONS, HK_MATH_TF32, 0},
        {"2d_n2_c256_i14_k128_w3_p1_f32_last", "none", FILL_FRACTIONS, HK_MATH_SPLIT_F32, 0},
        {"2d_n2_c256_i14_k128_w3_p1_f8e4m3:f8e4m3:f32_last", "none", FILL_FRACTIONS, 0, 0},
    };
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; ++i) ran += run(&fractions[i], 200 + i);
  }
  printf("%d executions compared\n", ran);
  CHECK(ran > 0, "nothing ran");
  return hk_test_end();
}
