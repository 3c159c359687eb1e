/* Inside the rig. A slot plays a source: a part, one size of it, and the gains that belong to it. While a slot fades it
 * plays two.
 *
 *   glide.c     gains that move without a step       gate.c     the noise gate
 *   sinc.c      rate conversion                      bridge.c   an amp at its own rate between two conversions
 *   part.c      amps, made off the audio thread      cabinet.c  impulse responses, likewise
 *   source.c    how a part plays                     slot.c     the fade from one source to the next
 *   rig.c       memory, controls, process */
#ifndef NAM_RIG_H
#define NAM_RIG_H
#include "bridge.h"
#include "play.h"

enum { RIG_CHANNELS = 2 };

/* A gain on its way to target: two one-pole filters in a row, so that its slope has no step either. */
typedef struct rig_glide {
  double target, first, now;
} rig_glide;
void rig_glide_set(rig_glide *g, double value); /* at once */
/* The next n values of g; false, and no values, when all are g->now. rate: per second. */
bool rig_glide_next(rig_glide *g, double rate, int64_t n, float *gain);

typedef struct rig_gate {
  bool open;
  double way;    /* of the gain's rise, 0 to 1 */
  double peak;   /* the envelope */
  int64_t quiet; /* frames that it has been low for */
} rig_gate;
void rig_gate_reset(rig_gate *g, bool open);
bool rig_gate_next(hk_rig *rig, const float *x, int64_t n, float *gain);

/* Histories of an amp's conversions: two sets, since both sizes of a change need one. */
enum { RIG_LANES = 2 };

struct hk_rig_part {
  hk_rig_slot slot;
  double rate; /* of the rig that it was made for */
  int32_t channels;
  hk_rig_part *link; /* the next of the retired parts */
  size_t bytes;
  int64_t latency;
  /* amp: one player per channel of the rig, of the same weights */
  hk_nam *player[RIG_CHANNELS];
  hk_nam_facts facts;
  rig_bridge bridge;
  float *conversion; /* the bridge's memory; NULL: the rates are equal */
  rig_crossing crossing[RIG_LANES][RIG_CHANNELS];
  /* cabinet: one stream for all channels, or one per channel */
  hk_chain *chain;
  hk_stream *stream[RIG_CHANNELS];
  int32_t streams;
  size_t chain_bytes, stream_bytes;
  int64_t frames;
};

hk_rig_part *rig_part_new(const hk_rig *rig, hk_rig_slot slot);          /* NULL, with a sentence: no memory */
hk_status rig_part_end(hk_rig_part **part, hk_rig_part *p, hk_status e); /* of loading: hands p over, or frees it */

typedef struct rig_source {
  hk_rig_part *part; /* NULL: the signal passes */
  int32_t size;      /* of an amp */
  int32_t lane;
  rig_glide in, out; /* calibration, level */
} rig_source;

/* Frames of touching: a multiple of the usual blocks, so that none of them is cut. */
enum { RIG_TOUCH = 8 * BLOCK };
typedef struct rig_slot {
  rig_source now, next;
  bool fading, waits; /* waits: `waiting` comes after this fade */
  hk_rig_part *waiting;
  int64_t at;           /* frames since the change began */
  int64_t listen, fade; /* when listening and fading begin */
} rig_slot;

struct hk_rig {
  double rate;
  int32_t channels;
  int64_t fade; /* frames */
  hk_isa isa;
  bool fresh; /* nothing was heard yet: parts are taken up at once */
  rig_slot slot[2];
  hk_rig_part *retired;
  hk_rig_controls controls;
  rig_glide input, output, bypass;
  rig_gate gate;
  int64_t now;        /* frames since the last reset */
  int64_t delay_mask; /* the dry signal, for the bypass */
  float *delay[RIG_CHANNELS];
  float *work, *other, *dry; /* [channels][BLOCK] each */
  float *gain;               /* [BLOCK] */
};

int64_t rig_most_latency(double rate);
/* A source over [channels][BLOCK] frames, in place. */
hk_status rig_source_play(const rig_source *s, int64_t n, float *x);
hk_status rig_source_reset(rig_source *s);                          /* to frame 0 of the rig */
void rig_source_rewind(const rig_source *s, int64_t now);           /* the histories of rate conversion alone */
int64_t rig_source_listens(const hk_rig *rig, const rig_source *s); /* frames until its histories hold the signal */
/* Fetches frames at to at+n of RIG_TOUCH equal shares of its memory. */
void rig_source_touch(const rig_source *s, int64_t at, int64_t n);
/* A slot over [channels][BLOCK] frames, in place. */
hk_status rig_slot_play(hk_rig *rig, rig_slot *slot, int64_t n, float *x);
void rig_slot_take_up(hk_rig *rig, rig_slot *slot); /* what waits, where nothing fades */
void rig_slot_end(hk_rig *rig, rig_slot *slot);     /* of a fade */
/* Frames that the next piece may have, at most n. */
int64_t rig_slot_piece(const hk_rig *rig, const rig_slot *slot, int64_t n);
void rig_slot_advance(hk_rig *rig, rig_slot *slot, int64_t n);
void rig_aim(const hk_rig *rig, rig_source *s); /* the gains of a source, by the controls */
double rig_gain(double db);
/* How loud the next source is at a frame of the fade, 0 to 1. */
float rig_fade(const hk_rig *rig, const rig_slot *slot, int64_t at);
void rig_scale(hk_rig *rig, rig_glide *g, int64_t n, float *x);
#endif
