/* Playing a loaded model: blocks of float or double, interleaved or planar; reset, size; the end of its memory. */
#include <stdlib.h>

#include "play.h"

static hk_status bad(const char *sentence) {
  nam_fail("%s", sentence);
  return HK_INVALID;
}

/* The memory of the weights goes with the last player of them. */
HK_API void hk_nam_free(hk_nam *m) {
  if (!m) return;
  hk_nam *weights = m->weights;
  if (m != weights) free(m->memory);
  if (atomic_fetch_sub(&weights->users, 1) == 1) free(weights->memory);
}

hk_status nam_voice_reset(const hk_nam *m, int32_t size) {
  const nam_voice *v = &m->voice[size];
  if (v->warm) return nam_status(hk_stream_restore(v->stream, v->warm, v->warm_bytes));
  return nam_status(hk_stream_prewarm(v->stream, v->facts.receptive_field));
}

HK_API hk_status hk_nam_reset(hk_nam *m) {
  if (!m) return bad("model is NULL");
  return nam_voice_reset(m, m->active);
}

int32_t nam_size_at(const hk_nam *m, double value) {
  int32_t i = value < 1 ? 0 : m->voices - 1;
  while (i < m->voices - 1 && !(value < m->voice[i].below)) i++;
  return i;
}

HK_API hk_status hk_nam_set_size(hk_nam *m, double value) {
  if (!m) return bad("model is NULL");
  if (!(value >= 0 && value <= 1)) {
    nam_fail("value is %g; sizes go from 0 (smallest) to 1 (largest)", value);
    return HK_INVALID;
  }
  const int32_t i = nam_size_at(m, value);
  if (i == m->active) return HK_OK;
  m->active = i;
  return hk_nam_reset(m);
}

hk_status nam_voice_play(const hk_nam *m, int32_t size, const float *x, int64_t n, float *y) {
  for (int64_t done = 0; done < n; done += BLOCK) {
    const int64_t count = n - done < BLOCK ? n - done : BLOCK;
    const hk_status e = hk_stream_process(m->voice[size].stream, x + done * m->in, count, y + done * m->out, NULL);
    if (e) return nam_status(e);
  }
  return HK_OK;
}

HK_API hk_status hk_nam_process(hk_nam *m, const float *x, int64_t n, float *y) {
  if (!m || n < 0 || (n && (!x || !y))) return bad("model, x or y is NULL, or n is negative");
  return nam_voice_play(m, m->active, x, n, y);
}

HK_API hk_status hk_nam_process_double(hk_nam *m, const double *x, int64_t n, double *y) {
  if (!m || n < 0 || (n && (!x || !y))) return bad("model, x or y is NULL, or n is negative");
  float *in = m->block, *out = m->block + BLOCK * m->in;
  for (int64_t done = 0; done < n; done += BLOCK) {
    const int64_t count = n - done < BLOCK ? n - done : BLOCK;
    for (int64_t i = 0; i < count * m->in; i++) in[i] = (float)x[done * m->in + i];
    const hk_status e = hk_nam_process(m, in, count, out);
    if (e) return e;
    for (int64_t i = 0; i < count * m->out; i++) y[done * m->out + i] = (double)out[i];
  }
  return HK_OK;
}

static bool planes(const float *const *at, int64_t count) {
  for (int64_t i = 0; at && i < count; i++) {
    if (!at[i]) return false;
  }
  return at != NULL;
}

HK_API hk_status hk_nam_process_planar(hk_nam *m, const float *const *x, int64_t n, float *const *y) {
  if (!m || n < 0 || (n && (!planes(x, m->in) || !planes((const float *const *)y, m->out))))
    return bad("model, x, y or a plane of them is NULL, or n is negative");
  if (n && m->in == 1 && m->out == 1) return nam_voice_play(m, m->active, x[0], n, y[0]);
  float *in = m->block, *out = m->block + BLOCK * m->in;
  for (int64_t done = 0; done < n; done += BLOCK) {
    const int64_t count = n - done < BLOCK ? n - done : BLOCK;
    for (int64_t c = 0; c < m->in; c++)
      for (int64_t i = 0; i < count; i++) in[i * m->in + c] = x[c][done + i];
    const hk_status e = nam_voice_play(m, m->active, in, count, out);
    if (e) return e;
    for (int64_t c = 0; c < m->out; c++)
      for (int64_t i = 0; i < count; i++) y[c][done + i] = out[i * m->out + c];
  }
  return HK_OK;
}

HK_API hk_status hk_nam_info(const hk_nam *m, hk_nam_facts *facts) {
  if (!m) return bad("model is NULL");
  const nam_voice *v = &m->voice[m->active];
  hk_nam_facts f = m->facts;
  f.at_size = m->active;
  f.layers = v->layers;
  f.receptive_field = v->facts.receptive_field;
  f.recurrent = v->facts.recurrent;
  f.flops = v->facts.flops;
  f.isa = v->facts.isa;
  return nam_struct_out(facts, &f, sizeof f, "facts");
}
