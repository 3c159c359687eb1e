/* Sessions: both paths are saved as abstract paths that the host maps, and come back in another folder; what the state
 * does not hold becomes empty; a file that is gone leaves what plays and stays in the next state; restoring beside the
 * audio thread. */
#include <lv2/state/state.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"
#include "material.h"
#include "support/check.h"

enum { FRAMES = 6000 };
static float x[FRAMES], y[FRAMES], z[FRAMES];
static char model[MATERIAL_PATH], cabinet[MATERIAL_PATH];

static void run_nothing(host *h) {
  float nothing = 0;
  host_run(h, (const float *const[]){&nothing}, 0, (float *const[]){&nothing});
}

static host *loaded(void) {
  host *h = host_open(&(host_options){.worker = WORKER_AT_ONCE}, NULL);
  host_load(h, AMP_MODEL, model);
  host_load(h, AMP_CABINET, cabinet);
  return h;
}

/* Through a state in memory: two instances play the same bits. */
static void test_twin(void) {
  host *h = loaded(), *twin = host_open(&(host_options){.worker = WORKER_AT_ONCE}, NULL);
  LilvState *state = host_save(h, NULL);
  CHECK(lilv_state_get_num_properties(state) == 2, "%u properties", lilv_state_get_num_properties(state));
  host_restore(twin, state);
  host_drop(state);
  host_play(h, x, FRAMES, 256, y);
  host_play(twin, x, FRAMES, 256, z);
  CHECK(!memcmp(y, z, sizeof y), "the restored instance plays something else");
  CHECK(!strcmp(twin->model, model) && !strcmp(twin->cabinet, cabinet), "plays \"%s\", \"%s\"", twin->model,
        twin->cabinet);
  host *empty = host_open(&(host_options){.worker = WORKER_AT_ONCE}, NULL);
  state = host_save(empty, NULL);
  CHECK(lilv_state_get_num_properties(state) == 0, "an empty instance has properties");
  host_restore(twin, state);
  run_nothing(twin);
  CHECK(!*twin->model && !*twin->cabinet, "an empty state left \"%s\", \"%s\"", twin->model, twin->cabinet);
  host_drop(state);
  host_close(empty);
  host_close(twin);
  host_close(h);
}

/* Through a folder that is then moved: the state must not hold the absolute paths of files inside it. */
static void test_folder(void) {
  char inside[MATERIAL_PATH], ir[MATERIAL_PATH], moved[MATERIAL_PATH], file[2 * MATERIAL_PATH];
  snprintf(inside, sizeof inside, "%.400s/session", material_folder());
  snprintf(moved, sizeof moved, "%.400s/moved", material_folder());
  mkdir(inside, 0700);
  material_cabinet("session/ir.wav", 64, 1, 48000, NULL, ir);
  host *h = loaded();
  host_load(h, AMP_CABINET, ir);
  LilvState *state = host_save(h, inside);
  CHECK(!lilv_state_save(host_world(), host_map(), host_unmap(), state, NULL, inside, "state.ttl"), "not saved");
  host_drop(state);
  CHECK(!rename(inside, moved), "the folder was not moved");
  snprintf(file, sizeof file, "%s/state.ttl", moved);
  state = lilv_state_new_from_file(host_world(), host_map(), NULL, file);
  CHECK(state != NULL, "%s cannot be read", file);
  host *later = host_open(&(host_options){.worker = WORKER_BY_HAND}, NULL);
  host_restore(later, state);
  run_nothing(later);
  CHECK(!later->errors && strstr(later->cabinet, "/moved/") && strstr(later->cabinet, "ir.wav"),
        "the cabinet is \"%s\", \"%s\"", later->cabinet, later->log);
  CHECK(strstr(later->model, ".nam") != NULL, "the model is \"%s\"", later->model);
  host_play(h, x, FRAMES, 100, y);
  host_play(later, x, FRAMES, 100, z);
  CHECK(!memcmp(y, z, sizeof y), "the restored instance plays something else");
  host_drop(state);
  host_close(later);
  host_close(h);
}

/* A host of our own kind: abstract paths have a mark in front; what is stored can be looked at and changed. */
typedef struct store {
  LV2_URID key[4], type[4];
  uint32_t flags[4];
  char value[4][MATERIAL_PATH];
  int count, freed;
} store;

static LV2_State_Status keep(LV2_State_Handle handle, uint32_t key, const void *value, size_t bytes, uint32_t type,
                             uint32_t flags) {
  store *s = handle;
  CHECK(bytes <= MATERIAL_PATH && s->count < 4, "%zu bytes", bytes);
  memcpy(s->value[s->count], value, bytes);
  s->key[s->count] = key;
  s->type[s->count] = type;
  s->flags[s->count++] = flags;
  return LV2_STATE_SUCCESS;
}

static const void *look_up(LV2_State_Handle handle, uint32_t key, size_t *bytes, uint32_t *type, uint32_t *flags) {
  store *s = handle;
  for (int i = 0; i < s->count; i++) {
    if (s->key[i] != key) continue;
    *bytes = strlen(s->value[i]) + 1;
    *type = s->type[i];
    *flags = s->flags[i];
    return s->value[i];
  }
  return NULL;
}

static char *to_abstract(LV2_State_Map_Path_Handle handle, const char *path) {
  (void)handle;
  char *mapped = malloc(strlen(path) + 6);
  sprintf(mapped, "mark:%s", path);
  return mapped;
}

static char *to_absolute(LV2_State_Map_Path_Handle handle, const char *path) {
  (void)handle;
  return strdup(strncmp(path, "mark:", 5) ? "/unmarked" : path + 5);
}

static void free_path(LV2_State_Free_Path_Handle handle, char *path) {
  ((store *)handle)->freed++;
  free(path);
}

static const LV2_State_Interface *interface(const host *h) {
  return lilv_instance_get_extension_data(h->instance, LV2_STATE__interface);
}

static LV2_State_Status transfer(host *h, store *s, bool mapped, bool save) {
  LV2_State_Map_Path map = {NULL, to_abstract, to_absolute};
  LV2_State_Free_Path release = {s, free_path};
  const LV2_Feature features[] = {{LV2_STATE__mapPath, &map}, {LV2_STATE__freePath, &release}};
  const LV2_Feature *const given[] = {&features[0], &features[1], NULL}, *const none[] = {NULL};
  LV2_Handle of = lilv_instance_get_handle(h->instance);
  if (save) return interface(h)->save(of, keep, s, 0, mapped ? given : none);
  return interface(h)->restore(of, look_up, s, 0, mapped ? given : none);
}

static void test_mapping(void) {
  const LV2_URID path = host_map()->map(NULL, LV2_ATOM__Path);
  host *h = loaded();
  store s = {.count = 0}, plain = {.count = 0};
  CHECK(!transfer(h, &s, true, true) && s.count == 2 && s.freed == 2, "saved %d, freed %d", s.count, s.freed);
  for (int i = 0; i < s.count; i++) {
    CHECK(s.type[i] == path && s.flags[i] == (LV2_STATE_IS_POD | LV2_STATE_IS_PORTABLE), "flags %u", s.flags[i]);
    CHECK(!strncmp(s.value[i], "mark:/", 6), "\"%s\" was not mapped", s.value[i]);
  }
  CHECK(!transfer(h, &plain, false, true) && plain.count == 2 && *plain.value[0] == '/', "without a map: %d, \"%s\"",
        plain.count, plain.value[0]);
  CHECK(plain.flags[0] == LV2_STATE_IS_POD, "an absolute path is called portable");
  host *other = host_open(&(host_options){.worker = WORKER_AT_ONCE}, NULL);
  CHECK(!transfer(other, &s, true, false) && s.freed == 4, "restored, freed %d", s.freed);
  run_nothing(other);
  CHECK(!strcmp(other->model, model) && !strcmp(other->cabinet, cabinet), "plays \"%s\"", other->model);
  host_close(other);
  host_close(h);
}

/* The files are gone, or the state is of another form. */
static void test_bad(void) {
  host *h = loaded();
  store s = {.count = 0}, again = {.count = 0};
  transfer(h, &s, false, true);
  for (int i = 0; i < s.count; i++) snprintf(s.value[i], MATERIAL_PATH, "/nowhere/file %d", i);
  CHECK(transfer(h, &s, false, false) != LV2_STATE_SUCCESS, "restored what is not there");
  CHECK(h->errors == 2 && strstr(h->log, "/nowhere/file 1"), "%d errors, \"%s\"", h->errors, h->log);
  run_nothing(h);
  CHECK(!strcmp(h->model, model) && !strcmp(h->cabinet, cabinet), "plays \"%s\", \"%s\"", h->model, h->cabinet);
  transfer(h, &again, false, true);
  CHECK(!strcmp(again.value[0], s.value[0]) && !strcmp(again.value[1], s.value[1]), "the next state has \"%s\"",
        again.value[0]);
  s.type[0] = 1 + s.type[1];
  CHECK(transfer(h, &s, false, false) != LV2_STATE_SUCCESS, "a path of another type was restored");
  host_close(h);
}

static void *restore_often(void *of) {
  host *h = of;
  store s[2] = {{.count = 0}, {.count = 0}};
  transfer(h, &s[0], false, true);
  for (int i = 0; i < 30; i++) transfer(h, &s[i % 3 == 0], false, false);
  return NULL;
}

/* threadSafeRestore: beside run, the worker and save. */
static void test_beside(void) {
  host *h = host_open(&(host_options){.worker = WORKER_BESIDE}, NULL);
  host_set(h, 0, AMP_MODEL, model);
  host_set(h, 0, AMP_CABINET, cabinet);
  host_play(h, x, FRAMES, 64, y);
  pthread_t thread;
  pthread_create(&thread, NULL, restore_often, h);
  for (int i = 0; i < 20; i++) {
    if (i % 7 == 3) host_set(h, 0, AMP_MODEL, model);
    host_play(h, x, FRAMES, 64, y);
    host_drop(host_save(h, NULL));
  }
  pthread_join(thread, NULL);
  CHECK(!h->errors, "%s", h->log);
  host_close(h);
}

int main(void) {
  material_copy(material_small, "amp.nam", model);
  material_cabinet("cabinet.wav", 300, 1, 48000, NULL, cabinet);
  material_signal(x, FRAMES);
  test_twin();
  test_folder();
  test_mapping();
  test_bad();
  test_beside();
  host_end();
  material_end();
  return hk_test_end();
}
