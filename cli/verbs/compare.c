/* `hankel compare OLD.json NEW.json`: what got slower beyond noise, from two outputs of `hankel bench --json` (or any
 * in google-benchmark's shape with medians). Noise is the larger of --threshold and the quartile distances of both
 * runs. Exit 1 when anything is slower. Reading JSON needs jansson; without it the verb is unsupported. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/read.h"
#include "cli.h"

static double threshold = 5;
static bool all;
static const cli_option table[] = {
    {"threshold", CLI_REAL, &threshold, "PERCENT", "differences below this are noise (default 5)"},
    {"all", CLI_FLAG, &all, NULL, "list the problems that did not change, too"},
    {0}};

static const bench_time *find(const bench_times *t, const char *run) {
  for (int64_t i = 0; i < t->count; i++)
    if (!strcmp(t->at[i].run, run)) return &t->at[i];
  return NULL;
}

static int compare(const bench_times *then, const bench_times *now) {
  static const char *const head[] = {"problem", "old us", "new us", "new/old", "noise %", ""};
  cli_table t = {.columns = 6};
  int slower = 0, faster = 0, same = 0, missing = 0;
  double sum = 0;
  for (int c = 0; c < 6; c++) cli_table_add(&t, c, strdup(head[c]));
  for (int64_t i = 0; i < now->count; i++) {
    const bench_time *b = &now->at[i], *a = find(then, b->run);
    if (!a) {
      missing++;
      continue;
    }
    const double noise = fmax(threshold, 100 * (a->iqr + b->iqr) / a->median),
                 change = 100 * (b->median / a->median - 1);
    const char *word = change > noise ? "slower" : change < -noise ? "faster" : "";
    slower += change > noise, faster += change < -noise, same += !*word;
    sum += log(b->median / a->median);
    if (!*word && !all) continue;
    cli_table_add(&t, 0, strdup(b->run));
    cli_table_add(&t, 1, cli_text("%.2f", a->median));
    cli_table_add(&t, 2, cli_text("%.2f", b->median));
    cli_table_add(&t, 3, cli_text("%.3f", b->median / a->median));
    cli_table_add(&t, 4, cli_text("%.1f", noise));
    cli_table_add(&t, 5, strdup(word));
  }
  if (t.rows > 1) cli_table_print(&t, stdout);
  cli_table_free(&t);
  const int count = slower + faster + same;
  printf("%d slower, %d faster, %d the same, %d not in both", slower, faster, same, missing);
  if (count) printf("; new/old in geometric mean %.3f", exp(sum / count));
  putchar('\n');
  if (!count) {
    cli_error("the files have no problem in common");
    return CLI_USAGE;
  }
  return slower ? CLI_FAILED : CLI_OK;
}

/* The whole file in memory; NULL when it cannot be read. */
static char *file_text(const char *path, size_t *length) {
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  size_t room = 0;
  *length = 0;
  for (size_t got = 1; f && got;) {
    if (*length == room) {
      char *more = realloc(text, room = room ? 2 * room : 65536);
      if (!more) break;
      text = more;
    }
    *length += got = fread(text + *length, 1, room - *length, f);
  }
  if (f) fclose(f);
  return text;
}

static int times_load(bench_times *t, const char *path) {
  char why[200] = "cannot be read";
  size_t length;
  char *text = file_text(path, &length);
  const int code = text ? bench_times_read(t, text, length, why) : CLI_USAGE;
  free(text);
  if (code) cli_error("%s: %s", path, why);
  return code;
}

static int files_compare(const char *old_path, const char *new_path) {
  bench_times a = {0}, b = {0};
  int code = times_load(&a, old_path);
  if (!code) code = times_load(&b, new_path);
  if (!code) code = compare(&a, &b);
  bench_times_free(&a);
  bench_times_free(&b);
  return code;
}

int cli_compare(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, NULL};
  const char *word[2];
  int words = 2, code;
  if (!cli_options_read(verb, tables, argc, argv, word, &words, &code)) return code;
  if (words != 2 || !(threshold >= 0)) {
    cli_error("two files are needed and a threshold of 0 or more; usage: hankel %s", verb->usage);
    return CLI_USAGE;
  }
  return files_compare(word[0], word[1]);
}
