/* A random call of hk_longconv and the formula of hankel.h in double: every layout, type and optional tensor, forward
 * and backward. Outputs lie between neighbours that must stay untouched. */
#ifndef HK_TESTS_LONGCONV_H
#define HK_TESTS_LONGCONV_H
#include <stdbool.h>
#include <stdint.h>

#include "hankel.h"

typedef struct longconv_tensor {
  hk_type type;
  hk_causal_strides at;
  int64_t elements, first;
  char *memory;
  double *value; /* [n][c][length], as rounded to the type */
} longconv_tensor;

typedef struct longconv_trial {
  hk_longconv_desc d;
  longconv_tensor x, pre, post, dy, y, dx, dpre, dpost;
  double *f, *skip;
  void *f_memory, *skip_memory;
  float *df, *dskip;
  double *want[6]; /* y, dx, dpre, dpost, df, dskip */
} longconv_trial;

/* Sequences of up to `longest` tokens, and what they must give. */
void longconv_trial_make(longconv_trial *r, uint64_t *seed, int64_t longest);
void longconv_trial_free(longconv_trial *r);
/* Runs it with these options and compares; constant: filters are given at creation. Failures go to CHECK. */
void longconv_trial_run(const longconv_trial *r, const hk_options *o, bool constant);
#endif
