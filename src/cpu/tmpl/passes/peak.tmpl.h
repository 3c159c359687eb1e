/* FMA peak: twelve independent dependency chains, enough to cover latency times issue width. Named one by one, because
 * an array of them would be spilled. Define NAME, include a vocabulary. */
#include "base/base.h"

#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define START(i) v_f32 acc##i = v_set1((float)i);
#define STEP(i) acc##i = v_fma(acc##i, a, b);
#define GATHER(i) all = v_add(all, acc##i);

double NAME(int64_t rounds, volatile float *sink);
double NAME(int64_t rounds, volatile float *sink) {
  const v_f32 a = v_set1(0.999f + *sink), b = v_set1(0.001f + *sink);
  EACH(START)
  for (int64_t r = 0; r < rounds; r++) { EACH(STEP) }
  v_f32 all = v_zero();
  EACH(GATHER)
  *sink = v_sum(all) * 0;
  return 2.0 * HK_VW * 12 * (double)rounds;
}
