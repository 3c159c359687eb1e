/* Sound files by libsndfile: reading any format, writing the format that the extension names. */
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "program.h"
#include "sound.h"

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

int sound_read(const char *path, sound *s) {
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

int sound_format(const char *path) {
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

int sound_fits(const char *path, int format, int channels, int rate) {
  const SF_INFO info = {.samplerate = rate, .channels = channels, .format = format};
  const bool flac = (format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC;
  if (sf_format_check(&info) && !(flac && rate > 655350)) return 0;
  return program_fail("%s: the format does not support %d channels at %d Hz; use .wav", path, channels, rate);
}

int sound_write(const char *path, int format, const sound *s) {
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
