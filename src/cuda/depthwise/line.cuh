/* Stores a run of consecutive outputs of one channel from shared memory to y, for the channels-first kernels:
 * epilogue, conversion, aligned 16-byte stores, single elements at the ends and where y is not contiguous. */
#ifndef HK_CUDA_DW_LINE_CUH
#define HK_CUDA_DW_LINE_CUH
#include "cuda/depthwise/common.cuh"

typedef struct dw_line { int n, k, p[3], length; } dw_line; /* p[2]: first output */

/* Finishes and stores the `per` valid sums that start at output o of the run. */
HK_DEV void dw_line_piece(const hk_cu_dw *P, int type, dw_line l, hk_cu_i64 yo, hk_cu_i64 co, int o, float *v) {
  const hk_cu_geom *g = &P->g;
  const int per = 16 / dw_type_bytes(type);
  if (!P->plain) {
    float cv[8];
    if (P->e.residual) {
#pragma unroll
      for (int j = 0; j < per; ++j) cv[j] = load_f32(P->e.c, co + (o + j) * g->c.at[2], g->y_type);
    }
    dw_finish(&P->e, per, per, l.k, 0, cv, v);
  }
  *(uint4 *)((char *)P->e.y + (yo + o) * dw_type_bytes(type)) = dw_pack(type, v);
}

/* Finishes and stores one output of the run: at the ends, and wherever y is not contiguous. */
HK_DEV void dw_line_single(const hk_cu_dw *P, dw_line l, hk_cu_i64 yo, hk_cu_i64 co, int o, float v) {
  const hk_cu_geom *g = &P->g;
  float cv = P->e.residual ? load_f32(P->e.c, co + o * g->c.at[2], g->y_type) : 0.0f;
  dw_finish(&P->e, 1, 1, l.k, 0, &cv, &v);
  store_f32(P->e.y, yo + o * g->y.at[2], g->y_type, v);
}

/* Whether the run is stored in 16-byte pieces, and how many elements before its first output the aligned address is. */
HK_DEV int dw_line_wide(const hk_cu_dw *P, int type) { return P->g.y.at[2] == 1 && P->g.y_type == type; }
HK_DEV int dw_line_skew(const hk_cu_dw *P, int type, dw_line l) {
  const hk_cu_i64 yo = pixel_offset(&P->g.y, l.n, l.p) + dw_channel(&P->g, &P->g.y, l.k);
  return dw_line_wide(P, type)
             ? (int)((hk_cu_u64)((const char *)P->e.y + yo * dw_type_bytes(type)) & 15) / dw_type_bytes(type)
             : 0;
}
/* Index of sum i: with the skew as shift, pieces read at constant offsets. */
HK_DEV int dw_line_at(int i) { return i + (int)((unsigned)i / 8); }

/* Sum i of the run is at sums[dw_line_at(i + shift)]. A thread stores pieces rank, rank + ranks.. */
HK_DEV void dw_line_store(const hk_cu_dw *P, int type, dw_line l, float *sums, int shift, int rank, int ranks,
                          const int leaks) {
  const hk_cu_geom *g = &P->g;
  const int per = 16 / dw_type_bytes(type);
  const hk_cu_i64 yo = pixel_offset(&g->y, l.n, l.p) + dw_channel(g, &g->y, l.k);
  const hk_cu_i64 co = P->e.residual ? pixel_offset(&g->c, l.n, l.p) + dw_channel(g, &g->c, l.k) : 0;
  const int wide = dw_line_wide(P, type), skew = dw_line_skew(P, type, l);
  const int pieces = (l.length + skew + per - 1) / per;
  int rest = 0; /* pieces left for the second pass: the ends, those with a NaN */
#pragma unroll 1
  for (int c = rank; c < pieces; c += ranks) {
    const int o = c * per - skew;
    if (!wide || o < 0 || o + per > l.length) {
      rest = 1;
      continue;
    }
    float v[8], all = 0.0f;
    const float *from = sums + dw_line_at(c * per);
#pragma unroll
    for (int j = 0; j < per; ++j) {
      v[j] = shift == skew ? from[j] : sums[dw_line_at(o + j + shift)];
      all += v[j];
    }
    if (leaks && all != all) rest = 1;
    else dw_line_piece(P, type, l, yo, co, o, v);
  }
  if (!rest) return;
#pragma unroll 1
  for (int c = rank; c < pieces; c += ranks) {
    const int o = c * per - skew;
    float all = 0.0f;
    if (wide && o >= 0 && o + per <= l.length) {
      for (int j = 0; j < per; ++j) all += sums[dw_line_at(o + j + shift)];
      if (!leaks || all == all) continue;
    }
#pragma unroll 1
    for (int j = o < 0 ? 0 : o; j < o + per && j < l.length; ++j) {
      float v = sums[dw_line_at(j + shift)];
      if (leaks && v != v) v = dw_plain(P, type, l.n, l.p[0], l.p[1], l.p[2] + j, l.k);
      dw_line_single(P, l, yo, co, j, v);
    }
  }
}
#endif
