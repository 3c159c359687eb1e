/* hk_tapsum_stem_<type>_<nt>: few channels of x and one group, on the tensor cores. The columns of a row of taps, (s,
 * c) with c inner, are written out for every position of dy's row: NT x 8 of them, 16 bytes aligned, so that a row of
 * pixels is a matrix. A ring holds the rows of x that a row of dy reads, and the next. Where a row of x is contiguous
 * it is copied to shared memory first, where zeros surround it. A block has 64 channels of dy; a warp 32 of them and
 * two rows of taps. */
#ifndef HK_TAPSUM_STEM
#define HK_TAPSUM_STEM
typedef struct stem_room {
  int *table; /* of a column: the position and the channel of x */
  unsigned char *raw;
  hk_cu_u32 ring, f;
} stem_room;

/* Starts the copies of rows from..to-1 of x, counted from the padding; zeros outside x. */
HK_DEV void stem_ask(const hk_cu_tapsum *P, stem_room room, const hk_cu_u16 *image, int from, int to) {
  const hk_cu_geom *g = &P->d.g;
  for (int v = from; v < to && P->raw_bytes; ++v) {
    const int i1 = v - (int)g->lo[1], in = (unsigned)i1 < (unsigned)g->in[1];
    const hk_cu_u16 *row = image + (in ? i1 * g->x.at[1] : 0);
    const hk_cu_u32 at = shared_address(room.raw) + v % P->raw_rows * P->raw_bytes + P->raw_left * 2;
    for (int i = threadIdx.x; i < (int)(g->in[2] * g->n) / 8; i += blockDim.x) copy_16(at + i * 16, row + i * 8, in);
  }
}
#endif
/* Writes row i1 of x, counted from the padding, into its place of the ring: zeros outside x. */
HK_DEV void STEM(spread)(const hk_cu_tapsum *P, const int *table, const hk_cu_u16 *image, int v, hk_cu_u32 ring) {
  const hk_cu_geom *g = &P->d.g;
  const int i1 = v - (int)g->lo[1], in = (unsigned)i1 < (unsigned)g->in[1];
  const hk_cu_u16 *row = image + i1 * g->x.at[1];
  const hk_cu_u32 to = ring + v % P->ring * (P->quads * P->pitch);
  for (int i = threadIdx.x; i < P->quads * NT; i += blockDim.x) {
    const int piece = i / P->quads, q = i - piece * P->quads, first = q * (int)g->dil[2] - (int)g->lo[2];
    hk_cu_u32 out[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      hk_cu_u32 pair = 0;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int column = piece * 8 + j * 2 + h, i2 = first + table[column];
        const int live =
            in && q < (int)g->win[2] && table[STEM_COLUMNS + column] >= 0 && (unsigned)i2 < (unsigned)g->in[2];
        if (live) pair |= (hk_cu_u32)row[i2 * g->x.at[2] + table[STEM_COLUMNS + column] * g->x.outer] << 16 * h;
      }
      out[j] = pair;
    }
    store_16(to + q * P->pitch + piece * 16, out);
  }
}

/* The same from the copy of the row, of which 8 columns are neighbours. */
HK_DEV void STEM(spread_raw)(const hk_cu_tapsum *P, const unsigned char *raw, int v, hk_cu_u32 ring) {
  const hk_cu_geom *g = &P->d.g;
  const int n = (int)g->n, step = (int)g->dil[2] * n, first = P->raw_left - (int)g->lo[2] * n;
  const unsigned char *row = raw + v % P->raw_rows * P->raw_bytes;
  const hk_cu_u32 to = ring + v % P->ring * (P->quads * P->pitch);
  for (int i = threadIdx.x; i < P->quads * NT; i += blockDim.x) {
    const int piece = div_by(i, P->by_columns), q = i - piece * P->quads, at = first + q * step + piece * 8;
    const hk_cu_u32 *from = (const hk_cu_u32 *)row + (at >> 1);
    hk_cu_u32 word[5], out[4];
#pragma unroll
    for (int j = 0; j < 5; ++j) word[j] = from[j];
#pragma unroll
    for (int j = 0; j < 4; ++j) out[j] = at & 1 ? word[j] >> 16 | word[j + 1] << 16 : word[j];
    store_16(to + q * P->pitch + piece * 16, out);
  }
}

/* Writes rows from..to-1 of x, whose copies are there. */
HK_DEV void STEM(put)(const hk_cu_tapsum *P, stem_room room, const hk_cu_u16 *image, int from, int to) {
  for (int v = from; v < to; ++v)
    if (P->raw_bytes) STEM(spread_raw)(P, room.raw, v, room.ring);
    else STEM(spread)(P, room.table, image, v, room.ring);
}

/* Starts the copy of a row of dy, 64 channels. */
HK_DEV void STEM(load)(const hk_cu_tapsum *P, int unit, int channel, hk_cu_u32 to) {
  const hk_cu_geom *g = &P->d.g;
  const tapsum_row r = tapsum_row_at(P, unit);
  const hk_cu_u16 *row = (const hk_cu_u16 *)P->d.f + r.c * g->f.channel + r.s1 * g->f.at[1] + channel;
  for (int i = threadIdx.x; i < P->quads * 8; i += blockDim.x) {
    const int piece = i % 8, q = i / 8, in = q < (int)g->win[2] && channel + piece * 8 < (int)g->kg;
    copy_16(to + q * STEM_PIXEL + piece * 16, in ? row + q * g->f.at[2] + piece * 8 : row - channel, in);
  }
}

/* Adds the products of a row of dy and of the rows of x of two rows of taps. */
HK_DEV void STEM(add)(const hk_cu_tapsum *P, hk_cu_u32 f, const hk_cu_u32 *x, float (*acc)[2][NT][4]) {
  const int lane = threadIdx.x % 32, at = lane / 16 * 8 + lane % 8, side = lane / 8 % 2 * 16;
#if NT == 3
  const int last = lane / 8 % 2 * 8 + lane % 8;
#endif
#pragma unroll 2
  for (int q = 0; q < P->quads; q += 16) {
    hk_cu_u32 a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) matrices_4(f + (q + at) * STEM_PIXEL + m * 32 + side, a[m]);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      hk_cu_u32 b[4], c[4] = {};
      matrices_4(x[r] + (q + at) * P->pitch + side, b);
#if NT == 3
      hk_cu_u32 d[2];
      matrices_2(x[r] + (q + last) * P->pitch + 32, d);
      c[0] = d[0], c[2] = d[1];
#elif NT == 4
      matrices_4(x[r] + (q + at) * P->pitch + 32 + side, c);
#endif
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int t = 0; t < NT; ++t) {
          if (t < 2) mma_add(acc[r][m][t], a[m], b[t], b[t + 2]);
          else mma_add(acc[r][m][t], a[m], c[t - 2], c[t]);
        }
    }
  }
}

HK_DEV void STEM(emit)(const hk_cu_tapsum *P, int slice, int channel, int tap_row, float (*acc)[2][NT][4]) {
  const hk_cu_geom *g = &P->d.g;
  const int lane = threadIdx.x % 32, live = (int)(g->out[2] * g->n);
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int t = 0; t < NT; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int k = channel + m * 16 + lane / 4 + i / 2 * 8, column = t * 8 + lane % 4 * 2 + i % 2;
          if (tap_row + r < (int)g->out[1] && k < (int)g->kg && column < live)
            tapsum_emit(P, slice, (k * (int)g->out[1] + tap_row + r) * live + column, acc[r][m][t][i]);
        }
}

extern "C" __global__ void __launch_bounds__(256, 2) STEM(hk_tapsum_stem)(const __grid_constant__ hk_cu_tapsum P) {
  extern __shared__ __align__(16) unsigned char shared[];
  const hk_cu_geom *g = &P.d.g;
  const int warp = threadIdx.x / 32, tap_row = warp % 4 * 2;
  const int channel = blockIdx.x % P.chunks * 64, slice = blockIdx.x / P.chunks, half = warp / 4 * 32;
  const int dil = (int)g->dil[1], reach = ((int)g->out[1] - 1) * (int)g->stride[1];
  stem_room room = {(int *)shared, shared + 2 * STEM_COLUMNS * 4};
  room.ring = shared_address(room.raw) + P.raw_rows * P.raw_bytes, room.f = room.ring + P.x_bytes;
  if (threadIdx.x < STEM_COLUMNS) {
    const int s = threadIdx.x / (int)g->n, c = threadIdx.x - s * (int)g->n;
    room.table[threadIdx.x] = s * (int)g->stride[2];
    room.table[STEM_COLUMNS + threadIdx.x] = s < (int)g->out[2] ? c : -1;
  }
  for (int i = threadIdx.x; i < P.raw_rows * P.raw_bytes / 4; i += blockDim.x) ((hk_cu_u32 *)room.raw)[i] = 0;
  __syncthreads();
  float acc[2][2][NT][4] = {};
  const int first = tapsum_first(&P, slice), end = tapsum_first(&P, slice + 1);
  int image = -1;
  if (first < end) STEM(load)(&P, first, channel, room.f);
#pragma unroll 1
  for (int unit = first; unit < end; ++unit) {
    const tapsum_row r = tapsum_row_at(&P, unit);
    const hk_cu_u16 *x = (const hk_cu_u16 *)P.d.x + r.c * g->x.channel;
    const int left = min(end - unit, (int)g->win[1] - r.s1), next = r.s1 * dil + reach + 1; /* rows; the next of x */
    if (r.c != image) {
      if (image >= 0) __syncthreads();
      image = r.c;
      stem_ask(&P, room, x, r.s1 * dil, next);
      copy_wait();
      __syncthreads();
      STEM(put)(&P, room, x, r.s1 * dil, next);
      if (left > 1) stem_ask(&P, room, x, next, next + dil);
    }
    copy_wait();
    __syncthreads();
    if (unit + 1 < end) STEM(load)(&P, unit + 1, channel, room.f + (unit + 1 - first) % 2 * P.f_bytes);
    if (left > 2) stem_ask(&P, room, x, next + dil, next + 2 * dil);
    if (left > 1) STEM(put)(&P, room, x, next, next + dil);
    hk_cu_u32 rows[2];
#pragma unroll
    for (int t = 0; t < 2; ++t)
      rows[t] = room.ring +
                (r.s1 * dil + min(tap_row + t, (int)g->out[1] - 1) * (int)g->stride[1]) % P.ring * (P.quads * P.pitch);
    if (tap_row < (int)g->out[1]) STEM(add)(&P, room.f + (unit - first) % 2 * P.f_bytes + half * 2, rows, acc);
  }
  STEM(emit)(&P, slice, channel + half, tap_row, acc);
}
#undef NT
#undef STEM
