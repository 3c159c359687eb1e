/* See options.h. A row has the first letters of its verbs. A word that is no option, an option of another verb, a
 * missing value or one of the wrong kind is refused by name. */
#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum option_kind { FLAG, REAL, INTEGER, TEXT, ISA } option_kind;
typedef struct option {
  const char *name, *argument, *verbs;
  option_kind kind;
  double low, high;
  size_t at; /* in arguments */
  const char *help;
} option;

#define AT(field) offsetof(arguments, field)
static const option options[] = {
    {"resample", NULL, "r", FLAG, 0, 0, AT(resample),
     "play a file of another rate than the model's through converters"},
    {"force", NULL, "r", FLAG, 0, 0, AT(force), "play a file of another rate as if it had the model's"},
    {"cabinet", "FILE", "rl", TEXT, 0, 0, AT(cabinet), "impulse response after the amp, a sound file"},
    {"input-db", "DB", "rl", REAL, -200, 200, AT(input_db), "gain before gate and amp"},
    {"output-db", "DB", "rl", REAL, -200, 200, AT(output_db), "gain after the cabinet"},
    {"gate-db", "DB", "l", REAL, -200, 0, AT(gate_db),
     "threshold of the noise gate, of full scale (default 0: no gate)"},
    {"normalize", NULL, "rl", FLAG, 0, 0, AT(normalize), "play at -18 dB by the loudness in the model's file"},
    {"interface-dbu", "DBU", "l", REAL, -100, 100, AT(interface_dbu),
     "full scale of the audio interface: play by the calibration in the model's file"},
    {"size", "V", "rlbi", REAL, 0, 1, AT(size),
     "0 (smallest) to 1 (largest) of a model with several sizes (default 1)"},
    {"stereo", NULL, "l", FLAG, 0, 0, AT(stereo), "two channels in and out"},
    {"name", "TEXT", "l", TEXT, 0, 0, AT(name), "name of the JACK client (default hankel-nam)"},
    {"server", "TEXT", "l", TEXT, 0, 0, AT(server), "name of the JACK server"},
    {"no-connect", NULL, "l", FLAG, 0, 0, AT(no_connect), "leave the ports to be connected by hand"},
    {"block", "N", "rb", INTEGER, 1, 1e6, AT(block), "frames per block (render: 4096; bench: 16 to 1024 in turn)"},
    {"seconds", "S", "b", REAL, 0.01, 3600, AT(seconds), "length of the signal (default 2)"},
    {"passes", "N", "b", INTEGER, 1, 1000, AT(passes), "how often it is played; the fastest counts (default 5)"},
    {"rational-tanh", NULL, "rlbi", FLAG, 0, 0, AT(rational), "the short rational tanh in place of the accurate one"},
    {"quiet", NULL, "rl", FLAG, 0, 0, AT(quiet), "no progress and no remarks"},
    {"isa", "NAME", "rlbi", ISA, 0, 0, AT(isa), "at most scalar, neon, avx2 or avx512"}};
enum { OPTIONS = sizeof options / sizeof *options };

static int wrong(const char *sentence, const char *name) {
  program_note(sentence, name);
  return 2;
}

static int number(const option *o, const char *text, arguments *a) {
  char *end, *to = (char *)a + o->at;
  const double value = strtod(text, &end);
  const bool good = end != text && !*end && value >= o->low && value <= o->high;
  if (!good || (o->kind == INTEGER && value != (double)(long)value)) {
    program_note("--%s: '%s' is not a %snumber from %g to %g", o->name, text, o->kind == REAL ? "" : "whole ", o->low,
                 o->high);
    return 2;
  }
  if (o->kind == REAL) *(double *)to = value;
  else *(long *)to = (long)value;
  return 0;
}

static int isa_named(const char *text, hk_isa *isa) {
  for (int i = HK_ISA_SCALAR; i <= HK_ISA_AVX512; i++) {
    if (strcmp(text, hk_isa_name((hk_isa)i))) continue;
    *isa = (hk_isa)i;
    return 0;
  }
  return wrong("--isa: '%s' is not one of scalar, neon, avx2 and avx512", text);
}

static const option *find(const char *word, size_t length) {
  for (int i = 0; i < OPTIONS; i++)
    if (strlen(options[i].name) == length && !strncmp(options[i].name, word, length)) return &options[i];
  return NULL;
}

int option_take(arguments *a, const char *word, const char *next, bool *used) {
  const size_t length = strcspn(word + 2, "=");
  const option *o = find(word + 2, length);
  const char *value = word[2 + length] ? word + 3 + length : next;
  *used = false;
  if (!o) return wrong("there is no option %s", word);
  if (!strchr(o->verbs, *a->verb)) {
    program_note("--%s is no option of %s", o->name, a->verb);
    return 2;
  }
  if (o->kind == FLAG) {
    if (word[2 + length]) return wrong("--%s takes no value", o->name);
    *(bool *)((char *)a + o->at) = true;
    return 0;
  }
  if (!value) return wrong("--%s needs a value", o->name);
  *used = value == next;
  if (o->kind == ISA) return isa_named(value, &a->isa);
  if (o->kind != TEXT) return number(o, value, a);
  *(const char **)((char *)a + o->at) = value;
  return 0;
}

void option_help(const char *verb) {
  for (int i = 0; i < OPTIONS; i++) {
    const option *o = &options[i];
    char left[64];
    if (!strchr(o->verbs, *verb)) continue;
    snprintf(left, sizeof left, "--%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
    printf("  %-22s %s\n", left, o->help);
  }
  printf("  %-22s %s\n", "--help", "this text");
}
