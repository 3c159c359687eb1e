/* hk_tapsum_lane_<type>_<v>_<kt>_<st>_<dil>: neighbouring threads are neighbouring channels of x, over all groups. A
 * thread keeps the sums of V channels of x, KT channels of dy and ST taps along the last dimension while it walks
 * along rows of dy; U positions at a time share what they load of x. DIL: the window's dilation where taps of y are
 * neighbours in x; 0: any. Threads do not wait for each other. */
#define XS ((U - 1) * DIL + ST)

HK_DEV void LANE(load)(const ELEMENT *from, int in, float *v) {
#if V == 2
  const hk_cu_u32 both = in ? *(const hk_cu_u32 *)from : 0u;
  v[0] = WIDEN((hk_cu_u16)both), v[1] = WIDEN((hk_cu_u16)(both >> 16));
#else
  v[0] = in ? WIDEN(*from) : 0.0f;
#endif
}

typedef struct LANE(place) {
  const ELEMENT *x, *f;
  hk_cu_i64 x_step, f_step, f_outer;
  int i2, in2, stride, dil; /* the first tap's position in x, and its steps */
  int live_k;
} LANE(place);

/* Adds `left` positions, at most U. Padding is not multiplied. */
HK_DEV void LANE(add)(LANE(place) at, int left, float (*acc)[ST][V]) {
  float ys[U][KT][V];
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int k = 0; k < KT; ++k)
      LANE(load)(at.f + u * at.f_step + k * at.f_outer, u < left && (KT == 1 || k < at.live_k), ys[u][k]);
#if DIL
  float xs[XS][V];
#pragma unroll
  for (int j = 0; j < XS; ++j)
    LANE(load)(at.x + (at.i2 + j) * at.x_step, (unsigned)(at.i2 + j) < (unsigned)at.in2, xs[j]);
#endif
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int p = 0; p < ST; ++p) {
#if DIL
      const int in = u < left && (unsigned)(at.i2 + u * DIL + p) < (unsigned)at.in2;
      const float *x = xs[u * DIL + p];
#else
      const int i = at.i2 + u * at.dil + p * at.stride, in = u < left && (unsigned)i < (unsigned)at.in2;
      float x[V];
      LANE(load)(at.x + i * at.x_step, in, x);
#endif
#pragma unroll
      for (int k = 0; k < KT; ++k)
#pragma unroll
        for (int v = 0; v < V; ++v) acc[k][p][v] = in ? fmaf(x[v], ys[u][k][v], acc[k][p][v]) : acc[k][p][v];
    }
}

#if DIL
/* The same, all U positions and their taps inside. */
HK_DEV void LANE(add_inside)(LANE(place) at, float (*acc)[ST][V]) {
  float xs[XS][V], ys[U][KT][V];
  const ELEMENT *x = at.x + at.i2 * at.x_step;
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int k = 0; k < KT; ++k)
      LANE(load)(at.f + u * at.f_step + k * at.f_outer, KT == 1 || k < at.live_k, ys[u][k]);
#pragma unroll
  for (int j = 0; j < XS; ++j) LANE(load)(x + j * at.x_step, 1, xs[j]);
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int p = 0; p < ST; ++p)
#pragma unroll
      for (int k = 0; k < KT; ++k)
#pragma unroll
        for (int v = 0; v < V; ++v) acc[k][p][v] = fmaf(xs[u * DIL + p][v], ys[u][k][v], acc[k][p][v]);
}
#endif

extern "C" __global__ void __launch_bounds__(384) LANE(hk_tapsum_lane)(const __grid_constant__ hk_cu_tapsum P) {
  const hk_cu_geom *g = &P.d.g;
  const int block = blockIdx.x, slot = threadIdx.x / P.lanes, per = block / P.chunks;
  const int job = per % P.job_blocks * P.jobs_block + slot % P.jobs_block;
  const int slice = per / P.job_blocks * P.subs + slot / P.jobs_block;
  const int e = (block % P.chunks * P.lanes + (int)threadIdx.x % P.lanes) * V;
  if (job >= P.jobs || slice >= P.slices || e >= (int)(g->groups * g->n)) return;
  const int group = div_by(e, P.by_n), n = e - group * (int)P.by_n.d, tile = job / P.k_tiles;
  const int k0 = job % P.k_tiles * KT, p2 = tile % P.p2_tiles * ST, line = tile / P.p2_tiles;
  const int p0 = div_by(line, P.by_out[1]), p1 = line - p0 * (int)P.by_out[1].d;
  const hk_cu_i64 x0 = group * g->x.group + n * g->x.outer, f0 = group * g->f.group + k0 * g->f.outer;
  LANE(place) at;
  at.x_step = g->x.at[2], at.f_step = g->f.at[2], at.f_outer = g->f.outer, at.live_k = (int)g->kg - k0;
  at.in2 = (int)g->in[2], at.stride = (int)g->stride[2], at.dil = (int)g->dil[2];
  float acc[KT][ST][V] = {};
  const int end = tapsum_first(&P, slice + 1);
#pragma unroll 1
  for (int unit = tapsum_first(&P, slice); unit < end; ++unit) {
    const int row = div_by(unit, P.by_segments), first = (unit - row * P.segments) * P.segment;
    const int last = min(first + P.segment, (int)g->win[2]);
    const tapsum_row r = tapsum_row_at(&P, row);
    const hk_cu_i64 i0 = p0 * g->stride[0] + r.s0 * g->dil[0] - g->lo[0];
    const hk_cu_i64 i1 = p1 * g->stride[1] + r.s1 * g->dil[1] - g->lo[1];
    if (i0 < 0 || i0 >= g->in[0] || i1 < 0 || i1 >= g->in[1]) continue;
    at.x = (const ELEMENT *)P.d.x + x0 + r.c * g->x.channel + i0 * g->x.at[0] + i1 * g->x.at[1];
    at.f = (const ELEMENT *)P.d.f + f0 + r.c * g->f.channel + r.s0 * g->f.at[0] + r.s1 * g->f.at[1] + first * at.f_step;
    at.i2 = (int)(p2 * g->stride[2] + first * g->dil[2] - g->lo[2]);
#pragma unroll 1
    for (int s = first; s < last; s += U) {
#if DIL
      if (s + U <= last && at.i2 >= 0 && at.i2 + XS <= at.in2) LANE(add_inside)(at, acc);
      else
#endif
        LANE(add)(at, last - s, acc);
      at.f += U * at.f_step, at.i2 += U * at.dil;
    }
  }
#pragma unroll
  for (int k = 0; k < KT; ++k)
#pragma unroll
    for (int p = 0; p < ST; ++p)
#pragma unroll
      for (int v = 0; v < V; ++v)
        if (k0 + k < (int)g->kg && p2 + p < (int)g->out[2])
          tapsum_emit(&P, slice, (((group + v) * (int)g->kg + k0 + k) * P.taps + line * (int)g->out[2] + p2 + p) *
                                     (int)g->n + n, acc[k][p][v]);
}
#undef XS
#undef V
#undef KT
#undef ST
#undef U
#undef DIL
#undef LANE
