/* The rig: memory, controls, and one piece of a block through everything. Gains and fades count frames, so the output
 * does not depend on how the signal is cut into blocks: the same controls and parts at the same frames give the same
 * bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static const double DEFAULT_FADE = 0.02, MAX_FADE = 10, LOUDNESS = -18, MAX_DB = 200;

static hk_status check_options(const hk_rig_options *o) {
  if (!(o->sample_rate >= HK_NAM_MIN_RATE && o->sample_rate <= HK_NAM_MAX_RATE)) {
    nam_fail("sample_rate is %g; a rig has %d to %d Hz", o->sample_rate, HK_NAM_MIN_RATE, HK_NAM_MAX_RATE);
    return HK_INVALID;
  }
  if (o->channels < 1 || o->channels > RIG_CHANNELS) {
    nam_fail("channels is %d; a rig has 1 or 2", o->channels);
    return HK_INVALID;
  }
  if (!(o->fade_seconds >= 0 && o->fade_seconds <= MAX_FADE)) {
    nam_fail("fade_seconds is %g; 0 (which means %g) to %g is supported", o->fade_seconds, DEFAULT_FADE, MAX_FADE);
    return HK_INVALID;
  }
  return HK_OK;
}

int64_t rig_most_latency(double rate) { return (int64_t)(72.0 * fmax(1.0, rate / HK_NAM_MIN_RATE)) + 16; }

HK_API hk_status hk_rig_create(hk_rig **rig, const hk_rig_options *options) {
  hk_rig_options room;
  const hk_rig_options *o = &room;
  if (!rig) {
    nam_fail("rig is NULL");
    return HK_INVALID;
  }
  if (!nam_struct_in(options, &room, sizeof room, "options")) return HK_INVALID;
  const hk_status e = check_options(o);
  if (e) return e;
  int64_t delay = 1;
  while (delay < rig_most_latency(o->sample_rate) + BLOCK) delay *= 2;
  const size_t head = nam_aligned(sizeof **rig), floats = (size_t)(o->channels * (delay + 3 * BLOCK) + BLOCK),
               bytes = head + floats * sizeof(float);
  hk_rig *r = aligned_alloc(NAM_ALIGN, nam_aligned(bytes));
  if (!r) {
    nam_refuse(HK_NO_MEMORY, "no memory for a rig of %zu bytes", bytes);
    return HK_NO_MEMORY;
  }
  memset(r, 0, bytes);
  const double fade = (o->fade_seconds > 0 ? o->fade_seconds : DEFAULT_FADE) * o->sample_rate;
  r->rate = o->sample_rate;
  r->channels = o->channels;
  r->fade = fade < 1 ? 1 : (int64_t)fade;
  r->isa = o->isa;
  r->delay_mask = delay - 1;
  float *p = (float *)((char *)r + head);
  r->work = p;
  r->other = r->work + r->channels * BLOCK;
  r->dry = r->other + r->channels * BLOCK;
  r->gain = r->dry + r->channels * BLOCK;
  for (int32_t c = 0; c < r->channels; c++) r->delay[c] = r->gain + BLOCK + c * delay;
  r->controls.size = sizeof r->controls;
  rig_glide_set(&r->input, 1);
  rig_glide_set(&r->output, 1);
  for (int32_t s = 0; s < 2; s++) {
    rig_glide_set(&r->slot[s].now.in, 1);
    rig_glide_set(&r->slot[s].now.out, 1);
  }
  rig_gate_reset(&r->gate, true);
  r->fresh = true;
  *rig = r;
  return HK_OK;
}

HK_API void hk_rig_free(hk_rig *rig) {
  if (!rig) return;
  for (int32_t s = 0; s < 2; s++) {
    rig_slot *slot = &rig->slot[s];
    if (slot->fading) rig_slot_end(rig, slot);
    hk_rig_part_free(slot->now.part);
    if (slot->waits) hk_rig_part_free(slot->waiting);
  }
  for (hk_rig_part *p; (p = hk_rig_retired(rig));) hk_rig_part_free(p);
  free(rig);
}

HK_API void hk_rig_reset(hk_rig *rig) {
  if (!rig) return;
  rig->fresh = true;
  rig->now = 0;
  for (int32_t s = 0; s < 2; s++) {
    rig_slot *slot = &rig->slot[s];
    if (slot->fading) rig_slot_end(rig, slot);
    rig_slot_take_up(rig, slot);
    rig_source_reset(&slot->now);
    rig_glide_set(&slot->now.in, slot->now.in.target);
    rig_glide_set(&slot->now.out, slot->now.out.target);
  }
  for (int32_t c = 0; c < rig->channels; c++) memset(rig->delay[c], 0, (size_t)(rig->delay_mask + 1) * sizeof(float));
  rig_glide_set(&rig->input, rig->input.target);
  rig_glide_set(&rig->output, rig->output.target);
  rig_glide_set(&rig->bypass, rig->bypass.target);
  rig_gate_reset(&rig->gate, rig->controls.gate_db >= 0);
}

static int64_t latency(const rig_source *s) { return s->part ? s->part->latency : 0; }

HK_API int64_t hk_rig_latency(const hk_rig *rig) {
  if (!rig) return 0;
  const rig_slot *amp = &rig->slot[HK_RIG_AMP];
  return latency(amp->fading ? &amp->next : &amp->now);
}

void rig_aim(const hk_rig *rig, rig_source *s) {
  const hk_rig_controls *c = &rig->controls;
  double in = 0, out = 0;
  if (s->part && s->part->slot == HK_RIG_AMP) {
    const hk_nam_facts *f = &s->part->facts;
    if (c->level == HK_RIG_NORMALIZED && f->has_loudness) out = LOUDNESS - f->loudness;
    if (c->level == HK_RIG_CALIBRATED && f->has_output_level) out = f->output_level_dbu - c->interface_dbu;
    if (c->level == HK_RIG_CALIBRATED && f->has_input_level) in = c->interface_dbu - f->input_level_dbu;
  }
  s->in.target = rig_gain(fmax(-MAX_DB, fmin(MAX_DB, in)));
  s->out.target = rig_gain(fmax(-MAX_DB, fmin(MAX_DB, out)));
}

static bool in_range(const char *name, double db) {
  if (fabs(db) <= MAX_DB) return true;
  return nam_fail("%s is %g; -%g to %g dB is supported", name, db, MAX_DB, MAX_DB);
}

static hk_status take_controls(hk_rig *rig, const hk_rig_controls *given) {
  hk_rig_controls room = {.size = sizeof room};
  const hk_rig_controls *c = &room, *old = &rig->controls;
  if (given && !nam_struct_in(given, &room, sizeof room, "controls")) return HK_INVALID;
  if (!rig->fresh && c->input_db == old->input_db && c->output_db == old->output_db && c->gate_db == old->gate_db &&
      !c->bypass == !old->bypass && !c->resize == !old->resize && c->model_size == old->model_size &&
      c->level == old->level && c->interface_dbu == old->interface_dbu)
    return HK_OK;
  if (!in_range("input_db", c->input_db) || !in_range("output_db", c->output_db) ||
      !in_range("interface_dbu", c->interface_dbu))
    return HK_INVALID;
  if (isnan(c->gate_db) || (uint32_t)c->level > HK_RIG_CALIBRATED) {
    nam_fail("gate_db is %g, which must be a number, or level is %d, which must be 0 to %d", c->gate_db, (int)c->level,
             HK_RIG_CALIBRATED);
    return HK_INVALID;
  }
  if (c->resize && !(c->model_size >= 0 && c->model_size <= 1)) {
    nam_fail("model_size is %g; sizes go from 0 (smallest) to 1 (largest)", c->model_size);
    return HK_INVALID;
  }
  rig->controls = *c;
  rig->input.target = rig_gain(c->input_db);
  rig->output.target = rig_gain(c->output_db);
  rig->bypass.target = c->bypass ? 1 : 0;
  for (int32_t s = 0; s < 2; s++) {
    rig_aim(rig, &rig->slot[s].now);
    rig_aim(rig, &rig->slot[s].next);
  }
  if (!rig->fresh) return HK_OK;
  rig_gate_reset(&rig->gate, c->gate_db >= 0);
  rig_glide_set(&rig->input, rig->input.target);
  rig_glide_set(&rig->output, rig->output.target);
  rig_glide_set(&rig->bypass, rig->bypass.target);
  for (int32_t s = 0; s < 2; s++) {
    rig_glide_set(&rig->slot[s].now.in, rig->slot[s].now.in.target);
    rig_glide_set(&rig->slot[s].now.out, rig->slot[s].now.out.target);
  }
  return HK_OK;
}

/* x, delayed as the amp delays it; while amps of different latency are mixed, so are the delays. */
static void read_dry(const hk_rig *rig, int64_t n) {
  const rig_slot *amp = &rig->slot[HK_RIG_AMP];
  const int64_t now = rig->now - latency(&amp->now), next = rig->now - latency(&amp->next);
  for (int32_t c = 0; c < rig->channels; c++) {
    const float *from = rig->delay[c];
    float *to = rig->dry + c * BLOCK;
    for (int64_t i = 0; i < n; i++) {
      const float a = from[(now + i) & rig->delay_mask];
      if (!amp->fading || now == next) {
        to[i] = a;
        continue;
      }
      const float g = rig_fade(rig, amp, amp->at + i);
      to[i] = (1.0f - g) * a + g * from[(next + i) & rig->delay_mask];
    }
  }
}

static void mix_bypass(hk_rig *rig, int64_t n) {
  const bool moves = rig_glide_next(&rig->bypass, rig->rate, n, rig->gain);
  if (!moves && rig->bypass.now == 0) return;
  read_dry(rig, n);
  for (int32_t c = 0; c < rig->channels; c++) {
    float *wet = rig->work + c * BLOCK;
    const float *dry = rig->dry + c * BLOCK;
    if (!moves) memcpy(wet, dry, (size_t)n * sizeof *wet);
    for (int64_t i = 0; i < n && moves; i++) wet[i] = (1.0f - rig->gain[i]) * wet[i] + rig->gain[i] * dry[i];
  }
}

static void take_in(hk_rig *rig, const float *const *x, int64_t at, int64_t n) {
  for (int32_t c = 0; c < rig->channels; c++) {
    const float *from = x[c] + at;
    float *to = rig->work + c * BLOCK;
    memcpy(to, from, (size_t)n * sizeof *to);
    for (int64_t i = 0; i < n; i++) rig->delay[c][(rig->now + i) & rig->delay_mask] = from[i];
  }
}

static hk_status play_piece(hk_rig *rig, const float *const *x, int64_t at, int64_t n, float *const *y) {
  take_in(rig, x, at, n);
  if (rig_gate_next(rig, rig->work, n, rig->gain)) {
    for (int32_t c = 0; c < rig->channels; c++)
      for (int64_t i = 0; i < n; i++) rig->work[c * BLOCK + i] *= rig->gain[i];
  }
  rig_scale(rig, &rig->input, n, rig->work);
  hk_status e = rig_slot_play(rig, &rig->slot[HK_RIG_AMP], n, rig->work);
  if (!e) e = rig_slot_play(rig, &rig->slot[HK_RIG_CABINET], n, rig->work);
  rig_scale(rig, &rig->output, n, rig->work);
  mix_bypass(rig, n);
  for (int32_t c = 0; c < rig->channels; c++) memcpy(y[c] + at, rig->work + c * BLOCK, (size_t)n * sizeof(float));
  rig->now += n;
  for (int32_t s = 0; s < 2; s++) rig_slot_advance(rig, &rig->slot[s], n);
  return e;
}

HK_API hk_status hk_rig_process(hk_rig *rig, const hk_rig_controls *controls, const float *const *x, int64_t n,
                                float *const *y) {
  if (!rig || n < 0 || (n && (!x || !y))) {
    nam_fail("rig, x or y is NULL, or n is negative");
    return HK_INVALID;
  }
  for (int32_t c = 0; n && c < rig->channels; c++) {
    if (x[c] && y[c]) continue;
    nam_fail("x[%d] or y[%d] is NULL", c, c);
    return HK_INVALID;
  }
  hk_status e = take_controls(rig, controls);
  for (int64_t at = 0; at < n && !e;) {
    int64_t piece = n - at < BLOCK ? n - at : BLOCK;
    for (int32_t s = 0; s < 2; s++) {
      rig_slot_take_up(rig, &rig->slot[s]);
      piece = rig_slot_piece(rig, &rig->slot[s], piece);
    }
    rig->fresh = false;
    e = play_piece(rig, x, at, piece, y);
    at += piece;
  }
  return e;
}
