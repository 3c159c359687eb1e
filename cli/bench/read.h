/* Times read back from JSON in google-benchmark's shape. */
#ifndef CLI_BENCH_READ_H
#define CLI_BENCH_READ_H
#include <stddef.h>
#include <stdint.h>

typedef struct bench_time {
  char *run;
  double median, iqr; /* us */
} bench_time;
typedef struct bench_times {
  int64_t count;
  bench_time *at;
} bench_times;
/* Runs that have a positive median. 0, or an exit code with the reason in why[200]. */
int bench_times_read(bench_times *t, const char *text, size_t length, char *why);
void bench_times_free(bench_times *t);
#endif
