/* Any bytes as an amp model: load must refuse or accept without a crash, and what it accepts must play, be measured and
 * described. */
#include <stdlib.h>

#include "hankel_nam.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hk_nam *m = NULL;
  size_t bytes = 0;
  const hk_status e = hk_nam_load_memory(&m, data, size, NULL);
  if (e) return 0;
  hk_nam_facts f = {.size = sizeof f};
  if (hk_nam_info(m, &f) || hk_nam_measure(data, size, NULL, &bytes) || bytes != f.bytes) abort();
  if (f.in_channels * f.out_channels <= 4096) {
    const int64_t n = 70;
    float *x = calloc((size_t)(n * f.in_channels), sizeof *x), *y = calloc((size_t)(n * f.out_channels), sizeof *y);
    if (x && y) {
      x[0] = 1.0f;
      if (hk_nam_process(m, x, n, y) || hk_nam_set_size(m, 0) || hk_nam_process(m, x, 1, y)) abort();
    }
    free(x);
    free(y);
  }
  hk_nam_free(m);
  return 0;
}
