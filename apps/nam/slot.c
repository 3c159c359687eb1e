/* How a slot of the rig goes from one source to the next:
 *   touch   the next source's memory is fetched into the caches, a slice per block, since a cold block would cost more
 *           than two warm ones; at the end one frame is played, which does the same for the code
 *   listen  it is played unheard until its histories hold the present signal, so that it enters as if it had always
 *           been there
 *   fade    the two are mixed with gains whose sum is 1: both hear the same signal, so their outputs are correlated,
 * and gains of equal power would swell by 3 dB halfway Listening begins at a fixed frame, and a block is cut there if
 * need be. A fade may end inside a block: from then on the old source adds nothing, and it is let go at the block's
 * end, or at once if another part waits. */
#include <string.h>

#include "rig.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

float rig_fade(const hk_rig *rig, const rig_slot *slot, int64_t at) {
  const double p = (double)(at - slot->fade) / (double)rig->fade;
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

static bool resized(const hk_rig *rig, const rig_source *s) { return s->size != wanted_size(rig, s->part); }

void rig_slot_end(hk_rig *rig, rig_slot *slot) {
  if (slot->now.part != slot->next.part) retire(rig, slot->now.part);
  slot->now = slot->next;
  slot->fading = false;
}

void rig_slot_take_up(hk_rig *rig, rig_slot *slot) {
  while (!slot->fading && (slot->waits || resized(rig, &slot->now))) {
    hk_rig_part *part = slot->waits ? slot->waiting : slot->now.part;
    slot->waits = false;
    slot->waiting = NULL;
    if (!part && !slot->now.part) break;
    slot->next = (rig_source){.part = part, .size = wanted_size(rig, part)};
    if (part && part == slot->now.part) slot->next.lane = (slot->now.lane + 1) % RIG_LANES;
    rig_source_rewind(&slot->next, rig->now);
    rig_aim(rig, &slot->next);
    rig_glide_set(&slot->next.in, slot->next.in.target);
    rig_glide_set(&slot->next.out, slot->next.out.target);
    slot->fading = true;
    slot->at = 0;
    slot->listen = part ? RIG_TOUCH : 0;
    slot->fade = slot->listen + rig_source_listens(rig, &slot->next);
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
  const hk_status e = rig_source_play(s, n, x);
  rig_scale(rig, &s->out, n, x);
  return e;
}

static hk_status touch_and_play(hk_rig *rig, rig_slot *slot, int64_t n, float *x) {
  hk_status e = HK_OK;
  rig_source_touch(&slot->next, slot->at, n);
  if (slot->at + n == slot->listen) {
    for (int32_t c = 0; c < rig->channels; c++) rig->other[c * BLOCK] = 0.0f;
    e = rig_source_play(&slot->next, 1, rig->other);
    rig_source_rewind(&slot->next, rig->now + n);
  }
  return e ? e : play_with_gains(rig, &slot->now, n, x);
}

int64_t rig_slot_piece(const hk_rig *rig, const rig_slot *slot, int64_t n) {
  if (!slot->fading) return n;
  if (slot->at < slot->listen) return smaller(n, slot->listen - slot->at);
  const int64_t left = slot->fade + rig->fade - slot->at;
  return slot->waits || resized(rig, &slot->next) ? smaller(n, left) : n;
}

void rig_slot_advance(hk_rig *rig, rig_slot *slot, int64_t n) {
  slot->at += n;
  if (slot->fading && slot->at >= slot->fade + rig->fade) rig_slot_end(rig, slot);
}

hk_status rig_slot_play(hk_rig *rig, rig_slot *slot, int64_t n, float *x) {
  if (!slot->fading) return play_with_gains(rig, &slot->now, n, x);
  if (slot->at < slot->listen) return touch_and_play(rig, slot, n, x);
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
