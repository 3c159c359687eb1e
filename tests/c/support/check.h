/* Assertions that report what failed and continue, and random numbers; main returns hk_test_end(). */
#ifndef HK_TEST_CHECK_H
#define HK_TEST_CHECK_H
#include <stdio.h>
#include <string.h>

#include "hankel.h"

extern int hk_test_passed, hk_test_failed;

#define CHECK(condition, ...)                                                                                          \
  do {                                                                                                                 \
    if (condition) {                                                                                                   \
      hk_test_passed++;                                                                                                \
    } else if (hk_test_failed++ < 50) {                                                                                \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                                  \
      fprintf(stderr, __VA_ARGS__);                                                                                    \
      fprintf(stderr, "\n");                                                                                           \
    }                                                                                                                  \
  } while (0)

/* Checks the status of a call and, for a failure, that its sentence contains the word. */
#define CHECK_STATUS(expected, word, call)                                                                             \
  do {                                                                                                                 \
    const hk_status got_ = (call);                                                                                     \
    CHECK(got_ == (expected), "got %s \"%s\"", hk_status_name(got_), hk_last_error());                                 \
    if ((expected) != HK_OK && got_ == (expected))                                                                     \
      CHECK(strstr(hk_last_error(), (word)) != NULL, "the sentence lacks \"%s\": \"%s\"", word, hk_last_error());      \
  } while (0)

int hk_test_end(void); /* prints "N passed, N failed", returns the exit status */

/* The random generator of the C tests: the same values for the same seed. */
int64_t hk_test_between(uint64_t *seed, int64_t lo, int64_t hi); /* uniform in lo..hi */
int hk_test_integer(uint64_t *seed, int range);                  /* uniform in -range..range */
float hk_test_float(uint64_t *seed);                             /* uniform in [-1, 1) */
#endif
