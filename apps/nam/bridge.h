/* An amp at its own rate inside a host of another: two streaming rate converters around it. */
#ifndef NAM_BRIDGE_H
#define NAM_BRIDGE_H
#include "play.h"
#include "sinc.h"

typedef struct rig_bridge { /* what does not change; taps NULL: the rates are equal */
  sinc_bank in, out;        /* host to model, model to host */
  int64_t latency;          /* host frames, there and back */
  int64_t most;             /* model frames of BLOCK host frames */
  int64_t ahead;            /* model frames that wait for their host frame, at most */
} rig_bridge;

typedef struct rig_reel { /* frames on their way through one converter */
  float *frame;
  int64_t filled, at, phase; /* at: first frame that the next one needs */
} rig_reel;

typedef struct rig_crossing { /* the histories of one signal */
  rig_reel in, out;
  float *model; /* [most] */
} rig_crossing;

bool rig_bridge_plan(rig_bridge *b, double host, double model); /* false, with a sentence: refused */
int64_t rig_bridge_taps(const rig_bridge *b);                   /* floats of both banks */
void rig_bridge_fill(rig_bridge *b, float *taps);
int64_t rig_crossing_floats(const rig_bridge *b);
void rig_crossing_place(const rig_bridge *b, rig_crossing *c, float *memory);
/* Silence before host frame `now`. Where frames of the model lie depends on now alone, so a crossing that begins late
 * gives the bits of one that was always there. */
void rig_crossing_reset(const rig_bridge *b, rig_crossing *c, int64_t now);
/* n frames of the host, 0 to BLOCK, through one size of a player, in place. */
hk_status rig_crossing_play(const rig_bridge *b, rig_crossing *c, const hk_nam *player, int32_t size, int64_t n,
                            float *x);
#endif
