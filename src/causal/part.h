/* A part of a call: some channels of one sequence, and rows of f32 on the stack through which they pass. */
#ifndef HK_CAUSAL_PART_H
#define HK_CAUSAL_PART_H
#include "causal/causal.h"

typedef struct hk_causal_part {
  const hk_causal *k;
  const hk_causal_args *a;
  const hk_causal_seq *q;
  int64_t c, count; /* channels c..c+count-1 */
  bool channels;    /* lanes are channels, else tokens */
} hk_causal_part;

/* Part of a tensor: element (i, e) of channel c+i and entry or token e. */
typedef struct hk_causal_view {
  hk_type type;
  char *at;
  int64_t channel, time;
} hk_causal_view;

/* f32 of the same: (i, e) is at rows[e*step + i] or, lanes being tokens, at rows[i*step + e]. */
typedef struct hk_causal_rows {
  float *rows;
  int64_t step;
} hk_causal_rows;

static inline hk_causal_rows hk_causal_from(const hk_causal_part *p, hk_causal_rows b, int64_t e) {
  return (hk_causal_rows){b.rows + (p->channels ? e * b.step : e), b.step};
}
static inline hk_causal_view hk_causal_view_of(hk_type type, const void *tensor, int64_t element, int64_t channel,
                                               int64_t time) {
  return (hk_causal_view){type, (char *)(uintptr_t)tensor + element * (int64_t)hk_type_bytes(type), channel, time};
}
/* Of a tensor of x's type from token t on; of states from an entry on. */
hk_causal_view hk_causal_token_view(const hk_causal_part *p, const void *tensor, const hk_causal_strides *s, int64_t t);
hk_causal_view hk_causal_state_view(const hk_causal_part *p, const void *state, int64_t slot, int64_t entry);

/* Moves the first `entries` entries of v into b, or back. */
void hk_causal_move(const hk_causal_part *p, bool back, hk_causal_view v, int64_t entries, hk_causal_rows b);
void hk_causal_clear(const hk_causal_part *p, int64_t entries, hk_causal_rows b);
/* u of `count` tokens from t on. */
void hk_causal_load_tokens(const hk_causal_part *p, int64_t t, int64_t count, hk_causal_rows b);
/* Entries from..from+count-1 of the old state, in the order of a ring's tokens if it is one (from is then a token). */
void hk_causal_load_state(const hk_causal_part *p, int64_t from, int64_t count, hk_causal_rows b);
/* All taps of the part's channels. */
void hk_causal_load_weights(const hk_causal_part *p, hk_causal_rows b);
/* The bias as f32: in place, in room (count floats), or NULL. */
const float *hk_causal_load_bias(const hk_causal_part *p, float *room);
#endif
