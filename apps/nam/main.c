/* hankel-nam: renders, measures and describes Neural Amp Modeler files. Exit 0, 1 (failed, with a sentence on stderr)
 * or 2 (called wrongly). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static const char usage[] =
    "usage: hankel-nam render MODEL.nam IN.wav OUT.wav [--size V] [--resample | --force] [--rational-tanh] [--block N] "
    "[--quiet] [--isa NAME]\n"
    "                         [--normalize] [--input-db X] [--output-db X] [--cabinet IR.wav]\n"
    "       hankel-nam bench  MODEL.nam [--size V] [--block N] [--seconds S] [--passes P] [--rational-tanh] [--isa "
    "NAME]\n"
    "       hankel-nam info   MODEL.nam [--size V] [--rational-tanh] [--isa NAME]\n"
    "  render writes at the length and rate of IN, after prewarming. IN may have any format libsndfile reads; the name "
    "of\n"
    "  OUT says its format: .wav, .w64, .rf64, .caf, .aiff, .aif, .au (32-bit float) or .flac (24 bits, clipped at "
    "1).\n"
    "  --size V     0 (smallest) to 1 (largest) of a model with several sizes\n"
    "  --resample   play a file of another rate through converters; --force: play it as if it had the model's rate\n"
    "  --normalize  -18 dB by the loudness of the file; --input-db, --output-db: gains before and behind the model\n"
    "  --cabinet IR convolve the output with an impulse response: 1 channel, or 2 or 4 for a stereo output\n"
    "  --isa NAME   at most scalar, neon, avx2 or avx512\n";

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

/* The options, the letters of the verbs that take them, and the values they take: low to high, or none (a flag). */
enum { FLAG, REAL, INTEGER, ISA, TEXT };
typedef struct option {
  const char *name, *verbs;
  int kind;
  double low, high;
} option;
static const option options[] = {{"--resample", "r", FLAG, 0, 0},
                                 {"--force", "r", FLAG, 0, 0},
                                 {"--quiet", "r", FLAG, 0, 0},
                                 {"--rational-tanh", "rbi", FLAG, 0, 0},
                                 {"--size", "rbi", REAL, 0, 1},
                                 {"--block", "rb", INTEGER, 1, 1e6},
                                 {"--normalize", "r", FLAG, 0, 0},
                                 {"--input-db", "r", REAL, -200, 200},
                                 {"--output-db", "r", REAL, -200, 200},
                                 {"--cabinet", "r", TEXT, 0, 0},
                                 {"--seconds", "b", REAL, 0.01, 3600},
                                 {"--passes", "b", INTEGER, 1, 1000},
                                 {"--isa", "rbi", ISA, 0, 0}};
enum { OPTIONS = sizeof options / sizeof *options };

static const struct {
  const char *name;
  int paths;
  const char *needs;
  int (*main)(const arguments *);
} verbs[] = {{"render", 3, "MODEL.nam, IN.wav and OUT.wav", verb_render},
             {"bench", 1, "MODEL.nam", verb_bench},
             {"info", 1, "MODEL.nam", verb_info}};
enum { VERBS = sizeof verbs / sizeof *verbs };

/* Prints the sentence and the usage; returns 2. */
__attribute__((format(printf, 1, 2))) static int called_wrongly(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(format, args);
  va_end(args);
  fputs(usage, stderr);
  return 2;
}

static int number(const option *o, const char *text, double *value) {
  char *end;
  *value = strtod(text, &end);
  const bool good = end != text && !*end && *value >= o->low && *value <= o->high;
  if (good && (o->kind == REAL || *value == (double)(long)*value)) return 0;
  return called_wrongly("%s: '%s' is not a %snumber from %g to %g", o->name, text, o->kind == REAL ? "" : "whole ",
                        o->low, o->high);
}

static int isa_named(const char *text, hk_isa *isa) {
  for (int i = HK_ISA_SCALAR; i <= HK_ISA_AVX512; i++) {
    if (strcmp(text, hk_isa_name((hk_isa)i))) continue;
    *isa = (hk_isa)i;
    return 0;
  }
  return called_wrongly("--isa: '%s' is not one of scalar, neon, avx2 and avx512", text);
}

static void set(arguments *a, const char *name, double v) {
  if (!strcmp(name, "--resample")) a->resample = true;
  else if (!strcmp(name, "--force")) a->force = true;
  else if (!strcmp(name, "--rational-tanh")) a->rational = true;
  else if (!strcmp(name, "--quiet")) a->quiet = true;
  else if (!strcmp(name, "--normalize")) a->normalize = true;
  else if (!strcmp(name, "--input-db")) a->input_db = v;
  else if (!strcmp(name, "--output-db")) a->output_db = v;
  else if (!strcmp(name, "--size")) a->size = v;
  else if (!strcmp(name, "--block")) a->block = (long)v;
  else if (!strcmp(name, "--seconds")) a->seconds = v;
  else if (!strcmp(name, "--passes")) a->passes = (int)v;
}

/* The option at argv[*i]; its value, if any, is skipped. */
static int take(arguments *a, char **argv, int *i) {
  const char *name = argv[*i];
  const option *o = NULL;
  for (int k = 0; k < OPTIONS; k++)
    if (!strcmp(name, options[k].name)) o = &options[k];
  if (!o) return called_wrongly("there is no option %s", name);
  if (!strchr(o->verbs, *a->verb)) return called_wrongly("%s is no option of %s", name, a->verb);
  double v = 0;
  int code = 0;
  if (o->kind != FLAG) {
    const char *value = argv[++*i];
    if (!value) return called_wrongly("%s needs a value", name);
    if (o->kind == TEXT) a->cabinet = value;
    else code = o->kind == ISA ? isa_named(value, &a->isa) : number(o, value, &v);
  }
  if (!code) set(a, name, v);
  return code;
}

int main(int argc, char **argv) {
  arguments a = {.size = -1, .seconds = 2, .passes = 5};
  if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))) return fputs(usage, stdout), 0;
  if (argc > 1 && !strcmp(argv[1], "--version")) return printf("hankel-nam %s\n", hk_version()), 0;
  int verb = 0;
  while (argc > 1 && verb < VERBS && strcmp(argv[1], verbs[verb].name)) verb++;
  if (argc < 2) return called_wrongly("a verb is needed: render, bench or info");
  if (verb == VERBS) return called_wrongly("there is no verb '%s'; render, bench and info are", argv[1]);
  a.verb = argv[1];
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[i], "--help")) return fputs(usage, stdout), 0;
    if (!strncmp(argv[i], "--", 2)) {
      if (take(&a, argv, &i)) return 2;
    } else if (a.paths == verbs[verb].paths) {
      return called_wrongly("%s takes %s; '%s' is one word too many", a.verb, verbs[verb].needs, argv[i]);
    } else {
      a.path[a.paths++] = argv[i];
    }
  }
  if (a.paths < verbs[verb].paths) return called_wrongly("%s needs %s", a.verb, verbs[verb].needs);
  if (a.force && wants_rig(&a))
    return called_wrongly(
        "--force excludes --normalize, --input-db, --output-db and --cabinet: a rig keeps the model's rate");
  if (a.resample && a.force) return called_wrongly("--resample and --force exclude each other");
  return verbs[verb].main(&a);
}
