/* The scalar reference of causal depthwise Conv1D: the definition of hk_causal_execute and hk_causal_gradient, one
 * channel of one sequence at a time. */
#ifndef HK_REF_CAUSAL_H
#define HK_REF_CAUSAL_H
#include "core/core.h"

/* In place, history is copied before the state and y are written: this many entries at most. */
#define HK_CAUSAL_REACH 4096

/* One sequence of a call, its places resolved: token t of channel c of a tensor lies at `first` of its strides plus
 * channel*c + time*t. */
typedef struct hk_causal_seq {
  int64_t s, tokens;
  int64_t outer, token;       /* what first is made of: outer*strides.outer + token*strides.time */
  int64_t slot_in, slot_out;  /* slot_out -1: the state is not written */
  int64_t position, accepted; /* accepted 0: none */
  bool skipped, has_state;
} hk_causal_seq;
void hk_causal_seq_make(hk_causal_seq *q, const hk_causal_desc *d, const hk_causal_args *a, int64_t s);

static inline int64_t hk_causal_reach(const hk_causal_desc *d) { return d->dilation * (d->window - 1); }
static inline int64_t hk_causal_at(const hk_causal_seq *q, const hk_causal_strides *s, int64_t c, int64_t t) {
  return q->outer * s->outer + c * s->channel + (q->token + t) * s->time;
}
/* The entry of the old state that holds token t < 0, or -1: it is zero. */
int64_t hk_causal_entry(const hk_causal_desc *d, const hk_causal_seq *q, int64_t t);

/* Defaults are filled in d. Each computes one channel of one sequence; hk_ref_causal all of it, y and then state; the
 * state alone may be updated before an y that does not need it any more. */
void hk_ref_causal(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_seq *q, int64_t c);
void hk_ref_causal_state(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_seq *q, int64_t c);
/* One channel of all sequences, so that df and dbias are sums in one order. */
void hk_ref_causal_gradient(const hk_causal_desc *d, const hk_causal_args *a, const hk_causal_grads *g, int64_t c);
#endif
