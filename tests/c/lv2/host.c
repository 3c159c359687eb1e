/* See host.h: instances, ports, messages and state. The world and the map of URIs are shared by all. */
#include "host.h"

#include <lv2/atom/util.h>
#include <lv2/patch/patch.h>
#include <lv2/state/state.h>
#include <lv2/urid/urid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

enum { URIS = 1024 };
/* A world of lilv is for one thread at a time. */
static pthread_mutex_t map_mutex = PTHREAD_MUTEX_INITIALIZER, world_mutex = PTHREAD_MUTEX_INITIALIZER;
static char *uris[URIS];
static uint32_t uri_count;
static LilvWorld *world;

static LV2_URID map_uri(LV2_URID_Map_Handle handle, const char *uri) {
  (void)handle;
  pthread_mutex_lock(&map_mutex);
  uint32_t i = 0;
  while (i < uri_count && strcmp(uris[i], uri)) i++;
  if (i == uri_count && i < URIS) uris[uri_count++] = strdup(uri);
  pthread_mutex_unlock(&map_mutex);
  return i + 1;
}

static const char *unmap_uri(LV2_URID_Unmap_Handle handle, LV2_URID urid) {
  (void)handle;
  return urid && urid <= uri_count ? uris[urid - 1] : NULL;
}

static LV2_URID_Map map = {NULL, map_uri};
static LV2_URID_Unmap unmap = {NULL, unmap_uri};
LV2_URID_Map *host_map(void) { return &map; }
LV2_URID_Unmap *host_unmap(void) { return &unmap; }
static LV2_URID urid(const char *uri) { return map_uri(NULL, uri); }

LilvWorld *host_world(void) {
  if (!world) {
    world = lilv_world_new();
    lilv_world_load_all(world);
  }
  return world;
}

void host_end(void) {
  lilv_world_free(world);
  world = NULL;
  while (uri_count) free(uris[--uri_count]);
}

static int log_vprintf(LV2_Log_Handle handle, LV2_URID type, const char *format, va_list args) {
  host *h = handle;
  pthread_mutex_lock(&h->log_mutex);
  const int length = vsnprintf(h->log, sizeof h->log, format, args);
  h->errors += type == urid(LV2_LOG__Error);
  pthread_mutex_unlock(&h->log_mutex);
  return length;
}

static int log_printf(LV2_Log_Handle handle, LV2_URID type, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int length = log_vprintf(handle, type, format, args);
  va_end(args);
  return length;
}

static LV2_Worker_Status respond(LV2_Worker_Respond_Handle handle, uint32_t bytes, const void *data) {
  host *h = handle;
  if (h->worker == WORKER_AT_ONCE) return h->work->work_response(lilv_instance_get_handle(h->instance), bytes, data);
  return ring_put(&h->responses, bytes, data) ? LV2_WORKER_SUCCESS : LV2_WORKER_ERR_NO_SPACE;
}

static LV2_Worker_Status work(host *h, uint32_t bytes, const void *data) {
  const bool before = watched;
  watched = false;
  const LV2_Worker_Status e = h->work->work(lilv_instance_get_handle(h->instance), respond, h, bytes, data);
  watched = before;
  return e;
}

static LV2_Worker_Status schedule(LV2_Worker_Schedule_Handle handle, uint32_t bytes, const void *data) {
  host *h = handle;
  if (h->worker == WORKER_AT_ONCE) return work(h, bytes, data);
  return ring_put(&h->requests, bytes, data) ? LV2_WORKER_SUCCESS : LV2_WORKER_ERR_NO_SPACE;
}

void host_work(host *h) {
  char data[RING_BYTES];
  uint32_t bytes;
  while (ring_take(&h->requests, &bytes, data)) work(h, bytes, data);
}

static void *work_beside(void *of) {
  host *h = of;
  const struct timespec wait = {0, 1000000};
  while (!atomic_load(&h->stop)) {
    host_work(h);
    nanosleep(&wait, NULL);
  }
  return NULL;
}

static void clear_messages(host *h) {
  lv2_atom_forge_set_buffer(&h->forge, (uint8_t *)&h->in, sizeof h->in);
  lv2_atom_forge_sequence_head(&h->forge, &h->frame, 0);
}

static void connect(host *h) {
  const float values[CONTROLS] = {0, 0, 0, 0, -100, 0, 12, 1, 1, 0}; /* as in hankel.ttl, but for the level: raw */
  memcpy(h->control, values, sizeof values);
  lilv_instance_connect_port(h->instance, 0, &h->in);
  lilv_instance_connect_port(h->instance, 1, &h->out);
  for (uint32_t i = 2; i < CONTROLS; i++) lilv_instance_connect_port(h->instance, i, &h->control[i]);
  h->out_room = sizeof h->out - sizeof h->out.sequence.atom;
  clear_messages(h);
}

static LilvInstance *instantiate(host *h, const host_options *o) {
  const LV2_Feature all[] = {{LV2_URID__map, &map},
                             {LV2_URID__unmap, &unmap},
                             {LV2_WORKER__schedule, &h->schedule},
                             {LV2_LOG__log, &h->sink},
                             {LV2_STATE__threadSafeRestore, NULL}};
  const LV2_Feature *given[sizeof all / sizeof *all + 1] = {0};
  int count = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!o->without || strcmp(all[i].URI, o->without)) given[count++] = &all[i];
  pthread_mutex_lock(&world_mutex);
  LilvNode *uri = lilv_new_uri(host_world(), o->stereo ? "urn:hankel:amp-stereo" : "urn:hankel:amp");
  h->plugin = lilv_plugins_get_by_uri(lilv_world_get_all_plugins(world), uri);
  lilv_node_free(uri);
  if (h->plugin) h->instance = lilv_plugin_instantiate(h->plugin, o->rate > 0 ? o->rate : 48000, given);
  pthread_mutex_unlock(&world_mutex);
  return h->instance;
}

host *host_open(const host_options *o, char refusal[LOG_BYTES]) {
  host *h = calloc(1, sizeof *h);
  h->channels = o->stereo ? 2 : 1;
  h->worker = o->worker;
  h->schedule = (LV2_Worker_Schedule){h, schedule};
  h->sink = (LV2_Log_Log){h, log_printf, log_vprintf};
  pthread_mutex_init(&h->log_mutex, NULL);
  lv2_atom_forge_init(&h->forge, &map);
  if (!instantiate(h, o)) {
    snprintf(refusal, refusal ? LOG_BYTES : 0, "%s", h->log);
    free(h);
    return NULL;
  }
  h->work = lilv_instance_get_extension_data(h->instance, LV2_WORKER__interface);
  connect(h);
  lilv_instance_activate(h->instance);
  if (h->worker == WORKER_BESIDE) pthread_create(&h->thread, NULL, work_beside, h);
  return h;
}

/* What still waits in the rings is dropped, as hosts do. */
void host_close(host *h) {
  atomic_store(&h->stop, true);
  if (h->worker == WORKER_BESIDE) pthread_join(h->thread, NULL);
  lilv_instance_deactivate(h->instance);
  pthread_mutex_lock(&world_mutex);
  lilv_instance_free(h->instance);
  pthread_mutex_unlock(&world_mutex);
  pthread_mutex_destroy(&h->log_mutex);
  free(h);
}

void host_send(host *h, uint32_t frame, const LV2_Atom *atom) {
  lv2_atom_forge_frame_time(&h->forge, frame);
  lv2_atom_forge_write(&h->forge, atom, lv2_atom_total_size(atom));
}

static void send_patch(host *h, uint32_t frame, const char *kind, const char *property, const char *path) {
  LV2_Atom_Forge_Frame object;
  lv2_atom_forge_frame_time(&h->forge, frame);
  lv2_atom_forge_object(&h->forge, &object, 0, urid(kind));
  if (property) {
    lv2_atom_forge_key(&h->forge, urid(LV2_PATCH__property));
    lv2_atom_forge_urid(&h->forge, urid(property));
  }
  if (path) {
    lv2_atom_forge_key(&h->forge, urid(LV2_PATCH__value));
    lv2_atom_forge_path(&h->forge, path, (uint32_t)strlen(path));
  }
  lv2_atom_forge_pop(&h->forge, &object);
}

void host_set(host *h, uint32_t frame, const char *property, const char *path) {
  send_patch(h, frame, LV2_PATCH__Set, property, path);
}

void host_get(host *h, const char *property) { send_patch(h, 0, LV2_PATCH__Get, property, NULL); }

static void hear(host *h) {
  LV2_ATOM_SEQUENCE_FOREACH(&h->out.sequence, event) {
    const LV2_Atom_Object *o = (const LV2_Atom_Object *)&event->body;
    const LV2_Atom_URID *property = NULL;
    const LV2_Atom *value = NULL;
    lv2_atom_object_get(o, urid(LV2_PATCH__property), &property, urid(LV2_PATCH__value), &value, 0);
    if (o->body.otype != urid(LV2_PATCH__Set) || !property || !value || value->type != urid(LV2_ATOM__Path)) continue;
    char *to = property->body == urid(AMP_MODEL) ? h->model : h->cabinet;
    snprintf(to, sizeof h->model, "%s", (const char *)(value + 1));
    h->told++;
  }
}

void host_run(host *h, const float *const *x, uint32_t frames, float *const *y) {
  for (int c = 0; c < h->channels; c++) {
    lilv_instance_connect_port(h->instance, (uint32_t)(CONTROLS + c), (void *)(uintptr_t)x[c]);
    lilv_instance_connect_port(h->instance, (uint32_t)(CONTROLS + h->channels + c), y[c]);
  }
  lv2_atom_forge_pop(&h->forge, &h->frame);
  h->out.sequence.atom.size = h->out_room;
  watched = true;
  lilv_instance_run(h->instance, frames);
  char data[RING_BYTES];
  uint32_t bytes;
  while (ring_take(&h->responses, &bytes, data))
    h->work->work_response(lilv_instance_get_handle(h->instance), bytes, data);
  watched = false;
  hear(h);
  clear_messages(h);
}

void host_load(host *h, const char *property, const char *path) {
  float nothing = 0;
  const float *const x[2] = {&nothing, &nothing};
  float *const y[2] = {&nothing, &nothing};
  host_set(h, 0, property, path);
  host_run(h, x, 0, y);
  if (h->worker == WORKER_BY_HAND) host_work(h);
  host_run(h, x, 0, y);
}

void host_play(host *h, const float *x, int64_t frames, uint32_t most, float *y) {
  uint32_t seed = 1;
  for (int64_t at = 0; at < frames;) {
    seed = seed * 1664525u + 1013904223u;
    uint32_t n = (seed >> 8) % (most + 1);
    if (n > frames - at) n = (uint32_t)(frames - at);
    host_run(h, (const float *const[]){x + at, x + at}, n, (float *const[]){y + at, y + frames + at});
    at += n;
  }
}

LilvState *host_save(host *h, const char *folder) {
  pthread_mutex_lock(&world_mutex);
  LilvState *state = lilv_state_new_from_instance(h->plugin, h->instance, &map, folder, folder, folder, folder, NULL,
                                                  NULL, LV2_STATE_IS_POD | LV2_STATE_IS_PORTABLE, NULL);
  pthread_mutex_unlock(&world_mutex);
  return state;
}

void host_drop(LilvState *state) {
  pthread_mutex_lock(&world_mutex);
  lilv_state_free(state);
  pthread_mutex_unlock(&world_mutex);
}

void host_restore(host *h, const LilvState *state) { lilv_state_restore(state, h->instance, NULL, NULL, 0, NULL); }
