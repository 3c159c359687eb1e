/* The Toeplitz product of toeplitz.cuh for one packed row of taps, stride 1, contiguous x and y and no epilogue:
 * each warp walks along neighbouring tiles of 16*B outputs, lane_blocks of them per row, and prefetches the next
 * tile while it computes one. It synchronises only with itself. Shared memory per warp: two tiles of x, two rows of
 * weights; results overwrite their x. What is outside x arrives as zeros (cp.async of fewer than 16 bytes fills with
 * zeros); the piece that crosses the start of x is assembled element by element, and so are the two partial pieces
 * of a row of y. Rows outside x have width 0. A warp that has stored a NaN recomputes at the end. Included by
 * toeplitz.cuh. */

typedef struct stream_row {
  const hk_cu_u16 *x; /* column 0 */
  hk_cu_u16 *y;       /* first output */
  int width, skew;    /* columns of x, 0: the row is outside x; outputs between the start of the tiles and the row */
} stream_row;
typedef struct stream_tile {
  hk_cu_u16 *y;             /* first output of the row */
  int line, index0, skew;   /* row, whose parity selects its weights; first output; elements staged before the tile's
                             * first */
} stream_tile;

/* Finds row `line` and starts the copy of its weights to `taps`. */
HK_DEV stream_row stream_find(const hk_cu_dw *P, int line, hk_cu_u32 taps) {
  const hk_cu_geom *g = &P->g;
  int p[3] = {0, 0, 0}, place = line; /* image and channel */
  if (P->div_out0.m | P->div_out1.m) {
    const int a = dw_div(P->div_out1, line);
    place = dw_div(P->div_out0, a);
    p[1] = line - a * (int)g->out[1], p[0] = a - place * (int)g->out[0];
  }
  const int n = dw_div(P->div_channels, place), k = place - n * P->channels, group = g->kg == 1 ? k : k / (int)g->kg;
  const char *from = (const char *)P->packed + (hk_cu_i64)k * P->taps_bytes;
#pragma unroll 2
  for (int i = threadIdx.x % 32 * 16; i < P->taps_bytes; i += 512) dw_copy16(taps + i, from + i, 16);
  stream_row row = {(const hk_cu_u16 *)P->x + n * g->x.outer + group * g->x.group,
                    (hk_cu_u16 *)P->e.y + n * g->y.outer + group * g->y.group + (k - group * (int)g->kg) * g->y.channel,
                    (int)g->in[2], 0};
  if (P->div_out0.m | P->div_out1.m | (int)g->lo[0] | (int)g->lo[1]) {
    const int i0 = p[0] * (int)g->stride[0] - (int)g->lo[0], i1 = p[1] * (int)g->stride[1] - (int)g->lo[1];
    row.x += i0 * g->x.at[0] + i1 * g->x.at[1], row.y += p[0] * g->y.at[0] + p[1] * g->y.at[1];
    if ((unsigned)i0 >= (unsigned)g->in[0] || (unsigned)i1 >= (unsigned)g->in[1]) row.width = 0;
  }
  row.skew = (int)((hk_cu_u64)row.y & 15) / 2;
  return row;
}

HK_DEV int stream_steps(const hk_cu_dw *P, int skew, const int b) { return (b + P->taps_u - 1 + skew + 15) / 16; }

/* Copies pieces before `low` and from `high` on, which are not entirely in x; one lane per element of the piece
 * where x starts. col: of the first piece. */
HK_DEV void stream_copy_ends(stream_row row, int col, int low, int high, int pieces, int pitch, const int b, char *to) {
  const int lane = threadIdx.x % 32, planes = b / 8;
#pragma unroll 1
  for (int c = lane; c < low - 1 && c < pieces; c += 32)
    dw_copy16(dw_shared(to) + c % planes * pitch + c / planes * 16, row.x, 0);
#pragma unroll 1
  for (int c = (high > low ? high : low) + lane; c < pieces; c += 32) {
    const int live = row.width - (col + c * 8);
    dw_copy16(dw_shared(to) + c % planes * pitch + c / planes * 16, live > 0 ? row.x + (col + c * 8) : row.x,
              live > 0 ? live * 2 : 0);
  }
  const int c = low - 1, at = col + c * 8 + lane;
  if (low > 0 && c < pieces && lane < 8)
    ((hk_cu_u16 *)(to + c % planes * pitch + c / planes * 16))[lane] =
        (unsigned)at < (unsigned)row.width ? row.x[at] : 0;
}

/* Starts the copy of x for the tile from output index0 on; returns the skew. */
HK_DEV int stream_copy(const hk_cu_dw *P, stream_row row, int index0, const int b, char *to) {
  const int lane = threadIdx.x % 32, planes = b / 8, pitch = P->toeplitz.plane_pitch;
  const hk_cu_u16 *start = row.x + (index0 - (int)P->g.lo[2]);
  const int skew = (int)((hk_cu_u64)start & 15) / 2, pieces = 15 * planes + 2 * stream_steps(P, skew, b);
  const int col = index0 - (int)P->g.lo[2] - skew, right = (row.width - col) >> 3;
  const int low = col < 0 ? (7 - col) >> 3 : 0, high = right < pieces ? right : pieces;
  const hk_cu_u16 *from = start + (lane * 8 - skew);
  hk_cu_u32 there = dw_shared(to) + lane % planes * pitch + lane / planes * 16;
#pragma unroll 1
  for (int c = lane; c < high; c += 128, there += 128 / planes * 16, from += 1024) {
#pragma unroll
    for (int r = 0; r < 4; ++r)
      if (c + 32 * r >= low && c + 32 * r < high) dw_copy16(there + r * (32 / planes * 16), from + 256 * r, 16);
  }
  if (low > 0 || high < pieces) stream_copy_ends(row, col, low, high, pieces, pitch, b, to);
  return skew;
}

/* Blocks of the diagonal in pairs of adjacent registers: even[i] is blocks 2i and 2i + 1, odd[i] blocks 2i - 1 and
 * 2i. Both are rings: step s of the taps loads pair s. */
typedef struct stream_diagonal { hk_cu_u32 even[4][2], odd[4][2]; } stream_diagonal;

/* Step s of a group: two pieces of all windows at x, two more blocks of the diagonal, B/8 products. */
HK_DEV void stream_step(hk_cu_u32 x, hk_cu_u32 taps, const int s, const int b, stream_diagonal *t, float (*acc)[4]) {
  const int blocks = b / 8, ring = (blocks + 1) / 2;
  hk_cu_u32 a[4];
  load_x4(x, a);
  t->odd[s][0] = t->even[(s + ring - 1) % ring][1];
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(t->even[s][0]) : "r"(taps) : "memory");
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(t->even[s][1]) : "r"(taps + 16) : "memory");
  t->odd[s][1] = t->even[s][0];
#pragma unroll
  for (int v = 0; v < blocks; ++v) {
    const hk_cu_u32 *pair = v % 2 ? t->odd[(s - v / 2 + ring) % ring] : t->even[(s - v / 2 + ring) % ring];
    mma_k16(acc[v], a, pair[0], pair[1]);
  }
}

/* Multiplies 16 windows by B outputs. Whole groups of B/16 steps have no branches; after each the rings start over. */
HK_DEV void stream_multiply(const hk_cu_dw *P, hk_cu_u32 x, hk_cu_u32 taps, int skew, const int b, float (*acc)[4]) {
  const int lane = threadIdx.x % 32, blocks = b / 8, group = (blocks + 1) / 2, pitch = P->toeplitz.plane_pitch;
  const int offset = FRONT + lane % 4 * 2 - lane / 4 - skew;
  taps += (offset & 1) * (P->taps_bytes / 2) + (offset >> 1) * 4;
  hk_cu_u32 from = x + lane % 16 * 16 + lane / 16 * (blocks > 1 ? pitch : 16);
  int steps = stream_steps(P, skew, b);
  stream_diagonal t;
#pragma unroll
  for (int i = 0; i < group; ++i) t.even[i][0] = t.even[i][1] = t.odd[i][0] = t.odd[i][1] = 0;
#pragma unroll 1
  for (; steps >= group; steps -= group, taps += 32 * group, from += blocks > 1 ? 16 : 32) {
#pragma unroll
    for (int s = 0; s < group; ++s) stream_step(from + 2 * s * pitch, taps + 32 * s, s, b, &t, acc);
  }
#pragma unroll
  for (int s = 0; s < group - 1; ++s)
    if (s < steps) stream_step(from + 2 * s * pitch, taps + 32 * s, s, b, &t, acc);
}

HK_DEV void stream_store(hk_cu_u16 *y, uint4 u) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(y)), "r"(u.x), "r"(u.y),
               "r"(u.z), "r"(u.w)
               : "memory");
}

/* Stores the sums: whole pieces by 16 bytes, the two partial ones by 8 lanes each. Returns whether the lane's may
 * contain a NaN. */
HK_DEV int stream_store_tile(const hk_cu_dw *P, const stream_tile *now, const char *stage, const int b) {
  const int lane = threadIdx.x % 32, length = (int)P->g.out[2], left = length - now->index0, rounds = (2 * b + 31) / 32;
  uint4 u[4];
  hk_cu_u32 sum = 0;
#pragma unroll
  for (int r = 0; r < rounds; ++r) {
    u[r] = make_uint4(0, 0, 0, 0);
    if (lane + 32 * r < 2 * b) u[r] = *(const uint4 *)(stage + toeplitz_piece(lane + 32 * r, b));
    sum = r ? matrix_sum(sum, matrix_sum8(u[r])) : matrix_sum8(u[r]);
  }
  hk_cu_u16 *y = now->y + (now->index0 + lane * 8);
  if (now->index0 >= 0 && left >= 16 * b) {
#pragma unroll
    for (int r = 0; r < rounds; ++r)
      if (lane + 32 * r < 2 * b) stream_store(y + 256 * r, u[r]);
    return matrix_nan(sum);
  }
#pragma unroll
  for (int r = 0; r < rounds; ++r)
    if (now->index0 + lane * 8 + 256 * r >= 0 && lane * 8 + 256 * r + 8 <= left && lane + 32 * r < 2 * b)
      stream_store(y + 256 * r, u[r]);
  /* lanes 0..7: the piece before output 0; 8..15: the one that ends the row */
  const int c = lane < 8 ? 0 : left >> 3, q = now->index0 + c * 8, ends = lane < 16 && left > 0 && c < 2 * b;
  if (ends && (lane < 8) == (q < 0) && (unsigned)(q + lane % 8) < (unsigned)length)
    now->y[q + lane % 8] = ((const hk_cu_u16 *)(stage + toeplitz_piece(c, b)))[lane % 8];
  return matrix_nan(sum);
}

/* Recomputes the NaN results of tiles place.. of this warp. A function of its own: a call inside the main loop would
 * cost it registers. */
static __device__ __noinline__ void stream_recompute_nan(const hk_cu_dw *P, int place, int end, int tile) {
#pragma unroll 1
  for (; place < end; ++place) {
    const int line = place / (unsigned)P->toeplitz.lane_blocks;
    toeplitz_row at;
    toeplitz_find(P, line, &at);
    const int index0 = (place - line * P->toeplitz.lane_blocks) * tile - at.skew;
#pragma unroll 1
    for (int q = index0 + threadIdx.x % 32; q < index0 + tile; q += 32) {
      if ((unsigned)q >= (unsigned)P->g.out[2]) continue;
      const float v = dw_half(TYPE, ((const volatile hk_cu_u16 *)P->e.y)[at.y + q]);
      if (v != v) toeplitz_recompute(P, line, q);
    }
  }
}

HK_DEV void toeplitz_stream(const hk_cu_dw *P, char *raw, const int b) {
  const unsigned warp = threadIdx.x / 32, warps = gridDim.x * (HK_STREAM_THREADS / 32),
                 id = blockIdx.x * (HK_STREAM_THREADS / 32) + warp;
  const unsigned share = P->toeplitz.places / warps, spare = P->toeplitz.places - share * warps;
  const int first = (int)(id * share + (id < spare ? id : spare));
  int left = (int)(share + (id < spare)), line = first / (unsigned)P->toeplitz.lane_blocks,
      tile = first - line * P->toeplitz.lane_blocks, side = 0, nan = 0;
  if (!left) return;
  char *own = raw + warp * P->toeplitz.buffer_bytes;
  const hk_cu_u32 taps = dw_shared(own) + P->toeplitz.taps_at;
  stream_row row = stream_find(P, line, taps + line % 2 * P->taps_bytes);
  stream_tile next = {row.y, line, tile * 16 * b - row.skew, 0};
  next.skew = stream_copy(P, row, next.index0, b, own);
  asm volatile("cp.async.commit_group;" ::: "memory");
#pragma unroll 1
  for (; left > 0; --left, side ^= 1) {
    const stream_tile now = next;
    if (left > 1) {
      if (++tile == P->toeplitz.lane_blocks) {
        tile = 0, ++line;
        row = stream_find(P, line, taps + line % 2 * P->taps_bytes);
      }
      next.y = row.y, next.line = line, next.index0 = tile * 16 * b - row.skew;
      next.skew = stream_copy(P, row, next.index0, b, own + (side ^ 1) * P->toeplitz.line_bytes);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncwarp();
    char *x = own + side * P->toeplitz.line_bytes;
    float acc[8][4];
#pragma unroll
    for (int i = 0; i < b / 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[i][j] = 0.0f;
    stream_multiply(P, dw_shared(x), taps + now.line % 2 * P->taps_bytes, now.skew, b, acc);
    __syncwarp();
    toeplitz_put(dw_shared(x), b, acc);
    __syncwarp();
    nan |= stream_store_tile(P, &now, x, b);
    __syncwarp();
  }
  if (__any_sync(0xffffffffu, nan)) stream_recompute_nan(P, first, first + (int)(share + (id < spare)), 16 * b);
}
