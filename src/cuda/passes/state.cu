/* hk_state_<bytes>: concatenates the state and x of a stateful plan and writes the new state.
 *
 * One warp copies the state of one channel: position i of the state goes to position i of the concatenated row, and
 * position in + i of that row becomes position i of the new state. The warp walks upwards in steps of 32 and reads
 * both before it writes, so the new state may overwrite the old: what a later step reads is above everything written
 * so far. The other warps copy segments of x. */
#include "cuda/types.cuh"

enum { SEGMENT = 1024 };

#define PAST(T, NAME)                                                                                                  \
  HK_DEV void NAME(const hk_cu_state *P, hk_cu_i64 row) {                                                             \
    const hk_cu_i64 n = row / P->channels, ch = row - n * P->channels, group = ch / P->cg;                             \
    const T *x = (const T *)P->x + n * P->view.outer + group * P->view.group + (ch - group * P->cg) * P->view.channel; \
    const T *old = P->state_in ? (const T *)P->state_in + row * P->past : 0;                                           \
    T *to = (T *)P->to + n * P->to_outer + ch * P->to_channel, *left = (T *)P->state_out;                              \
    for (hk_cu_i64 i0 = 0; i0 < P->past; i0 += 32) {                                                                   \
      const hk_cu_i64 i = i0 + threadIdx.x % 32, later = P->in + i;                                                    \
      T now = (T)P->zero, next = (T)P->zero;                                                                           \
      if (i < P->past) {                                                                                               \
        if (old) now = old[i];                                                                                         \
        if (later >= P->past) next = x[(later - P->past) * P->view.at[2]];                                             \
        else if (old) next = old[later];                                                                               \
      }                                                                                                                \
      __syncwarp();                                                                                                    \
      if (i < P->past) {                                                                                               \
        to[i * P->to_at] = now;                                                                                        \
        if (left) left[row * P->past + i] = next;                                                                      \
      }                                                                                                                \
      __syncwarp();                                                                                                    \
    }                                                                                                                  \
  }

#define BLOCK(T, NAME)                                                                                                 \
  HK_DEV void NAME(const hk_cu_state *P, hk_cu_i64 unit) {                                                             \
    const int lane = threadIdx.x % 32, per = 16 / sizeof(T);                                                           \
    const hk_cu_i64 row = unit / P->segments, begin = (unit - row * P->segments) * SEGMENT;                            \
    const hk_cu_i64 line = row / P->outer, o = row - line * P->outer, n = line / P->parts, part = line - n * P->parts; \
    const int count = P->inner - begin < SEGMENT ? (int)(P->inner - begin) : SEGMENT;                                  \
    const T *from =                                                                                                    \
        (const T *)P->x + n * P->view.outer + part * P->from_part + o * P->from_outer + begin * P->from_inner;         \
    T *to = (T *)P->to + n * P->to_outer + part * P->into_part + o * P->into_outer + P->past * P->to_at + begin;       \
    int i = 0;                                                                                                         \
    if (P->from_inner == 1 && !(((hk_cu_u64)from | (hk_cu_u64)to) & 15)) {                                             \
      for (i = lane * per; i + per <= count; i += 32 * per) *(uint4 *)(to + i) = *(const uint4 *)(from + i);           \
      i = count - count % per;                                                                                         \
    }                                                                                                                  \
    _Pragma("unroll 4") for (i += lane; i < count; i += 32) to[i] = from[i * P->from_inner];                           \
  }

#define STATE(T, BYTES)                                                                                              \
  PAST(T, past_##BYTES)                                                                                              \
  BLOCK(T, block_##BYTES)                                                                                            \
  extern "C" __global__ void __launch_bounds__(256) hk_state_##BYTES(const __grid_constant__ hk_cu_state P) {        \
    const hk_cu_i64 warp = (hk_cu_i64)blockIdx.x * 8 + threadIdx.x / 32;                                             \
    if (warp < P.past_warps) past_##BYTES(&P, warp);                                                                 \
    else if (warp < P.warps) block_##BYTES(&P, warp - P.past_warps);                                                 \
  }
STATE(hk_cu_u8, 1)
STATE(hk_cu_u16, 2)
STATE(hk_cu_u32, 4)
STATE(hk_cu_u64, 8)
