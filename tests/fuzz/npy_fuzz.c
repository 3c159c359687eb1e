/* The .npy reader on any bytes: it refuses with a sentence, or gives an array whose size its shape says. The reader is
 * included, because it belongs to the command and not to the library. */
#include <stdlib.h>
#include <string.h>

#include "cli/io/npy.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cli_npy a;
  char why[CLI_NPY_WHY] = "";
  if (cli_npy_parse(&a, data, size, why)) {
    if (!*why || a.data) abort();
    return 0;
  }
  int64_t count = 1;
  for (int d = 0; d < a.rank; d++) count *= a.shape[d];
  if (count != a.count || !a.data || (size_t)count * hk_type_bytes(a.type) > size) abort();
  /* every byte is readable */
  volatile unsigned char sum = 0;
  for (size_t i = 0; i < (size_t)count * hk_type_bytes(a.type); i++) sum ^= ((unsigned char *)a.data)[i];
  cli_npy_free(&a);
  return 0;
}
