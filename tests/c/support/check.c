/* Counters and random integers of the C tests. */
#include "support/check.h"

int hk_test_passed, hk_test_failed;

int hk_test_end(void) {
  printf("%d passed, %d failed\n", hk_test_passed, hk_test_failed);
  return hk_test_failed != 0;
}

int hk_test_integer(uint64_t *seed, int range) {
  *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((*seed >> 33) % (uint64_t)(2 * range + 1)) - range;
}
