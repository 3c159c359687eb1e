/* Counters and random numbers of the C tests. */
#include "support/check.h"

int hk_test_passed, hk_test_failed;

int hk_test_end(void) {
  printf("%d passed, %d failed\n", hk_test_passed, hk_test_failed);
  return hk_test_failed != 0;
}

/* A linear congruential generator (Knuth's MMIX constants); the high bits are the good ones. */
static uint64_t next(uint64_t *seed) {
  *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
  return *seed >> 33;
}

int64_t hk_test_between(uint64_t *seed, int64_t lo, int64_t hi) {
  return lo + (int64_t)(next(seed) % (uint64_t)(hi - lo + 1));
}

int hk_test_integer(uint64_t *seed, int range) { return (int)hk_test_between(seed, -range, range); }

float hk_test_float(uint64_t *seed) { return (float)(next(seed) >> 7) * 0x1p-23f - 1.0f; }
