/* Implicit GEMM on wgmma over a channels-first x in place; each pixel is fetched once per tile: y[k][q] = sum over
 * channels and taps of filters[k][:] * pixels[:][q + tap].
 *
 * The rows of a tile are output channels (packed filters, K-major), its columns output pixels, so the sums have y's
 * own order. The pixels of a tile and their halo, for 64 channels, form a block in shared memory with pixels as rows
 * of channels; a tap is a different first row of the same block (halo_params.h). Three warps beside the producer,
 * the transposing warps, make the blocks: each prefetches boxes of 64 pixels x 64 channels as they are in memory,
 * transposes them (ldmatrix, stmatrix) into their rows of the block, and writes zeros for padding. One block is read
 * while the next is made. Filters arrive through a ring, one tap of 64 channels at a time.
 *
 * 16-bit types, one or two dimensions, stride 1. The epilogue is halo_out.cuh; ping-pong and staggered starts are as
 * in igemm.cuh. */
#ifndef HK_CUDA_HALO_CUH
#define HK_CUDA_HALO_CUH
#include "cuda/igemm/planes.cuh"
#include "cuda/igemm/halo_params.h"

#define T108 T100 EIGHT(10)
#define O108 O100 OEIGHT(10)
WGMMA(bf16, "k16.f32.bf16.bf16", ", 0, 0", 216, 108, 108, 109, 110)
WGMMA(f16, "k16.f32.f16.f16", ", 0, 0", 216, 108, 108, 109, 110)
HK_DEV void halo_step(int type, int bn, float *d, hk_cu_u64 a, hk_cu_u64 b, int keep) {
  if (bn != 216) wgmma_step(type, bn, d, a, b, keep);
  else if (type == HK_CU_BF16) wgmma_bf16_216(d, a, b, keep);
  else wgmma_f16_216(d, a, b, keep);
}
/* Layout of shared memory: addresses of the ring, the slots of the transposing warps, the consumers' staging
 * buffers, the blocks, and the mbarriers. */
typedef struct halo_layout {
  /* moved: one per slot; ready, used: one per block */
  hk_cu_u32 ring, slots, staging, blocks, table, full, empty, moved, ready, used;
} halo_layout;
HK_DEV halo_layout halo_layout_of(const hk_cu_halo *P, planes_tile t, hk_cu_u32 smem) {
  halo_layout r;
  r.ring = smem;
  r.slots = r.ring + t.stages * HK_HALO_STAGE(t.bm);
  r.staging = r.slots + HK_HALO_SLOTS(P->slots);
  r.blocks = r.staging + HK_HALO_STAGING(t.bn, t.nc);
  r.table = r.blocks + 2 * HK_HALO_BLOCK(P->hold);
  r.full = r.table + HK_HALO_TABLE(P->apart, P->rows);
  r.empty = r.full + 8 * t.stages;
  r.moved = r.empty + 8 * t.stages;
  r.ready = r.moved + 8 * HK_CU_HALO_WARPS * HK_CU_HALO_SLOTS;
  r.used = r.ready + 16;
  return r;
}

/* One thread fills the ring of filters for all tiles of its block. */
HK_DEV void halo_produce(const hk_cu_halo *P, planes_tile t, halo_layout r) {
  const int total = P->p.m.tiles_m * P->p.m.tiles_n, bytes = HK_HALO_STAGE(t.bm), blocks = P->p.m.k_blocks;
  int stage = 0, phase = 0;
  pdl_wait();
  for (int index = blockIdx.x; index < total; index += gridDim.x) {
    const hk_cu_u8 *filters =
        (const hk_cu_u8 *)P->p.m.filters + (hk_cu_i64)planes_locate(&P->p, t, index).at.tile_n * blocks * bytes;
    for (int kb = 0; kb < blocks; ++kb, filters += bytes) {
      bar_wait(r.empty + stage * 8, phase ^ 1);
      bar_expect(r.full + stage * 8, bytes);
      copy_bulk(r.ring + stage * bytes, filters, bytes, r.full + stage * 8);
      if (++stage == t.stages) stage = 0, phase ^= 1;
    }
  }
}

/* Number of pixels of x before position v. */
HK_DEV int halo_before(const hk_cu_halo *P, int v) {
  if (v <= 0) return 0;
  const int h = div_by(v, P->p.by_width), w = v - h * P->p.width, p = h * P->wide + (w < P->wide ? w : P->wide);
  return p < P->plane ? p : P->plane;
}

/* What the block of a tile needs of x: pixels [lo, hi) of image n, in boxes; v0 is the position of its first row. */
typedef struct halo_part {
  int index, n, group, v0, lo, hi, boxes;
} halo_part;
HK_DEV halo_part halo_part_of(const hk_cu_halo *P, planes_tile t, int index) {
  const planes_place place = planes_locate(&P->p, t, index);
  halo_part s = {index, place.n, place.at.group, place.at.m0 - P->before, 0, 0, 0};
  s.lo = halo_before(P, s.v0);
  s.hi = halo_before(P, s.v0 + P->rows);
  s.boxes = HK_HALO_BOXES(s.hi - s.lo);
  return s;
}

/* A transposing warp's position among its boxes, every third of each block; it prefetches as many boxes ahead as it has
 * slots. */
typedef struct halo_walk {
  halo_part s;
  int chunk, box, slot;
} halo_walk;
HK_DEV void halo_prefetch(const hk_cu_halo *P, planes_tile t, halo_layout r, int warp, halo_walk *w) {
  const int total = P->p.m.tiles_m * P->p.m.tiles_n;
  while (w->s.index < total && w->box >= w->s.boxes) {
    w->box = warp;
    if (++w->chunk < P->p.chunks) continue;
    w->chunk = 0;
    w->s.index += gridDim.x;
    if (w->s.index < total) w->s = halo_part_of(P, t, w->s.index);
  }
  if (w->s.index >= total) return;
  const int mine = warp * P->slots + w->slot, span = 64 / P->apart;
  if (threadIdx.x % 32 == 0) {
    bar_expect(r.moved + mine * 8, 8192);
    for (int i = 0; i < P->apart; ++i)
      copy_planes(r.slots + mine * 8192 + i * span * 128, &P->p.m.xmap, r.moved + mine * 8,
                  ((i * P->step + w->s.lo) & ~7) + w->box * 64, w->chunk * span, w->s.group, w->s.n);
  }
  w->box += HK_CU_HALO_WARPS;
  if (++w->slot == P->slots) w->slot = 0;
}

HK_DEV void matrix_get_transposed(hk_cu_u32 at, hk_cu_u32 *v) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(at)
               : "memory");
}

/* Writes a tile's table: for every phase and box, and each eighth of its pixels, the rows of pixels 0, 8.. 56 from
 * there on, as row * 8 + row % 8, so that octet o of a row is piece (that ^ o) of the block. A pixel without a row
 * in the block goes to an unused row. Each transposing warp writes the entries that it reads. */
HK_DEV void halo_table(const hk_cu_halo *P, const halo_part *s, int warp, hk_cu_u32 table) {
  const int lane = threadIdx.x % 32;
  for (int box = warp; box < s->boxes; box += HK_CU_HALO_WARPS)
    for (int i = 0; i < P->apart; ++i)
#pragma unroll
      for (int half = 0; half < 64; half += 32) {
        const int at = half + lane, p = ((i * P->step + s->lo) & ~7) - i * P->step + box * 64 + at,
                  h = div_by(p > 0 ? p : 0, P->by_wide);
        const int row = p >= s->lo && p < s->hi ? h * P->p.width + p - h * P->wide - s->v0 : P->rows;
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(table + ((box * P->apart + i) * 64 + at % 8 * 8 + at / 8) * 2),
                     "h"((hk_cu_u16)(row * 8 + row % 8))
                     : "memory");
      }
  __syncwarp();
}

/* Transposes box `box` from its slot into the block. Piece p of channel row c is at p ^ (c % 8). Shared-memory
 * latency is high while the tensor cores read, so 8 loads are issued before the first is used. */
HK_DEV void halo_transpose(const hk_cu_halo *P, int box, hk_cu_u32 table, hk_cu_u32 slot, hk_cu_u32 block) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  /* four octets of channels at a time; those of another phase have their pixels elsewhere */
  for (int o = lane / 8; o < 8; o += 4) {
    const hk_cu_u32 from = slot + (o * 8 + lane % 8) * 128 + lane % 8 * 16, mask = o * 0x10001;
    hk_cu_u32 v[8][4], to[4];
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(table + ((box * P->apart + o * P->apart / 8) * 64 + lane % 8 * 8) * 2) : "memory");
#pragma unroll
    for (int j = 0; j < 8; ++j) matrix_get_transposed(from ^ j * 16, v[j]);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const hk_cu_u32 both = to[j / 2] ^ mask, piece = j % 2 ? both >> 16 : both & 0xffff;
      matrix_put(4, block + piece * 16, v[j]);
    }
  }
}

/* Zeroes the rows of a block that are not pixels of x: every third 32 of them. */
HK_DEV void halo_clear(const hk_cu_halo *P, const halo_part *s, int warp, hk_cu_u32 block) {
  for (int row = warp * 32 + (int)threadIdx.x % 32; row < P->rows; row += 32 * HK_CU_HALO_WARPS) {
    const int v = s->v0 + row, h = div_by(v > 0 ? v : 0, P->p.by_width), w = v - h * P->p.width;
    if (v >= 0 && w < P->wide && h * P->wide + w < P->plane) continue;
#pragma unroll
    for (int o = 0; o < 8; ++o)
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(block + row * 128 + ((o + row) & 7) * 16), "r"(0)
                   : "memory");
  }
}

/* Transposing warp `warp` of three. */
HK_DEV void halo_fill(const hk_cu_halo *P, planes_tile t, halo_layout r, int warp) {
  const int total = P->p.m.tiles_m * P->p.m.tiles_n;
  halo_walk ahead = {{0}, 0, warp, 0};
  int slot = 0, parity = 0, buffer = 0, phase = 0, owed = 0; /* owed: slots without a prefetch */
  if ((int)blockIdx.x >= total) return;
  ahead.s = halo_part_of(P, t, blockIdx.x);
  pdl_wait();
  for (int i = 0; i < P->slots; ++i) halo_prefetch(P, t, r, warp, &ahead);
  for (int index = blockIdx.x; index < total; index += gridDim.x) {
    const halo_part s = halo_part_of(P, t, index);
    halo_table(P, &s, warp, r.table);
    for (int chunk = 0; chunk < P->p.chunks; ++chunk) {
      const hk_cu_u32 block = r.blocks + buffer * HK_HALO_BLOCK(P->hold);
      bar_wait(r.used + buffer * 8, phase ^ 1);
      /* later blocks of a tile find the zeros already written, and so do those of the first tile */
      if (chunk < 2 && index != (int)blockIdx.x) halo_clear(P, &s, warp, block);
      for (int box = warp; box < s.boxes; box += HK_CU_HALO_WARPS) {
        const int mine = warp * P->slots + slot;
        if (owed == P->slots) halo_prefetch(P, t, r, warp, &ahead), --owed;
        bar_wait(r.moved + mine * 8, parity);
        halo_transpose(P, box, r.table, r.slots + mine * 8192, block);
        __syncwarp();
        ++owed;
        if (++slot == P->slots) slot = 0, parity ^= 1;
      }
      fence_async();
      __syncwarp();
      if (threadIdx.x % 32 == 0) bar_arrive(r.ready + buffer * 8);
      for (; owed; --owed) halo_prefetch(P, t, r, warp, &ahead); /* nobody waits for this now */
      if (++buffer == 2) buffer = 0, phase ^= 1;
    }
  }
}

#include "cuda/igemm/halo_out.cuh"

/* A consumer's position: in the ring as in planes.cuh, and the block that it reads. */
typedef struct halo_cursor {
  igemm_cursor ring;
  int buffer, phase, done; /* done: the block whose last wgmma is still in flight, or -1 */
} halo_cursor;
HK_DEV void halo_release(halo_layout r, halo_cursor *at) {
  planes_release(r.empty, &at->ring);
  if (at->done >= 0 && threadIdx.x % 32 == 0) bar_arrive(r.used + at->done * 8);
  at->done = -1;
}

/* The main loop of one tile; leaves the sums in acc. */
HK_DEV void halo_multiply(const hk_cu_halo *P, int type, planes_tile t, halo_layout r, int first, halo_cursor *at,
                          int late, int signal, float (*acc)[128]) {
  const int blocks = P->p.m.k_blocks, taps = P->p.taps[0];
  int kb = 0, tap = 0;
  PIN(acc);
#pragma unroll 1
  do {
    if (tap == 0) bar_wait(r.ready + at->buffer * 8, at->phase);
    /* the swizzle depends on the address, so any row may be the first */
    const hk_cu_u64 b = wgmma_matrix(r.blocks + at->buffer * HK_HALO_BLOCK(P->hold) + P->p.tap[tap].start * 128);
    const hk_cu_u64 a = wgmma_matrix(r.ring + at->ring.stage * HK_HALO_STAGE(t.bm) + first * 128);
    bar_wait(r.full + at->ring.stage * 8, at->ring.phase);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int i = 0; i < t.mi; ++i) halo_step(type, t.bn, acc[i], a + i * 512 + k * 2, b + k * 2, kb | k);
    wgmma_commit();
    wgmma_wait(1);
    halo_release(r, at);
    if (kb == late) named_arrive(signal, 128 * 2);
    at->ring.last = at->ring.stage;
    if (++at->ring.stage == t.stages) at->ring.stage = 0, at->ring.phase ^= 1;
    if (++tap == taps) {
      tap = 0;
      at->done = at->buffer;
      if (at->buffer ^= 1, at->buffer == 0) at->phase ^= 1;
    }
  } while (++kb < blocks);
  wgmma_wait(0);
  PIN(acc);
  halo_release(r, at);
}

/* Skips the blocks and stages of `tiles` tiles that other consumers own. */
HK_DEV void halo_skip(const hk_cu_halo *P, planes_tile t, int tiles, halo_cursor *at) {
  const igemm_tile ring = {.stages = t.stages};
  const int to = at->buffer + tiles * P->p.chunks;
  igemm_skip(ring, tiles * P->p.m.k_blocks, &at->ring.stage, &at->ring.phase);
  at->phase ^= to / 2 & 1;
  at->buffer = to & 1;
}

/* Like planes_consume. */
HK_DEV void halo_consume(const hk_cu_halo *P, int type, planes_tile t, halo_layout r) {
  const int wg = (int)threadIdx.x / 128 - 1, ping_pong = t.wgs < t.nc, first = ping_pong ? 0 : wg * 64 * t.mi,
            staggered = t.nc == 2 && !ping_pong;
  const int blocks = P->p.m.k_blocks, total = P->p.m.tiles_m * P->p.m.tiles_n;
  int late = ping_pong ? blocks - 1 : staggered && wg == 0 ? (blocks < t.stages - 1 ? blocks - 1 : t.stages - 2) : -1;
  const int signal = ping_pong ? 5 - wg : 7;
  halo_cursor at = {{0, 0, -1}, 0, 0, -1};
  float acc[2][128];
  pdl_wait();
  if (staggered && wg == 1) named_sync(7, 128 * 2);
  if (ping_pong) halo_skip(P, t, wg, &at);
  for (int index = blockIdx.x + (ping_pong ? wg * gridDim.x : 0); index < total;
       index += (ping_pong ? t.nc : 1) * gridDim.x) {
    const planes_place place = planes_locate(&P->p, t, index);
    planes_pair affine[2];
#pragma unroll
    for (int i = 0; i < t.mi; ++i) affine[i] = planes_load_affine(&P->p.m, first, place.at, i);
    if (ping_pong && (wg || index != (int)blockIdx.x)) named_sync(4 + wg, 128 * 2);
    halo_multiply(P, type, t, r, first, &at, late, signal, acc);
    if (!ping_pong) late = -1;
    halo_finish(P, type, t, first, place, r.staging + (wg * 4 + threadIdx.x / 32 % 4) * 8 * HK_HALO_LINE(t.bn), affine,
                acc);
    if (ping_pong) halo_skip(P, t, t.nc - 1, &at);
  }
  /* A block without tiles still has to release its staggered consumer. */
  if (staggered && late >= 0) named_arrive(7, 128 * 2);
}

HK_DEV void halo_body(const hk_cu_halo *P, int type, planes_tile t) {
  extern __shared__ __align__(1024) hk_cu_u8 raw[];
  const halo_layout r = halo_layout_of(P, t, smem_u32(raw));
  const int warp = threadIdx.x / 32;
  pdl_trigger();
  if (threadIdx.x == 0) {
    prefetch_map(&P->p.m.xmap);
    for (int i = 0; i < t.stages; ++i) {
      bar_init(r.full + i * 8, 1);
      bar_init(r.empty + i * 8, 4 * t.wgs);
    }
    for (int i = 0; i < HK_CU_HALO_WARPS * HK_CU_HALO_SLOTS; ++i) bar_init(r.moved + i * 8, 1);
    for (int i = 0; i < 2; ++i) {
      bar_init(r.ready + i * 8, HK_CU_HALO_WARPS);
      bar_init(r.used + i * 8, 4 * t.wgs);
    }
    bar_init_fence();
  }
  for (int at = threadIdx.x * 16; at < 2 * HK_HALO_BLOCK(P->hold); at += 128 * (t.nc + 1) * 16)
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(r.blocks + at), "r"(0) : "memory");
  fence_async();
  __syncthreads();
  if (threadIdx.x < 128) {
    regs_shrink(72);
    if (threadIdx.x == 0) halo_produce(P, t, r);
    else if (warp) halo_fill(P, t, r, warp - 1);
  } else {
    regs_grow(216);
    halo_consume(P, type, t, r);
  }
}
#endif
