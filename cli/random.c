/* Random numbers: splitmix64, so that any 64-bit seed is a good one and two seeds give unrelated runs. */
#include <math.h>

#include "cli.h"

uint64_t cli_random(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int64_t cli_random_below(uint64_t *state, int64_t n) { return n > 1 ? (int64_t)(cli_random(state) % (uint64_t)n) : 0; }

/* N(0,1) by Box and Muller: tails included, which sums of uniforms lack. */
double cli_random_normal(uint64_t *state) {
  double u = ((double)(cli_random(state) >> 11) + 0.5) * 0x1p-53, v = (double)(cli_random(state) >> 11) * 0x1p-53;
  return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

uint64_t cli_random_mix(uint64_t a, uint64_t b) {
  uint64_t state = a * 0xD1342543DE82EF95u + b;
  return cli_random(&state);
}
