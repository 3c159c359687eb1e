/* Twiddles of the longfft kernels, whose template gives their formulas; angles are reduced as integers and cosines
 * taken in double. */
#include <math.h>

#include "cpu/longfft.h"

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

/* Steps of n points need under 3n floats. */
static int64_t columns_floats(int64_t n1) { return hk_round_up(2 * n1 + 3 * n1 / 4 + 32, 16); }
static int64_t rows_floats(int64_t n2) { return hk_round_up(3 * n2 + 32, 16); }

int64_t hk_longfft_floats(int64_t n1, int64_t n2, int64_t vw) {
  return columns_floats(n1) + rows_floats(n2) + 2 * n1 * vw + hk_round_up(2 * n1 * (n2 / vw), 16);
}

void hk_longfft_tables(hk_longfft_args *a, int64_t vw, float *to) {
  const int64_t n1 = a->n1, n2 = a->n2, n = n1 * n2, m = n1 / 4;
  float *columns = to, *rows = columns + columns_floats(n1), *lane = rows + rows_floats(n2), *base = lane + 2 * n1 * vw;
  a->columns = columns, a->rows = rows, a->lane = lane, a->base = base;
  for (int64_t j = 0; j < m; j++)
    for (int64_t q = 0; q < 4; q++) put(&columns, j * (4 * q - 1), n1);
  steps(&columns, m);
  steps(&rows, n2);
  for (int64_t p = 0; p < n1; p++) {
    const int64_t k1 = p / m + 4 * order(m, p % m);
    for (int64_t l = 0; l < vw; l++) {
      float pair[2], *at = pair;
      put(&at, l * (4 * k1 - 1), n);
      lane[p * 2 * vw + l] = pair[0], lane[p * 2 * vw + vw + l] = pair[1];
    }
  }
  for (int64_t j = 0; j < n2; j += vw)
    for (int64_t p = 0; p < n1; p++) put(&base, j * (4 * (p / m + 4 * order(m, p % m)) - 1), n);
}
