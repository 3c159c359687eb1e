/* hankel-nam render: a file through a model. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "program.h"
#include "sound.h"

/* A mono model plays the mean of the channels; else the counts must agree. */
static int fit_channels(const char *path, sound *s, int want) {
  if (s->channels == want) return 0;
  if (want != 1) return program_fail("%s has %d channels, the model takes %d", path, s->channels, want);
  for (int64_t i = 0; i < s->frames; i++) {
    double sum = 0;
    for (int c = 0; c < s->channels; c++) sum += s->samples[i * s->channels + c];
    s->samples[i] = (float)(sum / s->channels);
  }
  s->channels = 1;
  return 0;
}

static int convert(sound *s, int rate) {
  float *out;
  if (resample(s->samples, &s->frames, s->channels, s->rate, rate, &out)) return 1;
  free(s->samples);
  s->samples = out;
  s->rate = rate;
  return 0;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void bar(bool show, int64_t done, int64_t all, int rate, double took, bool last) {
  static int shown = -1;
  const int percent = all ? (int)(100 * done / all) : 100;
  if (!show || (percent == shown && !last)) return;
  shown = percent;
  fprintf(stderr, "\r[%-40.*s] %3d %%  %.0f x real time%s", percent * 40 / 100,
          "########################################", percent, took > 0 ? (double)done / rate / took : 0,
          last ? "\n" : "");
}

static int play(const arguments *a, hk_nam *m, const sound *in, sound *out) {
  const int64_t block = a->block ? a->block : 4096;
  const bool show = !a->quiet && isatty(2);
  const double start = now();
  for (int64_t at = 0; at < in->frames; at += block) {
    const int64_t n = in->frames - at < block ? in->frames - at : block;
    if (hk_nam_process(m, in->samples + at * in->channels, n, out->samples + at * out->channels))
      return program_fail("%s", hk_nam_last_error());
    bar(show, at + n, in->frames, in->rate, now() - start, false);
  }
  bar(show, in->frames, in->frames, in->rate, now() - start, true);
  return 0;
}

/* Everything between reading and writing; out keeps the length and rate that the file came with. */
static int through(const arguments *a, hk_nam *m, const hk_nam_facts *f, sound *in, sound *out) {
  const int rate = in->rate, model_rate = (int)f->sample_rate;
  const int64_t frames = in->frames;
  const bool other = f->sample_rate > 0 && rate != model_rate;
  if (other && !a->resample && !a->force) {
    return program_fail("%s has %d Hz, the model %d Hz: give --resample or --force", a->path[1], rate, model_rate);
  }
  if (f->sample_rate <= 0 && !a->quiet && wants_rig(a))
    program_note("%s gives no sample rate; it plays at 48000 Hz", a->path[0]);
  else if (f->sample_rate <= 0 && !a->quiet)
    program_note("%s gives no sample rate; it plays at the %d Hz of %s", a->path[0], rate, a->path[1]);
  if (fit_channels(a->path[1], in, f->in_channels)) return 1;
  if (wants_rig(a)) return play_rig(a, in, out);
  if (other && a->resample && convert(in, model_rate)) return 1;
  if (in->frames > MAX_SAMPLES / f->out_channels) {
    return program_fail("%lld frames of %d output channels are more than %lld samples", (long long)in->frames,
                        f->out_channels, (long long)MAX_SAMPLES);
  }
  *out = (sound){malloc((size_t)(in->frames * f->out_channels + 1) * sizeof(float)), in->frames, f->out_channels,
                 in->rate};
  if (!out->samples) return program_fail("no memory for %lld frames", (long long)in->frames);
  if (play(a, m, in, out)) return 1;
  if (other && a->resample && convert(out, rate)) return 1;
  if (out->frames < frames) return program_fail("the converted sound is too short");
  out->frames = frames;
  return 0;
}

int verb_render(const arguments *a) {
  hk_nam_facts f;
  sound in = {0}, out = {0};
  const int format = sound_format(a->path[2]);
  if (!format) return 1;
  hk_nam *m = program_load(a, &f);
  if (!m) return 1;
  int status = sound_read(a->path[1], &in);
  if (!status) status = sound_fits(a->path[2], format, f.out_channels, in.rate);
  if (!status) status = through(a, m, &f, &in, &out);
  if (!status) status = sound_write(a->path[2], format, &out);
  free(in.samples);
  free(out.samples);
  hk_nam_free(m);
  return status;
}
