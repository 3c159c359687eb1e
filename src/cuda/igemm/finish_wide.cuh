/* The fast epilogues for y in f32 or the operands' type: the epilogue is applied to the fragments as wgmma left
 * them, and the finished values cross shared memory once, in y's type. Paths: slabs by TMA (finish_slab.cuh),
 * transposed slabs (finish_transpose.cuh), contiguous runs of any channel count (finish_strip.cuh), rows of any
 * stride (slim) and columns of pixels (tall). Everything is unrolled over the accumulators. finish.cuh supports
 * everything else and includes this file.
 *
 * A fragment: acc[i][4j..4j+1] of row lane/4, [4j+2..4j+3] of row lane/4 + 8, columns 8j + lane%4*2 and the next. */

/* Pitch in 4-byte words of a staged row: fragment writes and 16-byte reads of a warp hit distinct banks. */
#define WIDE_PITCH(chunk, bytes) ((bytes) == 4 ? (chunk) + 8 : (chunk) / 2 + 4)

HK_DEV float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
HK_DEV float min_nan(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
/* Denormal results are flushed: 1 is added to them anyway, and this halves the instructions. */
HK_DEV float exp_ftz(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v * 1.44269504f));
  return r;
}
HK_DEV float rcp_ftz(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
/* erf by Abramowitz and Stegun 7.1.26, error below 1.5e-7: sufficient for 16-bit results only. */
HK_DEV float gelu_16(float v) {
  const float x = fabsf(v) * 0.70710678f, t = rcp_ftz(fmaf(0.3275911f, x, 1.0f));
  float p = fmaf(1.061405429f, t, -1.453152027f);
  p = fmaf(p, t, 1.421413741f);
  p = fmaf(p, t, -0.284496736f);
  p = fmaf(p, t, 0.254829592f) * t;
  const float half = 0.5f * p * exp_ftz(-x * x);
  return v * (v < 0.0f ? half : 1.0f - half);
}
/* Branch-free 0.5 (1 + tanh) and tanh: near zero the exponential form would cancel. */
HK_DEV float tanh_flat(float v) {
  const float s = v * v;
  float p = fmaf(s, 62.0f / 2835.0f, -17.0f / 315.0f);
  p = fmaf(s, p, 2.0f / 15.0f);
  p = fmaf(s, p, -1.0f / 3.0f);
  const float small = fmaf(v * s, p, v), large = fmaf(-2.0f, rcp_ftz(1.0f + exp_ftz(2.0f * v)), 1.0f);
  return s < 0.0625f ? small : large;
}

/* Applies the activation to n values. x * sigmoid(x) at -127 is -0 already, which keeps -Inf from becoming NaN. */
#define EACH(expr)                   \
  do {                               \
    _Pragma("unroll")                \
    for (int j = 0; j < n; ++j) {    \
      const float v = values[j];     \
      values[j] = (expr);            \
    }                                \
  } while (0)
#define SOFT(v, x) ((v) * rcp_ftz(1.0f + exp_ftz(-(x))))
HK_DEV void wide_act(const hk_cu_epi *e, int n, float *values) {
  const float a = e->a, b = e->b;
  switch (e->act) {
    case HK_CU_RELU: EACH(max_nan(v, 0.0f)); break;
    case HK_CU_CLIP:
    case HK_CU_HARDTANH: EACH(min_nan(max_nan(v, a), b)); break;
    case HK_CU_LEAKY: EACH(v < 0.0f ? a * v : v); break;
    case HK_CU_SIGMOID: EACH(rcp_ftz(1.0f + exp_ftz(-v))); break;
    case HK_CU_SILU: EACH(SOFT(max_nan(v, -127.0f), max_nan(v, -127.0f))); break;
    case HK_CU_TANH: EACH(tanh_flat(v)); break;
    case HK_CU_GELU: EACH(gelu_16(max_nan(v, -127.0f))); break;
    case HK_CU_GELU_TANH:
      EACH(SOFT(max_nan(v, -127.0f), max_nan(-127.0f, 1.5957691216f * fmaf(0.044715f * v * v, v, v))));
      break;
    case HK_CU_HARDSWISH: EACH(max_nan(v, -3.0f) * (min_nan(max_nan(v, -3.0f) + 3.0f, 6.0f) * (1.0f / 6.0f))); break;
    default: break;
  }
}
#undef EACH

HK_DEV void wide_affine(const hk_cu_epi *e, igemm_tile t, const float *params, float (*acc)[128]) {
  const float *mine = params + threadIdx.x % 4 * 2;
#pragma unroll
  for (int j = 0; j < t.bn / 8; ++j) {
    const float2 s = *(const float2 *)(mine + j * 8), b = *(const float2 *)(mine + t.bn + j * 8);
#pragma unroll
    for (int i = 0; i < t.mi; ++i)
#pragma unroll
      for (int half = 0; half < 4; half += 2) {
        acc[i][j * 4 + half] = fmaf(acc[i][j * 4 + half], s.x, b.x);
        acc[i][j * 4 + half + 1] = fmaf(acc[i][j * 4 + half + 1], s.y, b.y);
      }
  }
}

HK_DEV void wide_put(int type, int chunk, int pitch, hk_cu_u32 *at, const float *v) {
#pragma unroll
  for (int j = 0; j < chunk / 8; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float a = v[j * 4 + half * 2], b = v[j * 4 + half * 2 + 1];
      if (type == HK_CU_F32) *(float2 *)(at + half * 8 * pitch + j * 8) = make_float2(a, b);
      else at[half * 8 * pitch + j * 4] = pack_pair(type, a, b);
    }
}

#include "cuda/igemm/finish_user.cuh"
#include "cuda/igemm/finish_slab.cuh"
#include "cuda/igemm/finish_transpose.cuh"
#include "cuda/igemm/finish_strip.cuh"

/* Where channel k of a pixel lies. */
HK_DEV hk_cu_i64 slim_channel(const hk_cu_igemm *P, int k) {
  const int fold = launch_of(P)->fold;
  return fold ? k / fold * launch_of(P)->fold_step + k % fold : k;
}

/* Stores a channels-last y of any channel count, alignment and pixel stride: a warp stores one row of the chunk at a
 * time, one element per lane. */
HK_DEV void slim_tile(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int m0, int wg, hk_cu_u32 *words,
                      const hk_cu_i64 *rows, const float (*acc)[128], int type) {
  const int bytes = type == HK_CU_F32 ? 4 : 2, pitch = WIDE_PITCH(t.chunk, bytes),
            columns = (t.bn + t.chunk - 1) / t.chunk;
  const int tid = threadIdx.x % 128, lane = tid % 32, per = 32 / t.chunk, col = lane % t.chunk,
            line = tid / 32 * per + lane / t.chunk;
  const int left = (int)P->gm - m0, wide = ((int)P->g.kg - at.k0 < t.bn ? (int)P->g.kg - at.k0 : t.bn) - col;
  hk_cu_u32 *mine = words + (tid / 32 * 16 + lane / 4) * pitch + lane % 4 * (bytes / 2);
  hk_cu_u8 *y = (hk_cu_u8 *)P->e.y + at.group * P->g.y.group * bytes;
#pragma unroll
  for (int i = 0; i < t.mi; ++i)
#pragma unroll
    for (int u = 0; u < columns; ++u) {
      const hk_cu_i64 channel = slim_channel(P, at.k0 + u * t.chunk + col);
      float v[16];
#pragma unroll
      for (int j = 0; j < t.chunk / 2; ++j) v[j] = u * t.chunk / 2 + j < t.bn / 2 ? acc[i][u * t.chunk / 2 + j] : 0.0f;
      wide_put(type, t.chunk, pitch, mine, v);
      named_sync(wg + 1, 128);
#pragma unroll 4
      for (int r = line; r < 64; r += 4 * per)
        if (i * 64 + r < left && u * t.chunk < wide) {
          hk_cu_u8 *to =
              y + ((P->y_linear ? (m0 + i * 64 + r) * P->g.y.at[2] : rows[(i * 64 + r) * 2]) + channel) * bytes;
          if (bytes == 4) *(hk_cu_u32 *)to = words[r * pitch + col];
          else *(hk_cu_u16 *)to = ((const hk_cu_u16 *)words)[r * pitch * 2 + col];
        }
      named_sync(wg + 1, 128);
    }
}

/* The same for a y with contiguous pixels (channels-first): the chunk is transposed in shared memory, [column][row],
 * and a warp stores 64 rows of one column at a time; a 16-bit y in pairs where it is aligned (tall 2). type (of y)
 * is a compile-time constant. */
HK_DEV void tall_tile(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int m0, int wg, hk_cu_u32 *words,
                      const hk_cu_i64 *rows, const float (*acc)[128], int type) {
  const int bytes = type == HK_CU_F32 ? 4 : 2, pitch = bytes == 4 ? 68 : 36, columns = (t.bn + t.chunk - 1) / t.chunk;
  const int tid = threadIdx.x % 128, lane = tid % 32, warp = tid / 32, left = (int)P->gm - m0,
            pairs = bytes == 2 && P->tall == 2;
  const hk_cu_i64 step = P->g.y.channel * bytes;
  hk_cu_u8 *y = (hk_cu_u8 *)P->e.y + P->g.y.group * at.group * bytes;
#pragma unroll
  for (int i = 0; i < t.mi; ++i) {
    const int first = i * 64 + (pairs ? 2 * lane : lane), second = i * 64 + lane + 32, a = first < left,
              b = second < left && !pairs;
    hk_cu_u8 *to = y + (a ? rows[first * 2] * bytes : 0), *more = y + (b ? rows[second * 2] * bytes : 0);
#pragma unroll
    for (int u = 0; u < columns; ++u) {
#pragma unroll
      for (int j = 0; j < t.chunk / 8; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const int at4 = u * t.chunk / 2 + j * 4 + r, row = warp * 16 + lane / 4 + r / 2 * 8,
                    col = j * 8 + lane % 4 * 2 + r % 2;
          const float v = at4 < t.bn / 2 ? acc[i][at4] : 0.0f;
          if (bytes == 4) words[col * pitch + row] = __float_as_uint(v);
          else ((hk_cu_u16 *)words)[col * pitch * 2 + row] = type == HK_CU_F16 ? f16_from_f32(v) : bf16_from_f32(v);
        }
      named_sync(wg + 1, 128);
#pragma unroll
      for (int j = 0; j < t.chunk / 4; ++j) {
        const int col = warp + j * 4, k = at.k0 + u * t.chunk + col;
        if (k >= P->g.kg || u * t.chunk + col >= t.bn) continue;
        if (bytes == 4 || pairs) {
          if (a) *(hk_cu_u32 *)(to + k * step) = words[col * pitch + lane];
          if (b) *(hk_cu_u32 *)(more + k * step) = words[col * pitch + lane + 32];
        } else {
          const hk_cu_u16 *from = (const hk_cu_u16 *)words + col * pitch * 2 + lane;
          if (a) *(hk_cu_u16 *)(to + k * step) = from[0];
          if (b) *(hk_cu_u16 *)(more + k * step) = from[32];
        }
      }
      named_sync(wg + 1, 128);
    }
  }
}

/* The same for one run of 8 values of a split tile, summed over the blocks of the cluster. */
HK_DEV void wide_run(const hk_cu_igemm *P, igemm_tile t, igemm_place at, int col, int m, int k, const hk_cu_i64 *row,
                     const float *from, const float *params) {
  const hk_cu_epi *e = &P->e;
  float v[8], cv[8];
  uint4 lo, hi;
  if (e->residual)
    finish_load8(e->c, (P->c_linear ? m * P->g.c.at[2] : row[1]) + at.group * P->g.c.group + k, P->g.y_type, &lo, &hi);
  finish_read(t, from, v);
  if (e->scale)
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      const float4 s = *(const float4 *)(params + col + i);
      v[i] *= s.x, v[i + 1] *= s.y, v[i + 2] *= s.z, v[i + 3] *= s.w;
    }
  if (e->bias)
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      const float4 b = *(const float4 *)(params + t.bn + col + i);
      v[i] += b.x, v[i + 1] += b.y, v[i + 2] += b.z, v[i + 3] += b.w;
    }
  if (e->residual) finish_unpack(P->g.y_type, lo, hi, cv);
  if (e->residual == 2)
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = fmaf(e->beta, cv[i], v[i]);
  if (e->act) act_run(8, e->act, e->a, e->b, v, v);
  if (e->residual == 1)
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = fmaf(e->beta, cv[i], v[i]);
  finish_store8(e->y, (P->y_linear ? m * P->g.y.at[2] : row[0]) + at.group * P->g.y.group + k, P->g.y_type, v);
}
