/* Problem strings, both forms: whatever the text, parsing ends with a status and a sentence; what parses passes the
 * check or is the y of a gated epilogue, has sizes, and prints a text that parses to the same problem again. */
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

static void round_trip(const hk_problem *p) {
  char text[2048], again[2048];
  size_t length = 0;
  hk_problem q;
  REQUIRE(hk_problem_print(p, text, sizeof text, &length) == HK_OK);
  REQUIRE(length == strlen(text));
  REQUIRE(hk_problem_parse(&q, text) == HK_OK);
  REQUIRE(hk_problem_print(&q, again, sizeof again, NULL) == HK_OK);
  REQUIRE(!strcmp(text, again));
  /* A short buffer is filled, ended and not overrun. */
  char cut[8] = "-------";
  REQUIRE(hk_problem_print(p, cut, 5, &length) == HK_OK && cut[4] == 0 && cut[5] == '-');
  REQUIRE(length == strlen(text));
}

static void try_text(const char *text, hk_status (*parse)(hk_problem *, const char *)) {
  hk_problem p;
  const hk_status status = parse(&p, text);
  if (status) {
    REQUIRE(status == HK_SYNTAX || status == HK_INVALID);
    REQUIRE(*hk_last_error());
    return;
  }
  int64_t out[HK_MAX_RANK], batch;
  hk_extent x, f, y;
  double flops, bytes;
  if (hk_problem_check(&p) == HK_OK) {
    REQUIRE(hk_problem_output(&p, out, &batch) == HK_OK);
    REQUIRE(hk_problem_extents(&p, &x, &f, &y) == HK_OK);
    REQUIRE(hk_problem_work(&p, &flops, &bytes) == HK_OK && flops >= 0 && bytes >= 0);
  }
  round_trip(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = 0;
  try_text(text, hk_problem_parse);
  try_text(text, hk_problem_parse_deconv);
  free(text);
  return 0;
}
