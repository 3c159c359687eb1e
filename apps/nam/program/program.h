/* The program hankel-nam: one file per verb. */
#ifndef NAM_PROGRAM_H
#define NAM_PROGRAM_H
#include <stdbool.h>

#include "hankel_nam.h"

typedef struct arguments { /* options.c fills it */
  const char *verb, *path[3];
  int paths;
  double size; /* below 0: not given */
  long block;  /* 0: the verb's own choice */
  double seconds;
  long passes;
  bool resample, force, rational, quiet, normalize;
  double input_db, output_db;
  const char *cabinet; /* NULL: none */
  hk_isa isa;
  /* live */
  const char *name, *server;
  double gate_db, interface_dbu; /* interface_dbu: NaN when not given */
  bool stereo, no_connect;
} arguments;

struct sound;
/* Whether the options ask for more than the model alone: then render plays through a rig. */
bool wants_rig(const arguments *a);
/* in (mono) through a rig at its rate; out has its length, and two channels if the cabinet has more than one. 0, or 1
 * with a sentence on stderr. */
int play_rig(const arguments *a, const struct sound *in, struct sound *out);
int verb_render(const arguments *a);
int verb_live(const arguments *a);
int verb_bench(const arguments *a);
int verb_info(const arguments *a);
/* Loads a->path[0] at the requested size, or prints why not and returns NULL. */
hk_nam *program_load(const arguments *a, hk_nam_facts *facts);
void program_note(const char *format, ...) __attribute__((format(printf, 1, 2))); /* a line on stderr */
int program_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));  /* returns 1 */
/* Samples of one sound in memory: 1 GiB, 93 minutes of 48 kHz mono. A few bytes of a file can stand for many samples.
 */
#define MAX_SAMPLES (INT64_C(1) << 28)
/* in (frames x channels, interleaved) at rate from -> *out (malloc) at rate to; *frames: in and out. 0, or 1 with a
 * sentence on stderr. */
int resample(const float *in, int64_t *frames, int channels, int from, int to, float **out);
#endif
