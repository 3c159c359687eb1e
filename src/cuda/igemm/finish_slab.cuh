/* Epilogue by TMA, for a y whose channels are contiguous, 16-byte aligned and a multiple of 8, in f32 or the
 * operands' type. Pixels have a constant stride (slab 1), or any strides, without groups and residual (slab 2: TMA's
 * im2col mode). Each warp finishes its 16 rows of each 64-row piece independently, in steps of one slab of columns: it
 * writes the finished values to one of its slots in shared memory, swizzled as TMA reads them, and stores the slot
 * with one TMA copy while it computes the next step. TMA clips rows and columns outside y.
 *
 * The residual is loaded by TMA in boxes of the same shape, prefetched while the tile is multiplied: first the steps
 * that do not fit into the slots, which are then held in registers as fragments; then the first steps, which stay in
 * the slots until their results replace them. Steps beyond both (wide f32 tiles) are read while the tile is
 * finished. Included by finish_wide.cuh.
 *
 * A slab is 128, 64, 32 or 16 bytes wide, the widest that divides the tile. A step has 16 rows, or 8 where the ring
 * leaves less shared memory (a slab then takes two steps). */

/* The steps of a tile for a y of `type`; compile-time constants. */
typedef struct slab_form {
  int bytes, row_bytes, width;  /* bytes of a value and of a slab's row; columns of a slab */
  int rows, parts, steps;       /* rows per step, steps per slab, steps per 64-row piece */
  int total, size, slots;       /* steps per tile; bytes per step; slots per warp */
  int words, held;              /* 4-byte words per lane and step; steps held in registers */
} slab_form;
HK_DEV slab_form slab_form_of(igemm_tile t, int type) {
  slab_form s;
  s.bytes = type == HK_CU_F32 ? 4 : 2;
  const int row = t.bn * s.bytes;
  s.row_bytes = row % 128 == 0 ? 128 : row % 64 == 0 ? 64 : row % 32 == 0 ? 32 : 16;
  s.width = s.row_bytes / s.bytes;
  s.rows = HK_IGEMM_SLOT_ROWS(HK_IGEMM_RING(t.mi, t.wgs, t.bn, t.parts, t.stages), t.nc);
  s.parts = 16 / s.rows;
  s.steps = t.bn / s.width * s.parts;
  s.total = t.mi * s.steps;
  s.size = s.rows * s.row_bytes;
  s.slots = s.row_bytes < 32 ? 8 : 256 / s.row_bytes;
  s.words = s.size / 128;
  const int room = (t.nc == 3 || t.mi * t.bn > 208 ? 32 : 48) / s.words, more = s.total - s.slots;
  s.held = more < 0 ? 0 : more < room ? more : room;
  return s;
}
/* First pixel and first column of step n. */
HK_DEV int slab_row(slab_form s, int m0, int n) {
  return m0 + threadIdx.x / 32 % 4 * 16 + n / s.steps * 64 + n % s.parts * 8;
}
HK_DEV int slab_col(slab_form s, int n) { return n % s.steps / s.parts * s.width; }

/* Byte offset in a slot of 16-byte piece `piece` of a row: TMA's swizzle for rows of that length. */
HK_DEV int slab_at(int row_bytes, int row, int piece) {
  const int at = row * row_bytes + piece * 16;
  return at ^ (at >> 7 & (row_bytes / 16 - 1)) << 4;
}
/* Address in a slot of this lane's pair of f32 values of matrix q. Fragments move as matrices of 8 rows x 8 columns,
 * q = column block * halves + half; 16-bit ones four at a time. */
HK_DEV hk_cu_u32 slab_pair(slab_form s, hk_cu_u32 slot, int q) {
  const int lane = threadIdx.x % 32, halves = s.rows / 8;
  return slot + slab_at(s.row_bytes, q % halves * 8 + lane / 4, q / halves * 2 + lane % 4 / 2) + lane % 2 * 8;
}
HK_DEV hk_cu_u32 slab_matrix(slab_form s, hk_cu_u32 slot, int q, int step) {
  const int lane = threadIdx.x % 32, halves = s.rows / 8, mine = q + lane / 8 % step;
  return slot + slab_at(s.row_bytes, mine % halves * 8 + lane % 8, mine / halves);
}
/* Index of matrix q's values in a slab's accumulators; half: of the step. */
HK_DEV int slab_value(slab_form s, int half, int q) { return q / (s.rows / 8) * 4 + (half + q % (s.rows / 8)) * 2; }

HK_DEV void slab_put(int type, slab_form s, int half, hk_cu_u32 slot, const float *v) {
  const int count = s.width / 8 * (s.rows / 8), step = type == HK_CU_F32 ? 1 : count < 4 ? count : 4;
#pragma unroll
  for (int q = 0; q < count; q += step) {
    if (type == HK_CU_F32) {
      const float *p = v + slab_value(s, half, q);
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(slab_pair(s, slot, q)), "f"(p[0]), "f"(p[1]) : "memory");
      continue;
    }
    hk_cu_u32 w[4];
#pragma unroll
    for (int i = 0; i < step; ++i)
      w[i] = pack_pair(type, v[slab_value(s, half, q + i)], v[slab_value(s, half, q + i) + 1]);
    matrix_put(step, slab_matrix(s, slot, q, step), w);
  }
}
/* Loads the residual of a step as fragments from its slot: s.words words per lane. */
HK_DEV void slab_get(int type, slab_form s, hk_cu_u32 slot, hk_cu_u32 *w) {
  const int count = s.width / 8 * (s.rows / 8), step = type == HK_CU_F32 ? 1 : count < 4 ? count : 4;
#pragma unroll
  for (int q = 0; q < count; q += step) {
    if (type == HK_CU_F32)
      asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                   : "=r"(w[2 * q]), "=r"(w[2 * q + 1])
                   : "r"(slab_pair(s, slot, q))
                   : "memory");
    else matrix_get(step, slab_matrix(s, slot, q, step), w + q);
  }
}
/* Adds beta times the residual; `late` clamps the sum (relu and clips after a residual). */
HK_DEV void slab_add(const hk_cu_igemm *P, int type, slab_form s, int half, const hk_cu_u32 *w, float *v) {
  const int count = s.width / 8 * (s.rows / 8);
  const float beta = P->e.beta;
#pragma unroll
  for (int q = 0; q < count; ++q) {
    float *p = v + slab_value(s, half, q), a, b;
    if (type == HK_CU_F32) a = __uint_as_float(w[2 * q]), b = __uint_as_float(w[2 * q + 1]);
    else if (type == HK_CU_BF16) a = __uint_as_float(w[q] << 16), b = __uint_as_float(w[q] & 0xffff0000u);
    else a = f32_from_f16((hk_cu_u16)w[q]), b = f32_from_f16((hk_cu_u16)(w[q] >> 16));
    p[0] = fmaf(beta, a, p[0]);
    p[1] = fmaf(beta, b, p[1]);
  }
  if (P->late)
#pragma unroll
    for (int q = 0; q < 2 * count; ++q) {
      float *p = v + slab_value(s, half, q / 2) + q % 2;
      *p = min_nan(max_nan(*p, P->late_lo), P->late_hi);
    }
}

/* The residual of a warp: its slots, the mbarrier of its prefetches, and the steps held in registers. */
typedef struct slab_residuals {
  hk_cu_u32 slots, bar;
  int phase;
  hk_cu_u32 w[48];
} slab_residuals;
/* Prefetches `count` steps from step n on into the first slots; `read`: bits of all that lane 0 has read from them. */
HK_DEV void slab_prefetch(const hk_cu_igemm *P, slab_form s, igemm_place at, int m0, int n, int count, hk_cu_u32 read,
                          const slab_residuals *rest) {
  if (threadIdx.x % 32) return;
  copy_out_wait(0);
  /* No barrier orders earlier shared-memory reads before the TMA write, but a data dependency does. The operand adds
   * 0, since x_zero is 0, which the compiler does not know. */
  bar_expect(rest->bar, count * s.size + (int)(read & (hk_cu_u32)P->g.x_zero));
#pragma unroll
  for (int i = 0; i < count; ++i)
    copy_in(rest->slots + i * s.size, &launch_of(P)->cmap, rest->bar, at.k0 + slab_col(s, n + i), at.group,
            slab_row(s, m0, n + i));
}
HK_DEV void slab_wait(slab_residuals *rest) {
  bar_wait(rest->bar, rest->phase);
  rest->phase ^= 1;
}
/* The first and the second prefetch of a tile, some k blocks of the main loop apart; type: of y. */
HK_DEV void slab_prefetch_first(const hk_cu_igemm *P, int type, igemm_tile t, igemm_place at, int m0,
                                slab_residuals *rest) {
  const slab_form s = slab_form_of(t, type);
  if (s.held) slab_prefetch(P, s, at, m0, s.slots, s.held < s.slots ? s.held : s.slots, 0, rest);
  else slab_prefetch(P, s, at, m0, 0, s.total < s.slots ? s.total : s.slots, 0, rest);
}
HK_DEV void slab_prefetch_second(const hk_cu_igemm *P, int type, igemm_tile t, igemm_place at, int m0,
                                 slab_residuals *rest) {
  const slab_form s = slab_form_of(t, type);
#pragma unroll
  for (int n = 0; n < s.held; n += s.slots) {
    const int here = s.held - n < s.slots ? s.held - n : s.slots, left = s.held - n - here;
    hk_cu_u32 read = 0;
    slab_wait(rest);
#pragma unroll
    for (int i = 0; i < here; ++i) slab_get(type, s, rest->slots + i * s.size, rest->w + (n + i) * s.words);
#pragma unroll
    for (int i = 0; i < here * s.words; ++i) read |= rest->w[n * s.words + i];
    __syncwarp();
    slab_prefetch(P, s, at, m0, left ? s.slots + n + here : 0, left && left < s.slots ? left : s.slots, read, rest);
  }
}

/* Reads step n of the residual as 16-byte pieces of rows, piece lane + 32 * it, for tiles with more steps than fit
 * into slots and registers. */
HK_DEV void slab_read(const hk_cu_igemm *P, igemm_tile t, slab_form s, igemm_place at, int m0, int n, hk_cu_u32 *to) {
  const int pieces = s.row_bytes / 16, lane = threadIdx.x % 32, m = slab_row(s, m0, n), col = slab_col(s, n);
  const int left = ((int)P->g.kg - at.k0 < t.bn ? (int)P->g.kg - at.k0 : t.bn) - col;
#pragma unroll
  for (int it = 0; it * 32 < s.rows * pieces; ++it) {
    const int i = lane + it * 32, row = i / pieces, k = i % pieces * (16 / s.bytes);
    /* outside y any value will do: the result is clipped by TMA */
    const int inside = i < s.rows * pieces && m + row < P->gm && k < left;
    const uint4 v =
        load_once((const hk_cu_u8 *)P->e.c +
                  (inside ? ((m + row) * P->g.c.at[2] + at.group * P->g.c.group + at.k0 + col + k) * s.bytes : 0));
    to[it * 4] = v.x, to[it * 4 + 1] = v.y, to[it * 4 + 2] = v.z, to[it * 4 + 3] = v.w;
  }
}
/* Converts such pieces to fragments through the slot. */
HK_DEV void slab_shuffle(int type, slab_form s, hk_cu_u32 slot, hk_cu_u32 *w) {
  const int pieces = s.row_bytes / 16, lane = threadIdx.x % 32;
#pragma unroll
  for (int it = 0; it * 32 < s.rows * pieces; ++it) {
    const int i = lane + it * 32;
    if (i < s.rows * pieces)
      asm volatile(
          "st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(slot + slab_at(s.row_bytes, i / pieces, i % pieces)),
          "r"(w[it * 4]), "r"(w[it * 4 + 1]), "r"(w[it * 4 + 2]), "r"(w[it * 4 + 3])
          : "memory");
  }
  __syncwarp();
  slab_get(type, s, slot, w);
  __syncwarp();
}

/* Adds the residual of step n to its values. */
HK_DEV void slab_residual(const hk_cu_igemm *P, int type, igemm_tile t, slab_form s, igemm_place at, int m0, int n,
                          hk_cu_u32 slot, slab_residuals *rest, float *v) {
  if (n < s.slots) {
    hk_cu_u32 w[16];
    if (n == 0) slab_wait(rest);
    slab_get(type, s, slot, w);
    __syncwarp();
    slab_add(P, type, s, n % s.parts, w, v);
  } else {
    hk_cu_u32 *w = rest->w + (n - s.slots) % s.held * s.words;
    if (n >= s.slots + s.held) slab_shuffle(type, s, slot, w);
    slab_add(P, type, s, n % s.parts, w, v);
    if (n + s.held < s.total) slab_read(P, t, s, at, m0, n + s.held, w);
  }
}

/* Applies scale and bias, read through L1, where the few hundred values of a launch stay: the slots hold the
 * residual. inside: the whole tile is in y, there is a bias, and scale and bias are 8-byte aligned; scaled: per
 * channel. */
HK_DEV void slab_affine_run(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int inside, int scaled,
                            float (*acc)[128]) {
  const int k0 = at.k0 + threadIdx.x % 4 * 2, left = (int)P->g.kg - k0;
  const hk_cu_i64 first = at.group * P->g.kg + k0;
  const float *scale = (const float *)P->e.scale + (scaled ? first : 0), *bias = (const float *)P->e.bias + first;
  const float all = P->e.scale && !scaled ? *scale : 1.0f;
#pragma unroll
  for (int j = 0; j < t.bn / 8; ++j) {
    float2 a = make_float2(all, all), b = make_float2(0.0f, 0.0f);
    if (inside) {
      if (scaled) a = *(const float2 *)(scale + j * 8);
      b = *(const float2 *)(bias + j * 8);
    } else if (j * 8 < left) {
      if (scaled) a = make_float2(scale[j * 8], scale[j * 8 + 1]);
      if (P->e.bias) b = make_float2(bias[j * 8], bias[j * 8 + 1]);
    }
#pragma unroll
    for (int i = 0; i < 2 * t.mi; ++i) {
      float *v = &acc[i / 2][j * 4 + i % 2 * 2];
      v[0] = fmaf(v[0], a.x, b.x);
      v[1] = fmaf(v[1], a.y, b.y);
    }
  }
}
HK_DEV void slab_affine(const hk_cu_igemm *P, igemm_tile t, igemm_place at, float (*acc)[128]) {
  const int inside = at.k0 + t.bn <= P->g.kg && launch_of(P)->pairs && P->e.bias,
            scaled = P->e.scale && !P->e.scale_one;
  if (inside && scaled) slab_affine_run(P, t, at, 1, 1, acc);
  else if (inside) slab_affine_run(P, t, at, 1, 0, acc);
  else slab_affine_run(P, t, at, 0, scaled, acc);
}

/* Stores the rows of a slot, the first of which is pixel m. */
HK_DEV void slab_store(const hk_cu_igemm *P, hk_cu_u32 slot, int col, int group, int m) {
  if (P->slab == 1) {
    copy_out(&P->ymap, slot, col, group, m);
    return;
  }
  int at[3];
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    const int up = div_by(m, P->by_out[d]);
    at[d] = m - up * (int)P->by_out[d].d;
    m = up;
  }
  if (m < P->g.n) copy_out_pixels(&P->ymap, slot, col, at, m);
}

/* type (of y) is a compile-time constant. */
HK_DEV void slab_tile(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int m0, slab_residuals *rest,
                      float (*acc)[128], int type) {
  const slab_form s = slab_form_of(t, type);
  const int lane = threadIdx.x % 32, residual = P->e.residual;
#pragma unroll
  for (int n = 0; n < s.total; ++n) {
    const int col = slab_col(s, n), half = n % s.parts;
    const hk_cu_u32 slot = rest->slots + n % s.slots * s.size;
    float *v = acc[n / s.steps] + col / 2;
    /* just before the store: the previous step's copy runs meanwhile */
    if (half == 0 && P->e.act && !P->late) wide_act(&P->e, s.width / 2, v);
    if (n == 0 && !residual) { /* the last slots of the previous tile may be the first of this one */
      if (lane == 0) copy_out_wait(0);
      __syncwarp();
    } else if (n >= s.slots) {
      if (lane == 0) copy_out_wait_but(s.slots - 1);
      __syncwarp();
    }
    if (residual) slab_residual(P, type, t, s, at, m0, n, slot, rest, v);
#if defined(HK_USER2) || defined(HK_USER_STORE)
    user_last(P, at, s.width, s.rows, slab_row(s, m0, n), col, half, v);
#endif
#ifndef HK_USER_STORE
    slab_put(type, s, half, slot, v);
    fence_async();
    __syncwarp();
    if (lane == 0) {
      if (at.k0 + col < P->g.kg) slab_store(P, slot, at.k0 + col, at.group, slab_row(s, m0, n));
      copy_out_commit(); /* an empty group too: the wait counts groups */
    }
#endif
  }
}
