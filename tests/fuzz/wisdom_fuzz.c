/* The wisdom parser must refuse or take any text whole; what it takes must print and come back the same. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "hankel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  memcpy(text, data, size);
  text[size] = 0;
  hk_wisdom_forget();
  if (hk_wisdom_import(text) == HK_OK) {
    size_t length;
    assert(hk_wisdom_export(NULL, 0, &length) == HK_OK);
    char *out = malloc(length + 1);
    assert(hk_wisdom_export(out, length + 1, NULL) == HK_OK);
    const int64_t count = hk_wisdom_count();
    hk_wisdom_forget();
    assert(hk_wisdom_import(out) == HK_OK && hk_wisdom_count() == count);
    free(out);
  } else {
    assert(hk_wisdom_count() == 0);
  }
  free(text);
  return 0;
}
