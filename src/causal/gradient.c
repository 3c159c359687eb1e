/* The backward pass: a piece is a range of channels with all sequences, so that df and dbias are summed in one order
 * whatever the threads. */
#include "causal/causal.h"

typedef struct call {
  const hk_causal *k;
  const hk_causal_args *a;
  const hk_causal_grads *g;
  int64_t piece; /* channels */
} call;

static void run_piece(void *context, int64_t i) {
  const call *call = context;
  const hk_causal *k = call->k;
  const int64_t first = i * call->piece, end = hk_min64(first + call->piece, k->d.c);
  if (k->back) {
    hk_causal_back_piece(k, call->a, call->g, first, end - first);
    return;
  }
  for (int64_t c = first; c < end; c++) hk_ref_causal_gradient(&k->d, call->a, call->g, c);
}

hk_status hk_causal_gradient(const hk_causal *causal, const hk_causal_args *args, const hk_causal_grads *grads) {
  hk_causal_args args_room;
  hk_causal_grads grads_room;
  if (!causal) return hk_fail(HK_INVALID, "causal is NULL");
  if (!(args = hk_take(args, &args_room, sizeof args_room, "args")) ||
      !(grads = hk_take(grads, &grads_room, sizeof grads_room, "grads")))
    return HK_INVALID;
  hk_causal_grads g = *grads;
  hk_status s;
  if ((s = hk_causal_check_grads(causal, args, &g)) || (s = hk_causal_check_dx(&causal->d, &g.dx_at))) return s;
  if (causal->o.device == HK_CUDA) return hk_cu_causal_grad(&causal->cuda, &causal->d, args, &g);
  call call = {causal, args, &g, causal->piece};
  int64_t size;
  if (causal->back) hk_causal_back_fits(causal, &size, &call.piece);
  hk_causal_parallel(causal, hk_ceil_div(causal->d.c, call.piece), run_piece, &call);
  return HK_OK;
}
