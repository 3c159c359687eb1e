/* Implicit GEMM on wgmma, warp-specialised and persistent: y[m][k] = sum over k blocks of pixels[m][:] *
 * filters[k][:].
 *
 * A block is one producer warpgroup and `nc` consumer warpgroups. The producer keeps a ring of `stages`
 * shared-memory stages full: pixels by TMA in im2col mode (or tiled, for plain products), filters by one bulk copy
 * of their packed image. Consumers multiply rows of the tile by all `bn` filters, with accumulators in registers,
 * and run the epilogue of their rows (finish.cuh) while the producer already loads the next tile. The consumers
 * either share a tile, consumer w owning rows [w*mi*64, +mi*64), or ping-pong over tiles of mi*64 rows.
 *
 * Clusters: cm = 2 shares filters (each block loads half and multicasts it), cn = 2 shares pixels; split = s is
 * split-K: s equal parts of the k blocks, one per block, added in rank order.
 *
 * Shared memory: [stages][A bm*128 | B bn*128] [one staging buffer per consumer: tile.h] [mbarriers: full, empty,
 * one per consumer warp]; all 1024-byte aligned. All tile parameters are compile-time constants: igemm_body is
 * inlined into one kernel per row of kernels.inc. */
#ifndef HK_CUDA_IGEMM_CUH
#define HK_CUDA_IGEMM_CUH
#include "cuda/epilogue.cuh"
#include "cuda/igemm/tile.h"
#include "cuda/igemm/wgmma.cuh"

typedef struct igemm_tile {
  int mi, nc, bn, stages, cm, cn, split, chunk, parts;
  int wgs; /* consumers that share a tile: nc, or 1 for ping-pong */
} igemm_tile;

/* Position of a tile: first pixel, first channel in its group, group, and packed filter tile. */
typedef struct igemm_place {
  int m0, k0, group, tile_n;
} igemm_place;

HK_DEV const hk_cu_launch *launch_of(const hk_cu_igemm *P) { return (const hk_cu_launch *)P; }
/* Waits for earlier kernels, unless the first of a chain did. */
HK_DEV void igemm_wait(const hk_cu_igemm *P) {
  if (launch_of(P)->chain == HK_CU_CHAIN_NEXT) return;
  pdl_wait();
  if (launch_of(P)->chain == HK_CU_CHAIN_FIRST) pdl_trigger();
}
HK_DEV int igemm_bm(igemm_tile t) { return 64 * t.mi * t.wgs; }
HK_DEV int igemm_cluster(igemm_tile t) { return t.cm * t.cn * t.split; }

HK_DEV igemm_place igemm_locate(const hk_cu_igemm *P, igemm_tile t, int index, int rank) {
  igemm_place at;
  const int line = div_by(index, P->by_wide);
  at.tile_n = (index - line * (int)P->by_wide.d) * t.cn + (t.cn > 1 ? rank : 0);
  at.m0 = (line * t.cm + (t.cm > 1 ? rank : 0)) * launch_of(P)->step;
  at.group = div_by(at.tile_n, P->by_group);
  at.k0 = (at.tile_n - at.group * P->group_tiles_n) * t.bn;
  return at;
}

HK_DEV void igemm_pixels(const hk_cu_igemm *P, const hk_cu_tmap *map, hk_cu_u32 dst, hk_cu_u32 bar, int c,
                         const int *at, int n, int m, const int *tap, hk_cu_u16 mask) {
  switch (P->load) {
    case HK_CU_LOAD_TILED: copy_tiled(dst, map, bar, c, m, mask); break;
    case HK_CU_LOAD_1D: copy_im2col_1d(dst, map, bar, c, at, n, tap, mask); break;
    case HK_CU_LOAD_2D: copy_im2col_2d(dst, map, bar, c, at, n, tap, mask); break;
    default: copy_im2col_3d(dst, map, bar, c, at, n, tap, mask); break;
  }
}

/* Thread 0 fills the ring for all tiles of its block. In a split kernel the whole warpgroup takes part, to
 * synchronise with the consumers while the ring holds sums. */
HK_DEV void igemm_produce(const hk_cu_igemm *P, int type, igemm_tile t, hk_cu_u32 smem, hk_cu_u32 full, hk_cu_u32 empty,
                          int rank, int clusters, int cluster) {
  const hk_cu_geom *g = &P->g;
  const int bm = igemm_bm(t), a_bytes = bm * 128, b_bytes = t.bn * t.parts * 128, stage_bytes = a_bytes + b_bytes;
  const int run = type == HK_CU_F8 ? 128 : type == HK_CU_F32 ? 32 : 64;
  const int a_rows = bm / t.cn, b_part = b_bytes / t.cm, row_bytes = launch_of(P)->step * 128 + b_bytes;
  const int part = t.split > 1 ? rank : 0;
  const int kb0 = (int)((hk_cu_i64)P->k_blocks * part / t.split),
            kb1 = (int)((hk_cu_i64)P->k_blocks * (part + 1) / t.split);
  /* All of this is below 2^31 (map.c). Nothing here divides by a run-time value, which would delay the first copy. */
  const int win0 = (int)g->win[0], win1 = (int)g->win[1], win2 = (int)g->win[2], taps = win0 * win1 * win2;
  const int total = ((P->tiles_m + t.cm - 1) / t.cm) * ((P->tiles_n + t.cn - 1) / t.cn);
  int stage = 0, phase = 0;
  for (int index = cluster; index < total; index += clusters) {
    const igemm_place place = igemm_locate(P, t, index, rank);
    const int m = place.m0 + (t.cn > 1 ? rank * a_rows : 0);
    int n = m, at[3], tap[3] = {0, 0, 0};
#pragma unroll
    for (int d = 2; d >= 0; --d) {
      const int up = div_by(n, P->by_out[d]);
      at[d] = (n - up * (int)P->by_out[d].d) * (int)g->stride[d] - (int)g->lo[d];
      n = up;
    }
    const hk_cu_u8 *fp = (const hk_cu_u8 *)P->filters +
                         ((hk_cu_i64)place.tile_n * P->k_blocks + kb0) * b_bytes + (t.cm > 1 ? rank * b_part : 0);
    int c = place.group * (int)g->cg;
    if (t.split > 1) {
      const int chunk = kb0 / taps, left = kb0 - chunk * taps;
      tap[2] = left % win2;
      tap[1] = left / win2 % win1;
      tap[0] = left / win2 / win1;
      c += chunk * run;
    }
    if (index == cluster) igemm_wait(P);
    for (int kb = kb0; kb < kb1 && threadIdx.x == 0; ++kb, fp += b_bytes) {
      const hk_cu_u32 base = smem + stage * stage_bytes, bar = full + stage * 8;
      const int where[3] = {tap[0] * (int)g->dil[0], tap[1] * (int)g->dil[1], tap[2] * (int)g->dil[2]};
      bar_wait(empty + stage * 8, phase ^ 1);
      const int half = HK_IGEMM_HALVES(type, t.parts, t.cm, t.cn) && kb >= P->whole_blocks;
      bar_expect(bar, half ? row_bytes / 2 : row_bytes);
      if (t.cn > 1)
        igemm_pixels(P, &P->xmap, base + rank * a_rows * 128, bar, c, at, n, m, where, (hk_cu_u16)((1 << t.cn) - 1));
      else igemm_pixels(P, half ? &launch_of(P)->xhalf : &P->xmap, base, bar, c, at, n, m, where, 0);
      if (t.cm > 1) copy_bulk_pair(base + a_bytes + rank * b_part, fp, b_part, bar, (hk_cu_u16)((1 << t.cm) - 1));
      else copy_bulk(base + a_bytes, fp, half ? b_bytes / 2 : b_bytes, bar);
      if (++stage == t.stages) stage = 0, phase ^= 1;
      if (++tap[2] == win2) {
        tap[2] = 0;
        if (++tap[1] == win1) {
          tap[1] = 0;
          if (++tap[0] == win0) tap[0] = 0, c += run;
        }
      }
    }
    if (t.split > 1) {
      __syncwarp();
      cluster_sync();
      cluster_sync();
    }
  }
}

/* Releases a stage to every block of the cluster that writes into it. */
HK_DEV void igemm_release(igemm_tile t, hk_cu_u32 bar, int lane) {
  const int shared = t.cm * t.cn;
  if (shared == 1) {
    if (lane == 0) bar_arrive(bar);
  } else if (lane < shared) {
    bar_arrive_remote(bar, lane);
  }
}

/* Skips the k blocks of tiles that other consumers own. */
HK_DEV void igemm_skip(igemm_tile t, int blocks, int *stage, int *phase) {
  const int to = *stage + blocks;
  *phase ^= to / t.stages & 1;
  *stage = to % t.stages;
}

#define PIN(acc)                                                          \
  do {                                                                    \
    _Pragma("unroll")                                                     \
    for (int i = 0; i < t.mi; ++i)                                        \
      _Pragma("unroll")                                                   \
      for (int j = 0; j < t.bn / 2; ++j) asm volatile("" : "+f"((acc)[i][j])::"memory"); \
  } while (0)

/* A consumer's position in the ring. */
typedef struct igemm_cursor {
  int stage, phase, last; /* last: the stage that is still being read */
} igemm_cursor;

/* Descriptor of a matrix with rows of 64 bytes and the 64-byte swizzle. */
HK_DEV hk_cu_u64 igemm_half(hk_cu_u32 addr) {
  return (hk_cu_u64)(addr >> 4 & 0x3fff) | (hk_cu_u64)1 << 16 | (hk_cu_u64)32 << 32 | (hk_cu_u64)2 << 62;
}

/* Multiplies k blocks [from, to) of a tile, `steps` of 32 bytes each, one wgmma group in flight while the next is
 * issued. Half blocks have rows of 64 bytes. */
HK_DEV void igemm_blocks(int type, igemm_tile t, int steps, int from, int to, hk_cu_u32 a0, hk_cu_u32 b0,
                         hk_cu_u32 full, hk_cu_u32 empty, igemm_cursor *at, int lane, int late, int signal,
                         float (*acc)[128]) {
  const int stage_bytes = igemm_bm(t) * 128 + t.bn * 128,
            half = steps == 2 && HK_IGEMM_HALVES(type, t.parts, t.cm, t.cn);
#pragma unroll 1
  for (int kb = from; kb < to; ++kb) {
    bar_wait(full + at->stage * 8, at->phase);
    wgmma_fence();
    const hk_cu_u32 in = at->stage * stage_bytes;
    const hk_cu_u64 a = half ? igemm_half(a0 + in) : wgmma_matrix(a0 + in),
                    b = half ? igemm_half(b0 + in) : wgmma_matrix(b0 + in);
#pragma unroll
    for (int k = 0; k < steps; ++k)
#pragma unroll
      for (int i = 0; i < t.mi; ++i)
        wgmma_step(type, t.bn, acc[i], a + i * (half ? 256 : 512) + k * 2, b + k * 2, kb | k);
    wgmma_commit();
    if (kb) {
      wgmma_wait(1);
      igemm_release(t, empty + at->last * 8, lane);
    }
    if (kb == late) named_arrive(signal, 128 * 2);
    at->last = at->stage;
    if (++at->stage == t.stages) at->stage = 0, at->phase ^= 1;
  }
}

/* The same for e4m3, whose products the tensor cores add in about 14 bits: every 128 of gk the partial sums are
 * added to f32 registers. */
HK_DEV void igemm_multiply_f8(igemm_tile t, int blocks, hk_cu_u32 a0, hk_cu_u32 b0, hk_cu_u32 full, hk_cu_u32 empty,
                              int *stage_io, int *phase_io, int lane, int late, int signal, float (*acc)[128]) {
  const int stage_bytes = igemm_bm(t) * 128 + t.bn * 128;
  int stage = *stage_io, phase = *phase_io;
  float part[2][128];
#pragma unroll
  for (int i = 0; i < t.mi; ++i)
#pragma unroll
    for (int j = 0; j < t.bn / 2; ++j) acc[i][j] = 0.0f;
#pragma unroll 1
  for (int kb = 0; kb < blocks; ++kb) {
    bar_wait(full + stage * 8, phase);
    PIN(part);
    wgmma_fence();
    const hk_cu_u64 a = wgmma_matrix(a0 + stage * stage_bytes), b = wgmma_matrix(b0 + stage * stage_bytes);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int i = 0; i < t.mi; ++i) wgmma_step(HK_CU_F8, t.bn, part[i], a + i * 512 + k * 2, b + k * 2, k);
    wgmma_commit();
    wgmma_wait(0);
    PIN(part);
    igemm_release(t, empty + stage * 8, lane);
#pragma unroll
    for (int i = 0; i < t.mi; ++i)
#pragma unroll
      for (int j = 0; j < t.bn / 2; ++j) acc[i][j] += part[i][j];
    if (kb == late) named_arrive(signal, 128 * 2);
    if (++stage == t.stages) stage = 0, phase ^= 1;
  }
  *stage_io = stage;
  *phase_io = phase;
}

/* The same for f32 by three tf32 products: pixels are split in registers into a high part (rounded to tf32) and the
 * remainder; the filter images hold both parts; low * high and high * low come before high * high. A lane's fragment
 * of a k8 step is rows g and g + 8, columns t and t + 4. While one consumer splits, the other multiplies. The tensor
 * cores truncate when they add, so every 128 of gk the sums move to registers that round. */
HK_DEV void igemm_multiply_split(igemm_tile t, int blocks, const hk_cu_u8 *pixels, hk_cu_u32 b0, hk_cu_u32 full,
                                 hk_cu_u32 empty, int *stage_io, int *phase_io, int lane, int late, int signal,
                                 float (*acc)[128]) {
  const int stage_bytes = (igemm_bm(t) + t.bn * 2) * 128, g = lane / 4, warp = threadIdx.x / 32 % 4;
  int stage = *stage_io, phase = *phase_io;
  float part[1][128];
#pragma unroll
  for (int j = 0; j < t.bn / 2; ++j) acc[0][j] = 0.0f;
  PIN(part);
#pragma unroll 1
  for (int kb = 0; kb < blocks; ++kb) {
    bar_wait(full + stage * 8, phase);
    const hk_cu_u8 *row = pixels + stage * stage_bytes + (warp * 16 + g) * 128 + lane % 4 * 4;
    hk_cu_u32 hi[16], lo[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      const float v = *(const float *)(row + (k & 1) * 1024 + ((k / 2) ^ g) * 16);
      hi[k] = tf32_bits(v);
      lo[k] = __float_as_uint(v - __uint_as_float(hi[k]));
    }
    const hk_cu_u64 b = wgmma_matrix(b0 + stage * stage_bytes),
                    low = wgmma_matrix(b0 + stage * stage_bytes + t.bn * 128);
#pragma unroll
    for (int k = 0; k < 16; ++k) asm volatile("" : "+r"(hi[k]), "+r"(lo[k])::"memory");
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      wgmma_split_step(t.bn, part[0], lo + k * 4, b + k * 2, (kb & 3) | k);
      wgmma_split_step(t.bn, part[0], hi + k * 4, low + k * 2, 1);
      wgmma_split_step(t.bn, part[0], hi + k * 4, b + k * 2, 1);
    }
    wgmma_commit();
    wgmma_wait(0);
    PIN(part);
    igemm_release(t, empty + stage * 8, lane);
    if ((kb & 3) == 3 || kb + 1 == blocks)
#pragma unroll
      for (int j = 0; j < t.bn / 2; ++j) acc[0][j] += part[0][j];
    if (kb == late) named_arrive(signal, 128 * 2);
    if (++stage == t.stages) stage = 0, phase ^= 1;
  }
  *stage_io = stage;
  *phase_io = phase;
}

#include "cuda/igemm/finish.cuh"

/* Prefetches the residual of a tile in two parts, see finish_slab.cuh. type: the operands'. */
HK_DEV void igemm_prefetch(const hk_cu_igemm *P, int type, igemm_tile t, igemm_place place, int m0, int second,
                           slab_residuals *rest) {
  const int narrow = type == HK_CU_F16 ? HK_CU_F16 : HK_CU_BF16;
  if (P->g.y_type == HK_CU_F32 && second) slab_prefetch_second(P, HK_CU_F32, t, place, m0, rest);
  else if (P->g.y_type == HK_CU_F32) slab_prefetch_first(P, HK_CU_F32, t, place, m0, rest);
  else if (second) slab_prefetch_second(P, narrow, t, place, m0, rest);
  else slab_prefetch_first(P, narrow, t, place, m0, rest);
}

/* The main loop of one tile; leaves the sums in acc. Blocks from `whole` on are half blocks. The residual is
 * prefetched 8 and 4 blocks before the end, unless that was done while another consumer multiplied. */
HK_DEV void igemm_multiply(const hk_cu_igemm *P, int type, igemm_tile t, igemm_place place, int m0, int blocks,
                           int whole, hk_cu_u32 a0, hk_cu_u32 b0, hk_cu_u32 full, hk_cu_u32 empty, int *stage_io,
                           int *phase_io, int lane, int late, int signal, slab_residuals *rest, float (*acc)[128]) {
  igemm_cursor at = {*stage_io, *phase_io, 0};
  const int prefetch = t.split == 1 && t.wgs == t.nc && P->slab && P->e.residual;
  const int first = !prefetch   ? whole
                    : whole > 9 ? whole - 8
                                : whole > 1,
            second = !prefetch   ? whole
                     : whole > 5 ? whole - 4
                                 : first;
  PIN(acc);
  igemm_blocks(type, t, 4, 0, first, a0, b0, full, empty, &at, lane, late, signal, acc);
  if (prefetch) igemm_prefetch(P, type, t, place, m0, 0, rest);
  igemm_blocks(type, t, 4, first, second, a0, b0, full, empty, &at, lane, late, signal, acc);
  if (prefetch) igemm_prefetch(P, type, t, place, m0, 1, rest);
  igemm_blocks(type, t, 4, second, whole, a0, b0, full, empty, &at, lane, late, signal, acc);
  /* a0 skips the rows of the consumers before this one; half blocks have rows half as long */
  const int skip =
      HK_IGEMM_HALVES(type, t.parts, t.cm, t.cn) && t.wgs > 1 ? (threadIdx.x / 128 - 1) * t.mi * 64 * 64 : 0;
  igemm_blocks(type, t, 2, whole, blocks, a0 - skip, b0, full, empty, &at, lane, late, signal, acc);
  wgmma_wait(0);
  PIN(acc);
  igemm_release(t, empty + at.last * 8, lane);
  *stage_io = at.stage;
  *phase_io = at.phase;
}

/* Consumers that share a tile start some k blocks apart, so that their epilogues do not coincide. Ping-pong
 * consumers (t.wgs == 1) own every second tile: one multiplies while the other runs its epilogue. */
HK_DEV void igemm_consume(const hk_cu_igemm *P, int type, igemm_tile t, hk_cu_u8 *raw, hk_cu_u32 smem, hk_cu_u32 full,
                          hk_cu_u32 empty, int rank, int clusters, int cluster) {
  const int wg = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, ping_pong = t.wgs < t.nc, part_of = ping_pong ? 0 : wg;
  const int part = t.split > 1 ? rank : 0;
  const int first = (int)((hk_cu_i64)P->k_blocks * part / t.split),
            blocks = (int)((hk_cu_i64)P->k_blocks * (part + 1) / t.split) - first;
  const int whole = P->whole_blocks <= first ? 0 : P->whole_blocks - first < blocks ? P->whole_blocks - first : blocks;
  const int total = ((P->tiles_m + t.cm - 1) / t.cm) * ((P->tiles_n + t.cn - 1) / t.cn);
  const hk_cu_u32 a0 = smem + part_of * t.mi * 64 * 128, b0 = smem + igemm_bm(t) * 128;
  /* Consumer 0 releases consumer 1 after its (stages-1)-th block of the first tile. */
  const int staggered = t.nc == 2 && t.split == 1 && !ping_pong;
  int late = staggered && wg == 0 ? (blocks < t.stages - 1 ? blocks - 1 : t.stages - 2) : -1;
  int stage = 0, phase = 0;
  float acc[2][128];
  if (staggered && wg == 1) named_sync(7, 128 * 2);
  if (ping_pong) {
    /* A consumer may wait on the ring only after the other has seen its last block full: an mbarrier's parity
     * distinguishes two rounds, not more. Named barrier 4 + w releases consumer w. */
    igemm_skip(t, wg * blocks, &stage, &phase);
    late = blocks - 1;
  }
  const int signal = ping_pong ? 5 - wg : 7;
  const int ring = HK_IGEMM_RING(t.mi, t.wgs, t.bn, t.parts, t.stages), slot = 2 * HK_IGEMM_SLOT_ROWS(ring, t.nc) * 128,
            warp = threadIdx.x / 32 % 4;
  slab_residuals rest;
  rest.slots = smem + ring + wg * HK_IGEMM_STAGING(ring, t.mi, t.nc, t.bn, t.chunk) + warp * slot;
  rest.bar = full + 16 * t.stages + (wg * 4 + warp) * 8;
  rest.phase = 0;
  /* results of earlier kernels may be read from the first full stage on, or from here on where a tile starts by
   * reading */
  const int reads = P->slab && t.split == 1 ? ping_pong || type == HK_CU_F8 || t.parts == 2 || whole < 2
                                            : P->e.scale || P->e.bias || P->e.residual;
  if (reads) igemm_wait(P);
  for (int index = cluster + (ping_pong ? wg * clusters : 0); index < total;
       index += (ping_pong ? t.nc : 1) * clusters) {
    const igemm_place place = igemm_locate(P, t, index, rank);
    const int m0 = place.m0 + part_of * 64 * t.mi;
    const int prefetch = t.split == 1 && P->slab && P->e.residual;
    finish_affine affine;
    if (t.split == 1 && !P->slab) affine = finish_load_affine(P, t, place);
    if (t.split > 1 && P->e.residual && P->c_linear) finish_prefetch(P, t, place, part_of);
    /* before its turn a ping-pong consumer has time for both prefetches; otherwise only the first is issued here */
    if (prefetch && (ping_pong || type == HK_CU_F8 || t.parts == 2)) igemm_prefetch(P, type, t, place, m0, 0, &rest);
    if (prefetch && ping_pong) igemm_prefetch(P, type, t, place, m0, 1, &rest);
    if (ping_pong && (wg || index != cluster)) named_sync(4 + wg, 128 * 2);
    if (type == HK_CU_F8) igemm_multiply_f8(t, blocks, a0, b0, full, empty, &stage, &phase, lane, late, signal, acc);
    else if (t.parts == 2)
      igemm_multiply_split(t, blocks, raw + part_of * 64 * 128, b0, full, empty, &stage, &phase, lane, late, signal,
                           acc);
    else
      igemm_multiply(P, type, t, place, m0, blocks, whole, a0, b0, full, empty, &stage, &phase, lane, late, signal,
                     &rest, acc);
    if (!ping_pong) late = -1;
    if (prefetch && !ping_pong && (type == HK_CU_F8 || t.parts == 2)) igemm_prefetch(P, type, t, place, m0, 1, &rest);
    if (t.split > 1) finish_split(P, t, place, wg, rank, raw, acc);
    else finish_tile(P, type, t, place, wg, part_of, raw, affine, &rest, acc);
    if (ping_pong) igemm_skip(t, (t.nc - 1) * blocks, &stage, &phase);
  }
  /* A block without tiles still has to release its staggered consumer. */
  if (staggered && late >= 0) named_arrive(7, 128 * 2);
}

HK_DEV void igemm_body(const hk_cu_launch *L, int type, igemm_tile t) {
  const hk_cu_igemm *P = &L->product;
  extern __shared__ __align__(1024) hk_cu_u8 raw[];
  const hk_cu_u32 smem = smem_u32(raw);
  const hk_cu_u32 bars = smem + HK_IGEMM_BARS(t.mi, t.wgs, t.nc, t.bn, t.parts, t.stages, t.chunk, t.split);
  const hk_cu_u32 full = bars, empty = bars + 8 * t.stages;
  if (L->chain != HK_CU_CHAIN_FIRST) pdl_trigger();
  const int size = igemm_cluster(t), rank = size > 1 ? cluster_rank() : 0;
  const int cluster = blockIdx.x / size, clusters = gridDim.x / size;
  if (threadIdx.x == 0) {
    prefetch_map(&P->xmap);
    if (HK_IGEMM_HALVES(type, t.parts, t.cm, t.cn) && P->whole_blocks < P->k_blocks) prefetch_map(&L->xhalf);
    if (P->slab) prefetch_map(&P->ymap);
    for (int i = 0; i < t.stages; ++i) {
      bar_init(full + i * 8, 1);
      bar_init(empty + i * 8, 4 * t.wgs * t.cm * t.cn);
    }
    if (P->slab && P->e.residual) {
      prefetch_map(&L->cmap);
      for (int i = 0; i < 4 * t.nc; ++i) bar_init(bars + 16 * t.stages + i * 8, 1);
    }
    bar_init_fence();
  }
  if (size > 1) cluster_sync();
  else __syncthreads();
  if (threadIdx.x < 128) {
    if (t.nc == 3) regs_shrink(32);
    else if (t.nc == 2) regs_shrink(40);
    if (threadIdx.x == 0 || t.split > 1) igemm_produce(P, type, t, smem, full, empty, rank, clusters, cluster);
  } else {
    if (t.nc == 3) regs_grow(160);
    else if (t.nc == 2) regs_grow(232);
    igemm_consume(P, type, t, raw, smem, full, empty, rank, clusters, cluster);
    if (P->slab && threadIdx.x % 32 == 0) copy_out_wait(0);
  }
  /* No block may exit while another may still access its shared memory. */
  if (size > 1) cluster_sync();
  if (L->chain == HK_CU_CHAIN_NEXT) pdl_wait();
}
#endif
