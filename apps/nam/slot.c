/* What a slot of the rig plays, and how it goes from one source to the next. The next source first listens: it is
 * played unheard until its histories hold the present signal, so that it enters as if it had always been there. Then
 * the two are mixed with gains whose sum is 1: both hear the same signal, so their outputs are correlated, and gains of
 * equal power would swell by 3 dB halfway. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "rig.h"

/* How long a part that never forgets, or a long cabinet, listens. */
static const double LISTEN_SECONDS = 0.1;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t listen_frames(const hk_rig *rig, const rig_source *s) {
  const int64_t most = (int64_t)(LISTEN_SECONDS * rig->rate);
  if (!s->part) return 0;
  if (s->part->slot == HK_RIG_CABINET) return smaller(s->part->frames, most);
  const nam_voice *v = &s->part->player[0]->voice[s->size];
  if (v->facts.recurrent) return most;
  const double ratio = s->part->conversion ? (double)s->part->bridge.in.down / (double)s->part->bridge.in.up : 1;
  return (int64_t)ceil((double)v->facts.receptive_field * ratio) + 2 * s->part->latency;
}

/* What is not finite would stay in an LSTM for ever, and in other histories for their length. */
static void keep_finite(const hk_rig *rig, int64_t n, float *x) {
  for (int32_t c = 0; c < rig->channels; c++, x += BLOCK)
    for (int64_t i = 0; i < n; i++) x[i] = fabsf(x[i]) <= FLT_MAX ? x[i] : 0.0f;
}

/* The amp or the cabinet of a source over [channels][BLOCK] frames, in place. */
static hk_status play_source(rig_source *s, int64_t n, float *x) {
  hk_rig_part *p = s->part;
  hk_status e = HK_OK;
  if (!p) return e;
  if (p->slot == HK_RIG_CABINET) {
    for (int32_t c = 0; c < p->streams && !e; c++)
      e = nam_status(hk_stream_process(p->stream[c], x + c * BLOCK, n, x + c * BLOCK, NULL));
    return e;
  }
  for (int32_t c = 0; c < p->channels && !e; c++) {
    float *row = x + c * BLOCK;
    if (!p->conversion) e = nam_voice_play(p->player[c], s->size, row, n, row);
    else e = rig_crossing_play(&p->bridge, p->crossing[s->lane] + c, p->player[c], s->size, n, row);
  }
  return e;
}

static void reset_lane(const rig_source *s) {
  hk_rig_part *p = s->part;
  for (int32_t c = 0; p && p->conversion && c < p->channels; c++)
    rig_crossing_reset(&p->bridge, p->crossing[s->lane] + c);
}

hk_status rig_source_reset(rig_source *s) {
  const hk_rig_part *p = s->part;
  hk_status e = HK_OK;
  for (int32_t c = 0; p && c < p->channels && !e; c++) {
    if (p->slot == HK_RIG_AMP) e = nam_voice_reset(p->player[c], s->size);
    else if (c < p->streams) e = nam_status(hk_stream_reset(p->stream[c]));
  }
  reset_lane(s);
  return e;
}

float rig_fade(const hk_rig *rig, const rig_slot *slot, int64_t at) {
  const double p = (double)(at - slot->listen) / (double)rig->fade;
  if (p <= 0) return 0.0f;
  return p >= 1 ? 1.0f : (float)(p * p * (3 - 2 * p));
}

static void retire(hk_rig *rig, hk_rig_part *p) {
  if (!p) return;
  p->link = rig->retired;
  rig->retired = p;
}

static int32_t wanted_size(const hk_rig *rig, const hk_rig_part *p) {
  if (!p || p->slot == HK_RIG_CABINET) return 0;
  const hk_nam *m = p->player[0];
  return rig->controls.resize ? nam_size_at(m, rig->controls.model_size) : m->active;
}

void rig_slot_end(hk_rig *rig, rig_slot *slot) {
  if (slot->now.part != slot->next.part) retire(rig, slot->now.part);
  slot->now = slot->next;
  slot->fading = false;
}

void rig_slot_take_up(hk_rig *rig, rig_slot *slot) {
  while (!slot->fading && (slot->waits || slot->now.size != wanted_size(rig, slot->now.part))) {
    hk_rig_part *part = slot->waits ? slot->waiting : slot->now.part;
    slot->waits = false;
    slot->waiting = NULL;
    if (!part && !slot->now.part) break;
    slot->next = (rig_source){.part = part, .size = wanted_size(rig, part)};
    if (part && part == slot->now.part) slot->next.lane = (slot->now.lane + 1) % RIG_LANES;
    reset_lane(&slot->next);
    rig_aim(rig, &slot->next);
    rig_glide_set(&slot->next.in, slot->next.in.target);
    rig_glide_set(&slot->next.out, slot->next.out.target);
    slot->fading = true;
    slot->at = 0;
    slot->listen = listen_frames(rig, &slot->next);
    if (rig->fresh) rig_slot_end(rig, slot);
  }
}

HK_API void hk_rig_set(hk_rig *rig, hk_rig_slot slot, hk_rig_part *part) {
  if (!rig || (slot != HK_RIG_AMP && slot != HK_RIG_CABINET)) return;
  if (part && (part->slot != slot || part->rate != rig->rate || part->channels != rig->channels)) {
    retire(rig, part);
    return;
  }
  rig_slot *s = &rig->slot[slot];
  if (s->waits) retire(rig, s->waiting);
  s->waits = true;
  s->waiting = part;
  rig_slot_take_up(rig, s);
}

HK_API hk_rig_part *hk_rig_retired(hk_rig *rig) {
  hk_rig_part *p = rig ? rig->retired : NULL;
  if (p) rig->retired = p->link;
  return p;
}

static hk_status play_with_gains(hk_rig *rig, rig_source *s, int64_t n, float *x) {
  rig_scale(rig, &s->in, n, x);
  keep_finite(rig, n, x);
  const hk_status e = play_source(s, n, x);
  rig_scale(rig, &s->out, n, x);
  return e;
}

hk_status rig_slot_play(hk_rig *rig, rig_slot *slot, int64_t n, float *x) {
  if (!slot->fading) return play_with_gains(rig, &slot->now, n, x);
  for (int32_t c = 0; c < rig->channels; c++) memcpy(rig->other + c * BLOCK, x + c * BLOCK, (size_t)n * sizeof *x);
  hk_status e = play_with_gains(rig, &slot->now, n, x);
  if (!e) e = play_with_gains(rig, &slot->next, n, rig->other);
  for (int64_t i = 0; i < n; i++) rig->gain[i] = rig_fade(rig, slot, slot->at + i);
  for (int32_t c = 0; c < rig->channels; c++) {
    float *a = x + c * BLOCK;
    const float *b = rig->other + c * BLOCK;
    for (int64_t i = 0; i < n; i++) a[i] = (1.0f - rig->gain[i]) * a[i] + rig->gain[i] * b[i];
  }
  return e;
}
