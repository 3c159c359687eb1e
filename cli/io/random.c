/* Random numbers: splitmix64, so that any 64-bit seed is good and two seeds give unrelated sequences. A fuzzer provides
 * bytes instead: the generators of this thread then draw from them, and from the seed once they are used up, so that
 * mutating the bytes mutates what is generated. */
#include <math.h>

#include "cli.h"

static _Thread_local struct {
  const unsigned char *at;
  size_t left;
} source;

size_t cli_random_from(const void *bytes, size_t count) {
  size_t left = source.left;
  source.at = bytes;
  source.left = bytes ? count : 0;
  return left;
}

/* Takes `count` bytes of the source, little endian; returns false when fewer are left, and then discards them. */
static bool source_take(size_t count, uint64_t *value) {
  if (source.left < count) source.left = 0;
  if (!source.left) return false;
  *value = 0;
  for (size_t i = 0; i < count; i++) *value |= (uint64_t)source.at[i] << 8 * i;
  source.at += count;
  source.left -= count;
  return true;
}

static uint64_t split_mix(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

uint64_t cli_random(uint64_t *state) {
  uint64_t z;
  return source_take(sizeof z, &z) ? z : split_mix(state);
}

/* Takes no more bytes of a source than n needs: one for a coin, so that short inputs go far. */
int64_t cli_random_below(uint64_t *state, int64_t n) {
  uint64_t z;
  if (n <= 1) return 0;
  if (!source_take(n <= 1 << 8 ? 1 : n <= 1 << 16 ? 2 : sizeof z, &z)) z = split_mix(state);
  return (int64_t)(z % (uint64_t)n);
}

/* N(0,1) by Box-Muller: with tails, which sums of uniform values lack. */
double cli_random_normal(uint64_t *state) {
  double u = ((double)(cli_random(state) >> 11) + 0.5) * 0x1p-53, v = (double)(cli_random(state) >> 11) * 0x1p-53;
  return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

uint64_t cli_random_mix(uint64_t a, uint64_t b) {
  uint64_t state = a * 0xD1342543DE82EF95u + b;
  return split_mix(&state);
}
