/* Causal depthwise Conv1D: what hk_causal_create makes and the passes over it. A call is checked (check.c for the
 * description, check_args.c for what changes from call to call), then cut into pieces of one sequence and a range of
 * channels that threads take (run.c), each computed by one of three ways. */
#ifndef HK_CAUSAL_H
#define HK_CAUSAL_H
#include "core/core.h"
#include "cpu/ref/causal.h"
#include "cuda/causal/causal.h"

typedef enum hk_causal_way {
  HK_CAUSAL_REF = 0 /* the scalar reference: any strides */
} hk_causal_way;

struct hk_causal {
  hk_causal_desc d; /* defaults filled in */
  hk_options o;
  int32_t threads;
  hk_isa isa;
  hk_causal_way way;
  int64_t piece; /* channels of a piece of work */
  hk_cu_causal cuda; /* with o.device = HK_CUDA, in place of the above */
};

/* check.c: fills the defaults of d and refuses what breaks a rule. */
hk_status hk_causal_check(hk_causal_desc *d);
/* The same for the strides of dx. */
hk_status hk_causal_check_dx(const hk_causal_desc *d, hk_causal_strides *dx);
/* check_args.c: args and grads of a call; nothing has been written when they refuse. */
hk_status hk_causal_check_args(const hk_causal *k, const hk_causal_args *a);
hk_status hk_causal_check_grads(const hk_causal *k, const hk_causal_args *a, const hk_causal_grads *g);
/* run.c: body(context, i) for i < count on the threads of k; alone if the call is too small to share. */
void hk_causal_parallel(const hk_causal *k, int64_t count, hk_body body, void *context);
#endif
