/* Loading while the plugin plays: what the host is told, refusals in sentences that leave what plays, messages of any
 * form, a worker that is slow, full rings, hosts without a feature, rates that no rig has, many instances at once. */
#include <lv2/patch/patch.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"
#include "material.h"
#include "support/check.h"

enum { FRAMES = 12000 };
static float x[FRAMES], y[2 * FRAMES];
static char model[MATERIAL_PATH], other[MATERIAL_PATH], cabinet[MATERIAL_PATH];

static void run_nothing(host *h) {
  float nothing = 0;
  host_run(h, (const float *const[]){&nothing, &nothing}, 0, (float *const[]){&nothing, &nothing});
}

/* The plugin hears of every load, and answers patch:Get for one property or all. */
static void test_told(void) {
  host *h = host_open(&(host_options){.worker = WORKER_BY_HAND}, NULL);
  host_get(h, NULL);
  run_nothing(h);
  CHECK(h->told == 2 && !*h->model && !*h->cabinet, "told %d of \"%s\" and \"%s\"", h->told, h->model, h->cabinet);
  host_load(h, AMP_MODEL, model);
  run_nothing(h);
  CHECK(h->told == 3 && !strcmp(h->model, model), "told %d of \"%s\"", h->told, h->model);
  *h->model = 0;
  host_get(h, AMP_MODEL);
  run_nothing(h);
  CHECK(h->told == 4 && !strcmp(h->model, model), "told %d of \"%s\"", h->told, h->model);
  host_get(h, "urn:hankel:amp#nothing");
  host_set(h, 0, "urn:hankel:amp#nothing", model);
  run_nothing(h);
  CHECK(h->told == 4, "an unknown property was answered");
  h->out_room = 16; /* too little for an answer, which comes when there is room */
  host_get(h, NULL);
  run_nothing(h);
  CHECK(h->told == 4, "told %d without room", h->told);
  h->out_room = ATOM_BYTES - 8;
  run_nothing(h);
  CHECK(h->told == 6, "told %d", h->told);
  host_load(h, AMP_MODEL, "");
  run_nothing(h);
  CHECK(h->told == 7 && !*h->model && !h->errors, "the amp was not removed: \"%s\", \"%s\"", h->model, h->log);
  host_close(h);
}

static void refused(host *h, const char *property, const char *path, const char *word) {
  const int before = h->errors;
  host_load(h, property, path);
  run_nothing(h);
  CHECK(h->errors == before + 1, "%s: %d errors", path, h->errors - before);
  CHECK(strstr(h->log, word) != NULL, "%s: the sentence lacks \"%s\": \"%s\"", path, word, h->log);
  CHECK(!strcmp(h->model, model) && !strcmp(h->cabinet, cabinet), "%s: plays \"%s\", \"%s\"", path, h->model,
        h->cabinet);
}

static void test_refusals(void) {
  char three[MATERIAL_PATH], lasting[MATERIAL_PATH], longest[3100];
  material_cabinet("three.wav", 50, 3, 48000, NULL, three);
  material_cabinet("lasting.wav", 500000, 1, 48000, NULL, lasting);
  memset(longest, 'a', sizeof longest - 1);
  longest[sizeof longest - 1] = 0;
  for (worker_kind k = WORKER_AT_ONCE; k <= WORKER_BY_HAND; k++) {
    host *h = host_open(&(host_options){.worker = k}, NULL), *twin = host_open(&(host_options){.worker = k}, NULL);
    for (int i = 0; i < 2; i++) {
      host_load(i ? twin : h, AMP_MODEL, model);
      host_load(i ? twin : h, AMP_CABINET, cabinet);
    }
    refused(h, AMP_MODEL, "/nowhere/absent.nam", "model: /nowhere/absent.nam");
    refused(h, AMP_MODEL, cabinet, "not JSON");
    refused(h, AMP_MODEL, "/", "cannot be read");
    refused(h, AMP_CABINET, "/nowhere/absent.wav", "impulse response: /nowhere/absent.wav");
    refused(h, AMP_CABINET, model, "impulse response: ");
    refused(h, AMP_CABINET, three, "3 channels");
    refused(h, AMP_CABINET, lasting, "10 seconds");
    refused(h, AMP_MODEL, longest, "model: the path is longer than");
    host_play(h, x, FRAMES, 100, y);
    host_play(twin, x, FRAMES, 100, y + FRAMES); /* writes y + FRAMES only: mono */
    CHECK(!memcmp(y, y + FRAMES, sizeof x), "refused loads are heard");
    host_close(twin);
    host_close(h);
  }
}

/* Atoms that a host might send and that are no request: nothing happens, or a sentence. */
static void test_odd_messages(void) {
  host *h = host_open(&(host_options){.worker = WORKER_AT_ONCE}, NULL);
  LV2_URID_Map *map = host_map();
  LV2_Atom_Forge f;
  lv2_atom_forge_init(&f, map);
  const LV2_Atom_Int number = {{sizeof(int32_t), f.Int}, 7};
  host_send(h, 0, &number.atom);
  char bytes[512];
  LV2_Atom_Forge_Frame frame;
  for (int kind = 0; kind < 4; kind++) {
    lv2_atom_forge_set_buffer(&f, (uint8_t *)bytes, sizeof bytes);
    const LV2_Atom *atom = (const LV2_Atom *)bytes;
    lv2_atom_forge_object(&f, &frame, 0, map->map(map->handle, kind == 3 ? LV2_PATCH__Put : LV2_PATCH__Set));
    lv2_atom_forge_key(&f, map->map(map->handle, LV2_PATCH__property));
    if (kind == 0) lv2_atom_forge_int(&f, 5); /* no URID */
    else lv2_atom_forge_urid(&f, map->map(map->handle, AMP_MODEL));
    if (kind == 1) { /* no path */
      lv2_atom_forge_key(&f, map->map(map->handle, LV2_PATCH__value));
      lv2_atom_forge_float(&f, 0.5f);
    }
    lv2_atom_forge_pop(&f, &frame);
    host_send(h, 0, atom);
  }
  run_nothing(h);
  CHECK(h->errors == 2 && strstr(h->log, "model: the value is no path"), "%d errors, \"%s\"", h->errors, h->log);
  /* A string without its end, longer than what it says. */
  lv2_atom_forge_set_buffer(&f, (uint8_t *)bytes, sizeof bytes);
  lv2_atom_forge_object(&f, &frame, 0, map->map(map->handle, LV2_PATCH__Set));
  lv2_atom_forge_key(&f, map->map(map->handle, LV2_PATCH__property));
  lv2_atom_forge_urid(&f, map->map(map->handle, AMP_MODEL));
  lv2_atom_forge_key(&f, map->map(map->handle, LV2_PATCH__value));
  lv2_atom_forge_atom(&f, 4, f.String);
  lv2_atom_forge_write(&f, "/abcdefg", 8);
  lv2_atom_forge_pop(&f, &frame);
  host_send(h, 0, (const LV2_Atom *)bytes);
  run_nothing(h);
  CHECK(h->errors == 3 && strstr(h->log, "model: /abc"), "%d errors, \"%s\"", h->errors, h->log);
  host_close(h);
}

/* More requests than the worker's ring holds: the newest of each property is heard in the end. Then the host ends with
 * messages in its rings, which must lose no memory. */
static void test_full_ring(void) {
  host *h = host_open(&(host_options){.worker = WORKER_BY_HAND}, NULL);
  for (int i = 0; i < 200; i++) {
    host_set(h, 0, AMP_MODEL, i == 199 ? model : other);
    host_set(h, 0, AMP_CABINET, cabinet);
    run_nothing(h);
  }
  for (int i = 0; i < 4; i++) {
    host_work(h);
    host_play(h, x, FRAMES, 256, y);
  }
  CHECK(!strcmp(h->model, model) && !strcmp(h->cabinet, cabinet) && !h->errors, "plays \"%s\" and \"%s\", \"%s\"",
        h->model, h->cabinet, h->log);
  host_set(h, 0, AMP_MODEL, other);
  run_nothing(h);
  host_work(h); /* the parcel waits */
  host_set(h, 0, AMP_MODEL, model);
  host_play(h, x, 10, 10, y); /* the request waits */
  host_close(h);
}

static void test_hosts(void) {
  char said[LOG_BYTES] = "";
  CHECK(!host_open(&(host_options){.without = LV2_WORKER__schedule}, said), "an instance without a worker");
  CHECK(strstr(said, LV2_WORKER__schedule) != NULL, "said \"%s\"", said);
  static const double rates[] = {7999, 768001, 1e9};
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    CHECK(!host_open(&(host_options){.rate = rates[i]}, said), "an instance at %g Hz", rates[i]);
    CHECK(strstr(said, "sample_rate is") != NULL, "said \"%s\"", said);
  }
  host *h = host_open(&(host_options){.without = LV2_LOG__log}, NULL); /* sentences go to stderr */
  CHECK(h != NULL, "no instance without a log");
  host_close(h);
}

static void *play_instance(void *of) {
  float *to = of;
  host *h = host_open(&(host_options){.worker = WORKER_BESIDE}, NULL);
  const char *names[2] = {model, other};
  const struct timespec wait = {0, 2000000};
  for (int i = 0; i < 40; i++) {
    if (i % 4 == 0) host_set(h, 0, AMP_MODEL, names[i / 4 % 2]);
    if (i % 8 == 2) host_set(h, 0, AMP_CABINET, i % 16 == 2 ? cabinet : "");
    if (i % 5 == 1) host_drop(host_save(h, NULL));
    host_play(h, x, FRAMES / 10, 128, to);
    nanosleep(&wait, NULL);
  }
  const int errors = h->errors;
  host_close(h);
  return errors ? of : NULL;
}

enum { INSTANCES = 4 };
static void test_parallel(void) {
  static float out[INSTANCES][FRAMES];
  pthread_t thread[INSTANCES];
  host_world();
  for (int i = 0; i < INSTANCES; i++) pthread_create(&thread[i], NULL, play_instance, out[i]);
  for (int i = 0; i < INSTANCES; i++) {
    void *failed;
    pthread_join(thread[i], &failed);
    CHECK(!failed, "instance %d had errors", i);
  }
}

int main(void) {
  material_absolute(material_small, model);
  material_absolute(material_big, other);
  material_cabinet("cabinet.wav", 300, 1, 48000, NULL, cabinet);
  material_signal(x, FRAMES);
  test_told();
  test_refusals();
  test_odd_messages();
  test_full_ring();
  test_hosts();
  test_parallel();
  host_end();
  material_end();
  return hk_test_end();
}
