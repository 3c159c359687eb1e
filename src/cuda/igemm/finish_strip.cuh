/* Epilogue for a channels-last 16-bit y of any channel count, where one tile covers all channels and pixels have no
 * gaps: the 16 rows of a warp are one contiguous run of y. The warp writes its rows to its part of the staging
 * buffer and stores the run in 16-byte pieces. Included by finish_wide.cuh. */

/* For a 16-byte aligned y of at least 8 channels: each lane stores 16 bytes of the run, shifted out of two adjacent
 * pieces of a row. Each row is followed by the first 8 values of the next, so no piece crosses the end of a row.
 * first: those of this lane's rows, as pairs. */
HK_DEV void strip_pieces(const hk_cu_igemm *P, int pitch, int m, int rows, hk_cu_u8 *strip, const hk_cu_u32 *first) {
  const int lane = threadIdx.x % 32, k = (int)P->g.kg, count = rows * k;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + half * 8;
    hk_cu_u16 *to = (hk_cu_u16 *)(strip + (row - 1) * pitch) + k + lane % 4 * 2;
    if (row) to[0] = (hk_cu_u16)first[half], to[1] = (hk_cu_u16)(first[half] >> 16);
  }
  __syncwarp();
  hk_cu_u16 *y = (hk_cu_u16 *)P->e.y + (hk_cu_i64)m * k;
#pragma unroll 3
  for (int e = lane * 8; e + 7 < count; e += 256) {
    const int r = div_by(e, P->by_k), at = r * pitch + (e - r * k) * 2;
    const uint4 a = *(const uint4 *)(strip + (at & ~15)), b = *(const uint4 *)(strip + (at & ~15) + 16);
    hk_cu_u32 w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = at & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = at & 4 ? w[i + 1] : w[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], (at & 2) * 8);
    *(uint4 *)(y + e) = make_uint4(w[0], w[1], w[2], w[3]);
  }
  /* fewer than 16 rows may end within a piece */
  const int e = count / 8 * 8 + lane, r = div_by(e, P->by_k);
  if (e < count) y[e] = *(const hk_cu_u16 *)(strip + r * pitch + (e - r * k) * 2);
}

/* For any y: aligned 4-byte words, each gathered from two values. */
HK_DEV void strip_words(const hk_cu_igemm *P, int pitch, int m, int rows, const hk_cu_u8 *strip) {
  const int lane = threadIdx.x % 32, k = (int)P->g.kg;
  /* y is 2-byte aligned: the first and the last element may need a store of their own. (row, column) of a lane's
   * word advances by 64 elements. */
  hk_cu_u16 *y = (hk_cu_u16 *)P->e.y + (hk_cu_i64)m * k;
  const int odd = (int)((hk_cu_u64)y >> 1 & 1), count = rows * k, down = div_by(64, P->by_k), across = 64 - down * k;
  int e = odd + lane * 2, r = div_by(e, P->by_k), c = e - r * k;
  const hk_cu_u8 *from = strip + r * pitch + c * 2;
#pragma unroll 8
  for (; e + 1 < count; e += 64) {
    const hk_cu_u32 a = *(const hk_cu_u16 *)from, b = *(const hk_cu_u16 *)(from + (c + 1 == k ? pitch - c * 2 : 2));
    *(hk_cu_u32 *)(y + e) = a | b << 16;
    c += across;
    from += down * pitch + across * 2;
    if (c >= k) c -= k, from += pitch - 2 * k;
  }
  if (odd && lane == 0) y[0] = *(const hk_cu_u16 *)strip;
  if ((count - odd) % 2 && lane == 1) y[count - 1] = *(const hk_cu_u16 *)(strip + (rows - 1) * pitch + (k - 1) * 2);
}

/* Pixels from `end` on belong to the next tile. */
HK_DEV void strip_tile(const hk_cu_igemm *P, igemm_tile t, int m0, int end, hk_cu_u8 *staging, const float (*acc)[128],
                       int type) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, pitch = HK_IGEMM_STRIP(t.bn);
  hk_cu_u8 *strip = staging + warp * 16 * pitch;
#pragma unroll
  for (int i = 0; i < t.mi; ++i) {
    const int m = m0 + i * 64 + warp * 16, left = (end < P->gm ? end : (int)P->gm) - m, rows = left < 16 ? left : 16;
    const hk_cu_u32 at = smem_u32(strip) + (lane / 8 % 2 * 8 + lane % 8) * pitch + lane / 16 * 16;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < t.bn / 8; j += 2) {
      /* matrices (rows 0-7, j), (rows 8-15, j), (rows 0-7, j + 1), (rows 8-15, j + 1) */
      hk_cu_u32 w[4];
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (j + e / 2 < t.bn / 8)
          w[e] = pack_pair(type, acc[i][(j + e / 2) * 4 + e % 2 * 2], acc[i][(j + e / 2) * 4 + e % 2 * 2 + 1]);
      matrix_put(j + 1 < t.bn / 8 ? 4 : 2, at + j * 16, w);
    }
    __syncwarp();
    if (rows <= 0) continue;
    if (P->strip == 2) {
      const hk_cu_u32 first[2] = {pack_pair(type, acc[i][0], acc[i][1]), pack_pair(type, acc[i][2], acc[i][3])};
      strip_pieces(P, pitch, m, rows, strip, first);
    } else {
      strip_words(P, pitch, m, rows, strip);
    }
  }
}
