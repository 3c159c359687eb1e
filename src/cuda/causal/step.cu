/* Causal Conv1D for one or a few tokens per sequence; see step.cuh. hk_causal_step_<type>_<taps>x<channels>, and
 * .._mixed where f, y or the state has another type than x. */
#include "cuda/instance.cuh"

#include "cuda/causal/step.cuh"
#define EACH_V(W)                                                   \
  INSTANCE(STEP, NAMED(hk_causal_step, W##x1), W, 1, 1)             \
  INSTANCE(STEP, NAMED(hk_causal_step, W##x2), W, 2, 1)             \
  INSTANCE(STEP, NAMED(hk_causal_step, W##x4), W, 4, 1)             \
  INSTANCE(STEP, NAMED(hk_causal_step, W##x1_mixed), W, 1, 0)       \
  INSTANCE(STEP, NAMED(hk_causal_step, W##x2_mixed), W, 2, 0)
EACH_V(2)
EACH_V(3)
EACH_V(4)
