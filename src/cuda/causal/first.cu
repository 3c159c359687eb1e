/* Causal Conv1D of 2 to 8 taps, time contiguous; see first.cuh. hk_causal_first_<type>_<taps>x<vectors>[_full] */
#include "cuda/instance.cuh"

#include "cuda/causal/first.cuh"
#define FEW(R, FULL, SUFFIX)                                          \
  INSTANCE(FIRST, NAMED(hk_causal_first, 2x##R##SUFFIX), 2, R, FULL) \
  INSTANCE(FIRST, NAMED(hk_causal_first, 3x##R##SUFFIX), 3, R, FULL) \
  INSTANCE(FIRST, NAMED(hk_causal_first, 4x##R##SUFFIX), 4, R, FULL)
#define MORE(R, FULL, SUFFIX)                                         \
  INSTANCE(FIRST, NAMED(hk_causal_first, 5x##R##SUFFIX), 5, R, FULL) \
  INSTANCE(FIRST, NAMED(hk_causal_first, 6x##R##SUFFIX), 6, R, FULL) \
  INSTANCE(FIRST, NAMED(hk_causal_first, 7x##R##SUFFIX), 7, R, FULL) \
  INSTANCE(FIRST, NAMED(hk_causal_first, 8x##R##SUFFIX), 8, R, FULL)
FEW(4, 0, )
FEW(2, 0, )
FEW(2, 1, _full)
MORE(2, 0, )
MORE(2, 1, _full)
