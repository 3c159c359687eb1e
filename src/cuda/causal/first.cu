/* Causal Conv1D of 2 to 4 taps, time contiguous; see first.cuh. hk_causal_first_<type>_<taps>x<vectors>[_full] */
#include "cuda/instance.cuh"

#include "cuda/causal/first.cuh"
#define EACH_W(R, FULL, SUFFIX)                                       \
  INSTANCE(FIRST, NAMED(hk_causal_first, 2x##R##SUFFIX), 2, R, FULL) \
  INSTANCE(FIRST, NAMED(hk_causal_first, 3x##R##SUFFIX), 3, R, FULL) \
  INSTANCE(FIRST, NAMED(hk_causal_first, 4x##R##SUFFIX), 4, R, FULL)
EACH_W(4, 0, )
EACH_W(2, 0, )
EACH_W(2, 1, _full)
