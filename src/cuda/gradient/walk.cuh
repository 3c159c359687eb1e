/* hk_tapsum_walk_<type>_<rt>_<st>: as line.cuh, where rows are contiguous and their strides and dilations 1. A lane has
 * a run of 8 positions of dy's rows and walks down rows of x with the last RT rows of dy in registers: each row of x is
 * loaded once, by vectors, while the one before meets them. For windows of 5 rows and more. */
#ifndef HK_TAPSUM_WALK
#define HK_TAPSUM_WALK
enum { WALK_RUN = 8, WALK_WORDS = WALK_RUN * TYPE_BYTES / 4, WALK_PER = 4 / TYPE_BYTES };

/* Eight positions of a row from `at` on, zeros outside its `size`; a vector of so many bytes is inside or outside. */
HK_DEV void walk_load(const ELEMENT *row, int at, int size, int bytes, hk_cu_u32 *v) {
#pragma unroll
  for (int i = 0; i < WALK_WORDS; ++i) v[i] = 0;
  if (bytes == 16) {
#pragma unroll
    for (int i = 0; i < WALK_WORDS; i += 4)
      if ((unsigned)(at + i * WALK_PER) < (unsigned)size) {
        const uint4 q = *(const uint4 *)(row + at + i * WALK_PER);
        v[i] = q.x, v[i + 1] = q.y, v[i + 2] = q.z, v[i + 3] = q.w;
      }
  } else if (bytes == 8) {
#pragma unroll
    for (int i = 0; i < WALK_WORDS; i += 2)
      if ((unsigned)(at + i * WALK_PER) < (unsigned)size) {
        const uint2 q = *(const uint2 *)(row + at + i * WALK_PER);
        v[i] = q.x, v[i + 1] = q.y;
      }
  } else if (bytes == 4) {
#pragma unroll
    for (int i = 0; i < WALK_WORDS; ++i)
      if ((unsigned)(at + i * WALK_PER) < (unsigned)size) v[i] = *(const hk_cu_u32 *)(row + at + i * WALK_PER);
  } else {
#pragma unroll
    for (int i = 0; i < WALK_RUN; ++i)
      if ((unsigned)(at + i) < (unsigned)size) v[i / 2] |= (hk_cu_u32)((const hk_cu_u16 *)row)[at + i] << i % 2 * 16;
  }
}

/* Element i of what was loaded. */
HK_DEV float walk_value(const hk_cu_u32 *v, int i) {
#if TYPE_BYTES == 4
  return __uint_as_float(v[i]);
#else
  return WIDEN((hk_cu_u16)(v[i / 2] >> i % 2 * 16));
#endif
}

/* Moves `shift` < 8 elements out at the front. */
HK_DEV void walk_shift(hk_cu_u32 *v, int shift) {
  enum { COUNT = 3 * WALK_WORDS };
#pragma unroll
  for (int by = 4 / WALK_PER; by; by /= 2)
#pragma unroll
    for (int i = 0; i + by < COUNT; ++i) v[i] = shift & by * WALK_PER ? v[i + by] : v[i];
#if TYPE_BYTES == 2
#pragma unroll
  for (int i = 0; i + 1 < COUNT; ++i) v[i] = shift & 1 ? v[i] >> 16 | v[i + 1] << 16 : v[i];
#endif
}
#endif

typedef struct LINE(strip) {
  const ELEMENT *x, *f;  /* the rows that come next */
  int x_at, f_at, shift; /* their first positions that are loaded; those of x before the first tap's */
  int row, first, rows;  /* of dy the next row, of x the first row of the strip and how many */
} LINE(strip);

/* Where a unit lies; rows is 0 where it is outside x. */
HK_DEV LINE(strip) LINE(strip_of)(const hk_cu_tapsum *P, LINE(part) a, int unit) {
  const hk_cu_geom *g = &P->d.g;
  LINE(strip) s;
  const int line = div_by(unit, P->by_segments), run = unit - line * P->segments, up = div_by(line, P->by_strips);
  const int c = div_by(up, P->by_win[0]), s0 = up - c * (int)P->by_win[0].d, t = a.p2 - (int)g->lo[2];
  const hk_cu_i64 i0 = a.p0 * g->stride[0] + s0 * g->dil[0] - g->lo[0];
  s.first = (line - up * P->strips) * P->band;
  s.rows = i0 < 0 || i0 >= g->in[0] ? 0 : min(P->band, P->steps - s.first);
  s.row = s.first + (int)g->lo[1] - a.p1;
  s.shift = t & WALK_RUN - 1, s.f_at = run * WALK_RUN, s.x_at = s.f_at + t - s.shift;
  s.x = (const ELEMENT *)P->d.x + a.group * g->x.group + a.n * g->x.outer + c * g->x.channel + i0 * g->x.at[0] +
        s.first * g->x.at[1];
  s.f = (const ELEMENT *)P->d.f + a.group * g->f.group + a.k * g->f.outer + c * g->f.channel + s0 * g->f.at[0] +
        s.row * g->f.at[1];
  return s;
}

/* Row s.row + by of dy. */
HK_DEV void LINE(load_f)(const hk_cu_tapsum *P, const LINE(strip) * s, int by, hk_cu_u32 *v) {
  const hk_cu_geom *g = &P->d.g;
  const int size = (unsigned)(s->row + by) < (unsigned)g->win[1] ? (int)g->win[2] : 0;
  walk_load(s->f + by * g->f.at[1], s->f_at, size, P->f_vector, v);
}

HK_DEV void LINE(load_x)(const hk_cu_tapsum *P, const LINE(strip) * s, hk_cu_u32 *v) {
  const int size = (int)P->d.g.in[2];
#pragma unroll
  for (int i = 0; i < 3; ++i) /* the third run only where taps reach it */
    walk_load(s->x, s->x_at + i * WALK_RUN, i < 2 || s->shift + ST > WALK_RUN + 1 ? size : 0, P->x_vector,
              v + i * WALK_WORDS);
}

HK_DEV void LINE(walk)(const hk_cu_tapsum *P, LINE(strip) s, float (*acc)[ST]) {
  float window[RT][WALK_RUN] = {};
  hk_cu_u32 x[3 * WALK_WORDS], f[WALK_WORDS];
#pragma unroll
  for (int r = 0; r + 1 < RT; ++r) {
    LINE(load_f)(P, &s, -1 - r, f);
#pragma unroll
    for (int u = 0; u < WALK_RUN; ++u) window[r][u] = walk_value(f, u);
  }
  LINE(load_f)(P, &s, 0, f);
  LINE(load_x)(P, &s, x);
#pragma unroll 1
  for (int row = 1; row <= s.rows; ++row) {
    float xs[WALK_RUN - 1 + ST];
    walk_shift(x, s.shift);
#pragma unroll
    for (int j = 0; j < WALK_RUN - 1 + ST; ++j) xs[j] = walk_value(x, j);
#pragma unroll
    for (int u = 0; u < WALK_RUN; ++u) {
#pragma unroll
      for (int r = RT - 1; r > 0; --r) window[r][u] = window[r - 1][u];
      window[0][u] = walk_value(f, u);
    }
    if (row < s.rows) {
      s.row += 1, s.x += P->d.g.x.at[1], s.f += P->d.g.f.at[1];
      LINE(load_f)(P, &s, 0, f);
      LINE(load_x)(P, &s, x);
    }
#pragma unroll
    for (int u = 0; u < WALK_RUN; ++u)
#pragma unroll
      for (int r = 0; r < RT; ++r)
#pragma unroll
        for (int p = 0; p < ST; ++p) acc[r][p] = fmaf(xs[u + p], window[r][u], acc[r][p]);
  }
}

extern "C" __global__ void __launch_bounds__(128, RT == 7 ? 3 : 4)
    LINE(hk_tapsum_walk)(const __grid_constant__ hk_cu_tapsum P) {
  const LINE(part) a = LINE(part_of)(&P);
  if (a.pair >= P.pairs) return;
  const int end = tapsum_first(&P, a.slice + 1);
  float acc[RT][ST] = {};
#pragma unroll 1
  for (int unit = tapsum_first(&P, a.slice) + (int)threadIdx.x % 32; unit < end; unit += 32) {
    const LINE(strip) s = LINE(strip_of)(&P, a, unit);
    if (s.rows) LINE(walk)(&P, s, acc);
  }
  LINE(emit)(&P, a, acc);
}
