/* Writes sound files by libsndfile, in the format that the extension names. */
#include <sndfile.h>
#include <string.h>
#include <strings.h>

#include "program.h"
#include "sound.h"

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
