/* One instance of the plugin. Three kinds of thread meet here:
 *
 *   audio    run: plays, reads the host's messages, takes parcels, hands spent parts back; no allocation, lock or call
 *   worker   work: loads files and frees what is spent; one at a time, beside the audio thread
 *   others   save and restore, beside both
 *
 * Nothing that must be freed travels through the host's messages, which a host may drop at its end: a loaded part waits
 * in slot.mail, one that is not heard any more in the ring of spent things, and messages only say that it is there. */
#ifndef LV2_PLUGIN_H
#define LV2_PLUGIN_H
#include <lv2/atom/forge.h>
#include <lv2/log/logger.h>
#include <lv2/state/state.h>
#include <lv2/worker/worker.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "hankel_nam.h"

#define PLUGIN_URI "urn:hankel:amp"
/* Of a path with its end. Hosts copy messages through rings of 4096 bytes. */
enum { MAX_PATH = 3072, SLOTS = 2, SPENT = 64 };

/* hankel.ttl numbers the ports like this; the audio inputs follow, then the outputs. */
typedef enum port_index {
  PORT_CONTROL,
  PORT_NOTIFY,
  PORT_INPUT,
  PORT_OUTPUT,
  PORT_GATE,
  PORT_LEVEL,
  PORT_INTERFACE,
  PORT_SIZE,
  PORT_ENABLED,
  PORT_LATENCY,
  PORT_AUDIO
} port_index;

typedef struct urids {
  LV2_URID path, string, object, sequence, urid;
  LV2_URID get, set, property, value;
  LV2_URID slot[SLOTS]; /* the properties: model and impulse response */
} urids;

/* What is loaded for a slot; part is NULL and path empty where the slot is to be empty. */
typedef struct parcel {
  hk_rig_part *part;
  char path[];
} parcel;

typedef enum message_kind { LOAD, COLLECT, TOO_LONG, NO_PATH, CAME, REFUSED } message_kind;
typedef struct message { /* run to work; CAME and REFUSED: work to run */
  int32_t kind, slot;
  char path[MAX_PATH];
} message;

typedef struct slot {
  message wanted; /* audio: a message that the host had no room for */
  uint32_t wanted_bytes;
  parcel *current; /* audio: what plays, its part in the rig; NULL: nothing */
  bool tell;       /* audio: the host is to hear what plays */
  _Atomic(parcel *) mail;
  char saved[MAX_PATH]; /* under the mutex: the path that state holds */
} slot;

typedef struct spent { /* one of the two */
  parcel *parcel;
  hk_rig_part *part;
} spent;

typedef struct plugin {
  hk_rig *rig;
  int32_t channels;
  const float *control[PORT_AUDIO];
  const LV2_Atom_Sequence *messages;
  LV2_Atom_Sequence *notify;
  float *latency, *out[2];
  const float *in[2];
  urids urid;
  LV2_Atom_Forge forge;
  LV2_Log_Logger log;
  const LV2_Worker_Schedule *schedule;
  slot slot[SLOTS];
  spent spent[SPENT]; /* a ring: the audio thread writes, the worker reads */
  atomic_uint spent_written, spent_read;
  unsigned spent_told;   /* audio: up to where the worker was told of */
  pthread_mutex_t mutex; /* of saved and the order of mail; never taken by the audio thread */
} plugin;

/* audio.c */
void plugin_run(LV2_Handle instance, uint32_t frames);

/* messages.c: audio thread */
void plugin_handle(plugin *p, const LV2_Atom *atom); /* one message of the host */
void plugin_send(plugin *p);                         /* what the host had no room for, and that parts are spent */
void plugin_notify(plugin *p);                       /* writes the notify port */

/* parcels.c */
void plugin_receive(plugin *p);                             /* audio: takes the mail */
void plugin_retire(plugin *p);                              /* audio: spent parts of the rig go to the ring */
void plugin_collect(plugin *p);                             /* worker: frees what is in the ring */
void plugin_deliver(plugin *p, hk_rig_slot s, parcel *new); /* others: new becomes the slot's mail and saved path */
void plugin_discard(parcel *unheard);                       /* others */
/* load.c, not for the audio thread. Loads a file; an empty path stands for nothing. NULL, with a sentence in the host's
 * log, if it cannot be. */
parcel *plugin_load(plugin *p, hk_rig_slot s, const char *path);
LV2_Worker_Status plugin_work(LV2_Handle instance, LV2_Worker_Respond_Function respond,
                              LV2_Worker_Respond_Handle handle, uint32_t bytes, const void *data);
LV2_Worker_Status plugin_response(LV2_Handle instance, uint32_t bytes, const void *data); /* audio */

/* state.c */
LV2_State_Status plugin_save(LV2_Handle instance, LV2_State_Store_Function store, LV2_State_Handle handle,
                             uint32_t flags, const LV2_Feature *const *features);
LV2_State_Status plugin_restore(LV2_Handle instance, LV2_State_Retrieve_Function retrieve, LV2_State_Handle handle,
                                uint32_t flags, const LV2_Feature *const *features);
#endif
