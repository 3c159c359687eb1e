/* Another player of a loaded model: one allocation of its own for the streams; the chains, with the weights, are the
 * model's, which counts its users. */
#include <stdlib.h>
#include <string.h>

#include "play.h"

static size_t clone_bytes(const hk_nam *m) {
  size_t bytes = NAM_ALIGN + nam_head_bytes(m->in + m->out, m->voices);
  for (int32_t i = 0; i < m->voices; i++) bytes += nam_aligned(m->voice[i].facts.stream_bytes);
  return bytes;
}

/* Copies what describes the model; the texts are the copy's own. */
static void copy_head(hk_nam *to, const hk_nam *from) {
  to->weights = from->weights;
  to->voices = from->voices;
  to->active = from->active;
  to->in = from->in;
  to->out = from->out;
  memcpy(to->architecture, from->architecture, SHORT_TEXT);
  memcpy(to->version, from->version, SHORT_TEXT);
  memcpy(to->name, from->name, SHORT_TEXT);
  memcpy(to->modeled_by, from->modeled_by, SHORT_TEXT);
  memcpy(to->gear, from->gear, SHORT_TEXT);
  to->facts = from->facts;
  to->facts.architecture = to->architecture;
  to->facts.version = to->version;
  to->facts.name = to->name;
  to->facts.modeled_by = to->modeled_by;
  to->facts.gear = to->gear;
  to->facts.bytes = to->bytes;
  memcpy(to->voice, from->voice, (size_t)from->voices * sizeof *from->voice);
}

/* The warm states of recurrent sizes never change, so the clone reads the model's. */
static hk_status place_streams(hk_nam *m, char *p) {
  hk_status e = HK_OK;
  for (int32_t i = 0; i < m->voices && !e; i++) {
    nam_voice *v = &m->voice[i];
    e = nam_status(hk_stream_create(&v->stream, v->chain, p, v->facts.stream_bytes));
    p += nam_aligned(v->facts.stream_bytes);
    if (!e) e = nam_voice_reset(m, i);
  }
  return e;
}

HK_API hk_status hk_nam_clone(hk_nam **clone, const hk_nam *model) {
  if (!clone || !model) {
    nam_fail("clone or model is NULL");
    return HK_INVALID;
  }
  const size_t bytes = clone_bytes(model);
  void *memory = calloc(1, bytes);
  if (!memory) {
    nam_refuse(HK_NO_MEMORY, "no memory for a player of %zu bytes", bytes);
    return HK_NO_MEMORY;
  }
  hk_nam *m = (hk_nam *)nam_aligned((size_t)(uintptr_t)memory);
  m->memory = memory;
  m->bytes = bytes;
  copy_head(m, model);
  m->block = (float *)((char *)m + nam_aligned(sizeof(hk_nam) + (size_t)m->voices * sizeof(nam_voice)));
  const hk_status e = place_streams(m, (char *)m + nam_head_bytes(m->in + m->out, m->voices));
  if (e) {
    free(memory);
    return e;
  }
  atomic_fetch_add(&model->weights->users, 1);
  *clone = m;
  return HK_OK;
}
