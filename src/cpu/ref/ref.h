/* The scalar reference: the definition of a convolution with its epilogue. */
#ifndef HK_REF_H
#define HK_REF_H
#include "core/core.h"

typedef struct hk_ref_args {
  const hk_geom *g;
  const hk_epi *epi;
  const char *x, *f, *c;       /* offsets already added */
  char *y;
  const void *scale, *bias, *slopes;
  const int32_t *f_zero;       /* per k over all groups, or NULL */
  bool stateful;
  const char *state_in;        /* [n][c][lo] or NULL */
  void *user;
} hk_ref_args;

/* Computes all channels of output position m = ((n*out0 + p0)*out1 + p1)*out2 + p2. */
void hk_ref_position(const hk_ref_args *a, int64_t m);
/* Writes the state after this block: the last lo positions of (state_in, x); state_out may equal state_in. */
void hk_ref_state(const hk_ref_args *a, char *state_out);
#endif
