#!/usr/bin/env bash
# Random problems on the CUDA device, and lines that failed once. Exits with 77 without a device.
set -u
"$HANKEL_BIN" info --device cuda > /dev/null 2>&1 || { echo "no CUDA device"; exit 77; }
failed=0
check() { "$HANKEL_BIN" check "$@" --device cuda || failed=1; }
check --random 2000 --seed 1
check --random 500 --family transposed --seed 1
# a plan made like another whose filters are packed in another order: taps folded into channels, other halo blocks
check '2d_n8_c7_i17x15_k23_w2x2_s2_p0:1_bf16_first' --seed 16116325441062 --with like --batch-invariant
check '1d_n2_c7_i40_k7_w7_s2_p3:-36_f16:f16:f32_first' --epilogue 'bias+tanh' --seed 1606374402871 --with like
check '2d_n1_c8_i3x8_k7_w3x2_p1:3x3:0_bf16_first' --epilogue bias --seed 2868128503962 --with like
# the choice between gathering and transposing x depended on the batch
check '3d_n9_c11_i1x1x7_k15_w2x1x1_s1x1x2_p1:0x3:1x1:3_d1x1x3_flip1x0x0_f32_first' --epilogue 'scale1+bias+clip:-2:3' \
  --seed 12597019254095 --math fast,split --batch-invariant --forbid-fallback
# bounds of f32 in two tf32 parts and of e4m3
check '1d_n1_c23_i24_k1104_w1_g23_f32_first' --seed 10191847994756 --math split
check '1d_n1_c27_i68_k3_w49_s3_p3:2_f8e4m3:f8e4m3:f32_xs=0.0.1836.68.1_fs=0.0.1323.1.27_ys=0.0.27.1.3' --seed 2888605221535
# strides below 0: element 0 of y is aligned, its lowest element is not
check '2d_n3_c24_i2x10_k48_w1x5_p2:3x1:2_g3_bf16_xs=0.8.480.1.240.24_fs=0.640.40.0.40.8_ys=0.28.-7.840.1.-84' \
  --epilogue 'scale+bias+presum:1' --seed 14179252851149 --with in_place,hostile --math fast
# more runs of input channels in a block's patch than threads: nothing was copied
check '1d_n1_c1440_i5_k15_w1_s2_g15_f16:f16:f32_xs=0.480.7200.5.1_fs=0.96.96.1.1_ys=0.5.5.85.1' \
  --decision 'cuda_grouped run=64 slabs=3 rows=1 way=1' --seed 4378299894626
# rows of another image began at another address modulo 16, and their sums had another order
check '1d_n3_c33_i390_k33_w5_p1:2_g33_f16:f16:f32_first' --epilogue 'bias+hardswish+sum:-1' --seed 16300258080631 \
  --with in_place --math tf32 --batch-invariant --forbid-fallback
# rewrites whose filters come at execute: the inner plan had no place for its slopes
check '1d_n1_c2_i41_k31_w4_p9:0_d3_flip_bf16:f16:f8e4m3_first' --seed 11660573034726 --with late,state,wisdom
check '1d_n6_c11_i27_k24_w1_p2_b3_bf16_xs=0.594.297.1.11_fs=0.88.11.1.11_ys=0.0.372.1.12' \
  --epilogue 'scale1+gated:hardswish:prelu' --seed 16854287994848 --with late,alive --math fast
check '1d_n2_c16_i228_k6_w3_p12:0_d6_g2_f32_first' --epilogue 'clip:-2:3' --seed 11154251052620 --with late,state
# outputs without taps in three dimensions, in launches that overlap, with and without a residual
check '2d_n2_c64_i29x31_k256_w1_p0:1_l2_bf16_last' --epilogue 'bias+silu'
check '2d_n2_c64_i9x9_k64_w1_p0:2_l3_bf16_last' --epilogue 'bias+relu+sum:0.5'
check '3d_n2_c32_i5x4x6_k72_w1x2x1_p0x1x0:1_l2_f16:f16:f32_last' --epilogue 'scale+presum:1'
exit $failed
