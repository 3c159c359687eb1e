/* Assertions that say what failed and go on; main returns hk_test_end(). */
#ifndef HK_TEST_CHECK_H
#define HK_TEST_CHECK_H
#include <stdio.h>
#include <string.h>

#include "hankel.h"

extern int hk_test_passed, hk_test_failed;

#define CHECK(condition, ...)                                          \
  do {                                                                 \
    if (condition) {                                                   \
      hk_test_passed++;                                                \
    } else if (hk_test_failed++ < 50) {                                \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);  \
      fprintf(stderr, __VA_ARGS__);                                    \
      fprintf(stderr, "\n");                                           \
    }                                                                  \
  } while (0)

/* status is the one expected and, for a failure, the sentence holds the word */
#define CHECK_STATUS(expected, word, call)                                                                \
  do {                                                                                                    \
    const hk_status got_ = (call);                                                                        \
    CHECK(got_ == (expected), "got %s \"%s\"", hk_status_name(got_), hk_last_error());                    \
    if ((expected) != HK_OK && got_ == (expected))                                                        \
      CHECK(strstr(hk_last_error(), (word)) != NULL, "the sentence lacks \"%s\": \"%s\"", word, hk_last_error()); \
  } while (0)

int hk_test_end(void); /* prints "N passed, N failed", returns the exit status */
/* Small integers in -range..range, the same for the same seed. */
int hk_test_integer(uint64_t *seed, int range);
#endif
