/* Copies the windows of x one after another, see gather.c. A thread writes 16 bytes; the reads of adjacent threads
 * share cache lines. */
#include "cuda/ptx.cuh"

#define GATHER_NONE (-0x7fffffffffffffffll)
/* Offset in x of value v of the window at p; GATHER_NONE: padding. */
HK_DEV hk_cu_i64 gather_from(const hk_cu_gather *P, const int *p, int v) {
  const int outer = div_by(v, P->by_inner), inner = v - outer * (int)P->by_inner.d, c = P->taps_inner ? outer : inner;
  int tap = P->taps_inner ? inner : outer;
  hk_cu_i64 from = c * P->view.channel;
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    const int up = div_by(tap, P->by_win[d]),
              at = p[d] * P->stride[d] + (tap - up * (int)P->by_win[d].d) * P->dil[d] - P->lo[d];
    if (at < 0 || at >= P->in[d]) return GATHER_NONE;
    from += at * P->view.at[d];
    tap = up;
  }
  return from;
}

#define GATHER(T, NAME)                                                                                         \
  extern "C" __global__ void __launch_bounds__(256) NAME(const __grid_constant__ hk_cu_gather P) {              \
    enum { PER = 16 / sizeof(T) };                                                                              \
    const hk_cu_i64 i = (hk_cu_i64)blockIdx.x * 256 + threadIdx.x;                                              \
    pdl_trigger();                                                                                               \
    if (i >= P.pieces) return;                                                                                  \
    int rest = div_by((int)i, P.by_run), p[3];                                                                  \
    const int v0 = ((int)i - rest * (int)P.by_run.d) * PER;                                                     \
    _Pragma("unroll") for (int d = 2; d >= 0; --d) {                                                            \
      const int up = div_by(rest, P.by_out[d]);                                                                 \
      p[d] = rest - up * (int)P.by_out[d].d;                                                                    \
      rest = up;                                                                                                \
    }                                                                                                           \
    const T *x = (const T *)P.x + rest * P.view.outer;                                                          \
    const hk_cu_i64 first = P.vector ? gather_from(&P, p, v0) : GATHER_NONE;                                    \
    if (first != GATHER_NONE && gather_from(&P, p, v0 + PER - 1) == first + PER - 1) {                          \
      ((uint4 *)P.to)[i] = *(const uint4 *)(x + first);                                                         \
      return;                                                                                                   \
    }                                                                                                           \
    __align__(16) T v[PER];                                                                                     \
    _Pragma("unroll") for (int j = 0; j < PER; ++j) {                                                           \
      const hk_cu_i64 from = v0 + j < P.live ? gather_from(&P, p, v0 + j) : GATHER_NONE;                        \
      v[j] = from != GATHER_NONE ? x[from] : (T)0;                                                              \
    }                                                                                                           \
    ((uint4 *)P.to)[i] = *(const uint4 *)v;                                                                     \
  }
GATHER(hk_cu_u8, hk_gather_1)
GATHER(hk_cu_u16, hk_gather_2)
GATHER(hk_cu_u32, hk_gather_4)
