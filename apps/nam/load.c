/* Loading: parse, build every size, measure, then one allocation that holds the model, its chains and its streams. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"

enum { ALIGN = 64 };

typedef struct loading {
  json_t *root;
  int32_t count;
  nam_size size[MAX_SIZES];
  nam_net net[MAX_SIZES];
  hk_chain_desc desc[MAX_SIZES];
  size_t chain[MAX_SIZES], stream[MAX_SIZES];
  int64_t in, out;
  double rate;
} loading;

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static hk_status build_size(loading *l, int32_t i, const hk_nam_options *o) {
  nam_net *net = &l->net[i];
  const int64_t in = nam_inputs(l->size[i].model);
  net->rational = o && o->rational_tanh;
  if (!in || !nam_net_start(net, in)) return HK_INVALID;
  const int32_t out = nam_build(net, l->size[i].model, 1, l->size[i].ratio, 0);
  if (!out) return HK_INVALID;
  if (i && (in != l->in || net->channels[out] != l->out)) {
    nam_fail("the sizes of the model differ in their channels");
    return HK_INVALID;
  }
  l->in = in;
  l->out = net->channels[out];
  l->desc[i] = (hk_chain_desc){.size = sizeof l->desc[i],
                               .channels = in,
                               .max_block = BLOCK,
                               .steps = net->step,
                               .count = net->count,
                               .output = out,
                               .layout = HK_CHANNELS_LAST,
                               .isa = o ? o->isa : HK_ISA_BEST};
  return nam_status(hk_chain_measure(&l->desc[i], &l->chain[i], &l->stream[i]));
}

static hk_status start(loading *l, const void *text, size_t bytes, const hk_nam_options *o) {
  json_error_t error;
  memset(l, 0, sizeof *l);
  if (!text || (o && o->size != sizeof *o)) {
    nam_fail("text is NULL or options.size is not sizeof(hk_nam_options)");
    return HK_INVALID;
  }
  if (!(l->root = json_loadb(text, bytes, 0, &error))) {
    nam_fail("not JSON: %s at line %d, column %d", error.text, error.line, error.column);
    return HK_SYNTAX;
  }
  if (!nam_sizes(l->root, l->size, &l->count) || !nam_rate(l->root, &l->rate)) return HK_INVALID;
  for (int32_t i = 0; i < l->count; i++) {
    hk_status e = build_size(l, i, o);
    if (e) return e;
    if (l->chain[i] > MAX_BYTES || l->stream[i] > MAX_BYTES) {
      nam_fail("the model needs %zu bytes; %d is the most", l->chain[i] + l->stream[i], MAX_BYTES);
      return HK_INVALID;
    }
  }
  return HK_OK;
}

static void finish(loading *l) {
  for (int32_t i = 0; i < l->count; i++) nam_net_free(&l->net[i]);
  json_decref(l->root);
}

static size_t head_bytes(const loading *l) {
  return aligned(sizeof(hk_nam) + (size_t)l->count * sizeof(nam_voice)) +
         aligned((size_t)(l->in + l->out) * BLOCK * sizeof(float));
}

/* Room for the warm state of every size is counted with its stream: a state is never longer. */
static size_t model_bytes(const loading *l) {
  size_t bytes = ALIGN + head_bytes(l);
  for (int32_t i = 0; i < l->count; i++) bytes += aligned(l->chain[i]) + 2 * aligned(l->stream[i]);
  return bytes;
}

static void copy_text(char to[SHORT_TEXT], json_t *o, const char *key) {
  const char *text = json_string_value(json_object_get(o, key));
  snprintf(to, SHORT_TEXT, "%s", text ? text : "");
}

static void read_level(json_t *meta, const char *key, int32_t *has, double *value) {
  json_t *v = nam_object(meta, key);
  *has = json_is_number(v);
  *value = *has ? json_number_value(v) : 0;
}

static void describe(hk_nam *m, const loading *l) {
  json_t *meta = nam_object(l->root, "metadata");
  copy_text(m->architecture, l->root, "architecture");
  copy_text(m->version, l->root, "version");
  copy_text(m->name, meta, "name");
  copy_text(m->modeled_by, meta, "modeled_by");
  const char *make = json_string_value(json_object_get(meta, "gear_make")),
             *gear = json_string_value(json_object_get(meta, "gear_model"));
  snprintf(m->gear, SHORT_TEXT, "%s%s%s", make ? make : "", make && gear ? " " : "", gear ? gear : "");
  hk_nam_facts *f = &m->facts;
  *f = (hk_nam_facts){.size = sizeof *f,
                      .architecture = m->architecture,
                      .version = m->version,
                      .name = m->name,
                      .modeled_by = m->modeled_by,
                      .gear = m->gear,
                      .sample_rate = l->rate,
                      .in_channels = (int32_t)l->in,
                      .out_channels = (int32_t)l->out,
                      .sizes = l->count,
                      .bytes = m->bytes};
  read_level(meta, "loudness", &f->has_loudness, &f->loudness);
  read_level(meta, "input_level_dbu", &f->has_input_level, &f->input_level_dbu);
  read_level(meta, "output_level_dbu", &f->has_output_level, &f->output_level_dbu);
}

/* Chain, stream and warm state of one size, carved from *p. */
static hk_status place_voice(hk_nam *m, const loading *l, int32_t i, char **p) {
  nam_voice *v = &m->voice[i];
  v->below = l->size[i].below;
  v->facts.size = sizeof v->facts;
  memcpy(v->layers, l->net[i].layers, sizeof v->layers);
  hk_status e = hk_chain_create(&v->chain, &l->desc[i], *p, l->chain[i]);
  *p += aligned(l->chain[i]);
  if (!e) e = hk_stream_create(&v->stream, v->chain, *p, l->stream[i]);
  *p += aligned(l->stream[i]);
  if (!e) e = hk_chain_info(v->chain, &v->facts);
  if (e) return nam_status(e);
  const int64_t half_second = l->rate > 0 ? (int64_t)(0.5 * l->rate) : 24000;
  m->prewarm = v->facts.recurrent && half_second > v->facts.receptive_field ? half_second : v->facts.receptive_field;
  if (!(e = hk_stream_prewarm(v->stream, m->prewarm)) && v->facts.recurrent) {
    v->warm = *p;
    v->warm_bytes = v->facts.state_bytes;
    *p += aligned(l->stream[i]);
    e = hk_stream_save(v->stream, v->warm, v->warm_bytes);
  }
  return nam_status(e);
}

static hk_status make(hk_nam **model, const loading *l) {
  const size_t bytes = model_bytes(l);
  void *memory = calloc(1, bytes);
  if (!memory) {
    nam_fail("no memory for a model of %zu bytes", bytes);
    return HK_NO_MEMORY;
  }
  char *p = (char *)aligned((size_t)(uintptr_t)memory);
  hk_nam *m = (hk_nam *)p;
  m->memory = memory;
  m->bytes = bytes;
  m->voices = l->count;
  m->active = l->count - 1;
  m->in = l->in;
  m->out = l->out;
  m->block = (float *)(p + aligned(sizeof(hk_nam) + (size_t)l->count * sizeof(nam_voice)));
  describe(m, l);
  p += head_bytes(l);
  hk_status e = HK_OK;
  for (int32_t i = 0; i < l->count && !e; i++) e = place_voice(m, l, i, &p);
  if (e) free(memory);
  else *model = m;
  return e;
}

HK_API hk_status hk_nam_load_memory(hk_nam **model, const void *text, size_t bytes, const hk_nam_options *options) {
  loading *l = model ? malloc(sizeof *l) : NULL;
  if (!l) {
    nam_fail(model ? "no memory" : "model is NULL");
    return model ? HK_NO_MEMORY : HK_INVALID;
  }
  hk_status e = start(l, text, bytes, options);
  if (!e) e = make(model, l);
  finish(l);
  free(l);
  return e;
}

HK_API hk_status hk_nam_measure(const void *text, size_t bytes, const hk_nam_options *options, size_t *size) {
  loading *l = size ? malloc(sizeof *l) : NULL;
  if (!l) {
    nam_fail(size ? "no memory" : "model_bytes is NULL");
    return size ? HK_NO_MEMORY : HK_INVALID;
  }
  hk_status e = start(l, text, bytes, options);
  if (!e) *size = model_bytes(l);
  finish(l);
  free(l);
  return e;
}

static hk_status read_file(const char *path, char **text, size_t *bytes) {
  FILE *file = path ? fopen(path, "rb") : NULL;
  if (!file) {
    nam_fail("%s cannot be opened", path ? path : "NULL");
    return HK_IO;
  }
  size_t room = 1 << 16, used = 0;
  char *buffer = malloc(room);
  while (buffer) {
    used += fread(buffer + used, 1, room - used, file);
    if (used < room || room > (size_t)MAX_BYTES) break;
    char *more = realloc(buffer, room *= 2);
    if (!more) free(buffer);
    buffer = more;
  }
  const bool bad = ferror(file) || used > (size_t)MAX_BYTES;
  fclose(file);
  if (!buffer || bad) {
    nam_fail("%s cannot be read, or is too long", path);
    free(buffer);
    return HK_IO;
  }
  *text = buffer;
  *bytes = used;
  return HK_OK;
}

HK_API hk_status hk_nam_load_file(hk_nam **model, const char *path, const hk_nam_options *options) {
  char *text;
  size_t bytes;
  hk_status e = read_file(path, &text, &bytes);
  if (e) return e;
  e = hk_nam_load_memory(model, text, bytes, options);
  free(text);
  return e;
}
