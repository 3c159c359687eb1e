/* Options from tables: --name value, --name=value, --flag. The same tables print --help. A word that looks like an
 * option and is none, a missing value, or a value of the wrong kind is a usage error that names it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MOST_GIVEN = 64 };
static const char *given[MOST_GIVEN]; /* names of the options that were met, each once */
static int given_count;

static bool was_given(const char *name) {
  for (int i = 0; i < given_count; i++)
    if (!strcmp(given[i], name)) return true;
  return false;
}

int cli_options_refuse(const char *const *names, const char *where) {
  for (int i = 0; names[i]; i++)
    if (was_given(names[i])) {
      cli_error("--%s does not apply to %s", names[i], where);
      return CLI_USAGE;
    }
  return CLI_OK;
}

static void help(const cli_verb *verb, const cli_option *const *tables) {
  printf("usage: hankel %s\n\n%s\n\n", verb->usage, verb->summary);
  for (int t = 0; tables[t]; t++)
    for (const cli_option *o = tables[t]; o->name; o++) {
      char left[64];
      snprintf(left, sizeof left, "--%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
      printf("  %-26s %s\n", left, o->help);
    }
  printf("  %-26s %s\n", "--help", "this text");
}

static const cli_option *find(const cli_option *const *tables, const char *name, size_t length) {
  for (int t = 0; tables[t]; t++)
    for (const cli_option *o = tables[t]; o->name; o++)
      if (strlen(o->name) == length && !strncmp(o->name, name, length)) return o;
  return NULL;
}

static bool value_set(const cli_option *o, const char *text) {
  char *end = NULL;
  errno = 0;
  switch (o->kind) {
  case CLI_FLAG: *(bool *)o->value = true; return true;
  case CLI_TEXT: *(const char **)o->value = text; return true;
  case CLI_INTEGER: *(int64_t *)o->value = strtoll(text, &end, 10); break;
  case CLI_REAL: *(double *)o->value = strtod(text, &end); break;
  case CLI_LIST: {
    cli_texts *list = o->value;
    if (list->count == (int)(sizeof list->at / sizeof *list->at)) return false;
    list->at[list->count++] = text;
    return true;
  }
  }
  return end != text && !*end && !errno;
}

/* Takes the option at argv[i] and its value; returns how many words that were, or 0 after an error. */
static int option_take(const cli_verb *verb, const cli_option *const *tables, char **argv, int left) {
  const char *name = argv[0] + 2, *equal = strchr(name, '=');
  const cli_option *o = find(tables, name, equal ? (size_t)(equal - name) : strlen(name));
  if (!o) {
    cli_error("%s has no option %s; hankel %s --help lists them", verb->name, argv[0], verb->name);
    return 0;
  }
  if (o->kind == CLI_FLAG && equal) {
    cli_error("--%s takes no value", o->name);
    return 0;
  }
  if (o->kind != CLI_FLAG && !equal && left < 2) {
    cli_error("--%s needs a value: %s", o->name, o->argument);
    return 0;
  }
  const char *text = equal ? equal + 1 : argv[1];
  if (!value_set(o, text)) {
    cli_error("--%s: '%s' is not understood, expected %s", o->name, text, o->argument);
    return 0;
  }
  if (!was_given(o->name) && given_count < MOST_GIVEN) given[given_count++] = o->name;
  return o->kind == CLI_FLAG || equal ? 1 : 2;
}

bool cli_options_read(const cli_verb *verb, const cli_option *const *tables, int argc, char **argv, const char **word,
                      int *words, int *code) {
  int room = *words;
  *words = 0;
  *code = CLI_USAGE;
  for (int i = 1; i < argc;) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      help(verb, tables);
      *code = CLI_OK;
      return false;
    }
    if (strncmp(argv[i], "--", 2)) {
      if (*words == room) {
        cli_error("one word too many: '%s'; usage: hankel %s", argv[i], verb->usage);
        return false;
      }
      word[(*words)++] = argv[i++];
      continue;
    }
    int taken = option_take(verb, tables, argv + i, argc - i);
    if (!taken) return false;
    i += taken;
  }
  *code = CLI_OK;
  return true;
}
