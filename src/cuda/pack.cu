/* Filters into the images that the igemm kernels copy whole: out[tile_n][k block][bn rows][128 bytes], rows swizzled as
 * wgmma reads them (16-byte piece p of row r lies at p ^ (r % 8)), missing channels zero. One thread an element. */
#include "types.cuh"

HK_DEV float round_tf32(float v) {
  hk_cu_u32 u;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(v));
  return __uint_as_float(u);
}

extern "C" __global__ void __launch_bounds__(256) hk_pack_filters(const __grid_constant__ hk_cu_pack P) {
  const int bytes = P.to_type == HK_CU_F32 ? 4 : P.to_type == HK_CU_F8 ? 1 : 2, run = 128 / bytes;
  const hk_cu_i64 taps = P.win[0] * P.win[1] * P.win[2], total = P.blocks * run;
  for (hk_cu_i64 i = (hk_cu_i64)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += (hk_cu_i64)gridDim.x * blockDim.x) {
    const int e = (int)(i % run), row = (int)(i / run % P.bn);
    const hk_cu_i64 kb = i / run / P.bn % P.k_blocks, tile = i / run / P.bn / P.k_blocks;
    const hk_cu_i64 group = tile / P.group_tiles_n, k0 = (tile - group * P.group_tiles_n) * P.bn;
    hk_cu_i64 k = k0 + row, live = P.kg;
    if (P.gate) {
      k = k0 / 2 + row / 16 * 8 + row % 8;
      live = P.kg / 2;
    }
    hk_cu_i64 tap, c;
    if (P.dense_k) tap = (kb * run + e) / P.cg, c = (kb * run + e) % P.cg;
    else tap = kb % taps, c = kb / taps * run + e;
    float v = 0.0f;
    if (k < live && c < P.cg && tap < taps) {
      if (P.gate && row % 16 >= 8) k += P.kg / 2;
      const hk_cu_i64 s = tap % P.win[2], r = tap / P.win[2] % P.win[1], t = tap / P.win[2] / P.win[1];
      v = load_f32(P.f, P.view.offset + P.view.group * group + P.view.outer * k + P.view.channel * c +
                            P.view.at[0] * t + P.view.at[1] * r + P.view.at[2] * s, P.f_type);
    }
    const int piece = e * bytes / 16;
    const hk_cu_i64 at = (i / run * 128 + (piece ^ (row & 7)) * 16) / bytes + e % (16 / bytes);
    if (P.to_type == HK_CU_F32) {
      const float high = round_tf32(v);
      v = P.split == 2 ? round_tf32(v - high) : high;
    }
    store_f32(P.out, at, P.to_type, v);
  }
}
