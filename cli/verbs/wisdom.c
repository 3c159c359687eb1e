/* `hankel wisdom`: the wisdom a plan would use here, as text; import and merge of files. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char *save_to;
static const cli_option table[] = {
    {"save", CLI_TEXT, &save_to, "FILE", "of import: the file to merge into (default: the user's)"}, {0}};

static int show(void) {
  size_t length = 0;
  hk_status s = hk_wisdom_export(NULL, 0, &length);
  char *text = s ? NULL : malloc(length + 1);
  if (!s && !text) return CLI_FAILED;
  if (!s) s = hk_wisdom_export(text, length + 1, NULL);
  if (!s) fputs(text, stdout);
  free(text);
  return s ? cli_refused(s, "wisdom") : CLI_OK;
}

static int import(const char *const *file, int count) {
  hk_wisdom_forget();
  for (int i = 0; i < count; i++) {
    const hk_status s = hk_wisdom_load(file[i]);
    if (s) return cli_refused(s, file[i]);
  }
  const int64_t lines = hk_wisdom_count();
  const hk_status s = hk_wisdom_save(save_to);
  if (s) return cli_refused(s, save_to ? save_to : "the user's file");
  cli_note("%lld lines merged", (long long)lines);
  return CLI_OK;
}

static int path(void) {
  char text[4096];
  hk_wisdom_path(text, sizeof text, NULL);
  if (!*text) {
    cli_error("there is no wisdom file here: HANKEL_WISDOM is \"none\", or HOME is not set");
    return CLI_UNSUPPORTED;
  }
  puts(text);
  return CLI_OK;
}

int cli_wisdom(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, NULL};
  const char *word[64];
  int words = 64, code;
  if (!cli_options_read(verb, tables, argc, argv, word, &words, &code)) return code;
  static const char *const of_import[] = {"save", NULL};
  if (words <= 1 && (code = cli_options_refuse(of_import, "this; it is of wisdom import"))) return code;
  if (words <= 1 && (words == 0 || !strcmp(word[0], "export"))) return show();
  if (words == 1 && !strcmp(word[0], "path")) return path();
  if (words >= 2 && words <= 64 && !strcmp(word[0], "import")) return import(word + 1, words - 1);
  cli_error("usage: hankel %s", verb->usage);
  return CLI_USAGE;
}
