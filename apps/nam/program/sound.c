/* Reads sound files of any format that libsndfile knows. */
#include <sndfile.h>
#include <stdlib.h>

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
