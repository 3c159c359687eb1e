/* Implicit GEMM on wgmma over a channels-first x in place: y[k][q] = sum over k blocks of filters[k][:] *
 * pixels[:][q].
 *
 * The roles of igemm.cuh are swapped: the rows of a tile are output channels (packed filters, K-major), its columns
 * output pixels. A k block is one tap of 64 channels. Its pixels arrive in boxes of 64 pixels x 64 channels that
 * start at the tap's distance rounded down to a multiple of 8 pixels; wgmma reads them as its transposed operand.
 * The remainder is made up by shifting the sums between phases (planes_params.h). An image is one run of pixels: TMA
 * fills what is before and after it with zeros, and a tap that wraps around the end of a row reads the neighbouring
 * row instead of padding. Three warps beside the producer, the padding warps, overwrite those columns with zeros in
 * shared memory before the consumers may read the stage. The accumulators end up in y's own order.
 *
 * 16-bit types, stride 1; ring, ping-pong, staggered starts and persistence are as in igemm.cuh. */
#ifndef HK_CUDA_PLANES_CUH
#define HK_CUDA_PLANES_CUH
#include "cuda/igemm/igemm.cuh"
#include "cuda/igemm/planes_params.h"

#define WGMMA_TRANSPOSED(n, regs, ia, ib, ip)                                     \
  WGMMA(transposed_bf16, "k16.f32.bf16.bf16", ", 0, 1", n, regs, ia, ib, ip)      \
  WGMMA(transposed_f16, "k16.f32.f16.f16", ", 0, 1", n, regs, ia, ib, ip)
WGMMA_TRANSPOSED(128, 64, 64, 65, 66)
WGMMA_TRANSPOSED(208, 104, 104, 105, 106)
WGMMA_TRANSPOSED(256, 128, 128, 129, 130)
#define TRANSPOSED_PICK(n)                                               \
  case n:                                                            \
    if (type == HK_CU_BF16) wgmma_transposed_bf16_##n(d, a, b, keep);    \
    else wgmma_transposed_f16_##n(d, a, b, keep);                        \
    break;
HK_DEV void wgmma_transposed_step(int type, int bn, float *d, hk_cu_u64 a, hk_cu_u64 b, int keep) {
  switch (bn) { TRANSPOSED_PICK(128) TRANSPOSED_PICK(208) TRANSPOSED_PICK(256) default: break; }
}
/* Descriptor of boxes of 64 pixels, 8192 bytes apart; in a box, rows of one channel, 8 of them per 1024 bytes. */
HK_DEV hk_cu_u64 wgmma_matrix_transposed(hk_cu_u32 addr) {
  return (hk_cu_u64)(addr >> 4 & 0x3fff) | (hk_cu_u64)512 << 16 | (hk_cu_u64)64 << 32 | (hk_cu_u64)1 << 62;
}

typedef struct planes_tile {
  int mi, nc, wgs, bn, stages;
  int bm;                    /* channels of the tile */
} planes_tile;

typedef struct planes_place {
  igemm_place at;            /* m0: first pixel in the image's run */
  int n, end;                /* image; past the last pixel */
} planes_place;

HK_DEV planes_place planes_locate(const hk_cu_planes *P, planes_tile t, int index) {
  planes_place to;
  const int line = div_by(index, P->m.by_wide), span = t.bn - P->lost;
  to.at.tile_n = index - line * (int)P->m.by_wide.d;
  to.at.group = div_by(to.at.tile_n, P->m.by_group);
  to.at.k0 = (to.at.tile_n - to.at.group * P->m.group_tiles_n) * t.bm;
  to.n = div_by(line, P->by_tiles);
  to.at.m0 = (line - to.n * (int)P->by_tiles.d) * span;
  to.end = to.at.m0 + span < P->flat ? to.at.m0 + span : P->flat;
  return to;
}

/* Position in the loop over k blocks: phases outer, then runs of channels, then the phase's taps [begin, end). */
typedef struct planes_walk {
  int phase, chunk, tap, begin, end;
} planes_walk;
HK_DEV planes_walk planes_start(const hk_cu_planes *P) {
  const planes_walk w = {0, 0, 0, 0, P->taps[0]};
  return w;
}
HK_DEV void planes_next(const hk_cu_planes *P, planes_walk *w) {
  if (++w->tap < w->end) return;
  if (++w->chunk == P->chunks) {
    w->chunk = 0;
    w->begin = w->end;
    w->end += P->taps[++w->phase];
  }
  w->tap = w->begin;
}

HK_DEV void copy_planes(hk_cu_u32 dst, const hk_cu_tmap *map, hk_cu_u32 bar, int q, int c, int group, int n) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
               "%6}], [%2];" ::"r"(dst),
               "l"(map), "r"(bar), "r"(q), "r"(c), "r"(group), "r"(n)
               : "memory");
}

/* One thread fills the ring for all tiles of its block. */
HK_DEV void planes_produce(const hk_cu_planes *P, planes_tile t, hk_cu_u32 smem, hk_cu_u32 full, hk_cu_u32 empty) {
  const int total = P->m.tiles_m * P->m.tiles_n, a_bytes = t.bm * 128, blocks = P->m.k_blocks;
  const int taps = (int)(P->m.g.win[0] * P->m.g.win[1] * P->m.g.win[2]);
  int stage = 0, phase = 0;
  for (int index = blockIdx.x; index < total; index += gridDim.x) {
    const planes_place place = planes_locate(P, t, index);
    const hk_cu_u8 *filters = (const hk_cu_u8 *)P->m.filters + (hk_cu_i64)place.at.tile_n * blocks * a_bytes;
    planes_walk w = planes_start(P);
    for (int kb = 0; kb < blocks; ++kb) {
      const hk_cu_u32 base = smem + stage * HK_PLANES_STAGE(t.bm, t.bn), bar = full + stage * 8;
      const hk_cu_planes_tap tap = P->tap[w.tap];
      const int q = place.at.m0 + tap.start;
      bar_wait(empty + stage * 8, phase ^ 1);
      bar_expect(bar, HK_PLANES_STAGE(t.bm, t.bn));
#pragma unroll
      for (int b = 0; b < HK_PLANES_BOXES(t.bn); ++b)
        copy_planes(base + a_bytes + b * 8192, &P->m.xmap, bar, q + b * 64, w.chunk * 64, place.at.group, place.n);
      copy_bulk(base, filters + (hk_cu_i64)(w.chunk * taps + tap.index) * a_bytes, a_bytes, bar);
      if (++stage == t.stages) stage = 0, phase ^= 1;
      planes_next(P, &w);
    }
  }
}

/* Zeroes columns [from, to) of a stage's pixels, 64 channels: two per lane. Piece p of channel c is at p ^ (c % 8). */
HK_DEV void planes_clear(hk_cu_u8 *pixels, int from, int to, int lane) {
  for (int p = from; p < to;) {
    hk_cu_u8 *at = pixels + p / 64 * 8192 + lane * 128 + ((p / 8 % 8) ^ (lane & 7)) * 16;
    if (p % 8 == 0 && p + 8 <= to) {
      *(uint4 *)at = make_uint4(0, 0, 0, 0);
      *(uint4 *)(at + 32 * 128) = make_uint4(0, 0, 0, 0);
      p += 8;
    } else {
      *(hk_cu_u16 *)(at + p % 8 * 2) = 0;
      *(hk_cu_u16 *)(at + 32 * 128 + p % 8 * 2) = 0;
      ++p;
    }
  }
}

/* Padding warp `warp` of three: every third k block. It passes every stage on, whether it zeroed columns or not. */
HK_DEV void planes_zero(const hk_cu_planes *P, planes_tile t, hk_cu_u8 *raw, hk_cu_u32 full, hk_cu_u32 zeroed,
                        int warp) {
  const int total = P->m.tiles_m * P->m.tiles_n, lane = threadIdx.x % 32, width = P->width, blocks = P->m.k_blocks,
            rows = P->wraps & HK_CU_WRAP_ROWS;
  int stage = 0, phase = 0, skip = warp;
  for (int index = blockIdx.x; index < total; index += gridDim.x) {
    const planes_place place = planes_locate(P, t, index);
    planes_walk w = planes_start(P);
    for (int kb = 0; kb < blocks; ++kb) {
      if (--skip < 0) {
        const hk_cu_planes_tap tap = P->tap[w.tap];
        const int q = place.at.m0 - P->lag[w.phase], row = div_by(q > 0 ? q : 0, P->by_width);
        int h = row - div_by(row, P->by_height) * P->height, from, to;
        hk_cu_u8 *pixels = raw + stage * HK_PLANES_STAGE(t.bm, t.bn) + t.bm * 128;
        skip = 2;
        hk_cu_planes_wrapped(P, h, tap.across, tap.down, &from, &to);
        /* another warp handles the stage's previous block: only when that is done does the parity of `full` refer to
         * this one */
        bar_wait(zeroed + stage * 8, phase ^ 1);
        bar_wait(full + stage * 8, phase);
        for (int at = row * width - q; at < t.bn && (rows || from < to); at += width) {
          planes_clear(pixels, at + from < 0 ? 0 : at + from, at + to < t.bn ? at + to : t.bn, lane);
          if (rows) {
            if (++h == P->height) h = 0;
            hk_cu_planes_wrapped(P, h, tap.across, tap.down, &from, &to);
          }
        }
        fence_async();
        __syncwarp();
        if (lane == 0) bar_arrive(zeroed + stage * 8);
      }
      if (++stage == t.stages) stage = 0, phase ^= 1;
      planes_next(P, &w);
    }
  }
}

#include "cuda/igemm/planes_out.cuh"

/* A consumer's position in the ring; `last` is the stage that is still being read, or -1. */
HK_DEV void planes_release(hk_cu_u32 empty, igemm_cursor *at) {
  if (at->last >= 0 && threadIdx.x % 32 == 0) bar_arrive(empty + at->last * 8);
  at->last = -1;
}

/* Multiplies k blocks [kb, to) of a tile, one group in flight while the next is issued. At least one: a loop that
 * might not run keeps ptxas from overlapping wgmma. */
HK_DEV void planes_blocks(int type, planes_tile t, int kb, int to, hk_cu_u32 a0, hk_cu_u32 b0, hk_cu_u32 full,
                          hk_cu_u32 zeroed, hk_cu_u32 empty, igemm_cursor *at, int wraps, int late, int signal,
                          float (*acc)[128]) {
#pragma unroll 1
  do {
    bar_wait(full + at->stage * 8, at->phase);
    if (wraps) bar_wait(zeroed + at->stage * 8, at->phase);
    wgmma_fence();
    const int stage = at->stage * HK_PLANES_STAGE(t.bm, t.bn);
    const hk_cu_u64 a = wgmma_matrix(a0 + stage), b = wgmma_matrix_transposed(b0 + stage);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int i = 0; i < t.mi; ++i)
        wgmma_transposed_step(type, t.bn, acc[i], a + i * 512 + k * 2, b + k * 128, kb | k);
    wgmma_commit();
    wgmma_wait(1);
    planes_release(empty, at);
    if (kb == late) named_arrive(signal, 128 * 2);
    at->last = at->stage;
    if (++at->stage == t.stages) at->stage = 0, at->phase ^= 1;
  } while (++kb < to);
}

/* Shifts all sums `by` pixels to the left, 0 < by < 8: a lane's pair of columns goes to the lane by / 2 before it,
 * or to the next 8 columns where that is in another group of 4 lanes; an odd distance also swaps the columns of a
 * pair. What enters at the right end is no output. */
HK_DEV void planes_shift(planes_tile t, int by, float (*acc)[128]) {
  const int lane = threadIdx.x % 32, at = lane % 4, odd = by & 1;
  /* lanes between a pair and the source of its first and second column; equal for even distances */
  const int h0 = by / 2, h1 = (by + 1) / 2;
  const int from0 = (lane & ~3) | ((at + h0) & 3), from1 = (lane & ~3) | ((at + h1) & 3);
#pragma unroll
  for (int i = 0; i < t.mi; ++i)
#pragma unroll
    for (int j = 0; j < t.bn / 8; ++j)
#pragma unroll
      for (int r = 0; r < 4; r += 2) {
        const int here = j * 4 + r, next = j + 1 < t.bn / 8 ? here + 4 : here;
        const float a0 = odd ? acc[i][here + 1] : acc[i][here], a1 = odd ? acc[i][next + 1] : acc[i][next];
        const float b0 = odd ? acc[i][here] : acc[i][here + 1], b1 = odd ? acc[i][next] : acc[i][next + 1];
        acc[i][here] = __shfl_sync(0xffffffffu, at < h0 ? a1 : a0, from0);
        acc[i][here + 1] = __shfl_sync(0xffffffffu, at < h1 ? b1 : b0, from1);
      }
}

/* The main loop of one tile; leaves the sums in acc, aligned with the output pixels. */
HK_DEV void planes_multiply(const hk_cu_planes *P, int type, planes_tile t, hk_cu_u32 a0, hk_cu_u32 b0, hk_cu_u32 full,
                            hk_cu_u32 zeroed, hk_cu_u32 empty, igemm_cursor *at, int late, int signal,
                            float (*acc)[128]) {
  int done = 0;
  PIN(acc);
#pragma unroll 1
  for (int p = 0; p < P->phases; ++p) {
    const int count = P->taps[p] * P->chunks, by = P->lag[p] - P->lag[p + 1];
    planes_blocks(type, t, done, done + count, a0, b0, full, zeroed, empty, at, P->wraps, late, signal, acc);
    done += count;
    wgmma_wait(0);
    PIN(acc);
    planes_release(empty, at);
    if (by) planes_shift(t, by, acc);
    PIN(acc);
  }
}

/* Like igemm_consume: consumers that share a tile start some k blocks apart; ping-pong consumers own every second
 * tile. */
HK_DEV void planes_consume(const hk_cu_planes *P, int type, planes_tile t, hk_cu_u32 smem, hk_cu_u32 full,
                           hk_cu_u32 zeroed, hk_cu_u32 empty) {
  const int wg = (int)threadIdx.x / 128 - 1, ping_pong = t.wgs < t.nc, first = ping_pong ? 0 : wg * 64 * t.mi,
            staggered = t.nc == 2 && !ping_pong;
  const int blocks = P->m.k_blocks, total = P->m.tiles_m * P->m.tiles_n;
  const hk_cu_u32 a0 = smem + first * 128, b0 = smem + t.bm * 128,
                  staging = smem + t.stages * HK_PLANES_STAGE(t.bm, t.bn) + wg * 16384;
  int late = ping_pong ? blocks - 1 : staggered && wg == 0 ? (blocks < t.stages - 1 ? blocks - 1 : t.stages - 2) : -1;
  const int signal = ping_pong ? 5 - wg : 7;
  igemm_cursor at = {0, 0, -1};
  const igemm_tile ring = {.stages = t.stages};
  float acc[2][128];
  if (staggered && wg == 1) named_sync(7, 128 * 2);
  if (ping_pong) igemm_skip(ring, wg * blocks, &at.stage, &at.phase);
  for (int index = blockIdx.x + (ping_pong ? wg * gridDim.x : 0); index < total;
       index += (ping_pong ? t.nc : 1) * gridDim.x) {
    const planes_place place = planes_locate(P, t, index);
    planes_pair affine[2];
#pragma unroll
    for (int i = 0; i < t.mi; ++i) affine[i] = planes_load_affine(&P->m, first, place.at, i);
    if (P->m.e.residual && P->whole) planes_prefetch(P, t, first, place);
    if (ping_pong && (wg || index != (int)blockIdx.x)) named_sync(4 + wg, 128 * 2);
    planes_multiply(P, type, t, a0, b0, full, zeroed, empty, &at, late, signal, acc);
    if (!ping_pong) late = -1;
    planes_finish(P, type, t, first, place, staging, affine, acc);
    if (ping_pong) igemm_skip(ring, (t.nc - 1) * blocks, &at.stage, &at.phase);
  }
  /* A block without tiles still has to release its staggered consumer. */
  if (staggered && late >= 0) named_arrive(7, 128 * 2);
  if (threadIdx.x % 32 == 0) copy_out_wait(0);
}

HK_DEV void planes_body(const hk_cu_planes *P, int type, planes_tile t) {
  extern __shared__ __align__(1024) hk_cu_u8 raw[];
  const hk_cu_u32 smem = smem_u32(raw), full = smem + HK_PLANES_BARS(t.bm, t.nc, t.bn, t.stages),
                  zeroed = full + 8 * t.stages, empty = zeroed + 8 * t.stages;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    prefetch_map(&P->m.xmap);
    if (P->whole) prefetch_map(&P->m.ymap);
    for (int i = 0; i < t.stages; ++i) {
      bar_init(full + i * 8, 1);
      bar_init(zeroed + i * 8, 1);
      bar_init(empty + i * 8, 4 * t.wgs);
    }
    bar_init_fence();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    regs_shrink(40);
    if (threadIdx.x == 0) planes_produce(P, t, smem, full, empty);
    else if (warp && P->wraps) planes_zero(P, t, raw, full, zeroed, warp - 1);
  } else {
    regs_grow(232);
    planes_consume(P, type, t, smem, full, zeroed, empty);
  }
}
#endif
