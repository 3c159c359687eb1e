/* Twiddles of the longfft kernels, whose template gives their formulas; angles are reduced as integers and cosines
 * taken in double. */
#include <math.h>

#include "longconv/longconv.h"

/* exp(-2 pi i * quarters / (4 n)) */
static void put(float **to, int64_t quarters, int64_t n) {
  const double angle = -2.0 * acos(-1.0) * (double)(quarters % (4 * n)) / (double)(4 * n);
  *(*to)++ = (float)cos(angle);
  *(*to)++ = (float)sin(angle);
}

static void steps(float **to, int64_t n) {
  while (n > 8) {
    const int64_t ways = n % 3 ? 4 : 3;
    for (int64_t j = 0; j < n / ways; j++)
      for (int64_t i = 1; i < ways; i++) put(to, 4 * i * j, n);
    n /= ways;
  }
  for (int64_t j = 0; n == 8 && j < 4; j++) put(to, 4 * j, n);
}

/* Which point the steps leave at position p. */
static int64_t order(int64_t n, int64_t p) {
  const int64_t ways = n == 8 ? 2 : n % 3 ? 4 : 3, m = n / ways;
  return n == 4 ? p : p / m + ways * order(m, p % m);
}

bool hk_longconv_tables(hk_longconv *k) {
  const int64_t n1 = k->shape.n1, n2 = k->shape.n2, n = k->shape.points, m = n1 / 4, vw = k->kernel->nr;
  /* steps of n points need under 3n floats */
  float *to = k->tables =
      hk_alloc((size_t)(2 * n1 + 3 * m + 3 * n2 + 64 + 2 * n1 * vw + 2 * n1 * (n2 / vw)) * sizeof *to);
  if (!to) return false;
  k->columns = to;
  for (int64_t j = 0; j < m; j++)
    for (int64_t q = 0; q < 4; q++) put(&to, j * (4 * q - 1), n1);
  steps(&to, m);
  k->rows = to;
  steps(&to, n2);
  to = k->tables + hk_round_up(to - k->tables, 16);
  k->lane = to;
  for (int64_t p = 0; p < n1; p++) {
    const int64_t k1 = p / m + 4 * order(m, p % m);
    for (int64_t l = 0; l < vw; l++) {
      float pair[2], *at = pair;
      put(&at, l * (4 * k1 - 1), n);
      to[p * 2 * vw + l] = pair[0], to[p * 2 * vw + vw + l] = pair[1];
    }
  }
  k->base = to += 2 * n1 * vw;
  for (int64_t j = 0; j < n2; j += vw)
    for (int64_t p = 0; p < n1; p++) put(&to, j * (4 * (p / m + 4 * order(m, p % m)) - 1), n);
  return true;
}
