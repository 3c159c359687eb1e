/* hankel-nam: renders, plays live, measures and describes Neural Amp Modeler files. Exit 0, 1 (failed, with a sentence
 * on stderr) or 2 (called wrongly). */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

static void say(const char *format, va_list args) {
  fputs("hankel-nam: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
}

int program_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(format, args);
  va_end(args);
  return 1;
}

void program_note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(format, args);
  va_end(args);
}

hk_nam *program_load(const arguments *a, hk_nam_facts *facts) {
  const hk_nam_options o = {.size = sizeof o, .rational_tanh = a->rational, .isa = a->isa};
  hk_nam *m = NULL;
  hk_status e = hk_nam_load_file(&m, a->path[0], &o);
  if (!e && a->size >= 0) e = hk_nam_set_size(m, a->size);
  facts->size = sizeof *facts;
  if (!e) e = hk_nam_info(m, facts);
  if (!e) return m;
  program_fail("%s: %s", a->path[0], hk_nam_last_error());
  hk_nam_free(m);
  return NULL;
}

static const struct {
  const char *name;
  int paths;
  const char *needs, *usage, *summary;
  int (*main)(const arguments *);
} verbs[] = {
    {"render", 3, "MODEL.nam, IN.wav and OUT.wav", "MODEL.nam IN.wav OUT.wav",
     "Plays a sound file through a model: at the length and rate of IN, after prewarming. IN may have any format that\n"
     "libsndfile reads; the name of OUT says its format: .wav, .w64, .rf64, .caf, .aiff, .aif, .au (32-bit float) or\n"
     ".flac (24 bits, clipped at 1).",
     verb_render},
    {"live", 1, "MODEL.nam", "MODEL.nam",
     "Plays a guitar through a model, as a client of JACK or PipeWire, until a signal or the line quit. Lines of "
     "standard\n"
     "input change what plays: a path (.nam: the amp, else a cabinet), no amp, no cabinet, on, off, status, or an "
     "option\n"
     "that has a number, like --input-db 6.",
     verb_live},
    {"bench", 1, "MODEL.nam", "MODEL.nam", "Times a model by block size; every block counts with its fastest pass.",
     verb_bench},
    {"info", 1, "MODEL.nam", "MODEL.nam", "Prints what a model's file holds: layers, receptive field, work, metadata.",
     verb_info}};
enum { VERBS = sizeof verbs / sizeof *verbs };

static int help(void) {
  puts("usage: hankel-nam VERB ... [options]\n\nPlays Neural Amp Modeler files.\n");
  for (int i = 0; i < VERBS; i++) printf("  %-7s %s\n", verbs[i].name, verbs[i].usage);
  puts("\nhankel-nam VERB --help describes a verb and its options; hankel-nam --version prints the version.");
  return 0;
}

static int help_of(int verb) {
  printf("usage: hankel-nam %s %s [options]\n\n%s\n\n", verbs[verb].name, verbs[verb].usage, verbs[verb].summary);
  option_help(verbs[verb].name);
  return 0;
}

/* After the sentence: how it is called. Below 0: no verb is known. */
static int usage(int verb) {
  if (verb < 0) fputs("usage: hankel-nam VERB ...; hankel-nam --help lists the verbs\n", stderr);
  else
    fprintf(stderr, "usage: hankel-nam %s %s [options]; hankel-nam %s --help lists the options\n", verbs[verb].name,
            verbs[verb].usage, verbs[verb].name);
  return 2;
}

static int verb_named(const char *name) {
  int verb = 0;
  while (verb < VERBS && strcmp(name, verbs[verb].name)) verb++;
  return verb < VERBS ? verb : -1;
}

/* The words after the verb; 0, 2 (refused) or -1 (help was printed). */
static int take_words(arguments *a, int verb, char **word) {
  for (; *word; word++) {
    bool used = false;
    if (!strcmp(*word, "--help")) return help_of(verb), -1;
    if (!strncmp(*word, "--", 2)) {
      if (option_take(a, *word, word[1], &used)) return usage(verb);
      word += used;
    } else if (a->paths == verbs[verb].paths) {
      program_note("%s takes %s; '%s' is one word too many", a->verb, verbs[verb].needs, *word);
      return usage(verb);
    } else {
      a->path[a->paths++] = *word;
    }
  }
  if (a->paths < verbs[verb].paths) program_note("%s needs %s", a->verb, verbs[verb].needs);
  else if (a->force && wants_rig(a))
    program_note("--force excludes --normalize, --input-db, --output-db and --cabinet: a rig keeps the model's rate");
  else if (a->resample && a->force) program_note("--resample and --force exclude each other");
  else return 0;
  return usage(verb);
}

int main(int argc, char **argv) {
  arguments a = {.size = -1, .seconds = 2, .passes = 5, .interface_dbu = NAN};
  const char *first = argc > 1 ? argv[1] : NULL;
  if (first && !strcmp(first, "--version")) return printf("hankel-nam %s\n", hk_version()), 0;
  if (first && (!strcmp(first, "--help") || !strcmp(first, "help"))) {
    const int about = argc > 2 ? verb_named(argv[2]) : -1;
    return about < 0 ? help() : help_of(about);
  }
  const int verb = first ? verb_named(first) : -1;
  if (verb < 0) {
    if (!first) program_note("a verb is needed: render, live, bench or info");
    else program_note("there is no verb '%s'; render, live, bench and info are", first);
    return usage(-1);
  }
  a.verb = verbs[verb].name;
  const int code = take_words(&a, verb, argv + 2);
  return code ? (code < 0 ? 0 : code) : verbs[verb].main(&a);
}
