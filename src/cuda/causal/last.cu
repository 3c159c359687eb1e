/* Causal Conv1D of 2 to 8 taps, channels contiguous; see last.cuh. hk_causal_last_<type>_<taps>x<channels>[_full] */
#include "cuda/instance.cuh"

#include "cuda/causal/last.cuh"
#define FEW(V, FULL, SUFFIX)                                         \
  INSTANCE(LAST, NAMED(hk_causal_last, 2x##V##SUFFIX), 2, V, FULL) \
  INSTANCE(LAST, NAMED(hk_causal_last, 3x##V##SUFFIX), 3, V, FULL) \
  INSTANCE(LAST, NAMED(hk_causal_last, 4x##V##SUFFIX), 4, V, FULL)
#define MORE(V, FULL, SUFFIX)                                        \
  INSTANCE(LAST, NAMED(hk_causal_last, 5x##V##SUFFIX), 5, V, FULL) \
  INSTANCE(LAST, NAMED(hk_causal_last, 6x##V##SUFFIX), 6, V, FULL) \
  INSTANCE(LAST, NAMED(hk_causal_last, 7x##V##SUFFIX), 7, V, FULL) \
  INSTANCE(LAST, NAMED(hk_causal_last, 8x##V##SUFFIX), 8, V, FULL)
#if TYPE_BYTES == 2
FEW(8, 0, )
FEW(8, 1, _full)
MORE(4, 0, )
MORE(4, 1, _full)
#endif
FEW(4, 0, )
FEW(2, 0, )
FEW(1, 0, )
FEW(4, 1, _full)
FEW(2, 1, _full)
FEW(1, 1, _full)
MORE(2, 0, )
MORE(1, 0, )
MORE(2, 1, _full)
MORE(1, 1, _full)
