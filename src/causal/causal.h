/* Causal depthwise Conv1D: what hk_causal_create makes and the passes over it. A call is checked (check.c for the
 * description, check_args.c for what changes from call to call), then cut into pieces of one sequence and a range of
 * channels that threads take (run.c), each computed by one of three ways. */
#ifndef HK_CAUSAL_H
#define HK_CAUSAL_H
#include "core/core.h"
#include "cpu/ref/causal.h"
#include "cpu/ukernel.h"
#include "cuda/causal/causal.h"

/* Floats on the stack of a piece (weights, bias, entries of state), those that it uses where 64 channels fit in them
 * (half of an L1), and its most channels. */
#define HK_CAUSAL_ROOM 16384
#define HK_CAUSAL_NEAR 4096
#define HK_CAUSAL_PIECE 1024

typedef enum hk_causal_way {
  HK_CAUSAL_REF = 0,      /* the scalar reference: any strides */
  HK_CAUSAL_CHANNELS = 1, /* causalc: channels of every tensor are adjacent */
  HK_CAUSAL_TOKENS = 2    /* causalt: tokens of every tensor are adjacent */
} hk_causal_way;

struct hk_causal {
  hk_causal_desc d; /* defaults filled in */
  hk_options o;
  int32_t threads;
  hk_isa isa;
  hk_causal_way way;
  const hk_kernel *kernel, *spread, *back; /* back: of the gradient; NULL: the reference */
  int64_t piece;                           /* channels of a piece of work */
  int64_t entries;                         /* of history and new state that a piece has room for */
  hk_cu_causal cuda;                       /* with o.device = HK_CUDA, in place of the above */
};

/* check.c: fills the defaults of d and refuses what breaks a rule. */
hk_status hk_causal_check(hk_causal_desc *d);
hk_status hk_causal_check_options(const hk_options *o);
/* The same for the strides of a tensor shaped as x that is written. */
hk_status hk_causal_check_written(const hk_causal_desc *d, const char *name, hk_causal_strides *s);
/* And for those of dx. */
hk_status hk_causal_check_dx(const hk_causal_desc *d, hk_causal_strides *dx);
/* check_args.c: args and grads of a call; nothing has been written when they refuse. */
hk_status hk_causal_check_args(const hk_causal *k, const hk_causal_args *a);
hk_status hk_causal_check_grads(const hk_causal *k, const hk_causal_args *a, const hk_causal_grads *g);
/* piece.c: channels c..c+count-1 of one sequence by the kernels of k. */
void hk_causal_piece(const hk_causal *k, const hk_causal_args *a, const hk_causal_seq *q, int64_t c, int64_t count);
/* back.c: the gradient of channels c..c+count-1 of all sequences; and whether it takes k, in tiles of *size tokens and
 * *count channels. */
bool hk_causal_back_fits(const hk_causal *k, int64_t *size, int64_t *count);
void hk_causal_back_piece(const hk_causal *k, const hk_causal_args *a, const hk_causal_grads *g, int64_t c,
                          int64_t count);
/* run.c: body(context, i) for i < count on the threads of the options, in their floating-point mode; those of k, alone
 * if the call is too small to share. */
void hk_causal_share(const hk_options *o, int32_t threads, int64_t count, hk_body body, void *context);
void hk_causal_parallel(const hk_causal *k, int64_t count, hk_body body, void *context);
#endif
