/* Parts of a rig, made away from the audio thread: everything that a part needs to play is allocated, touched and
 * prewarmed here. Of the rig only what never changes is read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static const double MAX_SECONDS = 10, DEFAULT_RATE = 48000;

static hk_status refuse_null(void) {
  nam_fail("part, rig or the source of the part is NULL");
  return HK_INVALID;
}

static hk_rig_part *new_part(const hk_rig *rig, hk_rig_slot slot) {
  hk_rig_part *p = calloc(1, sizeof *p);
  if (!p) {
    nam_refuse(HK_NO_MEMORY, "no memory for a part of a rig");
    return NULL;
  }
  p->slot = slot;
  p->rate = rig->rate;
  p->channels = rig->channels;
  p->bytes = sizeof *p;
  return p;
}

HK_API void hk_rig_part_free(hk_rig_part *p) {
  if (!p) return;
  for (int32_t c = 0; c < RIG_CHANNELS; c++) {
    hk_nam_free(p->player[c]);
    hk_stream_destroy(p->stream[c]);
  }
  hk_chain_destroy(p->chain);
  free(p->conversion);
  free(p);
}

static hk_status end_of_load(hk_rig_part **part, hk_rig_part *p, hk_status e) {
  if (e) hk_rig_part_free(p);
  else *part = p;
  return e;
}

static hk_status load_players(hk_rig_part *p, const char *path, const hk_nam_options *options) {
  hk_status e = hk_nam_load_file(&p->player[0], path, options);
  if (e) return e;
  p->facts.size = sizeof p->facts;
  if ((e = hk_nam_info(p->player[0], &p->facts))) return e;
  if (p->facts.in_channels != 1 || p->facts.out_channels != 1) {
    nam_fail("%s has %d inputs and %d outputs; a rig plays models of one", path, p->facts.in_channels,
             p->facts.out_channels);
    return HK_INVALID;
  }
  p->bytes += p->player[0]->bytes;
  for (int32_t c = 1; c < p->channels && !e; c++) {
    if (!(e = hk_nam_clone(&p->player[c], p->player[0]))) p->bytes += p->player[c]->bytes;
  }
  return e;
}

/* The filters and histories of the amp's rate conversion, if it needs one. A file without a rate has 48 kHz. */
static hk_status make_bridge(hk_rig_part *p) {
  const double rate = p->facts.sample_rate > 0 ? p->facts.sample_rate : DEFAULT_RATE;
  if (!rig_bridge_plan(&p->bridge, p->rate, rate)) return HK_INVALID;
  if (p->rate == rate) return HK_OK;
  const int64_t taps = rig_bridge_taps(&p->bridge), each = rig_crossing_floats(&p->bridge);
  const size_t bytes = (size_t)(taps + RIG_LANES * p->channels * each) * sizeof(float);
  if (!(p->conversion = malloc(bytes))) {
    nam_refuse(HK_NO_MEMORY, "no memory for rate conversion (%zu bytes)", bytes);
    return HK_NO_MEMORY;
  }
  memset(p->conversion, 0, bytes);
  float *at = p->conversion + taps;
  rig_bridge_fill(&p->bridge, p->conversion);
  for (int32_t lane = 0; lane < RIG_LANES; lane++) {
    for (int32_t c = 0; c < p->channels; c++, at += each) {
      rig_crossing_place(&p->bridge, &p->crossing[lane][c], at);
      rig_crossing_reset(&p->bridge, &p->crossing[lane][c]);
    }
  }
  p->latency = p->bridge.latency;
  p->bytes += bytes;
  return HK_OK;
}

HK_API hk_status hk_rig_load_amp(hk_rig_part **part, const hk_rig *rig, const char *path,
                                 const hk_nam_options *options) {
  if (!part || !rig || !path) return refuse_null();
  hk_rig_part *p = new_part(rig, HK_RIG_AMP);
  if (!p) return HK_NO_MEMORY;
  hk_status e = load_players(p, path, options);
  if (!e) e = make_bridge(p);
  return end_of_load(part, p, e);
}

/* Filters as a step takes them: oldest tap first. */
static hk_status make_chain(hk_rig_part *p, const hk_rig *rig, const float *samples, int32_t channels, int32_t used) {
  const int64_t n = p->frames;
  float *f = malloc((size_t)n * (size_t)used * sizeof *f);
  if (!f) {
    nam_refuse(HK_NO_MEMORY, "no memory for an impulse response of %lld frames", (long long)n);
    return HK_NO_MEMORY;
  }
  /* left-left, left-right, right-left, right-right of the response are [output][input] of the step */
  static const int32_t order[4] = {0, 2, 1, 3};
  for (int32_t c = 0; c < used; c++) {
    const int32_t from = used == 4 ? order[c] : c;
    for (int64_t t = 0; t < n; t++) f[c * n + n - 1 - t] = samples[t * channels + from];
  }
  const int32_t width = used == 1 ? 1 : 2;
  const hk_step s = {
      .size = sizeof s, .kind = HK_STEP_CONV, .x = 1, .k = width, .window = n, .groups = used == 2 ? 2 : 1, .f = f};
  const hk_chain_desc d = {.size = sizeof d,
                           .channels = width,
                           .max_block = BLOCK,
                           .steps = &s,
                           .count = 1,
                           .layout = HK_CHANNELS_FIRST,
                           .isa = rig->isa};
  hk_status e = nam_status(hk_chain_create(&p->chain, &d, NULL, 0));
  free(f);
  p->streams = width == p->channels ? 1 : p->channels;
  for (int32_t c = 0; c < p->streams && !e; c++) e = nam_status(hk_stream_create(&p->stream[c], p->chain, NULL, 0));
  hk_chain_facts facts = {.size = sizeof facts};
  if (!e) e = nam_status(hk_chain_info(p->chain, &facts));
  p->bytes += facts.chain_bytes + (size_t)p->streams * facts.stream_bytes;
  return e;
}

HK_API hk_status hk_rig_load_cabinet(hk_rig_part **part, const hk_rig *rig, const float *samples, int64_t frames,
                                     int32_t channels, double sample_rate) {
  if (!part || !rig || !samples) return refuse_null();
  if (channels != 1 && channels != 2 && channels != 4) {
    nam_fail("the impulse response has %d channels; 1, 2 or 4 are supported", channels);
    return HK_INVALID;
  }
  if (!(sample_rate >= HK_NAM_MIN_RATE && sample_rate <= HK_NAM_MAX_RATE)) {
    nam_fail("the impulse response has a sample rate of %g; %d to %d Hz is supported", sample_rate, HK_NAM_MIN_RATE,
             HK_NAM_MAX_RATE);
    return HK_INVALID;
  }
  if (frames < 1 || (double)frames > MAX_SECONDS * sample_rate) {
    nam_fail("the impulse response has %lld frames; 1 to %g seconds of them are supported", (long long)frames,
             MAX_SECONDS);
    return HK_INVALID;
  }
  for (int64_t i = 0; i < frames * channels; i++) {
    if (isfinite(samples[i])) continue;
    nam_fail("frame %lld of the impulse response is not finite", (long long)(i / channels));
    return HK_INVALID;
  }
  hk_rig_part *p = new_part(rig, HK_RIG_CABINET);
  if (!p) return HK_NO_MEMORY;
  p->frames = frames;
  return end_of_load(part, p, make_chain(p, rig, samples, channels, rig->channels == 1 ? 1 : channels));
}

HK_API hk_status hk_rig_part_info(const hk_rig_part *p, hk_rig_part_facts *facts) {
  if (!p || !facts || facts->size != sizeof *facts) {
    nam_fail("part or facts is NULL, or facts.size is not sizeof(hk_rig_part_facts)");
    return HK_INVALID;
  }
  *facts = (hk_rig_part_facts){.size = sizeof *facts,
                               .slot = p->slot,
                               .amp = p->facts,
                               .frames = p->frames,
                               .latency = p->latency,
                               .bytes = p->bytes};
  return HK_OK;
}
