/* The worker: loads the files that run asks for and frees what is spent. A file that cannot be loaded leaves what
 * plays; the sentence stands in the host's log. Sounds come from the player's sound.c, whose refusals end here. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nam/program/program.h"
#include "../nam/program/sound.h"
#include "plugin.h"

static _Thread_local char refusal[MAX_PATH + 256]; /* a path and a rule */

int program_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(refusal, sizeof refusal, format, args);
  va_end(args);
  return 1;
}

static const char *const slot_names[SLOTS] = {"model", "impulse response"};

/* The sentence of the player, which may name the path itself. */
static int refused(const char *path) {
  const char *sentence = hk_nam_last_error();
  return strstr(sentence, path) ? program_fail("%s", sentence) : program_fail("%s: %s", path, sentence);
}

static int load_cabinet(const plugin *p, const char *path, hk_rig_part **part) {
  sound s = {0};
  int failed = sound_read(path, &s);
  if (!failed && hk_rig_load_cabinet(part, p->rig, s.samples, s.frames, s.channels, s.rate)) failed = refused(path);
  free(s.samples);
  return failed;
}

static int load_amp(const plugin *p, const char *path, hk_rig_part **part) {
  return hk_rig_load_amp(part, p->rig, path, NULL) ? refused(path) : 0;
}

parcel *plugin_load(plugin *p, hk_rig_slot s, const char *path) {
  const size_t bytes = strlen(path) + 1;
  parcel *new = bytes <= MAX_PATH ? malloc(sizeof *new + bytes) : NULL;
  int failed = 0;
  if (!new) {
    failed =
        program_fail("a path of %zu bytes %s", bytes, bytes <= MAX_PATH ? "does not fit in memory" : "is too long");
  } else {
    new->part = NULL;
    memcpy(new->path, path, bytes);
    if (*path) failed = s == HK_RIG_AMP ? load_amp(p, path, &new->part) : load_cabinet(p, path, &new->part);
  }
  if (!failed) return new;
  lv2_log_error(&p->log, "hankel: %s: %s\n", slot_names[s], refusal);
  free(new);
  return NULL;
}

/* Whether the request was one; *came: a parcel is in the mail. */
static bool load(plugin *p, const message *m, uint32_t bytes, bool *came) {
  const size_t room = bytes - offsetof(message, path);
  if (!room || strnlen(m->path, room) == room) return false;
  parcel *new = plugin_load(p, (hk_rig_slot)m->slot, m->path);
  *came = new != NULL;
  if (new) plugin_deliver(p, (hk_rig_slot)m->slot, new);
  return true;
}

static bool is_message(const message *m, uint32_t bytes) {
  return bytes >= offsetof(message, path) && m->slot >= 0 && m->slot < SLOTS;
}

LV2_Worker_Status plugin_work(LV2_Handle instance, LV2_Worker_Respond_Function respond,
                              LV2_Worker_Respond_Handle handle, uint32_t bytes, const void *data) {
  plugin *p = instance;
  const message *m = data;
  if (!is_message(m, bytes)) return LV2_WORKER_ERR_UNKNOWN;
  if (m->kind == COLLECT) return plugin_collect(p), LV2_WORKER_SUCCESS;
  const char *name = slot_names[m->slot];
  bool came = false;
  if (m->kind == TOO_LONG) lv2_log_error(&p->log, "hankel: %s: the path is longer than %d bytes\n", name, MAX_PATH - 1);
  else if (m->kind == NO_PATH) lv2_log_error(&p->log, "hankel: %s: the value is no path\n", name);
  else if (m->kind != LOAD || !load(p, m, bytes, &came)) return LV2_WORKER_ERR_UNKNOWN;
  const message result = {.kind = came ? CAME : REFUSED, .slot = m->slot};
  respond(handle, offsetof(message, path), &result);
  return LV2_WORKER_SUCCESS;
}

/* A parcel is in the mail already: should the host drop the response, the next block takes it. */
LV2_Worker_Status plugin_response(LV2_Handle instance, uint32_t bytes, const void *data) {
  plugin *p = instance;
  const message *m = data;
  if (!is_message(m, bytes)) return LV2_WORKER_ERR_UNKNOWN;
  if (m->kind == CAME) plugin_receive(p);
  else p->slot[m->slot].tell = true;
  return LV2_WORKER_SUCCESS;
}
