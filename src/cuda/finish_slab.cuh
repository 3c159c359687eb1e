/* From accumulators to y by the copy engine, for a y of contiguous channels in eights whose pixels lie evenly, 16-byte aligned,
 * in f32 or the operands' own type. A warp finishes its 16 rows of each 64-row piece alone, a slab of columns at a time: the
 * finished values go into one of its two slots of shared memory, swizzled as the engine reads them, and leave as one
 * copy while the next slab is made. Rows and columns outside y are clipped by the engine. The residual crosses the same
 * slot on its way in; up to four steps of it are in registers, asked for while the tile is still multiplied. Included by finish_wide.cuh.
 *
 * A slab is as wide as 128, 64, 32 or 16 bytes, the widest that divides the tile; a slot holds 16 rows, or 8 where the
 * ring leaves less room (then a slab takes two steps). */

/* Bytes of a slab's row. */
#define SLAB_ROW(bn, bytes) ((bn) * (bytes) % 128 == 0 ? 128 : (bn) * (bytes) % 64 == 0 ? 64 : (bn) * (bytes) % 32 == 0 ? 32 : 16)

/* Byte offset in a slot of 16-byte piece `piece` of a row: the engine's swizzle for rows of that length. */
HK_DEV int slab_at(int row_bytes, int row, int piece) {
  const int at = row * row_bytes + piece * 16;
  return at ^ (at >> 7 & (row_bytes / 16 - 1)) << 4;
}

/* Fragments of a slab: v[0..3] of column block j are v[4j..4j+3]. A step covers rows [half*8, +rows) of the warp's 16. 16-bit values
 * travel as matrices q = j * halves + half, four at a time. */
HK_DEV void slab_put(int type, int row_bytes, int rows, int half, hk_cu_u32 slot, const float *v) {
  const int lane = threadIdx.x % 32, halves = rows / 8;
  if (type == HK_CU_F32) {
#pragma unroll
    for (int j = 0; j < row_bytes / 32; ++j)
#pragma unroll
      for (int h = 0; h < halves; ++h) {
        const float *p = v + j * 4 + (half + h) * 2;
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(slot + slab_at(row_bytes, h * 8 + lane / 4, 2 * j + lane % 4 / 2) + lane % 2 * 8),
                     "f"(p[0]), "f"(p[1]) : "memory");
      }
    return;
  }
  const int count = row_bytes / 16 * halves, step = count < 4 ? count : 4;
#pragma unroll
  for (int q = 0; q < count; q += step) {
    hk_cu_u32 w[4];
#pragma unroll
    for (int i = 0; i < step; ++i) {
      const int at = (q + i) / halves * 4 + (half + (q + i) % halves) * 2;
      w[i] = pack_pair(type, v[at], v[at + 1]);
    }
    const int mine = q + lane / 8 % step;
    matrix_put(step, slot + slab_at(row_bytes, mine % halves * 8 + lane % 8, mine / halves), w);
  }
}

/* Adds beta times the residual that lies in the slot; `late` clamps the sum (relu and clips after a residual). */
HK_DEV void slab_residual(const hk_cu_igemm *P, int type, int row_bytes, int rows, int half, hk_cu_u32 slot, float *v) {
  const int lane = threadIdx.x % 32, halves = rows / 8;
  const float beta = P->e.beta;
  if (type == HK_CU_F32) {
#pragma unroll
    for (int j = 0; j < row_bytes / 32; ++j)
#pragma unroll
      for (int h = 0; h < halves; ++h) {
        float *p = v + j * 4 + (half + h) * 2, a, b;
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b)
                     : "r"(slot + slab_at(row_bytes, h * 8 + lane / 4, 2 * j + lane % 4 / 2) + lane % 2 * 8) : "memory");
        p[0] = fmaf(beta, a, p[0]);
        p[1] = fmaf(beta, b, p[1]);
      }
  } else {
    const int count = row_bytes / 16 * halves, step = count < 4 ? count : 4;
#pragma unroll
    for (int q = 0; q < count; q += step) {
      hk_cu_u32 w[4];
      const int mine = q + lane / 8 % step;
      matrix_get(step, slot + slab_at(row_bytes, mine % halves * 8 + lane % 8, mine / halves), w);
#pragma unroll
      for (int i = 0; i < step; ++i) {
        float *p = v + (q + i) / halves * 4 + (half + (q + i) % halves) * 2;
        p[0] = fmaf(beta, type == HK_CU_BF16 ? __uint_as_float(w[i] << 16) : f32_from_f16((hk_cu_u16)w[i]), p[0]);
        p[1] = fmaf(beta, type == HK_CU_BF16 ? __uint_as_float(w[i] & 0xffff0000u) : f32_from_f16((hk_cu_u16)(w[i] >> 16)), p[1]);
      }
    }
  }
  if (P->late)
#pragma unroll
    for (int j = 0; j < row_bytes / (type == HK_CU_F32 ? 8 : 4); ++j)
      if (j % 4 / 2 >= half && j % 4 / 2 < half + halves) v[j] = min_nan(max_nan(v[j], P->late_lo), P->late_hi);
}

/* The residual's 16-byte pieces of a step, piece lane + 32 * it of the slot, for as many steps as registers allow. */
typedef struct slab_rest {
  uint4 v[4][4];
} slab_rest;
#define SLAB_AHEAD(t) ((t).nc == 3 ? 2 : (t).mi * (t).bn > 200 ? 3 : 4)
HK_DEV void slab_ahead(const hk_cu_igemm *P, igemm_place at, int bn, int type, int row_bytes, int rows, int m, int col, uint4 *to) {
  const int bytes = type == HK_CU_F32 ? 4 : 2, pieces = row_bytes / 16, lane = threadIdx.x % 32;
  const int left = ((int)P->g.kg - at.k0 < bn ? (int)P->g.kg - at.k0 : bn) - col;
#pragma unroll
  for (int it = 0; it * 32 < rows * pieces; ++it) {
    const int i = lane + it * 32, row = i / pieces, k = i % pieces * (16 / bytes);
    /* outside y: anything, what comes of it is clipped on the way out */
    const int inside = i < rows * pieces && m + row < P->gm && k < left;
    to[it] = load_once((const hk_cu_u8 *)P->e.c + (inside ? ((m + row) * P->g.c.at[2] + at.group * P->g.c.group + at.k0 + col + k) * bytes : 0));
  }
}
HK_DEV void slab_step_ahead(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int m0, int n, int type, uint4 *to) {
  const int bytes = type == HK_CU_F32 ? 4 : 2, row_bytes = SLAB_ROW(t.bn, bytes), width = row_bytes / bytes;
  const int rows = HK_IGEMM_SLOT_ROWS(HK_IGEMM_RING(t.mi, t.wgs, t.bn, t.parts, t.stages), t.nc), parts = 16 / rows, steps = t.bn / width * parts;
  if (n < t.mi * steps)
    slab_ahead(P, at, t.bn, type, row_bytes, rows, m0 + threadIdx.x / 32 % 4 * 16 + n / steps * 64 + n % parts * 8, n % steps / parts * width, to);
}
/* The first steps' residual, while the tile's last blocks are multiplied; type: the operands'. */
HK_DEV void slab_ask(const hk_cu_igemm *P, int type, igemm_tile t, igemm_place at, int m0, slab_rest *rest) {
#pragma unroll
  for (int n = 0; n < SLAB_AHEAD(t); ++n) {
    if (P->g.y_type == HK_CU_F32) slab_step_ahead(P, t, at, m0, n, HK_CU_F32, rest->v[n]);
    else slab_step_ahead(P, t, at, m0, n, type == HK_CU_F16 ? HK_CU_F16 : HK_CU_BF16, rest->v[n]);
  }
}
HK_DEV void slab_lay(int row_bytes, int rows, hk_cu_u32 slot, const uint4 *from) {
  const int pieces = row_bytes / 16, lane = threadIdx.x % 32;
#pragma unroll
  for (int it = 0; it * 32 < rows * pieces; ++it) {
    const int i = lane + it * 32;
    if (i < rows * pieces)
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(slot + slab_at(row_bytes, i / pieces, i % pieces)), "r"(from[it].x),
                   "r"(from[it].y), "r"(from[it].z), "r"(from[it].w) : "memory");
  }
}

/* desk: this consumer's; type (of y) is a compile-time constant. */
HK_DEV void slab_tile(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int m0, hk_cu_u32 desk, slab_rest *rest, float (*acc)[128], int type) {
  const int bytes = type == HK_CU_F32 ? 4 : 2, row_bytes = SLAB_ROW(t.bn, bytes), width = row_bytes / bytes, slabs = t.bn / width;
  const int rows = HK_IGEMM_SLOT_ROWS(HK_IGEMM_RING(t.mi, t.wgs, t.bn, t.parts, t.stages), t.nc), parts = 16 / rows, steps = slabs * parts;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, residual = P->e.residual;
  const int first = m0 + warp * 16;
  const hk_cu_u32 slots = desk + warp * (2 * rows * 128);
#pragma unroll
  for (int n = 0; n < t.mi * steps; ++n) {
    const int i = n / steps, col = n % steps / parts * width, half = n % parts, m = first + i * 64 + half * 8;
    const hk_cu_u32 slot = slots + (n & 1) * (rows * 128);
    float *v = acc[i] + col / 2;
    if (half == 0 && P->e.act && !P->late) wide_act(&P->e, width / 2, v); /* right before it leaves: the last slab's copy runs meanwhile */
    if (lane == 0 && n == 0) copy_out_wait(0); /* a tile's last slot may be its first */
    else if (lane == 0) copy_out_wait(1);
    __syncwarp();
    if (residual) {
      slab_lay(row_bytes, rows, slot, rest->v[n % SLAB_AHEAD(t)]);
      __syncwarp();
      slab_step_ahead(P, t, at, m0, n + SLAB_AHEAD(t), type, rest->v[n % SLAB_AHEAD(t)]);
      slab_residual(P, type, row_bytes, rows, half, slot, v);
      __syncwarp();
    }
#if defined(HK_USER2) || defined(HK_USER_STORE)
    user_last(P, at, width, rows, m, col, half, v);
#endif
#ifndef HK_USER_STORE
    slab_put(type, row_bytes, rows, half, slot, v);
    fence_async();
    __syncwarp();
    if (lane == 0) {
      if (at.k0 + col < P->g.kg) copy_out(&P->ymap, slot, at.k0 + col, at.group, m);
      copy_out_commit(); /* an empty group too: waiting counts them */
    }
#endif
  }
}
