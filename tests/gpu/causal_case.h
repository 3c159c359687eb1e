/* A random problem of hk_causal: its tensors on the host between guards, their copies on the device, and the formula
 * of include/hankel.h in double. Values are small integers, so sums are exact and only smooth activations round. */
#ifndef HK_TESTS_GPU_CAUSAL_CASE_H
#define HK_TESTS_GPU_CAUSAL_CASE_H
#include <stdbool.h>
#include <stdint.h>

#include "hankel.h"

/* Elements of a tensor lie from `first` on in memory of `count` elements; all that is no element is 0xff bytes. */
typedef struct causal_tensor {
  hk_type type;
  int64_t first, count;
  char *host, *want, *device;
} causal_tensor;

enum { CAUSAL_SEQUENCES = 8, CAUSAL_TOKENS = 4096 };
typedef struct causal_case {
  hk_causal_desc d;
  uint64_t seed, next;
  char text[512];
  /* in, weights, results, states; dy, dx and so on of the gradient */
  causal_tensor x, f, bias, pre, post, residual, y, state_in, state_out, dy, dx, df, dbias, dstate_in, dstate_out;
  hk_causal_strides dx_at;
  bool plain; /* x, y, dy and dx lie alike; no gates, no gradients of states */
  bool in_place_state, has_state_in, has_state_out, has_dstate;
  int64_t slots;
  int32_t *slots_in, *slots_out, *positions, *accepted, *offsets, *ids; /* NULL: not given */
  uint8_t *has_state;
  int32_t tables[6][CAUSAL_TOKENS];
  uint8_t bytes[CAUSAL_SEQUENCES];
  char *device_tables;
} causal_case;

/* Makes case number `seed`; false when its description is to be skipped. */
void causal_case_make(causal_case *k, uint64_t seed, bool gradient);
/* Fills `args` with device pointers and copies everything to the device. */
void causal_case_up(causal_case *k, hk_causal_args *args);
/* Computes want of y and state_out. */
void causal_case_reference(causal_case *k);
/* Copies a tensor back and compares it with want; reports the first difference. loose: allowed relative error. */
void causal_case_compare(causal_case *k, causal_tensor *t, const char *name, double loose);
/* Tokens of sequence s, and where its first one lies. */
int64_t causal_case_length(const causal_case *k, int64_t s);
int64_t causal_case_at(const causal_case *k, hk_causal_strides at, int64_t s, int64_t c, int64_t t);
/* u at token t >= -dilation*(window-1) of a sequence. */
double causal_case_u(const causal_case *k, int64_t s, int64_t c, int64_t t);
bool causal_case_skips(const causal_case *k, int64_t s);
double causal_get(const causal_tensor *t, int64_t i);
void causal_put(const causal_tensor *t, char *memory, int64_t i, double v);
/* Copies a tensor to the device; returns its element 0 there. */
void *causal_case_copy(causal_tensor *t);
/* Makes dy, dx, df, dbias and the gradients of states of a case made with `gradient`. */
void causal_case_make_grads(causal_case *k);
/* causal_grad.c: makes gradient case number `seed`, runs it and compares. */
void causal_grad_check(causal_case *k, uint64_t seed);
#endif
