/* Loading: parse, build every size, measure, hold everything against the limits of nam.h, then one allocation that
 * holds the model, its chains and its streams. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "play.h"

typedef struct loading {
  hk_nam_options options;
  nam_budget budget;
  nam_value *root;
  int32_t count;
  nam_size size[MAX_SIZES];
  nam_net net[MAX_SIZES];
  hk_chain_desc desc[MAX_SIZES];
  size_t chain[MAX_SIZES], stream[MAX_SIZES];
  int64_t prewarm[MAX_SIZES]; /* frames */
  int64_t in, out;
  double rate;
} loading;

static hk_status build_size(loading *l, int32_t i) {
  const hk_nam_options *o = &l->options;
  nam_net *net = &l->net[i];
  const int64_t in = nam_inputs(l->size[i].model);
  net->rational = o->rational_tanh;
  net->film_blended_only = o->film_blended_only;
  if (!in || !nam_net_start(net, &l->budget, in)) return nam_failure();
  const int32_t out = nam_build(net, l->size[i].model, 1, l->size[i].ratio, 0);
  if (!out) return nam_failure();
  if (i && (in != l->in || net->signal[out].channels != l->out)) {
    nam_fail("the sizes of the model differ in their channels");
    return HK_INVALID;
  }
  l->in = in;
  l->out = net->signal[out].channels;
  l->desc[i] = (hk_chain_desc){.size = sizeof l->desc[i],
                               .channels = in,
                               .max_block = BLOCK,
                               .steps = net->step,
                               .count = net->count,
                               .output = out,
                               .layout = HK_CHANNELS_LAST,
                               .isa = o->isa};
  return nam_status(hk_chain_measure(&l->desc[i], &l->chain[i], &l->stream[i]));
}

size_t nam_head_bytes(int64_t channels, int32_t voices) {
  return nam_aligned(sizeof(hk_nam) + (size_t)voices * sizeof(nam_voice)) +
         nam_aligned((size_t)channels * BLOCK * sizeof(float));
}

/* The first `count` sizes. A recurrent one also keeps its warm state, which is never longer than its stream. */
static size_t model_bytes(const loading *l, int32_t count) {
  size_t bytes = NAM_ALIGN + nam_head_bytes(l->in + l->out, l->count);
  for (int32_t i = 0; i < count; i++) {
    bytes += nam_aligned(l->chain[i]) + (l->net[i].recurrent ? 2 : 1) * nam_aligned(l->stream[i]);
  }
  return bytes;
}

/* Recurrent sizes are played for half a second; the others settle with one frame, at the cost of a piece of 64. */
static double prewarm_work(loading *l, int32_t i) {
  const nam_net *net = &l->net[i];
  const int64_t half_second = l->rate > 0 ? (int64_t)(0.5 * l->rate) : 24000,
                reach = net->signal[l->desc[i].output].reach;
  l->prewarm[i] = net->recurrent && half_second > reach ? half_second : reach;
  return (net->recurrent ? (double)l->prewarm[i] : 64.0) * net->work;
}

static hk_status build_sizes(loading *l) {
  double work = 0;
  for (int32_t i = 0; i < l->count; i++) {
    hk_status e = build_size(l, i);
    if (e) return e;
    const size_t bytes = model_bytes(l, i + 1);
    work += prewarm_work(l, i);
    if (bytes > MAX_BYTES) {
      nam_fail("the model needs %zu bytes (%d of its %d sizes); at most %d are supported", bytes, i + 1, l->count,
               MAX_BYTES);
      return HK_INVALID;
    }
    if (work > MAX_PREWARM) {
      nam_fail("prewarming the model takes %.3g operations (%d of its %d sizes); at most %.3g are supported", work,
               i + 1, l->count, MAX_PREWARM);
      return HK_INVALID;
    }
  }
  return HK_OK;
}

static hk_status start(loading *l, const void *text, size_t bytes, const hk_nam_options *o) {
  memset(l, 0, sizeof *l);
  l->budget.left = MAX_LOAD - LOWERING;
  if (!text) {
    nam_fail("text is NULL");
    return HK_INVALID;
  }
  if (o && !nam_struct_in(o, &l->options, sizeof l->options, "options")) return HK_INVALID;
  if (bytes > MAX_FILE) {
    nam_fail("the model file has %zu bytes; at most %d are supported", bytes, MAX_FILE);
    return HK_INVALID;
  }
  if (!nam_spend(&l->budget, bytes)) return nam_failure();
  hk_status e = nam_parse(text, bytes, &l->budget, &l->root);
  if (e) return e;
  if (!nam_sizes(l->root, l->size, &l->count) || !nam_rate(l->root, &l->rate)) return nam_failure();
  e = build_sizes(l);
  return e || nam_spend(&l->budget, model_bytes(l, l->count)) ? e : nam_failure();
}

static void finish(loading *l) {
  for (int32_t i = 0; i < MAX_SIZES; i++) nam_net_free(&l->net[i]);
  free(l->root);
}

static void copy_text(char to[SHORT_TEXT], const nam_value *o, const char *key) {
  const char *text = nam_text(nam_get(o, key));
  snprintf(to, SHORT_TEXT, "%s", text ? text : "");
}

static void read_level(const nam_value *meta, const char *key, int32_t *has, double *value) {
  const nam_value *v = nam_object(meta, key);
  *has = nam_is(v, NAM_NUMBER);
  *value = *has ? nam_number(v) : 0;
}

static void describe(hk_nam *m, const loading *l) {
  const nam_value *meta = nam_object(l->root, "metadata");
  copy_text(m->architecture, l->root, "architecture");
  copy_text(m->version, l->root, "version");
  copy_text(m->name, meta, "name");
  copy_text(m->modeled_by, meta, "modeled_by");
  const char *make = nam_text(nam_get(meta, "gear_make")), *gear = nam_text(nam_get(meta, "gear_model"));
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
  *p += nam_aligned(l->chain[i]);
  if (!e) e = hk_stream_create(&v->stream, v->chain, *p, l->stream[i]);
  *p += nam_aligned(l->stream[i]);
  if (!e) e = hk_chain_info(v->chain, &v->facts);
  if (e) return nam_status(e);
  const bool recurrent = l->net[i].recurrent;
  if (!(e = hk_stream_prewarm(v->stream, recurrent ? l->prewarm[i] : v->facts.receptive_field)) && recurrent) {
    v->warm = *p;
    v->warm_bytes = v->facts.state_bytes;
    *p += nam_aligned(l->stream[i]);
    e = hk_stream_save(v->stream, v->warm, v->warm_bytes);
  }
  return nam_status(e);
}

static hk_status make(hk_nam **model, const loading *l) {
  const size_t bytes = model_bytes(l, l->count);
  void *memory = calloc(1, bytes);
  if (!memory) {
    nam_refuse(HK_NO_MEMORY, "no memory for a model of %zu bytes", bytes);
    return HK_NO_MEMORY;
  }
  char *p = (char *)nam_aligned((size_t)(uintptr_t)memory);
  hk_nam *m = (hk_nam *)p;
  m->memory = memory;
  m->bytes = bytes;
  m->weights = m;
  atomic_init(&m->users, 1);
  m->voices = l->count;
  m->active = l->count - 1;
  m->in = l->in;
  m->out = l->out;
  m->block = (float *)(p + nam_aligned(sizeof(hk_nam) + (size_t)l->count * sizeof(nam_voice)));
  describe(m, l);
  p += nam_head_bytes(l->in + l->out, l->count);
  hk_status e = HK_OK;
  for (int32_t i = 0; i < l->count && !e; i++) e = place_voice(m, l, i, &p);
  if (e) free(memory);
  else *model = m;
  return e;
}

HK_API hk_status hk_nam_load_memory(hk_nam **model, const void *text, size_t bytes, const hk_nam_options *options) {
  loading *l = model ? malloc(sizeof *l) : NULL;
  if (!l) {
    nam_refuse(model ? HK_NO_MEMORY : HK_INVALID, model ? "no memory to load a model" : "model is NULL");
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
    nam_refuse(size ? HK_NO_MEMORY : HK_INVALID, size ? "no memory to load a model" : "model_bytes is NULL");
    return size ? HK_NO_MEMORY : HK_INVALID;
  }
  hk_status e = start(l, text, bytes, options);
  if (!e) *size = model_bytes(l, l->count);
  finish(l);
  free(l);
  return e;
}

static hk_status too_long(const char *path, unsigned long long bytes) {
  nam_fail("%s has %s%llu bytes; a model file has at most %d", path, bytes ? "" : "more than ",
           bytes ? bytes : MAX_FILE, MAX_FILE);
  return HK_INVALID;
}

/* A file without a known length (a pipe) is read up to one byte more than a model file may have. */
static hk_status read_open(FILE *file, const char *path, char **text, size_t *bytes) {
  struct stat facts;
  const long long length = !fstat(fileno(file), &facts) && S_ISREG(facts.st_mode) ? (long long)facts.st_size : 0;
  if (length > MAX_FILE) return too_long(path, (unsigned long long)length);
  size_t room = length > 0 ? (size_t)length + 1 : 1 << 16, used = 0;
  char *buffer = NULL;
  for (;;) {
    char *more = realloc(buffer, room);
    if (!more) {
      free(buffer);
      nam_refuse(HK_NO_MEMORY, "no memory for the %zu bytes of %s", room, path);
      return HK_NO_MEMORY;
    }
    buffer = more;
    used += fread(buffer + used, 1, room - used, file);
    if (used < room || room > MAX_FILE) break;
    room = room > MAX_FILE / 2 ? (size_t)MAX_FILE + 1 : 2 * room;
  }
  if (!ferror(file) && used <= MAX_FILE) {
    *text = buffer;
    *bytes = used;
    return HK_OK;
  }
  free(buffer);
  if (used > MAX_FILE) return too_long(path, 0);
  nam_refuse(HK_IO, "%s cannot be read", path);
  return HK_IO;
}

static hk_status read_file(const char *path, char **text, size_t *bytes) {
  FILE *file = path ? fopen(path, "rb") : NULL;
  if (!file) {
    const hk_status e = path && errno == ENOMEM ? HK_NO_MEMORY : HK_IO;
    nam_refuse(e, "%s cannot be opened%s", path ? path : "NULL", e == HK_NO_MEMORY ? ": no memory" : "");
    return e;
  }
  const hk_status e = read_open(file, path, text, bytes);
  fclose(file);
  return e;
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
