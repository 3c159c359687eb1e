/* FMA peak: LANES independent chains, enough to cover latency times issue width. Define NAME, include a vocabulary. */
#include "base/base.h"
#define LANES 12

double NAME(int64_t rounds, volatile float *sink);
double NAME(int64_t rounds, volatile float *sink) {
  v_f32 acc[LANES];
  const v_f32 a = v_set1(0.999f + *sink), b = v_set1(0.001f);
  for (int i = 0; i < LANES; i++) acc[i] = v_set1((float)i);
  for (int64_t r = 0; r < rounds; r++) {
#if defined(__clang__)
    _Pragma("clang loop unroll(full)")
#else
    _Pragma("GCC unroll 16")
#endif
    for (int i = 0; i < LANES; i++) {
      acc[i] = v_fma(acc[i], a, b);
      __asm__ volatile("" : "+" HK_VEC_CONSTRAINT(acc[i]));
    }
  }
  v_f32 all = acc[0];
  for (int i = 1; i < LANES; i++) all = v_add(all, acc[i]);
  *sink = v_sum(all) * 0;
  return 2.0 * HK_VW * LANES * (double)rounds;
}
