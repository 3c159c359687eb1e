/* The causal depthwise Conv1D on the device: random descriptions (types, layouts, windows, dilations, packings, states,
 * gates) and every fourth time its gradient against the formula in double. What is no element of y or a state must stay
 * as it is. usage: [first [count]] Needs a CUDA device; exits with 77 without. */
#include <stdio.h>
#include <stdlib.h>

#include "causal_case.h"
#include "support/check.h"

static double precision(hk_type y, hk_act act) {
  if (act == HK_ACT_NONE || act == HK_ACT_RELU || act == HK_ACT_CLIP) return 0;
  return y == HK_F32 ? 4e-6 : y == HK_F16 ? 0x1p-10 : 0x1p-7;
}

static void check_forward(causal_case *k, uint64_t seed) {
  hk_causal *causal = NULL;
  hk_causal_args args;
  const hk_options o = {.size = sizeof o, .device = HK_CUDA};
  causal_case_make(k, seed, false);
  hk_status s = hk_causal_create(&causal, &k->d, &o);
  CHECK(s == HK_OK, "%s: %s", k->text, hk_last_error());
  if (s) return;
  causal_case_reference(k);
  causal_case_up(k, &args);
  s = hk_causal_execute(causal, &args);
  if (!s) s = hk_gpu_sync(NULL);
  CHECK(s == HK_OK, "%s: %s", k->text, hk_last_error());
  if (s == HK_DEVICE) exit((fprintf(stderr, "the device is lost\n"), 1));
  if (!s) causal_case_compare(k, &k->y, "y", precision(k->d.y_type, k->d.act));
  if (!s && k->has_state_out) causal_case_compare(k, k->in_place_state ? &k->state_in : &k->state_out, "state", 0);
  hk_causal_destroy(causal);
}

int main(int argc, char **argv) {
  static causal_case k;
  hk_gpu gpu = {.size = sizeof gpu};
  const int first = argc > 1 ? atoi(argv[1]) : 1, count = argc > 2 ? atoi(argv[2]) : 20000;
  if (hk_gpu_info(&gpu)) {
    printf("skipped: %s\n", hk_last_error());
    return 77;
  }
  for (int i = 0; i < count; ++i) {
    if (i % 4 == 3) causal_grad_check(&k, (uint64_t)(first + i));
    else check_forward(&k, (uint64_t)(first + i));
  }
  return hk_test_end();
}
