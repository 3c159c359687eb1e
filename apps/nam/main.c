/* hankel-nam: renders, measures and describes Neural Amp Modeler files. Exit 0, 1 (failed, with a sentence on stderr)
 * or 2 (called wrongly). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static const char usage[] =
    "usage: hankel-nam render MODEL.nam IN.wav OUT.wav [--size V] [--resample | --force] [--rational-tanh] [--block N] "
    "[--quiet]\n"
    "       hankel-nam bench  MODEL.nam [--size V] [--block N] [--seconds S] [--passes P] [--rational-tanh]\n"
    "       hankel-nam info   MODEL.nam [--size V]\n"
    "  render writes 32-bit float at the length and rate of IN, after prewarming. IN may have any format libsndfile "
    "reads.\n"
    "  --size V     0 (smallest) to 1 (largest) of a model with several sizes\n"
    "  --resample   play a file of another rate through converters; --force: play it as if it had the model's rate\n"
    "  --isa NAME   at most scalar, neon, avx2 or avx512\n";

int program_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("hankel-nam: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  return 1;
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

static bool number(const char *text, double low, double high, double *value) {
  char *end;
  if (!text) return false;
  *value = strtod(text, &end);
  return end != text && !*end && *value >= low && *value <= high;
}

static bool isa_named(const char *text, hk_isa *isa) {
  for (int i = HK_ISA_SCALAR; text && i <= HK_ISA_AVX512; i++) {
    if (!strcmp(text, hk_isa_name((hk_isa)i))) {
      *isa = (hk_isa)i;
      return true;
    }
  }
  return false;
}

/* One option at argv[*i]; its value, if any, is skipped. */
static bool option(arguments *a, char **argv, int *i) {
  const char *name = argv[*i], *value = argv[*i + 1];
  double v = 0;
  bool *flag = !strcmp(name, "--resample")        ? &a->resample
               : !strcmp(name, "--force")         ? &a->force
               : !strcmp(name, "--rational-tanh") ? &a->rational
               : !strcmp(name, "--quiet")         ? &a->quiet
                                                  : NULL;
  if (flag) {
    *flag = true;
    return true;
  }
  ++*i;
  if (!strcmp(name, "--isa")) return isa_named(value, &a->isa);
  if (!strcmp(name, "--size") && number(value, 0, 1, &v)) a->size = v;
  else if (!strcmp(name, "--block") && number(value, 1, 1e6, &v)) a->block = (long)v;
  else if (!strcmp(name, "--seconds") && number(value, 0.01, 3600, &v)) a->seconds = v;
  else if (!strcmp(name, "--passes") && number(value, 1, 1000, &v)) a->passes = (int)v;
  else return false;
  return true;
}

int main(int argc, char **argv) {
  arguments a = {.size = -1, .seconds = 2, .passes = 5};
  if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))) {
    fputs(usage, stdout);
    return 0;
  }
  if (argc > 1 && !strcmp(argv[1], "--version")) {
    printf("hankel-nam %s\n", hk_version());
    return 0;
  }
  if (argc > 1) a.verb = argv[1];
  for (int i = 2; i < argc; i++) {
    bool good = true;
    if (!strncmp(argv[i], "--", 2)) good = option(&a, argv, &i);
    else if (a.paths < 3) a.path[a.paths++] = argv[i];
    else good = false;
    if (!good) return fputs(usage, stderr), 2;
  }
  if (a.verb && !strcmp(a.verb, "render") && a.paths == 3) return verb_render(&a);
  if (a.verb && !strcmp(a.verb, "bench") && a.paths == 1) return verb_bench(&a);
  if (a.verb && !strcmp(a.verb, "info") && a.paths == 1) return verb_info(&a);
  fputs(usage, stderr);
  return 2;
}
