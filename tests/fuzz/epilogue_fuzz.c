/* Epilogue strings: whatever the text, parsing ends with a status and a sentence, and what parses prints a text that
 * parses and prints the same again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hankel.h"

#define REQUIRE(condition)                                                                                             \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                  \
      abort();                                                                                                         \
    }                                                                                                                  \
  } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1), once[1024], twice[1024];
  size_t length = 0;
  hk_epilogue e;
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = 0;
  const hk_status status = hk_epilogue_parse(&e, text);
  if (status) {
    REQUIRE(status == HK_SYNTAX || status == HK_INVALID);
    REQUIRE(*hk_last_error());
  } else {
    REQUIRE(hk_epilogue_print(&e, once, sizeof once, &length) == HK_OK && length == strlen(once));
    REQUIRE(hk_epilogue_parse(&e, once) == HK_OK);
    REQUIRE(hk_epilogue_print(&e, twice, sizeof twice, NULL) == HK_OK && !strcmp(once, twice));
  }
  free(text);
  return 0;
}
