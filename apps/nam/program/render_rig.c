/* hankel-nam render with gains, normalisation or a cabinet: the sound goes through a rig at its own rate. What comes
 * before the rig's latency is dropped and as many frames of silence follow the sound, so the length stays. */
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "sound.h"

bool wants_rig(const arguments *a) { return a->normalize || a->input_db != 0 || a->output_db != 0 || a->cabinet; }

typedef struct load { /* what is freed in the end */
  hk_rig *rig;
  sound response;
} load;

static int make_rig(const arguments *a, int rate, int channels, load *l) {
  const hk_rig_options o = {.size = sizeof o, .sample_rate = rate, .channels = channels, .isa = a->isa};
  const hk_nam_options m = {.size = sizeof m, .rational_tanh = a->rational, .isa = a->isa};
  const sound *s = &l->response;
  hk_rig_part *amp = NULL, *cabinet = NULL;
  if (hk_rig_create(&l->rig, &o)) return program_fail("%s", hk_nam_last_error());
  if (hk_rig_load_amp(&amp, l->rig, a->path[0], &m)) return program_fail("%s: %s", a->path[0], hk_nam_last_error());
  hk_rig_set(l->rig, HK_RIG_AMP, amp);
  if (!a->cabinet) return 0;
  if (hk_rig_load_cabinet(&cabinet, l->rig, s->samples, s->frames, s->channels, s->rate))
    return program_fail("%s: %s", a->cabinet, hk_nam_last_error());
  hk_rig_set(l->rig, HK_RIG_CABINET, cabinet);
  return 0;
}

/* Block by block; frame n of the sound leaves the rig `late` frames later. */
static int run(const arguments *a, hk_rig *rig, const sound *in, sound *out) {
  enum { BLOCK = 1024 };
  float x[BLOCK], y[2][BLOCK];
  const float *from[2] = {x, x};
  float *to[2] = {y[0], y[1]};
  hk_rig_controls c = {.size = sizeof c, .input_db = a->input_db, .output_db = a->output_db, .resize = a->size >= 0};
  c.model_size = a->size;
  c.level = a->normalize ? HK_RIG_NORMALIZED : HK_RIG_RAW;
  const int64_t late = hk_rig_latency(rig), all = in->frames + late;
  for (int64_t at = 0; at < all; at += BLOCK) {
    const int64_t n = all - at < BLOCK ? all - at : BLOCK;
    for (int64_t i = 0; i < n; i++) x[i] = at + i < in->frames ? in->samples[at + i] : 0.0f;
    if (hk_rig_process(rig, &c, from, n, to)) return program_fail("%s", hk_nam_last_error());
    for (int64_t i = at < late ? late - at : 0; i < n; i++)
      for (int ch = 0; ch < out->channels; ch++) out->samples[(at + i - late) * out->channels + ch] = y[ch][i];
  }
  return 0;
}

int play_rig(const arguments *a, const sound *in, sound *out) {
  load l = {0};
  int status = a->cabinet ? sound_read(a->cabinet, &l.response) : 0;
  const int channels = l.response.channels > 1 ? 2 : 1;
  if (!status && in->frames > MAX_SAMPLES / channels)
    status = program_fail("%lld frames of %d output channels are more than %lld samples", (long long)in->frames,
                          channels, (long long)MAX_SAMPLES);
  if (status) return free(l.response.samples), 1;
  *out = (sound){malloc((size_t)(in->frames * channels + 1) * sizeof(float)), in->frames, channels, in->rate};
  if (!out->samples) status = program_fail("no memory for %lld frames", (long long)in->frames);
  if (!status) status = make_rig(a, in->rate, channels, &l);
  if (!status) status = run(a, l.rig, in, out);
  hk_rig_free(l.rig);
  free(l.response.samples);
  return status;
}
