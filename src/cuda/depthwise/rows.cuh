/* Shared by the Toeplitz kernels of 16-bit and of f32 rows: the row of a block, its packed weights, the epilogue on
 * the sums of 16 windows of B outputs, recomputation of NaN. The including file defines TYPE. */
#ifndef HK_CUDA_DW_ROWS_CUH
#define HK_CUDA_DW_ROWS_CUH
#include "cuda/depthwise/line.cuh"

/* An output row. */
typedef struct toeplitz_row {
  hk_cu_i64 image, filter, y;        /* element offsets: of the channel in x and in f; of the row's first output */
  int n, k, p0, p1;
  int skew;                          /* outputs between the start of the tiles and the row */
} toeplitz_row;

HK_DEV dw_line toeplitz_line(const toeplitz_row *row) {
  dw_line l = {row->n, row->k, {row->p0, row->p1, 0}, 0};
  return l;
}

/* Finds output row `line` of all (n, channel, depth, row). */
HK_DEV void toeplitz_find(const hk_cu_dw *P, int line, toeplitz_row *to) {
  const hk_cu_geom *g = &P->g;
  const int a = dw_div(P->div_out1, line), b = dw_div(P->div_out0, a);
  to->p1 = line - a * (int)g->out[1];
  to->p0 = a - b * (int)g->out[0];
  to->n = dw_div(P->div_channels, b);
  to->k = b - to->n * P->channels;
  const int group = g->kg == 1 ? to->k : to->k / (int)g->kg;
  const dw_line l = toeplitz_line(to);
  to->image = to->n * g->x.outer + group * g->x.group;
  to->filter = dw_filter(g, to->k);
  to->y = pixel_offset(&g->y, l.n, l.p) + dw_channel(g, &g->y, l.k);
  to->skew = dw_line_skew(P, TYPE, l);
}

/* Copies the packed weights of tap row `row` to shared memory. */
HK_DEV void toeplitz_packed(const hk_cu_dw *P, int k, int row, int rank, int ranks, hk_cu_u32 *to) {
  const int rows = P->taps / P->taps_u;
  const char *from = (const char *)P->packed + ((hk_cu_i64)k * rows + row) * P->taps_bytes;
  for (int i = rank; i < P->taps_bytes / 16; i += ranks) dw_copy16(dw_shared(to + i * 4), from + i * 16, 16);
}

/* Applies the epilogue to a lane's sums: windows g and g + 8, pairs of neighbouring outputs. q: of the warp's first
 * output. */
HK_DEV void toeplitz_finish(const hk_cu_dw *P, dw_line l, int q, const int b, float (*acc)[4]) {
  const hk_cu_geom *g = &P->g;
  const int lane = threadIdx.x % 32;
  const hk_cu_i64 co = P->e.residual ? pixel_offset(&g->c, l.n, l.p) + dw_channel(g, &g->c, l.k) : 0;
#pragma unroll
  for (int v = 0; v < b / 8; ++v) {
    float cv[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (P->e.residual) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = q + (lane / 4 + i / 2 * 8) * b + v * 8 + lane % 4 * 2 + i % 2;
        if ((unsigned)at < (unsigned)g->out[2]) cv[i] = load_f32(P->e.c, co + at * g->c.at[2], g->y_type);
      }
    }
    dw_finish(&P->e, 4, 4, l.k, 0, cv, acc[v]);
  }
}

/* Recomputes output q of row `line`, whose sum is NaN. */
static __device__ __noinline__ void toeplitz_recompute(const hk_cu_dw *P, int line, int q) {
  const hk_cu_geom *g = &P->g;
  toeplitz_row row;
  toeplitz_find(P, line, &row);
  const dw_line l = toeplitz_line(&row);
  const hk_cu_i64 co = P->e.residual ? pixel_offset(&g->c, l.n, l.p) + dw_channel(g, &g->c, l.k) : 0;
  dw_line_single(P, l, row.y, co, q, dw_plain(P, TYPE, l.n, l.p[0], l.p[1], q, l.k));
}
#endif
