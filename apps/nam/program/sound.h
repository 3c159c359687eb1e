/* Sounds in memory and in files. The functions return 0, or 1 with a sentence on stderr, unless they say otherwise. */
#ifndef NAM_SOUND_H
#define NAM_SOUND_H
#include <stdint.h>

typedef struct sound {
  float *samples; /* interleaved */
  int64_t frames;
  int channels, rate;
} sound;

int sound_read(const char *path, sound *s);
/* libsndfile's format of a path by its extension; 0, with a sentence on stderr, for any other. */
int sound_format(const char *path);
/* Whether the format takes these channels and this rate; asked before anything is played. */
int sound_fits(const char *path, int format, int channels, int rate);
int sound_write(const char *path, int format, const sound *s);
#endif
