/* Parts of a rig, made away from the audio thread: everything that a part needs to play is allocated, touched and
 * prewarmed when it is loaded. Of the rig only what never changes is read. Here: every part, and amps. */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static const double DEFAULT_RATE = 48000;

hk_rig_part *rig_part_new(const hk_rig *rig, hk_rig_slot slot) {
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

hk_status rig_part_end(hk_rig_part **part, hk_rig_part *p, hk_status e) {
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
      rig_crossing_reset(&p->bridge, &p->crossing[lane][c], 0);
    }
  }
  p->latency = p->bridge.latency;
  p->bytes += bytes;
  return HK_OK;
}

HK_API hk_status hk_rig_load_amp(hk_rig_part **part, const hk_rig *rig, const char *path,
                                 const hk_nam_options *options) {
  if (!part || !rig || !path) {
    nam_fail("part, rig or path is NULL");
    return HK_INVALID;
  }
  hk_rig_part *p = rig_part_new(rig, HK_RIG_AMP);
  if (!p) return HK_NO_MEMORY;
  hk_status e = load_players(p, path, options);
  if (!e) e = make_bridge(p);
  return rig_part_end(part, p, e);
}

HK_API hk_status hk_rig_part_info(const hk_rig_part *p, hk_rig_part_facts *facts) {
  if (!p) {
    nam_fail("part is NULL");
    return HK_INVALID;
  }
  const hk_rig_part_facts f = {.size = sizeof f,
                               .slot = p->slot,
                               .frames = p->frames,
                               .latency = p->latency,
                               .bytes = p->bytes,
                               .amp = p->facts};
  return nam_struct_out(facts, &f, sizeof f, "facts");
}
