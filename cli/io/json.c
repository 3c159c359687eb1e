/* A JSON writer: keeps the commas, quotes the texts, indents by two. Numbers that JSON cannot hold (NaN, infinities)
 * are written as null. Assumes at most 15 levels and that brackets are closed as they were opened. */
#include <math.h>

#include "cli.h"

static void quoted(FILE *file, const char *text) {
  fputc('"', file);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') fprintf(file, "\\%c", c);
    else if (c == '\n') fputs("\\n", file);
    else if (c < 0x20) fprintf(file, "\\u%04x", c);
    else fputc(c, file);
  }
  fputc('"', file);
}

static void lead(cli_json *j, const char *key) {
  if (j->depth) {
    fputs(j->started[j->depth] ? ",\n" : "\n", j->file);
    for (int i = 0; i < j->depth; i++) fputs("  ", j->file);
  }
  j->started[j->depth] = true;
  if (!key) return;
  quoted(j->file, key);
  fputs(": ", j->file);
}

void cli_json_open(cli_json *j, const char *key, char bracket) {
  lead(j, key);
  fputc(bracket, j->file);
  j->started[++j->depth] = false;
}

void cli_json_close(cli_json *j, char bracket) {
  bool any = j->started[j->depth--];
  if (any) fputc('\n', j->file);
  for (int i = 0; any && i < j->depth; i++) fputs("  ", j->file);
  fputc(bracket, j->file);
  if (!j->depth) fputc('\n', j->file);
}

void cli_json_text(cli_json *j, const char *key, const char *value) {
  lead(j, key);
  if (value) quoted(j->file, value);
  else fputs("null", j->file);
}

void cli_json_number(cli_json *j, const char *key, double value) {
  lead(j, key);
  if (isfinite(value)) fprintf(j->file, "%.10g", value);
  else fputs("null", j->file);
}

void cli_json_integer(cli_json *j, const char *key, int64_t value) {
  lead(j, key);
  fprintf(j->file, "%lld", (long long)value);
}

void cli_json_bool(cli_json *j, const char *key, bool value) {
  lead(j, key);
  fputs(value ? "true" : "false", j->file);
}
