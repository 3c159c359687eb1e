/* Filter gradients on wgmma, warp-specialised and persistent: sums[k][tap, c] = sum over pixels of dy[pixel][k] *
 * x[pixel at tap][c].
 *
 * A block is one producer warpgroup and wm * wn consumer warpgroups. The producer keeps a ring of `stages` stages full.
 * A stage is one block of px pixels in boxes of 64 channels, rows of 128 bytes with the 128-byte swizzle: mi*wm boxes
 * of dy and wn*bn/64 boxes of x, one per 64 columns, at the offset of their tap (im2col mode, or tiled for plain
 * products). Both operands have the reduction as their strided axis; wgmma reads them transposed. Pixels past the last
 * are filled with zeros in both. Boxes past the last row or column are not loaded, and what they leave is not stored.
 *
 * A unit of work is a slice of the pixels, a joined group and a tile; units that run at the same time share pixels.
 * Clusters: cm = 2 shares the boxes of x between two tiles of rows, cn = 2 those of dy between two tiles of columns:
 * each block loads every second one for both.
 *
 * A strip kernel (stride 1 along the last dimension, all bn / 64 taps of it in a consumer's columns) reads each pixel
 * of x once for these taps: a stage holds pieces of lines of dy, and under each the pixels of x of all its taps. A tap
 * is as many rows further as its distance: the columns of a product overlap in memory. Pieces that reach past the end
 * of a line are zeros in dy.
 *
 * Shared memory: [stages][boxes of dy | boxes of x][mbarriers: full, empty]; all boxes 1024-byte aligned. */
#ifndef HK_CUDA_GRADIENT_OUTER_CUH
#define HK_CUDA_GRADIENT_OUTER_CUH
#include "cuda/gradient/store.cuh"
#include "cuda/igemm/wgmma.cuh"

#define WGMMA_OUTER(n, regs, ia, ib, ip)                                     \
  WGMMA(outer_bf16, "k16.f32.bf16.bf16", ", 1, 1", n, regs, ia, ib, ip)      \
  WGMMA(outer_f16, "k16.f32.f16.f16", ", 1, 1", n, regs, ia, ib, ip)
WGMMA_OUTER(64, 32, 32, 33, 34)
WGMMA_OUTER(128, 64, 64, 65, 66)
WGMMA_OUTER(192, 96, 96, 97, 98)
WGMMA_OUTER(256, 128, 128, 129, 130)
#define OUTER_PICK(n)                                          \
  case n:                                                      \
    if (type == HK_CU_BF16) wgmma_outer_bf16_##n(d, a, b, keep); \
    else wgmma_outer_f16_##n(d, a, b, keep);                   \
    break;
HK_DEV void outer_step(int type, int bn, float *d, hk_cu_u64 a, hk_cu_u64 b, int keep) {
  switch (bn) { OUTER_PICK(64) OUTER_PICK(128) OUTER_PICK(192) OUTER_PICK(256) default: break; }
}
/* Descriptor of boxes `box` bytes apart; in a box, rows of one pixel, 8 of them per 1024 bytes. */
HK_DEV hk_cu_u64 outer_matrix(hk_cu_u32 addr, int box) { /* the swizzle depends on the address: any row may be first */
  return (hk_cu_u64)(addr >> 4 & 0x3fff) | (hk_cu_u64)(box >> 4) << 16 | (hk_cu_u64)64 << 32 | (hk_cu_u64)1 << 62;
}

typedef struct outer_tile {
  int mi, wm, wn, bn, px, stages, cm, cn, strip;
} outer_tile;
HK_DEV int outer_boxes_f(outer_tile t) { return t.mi * t.wm; }
HK_DEV int outer_boxes_x(outer_tile t) { return t.wn * t.bn / 64; }
HK_DEV int outer_stage_bytes(const hk_cu_outer *P, outer_tile t) {
  return t.strip ? P->stage_bytes : (outer_boxes_f(t) + outer_boxes_x(t)) * HK_OUTER_BOX(t.px);
}
HK_DEV int outer_stages(const hk_cu_outer *P, outer_tile t) { return t.strip ? P->stages : t.stages; }

/* A unit of work: its slice, joined group, first row and first block of 64 columns. */
typedef struct outer_unit {
  int from, to, slice, joined, row, block;
} outer_unit;

HK_DEV outer_unit outer_locate(const hk_cu_outer *P, outer_tile t, int index, int rank) {
  outer_unit u;
  const int line = div_by(index, P->by_m), plane = div_by(line, P->by_n);
  const int m = index - line * P->tiles_m, n = line - plane * P->tiles_n;
  u.slice = div_by(plane, P->by_groups);
  u.joined = plane - u.slice * P->groups;
  u.row = (m * t.cm + (t.cm > 1 ? rank : 0)) * outer_boxes_f(t) * 64;
  u.block = (n * t.cn + (t.cn > 1 ? rank : 0)) * outer_boxes_x(t);
  u.from = (int)((hk_cu_i64)P->k_blocks * u.slice / P->slices);
  u.to = (int)((hk_cu_i64)P->k_blocks * (u.slice + 1) / P->slices);
  return u;
}
HK_DEV int outer_units(const hk_cu_outer *P) { return P->tiles_m * P->tiles_n * P->groups * P->slices; }

HK_DEV void outer_copy(const hk_cu_tmap *map, int load, hk_cu_u32 dst, hk_cu_u32 bar, int c, const int *at, int n,
                       int m, const int *tap, hk_cu_u16 mask) {
  switch (load) {
    case HK_CU_LOAD_TILED: copy_tiled(dst, map, bar, c, m, mask); break;
    case HK_CU_LOAD_1D: copy_im2col_1d(dst, map, bar, c, at, n, tap, mask); break;
    case HK_CU_LOAD_2D: copy_im2col_2d(dst, map, bar, c, at, n, tap, mask); break;
    default: copy_im2col_3d(dst, map, bar, c, at, n, tap, mask); break;
  }
}

HK_DEV int outer_fewer(int a, int b) { return a < b ? a : b; }

HK_DEV void outer_copy_line(const hk_cu_tmap *map, hk_cu_u32 dst, hk_cu_u32 bar, int c, const int *at, int n) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
      "[%2];" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c), "r"(at[2]), "r"(at[1]), "r"(at[0]), "r"(n)
      : "memory");
}

/* What of a unit is loaded: boxes of dy and of x (of a strip kernel: runs of taps), and the first of each; and what one
 * lane loads of every block: a piece of a line (0 but in a strip kernel) and a box, those of dy first. */
typedef struct outer_loads {
  int f_boxes, x_boxes, k0, rank;
  int lane, line, box, channel, tap[3]; /* channel and tap of a box of x */
} outer_loads;

HK_DEV outer_loads outer_loads_of(const hk_cu_outer *P, outer_tile t, const outer_unit *u, int rank, int lane) {
  const int last = P->columns / 64, taps = t.strip ? t.bn / 64 : 1;
  outer_loads l;
  l.f_boxes = u->row < P->rows ? outer_fewer(outer_boxes_f(t), (P->rows - u->row + 63) / 64) : 0;
  l.x_boxes = u->block < last ? outer_fewer(outer_boxes_x(t), last - u->block) / taps : 0;
  l.k0 = u->joined * P->f_step + u->row, l.rank = rank, l.lane = lane;
  const int boxes = outer_boxes_f(t) + outer_boxes_x(t) / taps;
  l.line = t.strip ? lane / boxes : 0;
  l.box = lane - l.line * boxes;
  const outer_columns to = outer_columns_of(P, u->block + (l.box - outer_boxes_f(t)) * taps);
  l.channel = u->joined * P->x_step + to.channel;
#pragma unroll
  for (int d = 0; d < 3; ++d) l.tap[d] = to.tap[d] * P->dil[d];
  return l;
}

/* Loads block kb of pixels, a box per lane. */
HK_DEV void outer_load(const hk_cu_outer *P, outer_tile t, const outer_loads *l, int kb, hk_cu_u32 base,
                       hk_cu_u32 bar) {
  const int box = HK_OUTER_BOX(t.px), none[3] = {0, 0, 0}, m = kb * t.px, j = l->box - outer_boxes_f(t);
  const hk_cu_u16 all = (hk_cu_u16)((1 << t.cm * t.cn) - 1);
  int n = m, at[3], from[3];
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    const int up = div_by(n, P->by_out[d]);
    at[d] = n - up * (int)P->by_out[d].d;
    from[d] = at[d] * P->stride[d] - P->lo[d];
    n = up;
  }
  if (!l->lane) bar_expect(bar, (l->f_boxes + l->x_boxes) * box);
  __syncwarp();
  if (j < 0 && l->box < l->f_boxes && (t.cn == 1 || l->box % t.cn == l->rank))
    outer_copy(&P->fmap, P->f_load, base + l->box * box, bar, l->k0 + l->box * 64, at, n, m, none, t.cn > 1 ? all : 0);
  if (j >= 0 && j < l->x_boxes && (t.cm == 1 || j % t.cm == l->rank))
    outer_copy(&P->xmap, P->x_load, base + l->box * box, bar, l->channel, from, n, m, l->tap, t.cm > 1 ? all : 0);
}

/* The same for a strip kernel, a box of a piece per lane. */
HK_DEV void outer_load_strip(const hk_cu_outer *P, outer_tile t, const outer_loads *l, int kb, hk_cu_u32 base,
                             hk_cu_u32 bar) {
  const int box = HK_OUTER_BOX(t.px), lines = P->lines, i = l->line, j = l->box - outer_boxes_f(t);
  const int index = kb * lines + i, line = div_by(index, P->by_pieces), piece = index - line * P->pieces;
  const int up = div_by(line, P->by_out[1]), n = div_by(up, P->by_out[0]);
  const int at[3] = {up - n * (int)P->by_out[0].d, line - up * (int)P->by_out[1].d, piece * P->wide};
  const int from[3] = {at[0] * P->stride[0] + l->tap[0] - P->lo[0], at[1] * P->stride[1] + l->tap[1] - P->lo[1],
                       at[2] - P->lo[2]};
  if (!l->lane) bar_expect(bar, l->f_boxes * box + l->x_boxes * lines * P->x_wide * 128);
  __syncwarp();
  if (i >= lines) return;
  if (j < 0 && l->box < l->f_boxes)
    outer_copy_line(&P->fmap, base + l->box * box + i * P->wide * 128, bar, l->k0 + l->box * 64, at, n);
  if (j >= 0 && j < l->x_boxes)
    outer_copy_line(&P->xmap, base + outer_boxes_f(t) * box + (j * lines + i) * P->x_line, bar, l->channel, from, n);
}

/* One warp fills the ring for all units of its block. */
HK_DEV void outer_produce(const hk_cu_outer *P, outer_tile t, hk_cu_u32 smem, hk_cu_u32 full, hk_cu_u32 empty, int rank,
                          int clusters, int cluster) {
  const int total = outer_units(P);
  int stage = 0, phase = 0;
  pdl_wait();
#pragma unroll 1
  for (int index = cluster; index < total; index += clusters) {
    const outer_unit u = outer_locate(P, t, index, rank);
    const outer_loads l = outer_loads_of(P, t, &u, rank, threadIdx.x);
#pragma unroll 1
    for (int kb = u.from; kb < u.to; ++kb) {
      bar_wait(empty + stage * 8, phase ^ 1);
      const hk_cu_u32 base = smem + stage * outer_stage_bytes(P, t);
      if (t.strip) outer_load_strip(P, t, &l, kb, base, full + stage * 8);
      else outer_load(P, t, &l, kb, base, full + stage * 8);
      if (++stage == outer_stages(P, t)) stage = 0, phase ^= 1;
    }
  }
}

/* Releases a stage to every block of the cluster that writes into it. */
HK_DEV void outer_release(outer_tile t, hk_cu_u32 bar, int lane) {
  if (t.cm * t.cn == 1) {
    if (lane == 0) bar_arrive(bar);
  } else if (lane < t.cm * t.cn) {
    bar_arrive_remote(bar, lane);
  }
}

/* A consumer's position in the ring. */
typedef struct outer_cursor {
  int stage, phase;
} outer_cursor;

/* Multiplies the blocks of a unit, one wgmma group in flight while the next is issued. f0, x0: the consumer's boxes in
 * the first stage. */
HK_DEV void outer_multiply(const hk_cu_outer *P, int type, outer_tile t, int blocks, hk_cu_u32 f0, hk_cu_u32 x0,
                           hk_cu_u32 full, hk_cu_u32 empty, outer_cursor *at, int lane, float (*acc)[128]) {
  const int box = HK_OUTER_BOX(t.px), apart = t.strip ? P->dil[2] * 128 : box;
  int last = 0, step[4];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    step[k] = t.strip ? (k * 16 / P->wide * P->x_line + k * 16 % P->wide * 128) >> 4 : k * 128;
#pragma unroll
  for (int i = 0; i < t.mi; ++i)
#pragma unroll
    for (int j = 0; j < t.bn / 2; ++j) asm volatile("" : "+f"(acc[i][j])::"memory");
#pragma unroll 1
  for (int kb = 0; kb < blocks; ++kb) {
    bar_wait(full + at->stage * 8, at->phase);
    wgmma_fence();
    const hk_cu_u32 in = at->stage * outer_stage_bytes(P, t);
    const hk_cu_u64 a = outer_matrix(f0 + in, box), b = outer_matrix(x0 + in, apart);
#pragma unroll
    for (int k = 0; k < t.px / 16; ++k)
#pragma unroll
      for (int i = 0; i < t.mi; ++i)
        outer_step(type, t.bn, acc[i], a + i * (box >> 4) + k * 128, b + step[k], kb | k);
    wgmma_commit();
    if (kb) {
      wgmma_wait(1);
      outer_release(t, empty + last * 8, lane);
    }
    last = at->stage;
    if (++at->stage == outer_stages(P, t)) at->stage = 0, at->phase ^= 1;
  }
  wgmma_wait(0);
#pragma unroll
  for (int i = 0; i < t.mi; ++i)
#pragma unroll
    for (int j = 0; j < t.bn / 2; ++j) asm volatile("" : "+f"(acc[i][j])::"memory");
  outer_release(t, empty + last * 8, lane);
}

/* Writes the sums of 64 rows; row and column are the lane's first. */
HK_DEV void outer_keep(const hk_cu_outer *P, outer_tile t, outer_unit u, int row, int column, const float *acc) {
  hk_cu_i64 at = ((hk_cu_i64)u.slice * P->groups + u.joined) * P->rows + row;
  float *to = P->sums + at * P->columns + column;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float *line = to + (hk_cu_i64)(h * 8) * P->columns;
#pragma unroll
    for (int j = 0; j < t.bn / 8; ++j)
      if (row + h * 8 < P->rows && column + j * 8 < P->columns)
        *(float2 *)(line + j * 8) = make_float2(acc[j * 4 + h * 2], acc[j * 4 + h * 2 + 1]);
  }
}

/* Stores 8 sums of one row: four pairs of adjacent columns, 8 apart. Returns bits of those that are NaN and may be
 * none, which are left out. */
HK_DEV hk_cu_u32 outer_store_row(const hk_cu_outer *P, const outer_line *at, const int *tap, int channel,
                                 const float *v) {
  const hk_cu_i64 to = outer_offset(&P->g.y, at, tap), from = P->e.residual ? outer_offset(&P->g.c, at, tap) : 0;
  hk_cu_u32 wrong = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int c = channel - at->skip + j * 8;
    float w[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      w[e] = v[j * 4 + e];
      if (!outer_has(P, c + e)) continue;
      if (P->again && w[e] != w[e]) wrong |= 1u << (j * 2 + e);
      else w[e] = outer_residual(P, from, c + e, outer_affine(P, at, w[e]));
    }
    if (P->pairs && outer_has(P, c) && !(wrong >> j * 2 & 3)) {
      char *y = (char *)P->e.y;
      if (P->g.y_type == HK_CU_F32) *(float2 *)(y + (to + c) * 4) = make_float2(w[0], w[1]);
      else *(hk_cu_u32 *)(y + (to + c) * 2) = outer_pack(P->g.y_type, w[0], w[1]);
    } else {
      if (outer_has(P, c) && !(wrong >> j * 2 & 1)) outer_store(P, to, c, w[0]);
      if (outer_has(P, c + 1) && !(wrong >> j * 2 & 2)) outer_store(P, to, c + 1, w[1]);
    }
  }
  return wrong;
}

/* Whether 8 sums of one row, of 32 whole channels from `first` on, are the results as they are. */
HK_DEV int outer_bare(const hk_cu_outer *P, const outer_line *at, int first, const float *v) {
  const int done = P->e.scale || P->e.bias || P->e.residual || !P->quads;
  float sum = 0.0f;
  if (done || !at->valid || first < 0 || first + 32 > P->channels) return 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) sum += v[j * 4] + v[j * 4 + 1];
  return !P->again || sum == sum;
}

/* Stores them: of two runs of 8 channels the even lane of a pair takes four channels of the first, the odd one of the
 * second, so that the four lanes of a row store 16 adjacent channels. to: of the first channel. */
HK_DEV void outer_store_bare(const hk_cu_outer *P, hk_cu_i64 to, int lane, const float *v) {
  const int odd = lane & 1, from = odd * 8 + (lane & 2) * 2;
#pragma unroll
  for (int j = 0; j < 4; j += 2) {
    const float *a = v + j * 4, *b = a + 4;
    char *y = (char *)P->e.y;
    const hk_cu_i64 i = to + j * 8 + from;
    if (P->g.y_type == HK_CU_F32) {
      const float p = __shfl_xor_sync(0xffffffffu, odd ? a[0] : b[0], 1);
      const float q = __shfl_xor_sync(0xffffffffu, odd ? a[1] : b[1], 1);
      *(float4 *)(y + i * 4) = odd ? make_float4(p, q, b[0], b[1]) : make_float4(a[0], a[1], p, q);
    } else {
      const hk_cu_u32 s = outer_pack(P->g.y_type, a[0], a[1]), t = outer_pack(P->g.y_type, b[0], b[1]);
      const hk_cu_u32 u = __shfl_xor_sync(0xffffffffu, odd ? s : t, 1);
      *(uint2 *)(y + i * 2) = odd ? make_uint2(u, t) : make_uint2(s, u);
    }
  }
}

/* Computes one of those and stores it. */
HK_DEV void outer_store_again(const hk_cu_outer *P, const outer_line *at, int column) {
  const outer_columns of = outer_columns_of(P, column / 64);
  const int c = of.channel + column % 64 - at->skip;
  const float v = outer_affine(P, at, outer_plain(P, at, of.tap, c));
  outer_store(P, outer_offset(&P->g.y, at, of.tap), c,
              outer_residual(P, P->e.residual ? outer_offset(&P->g.c, at, of.tap) : 0, c, v));
}

/* Stores the sums of 64 rows in y, 32 columns at a time: the sums move down in their registers, so that the code is
 * there once. */
HK_DEV void outer_finish(const hk_cu_outer *P, outer_tile t, outer_unit u, int row, int column, float *acc) {
  const outer_line at[2] = {outer_line_of(P, u.joined, row), outer_line_of(P, u.joined, row + 8)};
  hk_cu_u64 wrong[2] = {0, 0};
#pragma unroll 1
  for (int j = 0; j < t.bn; j += 32) {
    const outer_columns of = outer_columns_of(P, (column + j) / 64);
    const int channel = of.channel + (column + j) % 64;
    float v[16];
    /* where shuffles read accumulators, ptxas serialises the products of the kernel */
#pragma unroll
    for (int i = 0; i < 16; ++i) asm volatile("mov.b32 %0, %1;" : "=f"(v[i]) : "f"(acc[i]));
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int inside = column + j < P->columns, first = channel / 8 * 8 - at[h].skip;
      hk_cu_u32 bits = 0;
      if (__all_sync(0xffffffffu, inside && outer_bare(P, &at[h], first, v + h * 2)))
        outer_store_bare(P, outer_offset(&P->g.y, &at[h], of.tap) + first, threadIdx.x % 32, v + h * 2);
      else if (at[h].valid && inside) bits = outer_store_row(P, &at[h], of.tap, channel, v + h * 2);
      wrong[h] = wrong[h] >> 8 | (hk_cu_u64)bits << 56;
    }
#pragma unroll
    for (int i = 0; i + 16 < t.bn / 2; ++i) acc[i] = acc[i + 16];
  }
#pragma unroll
  for (int h = 0; h < 2; ++h)
    for (int i = 64 - t.bn / 4; wrong[h] && i < 64; ++i)
      if (wrong[h] >> i & 1)
        outer_store_again(P, &at[h], column + (i - (64 - t.bn / 4)) / 2 * 8 + i % 2);
}

HK_DEV void outer_consume(const hk_cu_outer *P, int type, outer_tile t, hk_cu_u32 smem, hk_cu_u32 full, hk_cu_u32 empty,
                          int rank, int clusters, int cluster) {
  const int wg = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const int along_m = wg / t.wn, along_n = wg - along_m * t.wn, total = outer_units(P), box = HK_OUTER_BOX(t.px);
  const int own = t.strip ? P->lines * P->x_line : t.bn / 64 * box; /* bytes of x of a consumer */
  const hk_cu_u32 f0 = smem + along_m * t.mi * box, x0 = smem + outer_boxes_f(t) * box + along_n * own;
  outer_cursor at = {0, 0};
  float acc[2][128];
#pragma unroll 1
  for (int index = cluster; index < total; index += clusters) {
    const outer_unit u = outer_locate(P, t, index, rank);
    outer_multiply(P, type, t, u.to - u.from, f0, x0, full, empty, &at, lane, acc);
    const int row = u.row + along_m * t.mi * 64 + warp * 16 + lane / 4;
    const int column = u.block * 64 + along_n * t.bn + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < t.mi; ++i)
      if (P->sums) outer_keep(P, t, u, row + i * 64, column, acc[i]);
      else outer_finish(P, t, u, row + i * 64, column, acc[i]);
  }
}

HK_DEV void outer_body(const hk_cu_outer *P, int type, outer_tile t) {
  extern __shared__ __align__(1024) hk_cu_u8 raw[];
  const hk_cu_u32 smem = smem_u32(raw), full = smem + outer_stages(P, t) * outer_stage_bytes(P, t),
                  empty = full + 8 * outer_stages(P, t);
  const int size = t.cm * t.cn, rank = size > 1 ? cluster_rank() : 0, consumers = t.wm * t.wn;
  const int cluster = blockIdx.x / size, clusters = gridDim.x / size;
  pdl_trigger();
  if (threadIdx.x == 0) {
    prefetch_map(&P->xmap);
    prefetch_map(&P->fmap);
    for (int i = 0; i < outer_stages(P, t); ++i) {
      bar_init(full + i * 8, 1);
      bar_init(empty + i * 8, 4 * consumers * size);
    }
    bar_init_fence();
  }
  if (size > 1) cluster_sync();
  else __syncthreads();
  if (threadIdx.x < 128) {
    if (consumers == 3) regs_shrink(32);
    else if (consumers == 2) regs_shrink(40);
    if (threadIdx.x < 32) outer_produce(P, t, smem, full, empty, rank, clusters, cluster);
  } else {
    if (consumers == 3) regs_grow(160);
    else if (consumers == 2) regs_grow(232);
    /* what earlier kernels wrote is read, and what they read is overwritten, by the epilogue */
    pdl_wait();
    outer_consume(P, type, t, smem, full, empty, rank, clusters, cluster);
  }
  /* No block may exit while another may still access its shared memory. */
  if (size > 1) cluster_sync();
}
#endif
