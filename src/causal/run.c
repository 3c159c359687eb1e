/* Runs a call: checks, floating-point mode, and pieces of one sequence and a range of channels for the threads. A piece
 * is computed by one thread alone, so the bits do not depend on their number. Nothing here allocates. */
#include "causal/causal.h"

/* A call of less work (elements times taps, plus 12 for all else) stays on its own thread: waking helpers takes about
 * 10 us, which is what 20,000 elements of 4 taps take. */
#define ALONE 320000.0

typedef struct wrapped {
  hk_body body;
  void *context;
  bool flush;
} wrapped;

static void call_body(void *context, int64_t i) {
  const wrapped *w = context;
  const uint64_t mode = hk_fp_set(w->flush);
  w->body(w->context, i);
  hk_fp_restore(mode);
}

void hk_causal_share(const hk_options *o, int32_t threads, int64_t count, hk_body body, void *context) {
  wrapped w = {body, context, o->denormals == HK_DENORMALS_FLUSH};
  if (count > 1 && o->parallel_for) o->parallel_for(o->pool, count, call_body, &w);
  else if (count > 1 && threads > 1) hk_pool_run(threads, count, call_body, &w);
  else
    for (int64_t i = 0; i < count; i++) call_body(&w, i);
}

void hk_causal_parallel(const hk_causal *k, int64_t count, hk_body body, void *context) {
  const hk_causal_desc *d = &k->d;
  const double rows = d->packing == HK_CAUSAL_OFFSETS ? 1 : (double)d->n;
  const bool alone = rows * (double)d->c * (double)d->length * (double)(d->window + 12) < ALONE;
  if (!alone) {
    hk_causal_share(&k->o, k->threads, count, body, context);
    return;
  }
  const uint64_t mode = hk_fp_set(k->o.denormals == HK_DENORMALS_FLUSH);
  for (int64_t i = 0; i < count; i++) body(context, i);
  hk_fp_restore(mode);
}

typedef struct call {
  const hk_causal *k;
  const hk_causal_args *a;
  int64_t pieces; /* per sequence */
} call;

static void run_piece(void *context, int64_t i) {
  const call *call = context;
  const hk_causal *k = call->k;
  hk_causal_seq q;
  hk_causal_seq_make(&q, &k->d, call->a, i / call->pieces);
  if (q.skipped) return;
  const int64_t first = i % call->pieces * k->piece, end = hk_min64(first + k->piece, k->d.c);
  if (k->way != HK_CAUSAL_REF) {
    hk_causal_piece(k, call->a, &q, first, end - first);
    return;
  }
  for (int64_t c = first; c < end; c++) hk_ref_causal(&k->d, call->a, &q, c);
}

hk_status hk_causal_execute(const hk_causal *causal, const hk_causal_args *args) {
  hk_causal_args room;
  if (!causal) return hk_fail(HK_INVALID, "causal is NULL");
  if (!(args = hk_take(args, &room, sizeof room, "args"))) return HK_INVALID;
  const hk_status s = hk_causal_check_args(causal, args);
  if (s) return s;
  if (causal->o.device == HK_CUDA) return hk_cu_causal_run(&causal->cuda, &causal->d, args);
  call call = {causal, args, hk_ceil_div(causal->d.c, causal->piece)};
  hk_causal_parallel(causal, causal->d.n * call.pieces, run_piece, &call);
  return HK_OK;
}
