/* Grouped and depthwise convolution of 16-bit tensors on the tensor cores (mma.sync), any rank, stride, dilation,
 * padding and channels per group; made for channels-last, other layouts are accessed element by element.
 *
 * A block copies a patch of pixels to shared memory in pieces of 16 bytes (8 channels: a slab):
 * patch[slab][slot][phase][index], so that 8 pixels of a slab are one 8x8 matrix of ldmatrix for any stride and
 * dilation. A warp computes 8 output channels: D[16 pixels][8 k] += A[16 pixels][8 c of tap s, 8 c of tap s+1] * B,
 * where B holds the 8x8 block of weights of a tap: dense for groups of 8, block-diagonal for smaller groups,
 * diagonal for depthwise. The zeros of B would turn an Inf of another group into NaN, so NaN results are recomputed
 * from x by the plain loop.
 *
 * Two loops. `walk`: 64 pixels of one output row; the fragments of tap u serve tap u+8 of the next 8 pixels, so they
 * slide through registers. `roll` (filters of RxR, stride 1): 16 columns of 8 output rows; the fragments of an input
 * row serve all R output rows that use it; the weights stay in registers. Sums pass through shared memory and are
 * stored by 16 bytes of adjacent slabs. */
#include "cuda/depthwise/common.cuh"

#define ROLL_ROWS 8

typedef struct mma_place {
  int n, p0, row0, cls, index0;      /* image, depth position, first row, class, first window index */
  int kb0, slab0;                    /* first run of output channels, first slab of the patch */
} mma_place;

HK_DEV void load_x4(hk_cu_u32 at, hk_cu_u32 *r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
HK_DEV void load_x2(hk_cu_u32 at, hk_cu_u32 *r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
}
HK_DEV void mma_k16(float *d, hk_cu_u32 a0, hk_cu_u32 a1, hk_cu_u32 a2, hk_cu_u32 a3, hk_cu_u32 b0, hk_cu_u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
HK_DEV void mma_k8(float *d, hk_cu_u32 a0, hk_cu_u32 a1, hk_cu_u32 b0) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b0));
}

/* First slab that a run of output channels reads. */
HK_DEV int mma_first_slab(const hk_cu_geom *g, int kb) {
  return g->cg == g->kg && g->cg <= 8 && 8 % g->cg == 0 ? kb : kb * 8 / (int)g->kg * (int)g->cg / 8;
}

/* Copies 8 channels one by one, where 16-byte loads are not legal or channels are `step` elements apart. */
HK_DEV void mma_copy_slow(hk_cu_u32 to, const hk_cu_u16 *from, int live, int step) {
  hk_cu_u32 w[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (i < live) w[i / 2] |= (hk_cu_u32)__ldg(from + (hk_cu_i64)i * step) << (i % 2 * 16);
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
               : "memory");
}

/* Copies one slab of a block's patch: pixels lane, lane + lanes.. */
HK_DEV void mma_patch_slab(const hk_cu_dw *P, mma_place at, hk_cu_u32 patch, int slab, int lane, int lanes) {
  const hk_cu_geom *g = &P->g;
  const int channel = (at.slab0 + slab) * 8, all = (int)(g->groups * g->cg) - channel;
  const int col_step = (int)g->stride[2] * P->classes, pixels = P->grouped.slots * P->phases * P->grouped.patch_length;
  const hk_cu_u16 *image = (const hk_cu_u16 *)P->x + at.n * g->x.outer + (hk_cu_i64)channel * P->grouped.channel_step;
  const int x1 = (int)g->x.at[1], x2 = (int)g->x.at[2], rows = (int)g->in[1], columns = all > 0 ? (int)g->in[2] : 0;
  const int col0 = (int)g->stride[2] * at.cls - (int)g->lo[2] + at.index0 * col_step;
  const int row0 = at.row0 * (int)g->stride[1] - (int)g->lo[1], depth0 = at.p0 * (int)g->stride[0] - (int)g->lo[0];
  const hk_cu_u32 to = patch + slab * P->grouped.plane_bytes;
  for (int px = lane; px < pixels; px += lanes) {
    int z = dw_div(P->grouped.div_patch, px), i1 = row0, i0 = depth0,
        col = col0 + (px - z * P->grouped.patch_length) * col_step;
    if (P->phases > 1) {
      const int zf = z;
      z = dw_div(P->grouped.div_phases, zf);
      col += (zf - z * P->phases) * (int)g->dil[2];
    }
    if (g->win[0] > 1) {
      const int d = z / P->grouped.depth_slots;
      z -= d * P->grouped.depth_slots;
      i0 += d * (int)g->dil[0];
    }
    i1 += z * P->grouped.slot_step;
    const int in =
        (unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)rows && (unsigned)col < (unsigned)columns;
    const hk_cu_u16 *from = image + (i0 * (int)g->x.at[0] + i1 * x1 + col * x2);
    if (P->grouped.x_vector) dw_copy16(to + px * 16, in ? from : image, in ? 16 : 0);
    else mma_copy_slow(to + px * 16, from, in ? all : 0, P->grouped.channel_step);
  }
}

/* Copies the patch of a block pixel by pixel. A thread keeps its slab, or takes every blockDim-th where there are more
 * slabs than threads; adjacent threads copy adjacent slabs of a pixel. */
HK_DEV void mma_patch(const hk_cu_dw *P, mma_place at, hk_cu_u32 patch) {
  const int slabs = P->grouped.in_slabs, lanes = slabs < blockDim.x ? blockDim.x / (unsigned)slabs : 1;
  const int lane = threadIdx.x / (unsigned)slabs;
  if (lane >= lanes) return;
  for (int slab = threadIdx.x - lane * slabs; slab < slabs; slab += blockDim.x)
    mma_patch_slab(P, at, patch, slab, lane, lanes);
}

/* Copies the packed fragments of the block's slabs, which are contiguous. */
HK_DEV void mma_table(const hk_cu_dw *P, mma_place at, hk_cu_u32 table) {
  const int pieces = P->taps * P->reach * (P->compact ? 1 : 8), count = P->grouped.slabs * pieces;
  const uint4 *from = (const uint4 *)P->packed + (hk_cu_i64)at.kb0 * pieces;
  for (int i = threadIdx.x; i < count; i += blockDim.x) dw_copy16(table + i * 16, from + i, 16);
}

/* Writes four sums of a lane (pixels px and px+8, two channels) to the staging buffer. */
HK_DEV void mma_stage(const hk_cu_dw *P, hk_cu_u32 at, const float *acc) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(acc[0]), "f"(acc[1]) : "memory");
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at + 8 * P->grouped.stage_pitch), "f"(acc[2]), "f"(acc[3])
               : "memory");
}

HK_DEV void mma_read(hk_cu_u32 from, float *v) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(from));
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7])
               : "r"(from + 16));
}

HK_DEV void mma_residual(const hk_cu_dw *P, mma_place at, int p1, int q, int k, int valid, float *cv) {
  const hk_cu_geom *g = &P->g;
  const int p[3] = {at.p0, p1, q};
  const hk_cu_i64 co = pixel_offset(&g->c, at.n, p);
  if (P->grouped.c_vector) {
    dw_unpack(TYPE, *(const uint4 *)((const hk_cu_u16 *)P->e.c + co + k), cv);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      cv[i] = i < valid ? load_f32(P->e.c, co + dw_channel(g, &g->c, k + i), g->y_type) : 0.0f;
  }
}

/* Recomputes and stores the pixels whose sums contain a NaN, channel by channel. */
HK_DEV void mma_store_recomputed(const hk_cu_dw *P, mma_place at, int row, int index, const int width, const int count,
                                 hk_cu_u32 stage, int rank) {
  const hk_cu_geom *g = &P->g;
  const int slab = rank % (unsigned)P->grouped.slabs, k0 = (at.kb0 + slab) * 8;
#pragma unroll 1
  for (int px = rank / (unsigned)P->grouped.slabs; px < count; px += 32) {
    const int p[3] = {at.p0, row + px / width, at.cls + P->classes * (index + px % width)};
    if (p[1] >= g->out[1] || p[2] >= g->out[2]) continue;
    float all[8];
    const hk_cu_u32 from = stage + px * P->grouped.stage_pitch + slab * 32;
    mma_read(from, all);
    const float sum = all[0] + all[1] + all[2] + all[3] + all[4] + all[5] + all[6] + all[7];
    if (sum == sum) continue;
#pragma unroll 1
    for (int k = k0; k < k0 + 8 && k < P->channels; ++k) {
      float v, cv = P->e.residual ? load_f32(P->e.c, pixel_offset(&g->c, at.n, p) + dw_channel(g, &g->c, k), g->y_type)
                                  : 0.0f;
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from + (k - k0) * 4));
      if (v != v) v = dw_plain(P, TYPE, at.n, p[0], p[1], p[2], k);
      dw_finish(&P->e, 1, 1, k, 1, &cv, &v);
      store_f32(P->e.y, pixel_offset(&g->y, at.n, p) + dw_channel(g, &g->y, k), g->y_type, v);
    }
  }
}

/* Finishes and stores `count` staged pixels, rows of `width`: a thread stores 8 channels of a pixel, adjacent
 * threads adjacent slabs. */
HK_DEV void mma_store(const hk_cu_dw *P, mma_place at, int row, int index, const int width, const int count,
                      hk_cu_u32 stage, int rank) {
  const hk_cu_geom *g = &P->g;
  const int slab = rank % (unsigned)P->grouped.slabs, k = (at.kb0 + slab) * 8,
            valid = P->channels - k < 8 ? P->channels - k : 8;
  if (valid <= 0) return;
  hk_cu_u16 *const y = (hk_cu_u16 *)P->e.y + at.n * g->y.outer + (at.p0 * (int)g->y.at[0] + k);
  const int y1 = (int)g->y.at[1], y2 = (int)g->y.at[2];
  int bad = 0;
#pragma unroll 1
  for (int px = rank / (unsigned)P->grouped.slabs; px < count; px += 32) {
    const int p1 = row + (unsigned)px / width, q = at.cls + P->classes * (index + (unsigned)px % width);
    if (p1 >= g->out[1] || q >= g->out[2]) continue;
    float v[8];
    const hk_cu_u32 from = stage + px * P->grouped.stage_pitch + slab * 32;
    mma_read(from, v);
    const float sum = v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7];
    if (P->grouped.leaks && sum != sum) {
      bad = 1;
      continue;
    }
    if (!P->plain) {
      float cv[8];
      if (P->e.residual) mma_residual(P, at, p1, q, k, valid, cv);
      dw_finish(&P->e, 8, valid, k, 1, cv, v);
    }
    if (P->grouped.y_vector) {
      *(uint4 *)(y + (p1 * y1 + q * y2)) = dw_pack(TYPE, v);
    } else {
      const int p[3] = {at.p0, p1, q};
      const hk_cu_i64 yo = pixel_offset(&g->y, at.n, p);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (i < valid) store_f32(P->e.y, yo + dw_channel(g, &g->y, k + i), g->y_type, v[i]);
    }
  }
  if (bad) mma_store_recomputed(P, at, row, index, width, count, stage, rank);
}

HK_DEV void mma_meet(const hk_cu_dw *P, int team) {
  asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(P->grouped.slabs * 32) : "memory");
}

/* Accumulates the taps of one phase of one slot for 64 pixels of one output row. x: shared address of the first
 * pixel. */
HK_DEV void mma_walk(hk_cu_u32 x, int us, const hk_cu_u32 *table, int pitch, hk_cu_u32 mask, float (*acc)[4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int rho = 0; rho < 8 && rho < us; rho += 2) {
    hk_cu_u32 a[8], b[8];
    const hk_cu_u32 from = x + (rho + lane) * 16;
    load_x4(from, a), load_x4(from + 512, a + 4);
    load_x4(from + 16, b), load_x4(from + 528, b + 4);
#pragma unroll 1
    for (int k0 = 0; rho + 8 * k0 < us; k0 += 8) {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const int tap = rho + 8 * (k0 + k);
        if (tap < us) {
          const hk_cu_u32 b0 = table[tap * pitch] & mask;
          if (tap + 1 < us) {
            const hk_cu_u32 b1 = table[(tap + 1) * pitch] & mask;
#pragma unroll
            for (int t = 0; t < 4; ++t)
              mma_k16(acc[t], a[(2 * t + k) % 8], a[(2 * t + k + 1) % 8], b[(2 * t + k) % 8], b[(2 * t + k + 1) % 8],
                      b0, b1);
          } else {
#pragma unroll
            for (int t = 0; t < 4; ++t) mma_k8(acc[t], a[(2 * t + k) % 8], a[(2 * t + k + 1) % 8], b0);
          }
          if (tap + 8 < us) {
            hk_cu_u32 next[2];
            load_x2(x + (tap + 64 + lane % 8 + (lane & 8 ? 1 : 0)) * 16, next);
            a[k % 8] = next[0];
            b[k % 8] = next[1];
          }
        }
      }
    }
  }
}

HK_DEV void mma_walk_body(const hk_cu_dw *P, mma_place at, hk_cu_u32 patch, hk_cu_u32 *table, hk_cu_u32 stages) {
  const hk_cu_geom *g = &P->g;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sl = warp % P->grouped.slabs,
            team = warp / P->grouped.slabs;
  const int kb = at.kb0 + sl, rows = (int)(g->win[0] * g->win[1]) * P->phases, words = P->compact ? 4 : 32;
  const int col_chunks = P->grouped.tile_length / 64, chunks = P->grouped.tile_rows * col_chunks;
  const int diagonal = lane % 4 == lane / 8;
  const hk_cu_u32 mask = !P->compact ? 0xffffffffu : !diagonal ? 0u : lane & 4 ? 0xffff0000u : 0xffffu;
  const hk_cu_u32 *mine = table + sl * rows * P->taps_u * P->reach * words + (P->compact ? lane / 8 : lane);
  const hk_cu_u32 planes = patch + (mma_first_slab(g, kb) - at.slab0) * P->grouped.plane_bytes;
  const hk_cu_u32 stage = stages + team * P->grouped.stage_bytes;
  for (int chunk = team; chunk < chunks; chunk += P->grouped.teams) {
    const int rl = chunk / (unsigned)col_chunks, i0 = (chunk - rl * col_chunks) * 64, p1 = at.row0 + rl;
    const int live = p1 < g->out[1] && at.index0 + i0 < P->class_length;
    float acc[4][4];
#pragma unroll
    for (int t = 0; t < 4; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[t][i] = 0.0f;
    if (live && kb * 8 < P->channels) {
      int f = 0, r = 0, d = 0;
#pragma unroll 1
      for (int row = 0; row < rows; ++row) {
        const int slot = d * P->grouped.depth_slots + rl * P->grouped.slot_rows + r * P->grouped.slot_taps;
        const int us = P->phases == 1 ? P->taps_u : ((int)g->win[2] - f + P->phases - 1) / P->phases;
#pragma unroll 1
        for (int j = 0; j < P->reach; ++j)
          mma_walk(planes + j * P->grouped.plane_bytes + ((slot * P->phases + f) * P->grouped.patch_length + i0) * 16,
                   us, mine + (row * P->taps_u * P->reach + j) * words, P->reach * words, mask, acc);
        if (++f == P->phases) {
          f = 0;
          if (++r == (int)g->win[1]) r = 0, ++d;
        }
      }
#pragma unroll
      for (int t = 0; t < 4; ++t)
        mma_stage(P, stage + (t * 16 + lane / 4) * P->grouped.stage_pitch + sl * 32 + lane % 4 * 8, acc[t]);
    }
    mma_meet(P, team);
    if (live) mma_store(P, at, p1, at.index0 + i0, 64, 64, stage, threadIdx.x - team * P->grouped.slabs * 32);
    mma_meet(P, team);
  }
}

/* size: R = S, a constant. Groups of at most 8 channels whose runs of 8 outputs read one slab. */
HK_DEV void mma_roll_body(const hk_cu_dw *P, mma_place at, hk_cu_u32 patch, hk_cu_u32 *table, hk_cu_u32 stages,
                          const int size) {
  const hk_cu_geom *g = &P->g;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sl = warp % P->grouped.slabs,
            team = warp / P->grouped.slabs;
  const int kb = at.kb0 + sl, words = P->compact ? 4 : 32;
  const int diagonal = lane % 4 == lane / 8;
  const hk_cu_u32 mask = !P->compact ? 0xffffffffu : !diagonal ? 0u : lane & 4 ? 0xffff0000u : 0xffffu;
  const hk_cu_u32 *mine = table + sl * size * size * words + (P->compact ? lane / 8 : lane);
  const hk_cu_u32 plane = patch + (mma_first_slab(g, kb) - at.slab0) * P->grouped.plane_bytes;
  const hk_cu_u32 stage = stages + team * P->grouped.stage_bytes;
  for (int chunk = team; chunk < P->grouped.tile_length / 16; chunk += P->grouped.teams) {
    const int i0 = chunk * 16, live = at.index0 + i0 < P->class_length;
    float acc[ROLL_ROWS][4];
#pragma unroll
    for (int p = 0; p < ROLL_ROWS; ++p)
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[p][i] = 0.0f;
    if (live && kb * 8 < P->channels) {
      /* Loaded again each time: kept across the stores they would spill. */
      hk_cu_u32 w[49];
#pragma unroll
      for (int i = 0; i < size * size; ++i) w[i] = mine[i * words] & mask;
#pragma unroll
      for (int z = 0; z < ROLL_ROWS + size - 1; ++z) {
        const hk_cu_u32 from = plane + (z * P->grouped.patch_length + i0 + lane % 16 + lane / 16) * 16;
#pragma unroll
        for (int s = 0; s < size; s += 2) {
          hk_cu_u32 a[4];
          if (s + 1 < size) load_x4(from + s * 16, a);
          else load_x2(from + s * 16, a);
#pragma unroll
          for (int r = 0; r < size; ++r) {
            if (z - r < 0 || z - r >= ROLL_ROWS) continue;
            if (s + 1 < size) mma_k16(acc[z - r], a[0], a[1], a[2], a[3], w[r * size + s], w[r * size + s + 1]);
            else mma_k8(acc[z - r], a[0], a[1], w[r * size + s]);
          }
        }
      }
    }
    const hk_cu_u32 own = stage + lane / 4 * P->grouped.stage_pitch + sl * 32 + lane % 4 * 8;
#pragma unroll
    for (int p = 0; p < ROLL_ROWS; ++p) mma_stage(P, own + p * 16 * P->grouped.stage_pitch, acc[p]);
    mma_meet(P, team);
    if (live)
      mma_store(P, at, at.row0, at.index0 + i0, 16, ROLL_ROWS * 16, stage, threadIdx.x - team * P->grouped.slabs * 32);
    mma_meet(P, team);
  }
}

HK_DEV void mma_body(const hk_cu_dw *P, char *raw, const int size) {
  const hk_cu_geom *g = &P->g;
  mma_place at;
  unsigned rest = blockIdx.x;
  at.kb0 = rest % (unsigned)P->grouped.slab_blocks * P->grouped.slabs;
  rest /= (unsigned)P->grouped.slab_blocks;
  at.index0 = rest % (unsigned)P->grouped.tiles * P->grouped.tile_length;
  rest /= (unsigned)P->grouped.tiles;
  const int rows = dw_div(P->div_classes, rest);
  at.cls = rest - rows * P->classes;
  rest = rows / (unsigned)P->grouped.row_tiles;
  at.row0 = (rows - rest * P->grouped.row_tiles) * P->grouped.tile_rows;
  at.n = dw_div(P->div_out0, rest);
  at.p0 = rest - at.n * (int)g->out[0];
  at.slab0 = mma_first_slab(g, at.kb0);
  const hk_cu_u32 patch = dw_shared(raw);
  hk_cu_u32 *table = (hk_cu_u32 *)(raw + P->grouped.table_at);
  mma_patch(P, at, patch);
  mma_table(P, at, patch + P->grouped.table_at);
  dw_copy_wait();
  __syncthreads();
  if (size) mma_roll_body(P, at, patch, table, patch + P->grouped.stage_at, size);
  else mma_walk_body(P, at, patch, table, patch + P->grouped.stage_at);
}

#define KERNEL(name, size, blocks)                                                                                     \
  extern "C" __global__ void __launch_bounds__(256, blocks) name(const __grid_constant__ hk_cu_dw P) {                 \
    extern __shared__ char4 raw[];                                                                                     \
    dw_begin();                                                                                                        \
    mma_body(&P, (char *)raw, size);                                                                                   \
  }
