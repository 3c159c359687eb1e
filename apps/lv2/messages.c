/* The audio thread's messages: patch:Set and patch:Get of the two properties from the host, patch:Set of what plays to
 * the host, requests to the worker. */
#include <lv2/atom/util.h>
#include <stddef.h>
#include <string.h>

#include "plugin.h"

/* A request for one slot; the newest replaces one that still waits. */
static void ask(plugin *p, int32_t s, const LV2_Atom *value) {
  slot *to = &p->slot[s];
  const bool path = value && (value->type == p->urid.path || value->type == p->urid.string);
  const size_t length = path ? strnlen((const char *)(value + 1), value->size) : 0;
  const message_kind kind = !path ? NO_PATH : length < MAX_PATH ? LOAD : TOO_LONG;
  to->wanted.kind = (int32_t)kind;
  to->wanted.slot = s;
  to->wanted_bytes = offsetof(message, path);
  if (kind == LOAD) {
    memcpy(to->wanted.path, value + 1, length);
    to->wanted.path[length] = 0;
    to->wanted_bytes += (uint32_t)length + 1;
  }
}

void plugin_handle(plugin *p, const LV2_Atom *atom) {
  if (!lv2_atom_forge_is_object_type(&p->forge, atom->type)) return;
  const LV2_Atom_Object *o = (const LV2_Atom_Object *)atom;
  if (o->body.otype != p->urid.get && o->body.otype != p->urid.set) return;
  const LV2_Atom *property = NULL, *value = NULL;
  lv2_atom_object_get(o, p->urid.property, &property, p->urid.value, &value, 0);
  const bool named = property && property->type == p->urid.urid;
  for (int32_t s = 0; s < SLOTS; s++) {
    const bool this = named && ((const LV2_Atom_URID *)property)->body == p->urid.slot[s];
    if (o->body.otype == p->urid.get && (this || !property)) p->slot[s].tell = true;
    if (o->body.otype == p->urid.set && this) ask(p, s, value);
  }
  plugin_send(p);
}

static bool schedule(const plugin *p, uint32_t bytes, const message *m) {
  return p->schedule->schedule_work(p->schedule->handle, bytes, m) == LV2_WORKER_SUCCESS;
}

void plugin_send(plugin *p) {
  for (int32_t s = 0; s < SLOTS; s++) {
    slot *from = &p->slot[s];
    if (from->wanted_bytes && schedule(p, from->wanted_bytes, &from->wanted)) from->wanted_bytes = 0;
  }
  const unsigned written = atomic_load_explicit(&p->spent_written, memory_order_relaxed);
  const message collect = {.kind = COLLECT};
  if (written != p->spent_told && schedule(p, offsetof(message, path), &collect)) p->spent_told = written;
}

/* The bytes of the event with a path of that length: time, object, two keys with a URID and a path, padding. */
static uint32_t event_bytes(size_t length) {
  return (uint32_t)(sizeof(LV2_Atom_Event) + sizeof(LV2_Atom_Object_Body) + 2 * sizeof(LV2_Atom_Property_Body) + 8 +
                    length + 1 + 8);
}

/* A property that does not fit waits for the next block. */
void plugin_notify(plugin *p) {
  LV2_Atom_Forge *f = &p->forge;
  const uint32_t room = p->notify->atom.size;
  if (room < sizeof(LV2_Atom_Sequence)) return;
  LV2_Atom_Forge_Frame sequence, object;
  lv2_atom_forge_set_buffer(f, (uint8_t *)p->notify, room);
  lv2_atom_forge_sequence_head(f, &sequence, 0);
  for (int32_t s = 0; s < SLOTS; s++) {
    slot *from = &p->slot[s];
    const char *path = from->current ? from->current->path : "";
    const uint32_t length = (uint32_t)strlen(path);
    if (!from->tell || f->size - f->offset < event_bytes(length)) continue;
    lv2_atom_forge_frame_time(f, 0);
    lv2_atom_forge_object(f, &object, 0, p->urid.set);
    lv2_atom_forge_key(f, p->urid.property);
    lv2_atom_forge_urid(f, p->urid.slot[s]);
    lv2_atom_forge_key(f, p->urid.value);
    lv2_atom_forge_path(f, path, length);
    lv2_atom_forge_pop(f, &object);
    from->tell = false;
  }
  lv2_atom_forge_pop(f, &sequence);
}
