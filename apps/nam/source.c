/* What a slot plays: one size of an amp, or a cabinet, or nothing. Here is how it plays, how long its histories are,
 * and how its memory gets into the caches before it plays. */
#include <float.h>
#include <math.h>

#include "rig.h"

/* How long a part that never forgets, or a long cabinet, listens. */
static const double LISTEN_SECONDS = 0.1;

/* What is touched of one block of memory at most: more would not stay in the caches. */
enum { TOUCH_MOST = 1 << 19, LINE = 64 };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t rig_source_listens(const hk_rig *rig, const rig_source *s) {
  const int64_t most = (int64_t)(LISTEN_SECONDS * rig->rate);
  if (!s->part) return 0;
  if (s->part->slot == HK_RIG_CABINET) return smaller(s->part->frames, most);
  const nam_voice *v = &s->part->player[0]->voice[s->size];
  if (v->facts.recurrent) return most;
  const double ratio = s->part->conversion ? (double)s->part->bridge.in.down / (double)s->part->bridge.in.up : 1;
  return (int64_t)ceil((double)v->facts.receptive_field * ratio) + 2 * s->part->latency;
}

/* What is not finite would stay in an LSTM for ever, in other histories for their length, and a source that is not
 * heard yet would be heard: 0 * Inf is no number. */
static void keep_finite(float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] = fabsf(x[i]) <= FLT_MAX ? x[i] : 0.0f;
}

static hk_status play_cabinet(const hk_rig_part *p, int32_t stream, int64_t n, float *x) {
  return nam_status(hk_stream_process(p->stream[stream], x, n, x, NULL));
}

hk_status rig_source_play(const rig_source *s, int64_t n, float *x) {
  hk_rig_part *p = s->part;
  hk_status e = HK_OK;
  if (!p) return e;
  for (int32_t c = 0; c < p->channels; c++) keep_finite(x + c * BLOCK, n);
  for (int32_t c = 0; c < p->channels && !e; c++) {
    float *row = x + c * BLOCK;
    if (p->slot == HK_RIG_CABINET) e = c < p->streams ? play_cabinet(p, c, n, row) : HK_OK;
    else if (!p->conversion) e = nam_voice_play(p->player[c], s->size, row, n, row);
    else e = rig_crossing_play(&p->bridge, p->crossing[s->lane] + c, p->player[c], s->size, n, row);
  }
  for (int32_t c = 0; c < p->channels; c++) keep_finite(x + c * BLOCK, n);
  return e;
}

void rig_source_rewind(const rig_source *s, int64_t now) {
  hk_rig_part *p = s->part;
  for (int32_t c = 0; p && p->conversion && c < p->channels; c++)
    rig_crossing_reset(&p->bridge, p->crossing[s->lane] + c, now);
}

hk_status rig_source_reset(rig_source *s) {
  const hk_rig_part *p = s->part;
  hk_status e = HK_OK;
  for (int32_t c = 0; p && c < p->channels && !e; c++) {
    if (p->slot == HK_RIG_AMP) e = nam_voice_reset(p->player[c], s->size);
    else if (c < p->streams) e = nam_status(hk_stream_reset(p->stream[c]));
  }
  rig_source_rewind(s, 0);
  return e;
}

/* Lines [at, at + n) of RIG_TOUCH equal shares of some memory. */
static void touch(const void *memory, size_t bytes, int64_t at, int64_t n) {
  const char *p = memory;
  const int64_t lines = smaller((int64_t)bytes, TOUCH_MOST) / LINE;
  for (int64_t i = lines * at / RIG_TOUCH; i < lines * (at + n) / RIG_TOUCH; i++) __builtin_prefetch(p + i * LINE);
}

void rig_source_touch(const rig_source *s, int64_t at, int64_t n) {
  const hk_rig_part *p = s->part;
  for (int32_t c = 0; p && c < p->channels; c++) {
    if (p->slot == HK_RIG_AMP) {
      const nam_voice *v = &p->player[c]->voice[s->size];
      if (!c) touch(v->chain, v->facts.chain_bytes, at, n);
      touch(v->stream, v->facts.stream_bytes, at, n);
    } else {
      if (!c) touch(p->chain, p->chain_bytes, at, n);
      if (c < p->streams) touch(p->stream[c], p->stream_bytes, at, n);
    }
  }
}
