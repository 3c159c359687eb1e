/* The long convolution on the device: random calls (tests/c/support/longconv.c) against the formula in double; then
 * sequences of up to 24,000 tokens, whose transforms are shared by several blocks of threads.
 * usage: [count [first]]  Needs a CUDA device; exits with 77 without. */
#include <stdio.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/longconv.h"

static void check(uint64_t first, int64_t longest) {
  const hk_options o = {.size = sizeof o, .device = HK_CUDA, .math = HK_MATH_FAST_ALGORITHMS};
  uint64_t seed = first * 0x9e3779b97f4a7c15u;
  const int before = hk_test_failed;
  longconv_trial r;
  longconv_trial_make(&r, &seed, longest);
  longconv_trial_run(&r, &o, false);
  if (hk_test_failed > before)
    fprintf(stderr, "  seed %llu, longest %lld\n", (unsigned long long)first, (long long)longest);
  longconv_trial_free(&r);
}

int main(int argc, char **argv) {
  hk_gpu gpu = {.size = sizeof gpu};
  const int count = argc > 1 ? atoi(argv[1]) : 300, first = argc > 2 ? atoi(argv[2]) : 1;
  if (hk_gpu_info(&gpu)) {
    printf("skipped: %s\n", hk_last_error());
    return 77;
  }
  for (int i = first; i < first + count && hk_test_failed < 9; i++) check((uint64_t)i, 3000);
  for (int i = first; i < first + count / 60 && hk_test_failed < 9; i++) check((uint64_t)i, 24000);
  return hk_test_end();
}
