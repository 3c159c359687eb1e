/* Epilogue for a channels-first 16-bit y whose planes are multiples of 16 or 8 bytes: a consumer transposes 64
 * pixels x `width` channels in one of two slots of its staging buffer, [channel][64 pixels], and stores 16 or 8
 * bytes per thread, in full lines. 8 or 4 pixels never straddle images. (TMA stores would need boxes that start
 * before an image, which TMA does not write.) Included by finish_wide.cuh. */

/* Channels per slab. */
#define TRANSPOSE_WIDTH(bn) ((bn) % 32 == 0 ? 32 : (bn) % 16 == 0 ? 16 : 8)

HK_DEV void transpose_tile(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int m0, int wg, hk_cu_u8 *staging,
                           const float (*acc)[128], int type) {
  const int width = TRANSPOSE_WIDTH(t.bn), slabs = t.bn / width, tid = threadIdx.x % 128, lane = tid % 32,
            warp = tid / 32;
  const int step = width == 8 ? 2 : 4, fours = P->transposed == 4, piece = tid % (fours ? 16 : 8),
            line = tid / (fours ? 16 : 8);
  const hk_cu_i64 channel = P->g.y.channel;
#pragma unroll
  for (int i = 0; i < t.mi; ++i) {
    const int m = m0 + i * 64 + piece * P->transposed, left = m < P->gm ? (int)P->g.kg - at.k0 : 0;
    hk_cu_u16 *y = (hk_cu_u16 *)P->e.y + finish_offset(P->by_out, &P->g.y, 0, m) + at.group * P->g.y.group +
                   (at.k0 + line) * channel;
#pragma unroll
    for (int u = 0; u < slabs; ++u) {
      hk_cu_u8 *slot = staging + ((i * slabs + u) & 1) * (width * 128);
#pragma unroll
      for (int q = 0; q < width / 4; q += step) {
        /* matrix q: channels [q/2 * 8, +8) of pixels [warp * 16 + q % 2 * 8, +8) */
        hk_cu_u32 w[4];
#pragma unroll
        for (int e = 0; e < step; ++e) {
          const int from = u * width / 2 + (q + e) / 2 * 4 + (q + e) % 2 * 2;
          w[e] = pack_pair(type, acc[i][from], acc[i][from + 1]);
        }
        const int mine = q + lane / 8 % step;
        matrix_put_transposed(step, smem_u32(slot) + slab_at(128, mine / 2 * 8 + lane % 8, warp * 2 + mine % 2), w);
      }
      /* One barrier per slab: every thread that arrives has read the slot before last, which is written next. */
      named_sync(wg + 1, 128);
      hk_cu_u16 *to = y + u * width * channel;
      if (fours) {
#pragma unroll
        for (int row = 0; row < width; row += 8)
          if (u * width + row + line < left)
            *(uint2 *)(to + row * channel) =
                *(const uint2 *)(slot + slab_at(128, row + line, piece / 2) + piece % 2 * 8);
      } else {
#pragma unroll
        for (int row = 0; row < width; row += 16)
          if (row + line < width && u * width + row + line < left)
            *(uint4 *)(to + row * channel) = *(const uint4 *)(slot + slab_at(128, row + line, piece));
      }
    }
  }
}
