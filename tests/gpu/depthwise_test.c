/* Depthwise, grouped and few-channel decisions of the device, every knob setting of them, against the CPU's reference:
 * both layouts, the three types, strides, dilations, multipliers, long filters, odd sizes, epilogues, 3D, random
 * problems. Needs a CUDA device; exits with 77 without. `depthwise_test short` is the set for compute-sanitizer. */
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "support/check.h"

/* Without type and layout: each is run in f32, bf16, f16 and channels-last, channels-first. */
static const char *const shapes[] = {
    "1d_n2_c64_i300_k64_w4_g64",
    "1d_n1_c72_i1000_k72_w4_p3:0_g72",
    "1d_n2_c16_i4096_k16_w31_g16",
    "1d_n1_c24_i333_k24_w7_p3_g24",
    "1d_n1_c40_i257_k40_w3_s2_p1_g40",
    "1d_n2_c8_i500_k16_w5_p2_g8",
    "1d_n1_c16_i600_k16_w3_p32:0_d16_g16",
    "1d_n1_c13_i701_k13_w9_s3_p4:5_d2_g13",
    "1d_n2_c3_i99_k3_w1_g3",
    "1d_n1_c8_i3000_k8_w1024_g8",
    "1d_n1_c64_i90_k64_w3_p40_d40_g64",
    "1d_n3_c5_i64_k5_w64_g5",
    "1d_n1_c8_i1201_k8_w3_d300_g8",
    "1d_n1_c8_i100_k8_w3_s5_p-2:-1_g8",
    "2d_n2_c32_i14x14_k32_w3_p1_g32",
    "2d_n2_c48_i56x56_k48_w3_s2_p1_g48",
    "2d_n1_c24_i30x56_k24_w7_p3_g24",
    "2d_n1_c16_i20x33_k16_w5_p2_g16",
    "2d_n1_c8_i17x19_k16_w3_p2_d2_g8",
    "2d_n2_c64_i15x29_k64_w3_p1_g8",
    "2d_n1_c32_i13x21_k32_w3_s2_p1:0x1:0_g8",
    "2d_n1_c64_i11x17_k64_w3_p1_g4",
    "2d_n1_c24_i9x70_k48_w3x5_p1x2_g6",
    "2d_n1_c19_i12x15_k19_w3_p1_g19",
    "2d_n1_c64_i12x20_k3_w3_p1_g1",
    "2d_n1_c3_i12x20_k64_w3_s2_p1_g1",
    "2d_n2_c3_i30x70_k64_w7_s2_p3_g1",
    "2d_n1_c1_i30x40_k24_w5_p2_g1",
    "1d_n2_c4_i500_k80_w9_s3_p4_g1",
    "2d_n1_c8_i40x40_k8_w31_p15_g8",
    "2d_n1_c96_i9x9_k64_w3_p1_g2",
    "2d_n1_c10_i23x17_k10_w7_s2_p3_g10",
    "2d_n2_c22_i9x50_k22_w5_s2_p2:1x0:3_g22",
    "2d_n1_c144_i30x15_k144_w3_g144",
    "2d_n3_c6_i5x4_k6_w7_p3_g6",
    "2d_n1_c40_i31x61_k40_w7_p3_g40",
    "2d_n2_c16_i33x27_k16_w5_p2:1x0:3_g16",
    "2d_n1_c8_i40x19_k8_w3_s2_p-1:-2_g8",
    "2d_n1_c2_i64x700_k4_w3_p1_g2",
    "2d_n1_c72_i70x61_k72_w3_p1_g9",
    "2d_n2_c136_i61x75_k136_w3_s2_p1:0x0:2_g17",
    "2d_n1_c80_i37x140_k80_w3_p2:1x0_g20",
    "1d_n2_c136_i211_k136_w3_p1:4_g136",
    "1d_n3_c129_i233_k129_w4_p3:0_g129",
    "1d_n2_c70_i97_k70_w3_p2_g70",
    "1d_n1_c130_i100_k130_w19_p9_g130",
    "1d_n1_c8_i1024_k8_w33_p16_g8",
    "1d_n2_c3_i1031_k3_w60_p10:3_g3",
    "2d_n1_c3_i33x45_k70_w5_p2_g1",
    "2d_n2_c3_i17x64_k16_w7_s2_p3_g1",
    "2d_n1_c3_i20x40_k30_w3_p1_g1",
    "2d_n1_c4_i16x24_k64_w3_p1:2x1:0_d2x1_g1",
    "2d_n1_c5_i11x26_k24_w3x4_s1x2_p1x3_g1",
    "1d_n1_c1_i1000_k32_w40_s2_p20_g1",
    "3d_n2_c16_i5x9x23_k16_w3x2x5_s2x1x1_p1x0x2_d1x2x1_g16",
    "3d_n1_c32_i5x9x23_k32_w3x2x5_p1x0x2_g4",
    "3d_n3_c5_i1x4x6_k2_w1_p1:2x3:1x1:2_d2x3x1_g1",
    "3d_n1_c8_i1x9x9_k8_w1x3x3_s2x1x1_p1:0x1x1_g8",
};
static const char *const kinds[] = {"f32", "bf16", "f16", "bf16:bf16:f32"};
static const char *const layouts[] = {"last", "first"};

static int run_shapes(int few) {
  int ran = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
    for (size_t k = 0; k < 4; ++k)
      for (size_t l = 0; l < 2; ++l) {
        char text[200];
        if ((few && (i % 5 || k == 2)) || (k == 2 && i % 3)) continue; /* f16 shares its code with bf16 */
        snprintf(text, sizeof text, "%s_%s_%s", shapes[i], kinds[k], layouts[l]);
        const gpu_case c = {text, "none", FILL_INTEGERS, 0, (i + k) % 3 == 0};
        ran += gpu_case_run(&c, NULL, i * 8 + k);
      }
  return ran;
}

/* Channels-first, more tiles than warps run at once: each walks along several, over the ends of rows. Channels-last,
 * several blocks a row. */
static int run_walks(void) {
  static const char *const problems[] = {
      "1d_n2_c900_i2600_k900_w33_p16_g900_bf16_first", "1d_n1_c5000_i301_k5000_w20_p3:9_g5000_f16_first",
      "1d_n2_c88_i2600_k88_w129_p64_g88_bf16_last", "1d_n1_c40_i3000_k40_w700_p5:9_g40_f16_last"};
  int ran = 0;
  for (size_t p = 0; p < sizeof problems / sizeof *problems; ++p) {
    const gpu_case c = {problems[p], "none", FILL_INTEGERS, 0, 0};
    ran += gpu_case_run(&c, NULL, 11 + p);
  }
  return ran;
}

static int run_epilogues(void) {
  static const char *const epilogues[] = {
      "scale+bias+relu", "bias+sum:0.5",           "bias+silu", "prelu", "bias+gelu+sum:1",
      "presum:1+relu",   "bias+gated:tanh:sigmoid"};
  static const char *const problems[] = {
      "1d_n2_c24_i123_k24_w5_p4:0_g24_bf16_last", "1d_n2_c24_i123_k24_w5_p4:0_g24_bf16_first",
      "1d_n2_c24_i123_k24_w5_p4:0_g24_f32_last",  "1d_n2_c24_i123_k24_w5_p4:0_g24_f32_first",
      "2d_n1_c32_i9x20_k32_w3_p1_g32_f16_last",   "2d_n1_c32_i9x20_k32_w3_p1_g4_bf16_last",
      "2d_n1_c30_i9x20_k30_w3_p1_g10_bf16_last",  "2d_n1_c12_i9x21_k12_w3_p1_g12_f16_first"};
  int ran = 0;
  for (size_t p = 0; p < sizeof problems / sizeof *problems; ++p) {
    for (size_t e = 0; e < sizeof epilogues / sizeof *epilogues; ++e) {
      const gpu_case c = {problems[p], epilogues[e], FILL_INTEGERS, 0, e % 2};
      ran += gpu_case_run(&c, NULL, 31 + e);
    }
    const gpu_case coded = {problems[p], "sum:1", FILL_POSITIONS, 0, 0};
    ran += gpu_case_run(&coded, NULL, 5);
  }
  /* y in f32: a 16-bit y may round either way where the sums differ in their last bit */
  static const char *const fractions[] = {
      "1d_n2_c24_i523_k24_w65_g24_bf16:bf16:f32_last", "1d_n2_c24_i523_k24_w65_g24_f16:f16:f32_first",
      "2d_n1_c32_i9x20_k32_w7_p3_g4_bf16:bf16:f32_last", "1d_n2_c24_i523_k24_w65_g24_f32_first",
      "2d_n1_c3_i30x40_k64_w7_s2_p3_bf16:bf16:f32_last"};
  for (size_t i = 0; i < sizeof fractions / sizeof *fractions; ++i) {
    const gpu_case c = {fractions[i], "none", FILL_FRACTIONS, 0, 0};
    ran += gpu_case_run(&c, NULL, 60 + i);
  }
  return ran;
}

/* f32 as sums of two tf32 parts: whole numbers exactly, fractions within the bound of f32. */
static int run_split(void) {
  static const char *const problems[] = {
      "1d_n2_c6_i5000_k6_w128_g6_f32_first", "1d_n1_c4_i3001_k4_w1023_p5_g4_f32_first",
      "2d_n1_c8_i40x40_k8_w31_p15_g8_f32_first", "1d_n3_c5_i700_k10_w33_p16_g5_f32_first",
      "3d_n1_c4_i3x6x90_k4_w2x3x20_p1x1x0_g4_f32_first"};
  int ran = 0;
  for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) {
    const gpu_case whole = {problems[i], i % 2 ? "scale+bias+relu+sum:1" : "none", FILL_INTEGERS, HK_MATH_SPLIT_F32,
                            i % 3 == 0};
    const gpu_case parts = {problems[i], "none", FILL_FRACTIONS, HK_MATH_SPLIT_F32, 0};
    ran += gpu_case_run(&whole, NULL, 80 + i) + gpu_case_run(&parts, NULL, 90 + i);
  }
  return ran;
}

static int pick(uint64_t *seed, int lo, int hi) {
  return lo + (hk_test_integer(seed, 1 << 20) + (1 << 20)) % (hi - lo + 1);
}

static int run_random(int count, uint64_t seed) {
  static const hk_type types[] = {HK_BF16, HK_F16, HK_F32};
  int ran = 0;
  for (int i = 0; i < count; ++i) {
    hk_conv_desc d = {
        .size = sizeof d, .rank = pick(&seed, 1, 2), .n = pick(&seed, 1, 3), .groups = pick(&seed, 1, 40)};
    const int per = pick(&seed, 0, 2) ? 1 : pick(&seed, 1, 20);
    d.layout = pick(&seed, 0, 1) ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST;
    d.c = d.groups * per;
    d.k = d.groups * (pick(&seed, 0, 2) ? per : pick(&seed, 1, 10));
    d.x_type = d.f_type = d.y_type = types[pick(&seed, 0, 2)];
    for (int a = 0; a < d.rank; ++a) {
      d.in[a] = pick(&seed, 1, d.rank == 1 ? 3000 : 40);
      d.window[a] = pick(&seed, 1, d.rank == 1 ? (pick(&seed, 0, 1) ? 8 : 200) : 8);
      d.stride[a] = pick(&seed, 0, 1) ? 1 : pick(&seed, 1, 3),
      d.dilation[a] = pick(&seed, 0, 1) ? 1 : pick(&seed, 1, 4);
      d.pad_lo[a] = pick(&seed, 0, (int)d.window[a]), d.pad_hi[a] = pick(&seed, 0, (int)d.window[a]);
    }
    hk_problem p = {.size = sizeof p};
    if (hk_problem_conv(&p, &d)) continue;
    p.reverse[0] = i % 9 == 0;
    const gpu_case c = {NULL, i % 3 ? "none" : "scale+bias+relu+sum:1", FILL_INTEGERS, 0, i % 2};
    ran += gpu_case_run(&c, &p, seed);
  }
  return ran;
}

int main(int argc, char **argv) {
  const int few = argc > 1 && !strcmp(argv[1], "short");
  hk_gpu gpu = {.size = sizeof gpu};
  if (hk_gpu_info(&gpu) || !gpu.kernels) {
    printf("no CUDA device: %s\n", hk_last_error());
    return 77;
  }
  gpu_few_tiles = true;
  int ran = run_shapes(few) + run_split() + run_walks();
  if (!few) {
    const gpu_case wide = {"1d_n1_c8192_i4096_k8192_w4093_g8192_bf16_first", "none", FILL_INTEGERS, 0, 0};
    ran += run_epilogues() + run_random(60, 77) + gpu_case_run(&wide, NULL, 3);
  }
  printf("%d executions compared\n", ran);
  CHECK(ran > 0, "nothing ran");
  return hk_test_end();
}
