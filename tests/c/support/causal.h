/* Random calls of hk_causal: description, tensors at random strides between guard pages, states, tables, and the result
 * by the formula of hankel.h, written here a second time. */
#ifndef TEST_CAUSAL_H
#define TEST_CAUSAL_H
#include <stdbool.h>

#include "hankel.h"
#include "support/guard.h"

enum { CAUSAL_MAX_N = 6 };

/* A tensor: `outer` x c x time elements somewhere in poisoned memory. */
typedef struct causal_tensor {
  guarded g;
  hk_type type;
  hk_causal_strides at;
  int64_t outer, c, time;
  int64_t elements;     /* of the memory */
  char *memory;         /* its first element */
  char *base;           /* element (0, 0, 0) */
  unsigned char *owned; /* per element of memory: the tensor addresses it */
  char *saved;          /* the memory as it was filled */
} causal_tensor;

typedef struct causal_trial {
  hk_causal_desc d;
  hk_causal_args a;
  hk_causal_grads g;
  bool exact;        /* small integers: results must be equal */
  bool copied_state; /* state_out is memory of its own */
  int64_t slots;
  causal_tensor x, y, pre, post, residual, f, bias, state_in, state_out, dy, dx, dstate_in, dstate_out;
  float *df, *dbias;
  /* the formula's results, and how far off they may be: y as [outer][c][time] (left out: NaN), states as
   * [slot][c][entry]; of a gradient dx, dstate_in, df and dbias */
  double *want_y, *bound_y, *want_state, *want_df, *bound_df, *want_dbias, *bound_dbias, *want_dstate, *bound_dstate;
  int32_t slots_in[CAUSAL_MAX_N], slots_out[CAUSAL_MAX_N], positions[CAUSAL_MAX_N], accepted[CAUSAL_MAX_N];
  int32_t offsets[CAUSAL_MAX_N + 1];
  int32_t *ids;
  uint8_t has_state[CAUSAL_MAX_N];
} causal_trial;

typedef enum causal_kind { CAUSAL_FORWARD, CAUSAL_GRADIENT } causal_kind;
void causal_trial_make(causal_trial *t, uint64_t *seed, causal_kind kind);
void causal_trial_free(causal_trial *t);
/* All memory as before the first call. */
void causal_trial_reset(causal_trial *t);
/* causal_want.c: the formula. Then compares what a call left with it: returns the number of wrong places and tells the
 * first on stderr. */
void causal_trial_want(causal_trial *t);
void causal_trial_want_gradient(causal_trial *t);
int causal_trial_compare(const causal_trial *t);
int causal_trial_compare_gradient(const causal_trial *t);
void causal_trial_print(const causal_trial *t);

static inline int64_t causal_element(const causal_tensor *m, int64_t o, int64_t c, int64_t t) {
  return o * m->at.outer + c * m->at.channel + t * m->at.time;
}
#endif
