/* Playing live. The main thread loads parts, reads standard input and frees; the audio thread plays. Between them: a
 * ring of orders to the audio thread, a ring of spent parts back. */
#ifndef NAM_LIVE_H
#define NAM_LIVE_H
#include <stdatomic.h>

#include "jack.h"
#include "program.h"

enum { ORDERS = 64, LIVE_CHANNELS = 2 };
typedef struct order { /* slot below 0: new controls */
  int32_t slot;
  hk_rig_part *part;
  hk_rig_controls controls;
} order;

typedef struct live {
  jack jack;
  jack_client *client;
  jack_port *in[LIVE_CHANNELS], *out[LIVE_CHANNELS];
  int32_t channels;
  uint32_t rate;
  hk_rig *rig;
  hk_rig_controls controls; /* as the main thread sent them last */
  order orders[ORDERS];     /* one writer: the main thread */
  atomic_uint ordered, obeyed;
  hk_rig_part *spent[ORDERS]; /* one writer: the audio thread */
  atomic_uint spent_written, spent_read;
  hk_rig_controls playing; /* audio thread */
  atomic_uint xruns, latency;
  atomic_bool ended, other_rate; /* the server is gone; it has another rate than the rig */
} live;

/* exchange.c */
void live_order(live *l, order o);           /* main thread; waits while the ring is full */
void live_collect(live *l);                  /* main thread: frees what is spent */
int live_process(uint32_t frames, void *of); /* audio thread: JACK's callback */

/* commands.c: one line of standard input; false: quit. A line that means nothing is refused with a sentence. */
bool live_command(live *l, arguments *a, char *line);
hk_rig_controls live_controls(const arguments *a);
/* Loads a file and orders it; 0, or 1 with a sentence on stderr. */
int live_load(live *l, const arguments *a, hk_rig_slot slot, const char *path);
#endif
