/* hankel-nam render: a file through a model. */
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

typedef struct sound {
  float *samples; /* interleaved */
  int64_t frames;
  int channels, rate;
} sound;

/* What the header says of the length is not believed: frames are counted as they come. */
static int read_frames(const char *path, SNDFILE *file, sound *s) {
  const int64_t most = MAX_SAMPLES / s->channels;
  int64_t room = s->frames > 0 && s->frames < 1 << 16 ? s->frames + 1 : 1 << 16;
  for (s->frames = 0;;) {
    if (room > most + 1) room = most + 1;
    float *more = realloc(s->samples, (size_t)(room * s->channels) * sizeof *more);
    if (!more) return program_fail("%s: no memory for %lld frames", path, (long long)room);
    s->samples = more;
    const int64_t got = sf_readf_float(file, s->samples + s->frames * s->channels, room - s->frames);
    if (got > 0) s->frames += got;
    if (got <= 0) return 0;
    if (s->frames > most) {
      return program_fail("%s has more than %lld samples (frames x channels); at most that are supported", path,
                          (long long)MAX_SAMPLES);
    }
    if (s->frames == room) room *= 2;
  }
}

static int read_sound(const char *path, sound *s) {
  SF_INFO info = {0};
  SNDFILE *file = sf_open(path, SFM_READ, &info);
  if (!file) return program_fail("%s: %s", path, sf_strerror(NULL));
  *s = (sound){NULL, info.frames, info.channels, info.samplerate};
  int status = 0;
  if (s->channels < 1) {
    status = program_fail("%s has %d channels", path, s->channels);
  } else if (s->rate < HK_NAM_MIN_RATE || s->rate > HK_NAM_MAX_RATE) {
    status = program_fail("%s has a sample rate of %d Hz; %d to %d Hz is supported", path, s->rate, HK_NAM_MIN_RATE,
                          HK_NAM_MAX_RATE);
  } else {
    status = read_frames(path, file, s);
  }
  sf_close(file);
  return status;
}

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

/* libsndfile's format of a path by its extension; 0, with a sentence on stderr, for any other. */
static int format_named(const char *path) {
  static const struct {
    const char *extension;
    int format;
  } formats[] = {{".wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT},   {".w64", SF_FORMAT_W64 | SF_FORMAT_FLOAT},
                 {".rf64", SF_FORMAT_RF64 | SF_FORMAT_FLOAT}, {".caf", SF_FORMAT_CAF | SF_FORMAT_FLOAT},
                 {".aiff", SF_FORMAT_AIFF | SF_FORMAT_FLOAT}, {".aif", SF_FORMAT_AIFF | SF_FORMAT_FLOAT},
                 {".au", SF_FORMAT_AU | SF_FORMAT_FLOAT},     {".flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_24}};
  if (!strcmp(path, "-")) {
    program_fail("-: standard output is not supported, since headers are completed at the end; give a file");
    return 0;
  }
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
  for (size_t i = 0; dot && i < sizeof formats / sizeof *formats; i++)
    if (!strcasecmp(dot, formats[i].extension)) return formats[i].format;
  program_fail("%s: the extension must be .wav, .w64, .rf64, .caf, .aiff, .aif, .au or .flac, it is '%s'", path,
               dot ? dot : "");
  return 0;
}

/* Whether the format takes these channels and this rate; asked before anything is played. */
static int fit_format(const char *path, int format, int channels, int rate) {
  const SF_INFO info = {.samplerate = rate, .channels = channels, .format = format};
  const bool flac = (format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC;
  if (sf_format_check(&info) && !(flac && rate > 655350)) return 0;
  return program_fail("%s: the format does not support %d channels at %d Hz; use .wav", path, channels, rate);
}

static int write_sound(const char *path, int format, const sound *s) {
  SF_INFO info = {.samplerate = s->rate, .channels = s->channels, .format = format};
  SNDFILE *file = sf_open(path, SFM_WRITE, &info);
  if (!file) return program_fail("%s: %s", path, sf_strerror(NULL));
  int64_t beyond = 0;
  if ((format & SF_FORMAT_SUBMASK) != SF_FORMAT_FLOAT) {
    sf_command(file, SFC_SET_CLIPPING, NULL, SF_TRUE);
    for (int64_t i = 0; i < s->frames * s->channels; i++) beyond += !(s->samples[i] >= -1 && s->samples[i] <= 1);
  }
  const bool good = sf_writef_float(file, s->samples, s->frames) == s->frames;
  if (sf_close(file) || !good) return program_fail("%s: not all could be written", path);
  if (beyond) program_note("%s: %lld samples beyond -1 to 1 were clipped; .wav keeps them", path, (long long)beyond);
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
  if (f->sample_rate <= 0 && !a->quiet)
    program_note("%s gives no sample rate; it plays at the %d Hz of %s", a->path[0], rate, a->path[1]);
  if (fit_channels(a->path[1], in, f->in_channels)) return 1;
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
  const int format = format_named(a->path[2]);
  if (!format) return 1;
  hk_nam *m = program_load(a, &f);
  if (!m) return 1;
  int status = read_sound(a->path[1], &in);
  if (!status) status = fit_format(a->path[2], format, f.out_channels, in.rate);
  if (!status) status = through(a, m, &f, &in, &out);
  if (!status) status = write_sound(a->path[2], format, &out);
  free(in.samples);
  free(out.samples);
  hk_nam_free(m);
  return status;
}
