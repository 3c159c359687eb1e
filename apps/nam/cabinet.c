/* Cabinets: an impulse response becomes one convolution at the host's rate. A response of another rate is converted
 * (sinc.h) and scaled by the ratio of the rates, since it is summed over more or fewer frames; what the converter's
 * filter rings before the first frame is cut off, so that no latency arises. A mono rig plays the first channel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static const double MAX_SECONDS = 10;

static hk_status no_memory(int64_t frames) {
  nam_refuse(HK_NO_MEMORY, "no memory for an impulse response of %lld frames", (long long)frames);
  return HK_NO_MEMORY;
}

typedef struct response { /* interleaved; owned: free(samples) */
  const float *samples;
  float *owned;
  int64_t frames;
  int32_t channels;
  double rate;
} response;

static hk_status check(const response *r) {
  if (r->channels != 1 && r->channels != 2 && r->channels != 4)
    nam_fail("the impulse response has %d channels; 1, 2 or 4 are supported", r->channels);
  else if (!(r->rate >= HK_NAM_MIN_RATE && r->rate <= HK_NAM_MAX_RATE))
    nam_fail("the impulse response has a sample rate of %g; %d to %d Hz is supported", r->rate, HK_NAM_MIN_RATE,
             HK_NAM_MAX_RATE);
  else if (r->frames < 1 || (double)r->frames > MAX_SECONDS * r->rate)
    nam_fail("the impulse response has %lld frames at %g Hz; 1 frame to %g seconds are supported", (long long)r->frames,
             r->rate, MAX_SECONDS);
  else {
    int64_t i = 0;
    while (i < r->frames * r->channels && isfinite(r->samples[i])) i++;
    if (i == r->frames * r->channels) return HK_OK;
    nam_fail("frame %lld of the impulse response is not finite", (long long)(i / r->channels));
  }
  return HK_INVALID;
}

static hk_status convert(response *r, double rate) {
  if (r->rate == rate) return HK_OK;
  if (r->rate != (double)(int64_t)r->rate || rate != (double)(int64_t)rate) {
    nam_fail("the impulse response has %.17g Hz, the host %.17g Hz: only whole rates can be converted", r->rate, rate);
    return HK_INVALID;
  }
  sinc_bank b = sinc_plan((int64_t)r->rate, (int64_t)rate, SINC_WHOLE);
  const int64_t frames = sinc_frames(&b, r->frames), taps = sinc_taps(&b);
  if (frames > HK_FIR_WINDOW_MAX) {
    nam_fail("the impulse response has %lld frames at %g Hz; at most %d are supported", (long long)frames, rate,
             HK_FIR_WINDOW_MAX);
    return HK_INVALID;
  }
  if (taps > SINC_MAX_TAPS) {
    nam_fail("converting %g Hz to %g Hz needs %lld filter taps; at most %d are supported", r->rate, rate,
             (long long)taps, SINC_MAX_TAPS);
    return HK_INVALID;
  }
  b.taps = malloc((size_t)taps * sizeof *b.taps);
  r->owned = malloc((size_t)(frames * r->channels) * sizeof *r->owned);
  if (!b.taps || !r->owned) {
    free(b.taps);
    return no_memory(frames);
  }
  sinc_fill(&b);
  sinc_convert(&b, r->samples, r->frames, r->channels, r->owned);
  free(b.taps);
  const float scale = (float)(r->rate / rate);
  for (int64_t i = 0; i < frames * r->channels; i++) r->owned[i] *= scale;
  r->samples = r->owned;
  r->frames = frames;
  return HK_OK;
}

/* The filters of a step, [output][input], oldest tap first. */
static hk_status make_chain(hk_rig_part *p, const response *r, hk_isa isa) {
  static const int32_t crossed[4] = {0, 2, 1, 3}; /* left-left, right-left, left-right, right-right */
  const int32_t used = p->channels == 1 ? 1 : r->channels, width = used == 1 ? 1 : 2;
  const int64_t n = r->frames;
  float *f = malloc((size_t)(n * used) * sizeof *f);
  if (!f) return no_memory(n);
  for (int32_t c = 0; c < used; c++) {
    const float *from = r->samples + (used == 4 ? crossed[c] : c);
    for (int64_t t = 0; t < n; t++) f[c * n + n - 1 - t] = from[t * r->channels];
  }
  const hk_step s = {
      .size = sizeof s, .kind = HK_STEP_FIR, .x = 1, .k = width, .window = n, .groups = used == 2 ? 2 : 1, .f = f};
  const hk_chain_desc d = {.size = sizeof d,
                           .channels = width,
                           .max_block = BLOCK,
                           .steps = &s,
                           .count = 1,
                           .layout = HK_CHANNELS_FIRST,
                           .isa = isa};
  hk_status e = nam_status(hk_chain_create(&p->chain, &d, NULL, 0));
  free(f);
  p->frames = n;
  p->streams = p->channels / width;
  return e;
}

static hk_status make_streams(hk_rig_part *p) {
  hk_chain_facts facts = {.size = sizeof facts};
  hk_status e = nam_status(hk_chain_info(p->chain, &facts));
  for (int32_t c = 0; c < p->streams && !e; c++) e = nam_status(hk_stream_create(&p->stream[c], p->chain, NULL, 0));
  p->chain_bytes = facts.chain_bytes;
  p->stream_bytes = facts.stream_bytes;
  p->bytes += facts.chain_bytes + (size_t)p->streams * facts.stream_bytes;
  return e;
}

HK_API hk_status hk_rig_load_cabinet(hk_rig_part **part, const hk_rig *rig, const float *samples, int64_t frames,
                                     int32_t channels, double sample_rate) {
  if (!part || !rig || !samples) {
    nam_fail("part, rig or samples is NULL");
    return HK_INVALID;
  }
  response r = {samples, NULL, frames, channels, sample_rate};
  hk_status e = check(&r);
  hk_rig_part *p = NULL;
  if (!e) e = convert(&r, rig->rate);
  if (!e && !(p = rig_part_new(rig, HK_RIG_CABINET))) e = HK_NO_MEMORY;
  if (!e) e = make_chain(p, &r, rig->isa);
  if (!e) e = make_streams(p);
  free(r.owned);
  return rig_part_end(part, p, e);
}
