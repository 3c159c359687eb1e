/* The reader of bench JSON takes any bytes: what it keeps is named, finite and positive. */
#include <assert.h>
#include <math.h>

#include "cli/bench/read.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bench_times t;
  char why[200] = "";
  if (bench_times_read(&t, (const char *)data, size, why)) assert(why[0] && t.count == 0);
  for (int64_t i = 0; i < t.count; i++)
    assert(t.at[i].run[0] && isfinite(t.at[i].median) && t.at[i].median > 0 && isfinite(t.at[i].iqr) &&
           t.at[i].iqr >= 0);
  bench_times_free(&t);
  return 0;
}
