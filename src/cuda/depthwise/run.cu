/* Depthwise 1D convolution with 3 or 4 taps of channels-last 16-bit tensors, stride and dilation 1, on the FMA
 * units.
 *
 * A thread owns 8 channels, 16 bytes, and walks along P->last.steps outputs of a row: every pixel is loaded once,
 * AHEAD pixels before its use, converted to f32 once, and stays in registers for as many outputs as there are taps;
 * the weights stay for the whole walk. Columns outside x are zeros. Sums are f32, taps in order. The host refuses
 * everything else (tiles_run.c). */
#include "cuda/depthwise/common.cuh"

#define THREADS 128
#define AHEAD 6

typedef struct run_tile { int type, taps, plain; } run_tile;
typedef struct run_place {
  const char *from;                  /* the next column to read */
  int column, end;                   /* its index; past the last column to read */
  hk_cu_i64 step;                    /* bytes between columns */
} run_place;

HK_DEV uint4 run_read(run_place *at) {
  uint4 u = make_uint4(0, 0, 0, 0);
  if ((unsigned)at->column < (unsigned)at->end) u = __ldg((const uint4 *)at->from);
  at->from += at->step;
  ++at->column;
  return u;
}

HK_DEV void run_store(const hk_cu_dw *P, run_tile t, int n, int q, int k, char *to, float *v) {
  if (!t.plain) {
    float cv[8];
    const int p[3] = {0, 0, q};
    if (P->e.residual)
      dw_unpack(t.type, *(const uint4 *)((const hk_cu_u16 *)P->e.c + pixel_offset(&P->g.c, n, p) + k), cv);
    dw_finish(&P->e, 8, 8, k, 1, cv, v);
  }
  *(uint4 *)to = dw_pack(t.type, v);
}

HK_DEV void run_body(const hk_cu_dw *P, run_tile t) {
  const hk_cu_geom *g = &P->g;
  const int team = threadIdx.x / (unsigned)P->last.lanes, lane = threadIdx.x - team * P->last.lanes;
  const int block = blockIdx.x / (unsigned)P->channel_blocks,
            k = (((int)blockIdx.x - block * P->channel_blocks) * P->last.lanes + lane) * 8;
  const int group = block * P->last.teams + team;
  if (group >= P->last.groups || k >= P->channels) return;
  const int n = dw_div(P->last.div_row_groups, group), first = (group - n * P->last.row_groups) * P->last.steps,
            rest = (int)g->out[2] - first;
  const int count = rest < P->last.steps ? rest : P->last.steps, column = first - (int)g->lo[2],
            reach = column + count + t.taps - 1;
  run_place at = {(const char *)P->x + (n * g->x.outer + column * g->x.at[2] + k) * 2, column,
                  reach < (int)g->in[2] ? reach : (int)g->in[2], g->x.at[2] * 2};
  asm volatile("" : "+l"(at.step)); /* otherwise the compiler recomputes it for every column */
  if (at.end < 0) at.end = 0;
  char *to = (char *)P->e.y + (n * g->y.outer + first * g->y.at[2] + k) * 2;
  const hk_cu_i64 to_step = g->y.at[2] * 2;
  uint4 ahead[AHEAD], begin[3];
#pragma unroll
  for (int i = 0; i < t.taps - 1; ++i) begin[i] = run_read(&at);
#pragma unroll
  for (int i = 0; i < AHEAD; ++i) ahead[i] = run_read(&at);
  float w[4][8], x[4][8]; /* x: the latest `taps` pixels, pixel i at index i modulo taps */
#pragma unroll
  for (int s = 0; s < t.taps; ++s) {
    const float *from = (const float *)P->packed + s * P->padded + k;
    *(float4 *)w[s] = __ldg((const float4 *)from);
    *(float4 *)(w[s] + 4) = __ldg((const float4 *)(from + 4));
  }
#pragma unroll
  for (int i = 0; i < t.taps - 1; ++i) dw_unpack(t.type, begin[i], x[i]);
#pragma unroll 1
  for (int i = 0; i < count; i += 2 * AHEAD) {
#pragma unroll
    for (int j = 0; j < 2 * AHEAD; ++j) {
      float sum[8];
      dw_unpack(t.type, ahead[j % AHEAD], x[(j + t.taps - 1) % t.taps]);
      ahead[j % AHEAD] = run_read(&at);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        sum[c] = fmaf(x[j % t.taps][c], w[0][c], 0.0f); /* a product alone could be -0 */
#pragma unroll
        for (int s = 1; s < t.taps; ++s) sum[c] = fmaf(x[(j + s) % t.taps][c], w[s][c], sum[c]);
      }
      if (i + j < count) run_store(P, t, n, first + i + j, k, to, sum);
      to += to_step;
    }
  }
}

#define KERNEL(name, type, taps, plain, blocks)                                                            \
  extern "C" __global__ void __launch_bounds__(THREADS, blocks) name(const __grid_constant__ hk_cu_dw P) { \
    const run_tile t = {type, taps, plain};                                                                \
    dw_begin();                                                                                            \
    run_body(&P, t);                                                                                       \
  }
/* hk_dw_run_<type>_<taps>, and the same with an epilogue: .._epi. */
#define PAIR(name, type, taps)         \
  KERNEL(name, type, taps, 1, 4)       \
  KERNEL(name##_epi, type, taps, 0, 3)
PAIR(hk_dw_run_bf16_3, HK_CU_BF16, 3)
PAIR(hk_dw_run_bf16_4, HK_CU_BF16, 4)
PAIR(hk_dw_run_f16_3, HK_CU_F16, 3)
PAIR(hk_dw_run_f16_4, HK_CU_F16, 4)
