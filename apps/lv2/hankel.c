/* hankel.lv2, an amp (.nam) with a cabinet for LV2 hosts, mono and stereo: what a host calls of an instance besides
 * run. Needs urid:map and work:schedule. Refuses, with a sentence in the host's log, a host without them and a sample
 * rate outside of HK_NAM_MIN_RATE to HK_NAM_MAX_RATE. */
#include <lv2/core/lv2.h>
#include <lv2/core/lv2_util.h>
#include <lv2/patch/patch.h>
#include <lv2/urid/urid.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

static void map_all(plugin *p, LV2_URID_Map *map) {
  const struct {
    LV2_URID *to;
    const char *uri;
  } all[] = {{&p->urid.path, LV2_ATOM__Path},
             {&p->urid.string, LV2_ATOM__String},
             {&p->urid.urid, LV2_ATOM__URID},
             {&p->urid.get, LV2_PATCH__Get},
             {&p->urid.set, LV2_PATCH__Set},
             {&p->urid.property, LV2_PATCH__property},
             {&p->urid.value, LV2_PATCH__value},
             {&p->urid.slot[HK_RIG_AMP], PLUGIN_URI "#model"},
             {&p->urid.slot[HK_RIG_CABINET], PLUGIN_URI "#impulseResponse"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i].to = map->map(map->handle, all[i].uri);
  lv2_atom_forge_init(&p->forge, map);
}

static LV2_Handle instantiate(const LV2_Descriptor *descriptor, double rate, const char *bundle,
                              const LV2_Feature *const *features) {
  (void)bundle;
  LV2_Log_Logger log = {0};
  LV2_URID_Map *map = NULL;
  LV2_Worker_Schedule *schedule = NULL;
  LV2_Log_Log *sink = NULL;
  const char *missing = lv2_features_query(features, LV2_LOG__log, &sink, false, LV2_URID__map, &map, true,
                                           LV2_WORKER__schedule, &schedule, true, NULL);
  lv2_log_logger_init(&log, map, sink);
  if (missing) {
    lv2_log_error(&log, "hankel: the host lacks the feature %s\n", missing);
    return NULL;
  }
  plugin *p = calloc(1, sizeof *p);
  if (!p) {
    lv2_log_error(&log, "hankel: no memory for an instance of %zu bytes\n", sizeof *p);
    return NULL;
  }
  p->channels = strcmp(descriptor->URI, PLUGIN_URI) ? 2 : 1;
  const hk_rig_options o = {.size = sizeof o, .sample_rate = rate, .channels = p->channels};
  if (hk_rig_create(&p->rig, &o)) {
    lv2_log_error(&log, "hankel: %s\n", hk_nam_last_error());
    free(p);
    return NULL;
  }
  p->log = log;
  p->schedule = schedule;
  map_all(p, map);
  pthread_mutex_init(&p->mutex, NULL);
  return p;
}

static void connect_port(LV2_Handle instance, uint32_t port, void *data) {
  plugin *p = instance;
  const int32_t audio = (int32_t)port - PORT_AUDIO;
  if (port == PORT_CONTROL) p->messages = data;
  else if (port == PORT_NOTIFY) p->notify = data;
  else if (port == PORT_LATENCY) p->latency = data;
  else if (port < PORT_AUDIO) p->control[port] = data;
  else if (audio < p->channels) p->in[audio] = data;
  else if (audio < 2 * p->channels) p->out[audio - p->channels] = data;
}

static void activate(LV2_Handle instance) {
  plugin *p = instance;
  hk_rig_reset(p->rig);
}

static void cleanup(LV2_Handle instance) {
  plugin *p = instance;
  plugin_collect(p);
  for (int32_t s = 0; s < SLOTS; s++) {
    plugin_discard(atomic_load(&p->slot[s].mail));
    free(p->slot[s].current);
  }
  hk_rig_free(p->rig);
  pthread_mutex_destroy(&p->mutex);
  free(p);
}

static const void *extension_data(const char *uri) {
  static const LV2_Worker_Interface worker = {plugin_work, plugin_response, NULL};
  static const LV2_State_Interface state = {plugin_save, plugin_restore};
  if (!strcmp(uri, LV2_WORKER__interface)) return &worker;
  return strcmp(uri, LV2_STATE__interface) ? NULL : &state;
}

LV2_SYMBOL_EXPORT const LV2_Descriptor *lv2_descriptor(uint32_t index) {
  static const LV2_Descriptor plugins[] = {
      {PLUGIN_URI, instantiate, connect_port, activate, plugin_run, NULL, cleanup, extension_data},
      {PLUGIN_URI "-stereo", instantiate, connect_port, activate, plugin_run, NULL, cleanup, extension_data}};
  return index < sizeof plugins / sizeof *plugins ? &plugins[index] : NULL;
}
