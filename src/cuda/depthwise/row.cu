/* Depthwise convolution of contiguous rows (channels-first) on the FMA units, directly from global memory: stride
 * and dilation 1 along the row, any rank, padding, multiplier, filter; for short filters and short rows, where
 * staging costs more than it saves.
 *
 * A thread computes 32 bytes of one output row, two aligned 16-byte pieces of y. It reads x in aligned pieces, one
 * after another, and shifts them into place by the row's constant offset. A window of 3E - 1 values (E: values per
 * piece) slides along the taps, E of them at a time. Pieces that cross the end of the row are read element by
 * element; nothing outside it is read. Registers: 2E sums, 3E window, two raw pieces. y is contiguous and of the
 * type of x; the host refuses input dilation. */
#include "cuda/depthwise/line.cuh"

#define THREADS 256

typedef struct row_tile { int type, plain; } row_tile;
/* A run of values, read in pieces. */
typedef struct row_stream {
  const char *at;                    /* of the next piece */
  int col, width;                    /* its first column; columns of the row, 0: a row outside x */
  int shift;                         /* elements of a piece before the first value */
  uint4 last;
} row_stream;

HK_DEV constexpr int row_per(row_tile t) { return t.type == HK_CU_F32 ? 4 : 8; }

HK_DEV uint4 row_piece(row_tile t, row_stream *s) {
  const int per = row_per(t);
  hk_cu_u32 w[4] = {0, 0, 0, 0};
  uint4 u = make_uint4(0, 0, 0, 0);
  if (s->col >= 0 && s->col + per <= s->width) {
    u = __ldg((const uint4 *)s->at);
  } else if (s->col + per > 0 && s->col < s->width) {
#pragma unroll
    for (int i = 0; i < per; ++i)
      if ((unsigned)(s->col + i) < (unsigned)s->width) {
        if (t.type == HK_CU_F32) w[i % 4] = __ldg((const unsigned *)s->at + i);
        else w[i / 2] |= (hk_cu_u32)__ldg((const unsigned short *)s->at + i) << (i % 2 * 16);
      }
    u = make_uint4(w[0], w[1], w[2], w[3]);
  }
  s->col += per;
  s->at += 16;
  return u;
}

/* The next E values. */
HK_DEV void row_next(row_tile t, row_stream *s, float *v) {
  const uint4 u = row_piece(t, s);
  hk_cu_u32 w[8] = {s->last.x, s->last.y, s->last.z, s->last.w, u.x, u.y, u.z, u.w};
  const int words = t.type == HK_CU_F32 ? s->shift : s->shift >> 1;
  s->last = u;
#pragma unroll
  for (int i = 0; i < 6; ++i) w[i] = words & 2 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) w[i] = words & 1 ? w[i + 1] : w[i];
  if (t.type == HK_CU_F32) {
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = __uint_as_float(w[i]);
  } else {
    const unsigned odd = s->shift & 1 ? 16 : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) dw_unpack_pair(t.type, __funnelshift_r(w[i], w[i + 1], odd), v + 2 * i);
  }
}

/* Accumulates one row of taps. from: column 0 of the row; col: of the first output's first tap. */
HK_DEV void row_taps(row_tile t, const char *from, int width, int col, int us, const float *weights, float *acc) {
  const int per = row_per(t), bytes = 16 / per;
  float v[24];
  row_stream s;
  const char *first = from + (hk_cu_i64)col * bytes;
  s.shift = (int)((hk_cu_u64)first & 15) / bytes;
  s.at = first - s.shift * bytes;
  s.col = col - s.shift;
  s.width = width;
  s.last = row_piece(t, &s);
#pragma unroll
  for (int i = 0; i < 3; ++i) row_next(t, &s, v + i * per);
#pragma unroll 1
  for (;; weights += per) {
#pragma unroll
    for (int j = 0; j < per; ++j)
      if (j < us) {
        const float w = __ldg(weights + j);
#pragma unroll
        for (int i = 0; i < 2 * per; ++i) acc[i] = fmaf(v[i + j], w, acc[i]);
      }
    us -= per;
    if (us <= 0) break;
#pragma unroll
    for (int i = 0; i < 2 * per; ++i) v[i] = v[i + per];
    row_next(t, &s, v + 2 * per);
  }
}

HK_DEV void row_store(const hk_cu_dw *P, row_tile t, dw_line l, hk_cu_i64 yo, int q, float *acc) {
  const hk_cu_geom *g = &P->g;
  const int per = row_per(t), bytes = 16 / per, length = (int)g->out[2];
  if (!t.plain) {
    const hk_cu_i64 co = P->e.residual ? pixel_offset(&g->c, l.n, l.p) + dw_channel(g, &g->c, l.k) : 0;
    float cv[16];
#pragma unroll
    for (int i = 0; i < 2 * per; ++i)
      cv[i] = P->e.residual && (unsigned)(q + i) < (unsigned)length
                  ? load_f32(P->e.c, co + (q + i) * g->c.at[2], g->y_type)
                  : 0.0f;
    dw_finish(&P->e, 2 * per, 2 * per, l.k, 0, cv, acc);
  }
  char *y = (char *)P->e.y + (yo + q) * bytes;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int at = q + h * per;
    if (at >= 0 && at + per <= length) {
      *(uint4 *)(y + h * 16) = dw_pack(t.type, acc + h * per);
    } else {
#pragma unroll
      for (int i = 0; i < per; ++i)
        if ((unsigned)(at + i) < (unsigned)length) {
          if (t.type == HK_CU_F32) ((float *)y)[h * per + i] = acc[h * per + i];
          else
            ((hk_cu_u16 *)y)[h * per + i] =
                t.type == HK_CU_BF16 ? bf16_from_f32(acc[h * per + i]) : f16_from_f32(acc[h * per + i]);
        }
    }
  }
}

HK_DEV void row_body(const hk_cu_dw *P, row_tile t) {
  const hk_cu_geom *g = &P->g;
  const int per = row_per(t), bytes = 16 / per;
  const hk_cu_i64 thread = (hk_cu_i64)blockIdx.x * THREADS + threadIdx.x;
  if (thread >= P->last.groups) return;
  const int line = dw_div(P->last.div_row_groups, (int)thread), piece = (int)thread - line * P->last.row_groups;
  const int a = dw_div(P->div_out1, line), b = dw_div(P->div_out0, a);
  dw_line l = {dw_div(P->div_channels, b), 0, {a - b * (int)g->out[0], line - a * (int)g->out[1], 0}, 0};
  l.k = b - l.n * P->channels;
  const hk_cu_i64 yo = pixel_offset(&g->y, l.n, l.p) + dw_channel(g, &g->y, l.k);
  const int skew = (int)((hk_cu_u64)((const char *)P->e.y + yo * bytes) & 15) / bytes, q = piece * 2 * per - skew;
  if (q >= (int)g->out[2]) return;
  const char *image =
      (const char *)P->x + (l.n * g->x.outer + (g->kg == 1 ? l.k : l.k / (int)g->kg) * g->x.group) * bytes;
  const float *weights = (const float *)P->packed + (hk_cu_i64)l.k * P->taps;
  float acc[16];
#pragma unroll
  for (int i = 0; i < 2 * per; ++i) acc[i] = 0.0f;
#pragma unroll 1
  for (int d = 0; d < (int)g->win[0]; ++d) {
    const int i0 = l.p[0] * (int)g->stride[0] + d * (int)g->dil[0] - (int)g->lo[0];
#pragma unroll 1
    for (int r = 0; r < (int)g->win[1]; ++r, weights += P->taps_u) {
      const int i1 = l.p[1] * (int)g->stride[1] + r * (int)g->dil[1] - (int)g->lo[1];
      if ((unsigned)i0 < (unsigned)g->in[0] && (unsigned)i1 < (unsigned)g->in[1])
        row_taps(t, image + (i0 * g->x.at[0] + i1 * g->x.at[1]) * bytes, (int)g->in[2], q - (int)g->lo[2], P->taps_u,
                 weights, acc);
    }
  }
  row_store(P, t, l, yo, q, acc);
}

#define KERNEL(name, type, plain, blocks)                                                                  \
  extern "C" __global__ void __launch_bounds__(THREADS, blocks) name(const __grid_constant__ hk_cu_dw P) { \
    dw_begin();                                                                                            \
    const row_tile t = {type, plain};                                                                      \
    row_body(&P, t);                                                                                       \
  }
KERNEL(hk_dw_row_f32, HK_CU_F32, 1, 4)
KERNEL(hk_dw_row_f32_epi, HK_CU_F32, 0, 2)
KERNEL(hk_dw_row_f16, HK_CU_F16, 1, 3)
KERNEL(hk_dw_row_f16_epi, HK_CU_F16, 0, 2)
KERNEL(hk_dw_row_bf16, HK_CU_BF16, 1, 3)
KERNEL(hk_dw_row_bf16_epi, HK_CU_BF16, 0, 2)
