/* A small LV2 host: the bundle through lilv (found by LV2_PATH), features, a worker of three kinds, messages to and
 * from the plugin, state. Blocks have any length. */
#ifndef LV2_TEST_HOST_H
#define LV2_TEST_HOST_H
#include <lilv/lilv.h>
#include <lv2/atom/forge.h>
#include <lv2/log/log.h>
#include <lv2/worker/worker.h>
#include <pthread.h>

#include "ring.h"

#define AMP_MODEL "urn:hankel:amp#model"
#define AMP_CABINET "urn:hankel:amp#impulseResponse"

/* at_once: inside schedule_work, as hosts do while they render to a file; by_hand: when host_work is called; beside: in
 * a thread, as hosts do live. Responses come at once, or after the next run. */
typedef enum worker_kind { WORKER_AT_ONCE, WORKER_BY_HAND, WORKER_BESIDE } worker_kind;
typedef struct host_options {
  bool stereo;
  double rate; /* 0: 48000 */
  worker_kind worker;
  const char *without; /* the URI of a feature that the host lacks */
} host_options;

enum { ATOM_BYTES = 16384, LOG_BYTES = 8192, CONTROLS = 10 };
typedef struct host {
  const LilvPlugin *plugin;
  LilvInstance *instance;
  const LV2_Worker_Interface *work;
  worker_kind worker;
  int channels;
  float control[CONTROLS]; /* by port index */
  ring requests, responses;
  pthread_t thread;
  atomic_bool stop;
  LV2_Atom_Forge forge;
  LV2_Atom_Forge_Frame frame;
  union {
    LV2_Atom_Sequence sequence;
    char bytes[ATOM_BYTES];
  } in, out;
  uint32_t out_room;               /* what the notify port is said to have; ATOM_BYTES */
  int told;                        /* how many properties the plugin told */
  char model[4096], cabinet[4096]; /* as the plugin told them last */
  pthread_mutex_t log_mutex;
  char log[LOG_BYTES]; /* what the plugin said last */
  int errors;
  LV2_Worker_Schedule schedule;
  LV2_Log_Log sink;
} host;

/* NULL when the plugin refuses; the sentence is then in refusal, if there is room for it. */
host *host_open(const host_options *o, char refusal[LOG_BYTES]);
void host_close(host *h);
LilvWorld *host_world(void);
void host_end(void); /* frees the world; after the last host */
LV2_URID_Map *host_map(void);
LV2_URID_Unmap *host_unmap(void);

/* Messages for the next run: patch:Set of a property to a path, patch:Get of all, or anything. */
void host_set(host *h, uint32_t frame, const char *property, const char *path);
void host_get(host *h, const char *property); /* NULL: without a property */
void host_send(host *h, uint32_t frame, const LV2_Atom *atom);
void host_run(host *h, const float *const *x, uint32_t frames, float *const *y);
void host_work(host *h);                                         /* BY_HAND: all that was scheduled */
void host_load(host *h, const char *property, const char *path); /* set, run of no frames, work, run of no frames */

LilvState *host_save(host *h, const char *folder);
void host_drop(LilvState *state);
void host_restore(host *h, const LilvState *state);
/* x through the plugin in blocks of random lengths of 0 to most frames, in place where x is y. */
void host_play(host *h, const float *x, int64_t frames, uint32_t most, float *y);
#endif
