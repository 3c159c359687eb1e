/* hk_tapsum_line_<type>_<rt>_<st>: neighbouring threads are neighbouring positions of dy's rows. A warp has one channel
 * of x and one of dy and keeps the sums of RT x ST taps in every lane, which takes four positions at a time; at the end
 * the lanes are added in a fixed order. */
#define XS (3 + ST)

HK_DEV float LINE(load)(const ELEMENT *from, int in) { return in ? WIDEN(*from) : 0.0f; }

/* Where four positions of dy and their taps are. */
typedef struct LINE(place) {
  const ELEMENT *x, *f; /* of x the image */
  int i1, i2, left;     /* the first tap's position, positions of dy that exist */
} LINE(place);

HK_DEV LINE(place) LINE(find)(const hk_cu_tapsum *P, int unit, int p0, int p1, int p2) {
  const hk_cu_geom *g = &P->d.g;
  LINE(place) at;
  const int row = div_by(unit, P->by_segments), s2 = (unit - row * P->segments) * 4;
  const tapsum_row r = tapsum_row_at(P, row);
  const hk_cu_i64 i0 = p0 * g->stride[0] + r.s0 * g->dil[0] - g->lo[0];
  at.i1 = (int)(p1 * g->stride[1] + r.s1 * g->dil[1] - g->lo[1]);
  at.i2 = (int)(p2 * g->stride[2] + s2 * g->dil[2] - g->lo[2]);
  at.left = i0 < 0 || i0 >= g->in[0] ? 0 : (int)g->win[2] - s2;
  at.x = (const ELEMENT *)P->d.x + r.c * g->x.channel + i0 * g->x.at[0];
  at.f = (const ELEMENT *)P->d.f + r.c * g->f.channel + r.s0 * g->f.at[0] + r.s1 * g->f.at[1] + s2 * g->f.at[2];
  return at;
}

HK_DEV void LINE(add)(const hk_cu_geom *g, LINE(place) at, float (*acc)[ST]) {
  const int slides = g->stride[2] == 1 && g->dil[2] == 1;
  float ys[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) ys[u] = LINE(load)(at.f + u * g->f.at[2], u < at.left);
#pragma unroll
  for (int r = 0; r < RT; ++r) {
    const int i1 = at.i1 + r * (int)g->stride[1], in = at.left > 0 && (unsigned)i1 < (unsigned)g->in[1];
    const ELEMENT *x = at.x + i1 * g->x.at[1];
    if (slides) {
      float xs[XS];
#pragma unroll
      for (int j = 0; j < XS; ++j)
        xs[j] = LINE(load)(x + (at.i2 + j) * g->x.at[2], in && (unsigned)(at.i2 + j) < (unsigned)g->in[2]);
#pragma unroll
      for (int u = 0; u < 4; ++u)
#pragma unroll
        for (int p = 0; p < ST; ++p) acc[r][p] = u < at.left ? fmaf(xs[u + p], ys[u], acc[r][p]) : acc[r][p];
    } else {
#pragma unroll
      for (int u = 0; u < 4; ++u)
#pragma unroll
        for (int p = 0; p < ST; ++p) {
          const int i = at.i2 + u * (int)g->dil[2] + p * (int)g->stride[2];
          const float xv = LINE(load)(x + i * g->x.at[2], in && (unsigned)i < (unsigned)g->in[2]);
          acc[r][p] = u < at.left ? fmaf(xv, ys[u], acc[r][p]) : acc[r][p];
        }
    }
  }
}

/* What a warp has. */
typedef struct LINE(part) {
  int slice, pair, row, n, group, k; /* row: k over all groups */
  int p0, p1, p2;                    /* the first tap */
} LINE(part);

HK_DEV LINE(part) LINE(part_of)(const hk_cu_tapsum *P) {
  const hk_cu_i64 warp = (hk_cu_i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int job = (int)(warp % P->jobs), across = job / P->p2_tiles;
  LINE(part) a;
  a.slice = (int)(warp / P->jobs % P->slices), a.pair = (int)(warp / P->jobs / P->slices);
  a.row = div_by(a.pair, P->by_n), a.n = a.pair - a.row * (int)P->by_n.d, a.group = div_by(a.row, P->by_k);
  a.k = a.row - a.group * (int)P->by_k.d;
  a.p0 = across / P->p1_tiles, a.p1 = across % P->p1_tiles * RT, a.p2 = job % P->p2_tiles * ST;
  return a;
}

HK_DEV void LINE(emit)(const hk_cu_tapsum *P, LINE(part) a, float (*acc)[ST]) {
  const hk_cu_geom *g = &P->d.g;
#pragma unroll
  for (int r = 0; r < RT; ++r)
#pragma unroll
    for (int p = 0; p < ST; ++p) {
#pragma unroll
      for (int m = 16; m; m /= 2) acc[r][p] += __shfl_xor_sync(0xffffffffu, acc[r][p], m);
      if (threadIdx.x % 32 == 0 && a.p1 + r < (int)g->out[1] && a.p2 + p < (int)g->out[2])
        tapsum_emit(P, a.slice,
                    (a.row * P->taps + (a.p0 * (int)g->out[1] + a.p1 + r) * (int)g->out[2] + a.p2 + p) * (int)g->n +
                        a.n,
                    acc[r][p]);
    }
}

extern "C" __global__ void __launch_bounds__(128) LINE(hk_tapsum_line)(const __grid_constant__ hk_cu_tapsum P) {
  const hk_cu_geom *g = &P.d.g;
  const LINE(part) a = LINE(part_of)(&P);
  if (a.pair >= P.pairs) return;
  const int end = tapsum_first(&P, a.slice + 1);
  float acc[RT][ST] = {};
#pragma unroll 1
  for (int unit = tapsum_first(&P, a.slice) + (int)threadIdx.x % 32; unit < end; unit += 32) {
    LINE(place) at = LINE(find)(&P, unit, a.p0, a.p1, a.p2);
    at.x += a.group * g->x.group + a.n * g->x.outer;
    at.f += a.group * g->f.group + a.k * g->f.outer;
    LINE(add)(g, at, acc);
  }
  LINE(emit)(&P, a, acc);
}
#undef XS
#if RT >= 5
#include "cuda/gradient/walk.cuh"
#endif
#undef RT
#undef ST
#undef LINE
