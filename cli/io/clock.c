/* Time and its statistics. */
#include <stdlib.h>
#include <time.h>

#include "cli.h"

bool cli_own_time;

double cli_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cli_tick(void) {
  struct timespec t;
  if (!cli_own_time) return cli_now();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

cli_spread cli_spread_of(double *samples, int count) {
  if (count <= 0) return (cli_spread){0, 0, 0};
  qsort(samples, (size_t)count, sizeof *samples, compare);
  double middle = count % 2 ? samples[count / 2] : 0.5 * (samples[count / 2 - 1] + samples[count / 2]);
  return (cli_spread){middle, samples[count / 4], samples[count - 1 - count / 4]};
}
