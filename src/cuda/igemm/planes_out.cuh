/* Epilogue for a channels-first 16-bit y: acc[i][..] of planes.cuh holds channels as rows and pixels as columns,
 * which is y's own order. A warp finishes 16 channels x `width` pixels at a time: scale and bias, activation and
 * residual on the fragments; then the values cross one of its two slots of shared memory, swizzled, and are stored
 * by TMA (64 pixels, y's planes whole) or word by word along the pixels. Residuals are read word by word through the
 * same slot. Included by planes.cuh. */

/* One step: 16 channels from channel k of the group on, pixels [q, end). */
typedef struct planes_step {
  igemm_place at;
  int n, k, q, end;
} planes_step;

/* The two pixels of a lane's word. */
typedef struct planes_word {
  int p[2][3], inside[2];
} planes_word;
HK_DEV planes_word planes_pixels(const hk_cu_planes *P, int q, int end) {
  planes_word w;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = div_by(q + i, P->by_width), d = div_by(row, P->by_height);
    w.p[i][0] = d;
    w.p[i][1] = row - d * P->height;
    w.p[i][2] = q + i - row * P->width;
    w.inside[i] = q + i < end && w.p[i][2] < P->m.g.out[2] && w.p[i][1] < P->m.g.out[1];
  }
  return w;
}

/* Copies words of the residual to the slot. */
HK_DEV void planes_fetch(const hk_cu_planes *P, int width, planes_step s, hk_cu_u32 slot) {
  const int words = width / 2, lane = threadIdx.x % 32, word = lane % words, per = 32 / words;
  const hk_cu_view *view = &P->m.g.c;
  const planes_word w = planes_pixels(P, s.q + word * 2, s.end);
  const hk_cu_u16 *c = (const hk_cu_u16 *)P->m.e.c + s.at.group * view->group + s.k * view->channel;
  const hk_cu_i64 a = pixel_offset(view, s.n, w.p[0]), b = pixel_offset(view, s.n, w.p[1]);
  hk_cu_u32 v[16];
#pragma unroll
  for (int i = 0; i < 16 / per; ++i) {
    const int row = i * per + lane / words, live = s.k + row < P->m.g.kg;
    const hk_cu_u16 *from = c + row * view->channel;
    v[i] = 0;
    if (P->whole) {
      if (live && w.inside[0]) v[i] = *(const hk_cu_u32 *)(from + a);
    } else {
      if (live && w.inside[0]) v[i] = from[a];
      if (live && w.inside[1]) v[i] |= (hk_cu_u32)from[b] << 16;
    }
  }
#pragma unroll
  for (int i = 0; i < 16 / per; ++i)
    asm volatile(
        "st.shared.b32 [%0], %1;" ::"r"(slot + slab_at(width * 2, i * per + lane / words, word / 4) + word % 4 * 4),
        "r"(v[i])
        : "memory");
}

/* Stores the slot's words to y. */
HK_DEV void planes_store(const hk_cu_planes *P, int width, planes_step s, hk_cu_u32 slot) {
  const int words = width / 2, lane = threadIdx.x % 32, word = lane % words, per = 32 / words;
  const hk_cu_view *view = &P->m.g.y;
  const planes_word w = planes_pixels(P, s.q + word * 2, s.end);
  hk_cu_u16 *y = (hk_cu_u16 *)P->m.e.y + s.at.group * view->group + s.k * view->channel;
  const hk_cu_i64 a = pixel_offset(view, s.n, w.p[0]), b = pixel_offset(view, s.n, w.p[1]);
#pragma unroll 4
  for (int row = lane / words; row < 16; row += per) {
    const int live = s.k + row < P->m.g.kg;
    hk_cu_u16 *to = y + row * view->channel;
    hk_cu_u32 v;
    asm volatile("ld.shared.b32 %0, [%1];"
                 : "=r"(v)
                 : "r"(slot + slab_at(width * 2, row, word / 4) + word % 4 * 4)
                 : "memory");
    if (P->whole) {
      if (live && w.inside[0]) *(hk_cu_u32 *)(to + a) = v;
    } else {
      if (live && w.inside[0]) to[a] = (hk_cu_u16)v;
      if (live && w.inside[1]) to[b] = (hk_cu_u16)(v >> 16);
    }
  }
}

/* Writes fragments of 16 rows x `width` columns to the slot, four 8x8 matrices at a time. */
HK_DEV void planes_put(int type, int width, hk_cu_u32 slot, const float *v) {
  const int lane = threadIdx.x % 32, count = width / 4, step = count < 4 ? count : 4;
#pragma unroll
  for (int q = 0; q < count; q += step) {
    hk_cu_u32 w[4];
#pragma unroll
    for (int i = 0; i < step; ++i) {
      const int at = (q + i) / 2 * 4 + (q + i) % 2 * 2;
      w[i] = pack_pair(type, v[at], v[at + 1]);
    }
    const int mine = q + lane / 8 % step;
    matrix_put(step, slot + slab_at(width * 2, mine % 2 * 8 + lane % 8, mine / 2), w);
  }
}

/* Adds beta times the residual in the slot. */
HK_DEV void planes_add(int type, int width, float beta, hk_cu_u32 slot, float *v) {
  const int lane = threadIdx.x % 32, count = width / 4, step = count < 4 ? count : 4;
#pragma unroll
  for (int q = 0; q < count; q += step) {
    hk_cu_u32 w[4];
    const int mine = q + lane / 8 % step;
    matrix_get(step, slot + slab_at(width * 2, mine % 2 * 8 + lane % 8, mine / 2), w);
#pragma unroll
    for (int i = 0; i < step; ++i) {
      float *p = v + (q + i) / 2 * 4 + (q + i) % 2 * 2;
      p[0] = fmaf(beta, type == HK_CU_BF16 ? __uint_as_float(w[i] << 16) : f32_from_f16((hk_cu_u16)w[i]), p[0]);
      p[1] = fmaf(
          beta, type == HK_CU_BF16 ? __uint_as_float(w[i] & 0xffff0000u) : f32_from_f16((hk_cu_u16)(w[i] >> 16)), p[1]);
    }
  }
}

HK_DEV void planes_act(const hk_cu_epi *e, int n, const float *slope, float *v) {
  if (e->act == HK_CU_PRELU)
#pragma unroll
    for (int j = 0; j < n; ++j) v[j] = v[j] < 0.0f ? slope[j / 2 % 2] * v[j] : v[j];
  else wide_act(e, n, v);
}

HK_DEV void copy_out_planes(const hk_cu_tmap *map, hk_cu_u32 src, int q, int k, int group, int n) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
               "r"(src), "r"(q), "r"(k), "r"(group), "r"(n)
               : "memory");
}

/* Finishes and stores `width` pixels, a power of two, of the fragments v; count: earlier steps of the tile; type is
 * y's. */
HK_DEV void planes_write(const hk_cu_planes *P, int type, int width, planes_step s, int count, hk_cu_u32 slots,
                         const float *slope, float *v) {
  const int lane = threadIdx.x % 32, residual = P->m.e.residual;
  const hk_cu_u32 slot = slots + (count & 1) * 2048;
  if (lane == 0 && count == 0) copy_out_wait(0); /* the last slot of the previous tile may be the first of this one */
  else if (lane == 0) copy_out_wait(1);
  __syncwarp();
  if (residual) {
    planes_fetch(P, width, s, slot);
    __syncwarp();
  }
  if (residual == 2) planes_add(type, width, P->m.e.beta, slot, v);
  if (P->m.e.act) planes_act(&P->m.e, width / 2, slope, v);
  if (residual == 1) planes_add(type, width, P->m.e.beta, slot, v);
  if (residual) __syncwarp();
  planes_put(type, width, slot, v);
  if (P->whole && width == 64 && (s.q + width <= s.end || s.end == P->flat)) {
    fence_async();
    __syncwarp();
    if (lane == 0 && s.q < s.end && s.k < P->m.g.kg) copy_out_planes(&P->m.ymap, slot, s.q, s.k, s.at.group, s.n);
  } else {
    __syncwarp();
    planes_store(P, width, s, slot);
  }
  if (lane == 0) copy_out_commit(); /* an empty group too: the wait counts groups */
}

/* Scale and bias of a lane's two rows of a piece. */
typedef struct planes_pair {
  float scale[2], bias[2];
} planes_pair;
HK_DEV planes_pair planes_load_affine(const hk_cu_igemm *M, int first, igemm_place at, int piece) {
  planes_pair a;
  const int k = at.k0 + first + piece * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    a.scale[h] = finish_scale(M, at, k + h * 8);
    a.bias[h] = finish_bias(M, at, k + h * 8);
  }
  return a;
}

/* Prefetches the residual of the next tile into L2. */
HK_DEV void prefetch_run(const void *p, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes) : "memory");
}
HK_DEV void planes_prefetch(const hk_cu_planes *P, planes_tile t, int first, planes_place place) {
  const hk_cu_view *c = &P->m.g.c;
  for (int r = threadIdx.x % 128; r < 64 * t.mi; r += 128) {
    const int k = place.at.k0 + first + r;
    if (k < P->m.g.kg)
      prefetch_run((const hk_cu_u16 *)P->m.e.c + place.n * c->outer + place.at.group * c->group + k * c->channel +
                       place.at.m0,
                   (place.end - place.at.m0) * 2);
  }
}

/* Finishes all pieces of a consumer; type is y's. */
HK_DEV void planes_finish(const hk_cu_planes *P, int type, planes_tile t, int first, planes_place place,
                          hk_cu_u32 staging, const planes_pair *affine, float (*acc)[128]) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, rest = t.bn % 64;
  const hk_cu_u32 slots = staging + warp * 4096;
  int count = 0;
#pragma unroll
  for (int i = 0; i < t.mi; ++i) {
    planes_step s = {place.at, place.n, place.at.k0 + first + i * 64 + warp * 16, place.at.m0, place.end};
    float slope[2] = {0.0f, 0.0f};
    if (P->m.e.scale || P->m.e.bias)
#pragma unroll
      for (int j = 0; j < t.bn / 2; ++j)
        acc[i][j] = fmaf(acc[i][j], affine[i].scale[j / 2 % 2], affine[i].bias[j / 2 % 2]);
    if (P->m.e.act == HK_CU_PRELU)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (s.k + lane / 4 + h * 8 < P->m.g.kg)
          slope[h] = ((const float *)P->m.e.slopes)[s.at.group * P->m.g.kg + s.k + lane / 4 + h * 8];
#pragma unroll
    for (int u = 0; u < t.bn / 64; ++u, s.q += 64) planes_write(P, type, 64, s, count++, slots, slope, acc[i] + u * 32);
    /* the remainder in halves: 56 pixels are stored as 32, 16 and 8 */
    if (rest & 32) planes_write(P, type, 32, s, count++, slots, slope, acc[i] + (t.bn - rest) / 2), s.q += 32;
    if (rest & 16) planes_write(P, type, 16, s, count++, slots, slope, acc[i] + (t.bn - rest % 32) / 2), s.q += 16;
    if (rest & 8) planes_write(P, type, 8, s, count++, slots, slope, acc[i] + (t.bn - 8) / 2);
  }
}
