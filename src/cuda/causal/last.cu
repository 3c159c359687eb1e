/* Causal Conv1D of 2 to 4 taps, channels contiguous; see last.cuh. hk_causal_last_<type>_<taps>x<channels>[_full] */
#include "cuda/instance.cuh"

#include "cuda/causal/last.cuh"
#define EACH_W(V, FULL, SUFFIX)                              \
  INSTANCE(LAST, NAMED(hk_causal_last, 2x##V##SUFFIX), 2, V, FULL) \
  INSTANCE(LAST, NAMED(hk_causal_last, 3x##V##SUFFIX), 3, V, FULL) \
  INSTANCE(LAST, NAMED(hk_causal_last, 4x##V##SUFFIX), 4, V, FULL)
#if TYPE_BYTES == 2
EACH_W(8, 0, )
EACH_W(8, 1, _full)
#endif
EACH_W(4, 0, )
EACH_W(2, 0, )
EACH_W(1, 0, )
EACH_W(4, 1, _full)
EACH_W(2, 1, _full)
EACH_W(1, 1, _full)
