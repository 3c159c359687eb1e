/* State: the two paths, as abstract paths where the host maps them. A path whose file is gone stays in the state, so
 * that saving a session again does not forget it. Both functions may run beside the audio thread and the worker. */
#include <lv2/core/lv2_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

typedef struct paths {
  const LV2_State_Map_Path *map;
  const LV2_State_Free_Path *release;
} paths;

static paths find_paths(const LV2_Feature *const *features) {
  return (paths){lv2_features_data(features, LV2_STATE__mapPath), lv2_features_data(features, LV2_STATE__freePath)};
}

static void release(const paths *by, char *path) {
  if (by->release) by->release->free_path(by->release->handle, path);
  else free(path);
}

static LV2_State_Status save_path(const plugin *p, int32_t s, const char *path, const paths *by,
                                  LV2_State_Store_Function store, LV2_State_Handle handle) {
  char *mapped = by->map ? by->map->abstract_path(by->map->handle, path) : NULL;
  if (by->map && !mapped) return LV2_STATE_ERR_UNKNOWN;
  const char *value = mapped ? mapped : path;
  const uint32_t flags = LV2_STATE_IS_POD | (mapped ? LV2_STATE_IS_PORTABLE : 0);
  const LV2_State_Status e = store(handle, p->urid.slot[s], value, strlen(value) + 1, p->urid.path, flags);
  if (mapped) release(by, mapped);
  return e;
}

LV2_State_Status plugin_save(LV2_Handle instance, LV2_State_Store_Function store, LV2_State_Handle handle,
                             uint32_t flags, const LV2_Feature *const *features) {
  (void)flags;
  plugin *p = instance;
  const paths by = find_paths(features);
  LV2_State_Status e = LV2_STATE_SUCCESS;
  for (int32_t s = 0; s < SLOTS && !e; s++) {
    char path[MAX_PATH];
    pthread_mutex_lock(&p->mutex);
    snprintf(path, sizeof path, "%s", p->slot[s].saved);
    pthread_mutex_unlock(&p->mutex);
    if (*path) e = save_path(p, s, path, &by, store, handle);
  }
  return e;
}

static LV2_State_Status restore_path(plugin *p, hk_rig_slot s, const char *path) {
  parcel *new = plugin_load(p, s, path);
  if (new) {
    plugin_deliver(p, s, new);
    return LV2_STATE_SUCCESS;
  }
  pthread_mutex_lock(&p->mutex);
  snprintf(p->slot[s].saved, MAX_PATH, "%s", path);
  pthread_mutex_unlock(&p->mutex);
  return LV2_STATE_ERR_UNKNOWN;
}

/* What the state does not hold becomes empty, the default. */
LV2_State_Status plugin_restore(LV2_Handle instance, LV2_State_Retrieve_Function retrieve, LV2_State_Handle handle,
                                uint32_t flags, const LV2_Feature *const *features) {
  (void)flags;
  plugin *p = instance;
  const paths by = find_paths(features);
  LV2_State_Status result = LV2_STATE_SUCCESS;
  for (int32_t s = 0; s < SLOTS; s++) {
    size_t bytes = 0;
    uint32_t type = 0, kept;
    const char *value = retrieve(handle, p->urid.slot[s], &bytes, &type, &kept);
    const bool good = value && type == p->urid.path && bytes && !value[bytes - 1];
    char *mapped = good && by.map ? by.map->absolute_path(by.map->handle, value) : NULL;
    const LV2_State_Status e = restore_path(p, (hk_rig_slot)s, mapped ? mapped : good ? value : "");
    if (mapped) release(&by, mapped);
    if (value && !good) result = LV2_STATE_ERR_BAD_TYPE;
    if (e) result = e;
  }
  return result;
}
