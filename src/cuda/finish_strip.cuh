/* From accumulators to a channels-last y of 16-bit values with any channel count, where one tile covers all channels and pixels follow
 * each other without a gap: a warp's 16 rows are then one run of y, however odd. The warp lays its rows into its
 * part of the desk and stores the run as aligned 4-byte words, each gathered from two places. Included by finish_wide.cuh. */
HK_DEV void strip_tile(const hk_cu_igemm *P, igemm_tile t, int m0, hk_cu_u8 *desk, const float (*acc)[128], int type) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, pitch = HK_IGEMM_STRIP(t.bn), k = (int)P->g.kg;
  hk_cu_u8 *strip = desk + warp * 16 * pitch;
#pragma unroll
  for (int i = 0; i < t.mi; ++i) {
    const int m = m0 + i * 64 + warp * 16, rows = (int)P->gm - m < 16 ? (int)P->gm - m : 16;
    const hk_cu_u32 at = smem_u32(strip) + (lane / 8 % 2 * 8 + lane % 8) * pitch + lane / 16 * 16;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < t.bn / 8; j += 2) {
      /* matrices (rows 0-7, j), (rows 8-15, j), (rows 0-7, j + 1), (rows 8-15, j + 1) */
      hk_cu_u32 w[4];
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (j + e / 2 < t.bn / 8) w[e] = pack_pair(type, acc[i][(j + e / 2) * 4 + e % 2 * 2], acc[i][(j + e / 2) * 4 + e % 2 * 2 + 1]);
      matrix_put(j + 1 < t.bn / 8 ? 4 : 2, at + j * 16, w);
    }
    __syncwarp();
    if (rows <= 0) continue;
    /* y is 2-byte aligned: the first element may stand alone, and so may the last. (row, column) of a lane's word moves on by 64 elements. */
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
}
