/* hk_tapsum_tile: the general kernel, for every type, layout, stride and dilation. A block sums 64 channels k by 64
 * columns (tap, n) of a group over a slice of the reduction (c, s0, s1, s2), 16 places at a time: their values in f32
 * in shared memory, while those of the next 16 are loaded. Padding is zeros. */
enum { TILE = 64, TILE_DEPTH = 16, TILE_PITCH = 68, TILE_LOADS = TILE * TILE_DEPTH / 256 };

typedef struct tile_place { /* of a column, or of a place of the reduction: offset in x, position in the dilated x */
  hk_cu_i64 x, f;
  int i[3], in;
} tile_place;

typedef struct tile_room {
  float f[2][TILE_DEPTH][TILE_PITCH], x[2][TILE_DEPTH][TILE_PITCH];
  tile_place column[TILE], place[2][TILE_DEPTH];
} tile_room;

HK_DEV tile_place tile_column(const hk_cu_tapsum *P, int column) {
  const hk_cu_geom *g = &P->d.g;
  const int tap = div_by(column, P->by_n), line = div_by(tap, P->by_out[2]), p0 = div_by(line, P->by_out[1]);
  tile_place c;
  c.in = tap < P->taps;
  c.x = (column - tap * (int)P->by_n.d) * g->x.outer, c.f = 0;
  c.i[2] = (int)((tap - line * (int)P->by_out[2].d) * g->stride[2] - g->lo[2]);
  c.i[1] = (int)((line - p0 * (int)P->by_out[1].d) * g->stride[1] - g->lo[1]);
  c.i[0] = (int)(p0 * g->stride[0] - g->lo[0]);
  return c;
}

/* Place i of the reduction: rows of s2. */
HK_DEV tile_place tile_place_at(const hk_cu_tapsum *P, int i) {
  const hk_cu_geom *g = &P->d.g;
  tile_place p;
  const int row = div_by(i, P->by_win[2]), s2 = i - row * (int)P->by_win[2].d;
  const tapsum_row r = tapsum_row_at(P, row);
  p.in = i < P->units;
  p.x = r.c * g->x.channel;
  p.f = r.c * g->f.channel + r.s0 * g->f.at[0] + r.s1 * g->f.at[1] + s2 * g->f.at[2];
  p.i[0] = (int)(r.s0 * g->dil[0]), p.i[1] = (int)(r.s1 * g->dil[1]), p.i[2] = (int)(s2 * g->dil[2]);
  return p;
}

HK_DEV float tile_x(const hk_cu_tapsum *P, const tile_place *c, const tile_place *p, hk_cu_i64 base) {
  const hk_cu_geom *g = &P->d.g;
  hk_cu_i64 at = base + c->x + p->x;
  int in = c->in && p->in;
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    int i = c->i[d] + p->i[d];
    in &= i >= 0;
    if (g->in_dil[d] > 1) {
      const int dil = (int)g->in_dil[d], to = i / dil;
      in &= to * dil == i;
      i = to;
    }
    in &= i < g->in[d];
    at += i * g->x.at[d];
  }
  return in ? load_f32(P->d.x, at, g->x_type) : 0.0f;
}

/* Which of the 64 channels or columns, and which place, load j of this thread takes. */
HK_DEV int tile_row(int rows, int j) {
  return rows ? threadIdx.x % TILE : threadIdx.x / TILE_DEPTH + j * (256 / TILE_DEPTH);
}
HK_DEV int tile_depth(int rows, int j) {
  return rows ? threadIdx.x / TILE + j * (256 / TILE) : threadIdx.x % TILE_DEPTH;
}

typedef struct tile_next {
  float f[TILE_LOADS], x[TILE_LOADS];
} tile_next;

HK_DEV tile_next tile_load(const hk_cu_tapsum *P, const tile_room *room, int buffer, int group, int k0) {
  const hk_cu_geom *g = &P->d.g;
  tile_next v;
#pragma unroll
  for (int j = 0; j < TILE_LOADS; ++j) {
    const tile_place *p = &room->place[buffer][tile_depth(P->f_rows, j)];
    const int k = k0 + tile_row(P->f_rows, j);
    v.f[j] = p->in && k < (int)g->kg ? load_f32(P->d.f, group * g->f.group + k * g->f.outer + p->f, g->f_type) : 0.0f;
    v.x[j] = tile_x(P, &room->column[tile_row(P->x_rows, j)], &room->place[buffer][tile_depth(P->x_rows, j)],
                    group * g->x.group);
  }
  return v;
}

HK_DEV void tile_put(const hk_cu_tapsum *P, tile_room *room, int buffer, tile_next v) {
#pragma unroll
  for (int j = 0; j < TILE_LOADS; ++j) {
    room->f[buffer][tile_depth(P->f_rows, j)][tile_row(P->f_rows, j)] = v.f[j];
    room->x[buffer][tile_depth(P->x_rows, j)][tile_row(P->x_rows, j)] = v.x[j];
  }
}

HK_DEV void tile_add(const tile_room *room, int buffer, float (*acc)[4]) {
  const int m = threadIdx.x / 16 * 4, n = threadIdx.x % 16 * 4;
#pragma unroll
  for (int d = 0; d < TILE_DEPTH; ++d) {
    const float4 a = *(const float4 *)&room->f[buffer][d][m], b = *(const float4 *)&room->x[buffer][d][n];
    const float av[4] = {a.x, a.y, a.z, a.w}, bv[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(av[i], bv[j], acc[i][j]);
  }
}

extern "C" __global__ void __launch_bounds__(256) hk_tapsum_tile(const __grid_constant__ hk_cu_tapsum P) {
  __shared__ __align__(16) tile_room room;
  const hk_cu_geom *g = &P.d.g;
  const int nt = blockIdx.x % P.n_tiles, up = blockIdx.x / P.n_tiles, mt = up % P.m_tiles;
  const int group = up / P.m_tiles % (int)g->groups, slice = up / P.m_tiles / (int)g->groups;
  const int first = tapsum_first(&P, slice), end = tapsum_first(&P, slice + 1);
  if (threadIdx.x < TILE) room.column[threadIdx.x] = tile_column(&P, nt * TILE + threadIdx.x);
  if (threadIdx.x < TILE_DEPTH) {
    room.place[0][threadIdx.x] = tile_place_at(&P, first + threadIdx.x);
    room.place[0][threadIdx.x].in &= first + (int)threadIdx.x < end;
  }
  __syncthreads();
  float acc[4][4] = {};
  tile_next next = tile_load(&P, &room, 0, group, mt * TILE);
  int buffer = 0;
#pragma unroll 1
  for (int at = first; at < end; at += TILE_DEPTH) {
    tile_put(&P, &room, buffer, next);
    if (threadIdx.x < TILE_DEPTH) {
      const int i = at + TILE_DEPTH + threadIdx.x;
      room.place[!buffer][threadIdx.x] = tile_place_at(&P, i);
      room.place[!buffer][threadIdx.x].in &= i < end;
    }
    __syncthreads();
    if (at + TILE_DEPTH < end) next = tile_load(&P, &room, !buffer, group, mt * TILE);
    tile_add(&room, buffer, acc);
    buffer = !buffer;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int k = mt * TILE + threadIdx.x / 16 * 4 + i, column = nt * TILE + threadIdx.x % 16 * 4 + j;
      const int columns = P.taps * (int)g->n;
      if (k < (int)g->kg && column < columns)
        tapsum_emit(&P, slice, (group * (int)g->kg + k) * columns + column, acc[i][j]);
    }
}
